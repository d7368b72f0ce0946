//! What is believed of a connection that no single packet proves, what speaks for it and what against.
//!
//! | belief | for it | against it |
//! | --- | --- | --- |
//! | how far each end is ([`Connection::base_round_trip`], [`vantage`]) | its shortest reaction: SYN to SYN-ACK, SYN-ACK to ACK, data to ACK | any shorter one, also of data that follows an ACK at once, again and again ([`Connection::note_heels`]): a host is late now and then, and never early |
//! | the size of a full segment ([`Half::full_size`]) | what the peer announced | two segments as long as any, each with more behind it: the sender's own limit is lower ([`Shown`]). A longer one withdraws that |
//! | this sender does not delay ([`Half::nodelay`]) | a small segment that it pushes while another is on its way | so many releases by ACKs in a row; late ones of one length are judged at the end ([`Candidates`]) |
//! | what left behind a late ACK was held ([`Candidates`]) | the ACK had time to reach the sender, as far as it is in the end; or the same time lay between, again and again | segments that did not wait |
//!
//! Without a handshake the shortest reaction may be a delayed ACK, and long ones are not used.

use tcpwhy_wire::Tcp;

use super::connection::{Connection, JITTER_SHARE, PROMPT, RELEASE_TOLERANCE};
use super::fact::End;
use super::half::{Half, NEVER, UNKNOWN};
use super::held::Held;
use super::release::{LATE_MACHINE, SLOW_SHARE, fastest_reaction};
use crate::report::Vantage;

/// Without a handshake, a reaction shorter than this cannot be a delayed ACK (Linux 2.0's, the shortest, is
/// 20 ms), so it is the path. ns.
const TRUSTED_PART: i64 = 10_000_000;
/// One side is this many times nearer to the capture than the other when the capture was made there.
const NEARER: i64 = 4;
/// On a path shorter than this, which end is nearer is a matter of the machine's mood. ns.
const SHORT_PATH: i64 = 100_000;
/// MSS when the SYN was not seen and nothing longer was: what Ethernet gives IPv4 (RFC 9293 section 3.7.1).
const ETHERNET_MSS: u32 = 1460;
/// Length of the timestamp option with its padding, which every segment then loses (RFC 7323 appendix A).
const TIMESTAMP_LEN: u32 = 12;
/// Below this window the sender does not bound its segments to half of it (Linux `tcp_bound_to_half_wnd`).
const SMALLEST_HALVED_WINDOW: u32 = 536;
/// No sender's segments are limited to less (RFC 9293 section 3.7.1, IPv4's default).
const SMALLEST_MSS: u32 = 536;
/// So many segments of one length with more behind them show that they are full.
const FULL_PROOF: u8 = 2;
/// So many releases after the same time show that it is the way to the sender: by chance two writes fall within a
/// millisecond or two of the same place behind ACKs 20 ms apart and more, but hardly three.
const REGULAR: u32 = 3;
/// Of all candidates, one in so many may be of another time.
const STRAY_SHARE: u32 = 4;
/// This many prompt reactions of a host show that the capture was made there.
pub(crate) const PROMPT_PROOF: u16 = 3;
/// Data that is ACKed so much sooner than the SYN was answered, is ACKed by something nearer than the server: a proxy, a
/// tunnel's end, a virtual machine's NAT. ns.
const PROXIED: i64 = 10_000_000;
/// …and so many times sooner.
const PROXIED_TIMES: i64 = 4;

/// What few directions show: segments that were held, or may have been, and a limit of the sender's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// What was held.
    pub(crate) held: Held,
    /// What may have been, to be judged at the end.
    pub(crate) candidates: Candidates,
    /// The payload of the longest segments that had more behind them, bytes, and how many were so long.
    size: u16,
    seen: u8,
}

impl Half {
    /// Payload of a full-sized segment: the MSS, less the timestamp option, and no more than half of the
    /// largest window the receiver ever offered (RFC 9293 section 3.8.6.2.1; Linux `tcp_bound_to_half_wnd`), nor than
    /// the sender's own limit.
    #[inline]
    pub(crate) fn full_size(&self) -> u32 {
        let payload = self.announced_size();
        let payload = self.own_limit().map_or(payload, |own| payload.min(own));
        let halved = self.scale_known && self.max_window > SMALLEST_HALVED_WINDOW;
        if halved { payload.min(self.max_window / 2) } else { payload }.max(1)
    }

