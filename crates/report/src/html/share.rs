//! How many of each connection's packets a page has.

/// A part that is thinned has so many packets at least: a picture of less tells nothing.
const FEWEST: u64 = 1_000;

/// What a page has of a connection's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// One of so many is there; 1 where all are.
    pub every: u64,
    /// Packets that makes, about.
    pub packets: u64,
}

/// Divides room for `budget` packets among connections that have so many each, the most important first. Who fits has all; who
/// does not has half of what is left, so that those behind it have some, and the last one has all that is left.
pub fn shares(packets: &[u64], budget: u64) -> Vec<Option<Share>> {
    let mut left = budget;
    let mut share = |(at, all): (usize, &u64)| {
        let room = match at + 1 == packets.len() {
            _ if *all <= left => *all,
            true => left,
            false => left / 2,
        };
        if room == 0 || room < FEWEST && room < *all {
            return None;
        }
        let every = all.div_ceil(room);
        let packets = all.div_ceil(every);
        left -= packets;
        Some(Share { every, packets })
    };
    packets.iter().enumerate().map(&mut share).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(packets: &[u64], budget: u64) -> Vec<(u64, u64)> {
        let plain = |share: Option<Share>| share.map_or((0, 0), |share| (share.every, share.packets));
        shares(packets, budget).into_iter().map(plain).collect()
    }

    #[test]
    fn who_fits_has_all_and_the_rest_is_divided() {
        assert_eq!(plain(&[500, 300, 0], 1_000), [(1, 500), (1, 300), (0, 0)]);
        // Half of 100,000 for the first: one of 20. Then the small one fits, and the last one has what is left.
        assert_eq!(plain(&[1_000_000, 7, 99_987], 100_000), [(20, 50_000), (1, 7), (3, 33_329)]);
        // A thousandth of a connection is not worth a picture; a small one behind it is.
        assert_eq!(plain(&[1_000_000, 900], 1_500), [(0, 0), (1, 900)]);
        assert_eq!(plain(&[5], 0), [(0, 0)]);
    }

    proptest! {
        #[test]
        fn no_more_than_there_is_room_for(
            packets in prop::collection::vec(0..5_000_000_u64, 0..40),
            budget in 0..3_000_000_u64,
        ) {
            let shares = shares(&packets, budget);
            prop_assert_eq!(shares.len(), packets.len());
            prop_assert!(shares.iter().flatten().map(|share| share.packets).sum::<u64>() <= budget);
            for (share, all) in shares.iter().zip(&packets) {
                prop_assert!(share.is_none_or(|share| share.every >= 1 && share.packets <= *all));
            }
        }
    }
}
