//! One run of a scene.

use super::effort::Effort;
use super::scene::Span;
use crate::world::{End, Setup, Side, World};

/// What came of a run. Times are ns since the client's SYN.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Replay {
    /// When each span began and ended.
    pub(super) spans: Vec<(i64, i64)>,
    /// When the last of them ended.
    pub(super) ended: i64,
    /// Packets sent by both sides, those with data, and bytes of all.
    pub(super) packets: u64,
    pub(super) segments: u64,
    pub(super) bytes: u64,
}

impl Replay {
    /// Plays a setup for so long at most (ns); `None` if some span did not come to its end, or the effort to its.
    pub(super) fn of(setup: &Setup, spans: &[Span], until: i64, effort: &Effort) -> Option<Self> {
        if effort.is_spent() {
            return None;
        }
        let mut world = World::new(setup);
        if matches!(effort.run(&mut world, until.max(0).cast_unsigned()), None | Some(End::Stuck)) {
            return None;
        }
        let spans: Option<Vec<(i64, i64)>> = spans.iter().map(|span| times(&world, span)).collect();
        let spans = spans?;
        let mut replay = Self {
            ended: spans.iter().map(|(_, end)| *end).max()?,
            spans,
            packets: 0,
            segments: 0,
            bytes: 0,
        };
        for side in [Side::Client, Side::Server] {
            for seen in world.seen(side).iter().filter(|seen| seen.from == side) {
                replay.packets += 1;
                replay.segments += u64::from(seen.segment.tcp.payload_len > 0);
                replay.bytes += seen.segment.packet_len() as u64;
            }
        }
        Some(replay)
    }
}

fn times(world: &World, span: &Span) -> Option<(i64, i64)> {
    let writes = &world.log(span.writer).writes;
    let written = writes.get(writes.partition_point(|write| write.end <= span.start))?;
    let read = world.log(span.reader).read_by(span.end)?;
    Some((written.begun.cast_signed(), read.cast_signed()))
}
