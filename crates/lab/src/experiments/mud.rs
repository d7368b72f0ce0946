//! Requests with and without replies, and the two mixed.

use std::time::Duration;

use anyhow::Result;

use super::figures::{median, time};
use super::seen::{self, Silences};
use super::{Claim, Outcome, Table, Verdict};
use crate::capture::Vantage;
use crate::lab::Lab;
use crate::place::Path;
use crate::programs::mud::{self, Log, Traffic};

/// One line about it.
pub const ABOUT: &str = "Requests with and without replies, mixed: ten times slower, the CPU idle";
/// Where the story is from.
pub const SOURCE: &str = "Chris Gray, MUD-Dev mailing list, October 1998: \"socket slowdown solved\"";
/// Roughly how long a run with the defaults takes.
pub const SECONDS: u64 = 45;

/// Two runs of the same differ by less than this factor, even on a busy machine.
const SAME: f64 = 1.5;
/// Less than this, in ms, nobody notices in an upload of thousands of lines: a wait or two at its end.
const UNNOTICED: f64 = 200.0;
/// What the text calls drastic.
const DRASTIC: f64 = 10.0;
/// Less of the CPU than this is "very little".
const IDLE: f64 = 0.1;
/// The longest run of a quick experiment: some dozen waits.
const QUICK: f64 = 0.5;

/// `tcpwhy lab mud`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Lines that the client uploads in each run.
    #[arg(long, default_value_t = 30_000)]
    pub lines: u32,
    /// Seconds after which a slow run ends; how long all its lines would take is then extrapolated. 0: never.
    #[arg(long, default_value_t = 4.5)]
    pub budget: f64,
    /// In the mix: lines without a reply before each line with one.
    #[arg(long, default_value_t = 1)]
    pub without: u32,
    /// In the run at 1998's pace: µs of CPU time that the server spends on each line.
    #[arg(long, default_value_t = 1_000)]
    pub work: u64,
    /// Largest packet of the loopback interface in bytes.
    #[arg(long, default_value_t = 65_536)]
    pub mtu: u32,
}

/// One kind of upload.
struct Case {
    name: &'static str,
    traffic: Traffic,
    pieces: usize,
    work: Duration,
    /// Whether all four settings are run, or only none and both.
    all_settings: bool,
}

/// Who sets `TCP_NODELAY`: client, server.
const SETTINGS: [(&str, bool, bool); 4] =
    [("neither", false, false), ("client", true, false), ("server", false, true), ("both", true, true)];
const NEITHER: usize = 0;
const CLIENT: usize = 1;
const SERVER: usize = 2;
const BOTH: usize = 3;

/// The cases' places in [`cases`].
const STREAM: usize = 0;
const PAIRS: usize = 1;
const MIX: usize = 2;
const PIECES: usize = 3;
const PACE: usize = 4;

fn cases(options: &Options) -> [Case; 5] {
    let mix = Traffic::Mix(options.without);
    let case = |name, traffic, pieces, all_settings| Case {
        name,
        traffic,
        pieces,
        all_settings,
        work: Duration::ZERO,
    };
    [
        case("no replies", Traffic::Stream, 1, true),
        case("a reply to each", Traffic::Pairs, 1, true),
        case("mixed", mix, 1, true),
        case("mixed, replies in 2 writes", mix, 2, true),
        Case { work: Duration::from_micros(options.work), ..case("mixed, slow server", mix, 1, false) },
    ]
}

/// One run: what the programs logged, and what the capture showed.
struct Run {
    log: Log,
    silences: Silences,
    finding: String,
}

/// Every run of a case, in the order of [`SETTINGS`].
type Runs = [Option<Run>; SETTINGS.len()];

/// Uploads the MUD, again and again.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<Outcome> {
    let cases = cases(options);
    let all: usize = cases.iter().map(|case| if case.all_settings { SETTINGS.len() } else { 2 }).sum();
    lab.progress.runs(all as u64);
    let mut runs = Vec::new();
    for case in &cases {
        let mut of_case: Runs = [const { None }; SETTINGS.len()];
        for (index, slot) in of_case.iter_mut().enumerate() {
            if case.all_settings || index == NEITHER || index == BOTH {
                *slot = Some(upload(lab, options, case, index)?);
            }
        }
        runs.push(of_case);
    }
    Ok(Outcome {
        claims: claims(&runs, options.lines),
        tables: vec![times(&cases, &runs, options), busy(&cases, &runs)],
        notes: notes(&runs, options),
        ..Outcome::new("mud", SOURCE)
    })
}

