//! What a program wrote and when, where its calls were recorded: nothing has to be inferred from what left.

use tcpwhy_wire::Socket;
use tcpwhy_wire::calls::Write;

use super::host::{Cause, Host, Piece, REACTION};
use super::path::Parts;
use super::trace::Trace;
use crate::world::Side;

/// The capture was made at a host whose part of the round trip is shorter than this, ns: only then its program's clock is
/// the capture's.
const NEAR: i64 = 1_000_000;

/// Puts what the program at `side` wrote in the place of what its packets show, if the recording has all of it. Whether it
/// does.
pub(super) fn take(host: &mut Host, trace: &Trace, parts: Parts, side: Side, writes: &[Write]) -> bool {
    let ends = (trace.ends[side as usize], trace.ends[side.other() as usize]);
    let own = of(writes, ends, trace.epoch);
    let sent = host.pieces.last().map_or(0, |piece| piece.end);
    let is_whole =
        own.first().zip(own.last()).is_some_and(|(first, last)| first.start == 0 && last.end >= sent);
    let follows = own.windows(2).all(|pair| pair[1].start == pair[0].end);
    if !(is_whole && follows) || sent == 0 || parts.0[side as usize] > NEAR {
        return false;
    }
    let first_left = departures(trace, side);
    let mut before = (host.opened, 0);
    let mut pieces = Vec::with_capacity(own.len());
    for write in own.iter().filter(|write| write.end > write.start && write.start < sent) {
        let at = (write.at - trace.epoch).max(before.0);
        let (read_at, read) = host.read_by(at);
        let cause =
            if read > before.1 { Cause::Read(read, at - read_at) } else { Cause::Itself(at - before.0) };
        let is_held = left(&first_left, write.start).is_some_and(|left| left - at > REACTION);
        let (start, end, is_corked) = (write.start, write.end.min(sent), write.is_corked);
        pieces.push(Piece { start, end, sent: at, cause, is_held, is_corked });
        before = (at, read);
    }
    host.pieces = pieces;
    true
}

/// The writes of the connection between these ends that began at `epoch`, ns: up to the next one's first byte.
fn of(writes: &[Write], ends: (Socket, Socket), epoch: i64) -> Vec<&Write> {
    let own = writes.iter().filter(|write| (write.from, write.to) == ends && write.at >= epoch);
    let mut has_begun = false;
    let mut is_over = false;
    own.take_while(|write| {
        let is_first = write.start == 0 && write.end > 0;
        is_over |= is_first && has_begun;
        has_begun |= is_first;
        !is_over
    })
    .collect()
}

/// Up to which byte of the stream had left when, ns.
fn departures(trace: &Trace, side: Side) -> Vec<(u64, i64)> {
    let mut reached = 0;
    let mut left = Vec::new();
    for packet in trace.packets.iter().filter(|packet| packet.from == side && packet.len > 0) {
        let end = packet.end() - 1;
        if end > reached {
            reached = end;
            left.push((end, packet.time));
        }
    }
    left
}

/// When the byte at `position` left.
fn left(departures: &[(u64, i64)], position: u64) -> Option<i64> {
    departures.get(departures.partition_point(|(end, _)| *end <= position)).map(|(_, time)| *time)
}
