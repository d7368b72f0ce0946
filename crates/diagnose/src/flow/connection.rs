//! One TCP connection: packets in, named facts out.
//!
//! Reasoning rests on the *release event*: what passed the capture point just before a segment left. A
//! segment that leaves within the sender's own reaction time of an ACK was waiting for that ACK; one that
//! leaves on its own was waiting for its program.

use tcpwhy_wire::{Socket, Tcp, TcpFlags};

use super::exchange::Exchanges;
use super::fact::{Cause, End, Fact, Facts, Wait};
use super::half::{Acked, Half, NEVER, UNKNOWN};
use super::rhythm::{MESSAGE_GAP, RHYTHM_RUN, Rhythm};
use super::sequence;
use super::table::Key;

/// How long after the event that freed it a segment may leave and still count as freed by it, beyond the
/// round trip to the sender: a kernel answers an ACK in its receive path, in well under 0.1 ms; a loaded one,
/// or a virtual machine, takes up to about 1 ms. ns.
pub(crate) const RELEASE_TOLERANCE: i64 = 1_000_000;
/// Share of the round trip to the sender by which its reaction may vary (jitter of the path).
const JITTER_SHARE: i64 = 4;
/// An ACK that passed later than this share of the round trip to the sender cannot have reached it yet.
const EARLIEST_SHARE: i64 = 2;
/// A hold shorter than the tolerance cannot be told from a program that was about to write.
const SHORTEST_HOLD: i64 = RELEASE_TOLERANCE;
/// A reaction faster than this can only come from the host the capture was made on. ns.
const PROMPT: i64 = 100_000;
/// Without a handshake, a reaction shorter than this cannot be a delayed ACK (Linux 2.0's, the shortest, is
/// 20 ms), so it is the path. ns.
const TRUSTED_PART: i64 = 10_000_000;
/// This many prompt reactions of a host show that the capture was made there.
const PROMPT_PROOF: u16 = 3;
/// Full segments no further apart than this are back to back, whatever the round trip. ns.
const BACK_TO_BACK: i64 = 1_000_000;
/// Full segments no further apart than this share of the present round trip are clocked by the path.
const CLOCKED_SHARE: i64 = 4;
/// …and never further apart than two full segments on a 112 kbit/s line: longer gaps are waits. ns.
const CLOCKED_MOST: i64 = 250_000_000;
/// An ACK that comes this much later than the base round trip was held by the receiver: well above what
/// queues on a local network add, below the 40 ms of Linux (`TCP_DELACK_MIN`). ns.
const ACK_HELD: i64 = 20_000_000;
/// …unless the path's own round trip is so long that this share of it is still jitter.
const ACK_HELD_SHARE: i64 = 2;
/// Linux releases a corked tail when its 200 ms timer fires; with a tick of 4 ms and the timer wheel's
/// rounding that is 204 to 212 ms later, more on a busy machine (`TCP_RTO_MIN`). A sleep of 200 ms ends
/// within 1.5 ms. ns.
const CORK: std::ops::Range<i64> = 201_500_000..225_000_000;
/// After a small segment left although another was in flight, this many releases by ACK in a row must be
/// seen before they count as holds again: a sender with TCP_NODELAY meets an ACK by chance now and then.
const NODELAY_PROOF: u8 = 3;
/// Messages (more than [`MESSAGE_GAP`] apart) in a row from one side, without data from the other, that make a stream of updates and not the
/// pieces of a request.
pub(crate) const STREAM_RUN: u16 = 3;
/// A round trip this much longer than the base one is still one without a queue, where the base one is shorter
/// still: what a kernel needs to wake up. ns.
const UNQUEUED: i64 = 100_000;
/// A program that takes this long to answer is worth remembering: shorter answers are work, and remembering one
/// costs a cache miss and 150 bytes. ns.
const SLOW_ANSWER: i64 = 20_000_000;

