//! The trial itself: switch, let settle, measure, block after block; then put back.

use std::io;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use tcpwhy_diagnose::trial::{Block, Conversation, Direction, Role, Tally};
use tcpwhy_host::counters::delayed_acks;
use tcpwhy_host::process::{self, Refused};
use tcpwhy_host::sockets::info;
use tcpwhy_host::switch::TcpOption;

use super::Args;
use super::choice::{Choice, Chosen};
use super::guard::Guard;
use super::newcomers::Newcomers;
use super::outcome::{Account, End, Outcome};
use super::packets::Packets;
use super::signals::Signals;

/// Time after a switch that is not counted. What Nagle's algorithm held leaves at the switch itself
/// (`__tcp_sock_set_nodelay` pushes), and whoever waits for a delayed ACK waits no longer than 200 ms
/// (`TCP_DELACK_MAX`): after that, nothing is left of the setting before.
pub(super) const SETTLING: Duration = Duration::from_millis(250);

/// From one look at the sockets to the next: a fortieth of a delayed ACK.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A connection under trial.
struct Connection {
    chosen: Chosen,
    conversation: Conversation,
    /// Bytes that had left it at the last look.
    left: Option<u64>,
    is_gone: bool,
}

/// What a look at a socket sees.
struct Seen {
    unsent: u64,
    left: u64,
}

struct Trial<'a> {
    args: &'a Args,
    pid: u32,
    connections: Vec<Connection>,
    newcomers: Newcomers,
    packets: Option<Packets>,
    guard: Option<Guard>,
    signals: Signals,
    /// What to know before trusting the result.
    notes: Vec<String>,
}

/// Runs it to the end, whatever happens.
pub(super) fn run(args: &Args, pid: u32, choice: Choice) -> Result<Outcome> {
    let Choice { program, connections, mut listeners, newcomers, is_elsewhere } = choice;
    let seed = args.seed.unwrap_or_else(any_seed);
    let mut trial = Trial::prepare(args, pid, connections, newcomers, is_elsewhere)?;
    let (pairs, end) = trial.pairs(&mut fastrand::Rng::with_seed(seed))?;
    let serves = trial.connections.iter().any(|one| one.chosen.role == Role::Server);
    let takes_turns = trial.takes_turns();
    let interface = trial.interface(&pairs);
    trial.note_newcomers();
    let mut notes = std::mem::take(&mut trial.notes);
    let keep = args.keep && end != End::BrokenOff;
    let mut accounts = trial.finish(keep);
    if keep {
        accounts.extend(listeners.iter_mut().map(pass_on));
    }
    notes.extend(accounts.iter().filter(|account| !account.is_known()).map(|account| {
        format!("The option of fd {} ({}) may not be as it should.", account.fd, account.local)
    }));
    let (option, planned, block) = (args.option.option(), args.blocks, args.block);
    #[rustfmt::skip]
    let outcome = Outcome {
        pid, program, option, keep, planned, block, seed, pairs, takes_turns, accounts, end, interface, notes, serves,
    };
    Ok(outcome)
}

/// Short enough to be typed again.
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::from(now.map_or(0, |now| now.subsec_micros()))
}

/// Switches a listening socket on for good: what it accepts inherits the option.
fn pass_on(listener: &mut Chosen) -> Account {
    let switched = &mut listener.switched;
    let after = switched.set(true).and_then(|()| switched.now());
    switched.keep();
    let (fd, before) = (switched.descriptor().fd, switched.before());
    Account { fd, local: listener.local, peer: None, before, after, overruled: 0 }
}

impl<'a> Trial<'a> {
    /// Gets ready to measure, and to put back; touches nothing yet.
    fn prepare(
        args: &'a Args,
        pid: u32,
        connections: Vec<Chosen>,
        newcomers: Newcomers,
        is_elsewhere: bool,
    ) -> Result<Self> {
        let mut notes = Vec::new();
        let packets = Packets::open(pid, is_elsewhere, &connections);
        if let (Err(why), false) = (&packets, connections.is_empty()) {
            let shows = args.option.option() != TcpOption::QuickAck;
            ensure!(shows, "what TCP_QUICKACK changes shows in packets alone: {why}");
            notes.push(format!("Packets were not seen ({why}): exchanges and gaps were not measured."));
        }
        let signals = Signals::listen().context("signals cannot be caught, so nothing was touched")?;
        let guard = Guard::start().ok();
        if guard.is_none() {
            let note = "There was no second process: killed, tcpwhy could not have put anything back.";
            notes.push(note.to_owned());
        }
        let connections = connections.into_iter().map(Connection::new).collect();
        let packets = packets.ok();
        let mut trial = Self { args, pid, connections, newcomers, packets, guard, signals, notes };
        trial.remember()?;
        Ok(trial)
    }

