//! What can be changed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::scene::Scene;
use crate::tcp::{Buffer, DelayedAck, IdleRestart, Nagle, SocketOption, Stack};
use crate::world::{Act, Program, Setup, Side, Step, When};

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fix {
    /// `TCP_NODELAY` on the sender's socket.
    NoDelay,
    /// What the program writes in pieces it writes at once.
    OneWrite,
    /// The cork is taken off after each message.
    NoCork,
    /// The receiver acknowledges at once (`TCP_QUICKACK`).
    QuickAck,
    /// One connection for all requests.
    KeepAlive,
    /// An initial congestion window of so many segments.
    InitialWindow(u32),
    /// The congestion window stays as it is over idle times (`tcp_slow_start_after_idle = 0`).
    NoIdleRestart,
    /// A receive buffer of so many bytes, all offered from the start.
    ReceiveBuffer(u64),
    /// A send buffer of so many bytes.
    SendBuffer(u64),
    /// Both sides use SACK.
    Sack,
    /// The sender probes for a lost tail (RFC 8985 section 7).
    TailLossProbe,
    /// The path loses nothing: what its losses cost, and no more than that can be saved by better repair.
    NoLoss,
}

/// A fix, and where it is made if it is made at one side.
pub type Placed = (Fix, Option<Side>);

/// Segments. RFC 6928's initial window is 10; three times as much is what large sites use.
pub const LARGE_INITIAL_WINDOW: u32 = 32;
/// Bytes: more than any path that is worth a window, 1 Gbit/s over 130 ms.
pub const LARGE_BUFFER: u64 = 16 << 20;

impl Fix {
    /// All that are tried where none is asked for.
    pub const ALL: [Self; 11] = [
        Self::NoDelay,
        Self::OneWrite,
        Self::NoCork,
        Self::QuickAck,
        Self::KeepAlive,
        Self::InitialWindow(LARGE_INITIAL_WINDOW),
        Self::NoIdleRestart,
        Self::ReceiveBuffer(LARGE_BUFFER),
        Self::Sack,
        Self::TailLossProbe,
        Self::NoLoss,
    ];

    /// Whether it is done at one side.
    pub fn has_side(self) -> bool {
        !matches!(self, Self::KeepAlive | Self::Sack | Self::NoLoss)
    }

    /// Wherever it can be made: at each side, or as it is.
    pub fn everywhere(self) -> impl Iterator<Item = Placed> {
        let sides: &[Option<Side>] =
            if self.has_side() { &[Some(Side::Client), Some(Side::Server)] } else { &[None] };
        sides.iter().map(move |side| (self, *side))
    }

    /// What it does, in a few words that a sentence can begin with.
    pub fn title(self) -> String {
        match self {
            Self::NoDelay => "TCP_NODELAY".to_owned(),
            Self::OneWrite => "one write for each message".to_owned(),
            Self::NoCork => "taking the cork off".to_owned(),
            Self::QuickAck => "acknowledging at once (TCP_QUICKACK)".to_owned(),
            Self::KeepAlive => "one connection for all requests".to_owned(),
            Self::InitialWindow(segments) => format!("an initial window of {segments} segments"),
            Self::NoIdleRestart => "no slow start after idle times".to_owned(),
            Self::ReceiveBuffer(bytes) => format!("a receive buffer of {}", size(bytes)),
            Self::SendBuffer(bytes) => format!("a send buffer of {}", size(bytes)),
            Self::Sack => "SACK".to_owned(),
            Self::TailLossProbe => "tail loss probes".to_owned(),
            Self::NoLoss => "a path without loss".to_owned(),
        }
    }

    /// Changes a setup. Where there is nothing to change it stays the same.
    pub(super) fn apply(self, setup: &mut Setup, side: Side) {
        match self {
            Self::OneWrite => {
                let round_trip = setup.ends.up.delay + setup.ends.down.delay;
                join_writes(program(setup, side), round_trip);
            }
            Self::NoCork => take_corks_off(program(setup, side)),
            Self::Sack => (setup.client.sack, setup.server.sack) = (true, true),
            Self::NoLoss => {
                for way in [&mut setup.ends.up, &mut setup.ends.down] {
                    way.drops.clear();
                }
            }
            Self::KeepAlive => {}
            _ => self.apply_to_stack(stack(setup, side)),
        }
    }

