//! What kind of TCP a host has, as far as its packets tell; where they do not, it is today's Linux.

use std::time::Duration;

use super::host::Host;
use super::trace::Trace;
use crate::tcp::{Buffer, DelayedAck, Stack, eras};
use crate::world::Side;

const MS: i64 = 1_000_000;
/// ACKs that come sooner were not delayed: no stack has so short a timer; ns.
const DELAYED: i64 = 10 * MS;
/// Linux's shortest delay is 40 ms (`TCP_DELACK_MIN`), and up to two of its ticks later the timer ends; ns.
const LINUX: std::ops::RangeInclusive<i64> = 36 * MS..=60 * MS;
/// The heartbeat of BSD and its heirs, which is also the longest delay of Linux (`TCP_DELACK_MAX`).
const HEARTBEAT: Duration = Duration::from_millis(200);
/// A window that grows by more than this share (in percent) is sized by its host.
const GROWN: u64 = 130;

/// The largest window of Linux's first buffer (`tcp_rmem`'s 131,072 bytes), bytes.
const LINUX_BUFFER: u64 = 81_920;

/// The stack of one side.
pub(super) fn of(trace: &Trace, side: Side, host: &Host) -> Stack {
    let mut stack = eras::linux_6();
    let offered = &trace.offered[side as usize];
    stack.mss = offered.mss.unwrap_or(536);
    stack.timestamps = offered.timestamps.map(|_| Duration::from_millis(1));
    stack.window_scale = offered.window_scale;
    stack.sack = offered.sack_permitted;
    stack.ecn = None;
    if let Some(segments) = host.first_flight {
        stack.sender.initial_window = segments.max(1);
    }
    stack.receiver.buffer = buffer(host);
    if let Some(first) = receivers(host).first() {
        stack.receiver.delayed_ack = *first;
    }
    stack
}

fn buffer(host: &Host) -> Buffer {
    let (first, largest) = (host.first_window, host.largest_window);
    if largest * 100 > first * GROWN {
        Buffer::Tuned { initial: first, buffer: LINUX_BUFFER.clamp(first, largest), max: largest }
    } else {
        Buffer::Fixed(largest)
    }
}

/// How the host may delay its ACKs, the likeliest first.
pub(super) fn receivers(host: &Host) -> Vec<DelayedAck> {
    let mut holds: Vec<i64> = host.ack_holds.iter().copied().filter(|hold| *hold > DELAYED).collect();
    holds.sort_unstable();
    let median = holds.get(holds.len() / 2).copied().filter(|median| LINUX.contains(median));
    let min =
        |hold: i64| DelayedAck::Linux { min: Duration::from_nanos(hold.cast_unsigned()), max: HEARTBEAT };
    // The ticks of its clock make 44 ms of 40; another clock may make it something else.
    let mut all = vec![min(40 * MS)];
    all.extend(median.map(min));
    match holds.last() {
        None => all.push(DelayedAck::Off),
        Some(longest) if *longest <= *LINUX.end() => {}
        Some(longest) => {
            let shortest = holds.iter().find(|hold| **hold > *LINUX.end()).unwrap_or(longest);
            let delay = |hold: &i64| DelayedAck::Delay { delay: Duration::from_nanos(hold.cast_unsigned()) };
            all.extend([delay(shortest), delay(longest), DelayedAck::Heartbeat { period: HEARTBEAT }]);
        }
    }
    all
}