    /// What the peer's MSS leaves for a segment's payload.
    #[inline]
    fn announced_size(&self) -> u32 {
        let mss = match self.mss {
            0 => self.max_len.max(ETHERNET_MSS),
            mss => u32::from(mss),
        };
        if self.timestamps { mss.saturating_sub(TIMESTAMP_LEN) } else { mss }
    }

    /// The payload to which the sender limits its segments by itself, if that is known.
    #[inline]
    fn own_limit(&self) -> Option<u32> {
        let shown = self.shown.as_deref()?;
        let own = u32::from(shown.size);
        (shown.seen >= FULL_PROOF && self.max_len == own).then_some(own)
    }

    /// Whether a segment of so many bytes may be full although it is shorter than what the peer announced: it is as long as
    /// any before, and not pushed, so that its sender has more.
    #[inline]
    pub(crate) fn may_be_full(&self, len: u32) -> bool {
        !self.is_pushed && len >= SMALLEST_MSS && len >= self.max_len
    }

    /// A segment passes behind another one, `gap` ns later. If that one was not pushed, there was more when it left, and
    /// it was as long as a segment of this sender may be.
    #[inline]
    pub(crate) fn note_size(&mut self, tcp: &Tcp, is_next: bool, gap: i64) {
        self.is_pushed = tcp.flags.has(tcpwhy_wire::TcpFlags::PSH);
        let before = self.sent_len;
        let was_shorter = before < self.announced_size() && before == self.max_len && before >= SMALLEST_MSS;
        if was_shorter && is_next && gap <= RELEASE_TOLERANCE && self.was_unpushed() {
            let size = u16::try_from(before).unwrap_or(0);
            let shown = self.shown.get_or_insert_default();
            let seen = if size == shown.size { shown.seen.saturating_add(1) } else { 1 };
            (shown.size, shown.seen) = (size, seen);
        }
    }

    /// The receiver's part of the base round trip, 0 while it is not known.
    #[inline]
    pub(crate) fn part_or_zero(&self) -> i64 {
        if self.part == UNKNOWN { 0 } else { self.part }
    }
}

/// Small segments that followed a late ACK, but not within the time that their sender's distance, as it was known then,
/// explains; or while the sender was believed not to delay. Judged with what the whole connection shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidates {
    /// All of them, as holds.
    pub(crate) held: Held,
    /// From ACK to segment, ns, of those that are alike, and how many they are.
    reaction: i64,
    alike: u32,
    all: u32,
}

impl Candidates {
    /// Takes one that left `reaction` ns after the ACK; returns where it is counted.
    pub(crate) fn take(&mut self, reaction: i64) -> &mut Held {
        self.all = self.all.saturating_add(1);
        let spread = RELEASE_TOLERANCE + self.reaction / JITTER_SHARE;
        if self.alike > 0 && (reaction - self.reaction).abs() <= spread {
            self.alike = self.alike.saturating_add(1);
        } else if self.alike <= 1 {
            (self.reaction, self.alike) = (reaction, 1);
        }
        &mut self.held
    }

    fn are_most_alike(&self) -> bool {
        self.all - self.alike <= self.all / STRAY_SHARE
    }
}

impl Connection {
    /// Shortest round trip of the whole path, ns; `None` where it was not measured beyond doubt: without a
    /// handshake, the shortest time to an ACK may be a delayed ACK's.
    pub fn base_round_trip(&self) -> Option<i64> {
        let [a, b] = [self.halves[0].part, self.halves[1].part];
        let sure = |part| self.established != NEVER || part < TRUSTED_PART;
        (a != UNKNOWN && b != UNKNOWN && sure(a) && sure(b)).then(|| a + b)
    }

    /// The round trip between the capture point and `end`, as far as it may be used to tell what a segment of
    /// `end` reacted to. Without a handshake the shortest reaction seen may itself be a delayed ACK.
    #[inline]
    pub(crate) fn reaction_part(&self, end: End) -> i64 {
        let part = self.halves[1 - end].part_or_zero();
        if self.established != NEVER || part < TRUSTED_PART { part } else { 0 }
    }

    /// The longest a segment of `end` may follow the packet that freed it, at the capture point.
    #[inline]
    pub(crate) fn reaction_most(&self, end: End) -> i64 {
        let part = self.reaction_part(end);
        part + part / JITTER_SHARE + RELEASE_TOLERANCE
    }

    /// From how long after an ACK on what leaves `end` is its program's: less may be a host that was late. ns.
    pub(crate) fn reaction_limit(&self, end: End) -> i64 {
        let part = self.reaction_part(end);
        part + LATE_MACHINE.max(part / SLOW_SHARE)
    }

