//! Runs tcpwhy on a labelled capture and holds its report against the programs' log.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tcpwhy_benches::labelled::Truth;

use crate::expectations::{Booked, EXPECTATIONS, Expectation, Must};

/// How far a cost may be from the truth. Packets show neither the programs' system calls nor the scheduler.
pub(crate) const COST_TOLERANCE: f64 = 0.10;
/// How far latencies may be apart besides, in ms: two wake-ups of a thread on a machine with other work.
const SCHEDULING_MS: f64 = 0.3;
/// The ledger's lines on which TCP makes programs wait beyond the path's round trip.
const LOST: &[&str] = &["queueing", "nagle", "delayed-ack", "cwnd", "rwnd", "recovery", "rto"];
/// A ledger's lines are printed to the microsecond, and there are 13 of them and a duration.
const ROUNDING_MS: f64 = 0.014;

/// All that is wrong in the reports on the captures of `truth`, which are in `folder`.
pub(crate) fn faults(truth: &Truth, folder: &Path) -> Vec<String> {
    let expectation = EXPECTATIONS.iter().find(|expectation| expectation.case == truth.case);
    let expectation = expectation.unwrap_or_else(|| panic!("nothing is expected of {}", truth.case));
    let each = truth.captures.iter().flat_map(|capture| {
        let report = analyse(&folder.join(&capture.file));
        let faults = faults_of_report(&report, truth, expectation, &capture.vantage);
        faults.into_iter().map(|fault| format!("{}: {fault}", capture.file))
    });
    each.collect()
}

