//! Interface description and interface statistics blocks.

use super::options::options;
use crate::container::bytes::Order;
use crate::container::frame::{LinkType, MAX_TIME};

/// Where an interface description's options begin.
pub(super) const OPTIONS: usize = 16;
/// Where an interface statistics block's options begin.
pub(super) const STATISTICS_OPTIONS: usize = 20;

pub(in crate::container) const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
pub(in crate::container) const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;

/// What a section says of one interface.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) clock: Clock,
    pub(super) link: LinkType,
    /// Most bytes stored of a frame.
    pub(super) snaplen: u32,
    /// Packets lost on the capturing host, by the latest statistics.
    pub(super) dropped: Option<u64>,
}

impl Interface {
    /// Reads an interface description block, without its trailer.
    pub(super) fn described_by(order: Order, block: &[u8]) -> Self {
        let (mut resolution, mut seconds) = (Clock::DEFAULT_RESOLUTION, 0);
        for (code, value) in options(order, &block[OPTIONS..]) {
            match (code, value.len()) {
                (IF_TSRESOL, 1..) => resolution = value[0],
                (IF_TSOFFSET, 8..) => seconds = order.u64(value, 0) as i64,
                _ => {}
            }
        }
        let snaplen = match order.u32(block, 12) {
            0 => u32::MAX, // No limit.
            limit => limit,
        };
        let link = LinkType(u32::from(order.u16(block, 8)));
        Self { clock: Clock::new(resolution, seconds), link, snaplen, dropped: None }
    }

    /// Takes the counters of an interface statistics block, without its trailer. They count from the beginning
    /// of the capture, so the last block's hold.
    pub(super) fn count_drops(&mut self, order: Order, block: &[u8]) {
        let drops = options(order, &block[STATISTICS_OPTIONS..])
            .filter(|(code, value)| matches!(*code, ISB_IFDROP | ISB_OSDROP) && value.len() >= 8)
            .map(|(_, value)| order.u64(value, 0))
            .reduce(u64::saturating_add);
        self.dropped = drops.or(self.dropped);
    }
}

/// Turns an interface's timestamps into nanoseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    tick: Tick,
    /// Added to every time, in ns.
    offset: i128,
}

/// How long one unit of a timestamp is.
#[derive(Clone, Copy, Debug)]
enum Tick {
    /// So many nanoseconds.
    Times(u64),
    /// One nanosecond divided by so many.
    Divided(u128),
    /// A second divided by two to the power of so many.
    Halved(u32),
}

impl Clock {
    /// Microseconds, where an interface has no `if_tsresol`.
    const DEFAULT_RESOLUTION: u8 = 6;

    /// Reads the values of `if_tsresol` and `if_tsoffset`.
    fn new(resolution: u8, offset_seconds: i64) -> Self {
        let exponent = u32::from(resolution & 0x7f);
        let tick = if resolution & 0x80 != 0 {
            Tick::Halved(exponent)
        } else if exponent <= 9 {
            Tick::Times(10_u64.pow(9 - exponent))
        } else {
            // Beyond 10^38 every timestamp of 64 bits is less than a nanosecond.
            Tick::Divided(10_u128.checked_pow(exponent - 9).unwrap_or(u128::MAX))
        };
        Self { tick, offset: i128::from(offset_seconds) * 1_000_000_000 }
    }

    /// The time of a timestamp, or the nearest one that a frame can have.
    #[inline]
    pub(super) fn time(&self, ticks: u64) -> i64 {
        let nanos = match self.tick {
            Tick::Times(nanos) => u128::from(ticks) * u128::from(nanos),
            Tick::Divided(by) => u128::from(ticks) / by,
            Tick::Halved(times) => (u128::from(ticks) * 1_000_000_000) >> times,
        };
        // Below 2^94, so neither the conversion nor the sum can overflow.
        (nanos as i128 + self.offset).clamp(0, MAX_TIME.into()) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten() {
        assert_eq!(Clock::new(0, 0).time(7), 7_000_000_000);
        assert_eq!(Clock::new(3, 0).time(7), 7_000_000);
        assert_eq!(Clock::new(6, 0).time(7), 7_000);
        assert_eq!(Clock::new(9, 0).time(7), 7);
        assert_eq!(Clock::new(12, 0).time(7_999), 7);
        assert_eq!(Clock::new(127, 0).time(u64::MAX), 0);
    }

    #[test]
    fn powers_of_two() {
        assert_eq!(Clock::new(0x80, 0).time(2), 2_000_000_000);
        assert_eq!(Clock::new(0x81, 0).time(3), 1_500_000_000);
        // 2^-20 s is 953.67 ns.
        assert_eq!(Clock::new(0x94, 0).time(1), 953);
        assert_eq!(Clock::new(0xff, 0).time(u64::MAX), 0);
    }

    #[test]
    fn offsets_in_both_directions() {
        assert_eq!(Clock::new(6, 1_700_000_000).time(5), 1_700_000_000_000_005_000);
        assert_eq!(Clock::new(6, -1).time(1_000_001), 1_000);
    }

    #[test]
    fn hostile_times_stay_in_range() {
        assert_eq!(Clock::new(0, 0).time(u64::MAX), MAX_TIME);
        assert_eq!(Clock::new(0, i64::MAX).time(u64::MAX), MAX_TIME);
        assert_eq!(Clock::new(9, i64::MIN).time(0), 0);
        assert_eq!(Clock::new(9, 0).time(MAX_TIME as u64 + 1), MAX_TIME);
        // Only the sum counts: 20 billion seconds do not fit, 19 billion less do.
        assert_eq!(Clock::new(0, -19_000_000_000).time(20_000_000_000), 1_000_000_000_000_000_000);
    }
}
