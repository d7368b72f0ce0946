//! A lab's run as the simulator's.

use std::time::Duration;

use anyhow::Result;
use tcpwhy_simulate::link::AckHold;
use tcpwhy_simulate::tcp::{Buffer, Congestion, EcnUse, IdleRestart, SocketOption, Stack, eras};
use tcpwhy_simulate::world::{Act, Program, Reader, Setup, Side, Step, When, World, frame};
use tcpwhy_wire::container::{Frame, Interface, LinkType, Origin, Writer};

use crate::capture::{Capture, Vantage};
use crate::clock::ns;
use crate::corpus::{Run, Traffic};
use crate::place::Path;
use crate::programs::chat::Chat;
use crate::programs::message::{Message, matched};
use crate::programs::socket::Options;
use crate::programs::stream::{Feed, Stream};
use crate::programs::transfer::{DONE, REQUEST, Transfer};

/// What a program needs to wake, look at what it read and write, in a namespace of this kernel: about the median of
/// a call over loopback.
const WAKES_AFTER: Duration = Duration::from_micros(20);
/// The window of a socket whose buffer the lab has widened (`Run::wide_windows`), in bytes.
const WIDE_WINDOW: u64 = 16_777_216 / 2;
/// What the widest buffer of such a host (`tcp_rmem`'s third number, 32 MiB here) offers.
const WIDEST_WINDOW: u64 = 33_554_432 * 160 / 256;
/// What the lab's own path adds to each way, beside the link's delay: half of the median round-trip error of its
/// link (docs/benchmarks.md).
const OVERHEAD: Duration = Duration::from_micros(60);
/// Longer than any run here.
const MOST: u64 = 600_000_000_000;

/// The same run for the simulator; `None` where it has a part that the simulator does not: several connections,
/// loopback, offload, two hops.
pub(super) fn translated(run: &Run) -> Option<Setup> {
    let Path::Link(wire) = &run.path else { return None };
    if wire.offload {
        return None;
    }
    let (client_program, server_program, client, server) = match &run.traffic {
        Traffic::Chat(chat) if chat.connect_each => return None,
        Traffic::Chat(chat) => (asking(chat), answering(chat), &chat.client, &chat.server),
        Traffic::Stream(stream) => {
            let [client, server] = feeds(stream);
            (client, server, &stream.client, &stream.server)
        }
        Traffic::Transfer(transfer) => {
            let [client, server] = bulk(transfer)?;
            (client, server, &transfer.client, &transfer.server)
        }
    };
    let mut stacks = [stack(run, client)?, stack(run, server)?];
    if let Some(segments) = run.initial_window {
        stacks[0].sender.initial_window = segments;
    }
    stacks[1].sack &= !run.no_sack;
    let [client, server] = stacks;
    let mut ends = wire.ends.clone();
    for way in [&mut ends.up, &mut ends.down] {
        // Where in the heartbeat a run begins is chance, and decides about every message.
        if let Some(AckHold::Heartbeat(_)) = way.hold_acks {
            return None;
        }
        way.delay += OVERHEAD;
    }
    Some(Setup { client, server, client_program, server_program, ends, seed: run.seed })
}

/// This kernel with what the program sets; `None` for what the simulator lacks (BBR).
fn stack(run: &Run, options: &Options) -> Option<Stack> {
    let mut stack = eras::linux_6();
    stack.sender.congestion = match options.congestion.or(run.congestion)? {
        "cubic" => Congestion::Cubic { hystart: true },
        "reno" => Congestion::Reno,
        _ => return None,
    };
    if run.ecn {
        stack.ecn = Some(EcnUse::Asks);
    }
    if run.keeps_window {
        stack.sender.idle_restart = IdleRestart::Never;
    }
    if let Buffer::Tuned { initial, buffer, .. } = stack.receiver.buffer {
        let buffer = if run.wide_windows { WIDE_WINDOW } else { buffer };
        stack.receiver.buffer = Buffer::Tuned { initial, buffer, max: WIDEST_WINDOW };
    }
    if let Some(bytes) = options.receive_buffer {
        let window = window_of(bytes as u64, u64::from(stack.mss));
        stack.receiver.buffer = Buffer::Fixed(window);
        // tcp_select_initial_window: no more scale than the buffer needs.
        stack.window_scale = (0..=14).find(|scale| window >> scale <= 0xffff);
    }
    // Linux takes twice what is asked for (socket(7), SO_SNDBUF).
    stack.sender.send_buffer = options.send_buffer.map(|bytes| 2 * bytes as u64);
    Some(stack)
}