/// The report on one capture, as `--format json` prints it.
fn analyse(capture: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .args(["--format", "json"])
        .arg(capture)
        .output()
        .expect("the binary that was just built runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["captures"][0].clone()
}

fn faults_of_report(report: &Value, truth: &Truth, expectation: &Expectation, vantage: &str) -> Vec<String> {
    let mut faults = connections(report, truth, vantage);
    faults.extend(ledgers(report));
    faults.extend(expectation.booked.iter().filter_map(|booked| misbooked(report, truth, booked)));
    faults.extend(expectation.mostly.and_then(|line| not_mostly(report, line)));
    if expectation.no_problem {
        faults.extend(lost(report));
    }
    faults.extend(expectation.must.iter().filter_map(|must| missing(report, truth, must)));
    for finding in list(&report["findings"]) {
        let rule = text(&finding["rule"]);
        let summary = text(&finding["summary"]);
        if expectation.must_not.contains(&rule) {
            faults.push(format!("must not be found: {rule}: {summary}"));
        } else if expectation.no_problem && text(&finding["severity"]) == "problem" {
            faults.push(format!("no problem is there: {rule}: {summary}"));
        }
    }
    if expectation.latency_shows {
        faults.extend(latency(report, truth));
    }
    faults
}

/// The connections: how many, to whom, seen from where, with how many exchanges.
fn connections(report: &Value, truth: &Truth, vantage: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let connections = list(&report["connections"]);
    if connections.len() as u64 != truth.connections {
        faults.push(format!("{} connections, the programs made {}", connections.len(), truth.connections));
    }
    for connection in connections {
        if text(&connection["server"]) != truth.server {
            faults.push(format!("the server is {}, not {}", truth.server, connection["server"]));
        }
        let seen = text(&connection["vantage"]);
        // Where the path is as short as here, nothing may be known; the opposite end would be wrong.
        if vantage != "both" && seen != vantage && seen != "unknown" && seen != "middle" {
            faults.push(format!("captured at the {vantage}, not at the {seen}"));
        }
    }
    let exchanges: u64 = connections.iter().filter_map(|one| one["exchanges"]["count"].as_u64()).sum();
    if !truth.exchanges.is_empty() && exchanges != truth.exchanges.len() as u64 {
        faults.push(format!("{exchanges} exchanges, the programs made {}", truth.exchanges.len()));
    }
    faults
}

/// Every connection's ledger sums to its duration.
fn ledgers(report: &Value) -> Vec<String> {
    let off_balance = list(&report["connections"]).iter().filter_map(|connection| {
        let lines = connection["ledger_ms"].as_object()?;
        let sum: f64 = lines.values().filter_map(Value::as_f64).sum();
        let duration = connection["duration_ms"].as_f64()?;
        ((sum - duration).abs() > ROUNDING_MS)
            .then(|| format!("connection {}: the ledger has {sum} ms of {duration} ms", connection["id"]))
    });
    off_balance.collect()
}

/// What is wrong with the time on the lines that `booked` names.
fn misbooked(report: &Value, truth: &Truth, booked: &Booked) -> Option<String> {
    let wanted: f64 = booked.costs.iter().map(|cost| cost.in_ms(truth)).sum();
    let found = on_lines(report, booked.lines);
    let close = (found - wanted).abs() <= COST_TOLERANCE * wanted + SCHEDULING_MS;
    (!close).then(|| format!("{:?} took {wanted:.1} ms, booked are {found:.1} ms", booked.lines))
}

/// Where the time is instead, unless at least half of it is on `line`.
fn not_mostly(report: &Value, line: &str) -> Option<String> {
    let duration = report["duration_ms"].as_f64()?;
    let found = on_lines(report, &[line]);
    (2.0 * found < duration)
        .then(|| format!("{line} has {found:.1} ms of {duration:.1} ms, not most: {}", report["ledger_ms"]))
}

/// Time on the lines that mean a wait for TCP, where there was none.
fn lost(report: &Value) -> Option<String> {
    let duration = report["duration_ms"].as_f64()?;
    let lost = on_lines(report, LOST);
    let much = lost > COST_TOLERANCE * duration + SCHEDULING_MS;
    much.then(|| {
        format!("nothing was lost, booked are {lost:.1} ms of {duration:.1} ms: {}", report["ledger_ms"])
    })
}

fn on_lines(report: &Value, lines: &[&str]) -> f64 {
    lines.iter().filter_map(|&line| report["ledger_ms"][line].as_f64()).sum()
}

/// What is wrong with the findings that `must` asks for.
fn missing(report: &Value, truth: &Truth, must: &Must) -> Option<String> {
    let asked = must.rule.join(" or ");
    let of_rule = |finding: &&Value| must.rule.contains(&text(&finding["rule"]));
    let found: Vec<&Value> = list(&report["findings"]).iter().filter(of_rule).collect();
    let at_side = |finding: &&&Value| text(&finding["blame"]["side"]) == must.side;
    let blamed: Vec<&Value> = found.iter().filter(at_side).copied().collect();
    if blamed.is_empty() {
        let sides: Vec<&str> = found.iter().map(|finding| text(&finding["blame"]["side"])).collect();
        return Some(format!(
            "must be found: {asked}, blamed on the {}; found blamed on {sides:?}",
            must.side
        ));
    }
    let wanted = must.cost?.in_ms(truth);
    // Two rules may tell of the same wait, each from its own side of it.
    let costs: Vec<f64> = blamed.iter().filter_map(|finding| finding["cost_ms"].as_f64()).collect();
    let close = costs.iter().any(|cost| (cost - wanted).abs() <= COST_TOLERANCE * wanted);
    (!close).then(|| format!("{asked} cost {wanted:.1} ms, reported are {costs:?}"))
}

/// The median latency of exchanges is the program's own.
fn latency(report: &Value, truth: &Truth) -> Option<String> {
    let wanted = truth.latency?.p50_ms;
    let mut medians: Vec<f64> =
        list(&report["connections"]).iter().filter_map(|one| one["exchanges"]["p50_ms"].as_f64()).collect();
    medians.sort_by(f64::total_cmp);
    let Some(&median) = medians.get(medians.len() / 2) else {
        return Some("no exchange has a latency".into());
    };
    let close = (median - wanted).abs() <= COST_TOLERANCE * wanted + SCHEDULING_MS;
    (!close).then(|| format!("half of the exchanges take {wanted} ms, reported is {median} ms"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
