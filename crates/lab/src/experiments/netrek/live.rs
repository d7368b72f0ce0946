//! One long game for somebody who watches, with the Repair key under their finger.

use std::time::Duration;

use anyhow::{Context, Result};

use super::games::{Receiver, link, old_senders, start};
use super::{Options, SOURCE, seconds};
use crate::capture::Vantage;
use crate::experiments::arrivals::Arrivals;
use crate::experiments::figures::picture;
use crate::experiments::{Outcome, Table};
use crate::lab::Lab;
use crate::place::Path;
use crate::programs::updates::{Game, Playing};

/// Length of the game unless it is said otherwise.
const LENGTH_S: f64 = 60.0;
/// Time between two looks at the keyboard.
const LOOK: Duration = Duration::from_millis(20);

/// Plays it, tells each second as it passes, and then each second as the capture has it.
pub(super) fn play(lab: &Lab<'_>, options: &Options) -> Result<Outcome> {
    let game = Game {
        repair_at: options.repair_at.map(seconds),
        ..Game::tcp(options.rate(), seconds(options.seconds.unwrap_or(LENGTH_S)))
    };
    lab.progress.runs(1);
    lab.progress.line(&format!(
        "{}/s over TCP to a receiver of the 1990s. r: Repair (TCP_NODELAY on or off), q: quit",
        game.rate
    ));
    let path = Path::Link(link(options.lan, Receiver::Old, options));
    let recording = lab.record("play", &path, |place| {
        old_senders(place)?;
        let (playing, _) = start(place, &game, None)?;
        watch(lab, &playing);
        playing.finish()
    })?;
    let played = recording.value;
    let capture = recording
        .captures
        .iter()
        .find(|capture| capture.vantage == Vantage::Client)
        .context("the client's capture is missing")?;
    let begun = played.written.first().copied().unwrap_or_default();
    let arrivals = Arrivals::of(capture, played.port, begun);
    let mut table = Table::new("What arrived, by the capture", &["second", "segments", "bytes each"]);
    let end = arrivals.0.last().map_or(begun, |last| last.time);
    for second in 0..=(end - begun) / 1_000_000_000 {
        let arrived = arrivals.second(begun, second);
        table.row([(second + 1).to_string(), arrived.0.len().to_string(), arrived.sizes()]);
    }
    let mut outcome = Outcome::new("netrek", SOURCE);
    outcome.tables.push(table);
    let toggles = played.repairs.iter().map(|(at, on)| {
        let word = if *on { "on" } else { "off" };
        format!("Repair: TCP_NODELAY {word} {:.1} s into the game.", (at - begun) as f64 / 1e9)
    });
    outcome.notes.extend(toggles);
    Ok(outcome)
}

/// Passes keys on and tells what the client's reads brought, second by second.
fn watch(lab: &Lab<'_>, playing: &Playing) {
    let (mut told, mut second, mut start) = (0, 1, None);
    while !playing.is_over() {
        match lab.progress.key() {
            Some('r' | 'R') => {
                let word = if playing.repair() { "on" } else { "off" };
                lab.progress.line(&format!("  Repair: TCP_NODELAY {word}"));
            }
            Some('q' | 'Q') => playing.quit(),
            _ => {}
        }
        let reads = playing.reads(told);
        start = start.or_else(|| reads.first().map(|(time, _)| *time));
        if let (Some(begun), Some((last, _))) = (start, reads.last())
            && last - begun >= second * 1_000_000_000
        {
            let edge = begun + second * 1_000_000_000;
            let inside: Vec<(i64, u32)> =
                reads.iter().copied().take_while(|(time, _)| *time < edge).collect();
            told += inside.len();
            lab.progress.line(&told_second(second, edge - 1_000_000_000, &inside));
            second += 1;
        }
        std::thread::sleep(LOOK);
    }
}

/// `  4 s  5 reads  [▄ ▄ ▄ ▄ ▄ ]  2 2 2 2 2 updates`: each bar is a tenth of a second.
fn told_second(second: i64, from: i64, reads: &[(i64, u32)]) -> String {
    let mut tenths = [0.0; 10];
    for (time, updates) in reads {
        let tenth = usize::try_from((time - from) / 100_000_000).unwrap_or(0).min(9);
        tenths[tenth] += f64::from(*updates);
    }
    let updates: Vec<String> = reads.iter().map(|(_, updates)| updates.to_string()).collect();
    format!("{second:>3} s {:>3} reads  [{}]  updates: {}", reads.len(), picture(&tenths), updates.join(" "))
}
