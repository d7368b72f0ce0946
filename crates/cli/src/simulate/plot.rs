//! The variants' time-sequence plots, side by side.

use std::path::Path;

use anyhow::{Result, ensure};
use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::report::{self, Connection, Source};
use tcpwhy_report::plot::{Arrangement, HeldAck, Panel, Picture, svg};
use tcpwhy_simulate::scenario::Scenario;
use tcpwhy_simulate::world::Side;

use super::account::{Account, time};
use crate::plot;

/// Width of one panel and height of all, pixels.
const PANEL: (u32, u32) = (700, 640);
/// More are too narrow to be read.
const MOST: usize = 6;
/// Panels in one row; more stand above each other.
const IN_A_ROW: usize = 3;

pub(super) fn save(scenario: &Scenario, accounts: &[Account], path: &Path) -> Result<()> {
    ensure!(accounts.len() <= MOST, "more than {MOST} variants in one picture: name one with --variant");
    let format = plot::format_of(path)?;
    let bookings: Vec<_> =
        accounts.iter().map(|account| account.at_sender.bookings(0).unwrap_or_default()).collect();
    let panels: Vec<_> = accounts
        .iter()
        .zip(&bookings)
        .filter_map(|(account, bookings)| {
            let sender = side(account.measured.sender);
            let panel = Panel::of(&account.at_sender, bookings, &only(&account.at_sender)?, sender)?;
            let finished = account.measured.finished.map_or("not over".to_owned(), time);
            let heading = format!("{}: {finished}", account.name);
            Some(Panel { heading, held_acks: held(account), ..panel })
        })
        .collect();
    let count = panels.len() as u32;
    let arrangement = if panels.len() > IN_A_ROW { Arrangement::Stacked } else { Arrangement::SideBySide };
    let size = match arrangement {
        Arrangement::SideBySide => (PANEL.0 * count.max(1), PANEL.1),
        Arrangement::Stacked => (2 * PANEL.0, PANEL.1 / 2 * count),
    };
    let picture = svg(&Picture {
        title: scenario.name.clone(),
        subtitle: scenario.about.clone(),
        panels,
        arrangement,
        same_bytes: true,
        time: (None, None),
        size,
    });
    plot::write(path, format, picture)
}

/// The ACKs that the receiver held, as a capture at the receiver shows them: one at the sender cannot.
fn held(account: &Account) -> Vec<HeldAck> {
    let diagnosis = &account.at_receiver;
    let bookings = diagnosis.bookings(0).unwrap_or_default();
    let panel = only(diagnosis)
        .and_then(|connection| Panel::of(diagnosis, &bookings, &connection, side(account.measured.sender)));
    panel.map_or_else(Vec::new, |panel| panel.held_acks)
}

/// There is one connection.
fn only(diagnosis: &Diagnosis) -> Option<Connection> {
    diagnosis.connections().next()
}

fn side(side: Side) -> report::Side {
    match side {
        Side::Client => report::Side::Client,
        Side::Server => report::Side::Server,
    }
}
