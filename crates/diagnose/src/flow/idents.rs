//! What a sender's IPv4 identifications tell: packets of it that never came to the capture point.
//!
//! Linux numbers the packets of a connection one by one in each direction, pure ACKs and retransmissions too,
//! although "don't fragment" is set (`ip_select_ident_segs` counts the socket's `inet_id` up). A number that is
//! missing is a packet that was lost on its way here. Other systems leave the field zero, draw it at random or
//! count for the whole host; their numbers never pass for a connection's own. A field that is always zero, or always the
//! same, is no number.

/// Packets in a row that were numbered one by one before a gap is believed. Random numbers do that once in
/// 2^80; a host with one counter for everything does it only while it talks to nobody else. A short
/// connection has no more to show before its first loss.
const PROOF: u8 = 5;
/// A counter shared with other connections has gaps all the time: each gap that shows neither a timer's silence nor a hole
/// doubles the run that the next one needs, up to so many times.
const MOST_DOUBLINGS: u8 = 5;
/// What a long run proves at most.
const MOST_PROOF: u8 = PROOF << MOST_DOUBLINGS;
/// A timer that doubles each time has expired for minutes before this many packets are lost; wider gaps are
/// other traffic's, or a burst whose ACKs tell the story.
const WIDEST_GAP: u16 = 8;
/// A packet that was overtaken comes sooner than this after the data that overtook it. Later ones were sent again by a
/// stack that sends the very same packet twice, number and all (Cisco IOS does; RFC 791 section 3.2 suggests it), which
/// takes a timer: less than the shortest common one, 200 ms. ns.
const LATEST: i64 = 150_000_000;

/// How one direction's identifications have gone so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Idents {
    /// What the next packet's must be.
    next: u16,
    /// How long they have gone one by one.
    proof: u8,
    /// Gaps so far that nothing else bears out.
    gaps: u8,
    /// Packets lost on the way here since the last data.
    pub(crate) missing: u8,
    /// The last packet had left before one that came earlier: it was overtaken.
    pub(crate) is_late: bool,
    /// The last packet had the number of the one before.
    repeats: bool,
}

impl Idents {
    /// Takes the next packet's identification, `since` the direction's last data (ns). One that may stand for several
    /// (TSO, GRO: longer than a full segment) is not `single`: by how much the number then grows is not sure. One that comes behind
    /// bytes that are missing `has_hole`.
    #[inline]
    pub(crate) fn take(&mut self, id: Option<u16>, single: bool, since: i64, has_hole: bool) {
        self.is_late = false;
        let Some(id) = id else { return };
        self.repeats = id == self.last();
        // No number at all (RFC 6864 section 4.1), unless a counter has come around.
        if id == 0 && self.proof == 0 {
            return;
        }
        let ahead = id.wrapping_sub(self.next);
        let behind = ahead.wrapping_neg();
        match ahead {
            0 => self.proof = (self.proof + 1).min(MOST_PROOF),
            1..=WIDEST_GAP if self.proof >= PROOF << self.gaps => {
                self.missing = self.missing.saturating_add(ahead as u8);
                let is_explained = has_hole || since > LATEST;
                self.gaps = (self.gaps + u8::from(!is_explained)).min(MOST_DOUBLINGS);
                self.proof = if is_explained { self.proof / 2 } else { 1 };
            }
            // Overtaken on the way. The last packet's own number again is that packet, sent again.
            _ if (2..=WIDEST_GAP).contains(&behind) && self.proof > 0 && since <= LATEST => {
                self.missing = self.missing.saturating_sub(1);
                self.is_late = true;
                return;
            }
            _ => (self.proof, self.missing) = (0, 0),
        }
        if !single {
            (self.proof, self.missing) = (0, 0);
        }
        self.next = id.wrapping_add(1);
    }

    /// The sender's SYN-ACK had a number: Linux gives it none (`ip_build_and_send_pkt`), so this is another system, whose
    /// numbers most likely count for the whole host.
    #[cold]
    pub(crate) fn distrust(&mut self) {
        self.gaps = MOST_DOUBLINGS;
    }

