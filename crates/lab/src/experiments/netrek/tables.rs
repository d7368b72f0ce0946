//! What was measured, as tables.

use super::Options;
use super::games::{Part, Shown};
use crate::experiments::Table;
use crate::experiments::figures::{median, or_dash, picture, quantile};
use crate::programs::updates::Carrier;

/// Bars of a second's picture: a tenth of a second each.
const TENTHS: i64 = 10;

pub(super) fn of(shown: &[Shown]) -> Vec<Table> {
    let part = |part: Part| shown.iter().filter(|game| game.plan.part == part).collect::<Vec<_>>();
    let mut tables = vec![
        games("What arrives at the client, on a local network", &part(Part::Mail)),
        games("Over longer round trips", &part(Part::Far)),
    ];
    tables.extend(part(Part::Repair).into_iter().map(seconds));
    tables.push(games("Through a relay, from a server that sets TCP_NODELAY", &part(Part::Relay)));
    tables.push(load(&part(Part::Mail)));
    tables.push(logins(&part(Part::Login)));
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// What is different about the game.
fn name(game: &Shown) -> String {
    let plan = &game.plan;
    match plan.part {
        Part::Far => format!("{}, {} ms", plan.mode, plan.round_trip_ms),
        Part::Mail => format!("{} {}/s", plan.mode, plan.game.rate),
        _ => plan.mode.to_owned(),
    }
}

/// Whose delayed ACK the client has; UDP has none.
fn acks(game: &Shown) -> &'static str {
    if game.plan.game.carrier == Carrier::Udp { "–" } else { game.plan.receiver.name() }
}

fn games(title: &str, games: &[&Shown]) -> Table {
    let columns = [
        "game",
        "ACKs",
        "segments a second",
        "bytes each",
        "updates each",
        "gap p50 ms",
        "gap max ms",
        "age max ms",
    ];
    let mut table = Table::new(title, &columns);
    for game in games {
        let (gaps, ages) = (game.arrivals.gaps(), game.played.ages());
        let tenth = |value: Option<f64>| or_dash(value, |ms| format!("{ms:.1}"));
        table.row([
            name(game),
            acks(game).to_owned(),
            format!("{:.1}", game.rate()),
            or_dash(game.arrivals.usual_size(), |size| format!("{size:.0}")),
            format!("{:.1}", game.merged()),
            tenth(median(&gaps)),
            tenth(quantile(&gaps, 1.0)),
            tenth(quantile(&ages, 1.0)),
        ]);
    }
    table
}

/// The game in which Repair was pressed, second by second.
fn seconds(game: &Shown) -> Table {
    let columns = ["second", "TCP_ NODELAY", "segments", "one bar each 0.1 s", "bytes each", "gap max ms"];
    let mut table = Table::new("The Repair key, second by second (1990s' ACKs)", &columns);
    let Some(&start) = game.played.written.first() else { return table };
    let end = game.arrivals.0.last().map_or(start, |last| last.time);
    for second in 0..=(end - start) / 1_000_000_000 {
        let arrived = game.arrivals.second(start, second);
        let tenths: Vec<f64> = (0..TENTHS)
            .map(|tenth| {
                let from = start + second * 1_000_000_000 + tenth * 100_000_000;
                let inside = arrived.0.iter().filter(|one| (from..from + 100_000_000).contains(&one.time));
                inside.count() as f64
            })
            .collect();
        table.row([
            (second + 1).to_string(),
            if is_on(game, start + second * 1_000_000_000) { "on" } else { "off" }.to_owned(),
            arrived.0.len().to_string(),
            format!("[{}]", picture(&tenths)),
            arrived.sizes(),
            or_dash(quantile(&arrived.gaps(), 1.0), |ms| format!("{ms:.0}")),
        ]);
    }
    table
}

/// Whether the option was on at the end of the tenth of a second that begins then.
fn is_on(game: &Shown, time: i64) -> bool {
    let before = game.played.repairs.iter().take_while(|(at, _)| *at < time + 100_000_000);
    before.last().map_or(game.plan.game.nodelay, |(_, on)| *on)
}

/// Packets and bytes that each game puts on the network.
fn load(games: &[&Shown]) -> Table {
    let columns = ["game", "ACKs", "packets a second", "bytes a second", "packets an update"];
    let mut table = Table::new("What it costs: packets both ways, bytes with headers", &columns);
    for game in games {
        let (seconds, updates) = (game.plan.game.length.as_secs_f64(), game.played.written.len().max(1));
        let (packets, bytes) = game.load;
        table.row([
            name(game),
            acks(game).to_owned(),
            format!("{:.1}", packets as f64 / seconds),
            format!("{:.0}", bytes as f64 / seconds),
            format!("{:.2}", packets as f64 / updates as f64),
        ]);
    }
    table
}

fn logins(games: &[&Shown]) -> Table {
    let mut table =
        Table::new("Login: until the first frame", &["login", "ACKs", "first frame ms", "packets both ways"]);
    for game in games {
        table.row([
            name(game),
            acks(game).to_owned(),
            or_dash(game.played.first_frame(), |ms| format!("{ms:.1}")),
            game.load.0.to_string(),
        ]);
    }
    table
}

pub(super) fn notes(shown: &[Shown], options: &Options) -> Vec<String> {
    let mut notes = vec![
        format!(
            "1990s' ACKs: the link holds the client's pure ACKs until the next tick of a timer of {} ms, or until \
             data or a second full-sized segment takes them along, and senders know no tail loss probe and wait 1 s \
             at least before they retransmit; else probes of 2013 would answer every ACK that is held. Today's ACKs \
             are this kernel's own.",
            options.ack_timer
        ),
        "A client that only receives has its ACKs sent as soon as its program reads (Linux leaves quick-ACK mode \
         only for two-way talk): today updates are merged once the round trip exceeds their interval."
            .to_owned(),
        "Age: from the server's write() to the client's read(), by the programs' logs. All other figures are from \
         the client's capture."
            .to_owned(),
    ];
    let voided: u32 = shown.iter().map(|game| game.voided).sum();
    if voided > 0 {
        notes.push(format!(
            "Runs that were void, because the emulated link was late, and were made again: {voided}."
        ));
    }
    notes
}
