//! What a proxy does to updates and to requests, in two captures: one on each of its sides.

mod runs;

use anyhow::Result;

use super::figures::{or_dash, quantile, time};
use super::{Claim, Outcome, Table, Verdict};
use crate::lab::Lab;
use crate::programs::relay::Options as Set;
use runs::{Passed, Says};

/// One line about it.
pub const ABOUT: &str = "A proxy that merges again what was sent apart, seen from both sides";
/// Where the story is from.
pub const SOURCE: &str = "James Cameron, Vanilla Netrek clients mailing list, 1990s: a proxy such as trekhopd \
                          merges again unless it sets TCP_NODELAY";
/// Roughly how long a run with the defaults takes.
pub const SECONDS: u64 = 35;

/// A side that keeps this share of the segments that came in does not merge.
const KEPT: f64 = 0.95;
/// A relay that takes this long over a piece is waiting for an ACK: Linux' shortest delayed ACK is 40 ms.
const WAITS_MS: f64 = 35.0;

/// `tcpwhy lab relay`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Updates a second
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    pub rate: f64,

    /// Length of each game in s (6, with --quick 2)
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// Requests through each relay (60, with --quick 15)
    #[arg(long, value_name = "N")]
    pub requests: Option<usize>,

    /// The client's work between the two pieces of a request in ms; without any the relay reads them as one
    #[arg(long, value_name = "MS", default_value_t = 3.0)]
    pub work: f64,

    /// Round trip of each hop in ms
    #[arg(long, value_name = "MS", default_value_t = 1.0)]
    pub round_trip: f64,

    /// Period in ms of the timer on which the game's client sends its delayed ACKs; 0 for this kernel's own
    #[arg(long, value_name = "MS", default_value_t = 200.0)]
    pub ack_timer: f64,

    /// The game server's TCP_NODELAY: true or false
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub server_nodelay: bool,

    /// The requesting client's TCP_NODELAY: true or false
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub client_nodelay: bool,
}

/// The relays: without the option, with it on one of the sockets, on both.
const RELAYS: [(&str, Set); 4] = [
    ("plain", Set { nodelay_near: false, nodelay_far: false }),
    ("client's side", Set { nodelay_near: true, nodelay_far: false }),
    ("server's side", Set { nodelay_near: false, nodelay_far: true }),
    ("both sides", Set::BOTH),
];

/// Plays a game and makes requests through each relay.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<Outcome> {
    lab.progress.runs(2 * RELAYS.len() as u64);
    let each = |run: fn(&Lab<'_>, &Options, &'static str, Set) -> Result<Passed>| -> Result<Vec<Passed>> {
        RELAYS.iter().map(|(name, set)| run(lab, options, name, *set)).collect()
    };
    let (games, asked) = (each(runs::updates)?, each(runs::requests)?);
    let mut outcome = Outcome::new("relay", SOURCE);
    outcome.claims =
        [merges(&games), other_side(&games, &asked), splits(&asked)].into_iter().flatten().collect();
    outcome.tables = vec![
        passed("Updates from server to client, by TCP_NODELAY on the relay's sockets", &games, false),
        passed("Requests in two pieces from client to server", &asked, true),
        says("tcpwhy says of the updates", &games),
        says("tcpwhy says of the requests", &asked),
    ];
    outcome.notes = vec![
        "In and out: segments with data as each of the relay's two captures has them. Added: from a segment's \
         arrival at the relay until the segment with its last byte left."
            .to_owned(),
        "A capture on one side cannot show what happens on the other: the side on which tcpwhy finds the wait is the \
         side that waits."
            .to_owned(),
    ];
    let voided: u32 = games.iter().chain(&asked).map(|passed| passed.voided).sum();
    if voided > 0 {
        outcome.notes.push(format!(
            "Runs that were void, because the emulated link was late, and were made again: {voided}."
        ));
    }
    Ok(outcome)
}

fn named<'a>(all: &'a [Passed], relay: &str) -> Option<&'a Passed> {
    all.iter().find(|passed| passed.relay == relay)
}

fn merges(games: &[Passed]) -> Option<Claim> {
    let (plain, both) = (named(games, "plain")?, named(games, "both sides")?);
    let holds = plain.kept() < KEPT && both.kept() >= KEPT;
    Some(Claim {
        claim: "A proxy that does not set TCP_NODELAY merges what passes through it",
        seed: "expected, not measured",
        measured: format!(
            "{:.1}/s in, {:.1}/s out; with the option on both sockets {:.1}/s in, {:.1}/s out",
            plain.rate_in(),
            plain.rate_out(),
            both.rate_in(),
            both.rate_out()
        ),
        verdict: Verdict::from(holds, "what comes in goes out"),
    })
}

fn other_side(games: &[Passed], asked: &[Passed]) -> Option<Claim> {
    let kept = |relay| named(games, relay).map(Passed::kept);
    let (near, far) = (kept("client's side")?, kept("server's side")?);
    let added = |relay| named(asked, relay).and_then(|passed| quantile(&passed.added, 0.9));
    let (asked_near, asked_far) = (added("client's side")?, added("server's side")?);
    let holds = near >= KEPT && far < KEPT && asked_near >= WAITS_MS && asked_far < WAITS_MS;
    Some(Claim {
        claim: "Only the socket on which the proxy writes matters",
        seed: "",
        measured: format!(
            "of the updates' segments {:.0} % go out with the option towards the client, {:.0} % with it towards the \
             server; requests wait up to {} and {} (p90)",
            near * 100.0,
            far * 100.0,
            time(asked_near),
            time(asked_far)
        ),
        verdict: Verdict::from(holds, "the option on the other socket does as much"),
    })
}

fn splits(asked: &[Passed]) -> Option<Claim> {
    let (plain, both) = (named(asked, "plain")?, named(asked, "both sides")?);
    let answer = |passed: &Passed| quantile(&passed.answers, 0.5);
    let (slow, fast) = (answer(plain)?, answer(both)?);
    Some(Claim {
        claim: "A plain proxy makes requests wait although the client set the option",
        seed: "",
        measured: format!("half of the answers take {} or more, {} with the option", time(slow), time(fast)),
        verdict: Verdict::from(slow >= fast + WAITS_MS, "answers are as fast through a plain proxy"),
    })
}

fn passed(title: &str, all: &[Passed], answers: bool) -> Table {
    let mut columns =
        vec!["TCP_NODELAY", "in a second", "out a second", "in for one out", "added p50 ms", "added max ms"];
    if answers {
        columns.push("answer p50 ms");
    }
    let mut table = Table::new(title, &columns);
    let tenth = |value: Option<f64>| or_dash(value, |ms| format!("{ms:.1}"));
    for one in all {
        let mut row = vec![
            one.relay.to_owned(),
            format!("{:.1}", one.rate_in()),
            format!("{:.1}", one.rate_out()),
            format!("{:.2}", 1.0 / one.kept()),
            tenth(quantile(&one.added, 0.5)),
            tenth(quantile(&one.added, 1.0)),
        ];
        if answers {
            row.push(tenth(quantile(&one.answers, 0.5)));
        }
        table.row(row);
    }
    table
}

fn says(title: &str, all: &[Passed]) -> Table {
    let mut table = Table::new(title, &["TCP_NODELAY", "of the client's side", "of the server's side"]);
    for Passed { relay, says: Says { near, far }, .. } in all {
        table.row([(*relay).to_owned(), near.clone(), far.clone()]);
    }
    table
}
