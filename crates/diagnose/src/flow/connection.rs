//! One TCP connection: packets in, named facts out.
//!
//! Reasoning rests on the *release event*: what passed the capture point just before a segment left. A
//! segment that leaves within the sender's own reaction time of an ACK was waiting for that ACK; one that
//! leaves on its own was waiting for its program.

use tcpwhy_wire::messages::Kind;
use tcpwhy_wire::{Packet, Socket, Tcp, TcpFlags};

use super::exchange::Exchanges;
use super::fact::{Awaited, Cause, End, Fact, Facts, Wait};
use super::half::{Acked, Half, NEVER, Small, UNKNOWN};
use super::handshake::client_by_port;
use super::rhythm::{MESSAGE_GAP, RHYTHM_RUN, Rhythm};
use super::sending::Rare;
use super::sequence;
use super::table::Key;

/// How long after the event that freed it a segment may leave and still count as freed by it, beyond the
/// round trip to the sender: a kernel answers an ACK in its receive path, in well under 0.1 ms; a loaded one,
/// or a virtual machine, takes up to about 1 ms. ns.
pub(crate) const RELEASE_TOLERANCE: i64 = 1_000_000;
/// Share of the round trip to the sender by which its reaction may vary (jitter of the path).
pub(crate) const JITTER_SHARE: i64 = 4;
/// A reaction faster than this can only come from the host the capture was made on. ns.
pub(crate) const PROMPT: i64 = 100_000;
/// Full segments no further apart than this are back to back, whatever the round trip. ns.
const BACK_TO_BACK: i64 = 1_000_000;
/// Full segments no further apart than this share of the present round trip are clocked by the path.
const CLOCKED_SHARE: i64 = 4;
/// …and never further apart than two full segments on a 112 kbit/s line: longer gaps are waits. ns.
const CLOCKED_MOST: i64 = 250_000_000;
/// The bit of `last_speaker` for a packet with which nobody spoke.
const PROBE: u8 = 2;

/// One TCP connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The ends, the lower address first.
    pub(crate) ends: [Socket; 2],
    pub(crate) is_udp: bool,
    pub(crate) halves: [Half; 2],
    /// Which end is the client, once known: an [`End`], in a byte.
    client: Option<u8>,
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// Time of the packet before the present one, keep-alives, probes of a closed window and the answers to them left out.
    pub(crate) previous: i64,
    /// Sequence number of the SYN, to tell its retransmission from a new connection.
    pub(crate) syn: Option<u32>,
    /// When the last SYN and the first SYN-ACK passed; `NEVER` where not seen.
    pub(crate) syn_at: i64,
    /// The low half of its packet's number.
    pub(crate) syn_low: u32,
    pub(crate) syn_ack_at: i64,
    /// When the handshake was over.
    pub(crate) established: i64,
    pub(crate) reset: bool,
    pub(crate) exchanges: Exchanges,
    /// The low half of the sequence number with which each direction's present burst began.
    pub(crate) burst_from: [u32; 2],
    /// The low half of what had been ACKed of it when it sent last.
    pub(crate) sent_acked: [u32; 2],
    /// What few connections have.
    pub(crate) rare: Option<Box<Rare>>,
    /// By whom data was last sent: an [`End`], in one byte; and whether the last packet was a [`PROBE`].
    last_speaker: u8,
    /// What the present segment says, where its protocol is known.
    pub(crate) said: Option<Kind>,
}

impl Connection {
    /// A connection of `key` whose first packet passes at `time`.
    pub(crate) fn new(key: Key, time: i64) -> Self {
        let Key { ends, is_udp } = key;
        Self {
            ends,
            is_udp,
            halves: [Half::default(), Half::default()],
            client: client_by_port(ends).map(|end| end as u8),
            first: time,
            last: time,
            previous: time,
            syn: None,
            syn_at: NEVER,
            syn_low: 0,
            syn_ack_at: NEVER,
            established: NEVER,
            reset: false,
            exchanges: Exchanges::default(),
            burst_from: [0; 2],
            sent_acked: [0; 2],
            rare: None,
            last_speaker: 0,
            said: None,
        }
    }

    /// Whether this packet begins another connection on the same two sockets: a SYN that is not the
    /// retransmission of this one's (RFC 9293 section 3.10.7.4).
    #[inline]
    pub(crate) fn is_superseded_by(&self, tcp: &Tcp) -> bool {
        tcp.flags.has(TcpFlags::SYN)
            && !tcp.flags.has(TcpFlags::ACK)
            && self.syn != Some(tcp.seq)
            && (self.syn.is_some() || self.halves[0].started || self.halves[1].started)
    }