/// One TCP connection.
#[derive(Debug)]
pub struct Connection {
    /// The ends, the lower address first.
    pub(crate) ends: [Socket; 2],
    pub(crate) is_udp: bool,
    pub(crate) halves: [Half; 2],
    /// Which end is the client, once known.
    pub(crate) client: Option<End>,
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// Time of the packet before the present one.
    pub(crate) previous: i64,
    /// Sequence number of the SYN, to tell its retransmission from a new connection.
    syn: Option<u32>,
    /// When the last SYN and the first SYN-ACK passed; `NEVER` where not seen.
    syn_at: i64,
    pub(crate) syn_number: u64,
    syn_ack_at: i64,
    /// When the handshake was over.
    pub(crate) established: i64,
    /// Its length, ns; 0 where it was not seen whole.
    pub(crate) handshake: i64,
    pub(crate) reset: bool,
    pub(crate) exchanges: Exchanges,
    /// When and by whom data was last sent.
    last_spoke: End,
}

impl Connection {
    /// A connection of `key` whose first packet passes at `time`.
    pub(crate) fn new(key: Key, time: i64) -> Self {
        let Key { ends, is_udp } = key;
        Self {
            ends,
            is_udp,
            halves: [Half::default(), Half::default()],
            client: client_by_port(ends),
            first: time,
            last: time,
            previous: time,
            syn: None,
            syn_at: NEVER,
            syn_number: 0,
            syn_ack_at: NEVER,
            established: NEVER,
            handshake: 0,
            reset: false,
            exchanges: Exchanges::default(),
            last_spoke: 0,
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
        for half in &self.halves {
            let Some(held) = half.holds.as_deref() else { continue };
            // A hold is measured from the data to its ACK at the capture point: the receiver's part of the path.
            // Without a base round trip even the shortest of them may be a delayed ACK.
            let part = self.base_round_trip().map_or(0, |_| half.part_or_zero());
            let (within, all) = held.waits.sums_within(part);
            sums = (sums.0 + within + held.reactions, sums.1 + all + held.reactions);
        }
        let (within, all) = sums;
        if all == 0 { 1.0 } else { within as f64 / all as f64 }
    }

    /// Shortest round trip of the whole path, ns; `None` where it was not measured beyond doubt: without a
    /// handshake, the shortest time to an ACK may be a delayed ACK's.
    pub fn base_round_trip(&self) -> Option<i64> {
        let [a, b] = [self.halves[0].part, self.halves[1].part];
        let sure = |part| self.established != NEVER || part < TRUSTED_PART;
        (a != UNKNOWN && b != UNKNOWN && sure(a) && sure(b)).then(|| a + b)
    }

    /// Takes packet `number`, sent by `from` at `time`, and publishes what it shows.
    pub(crate) fn handle(&mut self, number: u64, time: i64, tcp: &Tcp, from: End, facts: &mut impl Facts) {
        // Clocks of several processors differ by microseconds; time that runs backwards would be booked twice.
        let now = time.max(self.last);
        (self.previous, self.last) = (self.last, now);
        self.halves[from].packets = self.halves[from].packets.saturating_add(1);
        if tcp.flags.has(TcpFlags::SYN) {
            return self.handle_syn(number, tcp, from, now, facts);
        }
        if tcp.flags.has(TcpFlags::ECE) {
            self.halves[from].ecn_marks = self.halves[from].ecn_marks.saturating_add(1);
        }
        if tcp.flags.has(TcpFlags::RST) {
            return self.handle_reset(from, now, facts);
        }
        let pure = tcp.payload_len == 0 && !tcp.flags.has(TcpFlags::FIN);
        if tcp.flags.has(TcpFlags::ACK) {
            self.handle_ack(number, tcp, from, now, pure, facts);
        }
        if pure {
            self.halves[from].pure_acks += 1;
            self.halves[from].start(tcp.seq);
        } else {
            self.handle_data(number, tcp, from, now, facts);
        }
    }

    fn handle_syn(&mut self, number: u64, tcp: &Tcp, from: End, now: i64, facts: &mut impl Facts) {
        let is_answer = tcp.flags.has(TcpFlags::ACK);
        let client = if is_answer { 1 - from } else { from };
        self.client = Some(client);
        let half = &mut self.halves[from];
        half.start(tcp.seq);
        half.next = half.next.max(sequence::unwrap(tcp.seq, half.next) + 1 + u64::from(tcp.payload_len));
        half.timestamps = tcp.options.timestamps.is_some();
        // What this side announces limits what the other may send: MSS and window belong to the other half.
        let other = &mut self.halves[1 - from];
        other.mss = tcp.options.mss.unwrap_or(536);
        other.shift = tcp.options.window_scale.unwrap_or(0).min(14);
        let peer_shift = other.shift;
        if is_answer {
            // The window in a SYN is never scaled (RFC 7323 section 2.2), so `take_ack` must not see a shift.
            let scales = tcp.options.window_scale.is_some();
            self.halves[1 - from].shift = 0;
            self.halves[1 - from].take_ack(tcp, number, now, false);
            self.halves[1 - from].shift = peer_shift;
            if !scales {
                self.halves[from].shift = 0;
            }
            // The answer tells whether windows are scaled at all, and by how much the server's; by how much the
            // client's, only its SYN does.
            self.halves[1 - from].scale_known = true;
            self.halves[from].scale_known = self.syn.is_some() || !scales;
            if self.syn_ack_at == NEVER {
                self.syn_ack_at = now;
                if self.syn_at != NEVER && self.syn == Some(tcp.ack.wrapping_sub(1)) {
                    self.halves[client].part = now - self.syn_at;
                    self.halves[client].rtt = now - self.syn_at;
                }
            } else {
                facts.take(self.syn_timeout(self.syn_ack_at, from, number, now));
                self.syn_ack_at = now;
            }
        } else {
            if self.syn_at != NEVER && self.syn_ack_at == NEVER {
                facts.take(self.syn_timeout(self.syn_at, from, number, now));
            }
            self.syn = Some(tcp.seq);
            (self.syn_at, self.syn_number) = (now, number);
        }
    }

    fn syn_timeout(&self, since: i64, end: End, number: u64, now: i64) -> Fact {
        let packets = [self.syn_number, number, number];
        Fact::Wait(Wait::new(Cause::SynTimeout, end, (since, now), packets))
    }

    /// The handshake is over with the client's first segment after the SYN-ACK.
    fn finish_handshake(&mut self, number: u64, now: i64, facts: &mut impl Facts) {
        self.established = now;
        let client = self.client.unwrap_or(0);
        let server = &mut self.halves[1 - client];
        server.part = server.part.min(now - self.syn_ack_at);
        if self.syn_at != NEVER {
            self.handshake = now - self.syn_at;
            let packets = [self.syn_number, number, number];
            facts.take(Fact::Wait(Wait::new(Cause::Handshake, client, (self.syn_at, now), packets)));
        }
    }

    fn handle_reset(&mut self, from: End, now: i64, facts: &mut impl Facts) {
        if !self.reset {
            self.reset = true;
            self.spoke(from, now, facts);
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
        if self.established == NEVER && self.syn_ack_at != NEVER && Some(from) == self.client {
            self.finish_handshake(number, now, facts);
        }
        let gap_most = self.clocked_gap(1 - from);
        let sender = &mut self.halves[1 - from];
        let acked = sender.take_ack(tcp, number, now, pure);
        if acked.bytes == 0 {
            return;
        }
        let waited = now - sender.sent_at;
        let host = &mut self.halves[from];
        if waited <= PROMPT {
            host.prompt = host.prompt.saturating_add(1);
        } else {
            host.slow = host.slow.saturating_add(1);
        }
        if self.halves[1 - from].is_repairing() {
            self.note_needless_repair(tcp, 1 - from);
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

    /// The round trip between the capture point and `end`, as far as it may be used to tell what a segment of
    /// `end` reacted to. Without a handshake the shortest reaction seen may itself be a delayed ACK.
    #[inline]
    pub(crate) fn reaction_part(&self, end: End) -> i64 {
        let part = self.halves[1 - end].part_or_zero();
        if self.established != NEVER || part < TRUSTED_PART { part } else { 0 }
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
            return self.handle_fin(end, from, now, facts);
        }
        let is_probe = tcp.payload_len == 1 && half.acked == half.next;
        if is_probe && (end == half.next || half.edge == half.next && half.sent_at != NEVER) {
            // A keep-alive (RFC 9293 section 3.8.4) or a zero-window probe (section 3.8.6.1): no new data.
            return;
        }
        half.segments = half.segments.saturating_add(1);
        if end <= half.next {
            self.handle_old_data((seq, end), number, from, now, facts);
        } else {
            self.handle_new_data(seq, end, number, tcp.payload_len, from, now, facts);
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
            self.spoke(from, now, facts);
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
        if seq > half.next {
            half.open_hole(seq, now);
        }
        let full_size = half.full_size();
        let full = len >= full_size;
        half.offloaded += u32::from(len > full_size && half.mss != 0);
        let gap = now - half.sent_at;
        let clocked = self.clocked_gap(from);
        let flowing = self.halves[from].last_full && gap <= clocked && !self.halves[from].is_repairing();
        if flowing {
            self.flow_on(from, now, number, facts);
        } else {
            let free = self.explain_send(from, now, number, len, full, facts);
            self.turn(from, now, free, facts);
        }
        self.begin_burst(from, now, gap > clocked);
        self.change_speaker(from);
        self.record_send(seq, end, number, len, full, from, now);
        facts.take(Fact::Settled { until: self.unresolved_since(now) });
    }

    #[inline]
    pub(crate) fn change_speaker(&mut self, from: End) {
        if self.last_spoke != from {
            self.halves[1 - from].run = 0;
            self.last_spoke = from;
        }
    }

    /// One more segment of a message or a bulk transfer that flows at the path's rate, or at the window's.
    #[inline]
    fn flow_on(&mut self, from: End, now: i64, number: u64, facts: &mut impl Facts) {
        let half = &self.halves[from];
        let since = half.sent_at;
        if self.is_bound_by_window(from) {
            facts.take(Fact::Wait(self.wait(Cause::ReceiveWindow, from, since, now, number)));
            self.spoke(from, now, facts);
        } else {
            let packets = [half.sent_number, number, number];
            facts.take(Fact::Wait(Wait::new(Cause::Transfer, from, (since, now), packets)));
        }
        self.exchanges.continued(now);
    }

    /// Whether the receiver's window and not the path sets the pace of a sender that the capture is near to: there
    /// was no room for a full segment until the last ACK came, and ACKs come back without having queued.
    #[inline]
    fn is_bound_by_window(&self, from: End) -> bool {
        let half = &self.halves[from];
        if !half.scale_known || half.freed_at < half.sent_at || self.reaction_part(from) > RELEASE_TOLERANCE {
            return false;
        }
        let room = half.edge_before_freed().saturating_sub(half.next);
        let base = self.base_round_trip().unwrap_or(0);
        let round_trip = half.rtt + self.halves[1 - from].part_or_zero();
        room < u64::from(half.full_size()) && round_trip <= base + base.max(UNQUEUED)
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
        }
        if new || now - half.known_at > reaction {
            half.known_edge = half.edge;
            half.known_at = now;
        }
    }

    /// Publishes how long the data sent last has been travelling.
    fn publish_travel(&mut self, now: i64, facts: &mut impl Facts) {
        for end in 0..2 {
            let half = &self.halves[end];
            if half.sent_at != NEVER && half.part != UNKNOWN && half.part > 0 && half.sent_at < now {
                facts.take(Fact::InFlight { end, from: half.sent_at, until: half.sent_at + half.part });
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a segment's place and its packet")]
    fn record_send(&mut self, seq: u64, end: u64, number: u64, len: u32, full: bool, from: End, now: i64) {
        let gap = now - self.halves[from].sent_at;
        let half = &mut self.halves[from];
        half.bytes += end - half.next.max(seq);
        half.next = end;
        half.time_segment(end, now);
        half.sent_at = now;
        half.sent_number = number;
        half.sent_len = len;
        half.last_full = full;
        half.zero_window = false;
        half.max_len = half.max_len.max(len);
        if !full {
            half.small_end = end;
        }
        if gap >= MESSAGE_GAP && !full {
            self.keep_rhythm(from, now, len);
        }
    }

    /// Counts a message of a side that has been silent for a while.
    pub(crate) fn keep_rhythm(&mut self, from: End, now: i64, len: u32) {
        let half = &mut self.halves[from];
        half.run = half.run.saturating_add(1);
        half.run_longest = half.run_longest.max(half.run);
        match &mut half.rhythm {
            Some(rhythm) => rhythm.add(half.sent_number, now, now - rhythm.last, len),
            empty if half.run >= RHYTHM_RUN => *empty = Some(Box::new(Rhythm::starting(now, len))),
            _ => {}
        }
    }

    /// Notes whose turn it is to speak.
    pub(crate) fn turn(&mut self, from: End, now: i64, free: bool, facts: &mut impl Facts) {
        let client = *self.client.get_or_insert(from);
        self.exchanges.spoke(from == client, now, free);
        self.spoke(from, now, facts);
    }

    fn spoke(&mut self, end: End, now: i64, facts: &mut impl Facts) {
        self.publish_travel(now, facts);
        facts.take(Fact::Spoke { end, time: now });
    }

    pub(crate) fn settle(&mut self, now: i64, facts: &mut impl Facts) {
        facts.take(Fact::Settled { until: self.unresolved_since(now) });
    }

    /// Since when some wait has been going on whose cause is not yet known; `now` if there is none.
    #[inline]
    fn unresolved_since(&self, now: i64) -> i64 {
        let mut since = now;
        for end in 0..2 {
            let half = &self.halves[end];
            if let Some(repair) = half.repair() {
                let quiet = if repair.quiet_since == NEVER { now } else { repair.quiet_since };
                since = since.min(repair.recover_from).min(quiet).min(half.sent_at.max(self.first));
            } else if half.sent_at < since && self.may_be_blocked(end, now) {
                since = half.sent_at;
            }
        }
        since
    }

    /// Whether this side's next segment could still turn out to have been waiting for TCP.
    #[inline]
    fn may_be_blocked(&self, end: End, now: i64) -> bool {
        let half = &self.halves[end];
        if half.closed || half.sent_at == NEVER {
            return false;
        }
        let freed = half.freed_at > half.sent_at;
        half.in_flight() > 0
            || half.edge <= half.next
            || (freed && half.freed_pure && now - half.freed_at <= self.reaction_most(end))
    }

    /// Whether what left `end` now was freed by an ACK: one passed late enough to be the last it reacted to,
    /// and one early enough to have reached it.
    #[inline]
    fn is_freed(&self, end: End, now: i64) -> bool {
        let half = &self.halves[end];
        let part = self.reaction_part(end);
        half.freed_at >= half.known_at
            && half.freed_first != NEVER
            && now - half.freed_at <= self.reaction_most(end)
            && now - half.freed_first >= part / EARLIEST_SHARE
    }

    /// The longest a segment of `end` may follow the packet that freed it, at the capture point.
    #[inline]
    pub(crate) fn reaction_most(&self, end: End) -> i64 {
        let part = self.reaction_part(end);
        part + part / JITTER_SHARE + RELEASE_TOLERANCE
    }

    /// Works out what a segment that did not simply flow on had been waiting for. True if its program was
    /// free to send it all along.
    fn explain_send(
        &mut self,
        from: End,
        now: i64,
        number: u64,
        len: u32,
        full: bool,
        facts: &mut impl Facts,
    ) -> bool {
        let half = &self.halves[from];
        if half.is_repairing() {
            return false;
        }
        if half.sent_at == NEVER || !self.is_freed(from, now) {
            if half.sent_at != NEVER && !full && half.small_in_flight() {
                self.halves[from].nodelay = NODELAY_PROOF;
            }
            self.note_idle_ack(from);
            if self.note_cork(from, now, number, full, facts) {
                return false;
            }
            self.note_answer(from, now, number, facts);
            return true;
        }
        let room = self.known_edge(from).saturating_sub(half.next);
        let no_room = half.scale_known && room < u64::from(len.min(half.full_size()));
        if half.zero_window || no_room {
            self.publish_window_wait(from, now, number, facts);
        } else if full || (half.last_full && !half.freed_small()) {
            self.publish_congestion_wait(from, now, number, facts);
        } else if !self.is_hold(from, now) {
            self.note_answer(from, now, number, facts);
            return true;
        } else {
            self.publish_hold(from, now, number, len, facts);
        }
        false
    }

    /// Counts the ACK that came last for `end`'s data, if it was held and nothing had been waiting for it.
    fn note_idle_ack(&mut self, end: End) {
        let half = &mut self.halves[end];
        let late = half.freed_at.saturating_sub(half.sent_at);
        if half.sent_at != NEVER && half.freed_pure && half.in_flight() == 0 && late >= ACK_HELD {
            half.idle_acks = half.idle_acks.saturating_add(1);
            half.idle_acks_late += late as f32;
        }
    }

    /// Whether the ACK that freed a small segment is the one that Nagle's algorithm waits for: a pure one that
    /// leaves nothing in flight, with no data behind it that the program could be answering instead.
    fn is_hold(&mut self, end: End, now: i64) -> bool {
        let half = &self.halves[end];
        let fits = half.freed_pure
            && now - half.freed_at >= self.reaction_part(end)
            && half.in_flight() == 0
            && half.freed_at - half.sent_at >= SHORTEST_HOLD
            && self.halves[1 - end].sent_at <= half.freed_at;
        if fits && half.nodelay > 0 {
            self.halves[end].nodelay -= 1;
            return false;
        }
        fits
    }

    /// The window's right edge as the sender knew it when it fell silent. Where the capture is far from the
    /// sender, ACKs pass the capture point before the sender can have seen them, so the edge of the burst's
    /// beginning counts.
    fn known_edge(&self, end: End) -> u64 {
        let half = &self.halves[end];
        let at_sender = self.reaction_part(end) <= RELEASE_TOLERANCE;
        if at_sender { half.edge_before_freed() } else { half.known_edge }
    }

    fn wait(&self, cause: Cause, end: End, from: i64, until: i64, number: u64) -> Wait {
        let half = &self.halves[end];
        let packets = [half.sent_number, half.freed_number, number];
        let times = [half.sent_at, half.freed_at, until];
        Wait { cause, end, from, until, packets, times }
    }

    fn publish_window_wait(&mut self, end: End, now: i64, number: u64, facts: &mut impl Facts) {
        let half = &self.halves[end];
        let cause = if half.zero_window { Cause::ZeroWindow } else { Cause::ReceiveWindow };
        facts.take(Fact::Wait(self.wait(cause, end, half.sent_at, now, number)));
    }

    /// A full congestion window explains one base round trip; the rest is the receiver's ACK timer where one
    /// segment alone was ACKed, and a queue otherwise.
    fn publish_congestion_wait(&mut self, end: End, now: i64, number: u64, facts: &mut impl Facts) {
        let half = &self.halves[end];
        let since = half.sent_at;
        let Some(base) = self.base_round_trip() else {
            return facts.take(Fact::Wait(self.wait(Cause::CongestionWindow, end, since, now, number)));
        };
        let expected = since + base + base / JITTER_SHARE + RELEASE_TOLERANCE;
        if now <= expected {
            return facts.take(Fact::Wait(self.wait(Cause::CongestionWindow, end, since, now, number)));
        }
        // A queue lets ACKs through one after the other; one ACK for all, late, was held by the receiver.
        let alone = half.freed_bytes < 2 * half.full_size() || half.in_flight() == 0;
        let held = alone && now - since - base >= ack_held(base);
        let rest = if held { Cause::DelayedAck } else { Cause::Queueing };
        let split = since + base;
        if base > 0 {
            facts.take(Fact::Wait(self.wait(Cause::CongestionWindow, end, since, split, number)));
        }
        facts.take(Fact::Wait(self.wait(rest, end, split, now, number)));
    }

    /// A small segment left the moment all in flight was ACKed: Nagle's algorithm had been holding it.
    fn publish_hold(&mut self, end: End, now: i64, number: u64, len: u32, facts: &mut impl Facts) {
        let wait = self.wait(Cause::NagleHold, end, self.written_at(end, len), now, number);
        self.note_reaction(end, now);
        let half = &mut self.halves[end];
        half.holds.get_or_insert_default().add(
            half.freed_at - half.sent_at,
            now - half.freed_at,
            half.sent_len,
            len,
        );
        if let Some(rhythm) = &mut half.rhythm {
            let units = rhythm.units(len);
            rhythm.periods.add((now - half.sent_at) / units);
        }
        facts.take(Fact::Wait(wait));
    }

    /// Learns from a release how near the capture is to the sender, where no handshake told.
    fn note_reaction(&mut self, end: End, now: i64) {
        let reaction = now - self.halves[end].freed_at;
        let host = &mut self.halves[end];
        if reaction > PROMPT {
            host.slow = host.slow.saturating_add(1);
            return;
        }
        host.prompt = host.prompt.saturating_add(1);
        if host.prompt >= PROMPT_PROOF {
            let part = &mut self.halves[1 - end].part;
            *part = (*part).min(reaction);
        }
    }

    /// When the program probably wrote what was held. The packets give bounds only: between the segment
    /// before and the release. Pieces of one message are written at once, so the wait began with the segment
    /// before. A stream of updates keeps its own time: `n` of them in one segment were written over the whole
    /// interval, the first of them on average half a period after the segment before.
    fn written_at(&self, end: End, len: u32) -> i64 {
        let half = &self.halves[end];
        let units = half.rhythm.as_ref().map_or(1, |rhythm| rhythm.units(len));
        if half.run < STREAM_RUN {
            return half.sent_at;
        }
        half.sent_at + (half.freed_at - half.sent_at) / (2 * units)
    }

    /// A tail that left about 200 ms after the rest of its message, freed by nothing: the cork's timer.
    fn note_cork(&mut self, end: End, now: i64, number: u64, full: bool, facts: &mut impl Facts) -> bool {
        let half = &self.halves[end];
        let since = half.sent_at.max(self.halves[1 - end].sent_at);
        // An answer, or the tail of a message that was cut at the MSS; not a program that speaks every 200 ms.
        let belongs = self.last_spoke != end || half.last_full;
        let corked = !full && belongs && half.in_flight() == 0 && CORK.contains(&(now - since));
        if corked {
            let first =
                if since == half.sent_at { half.sent_number } else { self.halves[1 - end].sent_number };
            let mut wait = self.wait(Cause::CorkTimeout, end, since, now, number);
            wait.packets = [first, number, number];
            wait.times = [since, now, now];
            facts.take(Fact::Wait(wait));
        }
        corked
    }

    /// The program's own time before it answered the other side's data.
    fn note_answer(&mut self, end: End, now: i64, number: u64, facts: &mut impl Facts) {
        let asked = &self.halves[1 - end];
        let since = asked.sent_at + asked.part_or_zero();
        if self.last_spoke != end && asked.sent_at != NEVER && now - since >= SLOW_ANSWER {
            let packets = [asked.sent_number, asked.freed_number, number];
            let times = [asked.sent_at, asked.freed_at, now];
            let cause = Cause::Program;
            facts.take(Fact::Wait(Wait { cause, end, from: since, until: now, packets, times }));
        }
    }

    /// Whose program the end of the capture is waiting for: the receiver of the last data; nobody where no data
    /// was seen at all.
    pub(crate) fn whose_turn(&self) -> Option<End> {
        let sent = self.halves[0].sent_at != NEVER || self.halves[1].sent_at != NEVER;
        sent.then_some(1 - self.last_spoke)
    }

    /// Publishes what is still open when the capture ends.
    pub(crate) fn finish(&mut self, facts: &mut impl Facts) {
        let now = self.last;
        for end in 0..2 {
            self.publish_open_repair(end, now, facts);
        }
        self.publish_travel(now, facts);
        facts.take(Fact::Settled { until: now });
        self.exchanges.finish();
    }
}

/// From how much beyond the base round trip on an ACK counts as held.
pub(crate) fn ack_held(base: i64) -> i64 {
    ACK_HELD.max(base / ACK_HELD_SHARE)
}

/// The client by port numbers alone, where they tell: a well-known port (below 1024) is a server's, a port
/// of the dynamic range of Linux and IANA (from 32768) a client's.
fn client_by_port(ends: [Socket; 2]) -> Option<End> {
    let known = ends.map(|end| end.port < 1024);
    let dynamic = ends.map(|end| end.port >= 32_768);
    match (known, dynamic) {
        ([true, false], _) | (_, [false, true]) => Some(1),
        ([false, true], _) | (_, [true, false]) => Some(0),
        _ => None,
    }
}
