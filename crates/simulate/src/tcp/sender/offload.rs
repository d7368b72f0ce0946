//! Segments that a host hands to its device in one go (TSO), which cuts them. Their number decides about nothing but
//! PSH: Linux sets it on the last of each lot (`__tcp_transmit_skb`, since 5.4). A segment that is sent again does not
//! have it for that.

use super::Sender;

/// A device's `gso_max_size`, in bytes.
const MOST_AT_ONCE: u64 = 65_536;
/// A lot is what leaves within this: a millisecond or so (`sk_pacing_shift`, of a second).
const PACING_SHIFT: u32 = 10;
/// On short paths lots are larger: their addition halves every 512 us of round trip (`tcp_tso_rtt_log`).
const ROUND_TRIP_SHIFT: u32 = 9;

/// The lot that is being filled.
#[derive(Debug, Default)]
pub(super) struct Lot {
    count: u32,
    left: u32,
}

impl Sender {
    /// A segment has joined the lot; `room` is what the windows took before it, in segments.
    pub(super) fn fill_lot(&mut self, lot: &mut Lot, room: u32) {
        if lot.count == 0 {
            lot.left = self.settings.offload.map_or(1, |fewest| room.min(self.most_at_once(fewest)));
        }
        lot.count += 1;
        lot.left = lot.left.saturating_sub(1);
        if lot.left == 0 {
            self.close_lot(lot);
        }
    }

    /// The lot goes to the device.
    pub(super) fn close_lot(&mut self, lot: &mut Lot) {
        let chunk = self.out.back_mut().filter(|_| lot.count > 1);
        if let Some(chunk) = chunk {
            chunk.push = true;
        }
        *lot = Lot::default();
    }

    /// How many segments the congestion window takes in one lot: no more than half of it (`tcp_cwnd_test`).
    pub(super) fn room_of_lot(&self) -> u32 {
        let free = self.window.size.saturating_sub(self.flight.in_network().segments);
        free.min((self.window.size / 2).max(1))
    }

    /// `tcp_tso_autosize`, in segments.
    fn most_at_once(&self, fewest: u32) -> u32 {
        let mss = u64::from(self.agreed.mss.max(1));
        let bytes = self.pacing_rate().map_or(MOST_AT_ONCE, |rate| {
            let shortest_us = self.round_trip.shortest().unwrap_or(0) / 1000;
            let shift = u32::try_from(shortest_us >> ROUND_TRIP_SHIFT).unwrap_or(u32::MAX);
            (rate >> PACING_SHIFT) + MOST_AT_ONCE.checked_shr(shift).unwrap_or(0)
        });
        u32::try_from(bytes.min(MOST_AT_ONCE) / mss).unwrap_or(u32::MAX).max(fewest)
    }

    /// `tcp_update_pacing_rate` in bytes a second: a window in half a round trip of early slow start, in five sixths
    /// of one else. `None` before there is a round trip.
    fn pacing_rate(&self) -> Option<u64> {
        const NS_PER_S: u128 = 1_000_000_000;
        let smoothed = u128::from(self.round_trip.smoothed().filter(|smoothed| *smoothed > 0)?);
        let window = u128::from(self.window.size.max(self.flight.len())) * u128::from(self.agreed.mss);
        let percent = if self.window.size < self.window.threshold / 2 { 200 } else { 120 };
        u64::try_from(window * percent / 100 * NS_PER_S / smoothed).ok()
    }
}