    /// What share of the time in which small segments were held the base round trip explains, 0 to 1; the
    /// rest is the receiver's delayed ACK.
    pub(crate) fn round_trip_share_of_holds(&self) -> f64 {
        let mut sums = (0, 0);
        for (end, half) in self.halves.iter().enumerate() {
            let Some(held) = &self.holds(end) else { continue };
            // A hold is measured from the data to its ACK at the capture point: the receiver's part of the path.
            // Without a base round trip even the shortest of them may be a delayed ACK.
            let part = self.base_round_trip().map_or(0, |_| half.part_or_zero());
            let (within, all) = held.waits.sums_within(part);
            let within = (within + held.travelled).min(all);
            sums = (sums.0 + within + held.reactions, sums.1 + all + held.reactions);
        }
        let (within, all) = sums;
        if all == 0 { 1.0 } else { within as f64 / all as f64 }
    }

    /// Takes packet `number`, sent by `from` at `time`, and publishes what it shows.
    #[inline]
    pub(crate) fn handle_segment(
        &mut self,
        packet: &Packet,
        time: i64,
        tcp: &Tcp,
        from: End,
        facts: &mut impl Facts,
    ) {
        let single = tcp.payload_len <= self.halves[from].full_size();
        let half = &mut self.halves[from];
        // An ACK that is missing leaves no hole.
        let has_hole = tcp.payload_len == 0 || sequence::unwrap(tcp.seq, half.next) > half.next;
        half.idents.take(packet.ip_id, single, time - half.sent_at, has_hole);
        let is_syn_ack = tcp.flags.has(TcpFlags::SYN) && tcp.flags.has(TcpFlags::ACK);
        if is_syn_ack && packet.ip_id.is_some_and(|id| id != 0) {
            half.idents.distrust();
        }
        self.handle(packet.number, time, tcp, from, facts);
    }

    fn handle(&mut self, number: u64, time: i64, tcp: &Tcp, from: End, facts: &mut impl Facts) {
        // Clocks of several processors differ by microseconds; time that runs backwards would be booked twice.
        let now = time.max(self.last);
        if !self.was_probe() {
            self.previous = self.last;
        }
        self.last = now;
        self.halves[from].packets = self.halves[from].packets.saturating_add(1);
        if tcp.flags.has(TcpFlags::SYN) {
            return self.handle_syn(number, tcp, from, now, facts);
        }
        if tcp.flags.has(TcpFlags::RST) {
            self.set_probe(false);
            return self.handle_reset(from, now, facts);
        }
        if tcp.flags.0 & (TcpFlags::ECE | TcpFlags::CWR) != 0 {
            self.note_ecn(number, tcp, from, now);
        }
        let pure = tcp.payload_len == 0 && !tcp.flags.has(TcpFlags::FIN);
        if self.halves[from].idents.missing > 0 {
            self.note_missing(tcp, from, pure);
        }
        if tcp.flags.has(TcpFlags::ACK) {
            self.handle_ack(number, tcp, from, now, pure, facts);
        }
        if pure {
            self.halves[from].pure_acks += 1;
            self.halves[from].start(tcp.seq);
            let has_moved = self.halves[1 - from].freed_at == now;
            let is_probe = self.note_empty_probe(tcp, from) || self.was_probe() && !has_moved;
            self.set_probe(is_probe);
        } else {
            self.set_probe(false);
            self.handle_data(number, tcp, from, now, facts);
            self.forget_missing(tcp, from);
        }
    }

    fn handle_reset(&mut self, from: End, now: i64, facts: &mut impl Facts) {
        if !self.reset {
            self.reset = true;
            for end in 0..2 {
                self.publish_cut_off(end, now, facts);
                self.publish_open_window(end, now, facts);
            }
            self.close(from, now, facts);
        }
        facts.take(Fact::Settled { until: now });
    }