    fn apply_to_stack(self, stack: &mut Stack) {
        let sender = &mut stack.sender;
        match self {
            Self::NoDelay => sender.nagle = Nagle::Off,
            Self::QuickAck => stack.receiver.delayed_ack = DelayedAck::Off,
            Self::InitialWindow(segments) => sender.initial_window = segments,
            Self::NoIdleRestart => sender.idle_restart = IdleRestart::Never,
            Self::SendBuffer(bytes) => sender.send_buffer = Some(bytes),
            Self::TailLossProbe => sender.tail_loss_probe = true,
            Self::ReceiveBuffer(bytes) => {
                stack.receiver.buffer = Buffer::Fixed(bytes);
                // So that the window field can say it (RFC 7323 2.3).
                stack.window_scale = stack.window_scale.map(|scale| scale.max(14));
            }
            _ => {}
        }
    }
}

/// Bytes as people set them.
fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    const KIB: u64 = 1 << 10;
    match bytes {
        _ if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
        _ if bytes.is_multiple_of(KIB) => format!("{} KiB", bytes / KIB),
        _ => format!("{bytes} bytes"),
    }
}

fn program(setup: &mut Setup, side: Side) -> &mut Program {
    match side {
        Side::Client => &mut setup.client_program,
        Side::Server => &mut setup.server_program,
    }
}

fn stack(setup: &mut Setup, side: Side) -> &mut Stack {
    match side {
        Side::Client => &mut setup.client,
        Side::Server => &mut setup.server,
    }
}

/// Writes that follow each other sooner than this are pieces of one message: between them the program did nothing but
/// write. A sender that paces (BBR, fq) spreads an initial window over a third of a round trip, two segments over this
/// share of it.
const PIECES: Duration = Duration::from_millis(1);
const PACED: u32 = 16;

/// Bytes that an act writes, and whether it says that more is to follow.
fn written(act: Act) -> Option<(u64, bool)> {
    match act {
        Act::Write(bytes) => Some((bytes, false)),
        Act::WriteMore(bytes) => Some((bytes, true)),
        Act::Set(_) | Act::Shutdown | Act::Close => None,
    }
}

fn write(bytes: u64, more: bool) -> Act {
    if more { Act::WriteMore(bytes) } else { Act::Write(bytes) }
}

/// Whether a step goes on with the message of the one before.
fn goes_on(step: &Step, longest: Duration) -> bool {
    written(step.act).is_some() && step.when == When::Next && step.delay <= longest
}

/// No cork stays in at the end of a message.
fn take_corks_off(program: &mut Program) {
    program.options.retain(|option| *option != SocketOption::Cork(true));
    for index in 0..program.steps.len() {
        let is_last = program.steps.get(index + 1).is_none_or(|next| !goes_on(next, PIECES));
        if let Some((bytes, more)) = written(program.steps[index].act) {
            program.steps[index].act = write(bytes, more && !is_last);
        }
    }
}

fn join_writes(program: &mut Program, round_trip: Duration) {
    let longest = PIECES + round_trip / PACED;
    let mut joined: Vec<Step> = Vec::with_capacity(program.steps.len());
    for step in program.steps.drain(..) {
        let before = joined.last_mut().filter(|_| goes_on(&step, longest));
        let sum = before.as_ref().and_then(|before| written(before.act)).zip(written(step.act));
        match (before, sum) {
            (Some(before), Some(((first, _), (rest, more)))) => before.act = write(first + rest, more),
            _ => joined.push(step),
        }
    }
    program.steps = joined;
}

/// The programs of connections that one client opened one after the other, on one connection.
pub(super) fn keep_alive(scenes: &[Scene]) -> Option<Setup> {
    let mut setup = scenes.first()?.setup.clone();
    setup.client_program.steps.clear();
    setup.server_program.steps.clear();
    let mut sent = [0_u64; 2];
    for (number, scene) in scenes.iter().enumerate() {
        let pause = number.checked_sub(1).map_or(0, |before| pause(&scenes[before], scene));
        append(&mut setup.client_program, &scene.setup.client_program, sent[1], pause);
        append(&mut setup.server_program, &scene.setup.server_program, sent[0], 0);
        for (sum, host) in sent.iter_mut().zip(&scene.hosts) {
            *sum += host.pieces.last().map_or(0, |piece| piece.end);
        }
    }
    Some(setup)
}

/// From the end of one connection's last exchange to the SYN of the next, ns.
pub(super) fn pause(before: &Scene, after: &Scene) -> i64 {
    let ends = before.captured.iter().flatten().map(|(_, end)| *end);
    let end = before.begun + before.parts.0[0] / 2 + ends.max().unwrap_or(0);
    (after.begun - end).max(0)
}