fn upload(lab: &Lab<'_>, options: &Options, case: &Case, setting: usize) -> Result<Run> {
    let (who, client_nodelay, server_nodelay) = SETTINGS[setting];
    let budget = match options.budget {
        _ if lab.quick => Duration::from_secs_f64(QUICK),
        0.0 => Duration::MAX,
        seconds => Duration::try_from_secs_f64(seconds)?,
    };
    let played = mud::Options {
        lines: options.lines,
        budget,
        traffic: case.traffic,
        client_nodelay,
        server_nodelay,
        pieces: case.pieces,
        work: case.work,
    };
    let name = format!("mud-{}-{who}", case.name.replace([' ', ','], "-").replace("--", "-"));
    let recording =
        lab.record(&name, &Path::Loopback { mtu: options.mtu }, |place| mud::play(place, &played))?;
    lab.keep_log(&name, &recording.value)?;
    let capture = recording.capture(Vantage::Both);
    let silences = capture.map(|capture| seen::silences(&capture.packets())).unwrap_or_default();
    Ok(Run { silences, finding: seen::finding(capture), log: recording.value })
}

/// What `lines` lines take at the pace of a run, in ms.
fn took(log: &Log, lines: u32) -> f64 {
    log.wall.as_secs_f64() * 1e3 * f64::from(lines) / log.lines.len().max(1) as f64
}