    fn handle_ack(
        &mut self,
        number: u64,
        tcp: &Tcp,
        from: End,
        now: i64,
        pure: bool,
        facts: &mut impl Facts,
    ) {
        if self.established == NEVER && self.syn_ack_at != NEVER && Some(from) == self.client() {
            self.finish_handshake(number, tcp, now, facts);
        }
        let gap_most = self.clocked_gap(1 - from);
        let sender = &mut self.halves[1 - from];
        let since_freed = now - sender.freed_at;
        if !tcp.options.sack.as_slice().is_empty() {
            sender.trouble.get_or_insert_default();
        }
        let hole = sender.hole_below(tcp);
        let acked = sender.take_ack(tcp, number, now, pure);
        if sender.trouble.is_some() {
            self.take_answer(tcp, 1 - from, number, now, acked, facts);
            if let Some(hole) = hole {
                self.note_unseen_repair(1 - from, hole, number, now, facts);
            }
        }
        if acked.bytes == 0 {
            return;
        }
        self.note_return(1 - from, now, since_freed, acked);
        let waited = now - self.halves[1 - from].sent_at;
        if acked.before == self.halves[1 - from].sent_at {
            self.note_first_ack(1 - from, now);
        }
        if acked.sampled && self.may_be_queued(1 - from) {
            self.note_round_trip(1 - from, acked.bytes, acked.was_in_flight, number, now);
        }
        let host = &mut self.halves[from];
        if waited <= PROMPT {
            host.prompt = host.prompt.saturating_add(1);
        } else {
            host.slow = host.slow.saturating_add(1);
        }
        if self.halves[1 - from].is_repairing() {
            self.end_recovery(1 - from, number, now, facts);
        } else if waited > gap_most {
            self.draining(1 - from, acked, number, now, gap_most, facts);
        }
    }

    /// The sender has fallen silent and ACKs for several full segments still come in: the path is draining.
    pub(crate) fn draining(
        &mut self,
        end: End,
        acked: Acked,
        number: u64,
        now: i64,
        gap_most: i64,
        facts: &mut impl Facts,
    ) {
        let half = &self.halves[end];
        let full = u64::from(half.full_size());
        if !self.is_far(end) && half.time_of(acked.bytes) > 0 {
            return self.return_at_rate(end, acked, number, now, facts);
        }
        if acked.was_in_flight < 2 * full || acked.bytes < full {
            return;
        }
        let packets = [half.sent_number, number, number];
        let wait = |cause, from| Wait::new(cause, end, (from, now), packets);
        let since_sent = half.sent_at + half.part_or_zero();
        if now - acked.before <= gap_most {
            facts.take(Fact::Wait(wait(Cause::Transfer, acked.before)));
        } else if half.part != UNKNOWN && half.in_flight() > 0 && acked.bytes >= 2 * full {
            // Two full segments are ACKed at once (RFC 1122 section 4.2.3.2), so the receiver held nothing; one
            // ACK for all that was in flight, late, it may have held.
            let from = since_sent.max(acked.before);
            if now - from > self.jitter(end) {
                facts.take(Fact::Wait(wait(Cause::Queueing, from)));
            }
        }
    }

    /// How much longer than its part of the base round trip an ACK may take before a queue is suspected.
    fn jitter(&self, end: End) -> i64 {
        RELEASE_TOLERANCE + self.halves[end].part_or_zero() / JITTER_SHARE
    }

    /// Longest gap between full segments of `end` that still counts as bytes flowing at the path's rate.
    #[inline]
    pub(crate) fn clocked_gap(&self, end: End) -> i64 {
        let round_trip = self.halves[end].rtt + self.halves[1 - end].part_or_zero();
        (round_trip / CLOCKED_SHARE).clamp(BACK_TO_BACK, CLOCKED_MOST)
    }

    fn handle_data(&mut self, number: u64, tcp: &Tcp, from: End, now: i64, facts: &mut impl Facts) {
        let half = &mut self.halves[from];
        half.start(tcp.seq);
        let seq = sequence::unwrap(tcp.seq, half.next);
        let fin = tcp.flags.has(TcpFlags::FIN);
        let end = seq + u64::from(tcp.payload_len);
        if tcp.payload_len == 0 {
            if end > half.next && !half.closed {
                half.open_hole(end, now, tcp.options.timestamps.map(|stamps| stamps.0));
            }
            return self.handle_fin(end, from, now, facts);
        }
        let is_probe = tcp.payload_len == 1 && half.acked == half.next;
        if is_probe && (end == half.next || half.edge == half.next && half.sent_at != NEVER) {
            // A keep-alive (RFC 9293 section 3.8.4) or a zero-window probe (section 3.8.6.1): no new data.
            return self.note_window_probe(from);
        }
        if half.trouble.is_some() {
            self.publish_late_ack(from, now, facts);
        }
        let half = &mut self.halves[from];
        half.segments = half.segments.saturating_add(1);
        self.hear(tcp.message.as_ref(), from);
        let half = &mut self.halves[from];
        let stamp = tcp.options.timestamps.map(|stamps| stamps.0);
        if end <= half.next {
            self.handle_old_data((seq, end), stamp, number, from, now, facts);
        } else {
            if seq > half.next {
                half.open_hole(seq, now, stamp);
            } else if seq < half.next {
                half.fill_holes(seq, half.next);
            }
            half.note_size(tcp, seq == half.next, now - half.sent_at);
            self.handle_new_data(seq, end, number, tcp.payload_len, from, now, facts);
            let half = &mut self.halves[from];
            half.pushed = half.pushed.then(tcp.flags.has(TcpFlags::PSH));
        }
        if fin {
            self.handle_fin(end, from, now, facts);
        }
    }

