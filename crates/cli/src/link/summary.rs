//! What the link did and what tcpwhy saw, after the command's end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tcpwhy_diagnose::Diagnosis;
use tcpwhy_lab::capture::Vantage;
use tcpwhy_lab::place::{Path, Wire};
use tcpwhy_lab::recording::{Lateness, Recording, Setup};
use tcpwhy_report::number::count;
use tcpwhy_report::page::{Page, Painted};
use tcpwhy_report::plain::plain;
use tcpwhy_report::{json, terminal};
use tcpwhy_wire::Packet;

use super::Args;
use super::direction::in_words;
use super::programs::{Ended, Programs};
use super::quantity::time_in_words;
use crate::args::{Color, Format};

/// Name and version of the JSON.
const FORMAT: &str = "tcpwhy-link/1";
/// Columns where there is no terminal.
const COLUMNS: usize = 80;
const INDENT: &str = "  ";

/// A run that is over.
pub(super) struct Run<'a> {
    pub(super) setup: &'a Setup,
    pub(super) programs: &'a Programs,
    pub(super) recording: &'a Recording<Ended>,
    /// Where the captures are, if they were kept.
    pub(super) kept_in: Option<&'a std::path::Path>,
    /// Whether the emulator was so late that the figures count for nothing.
    pub(super) is_void: bool,
}

/// Writes the report to where it was asked for: into this file, or to standard error, also where the file takes no
/// more.
pub(super) fn print(args: &Args, run: &Run<'_>, file: Option<File>) -> Result<()> {
    let error = io::stderr();
    let to_terminal = args.output.is_none() && error.is_terminal();
    let width = terminal_size::terminal_size_of(&error).filter(|_| to_terminal);
    let options = terminal::Options {
        width: width.map_or(COLUMNS, |(width, _)| usize::from(width.0)),
        color: match args.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                to_terminal && anstream::AutoStream::choice(&error) != anstream::ColorChoice::Never
            }
        },
        top: args.top,
        ..terminal::Options::default()
    };
    let mut text = Vec::new();
    match args.format {
        Format::Terminal => in_text(&mut text, run, &options)?,
        Format::Json => in_json(&mut text, run)?,
    }
    let written = file.map(|mut file| file.write_all(&text));
    if !matches!(written, Some(Ok(()))) {
        // That standard error cannot be written is the one thing nobody can be told.
        let _ = error.lock().write_all(&text);
    }
    let name = args.output.as_deref().map_or_else(String::new, |path| path.display().to_string());
    written.unwrap_or(Ok(())).with_context(|| format!("cannot write {name}"))
}

impl Run<'_> {
    fn wire(&self) -> Option<&Wire> {
        match &self.setup.path {
            Path::Link(wire) => Some(wire),
            Path::Loopback { .. } | Path::TwoHops { .. } => None,
        }
    }

    /// What is to be known besides.
    fn notes(&self) -> Vec<String> {
        let recording = self.recording;
        let mut notes = recording.value.notes.clone();
        if recording.missing > 0 {
            notes.push(format!(
                "The captures were full before the end: they, the counts above and the report below lack the last {} \
                 packets (both ends counted). The link carried them all the same. --snaplen 60 keeps more of them.",
                count(recording.missing)
            ));
        }
        let unlogged = recording.events.iter().filter(|event| event.what.ends_with("not logged"));
        notes.extend(unlogged.map(|event| format!("The counts above lack {}.", event.what)));
        notes
    }

    fn packets(&self, vantage: Vantage) -> Vec<Packet> {
        self.recording.capture(vantage).map(|capture| capture.packets()).unwrap_or_default()
    }

    fn diagnosis(&self) -> Option<Diagnosis> {
        let command: Vec<_> = self.programs.command.iter().map(|word| word.to_string_lossy()).collect();
        Some(self.recording.capture(Vantage::Client)?.diagnose(&command.join(" ")))
    }

    /// The command line that does the same again.
    fn again(&self) -> String {
        let mut words: Vec<_> = std::env::args_os().map(|word| quoted(&word.to_string_lossy())).collect();
        if let Some(first) = words.first_mut() {
            "tcpwhy".clone_into(first);
        }
        if !words.iter().any(|word| word.starts_with("--seed")) {
            words.insert(words.len().min(2), format!("--seed {}", self.setup.seed));
        }
        words.join(" ")
    }

    /// What each direction carried.
    fn traffic(&self) -> [Traffic; 2] {
        let (client, server) = (self.packets(Vantage::Client), self.packets(Vantage::Server));
        // Whoever spoke first: of the link's two addresses the lower one is the client's.
        let ends = client
            .iter()
            .chain(&server)
            .flat_map(|packet| [packet.source.address, packet.destination.address]);
        let of_client = ends.min();
        let load = |packets: &[Packet], up: bool| {
            let one_way = packets.iter().filter(|packet| (Some(packet.source.address) == of_client) == up);
            one_way.fold((0_u64, 0_u64), |(count, bytes), packet| {
                (count + 1, bytes + u64::from(packet.frame_len))
            })
        };
        [
            Traffic {
                name: "up",
                sent: load(&client, true),
                arrived: load(&server, true),
                events: self.events("up "),
            },
            Traffic {
                name: "down",
                sent: load(&server, false),
                arrived: load(&client, false),
                events: self.events("down "),
            },
        ]
    }

    /// How often the link did what, in the direction whose events begin with `way`.
    fn events(&self, way: &str) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for event in &self.recording.events {
            if let Some((_, what)) = event.what.strip_prefix(way).and_then(|rest| rest.split_once(": ")) {
                *counts.entry(kind(what)).or_insert(0) += 1;
            }
        }
        counts
    }
}