/// The window that `SO_RCVBUF` becomes: the kernel doubles it; the last segment read is still charged; of the rest the
/// share counts that data is of a full segment's memory, in 256ths (`scaling_ratio`); without window scaling, whole
/// segments (`__tcp_select_window`). Seen so here for 4 KB to 200 KB.
fn window_of(bytes: u64, mss: u64) -> u64 {
    /// A full segment of Ethernet in memory (`truesize`), and its payload with timestamps.
    const MEMORY: u64 = 2_304;
    const TIMESTAMPS: u64 = 12;
    let payload = mss - TIMESTAMPS;
    let window = (2 * bytes).saturating_sub(MEMORY) * (payload * 256 / MEMORY) / 256;
    if window <= 0xffff { (window / payload).max(1) * payload } else { window }
}

fn program(options: &Options, steps: Vec<Step>) -> Program {
    let mut set = vec![];
    set.extend(options.nodelay.then_some(SocketOption::NoDelay(true)));
    set.extend(options.cork.then_some(SocketOption::Cork(true)));
    Program { options: set, reader: Reader { wakes_after: WAKES_AFTER, ..Reader::default() }, steps }
}

fn step(when: When, delay: Duration, act: Act) -> Step {
    Step { when, delay, act }
}

fn writes(options: &Options, when: When, delay: Duration, pieces: &[usize], pause: Duration) -> Vec<Step> {
    let act = |len: &usize| if options.more { Act::WriteMore(*len as u64) } else { Act::Write(*len as u64) };
    let mut steps: Vec<Step> = pieces.iter().map(|len| step(When::Next, pause, act(len))).collect();
    if let Some(first) = steps.first_mut() {
        (first.when, first.delay) = (when, delay);
    }
    steps
}

fn asking(chat: &Chat) -> Program {
    let round = (chat.response.iter().sum::<usize>() * chat.ahead) as u64;
    let mut steps = Vec::new();
    for exchange in 0..chat.exchanges as u64 {
        let (when, think) = match exchange {
            0 => (When::Next, Duration::ZERO),
            _ => (When::Read(exchange * round), chat.client_think),
        };
        for ahead in 0..chat.ahead {
            let (when, think) = if ahead == 0 { (when, think) } else { (When::Next, Duration::ZERO) };
            steps.extend(writes(&chat.client, when, think, &chat.request, Duration::ZERO));
        }
    }
    steps.push(step(When::Read(chat.exchanges as u64 * round), Duration::ZERO, Act::Shutdown));
    steps.push(step(When::EndOfFile, Duration::ZERO, Act::Close));
    program(&chat.client, steps)
}

fn answering(chat: &Chat) -> Program {
    let request = chat.request.iter().sum::<usize>() as u64;
    let mut steps = Vec::new();
    for number in 1..=chat.exchanges * chat.ahead {
        let think =
            if number.is_multiple_of(chat.server_thinks_every) { chat.server_think } else { Duration::ZERO };
        let when = When::Read(number as u64 * request);
        steps.extend(writes(&chat.server, when, think, &chat.response, chat.server_pauses));
    }
    steps.push(step(When::EndOfFile, Duration::ZERO, Act::Close));
    program(&chat.server, steps)
}

fn feeds(stream: &Stream) -> [Program; 2] {
    let both = [(&stream.up, &stream.client), (&stream.down, &stream.server)];
    both.map(|(feed, options)| {
        let mut steps: Vec<Step> = feed.iter().flat_map(|feed| fed(feed, options)).collect();
        let when = if feed.is_some() { When::Next } else { When::EndOfFile };
        steps.push(step(when, Duration::ZERO, Act::Shutdown));
        steps.push(step(When::EndOfFile, Duration::ZERO, Act::Close));
        program(options, steps)
    })
}

fn fed(feed: &Feed, options: &Options) -> Vec<Step> {
    let ticks = (0..feed.ticks).flat_map(|tick| {
        let is_late = feed.late_every > 0 && (tick + 1).is_multiple_of(feed.late_every);
        let late = if is_late { feed.late_by } else { Duration::ZERO };
        writes(options, When::At(feed.period * tick as u32), late, &feed.messages, Duration::ZERO)
    });
    ticks.collect()
}

