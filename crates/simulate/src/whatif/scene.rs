//! Everything that was inferred of one connection, as a setup for a world.

use std::time::Duration;

use tcpwhy_wire::{Packet, TcpFlags};

use super::host::{Cause, Host, Piece};
use super::path::{self, Parts};
use super::trace::Trace;
use super::{Corked, Hints, Unfit, beat, stack, written};
use crate::link::Ends;
use crate::tcp::SocketOption;
use crate::world::{Act, Program, Setup, Side, Step, When};

/// One connection, ready to be played again. Times are ns since its first packet.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) setup: Setup,
    pub(super) hosts: [Host; 2],
    pub(super) parts: Parts,
    pub(super) spans: Vec<Span>,
    /// When each of them began and ended, where the capture shows both.
    pub(super) captured: Vec<Option<(i64, i64)>>,
    /// By how much updates that were merged may have been written sooner and later, ns.
    pub(super) slack: [Option<beat::Slack>; 2],
    /// When the client sent its SYN, ns on the capture's clock.
    pub(super) begun: i64,
    /// Packets of both directions, and those with data, as they were on the wire.
    pub(super) packets: u64,
    pub(super) segments: u64,
    /// When the last packet passed, ns.
    pub(super) lasted: i64,
    /// Payload of a full segment, bytes.
    pub(super) mss: u32,
}

/// What somebody waited for. Positions count a stream's bytes from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// It begins when this byte of this side is written.
    pub(super) writer: Side,
    pub(super) start: u64,
    /// It ends when this side has read so many bytes.
    pub(super) reader: Side,
    pub(super) end: u64,
}

impl Scene {
    pub(super) fn of(packets: &[Packet], hints: Hints<'_>) -> Result<Self, Unfit> {
        let mut trace = Trace::of(packets)?;
        let parts = Parts::of(&trace);
        let drops = path::losses(&mut trace, parts);
        refuse(&trace)?;
        let mut hosts = SIDES.map(|side| follow(&trace, parts, side));
        if hosts.iter().all(|host| host.pieces.is_empty()) {
            return Err(Unfit::NoData);
        }
        let are_known =
            [0, 1].map(|side| written::take(&mut hosts[side], &trace, parts, SIDES[side], hints.writes));
        let slack = [0, 1].map(|side| match are_known[side] {
            true => {
                hosts[side].follow_clock();
                None
            }
            false => beat::take_apart(&mut hosts[side]),
        });
        let corked = [0, 1].map(|side| hints.corked[side] && !are_known[side]);
        let mut ends = parts.ends();
        [ends.up.drops, ends.down.drops] = drops;
        let rate = path::rate(&trace, parts);
        (ends.up.rate, ends.down.rate) = (rate, rate);
        let setup = staged(&trace, &mut hosts, corked, ends, parts);
        let spans = spans(&hosts);
        // What a device cuts is one packet in the capture and several on the wire.
        let segments = trace.packets.iter().map(|packet| u64::from(packet.len.div_ceil(trace.mss))).sum();
        let bare = trace.packets.iter().filter(|packet| packet.len == 0).count() as u64;
        Ok(Self {
            setup,
            captured: captured(&spans, &hosts),
            spans,
            hosts,
            parts,
            slack,
            begun: trace.epoch - parts.0[0] / 2,
            packets: segments + bare,
            segments,
            lasted: trace.packets.last().map_or(0, |packet| packet.time),
            mss: trace.mss,
        })
    }

    /// Moves the writes of updates whose time is open, ns.
    pub(super) fn shift(&self, setup: &mut Setup, by: i64) {
        let programs = [&mut setup.client_program, &mut setup.server_program];
        for (program, slack) in programs.into_iter().zip(&self.slack) {
            if let (Some((least, most)), Some(first)) = (slack, program.steps.first_mut()) {
                let delay = first.delay.as_nanos() as i64 + by.clamp(*least, *most);
                first.delay = Duration::from_nanos(delay.max(0).cast_unsigned());
            }
        }
    }
}

const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// What keeps a connection from being played again at all.
fn refuse(trace: &Trace) -> Result<(), Unfit> {
    if is_cut(trace) {
        return Err(Unfit::Gaps);
    }
    let ends_it = TcpFlags::SYN | TcpFlags::RST;
    let is_closed = trace.packets.iter().any(|packet| packet.window == 0 && !packet.has(ends_it));
    if is_closed { Err(Unfit::ClosedWindow) } else { Ok(()) }
}

/// Stacks, programs and the path.
fn staged(trace: &Trace, hosts: &mut [Host; 2], corked: Corked, ends: Ends, parts: Parts) -> Setup {
    let stacks = [0, 1].map(|side| stack::of(trace, SIDES[side], &hosts[side]));
    let programs = [0, 1].map(|side| {
        if corked[side] {
            uncork(&mut hosts[side], parts.round_trip());
        }
        let mut program = program(&hosts[side]);
        program.options.extend(corked[side].then_some(SocketOption::Cork(true)));
        program
    });
    let ([client, server], [client_program, server_program]) = (stacks, programs);
    Setup { client, server, client_program, server_program, ends, seed: 1 }
}

