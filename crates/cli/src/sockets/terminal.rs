//! Sockets for people: the verdict, the suspicious ones with a sentence each, then all others in a table.

use std::collections::BTreeSet;
use std::io;

use tcpwhy_diagnose::sockets::Kind;
use tcpwhy_report::number::{bytes, count, duration};
use tcpwhy_report::page::{GLUE, Page, Painted};
use tcpwhy_report::plain::plain;
use tcpwhy_wire::sockets::State;

use super::row::{Row, Unknown};
use super::{Look, sentence, table};
use crate::args::Color;
use crate::output;

const INDENT: &str = "  ";
/// Suspicious sockets that are told of in full; the others are in the table.
const MOST_SUSPECTS: usize = 20;
/// Rows of the table.
const MOST_ROWS: usize = 100;

/// What is wanted of a look.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) all: bool,
    pub(super) details: bool,
    pub(super) listening: bool,
}

pub(super) fn print(look: &Look, shown: Shown, color: Color) -> anyhow::Result<()> {
    let (width, color) = (output::columns(), output::colored(color));
    output::print(|out| write(&mut Page::new(out, width, color), look, shown))
}

fn write(page: &mut Page<'_>, look: &Look, shown: Shown) -> io::Result<()> {
    verdict(page, &look.rows, shown)?;
    let (suspects, others): (Vec<&Row>, Vec<&Row>) =
        look.rows.iter().partition(|row| !row.suspicions.is_empty());
    let told = if shown.all || shown.details { suspects.len() } else { MOST_SUSPECTS };
    let mut suspects = suspects;
    suspects.sort_by_key(|row| gravity(row));
    let (full, rest) = suspects.split_at(told.min(suspects.len()));
    for row in full {
        block(page, row)?;
    }
    advice(page, full)?;
    let mut others: Vec<&Row> = rest.iter().copied().chain(others).collect();
    others.sort_by_cached_key(|row| order(row));
    if shown.details {
        others.iter().try_for_each(|row| block(page, row))?;
    } else {
        rows(page, &others, shown)?;
    }
    notes(page, look, &others)
}

/// Gravest kind first, then the most bytes.
fn gravity(row: &Row) -> (Option<Kind>, std::cmp::Reverse<u64>) {
    let gravest = row.suspicions.first();
    (gravest.map(|suspicion| suspicion.kind), std::cmp::Reverse(gravest.map_or(0, |gravest| gravest.amount)))
}

/// Programs by name, a program's listening sockets first.
fn order(row: &Row) -> (bool, String, bool, String) {
    let is_known = !row.socket.holders.is_empty();
    (!is_known, row.program(), row.socket.state != State::Listen, row.ends())
}

/// `✖ 3 of 14 TCP sockets are suspicious: 1 held by Nagle's algorithm, 2 not read by the program.`
fn verdict(page: &mut Page<'_>, rows: &[Row], shown: Shown) -> io::Result<()> {
    let what = if shown.listening { "listening TCP socket" } else { "TCP socket" };
    let all = sentence::plural(rows.len() as u64, what, &format!("{what}s"));
    let suspects = rows.iter().filter(|row| !row.suspicions.is_empty()).count();
    let kinds = Kind::ALL.iter().filter_map(|&kind| {
        let has = |row: &&Row| row.suspicions.iter().any(|suspicion| suspicion.kind == kind);
        let n = rows.iter().filter(has).count();
        (n > 0).then(|| sentence::counted(kind, n))
    });
    let (painted, head, detail) = match (rows.len(), suspects) {
        (0, _) => (Painted::Unclear, format!("No {what}."), String::new()),
        (_, 0) => (Painted::Good, format!("Nothing suspicious: {all}."), String::new()),
        _ => {
            let of = format!("{} of {all}", count(suspects as u64));
            let verb = if suspects == 1 { "waits" } else { "wait" };
            (Painted::Bad, format!("{of} {verb}:"), format!("{}.", kinds.collect::<Vec<_>>().join(", ")))
        }
    };
    let sign = page.ink.verdict(painted, painted.glyph());
    page.hanging(&format!("{sign} "), format!("{} {detail}", page.ink.bold(&head)).trim_end())
}