/// An event without its figures, so that its like can be counted.
fn kind(what: &str) -> String {
    let end = what.find(|c: char| c.is_ascii_digit()).unwrap_or(what.len());
    let kind = if what.starts_with("dropped") { what } else { &what[..end] };
    let kind = kind.trim_end().trim_end_matches(" after").trim_end_matches(" by");
    kind.to_owned()
}

/// One direction. Packets and their bytes.
struct Traffic {
    name: &'static str,
    sent: (u64, u64),
    arrived: (u64, u64),
    events: BTreeMap<String, u64>,
}

/// For a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=%@,+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn in_text(out: &mut Vec<u8>, run: &Run<'_>, options: &terminal::Options) -> Result<()> {
    {
        let page = &mut Page::new(out, options.width, options.color);
        page.blank()?;
        link(page, run)?;
        page.blank()?;
    }
    match run.diagnosis() {
        Some(diagnosis) if !run.packets(Vantage::Client).is_empty() => {
            terminal::write(out, &diagnosis, options)?;
        }
        _ => Page::new(out, options.width, options.color).line("No TCP or UDP packet passed the link.")?,
    }
    if run.is_void {
        let page = &mut Page::new(out, options.width, options.color);
        page.blank()?;
        void(page)?;
    }
    Ok(())
}

fn link(page: &mut Page<'_>, run: &Run<'_>) -> io::Result<()> {
    let title = page.ink.bold("The link");
    page.ruled(&title, &format!("seed {}", run.setup.seed))?;
    if let Some(wire) = run.wire() {
        let ends = &wire.ends;
        if ends.up == ends.down {
            page.hanging(&format!("{INDENT}each way  "), &in_words(&ends.up).join(", "))?;
        } else {
            page.hanging(&format!("{INDENT}up    "), &in_words(&ends.up).join(", "))?;
            page.hanging(&format!("{INDENT}down  "), &in_words(&ends.down).join(", "))?;
        }
        let mut items = vec![];
        let round_trip = ends.up.delay + ends.down.delay;
        if !round_trip.is_zero() {
            items.push(format!("base round trip {}", time_in_words(round_trip)));
        }
        items.push(format!("MTU {}", wire.mtu));
        if wire.offload {
            items.push("the link cuts larger segments (offload)".to_owned());
        }
        page.hanging(INDENT, &items.join(", "))?;
    }
    for Traffic { name, sent, arrived, events } in run.traffic() {
        let mut items = vec![
            format!("{} packets sent, {} bytes", count(sent.0), count(sent.1)),
            format!("{} arrived", count(arrived.0)),
        ];
        items.extend(events.iter().map(|(what, times)| format!("{} {what}", count(*times))));
        page.hanging(&format!("{INDENT}{name:4}  "), &items.join(", "))?;
    }
    if let Some(lateness) = &run.recording.lateness {
        emulator(page, lateness, run.is_void)?;
    }
    for note in run.notes() {
        page.hanging(INDENT, &note)?;
    }
    let Ended { status, took, .. } = &run.recording.value;
    page.hanging(INDENT, &format!("The command ran {} and ended with exit status {status}.", about(*took)))?;
    page.hanging(INDENT, &format!("Again: {}", plain(&run.again())))?;
    if let Some(folder) = run.kept_in {
        let folder = folder.to_string_lossy();
        page.hanging(INDENT, &format!("Captures: client.pcapng and server.pcapng in {}", plain(&folder)))?;
    }
    if run.is_void {
        page.blank()?;
        void(page)?;
    }
    Ok(())
}