/// Appends a connection's steps: the peer has written `read` bytes before; the first step waits for all of them.
fn append(program: &mut Program, more: &Program, read: u64, pause: i64) {
    let pause = Duration::from_nanos(pause.max(0).cast_unsigned());
    let writes = more.steps.iter().filter(|step| matches!(step.act, Act::Write(_)));
    for (number, step) in writes.enumerate() {
        let mut step = *step;
        step.when = match step.when {
            When::Read(bytes) => When::Read(read + bytes),
            When::Next if number == 0 && read > 0 => When::Read(read),
            other => other,
        };
        if number == 0 {
            step.delay += pause;
        }
        program.steps.push(step);
    }
}

/// A fix that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFix(String);

impl fmt::Display for UnknownFix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for UnknownFix {}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDelay => write!(f, "nodelay"),
            Self::OneWrite => write!(f, "one-write"),
            Self::NoCork => write!(f, "no-cork"),
            Self::QuickAck => write!(f, "quickack"),
            Self::KeepAlive => write!(f, "keep-alive"),
            Self::InitialWindow(segments) => write!(f, "initcwnd={segments}"),
            Self::NoIdleRestart => write!(f, "no-idle-restart"),
            Self::ReceiveBuffer(bytes) => write!(f, "rcvbuf={bytes}"),
            Self::SendBuffer(bytes) => write!(f, "sndbuf={bytes}"),
            Self::Sack => write!(f, "sack"),
            Self::TailLossProbe => write!(f, "tlp"),
            Self::NoLoss => write!(f, "no-loss"),
        }
    }
}

impl FromStr for Fix {
    type Err = UnknownFix;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, number) = text.split_once('=').map_or((text, None), |(name, number)| (name, Some(number)));
        let number = |default: Option<u64>| -> Result<u64, UnknownFix> {
            let asks = || UnknownFix(format!("{name} wants a number: {name}=N"));
            match number {
                Some(number) => number.parse().ok().filter(|number| *number > 0).ok_or_else(asks),
                None => default.ok_or_else(asks),
            }
        };
        let segments = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(match name {
            "initcwnd" => Self::InitialWindow(segments(number(Some(u64::from(LARGE_INITIAL_WINDOW)))?)),
            "rcvbuf" => Self::ReceiveBuffer(number(Some(LARGE_BUFFER))?),
            "sndbuf" => Self::SendBuffer(number(None)?),
            _ => {
                let known = Self::ALL.into_iter().find(|fix| fix.to_string() == text);
                known.ok_or_else(|| UnknownFix(format!("no fix is called {text}")))?
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fix_is_called_what_it_is_printed_as() {
        let others = [Fix::SendBuffer(65_536), Fix::InitialWindow(4), Fix::ReceiveBuffer(1)];
        for fix in Fix::ALL.into_iter().chain(others) {
            assert_eq!(fix.to_string().parse(), Ok(fix));
        }
        assert_eq!("initcwnd".parse(), Ok(Fix::InitialWindow(LARGE_INITIAL_WINDOW)));
        for wrong in
            ["", "no-delay", "nodelay=1", "initcwnd=", "initcwnd=0", "initcwnd=-1", "sndbuf", "rcvbuf=x"]
        {
            assert!(wrong.parse::<Fix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_said_as_people_set_them() {
        let titles = [16 << 20, 96 << 10, 1_000].map(|bytes| Fix::ReceiveBuffer(bytes).title());
        let sizes = ["16 MiB", "96 KiB", "1000 bytes"].map(|size| format!("a receive buffer of {size}"));
        assert_eq!(titles, sizes);
    }

    #[test]
    fn only_writes_right_behind_each_other_are_one_message() {
        let write = |when, ms, len| Step { when, delay: Duration::from_millis(ms), act: Act::Write(len) };
        let mut program = Program {
            steps: vec![
                write(When::Read(10), 0, 100),
                write(When::Next, 0, 50),
                write(When::Next, 40, 7),
                write(When::Read(20), 0, 1),
            ],
            ..Program::default()
        };
        // Over 20 ms a sender's pace explains 1.25 ms besides the one that programs take.
        join_writes(&mut program, Duration::from_millis(20));
        let expected =
            vec![write(When::Read(10), 0, 150), write(When::Next, 40, 7), write(When::Read(20), 0, 1)];
        assert_eq!(program.steps, expected);
    }
}
