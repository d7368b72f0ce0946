//! Windows that let nothing through, or less than a segment, and the probes that ask whether they still do.

use tcpwhy_wire::Tcp;

use super::connection::Connection;
use super::fact::{Cause, End, Fact, Facts, Wait};
use super::half::NEVER;
use super::repair::SHORTEST_TIMER;
use super::sequence;

impl Connection {
    /// A keep-alive or a probe of a closed window passes, with its one byte or without. Nobody speaks with it.
    pub(crate) fn note_window_probe(&mut self, end: End) {
        self.set_probe(true);
        let half = &mut self.halves[end];
        if let Some(trouble) = half.trouble.as_deref_mut().filter(|_| half.zero_window) {
            trouble.shut.probes = trouble.shut.probes.saturating_add(1);
        }
    }

    /// Whether a pure ACK of `from` is a keep-alive or a probe without data: it repeats the byte before the next one, so that
    /// the other side must answer (Linux `tcp_xmit_probe_skb`).
    pub(crate) fn note_empty_probe(&mut self, tcp: &Tcp, from: End) -> bool {
        let half = &self.halves[from];
        let is_probe = half.in_flight() == 0 && sequence::unwrap(tcp.seq, half.next) + 1 == half.next;
        if is_probe {
            self.note_window_probe(from);
        }
        is_probe
    }

    /// Whether what leaves `end` now had been waiting for a window smaller than a segment, or for one that was zero before
    /// any data was seen. Publishes that wait.
    pub(crate) fn was_shut_out(
        &mut self,
        end: End,
        now: i64,
        number: u64,
        len: u32,
        facts: &mut impl Facts,
    ) -> bool {
        if self.is_pressed(end, now, len) {
            let half = &mut self.halves[end];
            let pressed = half.next + u64::from(len);
            half.trouble.get_or_insert_default().shut.pressed = pressed;
            let since = half.sent_at;
            facts.take(Fact::Wait(self.wait(Cause::Unread, end, since, now, number)));
            return true;
        }
        let half = &self.halves[end];
        let Some(shut) = half.shut().filter(|_| half.sent_at == NEVER && half.zero_window) else {
            return false;
        };
        let was_opened = half.freed_at > shut.at && now - half.freed_at <= self.reaction_most(end);
        if was_opened {
            let (packets, times) = ([shut.number, half.freed_number, number], [shut.at, half.freed_at, now]);
            let (cause, from) = (Cause::ZeroWindow, shut.at);
            facts.take(Fact::Wait(Wait { cause, end, from, until: now, packets, times }));
        }
        was_opened
    }

    /// Whether the persist timer sends what leaves `end` now: a window smaller than a segment was there all along, with nothing
    /// on its way, and is filled to its last byte after a silence as long as a timer. A sender avoids such windows until
    /// then (RFC 1122 section 4.2.3.4).
    fn is_pressed(&self, end: End, now: i64, len: u32) -> bool {
        let half = &self.halves[end];
        let room = half.edge.saturating_sub(half.next);
        let is_small = half.scale_known && room > 0 && room < u64::from(half.full_size());
        is_small
            && u64::from(len) == room
            && half.in_flight() == 0
            && half.sent_at != NEVER
            && now - half.sent_at.max(half.freed_at) >= SHORTEST_TIMER
    }

    /// Whether bytes up to `to` are another try of what the persist timer has pressed into a window that is full since: a
    /// probe, and no sign of a loss.
    pub(crate) fn is_pressed_again(&self, end: End, to: u64) -> bool {
        let half = &self.halves[end];
        let Some(trouble) = half.trouble.as_deref() else { return false };
        half.acked < to && to <= trouble.shut.pressed && half.edge <= trouble.shut.pressed
    }

    /// Publishes a window that is still shut when the capture ends, or the connection is reset, if its sender has shown that
    /// it has something to send: it probes, or it had stopped in the middle of a message.
    pub(crate) fn publish_open_window(&mut self, end: End, now: i64, facts: &mut impl Facts) {
        let half = &self.halves[end];
        let Some(&shut) = half.shut() else { return };
        let is_pressed = shut.pressed > half.acked;
        let wants_more = shut.probes > 0 || is_pressed || half.is_pending();
        if half.closed || !wants_more || !(half.zero_window || is_pressed) {
            return;
        }
        let since = if half.sent_at == NEVER { shut.at } else { half.sent_at };
        // Who could go on and did not had nothing to send after all, or has not heard yet.
        let until = if half.edge > half.next { half.freed_at } else { now };
        if since != NEVER && until > since && self.is_beyond_path(until - since) {
            let cause = if is_pressed { Cause::Unread } else { Cause::ZeroWindow };
            let first = if half.sent_at == NEVER { shut.number } else { half.sent_number };
            let (packets, times) = ([first, 0, 0], [since, until, until]);
            facts.take(Fact::Wait(Wait { cause, end, from: since, until, packets, times }));
        }
    }
}
