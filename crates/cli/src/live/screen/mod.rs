//! The screen: connections by time lost, updated each second.

mod draw;
mod keys;
mod model;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::capture::Running;
use super::kept::Ends;
use crate::args::Color;
use crate::output;
use keys::Wish;
use model::{Model, Row};

/// Time between two looks at the capture.
const SECOND: Duration = Duration::from_secs(1);
/// With many connections a look takes long: looks are this many times as far apart as they take.
const REST: u32 = 10;
/// Time between two looks at the keyboard, in which a capture that ended is noticed.
const TICK: Duration = Duration::from_millis(100);
/// Files of one connection that are tried for a name that is free.
const FILES: u32 = 100;

/// Whether there is a terminal to draw on and to read keys from.
pub(super) fn is_possible() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// Shows the capture until it ends, or somebody has seen enough.
pub(super) fn show(running: &Running, color: Color) -> io::Result<()> {
    let mut model = Model::new(&running.interface, &running.filter, &running.names, output::colored(color));
    let mut terminal = ratatui::try_init()?;
    let result = follow(running, &mut model, &mut terminal);
    // Where the terminal is gone, `ratatui::restore` and the terminal's own end panic, since they say so there.
    if ratatui::try_restore().is_err() || result.is_err() {
        std::mem::forget(terminal);
    }
    result
}

fn follow(running: &Running, model: &mut Model, terminal: &mut DefaultTerminal) -> io::Result<()> {
    let start = Instant::now();
    let (mut next_look, mut is_stale) = (start, true);
    loop {
        let now = Instant::now();
        if !model.is_frozen() && now >= next_look {
            let Some(progress) = running.progress() else { return Ok(()) };
            model.update(progress, start.elapsed());
            next_look = now + SECOND.max(now.elapsed() * REST);
            is_stale = true;
        }
        if is_stale {
            terminal.draw(|frame| draw::draw(model, frame))?;
            is_stale = false;
        }
        if running.wait(Duration::ZERO) {
            return Ok(());
        }
        wait_for_key()?;
        // One read of the terminal may have brought several.
        while event::poll(Duration::ZERO)? {
            is_stale = true;
            match keys::pressed(model, &event::read()?) {
                Some(Wish::End) => return Ok(()),
                Some(Wish::Save) => {
                    let said = model.chosen().map(|row| save(running, row));
                    model.say(said.unwrap_or_else(|| "no connection is chosen".to_owned()));
                }
                None => {}
            }
        }
    }
}

/// Waits for a key, but no longer than [`TICK`]. A terminal that is gone is an error: `event::poll` would read its end again
/// and again, and never return.
fn wait_for_key() -> io::Result<()> {
    let stdin = io::stdin();
    let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
    let tick = Timespec::try_from(TICK).map_err(io::Error::other)?;
    match poll(&mut keys, Some(&tick)) {
        // A signal, which may have asked for the end.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if keys[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
        return Err(io::Error::other("the terminal is gone"));
    }
    Ok(())
}

/// Saves a connection's packets; what is to be said about it.
fn save(running: &Running, row: &Row) -> String {
    let Some(ends) = Ends::of(&row.connection) else { return "these ends have no addresses".to_owned() };
    for number in 1..=FILES {
        let path = file_name(row, number);
        match running.save(ends, path.clone()) {
            Ok(packets) => return format!("{packets} packets are in {}", path.display()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return format!("{} cannot be written: {error}", path.display()),
        }
    }
    format!("there are {FILES} files of this connection already")
}

/// `tcpwhy-10.0.0.1.4711-10.0.0.2.80.pcapng`, with a number from the second on: addresses and ports alone, whatever
/// is in the names.
fn file_name(row: &Row, number: u32) -> PathBuf {
    let safe = |end: &str| {
        let parts = end.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(".")
    };
    let number = if number == 1 { String::new() } else { format!("-{number}") };
    let connection = &row.connection;
    format!("tcpwhy-{}-{}{number}.pcapng", safe(&connection.client), safe(&connection.server)).into()
}

#[cfg(test)]
mod tests;