/// One way only.
fn bulk(transfer: &Transfer) -> Option<[Program; 2]> {
    let once = |when, len: usize| step(when, Duration::ZERO, Act::Write(len as u64));
    let shut = |when| step(when, Duration::ZERO, Act::Shutdown);
    let close = step(When::EndOfFile, Duration::ZERO, Act::Close);
    let [mut client, mut server] = match (transfer.up, transfer.down) {
        (up, 0) => [
            vec![once(When::Next, up), shut(When::Read(DONE as u64)), close],
            vec![once(When::Read(up as u64), DONE), close],
        ],
        (0, down) => [
            vec![once(When::Next, REQUEST), shut(When::Read(down as u64)), close],
            vec![once(When::Read(REQUEST as u64), down), close],
        ],
        _ => return None,
    }
    .into_iter()
    .zip([&transfer.client, &transfer.server])
    .map(|(steps, options)| program(options, steps))
    .collect::<Vec<_>>()
    .try_into()
    .ok()?;
    for reader in [&mut client.reader, &mut server.reader] {
        reader.at_most = transfer.reader.at_once as u64;
        reader.pause = transfer.reader.work;
        reader.pause_every = transfer.reader.works_every as u64;
    }
    // A writer that works between its writes is not one of the runs that are compared.
    transfer.writer.work.is_zero().then_some([client, server])
}

/// Runs it, and reads the programs' logs as the lab does.
pub(super) fn simulated(run: &Run, setup: &Setup) -> Result<(Vec<Message>, Capture)> {
    let mut world = World::new(setup);
    world.run(MOST);
    Ok((messages(run, &world), capture(&world)?))
}

/// What a capture at the client shows.
fn capture(world: &World) -> Result<Capture> {
    let origin = Origin { application: "tcpwhy lab compare", ..Origin::default() };
    let mut writer = Writer::new(Vec::new(), &origin)?;
    let interface = writer.interface(&Interface { link: LinkType::RAW, ..Interface::default() })?;
    for seen in world.seen(Side::Client) {
        let data = frame(seen);
        let (time, original_len) = (seen.time.cast_signed(), data.len() as u32);
        writer.frame(&Frame { time, link: LinkType::RAW, original_len, interface, data: &data }, "")?;
    }
    Ok(Capture { vantage: Vantage::Client, bytes: writer.finish()? })
}

fn messages(run: &Run, world: &World) -> Vec<Message> {
    let writes = |side| {
        let log = &world.log(side).writes;
        let first = log.first().map_or(0, |write| write.begun.cast_signed());
        let due = |number| due(feed(run, side)?, first, number);
        let times =
            log.iter().enumerate().map(|(number, write)| due(number).unwrap_or(write.begun.cast_signed()));
        times.zip(log).map(|(time, write)| (time, write.end as usize)).collect::<Vec<_>>()
    };
    let reads = |side| {
        let log = world.log(side).reads.iter();
        log.map(|(time, length)| (time.cast_signed(), *length as usize)).collect::<Vec<_>>()
    };
    match &run.traffic {
        Traffic::Chat(chat) => rounds(chat, world),
        Traffic::Stream(_) => {
            let mut messages = matched("up", &writes(Side::Client), &reads(Side::Server));
            messages.extend(matched("down", &writes(Side::Server), &reads(Side::Client)));
            messages
        }
        Traffic::Transfer(transfer) => {
            let (kind, len, reader) = if transfer.up > 0 {
                ("up", transfer.up, Side::Server)
            } else {
                ("down", transfer.down, Side::Client)
            };
            let written = world.log(Side::Client).writes.first().map(|write| write.begun.cast_signed());
            let read = world.log(reader).read_by(len as u64).map(u64::cast_signed);
            written.zip(read).map(|(written, read)| Message { kind, written, read }).into_iter().collect()
        }
    }
}

fn feed(run: &Run, side: Side) -> Option<&Feed> {
    let Traffic::Stream(stream) = &run.traffic else { return None };
    match side {
        Side::Client => stream.up.as_ref(),
        Side::Server => stream.down.as_ref(),
    }
}

/// When the write of that number was due, in a feed whose ticks may be late.
fn due(feed: &Feed, first: i64, number: usize) -> Option<i64> {
    let tick = number / feed.messages.len().max(1);
    (feed.late_every > 0).then(|| first + ns(feed.period) * tick as i64)
}

/// From the answer before to this answer, as the lab's client has it; the first begins with the connection.
fn rounds(chat: &Chat, world: &World) -> Vec<Message> {
    let round = (chat.response.iter().sum::<usize>() * chat.ahead) as u64;
    let mut written = 0;
    let rounds = (1..=chat.exchanges as u64).map_while(|exchange| {
        let read = world.log(Side::Client).read_by(exchange * round)?.cast_signed();
        let message = Message { kind: if exchange == 1 { "first" } else { "round" }, written, read };
        written = read;
        Some(message)
    });
    rounds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_the_kernel_offered() {
        let windows = [4_096, 8_192, 16_384, 200_000].map(|bytes| window_of(bytes, 1_460));
        assert_eq!(windows, [2_896, 8_688, 18_824, 248_560]);
    }
}