    /// Something leaves `end` at `now` after a silence. Right behind an ACK that did not come at once it shows that the
    /// capture is near, whatever the handshake took; later, that it may not be.
    pub(crate) fn note_heels(&mut self, end: End, now: i64) {
        let host = &self.halves[end];
        let was_silent = host.freed_at - host.sent_at >= RELEASE_TOLERANCE && host.sent_at != NEVER;
        let is_answer = self.halves[1 - end].sent_at > host.sent_at;
        if !was_silent || is_answer || self.halves[1 - end].part_or_zero() <= PROMPT {
            return;
        }
        self.learn_distance(end, now - host.freed_at);
    }

    /// Learns from a hold that its ACK freed at `now` how near the capture is to the sender.
    pub(crate) fn note_release(&mut self, end: End, now: i64) {
        self.learn_distance(end, now - self.halves[end].small.acked_at().min(now));
    }

    /// Something left `end` `reaction` ns after what freed it. Prompt reactions, more of them than late ones, show that the
    /// capture is no further from it than that.
    fn learn_distance(&mut self, end: End, reaction: i64) {
        let host = &mut self.halves[end];
        if reaction > PROMPT {
            host.slow = host.slow.saturating_add(1);
            return;
        }
        host.prompt = host.prompt.saturating_add(1);
        if host.prompt >= PROMPT_PROOF && host.prompt > host.slow {
            let part = &mut self.halves[1 - end].part;
            *part = (*part).min(reaction);
        }
    }

    /// Whether it is known which end is the client: a handshake, a well-known port or a request told.
    pub(crate) fn knows_client(&self) -> bool {
        let server = self.client().map(|client| self.ends[1 - client].port);
        let has_handshake = self.syn.is_some() || self.syn_ack_at != NEVER;
        has_handshake || server.is_some_and(|port| port < 1_024) || self.exchanges.has_asked_plainly()
    }

    /// How long the path from `end`'s side to the other end and back takes at least, as data of `end` shows at the capture
    /// point, ns. Where a proxy on the way ACKs data for the server, only the SYN-ACK came all the way.
    pub(crate) fn path_part(&self, end: End) -> i64 {
        let part = self.halves[end].part_or_zero();
        let syn = self.syn_ack_at.saturating_sub(self.syn_at);
        let is_seen = self.syn_at != NEVER && self.syn_ack_at != NEVER && self.client() == Some(end);
        if is_seen && syn >= part + PROXIED && syn / PROXIED_TIMES >= part { syn } else { part }
    }

    /// Whether the candidates of `end` were held, by all that is known now.
    pub(crate) fn were_held(&self, end: End) -> bool {
        let half = &self.halves[end];
        let Some(Shown { candidates, .. }) = half.shown.as_deref() else { return false };
        let at_distance = fastest_reaction(self.reaction_part(end))..=self.reaction_most(end);
        let is_reaction = at_distance.contains(&candidates.reaction);
        let is_regular = candidates.alike >= REGULAR && u32::from(half.defied) <= candidates.alike;
        candidates.all > 0 && candidates.are_most_alike() && (is_regular || is_reaction && half.defied == 0)
    }

    /// All holds of `end`, with the candidates that were.
    pub(crate) fn holds(&self, end: End) -> Option<Held> {
        let Shown { held, candidates, .. } = self.halves[end].shown.as_deref()?;
        let held = if self.were_held(end) { held.clone().with(&candidates.held) } else { held.clone() };
        (held.waits.count() > 0).then_some(held)
    }
}

/// Where the capture was taken, from how soon each end reacts.
pub(crate) fn vantage(connection: &Connection) -> Vantage {
    let client = connection.client().unwrap_or(0);
    // The half that the client sends is ACKed by the server, so its part is the way to the server.
    let (to_server, to_client) = (&connection.halves[client], &connection.halves[1 - client]);
    if connection.established != NEVER && to_server.part != UNKNOWN && to_client.part != UNKNOWN {
        return match (to_client.part, to_server.part) {
            (c, s) if c.max(s) < SHORT_PATH / 2 => Vantage::Unknown,
            (c, s) if c <= s / NEARER => Vantage::Client,
            (c, s) if s <= c / NEARER => Vantage::Server,
            _ => Vantage::Middle,
        };
    }
    let is_near = |host: &Half| host.prompt >= PROMPT_PROOF && host.prompt > host.slow;
    match (is_near(to_server), is_near(to_client)) {
        (true, false) => Vantage::Client,
        (false, true) => Vantage::Server,
        _ => Vantage::Unknown,
    }
}