    fn handle_fin(&mut self, at: u64, from: End, now: i64, facts: &mut impl Facts) {
        let half = &mut self.halves[from];
        if !half.closed && at >= half.next {
            half.closed = true;
            half.next = at + 1;
            let part = half.part_or_zero();
            self.close(from, now, facts);
            facts.take(Fact::InFlight { end: from, from: now, until: now + part, by_length: 0 });
        }
        self.settle(now, facts);
    }

    #[allow(clippy::too_many_arguments, reason = "a segment's place, its packet, and where facts go")]
    fn handle_new_data(
        &mut self,
        seq: u64,
        end: u64,
        number: u64,
        len: u32,
        from: End,
        now: i64,
        facts: &mut impl Facts,
    ) {
        let half = &mut self.halves[from];
        let full_size = half.full_size();
        let full = len >= full_size || half.may_be_full(len);
        half.offloaded += u32::from(len > full_size && half.mss != 0);
        let gap = now - half.sent_at;
        let clocked = self.clocked_gap(from);
        self.note_arrival(from, now, gap, len);
        self.take_writes(from, seq, end, now, full);
        let half = &self.halves[from];
        let at_rate = gap <= clocked || self.is_at_rate(from, gap, len);
        let is_late = gap > PROMPT && self.was_completed(from, now);
        let flowing = half.last_full && at_rate && !half.is_repairing() && !is_late;
        if flowing {
            self.flow_on(from, now, number, len, facts);
        } else {
            let free = self.explain_send(from, now, number, len, full, facts);
            self.turn(from, now, free, facts);
        }
        self.begin_burst(from, now, gap > clocked);
        if self.said != Some(Kind::Neither) {
            self.change_speaker(from);
        }
        self.record_send(seq, end, number, len, full, from, now);
        facts.take(Fact::Settled { until: self.unresolved_since(now) });
    }

    /// By whom data was last sent.
    #[inline]
    pub(crate) fn last_spoke(&self) -> End {
        End::from(self.last_speaker & !PROBE)
    }

    /// Whether the last packet was a keep-alive, a probe of a closed window, or the answer to one: nobody has spoken with it.
    #[inline]
    pub(crate) fn was_probe(&self) -> bool {
        self.last_speaker & PROBE != 0
    }

    #[inline]
    pub(crate) fn set_probe(&mut self, is_probe: bool) {
        self.last_speaker = self.last_speaker & !PROBE | if is_probe { PROBE } else { 0 };
    }

    #[inline]
    pub(crate) fn change_speaker(&mut self, from: End) {
        if self.last_spoke() != from {
            self.halves[1 - from].run = 0;
            self.last_speaker = self.last_speaker & PROBE | from as u8;
        }
    }

    /// Which end is the client, once known.
    #[inline]
    pub(crate) fn client(&self) -> Option<End> {
        self.client.map(End::from)
    }

    /// Takes `end` for the client, and returns it.
    pub(crate) fn take_client(&mut self, end: End) -> End {
        self.client = Some(end as u8);
        end
    }

    /// The number of the last SYN's packet, seen from packet `number`.
    pub(crate) fn syn_number(&self, number: u64) -> u64 {
        number - u64::from((number as u32).wrapping_sub(self.syn_low))
    }

    /// The number of the last SYN's packet, as far as the packets that came behind it tell its upper half.
    pub(crate) fn syn_packet(&self) -> u64 {
        let numbers = self.halves.iter().flat_map(|half| [half.sent_number, half.freed_number]);
        let latest = numbers.max().unwrap_or(0);
        self.syn_number(latest.max(u64::from(self.syn_low)))
    }

    /// The handshake's length, ns; 0 where it was not seen whole.
    pub(crate) fn handshake(&self) -> i64 {
        let is_seen = self.established != NEVER && self.syn_at != NEVER;
        if is_seen { self.established - self.syn_at } else { 0 }
    }

