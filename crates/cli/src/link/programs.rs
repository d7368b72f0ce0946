//! The two programs: the peer first, the command once the peer listens, and the end of both.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use tcpwhy_lab::place::{Place, Seat, join};

use super::signals::{self, Signals};
use super::sockets;

/// How long the peer has to listen before the command is started all the same: Java takes a second or two.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at sockets and children.
const LOOK: Duration = Duration::from_millis(5);
/// How long the peer's connections may go on after the command's end: its last packets are under way.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long the peer has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// Runs what follows and hands on how it ended, as 128 + n after signal n. It is the first process of a PID
/// namespace: as such the command itself would not get signals that it does not handle (`pid_namespaces(7)`).
const WARD: &str = r#""$@"; exit $?"#;

/// The same for the peer, which is ended by a signal: without the shell's word on that. The parentheses keep the
/// redirection from the shell itself (dash redirects its own output while it waits for a command).
const QUIET_WARD: &str = r#"exec 3>&2 2>/dev/null; (exec "$@" 2>&3 3>&-); exit $?"#;

/// In arguments, the peer's address.
const PEER: &str = "{peer}";

/// What to run.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    /// The client: a program and its arguments.
    pub(super) command: Vec<OsString>,
    /// The other side, a line for the shell.
    pub(super) peer: Option<String>,
}

/// How it ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    /// The command's exit status; 128 + n after signal n.
    pub(super) status: u8,
    /// How long the command ran.
    pub(super) took: Duration,
    /// What is to be known about the peer.
    pub(super) notes: Vec<String>,
}

/// Runs both on their hosts.
pub(super) fn run(place: &Place, programs: &Programs, signals: &Signals) -> Result<Ended> {
    let mut notes = Vec::new();
    let peer = match &programs.peer {
        Some(line) => {
            let (peer, note) = Peer::start(place, line, signals)?;
            notes.extend(note);
            Some(peer)
        }
        None => None,
    };
    let begin = Instant::now();
    let status = join(client(place, programs, signals));
    let took = begin.elapsed();
    if let Some(peer) = peer {
        notes.extend(peer.stop()?);
    }
    Ok(Ended { status: code(status?), took, notes })
}

fn client(place: &Place, programs: &Programs, signals: &Signals) -> JoinHandle<Result<ExitStatus>> {
    let (seat, peer) = (place.client.clone(), place.server.clone());
    let (programs, signals) = (programs.clone(), signals.clone());
    place.client.spawn(move || {
        let address = peer.address().to_string();
        let arguments = programs.command.iter().map(|argument| with_peer(argument, &address));
        let mut command = command(&seat, &peer);
        command.args(["-c", WARD, "sh"]).args(arguments);
        if !signals::from_terminal() {
            // Signals that are handed on reach it alone.
            command.process_group(0);
        }
        let mut child = command.spawn().context("cannot start the command")?;
        signals.hand_on_to(Some(child.id()));
        let status = child.wait();
        signals.hand_on_to(None);
        Ok(status?)
    })
}

/// A shell on this host, which knows both addresses and how to enter the other host.
fn command(seat: &Seat, peer: &Seat) -> Command {
    let mut command = seat.command("sh");
    command.env("TCPWHY_LOCAL", seat.address().to_string());
    command.env("TCPWHY_PEER", peer.address().to_string()).env("TCPWHY_PEER_NET", peer.network());
    command
}

/// The argument with the peer's address where it asks for it. What is no UTF-8 is left alone.
fn with_peer(argument: &OsString, address: &str) -> OsString {
    argument.to_str().map_or_else(|| argument.clone(), |text| text.replace(PEER, address).into())
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The program on the other side.
struct Peer {
    stop: Sender<()>,
    thread: JoinHandle<Result<Option<String>>>,
}

impl Peer {
    /// Starts it and waits until it listens. The note says so if it did not.
    fn start(place: &Place, line: &str, signals: &Signals) -> Result<(Self, Option<String>)> {
        let (stop, stopped) = channel();
        let (listens, waiting) = channel();
        let (seat, client, line) = (place.server.clone(), place.client.clone(), line.to_owned());
        let thread = place.server.spawn(move || {
            let mut command = command(&seat, &client);
            command
                .args(["-c", QUIET_WARD, "sh", "sh", "-c", &line.replace(PEER, &seat.address().to_string())])
                .stdin(Stdio::null())
                // Standard output is the command's.
                .stdout(io::stderr().as_fd().try_clone_to_owned()?)
                // Ctrl-C is the command's: the peer ends when its client has.
                .process_group(0);
            let child = command.spawn().context("cannot start the peer")?;
            watch(child, &listens, &stopped)
        });
        let peer = Self { stop, thread };
        let begin = Instant::now();
        loop {
            if signals.received() {
                peer.stop()?;
                bail!("stopped before the peer listened");
            }
            match waiting.recv_timeout(LOOK) {
                Ok(()) => return Ok((peer, None)),
                Err(RecvTimeoutError::Timeout) if begin.elapsed() < PATIENCE => {}
                Err(RecvTimeoutError::Timeout) => {
                    let note = format!(
                        "The peer had no socket to be reached by after {} s; the command was started all the same.",
                        PATIENCE.as_secs()
                    );
                    return Ok((peer, Some(note)));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let how = peer.stop()?.unwrap_or_default();
                    bail!("nothing was run, since nobody listened: {how}");
                }
            }
        }
    }

    /// Ends it, once its connections have; the note says so if it had ended by itself.
    fn stop(self) -> Result<Option<String>> {
        // It has ended where nobody receives.
        let _ = self.stop.send(());
        join(self.thread)
    }
}

/// Tells when the child listens; ends it when it is told to. Runs on the peer's host.
fn watch(mut child: Child, listens: &Sender<()>, stopped: &Receiver<()>) -> Result<Option<String>> {
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(format!("The peer ended by itself, with exit status {}.", code(status))));
        }
        if !told && sockets::listening() {
            told = true;
            // Nobody waits any more once the command runs.
            let _ = listens.send(());
        }
        match stopped.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if told {
        within(LAST_WORDS, || Ok(!sockets::talking()))?;
    }
    signals::send_to_descendants(child.id(), Signal::TERM);
    if !within(GRACE, || Ok(child.try_wait()?.is_some()))? {
        child.kill()?;
        child.wait()?;
    }
    Ok(None)
}

/// Whether it became so in time.
fn within(limit: Duration, mut so: impl FnMut() -> io::Result<bool>) -> io::Result<bool> {
    let begin = Instant::now();
    while !so()? {
        if begin.elapsed() >= limit {
            return Ok(false);
        }
        std::thread::sleep(LOOK);
    }
    Ok(true)
}