/// One socket in full.
fn block(page: &mut Page<'_>, row: &Row) -> io::Result<()> {
    page.blank()?;
    let program = plain(&row.program()).into_owned();
    let fd = row
        .socket
        .holders
        .first()
        .and_then(|holder| holder.fd)
        .map_or(String::new(), |fd| format!(" fd {fd}"));
    let ends = plain(&row.ends()).into_owned();
    let heading = format!("{program}{fd}{}{ends}", if program.is_empty() { "" } else { "  " });
    page.ruled(&page.ink.bold(&heading), row.socket.state.name())?;
    for suspicion in &row.suspicions {
        page.hanging(INDENT, &page.ink.bold(&sentence::of(row, suspicion)))?;
    }
    if row.is_elsewhere {
        page.hanging(INDENT, "In another network namespace.")?;
    }
    page.items(INDENT, &facts(row))
}

/// All that is known, as `RTT 47 µs`.
fn facts(row: &Row) -> Vec<String> {
    let mut facts = Facts::default();
    if row.socket.state == State::Listen {
        facts.add("waiting for accept", Some(row.socket.recv_queue), count);
        facts.add("backlog", Some(row.socket.send_queue).filter(|limit| *limit > 0), count);
    } else {
        queues(row, &mut facts);
        windows(row, &mut facts);
        times(row, &mut facts);
    }
    options(row, &mut facts);
    facts.0
}

#[derive(Default)]
struct Facts(Vec<String>);

impl Facts {
    fn add<T>(&mut self, name: &str, value: Option<T>, written: impl Fn(T) -> String) {
        self.0
            .extend(value.map(|value| format!("{name} {}", written(value)).replace(' ', &GLUE.to_string())));
    }
}

fn queues(row: &Row, facts: &mut Facts) {
    let (socket, info) = (&row.socket, &row.socket.info);
    facts.add("unread", Some(socket.recv_queue), bytes);
    match socket.bytes_in_flight().zip(info.not_sent) {
        Some((flight, unsent)) => {
            let segments = |n: u64| format!(" in {}", sentence::plural(n, "segment", "segments"));
            let segments = info.unacked.filter(|n| *n > 0).map_or(String::new(), segments);
            facts.add("in flight", Some(flight), |flight| format!("{}{segments}", bytes(flight)));
            facts.add("unsent", Some(unsent), bytes);
        }
        None => facts.add("send-q", Some(socket.send_queue), bytes),
    }
    facts.add("lost", info.lost.filter(|lost| *lost > 0), count);
    facts.add("retransmissions", info.retransmissions, count);
    facts.add("sent", info.bytes_sent, bytes);
    facts.add("received", info.bytes_received, bytes);
}

fn windows(row: &Row, facts: &mut Facts) {
    let info = &row.socket.info;
    facts.add("cwnd", info.cwnd, count);
    facts.add("ssthresh", info.ssthresh, count);
    facts.add("MSS", info.mss, count);
    facts.add("peer's window", info.peer_window, bytes);
    facts.add("own window", info.own_window, bytes);
}

fn times(row: &Row, facts: &mut Facts) {
    let info = &row.socket.info;
    let us = |us: u64| duration(us as f64 / 1e3);
    facts.add("RTT", info.rtt_us, us);
    facts.add("min RTT", info.min_rtt_us, us);
    facts.add("RTO", info.rto_us, us);
    facts.add("last sent", info.last_sent_ms, |ms| format!("{} ago", duration(ms as f64)));
    facts.add("last received", info.last_received_ms, |ms| format!("{} ago", duration(ms as f64)));
    facts.add("busy", info.busy_us, us);
    facts.add("rwnd-limited", info.peer_window_limited_us, us);
    facts.add("sndbuf-limited", info.send_buffer_limited_us, us);
    facts.add("delivered", info.delivery_rate.filter(|rate| *rate > 0), |rate| format!("{}/s", bytes(rate)));
}