/// When each span began and ended in the capture, ns since the first packet.
fn captured(spans: &[Span], hosts: &[Host; 2]) -> Vec<Option<(i64, i64)>> {
    let written: [Vec<(u64, i64)>; 2] = [0, 1].map(|side| {
        let mut written = 0;
        let pieces = hosts[side].pieces.iter();
        pieces
            .map(|piece| {
                written = written_at(piece, written);
                (piece.end, written)
            })
            .collect()
    });
    let of = |span: &Span| {
        let written = &written[span.writer as usize];
        let (_, from) = written.get(written.partition_point(|(end, _)| *end <= span.start))?;
        let arrived = &hosts[span.reader as usize].arrived;
        let (until, _) = arrived.get(arrived.partition_point(|(_, bytes)| *bytes < span.end))?;
        Some((*from, *until))
    };
    spans.iter().map(of).collect()
}

/// A piece that was held was written with the one before.
fn written_at(piece: &Piece, before: i64) -> i64 {
    if piece.is_held && piece.cause == Cause::Itself(0) { before } else { piece.sent }
}

fn follow(trace: &Trace, parts: Parts, side: Side) -> Host {
    let host = Host::of(trace, parts, side, false);
    if host.is_undelayed() { Host::of(trace, parts, side, true) } else { host }
}

/// Whether bytes were acknowledged that the capture does not have.
fn is_cut(trace: &Trace) -> bool {
    let mut ends = [1_u64; 2];
    trace.packets.iter().any(|packet| {
        let peer = packet.from.other() as usize;
        ends[packet.from as usize] = ends[packet.from as usize].max(packet.end());
        // The FIN takes a number of its own.
        packet.ack.is_some_and(|ack| ack > ends[peer] + 1)
    })
}

/// The timer that ends a cork: a retransmission timeout, 200 ms at least (Linux's `tcp_probe0_base`), and as much more
/// as its clock's ticks make it; ns.
const CORK: i64 = 200_000_000;
const TICKS: i64 = 12_000_000;

fn program(host: &Host) -> Program {
    let mut options = Vec::new();
    if host.is_undelayed() {
        options.push(SocketOption::NoDelay(true));
    }
    let write = |piece: &Piece| match piece.is_corked {
        true => Act::WriteMore(piece.end - piece.start),
        false => Act::Write(piece.end - piece.start),
    };
    let mut steps: Vec<Step> = host.pieces.iter().map(|piece| step(piece.cause, write(piece))).collect();
    steps.extend(host.finished.map(|cause| step(cause, Act::Shutdown)));
    Program { options, steps, ..Program::default() }
}

/// A cork on a side's socket: what its timer let go had been written so long before.
fn uncork(host: &mut Host, round_trip: i64) {
    let least = CORK + round_trip;
    let mut waited = 0;
    for piece in &mut host.pieces {
        let (Cause::Itself(delay) | Cause::Read(_, delay)) = &mut piece.cause;
        waited = match *delay {
            late if late < CORK - TICKS => 0,
            late if late <= least + TICKS => late,
            _ => least + TICKS / 2,
        };
        *delay -= waited;
        piece.sent -= waited;
    }
    // What comes by itself after the last piece was seen that long after it left.
    if let Some(Cause::Itself(delay)) = &mut host.finished {
        *delay += waited;
    }
}

fn step(cause: Cause, act: Act) -> Step {
    let (when, delay) = match cause {
        Cause::Itself(delay) => (When::Next, delay),
        Cause::Read(bytes, delay) => (When::Read(bytes), delay),
    };
    Step { when, delay: Duration::from_nanos(delay.max(0).cast_unsigned()), act }
}

/// The exchanges: from a request to the end of what the client reads before its next one. Where nobody waits for
/// answers, each update by itself.
fn spans(hosts: &[Host; 2]) -> Vec<Span> {
    let [client, server] = hosts;
    let has_answers = |host: &Host| host.pieces.iter().any(|piece| matches!(piece.cause, Cause::Read(..)));
    if !client.pieces.is_empty() && (has_answers(client) || has_answers(server)) {
        return exchanges(client, server);
    }
    [(Side::Client, client), (Side::Server, server)]
        .into_iter()
        .flat_map(|(writer, host)| {
            host.pieces.iter().map(move |piece| Span {
                writer,
                start: piece.start,
                reader: writer.other(),
                end: piece.end,
            })
        })
        .collect()
}

fn exchanges(client: &Host, server: &Host) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut begun = client.pieces.first().map_or(0, |piece| piece.start);
    let mut read_before = 0;
    let span = |start, end| Span { writer: Side::Client, start, reader: Side::Client, end };
    for piece in &client.pieces {
        if let Cause::Read(read, _) = piece.cause
            && piece.start > 0
        {
            spans.push(span(begun, read));
            (begun, read_before) = (piece.start, read);
        }
    }
    let all = server.pieces.last().map_or(0, |piece| piece.end);
    if all > read_before {
        spans.push(span(begun, all));
    }
    spans
}