/// The share of the run's time that its two threads were on a CPU: 2 if both always were.
fn cpu(log: &Log) -> f64 {
    (log.client_cpu + log.server_cpu).as_secs_f64() / log.wall.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// How many times longer one run took than another; 1 where one of them was not made.
fn ratio(runs: &Runs, slow: usize, fast: usize) -> f64 {
    match (&runs[slow], &runs[fast]) {
        (Some(slow), Some(fast)) => took(&slow.log, 1) / took(&fast.log, 1),
        _ => 1.0,
    }
}

/// `1.0×`, `23×`, `2,900×`.
fn times_as(ratio: f64) -> String {
    match ratio {
        r if r < 9.95 => format!("{r:.1}×"),
        r if r < 999.5 => format!("{r:.0}×"),
        r => format!("{},{:03}×", r.round() as u64 / 1000, r.round() as u64 % 1000),
    }
}

fn times(cases: &[Case], runs: &[Runs], options: &Options) -> Table {
    let title = format!(
        "Time to upload {} lines over loopback (MTU {}), by who sets TCP_NODELAY; * extrapolated",
        options.lines, options.mtu
    );
    let columns = ["traffic", "neither", "client", "server", "both", "neither : both"];
    let mut table = Table::new(title, &columns);
    for (case, runs) in cases.iter().zip(runs) {
        let mut row = vec![case.name.to_owned()];
        row.extend(runs.iter().map(|run| {
            run.as_ref().map_or("–".to_owned(), |run| {
                let mark = if run.log.lines.len() < options.lines as usize { "* " } else { "" };
                format!("{mark}{}", time(took(&run.log, options.lines)))
            })
        }));
        row.push(times_as(ratio(runs, NEITHER, BOTH)));
        table.row(row);
    }
    table
}

fn busy(cases: &[Case], runs: &[Runs]) -> Table {
    let columns =
        ["traffic, TCP_NODELAY", "lines sent", "lines/s", "client CPU", "server CPU", "tcpwhy says"];
    let mut table = Table::new("How busy the two programs were while the lines went up", &columns);
    for (case, runs) in cases.iter().zip(runs) {
        for setting in [NEITHER, BOTH] {
            let Some(Run { log, finding, .. }) = &runs[setting] else { continue };
            let share = |cpu: Duration| {
                format!("{:.1} %", cpu.as_secs_f64() * 100.0 / log.wall.as_secs_f64().max(f64::MIN_POSITIVE))
            };
            table.row([
                format!("{}, {}", case.name, SETTINGS[setting].0),
                log.lines.len().to_string(),
                format!("{:.0}", 1e3 / took(log, 1)),
                share(log.client_cpu),
                share(log.server_cpu),
                finding.clone(),
            ]);
        }
    }
    table
}

fn claims(runs: &[Runs], lines: u32) -> Vec<Claim> {
    let mut claims = vec![
        alone(&runs[STREAM], lines, "Requests without replies alone are not slowed down"),
        alone(&runs[PAIRS], lines, "Requests with replies alone are not slowed down"),
        mixed(runs),
    ];
    if let (Some(neither), Some(_)) = (&runs[MIX][NEITHER], &runs[MIX][BOTH]) {
        claims.push(idle(&neither.log));
        claims.push(in_client_only(&runs[MIX], lines));
        claims.push(in_both(&runs[PIECES]));
        claims.push(wait(&neither.silences));
    }
    claims
}

fn alone(runs: &Runs, lines: u32, claim: &'static str) -> Claim {
    let all = |setting: usize| runs[setting].as_ref().map_or(0.0, |run| took(&run.log, lines));
    let (neither, both) = (all(NEITHER), all(BOTH));
    Claim {
        claim,
        seed: "1×",
        measured: format!(
            "{}: {} without TCP_NODELAY, {} with it",
            times_as(ratio(runs, NEITHER, BOTH)),
            time(neither),
            time(both)
        ),
        verdict: Verdict::from(
            neither < both * SAME || neither - both < UNNOTICED,
            "this traffic is slowed down alone",
        ),
    }
}

fn mixed(runs: &[Runs]) -> Claim {
    let (bare, paced) = (ratio(&runs[MIX], NEITHER, BOTH), ratio(&runs[PACE], NEITHER, BOTH));
    Claim {
        claim: "The two mixed are slowed down by a factor of 10, and TCP_NODELAY cures it",
        seed: "10×",
        measured: format!("{}; {} with a server that computes", times_as(bare), times_as(paced)),
        verdict: Verdict::from(bare >= DRASTIC, "the mix is not slow here"),
    }
}

fn idle(log: &Log) -> Claim {
    Claim {
        claim: "Very little of the CPU is used meanwhile",
        seed: "very little",
        measured: format!("{:.1} % of one CPU, both programs", cpu(log) * 100.0),
        verdict: Verdict::from(cpu(log) < IDLE, "the programs were busy"),
    }
}

fn in_client_only(runs: &Runs, lines: u32) -> Claim {
    let left = ratio(runs, CLIENT, BOTH);
    let useless = ratio(runs, SERVER, BOTH);
    let shown = |setting: usize| runs[setting].as_ref().map_or(0.0, |run| took(&run.log, lines));
    Claim {
        claim: "In the test program only the client needs the option: it is the side that writes twice",
        seed: "client only",
        measured: format!("client {}, server {}", time(shown(CLIENT)), time(shown(SERVER))),
        verdict: Verdict::from(
            left < SAME && useless >= DRASTIC,
            "one side's option does not do what both sides' does",
        ),
    }
}

fn in_both(runs: &Runs) -> Claim {
    let (client, server) = (ratio(runs, CLIENT, BOTH), ratio(runs, SERVER, BOTH));
    Claim {
        claim: "The real programs need it on both sides: so do these, once replies take two writes",
        seed: "both",
        measured: format!(
            "client only {}, server only {} as long as both",
            times_as(client),
            times_as(server)
        ),
        verdict: Verdict::from(client >= DRASTIC && server >= DRASTIC, "one side suffices"),
    }
}

/// The seed's guess of what is waited for, and how long.
fn wait(silences: &Silences) -> Claim {
    let Some(wait) = median(&silences.lengths) else {
        return Claim {
            claim: WAIT,
            seed: "20 ms",
            measured: "no wait seen".to_owned(),
            verdict: Verdict::Unknown("the capture shows no silence".to_owned()),
        };
    };
    let as_then = (15.0..25.0).contains(&wait) && silences.by_ack == 0;
    Claim {
        claim: WAIT,
        seed: "20 ms",
        measured: silences.in_words(),
        verdict: Verdict::from(
            as_then,
            &format!(
                "no sender's timer ends the wait: the receiver's delayed ACK does, {} later on this kernel",
                time(wait)
            ),
        ),
    }
}

/// Said once for both ends of [`wait`].
const WAIT: &str = "Nagle's algorithm waits a small time to see whether another packet follows";

fn notes(runs: &[Runs], options: &Options) -> Vec<String> {
    let mut notes = Vec::new();
    let cut = runs.iter().flatten().flatten().filter(|run| run.log.lines.len() < options.lines as usize);
    let waits: Vec<_> = cut.map(|run| run.silences.lengths.len()).filter(|waits| *waits > 0).collect();
    if let (Some(least), Some(most)) = (waits.iter().min(), waits.iter().max()) {
        notes.push(format!(
            "Times with * are extrapolated from runs that were cut short; those that wait did so {least} to \
             {most} times, and one wait is like the other. `--budget 0` uploads every line."
        ));
    }
    notes.push(format!(
        "The factor is the wait against everything else a request takes. A machine of today answers in \
         microseconds, so it is far above 10; with {} of work on each line, about what a server of 1998 took, it \
         is again of the text's order.",
        time(options.work as f64 / 1e3)
    ));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::mud::Line;

    /// A run that took `us` a line for so many lines.
    fn ran(lines: usize, us: u64) -> Run {
        let wall = Duration::from_micros(us * lines as u64);
        Run {
            log: Log {
                lines: vec![Line { wrote: 0, answered: None }; lines],
                wall,
                client_cpu: wall / 100,
                server_cpu: wall / 50,
            },
            silences: Silences { lengths: vec![44.0; 3], by_ack: 3 },
            finding: "nagle-delayed-ack".to_owned(),
        }
    }

    /// Neither, client, server, both: µs a line.
    fn four(us: [u64; 4]) -> Runs {
        us.map(|us| Some(ran(if us > 1000 { 100 } else { 1000 }, us)))
    }

    fn as_in_the_text() -> Vec<Runs> {
        vec![
            four([10, 11, 10, 12]),
            four([20, 20, 20, 20]),
            four([22_000, 20, 22_000, 20]),
            four([44_000, 22_000, 22_000, 20]),
            [Some(ran(100, 23_000)), None, None, Some(ran(100, 1000))],
        ]
    }

    fn options() -> Options {
        Options { lines: 1000, budget: 1.0, without: 1, work: 1000, mtu: 65_536 }
    }

    #[test]
    fn the_table_says_how_long_all_lines_take_and_marks_what_is_extrapolated() {
        let table = times(&cases(&options()), &as_in_the_text(), &options());
        assert_eq!(table.rows.len(), 5);
        assert_eq!(table.rows[0], ["no replies", "10.0 ms", "11.0 ms", "10.0 ms", "12.0 ms", "0.8×"]);
        assert_eq!(table.rows[2][1..], ["* 22.0 s", "20.0 ms", "* 22.0 s", "20.0 ms", "1,100×"]);
        assert_eq!(table.rows[4][1..], ["* 23.0 s", "–", "–", "* 1.00 s", "23×"]);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
        let busy = busy(&cases(&options()), &as_in_the_text());
        assert_eq!(busy.rows.len(), 10);
        assert_eq!(busy.rows[0][1..5], ["1000", "100000", "1.0 %", "2.0 %"]);
    }

    #[test]
    fn claims_follow_the_figures() {
        let held: Vec<_> =
            claims(&as_in_the_text(), 1000).iter().map(|claim| claim.verdict == Verdict::Holds).collect();
        // All but the guess that a timer of the sender ends the wait.
        assert_eq!(held, [true, true, true, true, true, true, false]);

        let mut cured = as_in_the_text();
        cured[MIX] = four([20, 20, 20, 20]);
        cured[PIECES] = four([44_000, 20, 22_000, 20]);
        cured[PAIRS] = four([400, 20, 20, 20]);
        let held: Vec<_> = claims(&cured, 1000).iter().map(|claim| claim.verdict == Verdict::Holds).collect();
        assert_eq!(held, [true, false, false, true, false, false, false]);
    }

    #[test]
    fn a_sender_with_a_timer_of_20_ms_would_be_believed() {
        let claim = wait(&Silences { lengths: vec![20.1; 5], by_ack: 0 });
        assert_eq!(claim.verdict, Verdict::Holds);
        assert!(matches!(wait(&Silences::default()).verdict, Verdict::Unknown(_)));
    }

    #[test]
    fn factors_have_two_digits_or_more() {
        let cases = [(0.96, "1.0×"), (9.96, "10×"), (999.7, "1,000×"), (2904.0, "2,904×")];
        for (ratio, text) in cases {
            assert_eq!(times_as(ratio), text);
        }
    }
}