    /// Whether the last packet had this number, and no other had.
    pub(crate) fn is_last(&self, id: u16) -> bool {
        id == self.last() && self.are_told_apart(id)
    }

    /// Whether no two packets of this direction have this number: it is one, and packets do not all have the same.
    pub(crate) fn are_told_apart(&self, id: u16) -> bool {
        id != 0 && !(self.repeats && id == self.last())
    }

    /// The last packet's number, but for one that was overtaken.
    #[inline]
    fn last(&self) -> u16 {
        self.next.wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(ids: impl IntoIterator<Item = u16>) -> Idents {
        let mut idents = Idents::default();
        ids.into_iter().for_each(|id| idents.take(Some(id), true, 0, false));
        idents
    }

    fn missing(ids: impl IntoIterator<Item = u16>) -> u8 {
        taken(ids).missing
    }

    #[test]
    fn a_number_that_is_left_out_is_a_lost_packet() {
        assert_eq!(missing([10, 11, 12, 13, 14, 15, 17]), 1);
        assert_eq!(missing([65_533, 65_534, 65_535, 0, 1, 2, 5]), 2, "over the 16-bit edge");
    }

    #[test]
    fn the_second_gap_needs_a_longer_run_than_the_first() {
        // As a host's one counter goes: every tenth number is another connection's.
        let shared = (0..40).filter(|number| number % 10 != 9);
        let mut idents = Idents::default();
        shared.for_each(|id| {
            idents.take(Some(id), true, 0, false);
            // The first gap is taken for a loss, the later ones are not.
            let lost = std::mem::take(&mut idents.missing);
            assert_eq!(lost > 0, id == 10, "{id}");
        });
        // A counter of the connection's own, of which two packets are lost in fifty.
        assert_eq!(missing((0..50).filter(|number| ![20, 40].contains(number))), 2);
    }

    #[test]
    fn numbers_of_a_host_that_numbers_its_syn_ack_are_hardly_believed() {
        let missing_with = |is_distrusted: bool| {
            let mut idents = Idents::default();
            if is_distrusted {
                idents.distrust();
            }
            [10, 11, 12, 13, 14, 15, 17].into_iter().for_each(|id| idents.take(Some(id), true, 0, false));
            idents.missing
        };
        assert_eq!([missing_with(false), missing_with(true)], [1, 0]);
    }

    #[test]
    fn a_packet_that_was_overtaken_is_not_lost() {
        assert_eq!(missing([10, 11, 12, 13, 14, 15, 17, 16, 18]), 0);
    }

    #[test]
    fn only_a_packet_that_comes_soon_was_overtaken() {
        let mut idents = taken([10, 11, 12, 13, 14, 15, 17]);
        idents.take(Some(16), true, LATEST, false);
        assert!(idents.is_late);
        idents.take(Some(15), true, LATEST + 1, false);
        assert!(!idents.is_late, "sent again with its old number");
    }

    #[test]
    fn zero_and_a_number_that_all_have_prove_nothing() {
        assert!(!taken([0, 0]).is_late, "always zero");
        assert!(!taken([7, 7, 7]).is_late, "always seven");
        assert!(!taken([6, 7, 8, 8]).is_late, "the last packet again");
        assert!(taken([6, 7]).are_told_apart(7) && taken([6, 7]).are_told_apart(9));
        assert!(!taken([7, 7]).are_told_apart(7) && !taken([0]).are_told_apart(0));
    }

    #[test]
    fn numbers_that_do_not_count_a_connections_packets_say_nothing() {
        assert_eq!(missing([0; 20]), 0, "always zero");
        assert_eq!(missing([1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16]), 0, "shared with another connection");
        assert_eq!(missing([9_000, 17, 40_001, 40_003, 2, 3, 60_000, 8]), 0, "drawn at random");
        assert_eq!(missing([10, 11, 12, 13, 14, 15, 90]), 0, "too wide for a timer's losses");
    }

    #[test]
    fn segments_joined_by_the_network_card_count_for_several() {
        let mut idents = taken(10..20);
        idents.take(Some(20), false, 0, false);
        idents.take(Some(24), true, 0, false);
        assert_eq!(idents.missing, 0);
    }
}