    /// Tells the second process what to put back, before anything is switched.
    fn remember(&mut self) -> Result<()> {
        if let Some(guard) = &mut self.guard {
            for one in &self.connections {
                guard
                    .remember(&one.chosen.switched, self.args.option.option())
                    .context("the second process is gone")?;
            }
        }
        Ok(())
    }

    fn pairs(&mut self, random: &mut fastrand::Rng) -> Result<(Vec<[Block; 2]>, End)> {
        let mut pairs = Vec::new();
        if self.connections.is_empty() {
            return Ok((pairs, End::Whole));
        }
        let bar = bar(self.args);
        for _ in 0..self.args.blocks / 2 {
            let first = random.bool();
            let mut pair = Vec::new();
            for is_on in [first, !first] {
                bar.set_message(format!(
                    "{} {}",
                    self.args.option.option().name(),
                    if is_on { "on" } else { "off" }
                ));
                match self.block(is_on)? {
                    Ok(block) => pair.push(block),
                    Err(end) => return Ok((pairs, end)),
                }
                bar.inc(1);
            }
            pairs.extend(<[Block; 2]>::try_from(pair).ok());
        }
        Ok((pairs, End::Whole))
    }

    /// One block, or why there is none.
    fn block(&mut self, is_on: bool) -> Result<Result<Block, End>> {
        let begun = Instant::now();
        self.switch(is_on)?;
        let settled = nanoseconds(SystemTime::now()) + SETTLING.as_nanos() as i64;
        let mut tally = Tally::new(is_on, settled, self.packets.is_some());
        if let Some(end) = self.watch(begun + SETTLING, is_on, &mut tally, false)? {
            return Ok(Err(end));
        }
        let (measured, acks) = (Instant::now(), delayed_acks(self.pid));
        if let Some(end) = self.watch(begun + self.args.block, is_on, &mut tally, true)? {
            return Ok(Err(end));
        }
        let acks = delayed_acks(self.pid).zip(acks).map(|(after, before)| after.saturating_sub(before));
        Ok(Ok(tally.finish(measured.elapsed().as_secs_f64(), acks)))
    }

    /// Switches all connections that are there.
    fn switch(&mut self, is_on: bool) -> Result<()> {
        let option = self.args.option.option();
        for one in self.connections.iter_mut().filter(|one| !one.is_gone) {
            let overruled = one.chosen.switched.overruled();
            one.switch(option, is_on)?;
            if let (Some(guard), true) = (&mut self.guard, one.chosen.switched.overruled() > overruled) {
                // Without it we still put back ourselves.
                let _ = guard.remember(&one.chosen.switched, option);
            }
        }
        Ok(())
    }

    /// Takes what happens until then.
    fn watch(&mut self, until: Instant, is_on: bool, tally: &mut Tally, counts: bool) -> Result<Option<End>> {
        let mut last = Instant::now();
        self.connections.iter_mut().for_each(|one| one.left = None);
        loop {
            let rest = until.saturating_duration_since(Instant::now());
            thread::sleep(LOOK_EVERY.min(rest));
            self.drain(tally).context("packets cannot be read any longer")?;
            let now = Instant::now();
            self.look((now - last).as_nanos() as i64, is_on, if counts { Some(&mut *tally) } else { None });
            last = now;
            self.welcome(is_on)?;
            if self.signals.received() {
                return Ok(Some(End::BrokenOff));
            }
            if self.is_over() {
                return Ok(Some(End::Gone));
            }
            if rest.is_zero() {
                return Ok(None);
            }
        }
    }

    /// Switches what the program has opened since the last time, where that was agreed to.
    fn welcome(&mut self, is_on: bool) -> Result<()> {
        for chosen in self.newcomers.find() {
            if let Some(guard) = &mut self.guard {
                guard
                    .remember(&chosen.switched, self.args.option.option())
                    .context("the second process is gone")?;
            }
            if let Some(packets) = &mut self.packets {
                packets.add(&chosen, self.connections.len());
            }
            let mut connection = Connection::new(chosen);
            connection.switch(self.args.option.option(), is_on)?;
            self.connections.push(connection);
        }
        Ok(())
    }

    /// Whether nothing is left to be measured.
    fn is_over(&self) -> bool {
        let may_come = || self.newcomers.are_meant && process::is_running(self.pid);
        self.connections.iter().all(|one| one.is_gone) && !may_come()
    }

    fn drain(&mut self, tally: &mut Tally) -> io::Result<()> {
        let (Some(packets), connections) = (&mut self.packets, &mut self.connections) else { return Ok(()) };
        packets.drain(|time, one, direction: Direction| {
            tally.segment(&mut connections[one].conversation, time, direction);
        })
    }