/// A measured time, to the millisecond.
fn about(time: Duration) -> String {
    time_in_words(Duration::from_millis(time.as_millis().try_into().unwrap_or(u64::MAX)))
}

fn emulator(page: &mut Page<'_>, lateness: &Lateness, is_void: bool) -> io::Result<()> {
    if lateness.packets == 0 && lateness.lost == 0 {
        return page.line(&format!("{INDENT}The emulator had nothing to carry."));
    }
    let painted = if is_void { Painted::Bad } else { Painted::Good };
    let sign = page.ink.verdict(painted, painted.glyph());
    let Lateness { p50_us, p99_us, max_us, lost, .. } = lateness;
    let lost = if *lost == 0 { String::new() } else { format!("; {} packets were lost in it", count(*lost)) };
    let late = format!("{p50_us:.0} µs (median), {p99_us:.0} µs (99 %), {max_us:.0} µs (worst)");
    page.hanging(INDENT, &format!("{sign} The emulator was late by {late}{lost}."))
}

fn void(page: &mut Page<'_>) -> io::Result<()> {
    let title = page.ink.verdict(Painted::Bad, "✖ VOID:");
    page.hanging(
        "",
        &format!(
            "{title} the machine did not let the emulator run in time, so these figures say nothing about the \
             link. Run it again when less else runs here."
        ),
    )
}

fn in_json(out: &mut Vec<u8>, run: &Run<'_>) -> Result<()> {
    let mut writer = json::Writer::begin(Vec::new(), env!("CARGO_PKG_VERSION"))?;
    if let Some(diagnosis) = run.diagnosis() {
        writer.capture(&diagnosis)?;
    }
    let report: Value = serde_json::from_slice(&writer.end()?)?;
    let direction = |traffic: &Traffic| {
        json!({
            "sent": { "packets": traffic.sent.0, "bytes": traffic.sent.1 },
            "arrived": { "packets": traffic.arrived.0, "bytes": traffic.arrived.1 },
            "events": traffic.events,
        })
    };
    let [up, down] = run.traffic();
    let Ended { status, took, .. } = &run.recording.value;
    let value = json!({
        "format": FORMAT,
        "again": run.again(),
        "setup": run.setup,
        "void": run.is_void,
        "lateness": run.recording.lateness,
        "traffic": { "up": direction(&up), "down": direction(&down) },
        "events": run.recording.events,
        "command": { "exit_status": status, "ms": took.as_secs_f64() * 1e3 },
        "notes": run.notes(),
        "report": report,
    });
    serde_json::to_writer(&mut *out, &value)?;
    out.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("--delay=20ms"), "--delay=20ms");
        assert_eq!(quoted("python3 -m http.server"), "'python3 -m http.server'");
        assert_eq!((quoted("it's"), quoted("")), (r"'it'\''s'".to_owned(), "''".to_owned()));
    }

    #[test]
    fn events_of_a_kind_are_one() {
        assert_eq!(kind("ACK released by the timer after 200.0 ms"), "ACK released by the timer");
        assert_eq!(kind("dropped: by plan (data segment 3)"), "dropped: by plan (data segment 3)");
        assert_eq!(kind("marked CE"), "marked CE");
    }
}