fn options(row: &Row, facts: &mut Facts) {
    let socket = &row.socket;
    facts.add("control", socket.congestion_control.as_deref(), |name| plain(name).into_owned());
    let on_off = |on: bool| if on { "on" } else { "off" }.to_owned();
    let options = socket.options;
    facts.add("TCP_NODELAY", options.nodelay, on_off);
    facts.add("TCP_CORK", options.cork, on_off);
    facts.add("TCP_QUICKACK", options.quickack, on_off);
    if options.nodelay.is_none() && socket.state != State::TimeWait {
        facts.add("options:", row.options_unknown.as_ref(), |why| match why {
            Unknown::Rights => "need CAP_SYS_PTRACE (try sudo)".to_owned(),
            Unknown::Nobody | Unknown::Unaccepted => "no process to ask".to_owned(),
            other => other.footnote(),
        });
    }
    let set = |fixed: Option<bool>| if fixed == Some(true) { " (set)" } else { "" };
    let buffers = socket.buffers;
    facts.add("SO_SNDBUF", buffers.send, |n| format!("{}{}", bytes(n), set(buffers.send_is_fixed)));
    facts.add("SO_RCVBUF", buffers.recv, |n| format!("{}{}", bytes(n), set(buffers.recv_is_fixed)));
    facts.add("dropped", buffers.drops.filter(|drops| *drops > 0), count);
}

/// Where to read what to do.
pub(super) fn advice(page: &mut Page<'_>, suspects: &[&Row]) -> io::Result<()> {
    let kinds: BTreeSet<Kind> =
        suspects.iter().flat_map(|row| row.suspicions.iter().map(|suspicion| suspicion.kind)).collect();
    let mut rules: Vec<&str> = Vec::new();
    for kind in kinds {
        rules.extend(sentence::rule(kind).filter(|rule| !rules.contains(rule)));
    }
    if rules.is_empty() {
        return Ok(());
    }
    page.blank()?;
    let commands: Vec<_> = rules.iter().map(|rule| format!("tcpwhy explain {rule}")).collect();
    page.hanging("", &page.ink.faint(&format!("What it means and what to do: {}", commands.join(", "))))
}

fn rows(page: &mut Page<'_>, others: &[&Row], shown: Shown) -> io::Result<()> {
    let (waiting, lasting): (Vec<&Row>, Vec<&Row>) =
        others.iter().partition(|row| !shown.all && row.socket.state == State::TimeWait);
    let most = if shown.all { usize::MAX } else { MOST_ROWS };
    let (told, left) = lasting.split_at(most.min(lasting.len()));
    if !told.is_empty() {
        page.blank()?;
        table::write(page, told)?;
    }
    let mut rest = Vec::new();
    if !left.is_empty() {
        rest.push(sentence::plural(left.len() as u64, "more socket", "more sockets"));
    }
    if !waiting.is_empty() {
        rest.push(format!("{} in TIME-WAIT, which no program holds any more", count(waiting.len() as u64)));
    }
    if rest.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.hanging("", &format!("And {}: --all shows them.", rest.join(", and ")))
}

/// What the table's short words mean, and what was not seen.
fn notes(page: &mut Page<'_>, look: &Look, in_table: &[&Row]) -> io::Result<()> {
    let short = |row: &&&Row| row.socket.options.nodelay.is_none() && row.socket.state != State::TimeWait;
    let unknown: BTreeSet<&Unknown> =
        in_table.iter().filter(short).filter_map(|row| row.options_unknown.as_ref()).collect();
    let mut meanings: Vec<String> = Vec::new();
    for why in unknown {
        let meaning = format!("{}: {}.", why.short(), why.footnote());
        if !meanings.contains(&meaning) {
            meanings.push(meaning);
        }
    }
    if meanings.is_empty() && look.notes.is_empty() {
        return Ok(());
    }
    page.blank()?;
    meanings.iter().chain(&look.notes).try_for_each(|note| page.hanging("", note))
}