    /// One look at each socket, so long after the one before. `TCP_QUICKACK` is set again each time.
    fn look(&mut self, ns: i64, is_on: bool, mut tally: Option<&mut Tally>) {
        let sets_again = is_on && self.args.option.option() == TcpOption::QuickAck;
        for one in self.connections.iter_mut().filter(|one| !one.is_gone) {
            if sets_again {
                one.is_gone |= one.chosen.switched.set(true).is_err();
            }
            let Some(seen) = one.seen() else { continue };
            if let (Some(tally), Some(left)) = (tally.as_deref_mut(), one.left) {
                tally.look(ns, seen.unsent, seen.left.saturating_sub(left));
            }
            one.left = Some(seen.left);
        }
    }

    fn takes_turns(&self) -> bool {
        let told = || self.connections.iter().filter_map(|one| one.conversation.takes_turns());
        told().next().is_some() && told().all(|takes| takes)
    }

    /// What to know of connections that were opened meanwhile.
    fn note_newcomers(&mut self) {
        let many = match self.newcomers.left_alone {
            0 => return,
            1 => "1 connection was".to_owned(),
            n => format!("{n} connections were"),
        };
        let why = if self.newcomers.are_meant { "they were too many" } else { "--all takes later ones, too" };
        self.notes.push(format!("{many} opened meanwhile and not touched: {why}."));
    }

    /// The interface on which packets were seen.
    fn interface(&mut self, pairs: &[[Block; 2]]) -> Option<String> {
        let packets = self.packets.as_mut()?;
        let blocks = || pairs.iter().flatten();
        if blocks().all(|block| block.segments == Some(0)) && blocks().any(|block| block.bytes > 0) {
            self.notes.push(format!(
                "No packet of these connections passed {}: only the sockets were looked at.",
                packets.interface
            ));
            return None;
        }
        match packets.dropped() {
            0 => {}
            some => self.notes.push(format!("{some} packets came too fast to be seen.")),
        }
        Some(packets.interface.clone())
    }

    /// Puts back, or leaves on, and says what is there now.
    fn finish(mut self, is_kept: bool) -> Vec<Account> {
        let accounts: Vec<_> = self.connections.iter_mut().map(|one| one.end(is_kept)).collect();
        // Where something could not be put back, the second process tries again when we end.
        let is_done = is_kept || accounts.iter().all(|account| account.is_known());
        if let (Some(guard), true) = (self.guard.take(), is_done) {
            guard.dismiss();
        }
        self.signals.release();
        accounts
    }
}

impl Connection {
    fn new(chosen: Chosen) -> Self {
        Self { conversation: Conversation::new(chosen.role), chosen, left: None, is_gone: false }
    }

    /// A socket that cannot be switched, and is not gone, is an error: the block would have both settings.
    fn switch(&mut self, option: TcpOption, is_on: bool) -> Result<()> {
        let switched = &mut self.chosen.switched;
        // What the kernel does by itself is what there is without TCP_QUICKACK.
        let value = if option == TcpOption::QuickAck && !is_on { switched.before() } else { is_on };
        match switched.set(value) {
            Err(Refused::Gone) => {
                self.is_gone = true;
                Ok(())
            }
            done => done.with_context(|| format!("{} cannot be switched any longer", self.name())),
        }
    }

    /// `fd 4 10.0.0.1:80 → 10.0.0.2:4711`
    fn name(&self) -> String {
        let Chosen { switched, local, peer, .. } = &self.chosen;
        format!("fd {} {local} → {peer}", switched.descriptor().fd)
    }

    fn seen(&mut self) -> Option<Seen> {
        let socket = match self.chosen.switched.descriptor().duplicate() {
            Ok(socket) => socket,
            Err(Refused::Gone) => {
                self.is_gone = true;
                return None;
            }
            Err(_) => return None,
        };
        let info = info(socket).ok()?;
        let left = info.bytes_sent?.saturating_sub(info.bytes_retransmitted.unwrap_or(0));
        Some(Seen { unsent: info.not_sent?, left })
    }

    fn end(&mut self, is_kept: bool) -> Account {
        let switched = &mut self.chosen.switched;
        let (before, overruled) = (switched.before(), switched.overruled());
        let done = if is_kept { switched.set(true) } else { switched.put_back() };
        let after = done.and_then(|()| switched.now());
        if is_kept {
            switched.keep();
        }
        let Chosen { local, peer, .. } = self.chosen;
        Account {
            fd: self.chosen.switched.descriptor().fd,
            local,
            peer: Some(peer),
            before,
            after,
            overruled,
        }
    }
}

fn bar(args: &Args) -> ProgressBar {
    let style = ProgressStyle::with_template("block {pos} of {len}, {msg} · Ctrl-C ends and puts back");
    let bar = ProgressBar::new(args.blocks as u64).with_finish(ProgressFinish::AndClear);
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

fn nanoseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