    /// One more segment of a message or a bulk transfer that flows at the path's rate, or at the window's.
    #[inline]
    fn flow_on(&mut self, from: End, now: i64, number: u64, len: u32, facts: &mut impl Facts) {
        let half = &self.halves[from];
        let since = half.sent_at;
        if self.is_bound_by_window(from) {
            facts.take(Fact::Wait(self.wait(Cause::ReceiveWindow, from, since, now, number)));
            self.spoke(from, now, Awaited::Yes, facts);
        } else if now - since > BACK_TO_BACK
            && let Some(cause) = self.paced_by(from, now)
        {
            facts.take(Fact::Wait(self.wait(cause, from, since, now, number)));
            self.spoke(from, now, Awaited::Yes, facts);
        } else {
            let packets = [half.sent_number, number, number];
            let busy = self.busy_until(from, (since, now), len);
            facts.take(Fact::Wait(Wait::new(Cause::Transfer, from, (since, busy), packets)));
            if busy < now {
                facts.take(Fact::Wait(self.wait(Cause::AfterLoss, from, busy, now, number)));
                self.spoke(from, now, Awaited::Yes, facts);
            }
        }
        self.exchanges.continued(now);
    }

    /// Remembers what window the sender can have known of: at the start of a burst all that has passed here;
    /// in a long burst, what passed at least one reaction ago (or less: rather miss a full window than invent
    /// one).
    #[inline]
    fn begin_burst(&mut self, from: End, now: i64, new: bool) {
        let reaction = self.reaction_part(from);
        let half = &mut self.halves[from];
        if new {
            half.freed_first = NEVER;
            self.burst_from[from] = half.next as u32;
        }
        if new || now - half.known_at > reaction {
            half.known_edge = half.edge;
            half.known_at = now;
        }
    }

    /// Publishes how long the data sent last has been travelling. What leaves during a repair travels in the repair's
    /// time, and so many pieces of it would be more than the ledger keeps apart.
    pub(super) fn publish_travel(&mut self, now: i64, facts: &mut impl Facts) {
        for end in 0..2 {
            let half = &self.halves[end];
            let is_in_repair = half.repair().is_some_and(|repair| half.sent_at >= repair.recover_from);
            let is_known = half.sent_at != NEVER && half.part != UNKNOWN && half.part > 0;
            if is_known && half.sent_at < now && !is_in_repair {
                let (by_length, train) = self.on_slow_path(end);
                let until = half.sent_at + self.path_part(end) + by_length;
                facts.take(Fact::InFlight { end, from: half.sent_at, until, by_length });
                if train > 0 {
                    let packets = [half.sent_number, half.freed_number, half.sent_number];
                    let flow = (until, until + train);
                    facts.take(Fact::Wait(Wait::new(Cause::Transfer, end, flow, packets)));
                }
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a segment's place and its packet")]
    fn record_send(&mut self, seq: u64, end: u64, number: u64, len: u32, full: bool, from: End, now: i64) {
        let half = &mut self.halves[from];
        let before = (now - half.sent_at, half.sent_len);
        half.bytes += end - half.next.max(seq);
        half.next = end;
        half.time_segment(end, now, seq <= half.acked);
        half.sent_at = now;
        half.sent_number = number;
        half.sent_len = len;
        self.sent_acked[from] = half.acked as u32;
        half.last_full = full;
        half.reopen();
        half.max_len = half.max_len.max(len);
        if !full {
            half.small = Small::sent(end, len, number, now);
        }
        let (out, retransmitted) = (half.in_flight(), half.retransmitted());
        if let Some(sending) = self.known_sending(from) {
            sending.tails.sent(out, retransmitted, before.0);
        }
        self.note_departure(from, now, len);
        if before.0 >= MESSAGE_GAP && !full {
            self.keep_rhythm(from, now, len, before);
        } else if let Some(rhythm) = &mut self.halves[from].rhythm
            && before.0 < MESSAGE_GAP
        {
            rhythm.joined();
        }
    }

    /// Counts a message of a side that has been silent for a while: since when, and behind how long a segment,
    /// `before` tells.
    pub(crate) fn keep_rhythm(&mut self, from: End, now: i64, len: u32, before: (i64, u32)) {
        let half = &mut self.halves[from];
        half.run = half.run.saturating_add(1);
        half.run_longest = half.run_longest.max(half.run);
        match &mut half.rhythm {
            Some(rhythm) => rhythm.add(half.sent_number, now, now - rhythm.last, len, before.1),
            empty if half.run >= RHYTHM_RUN => {
                *empty = Some(Box::new(Rhythm::starting(now, len, before.0, before.1)));
            }
            _ => {}
        }
    }
}
