//! Follows a script step by step: the clock, the segments sent, the segments received.

use std::collections::{HashMap, VecDeque};

use tcpwhy_wire::TcpFlags;

use super::commands;
use super::compare::{Mapping, differences, header};
use super::host::{Host, OnWire, Step};
use super::outcome::{Difference, Failure, Note, Outcome, Verdict};
use super::python::{self, Finding};
use super::run_call::Waiting;
use super::show;
use super::syntax::{Action, Event, Options, Script, Segment, When};

/// How far from the script's time a thing may happen: packetdrill's `--tolerance_usecs`, 4 ms unless set.
const TOLERANCE_NS: u64 = 4_000_000;
/// A step whose time is `*` waits this long: longer than TCP's longest timeout (RFC 6298 section 2.5: 60 s or more;
/// Linux: 120 s).
const LONGEST_WAIT_NS: u64 = 300_000_000_000;
/// Most things that may happen in a run. A script of hostile sizes ends there.
const MOST_STEPS: u32 = 1_000_000;

/// Why a run ends before its script.
pub(super) enum Stop {
    Failed(Box<Failure>),
    Unsupported(Note),
}

pub(super) struct Runner<'a, H> {
    pub(super) host: &'a mut H,
    pub(super) tolerance: u64,
    /// Whether a segment in the script must be one segment (`--strict_segments`), not several in a row.
    strict: bool,
    sent: VecDeque<(u64, OnWire)>,
    pub(super) mapping: Mapping,
    pub(super) waiting: Option<Waiting>,
    /// The time of the last step, and whether it was a segment received: the script's times of a row of those do
    /// not drift.
    last: u64,
    last_received: bool,
    steps: u32,
    names: HashMap<String, f64>,
    pub(super) ignored: Vec<Note>,
    pub(super) unchecked: Vec<Note>,
}

/// Runs a script on `host`, which must be fresh.
pub fn run_on(script: &Script, host: &mut impl Host) -> Outcome {
    let mut runner = Runner::new(host);
    let verdict = match runner.follow(script) {
        Ok(()) => Verdict::Passed,
        Err(Stop::Failed(failure)) => Verdict::Failed(*failure),
        Err(Stop::Unsupported(note)) => Verdict::Unsupported(note),
    };
    let unread = if verdict == Verdict::Passed { runner.unread() } else { Vec::new() };
    Outcome { verdict, ignored: runner.ignored, unchecked: runner.unchecked, unread }
}

impl<'a, H: Host> Runner<'a, H> {
    fn new(host: &'a mut H) -> Self {
        Self {
            host,
            tolerance: TOLERANCE_NS,
            strict: false,
            sent: VecDeque::new(),
            mapping: Mapping::default(),
            waiting: None,
            last: 0,
            last_received: false,
            steps: 0,
            names: HashMap::new(),
            ignored: Vec::new(),
            unchecked: Vec::new(),
        }
    }

    fn follow(&mut self, script: &Script) -> Result<(), Stop> {
        for (name, value) in &script.settings {
            self.setting(name, value);
        }
        for command in &script.commands {
            self.command(command.line, &command.text);
        }
        for event in &script.events {
            self.event(event)?;
        }
        self.finish_call()
    }

    fn setting(&mut self, name: &str, value: &str) {
        match (name, value.parse::<u32>()) {
            ("tolerance_usecs", Ok(us)) => self.tolerance = u64::from(us) * 1_000,
            ("strict_segments", _) => self.strict = true,
            _ => {
                let text = format!("--{name}={value}").trim_end_matches('=').to_owned();
                self.ignored.push(Note { line: 1, text });
            }
        }
    }

    fn command(&mut self, line: u32, text: &str) {
        let (settings, others) = commands::settings(text);
        for (name, value) in settings {
            if !self.host.set(&name, &value) {
                self.ignored.push(Note { line, text: format!("{name}={value}") });
            }
        }
        self.ignored.extend(others.into_iter().map(|text| Note { line, text }));
    }

    fn event(&mut self, event: &Event) -> Result<(), Stop> {
        let received = matches!(event.action, Action::Receive(_));
        let base = if received && self.last_received { self.last } else { self.host.now() };
        let (from, to) = window(event.when, base);
        if let Action::Send(segment) = &event.action {
            self.expect(event, segment, from, to)?;
        } else {
            if let (Action::Call(_), Some(_)) = (&event.action, &self.waiting) {
                self.finish_call()?;
            }
            self.wait(event, from)?;
            self.act(event, base)?;
        }
        self.last = if received { from } else { self.host.now() };
        self.last_received = received;
        Ok(())
    }

    fn act(&mut self, event: &Event, base: u64) -> Result<(), Stop> {
        match &event.action {
            Action::Receive(segment) => self.receive(event, segment),
            Action::Call(call) => self.call(event, call, base),
            Action::Command(text) => {
                self.command(event.line, text);
                Ok(())
            }
            Action::Code(code) => self.code(event, code),
            Action::Foreign(text) => Err(unsupported(event, format!("the packet {text}"))),
            Action::Send(_) => Ok(()),
        }
    }

    fn receive(&mut self, event: &Event, segment: &Segment) -> Result<(), Stop> {
        foreign_parts(event, segment)?;
        if segment.flags.are_opening() {
            self.mapping.begin();
        }
        let arrival = self.mapping.to_wire(segment);
        self.host.deliver(&arrival);
        self.retry_call()
    }

    /// Goes on until `until`; what is sent meanwhile queues up for the script's next `>`.
    fn wait(&mut self, event: &Event, until: u64) -> Result<(), Stop> {
        while self.host.now() < until {
            self.step(event, until)?;
        }
        Ok(())
    }

    /// One step of the host. Whatever it was, a call that waits may go on after it.
    pub(super) fn step(&mut self, event: &Event, until: u64) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(unsupported(event, format!("more than {MOST_STEPS} things to do")));
        }
        if let Step::Sent(time, segment) = self.host.step(until) {
            self.sent.push_back((time, segment));
        }
        self.retry_call()
    }

    /// The next segment sent, waiting for it until `limit`.
    fn next_sent(&mut self, event: &Event, limit: u64) -> Result<Option<(u64, OnWire)>, Stop> {
        loop {
            if let Some(sent) = self.sent.pop_front() {
                return Ok(Some(sent));
            }
            // A step at the present instant hands over what the host has ready.
            let last_chance = self.host.now() >= limit;
            self.step(event, limit)?;
            if last_chance && self.sent.is_empty() {
                return Ok(None);
            }
        }
    }

    fn expect(&mut self, event: &Event, expected: &Segment, from: u64, to: u64) -> Result<(), Stop> {
        foreign_parts(event, expected)?;
        let limit = to.saturating_add(self.tolerance);
        let Some((time, mut actual)) = self.next_sent(event, limit)? else {
            let difference = Difference {
                field: "segment",
                expected: "one sent".into(),
                actual: format!("none until {} s", show::seconds(limit)),
            };
            return Err(failed(event, vec![difference], self.script_line(expected, from), "-".into()));
        };
        actual = self.mapping.shown(&actual, Some(expected));
        if !self.strict {
            self.join(event, expected, &mut actual, limit)?;
        }
        let mut list = differences(expected, &actual);
        let early = time.saturating_add(self.tolerance) < from;
        if event.when != When::Any && (early || time > limit) {
            let expected = if from == to { show::seconds(from) } else { range(from, to) };
            let actual = format!("{} (tolerance {} s)", show::seconds(time), show::seconds(self.tolerance));
            list.push(Difference { field: "time", expected, actual });
        }
        if list.is_empty() {
            return Ok(());
        }
        let line = show::line(Some(time), '>', &actual.tcp, Some(actual.ecn));
        Err(failed(event, list, self.script_line(expected, from), line))
    }

    /// packetdrill lets several segments in a row stand for one of the script's, since hosts hand several to
    /// their device at once (TSO): each as long as the one before but for the last, alike in everything else but
    /// PSH and FIN, which count at the end.
    fn join(
        &mut self,
        event: &Event,
        expected: &Segment,
        actual: &mut OnWire,
        limit: u64,
    ) -> Result<(), Stop> {
        let unit = actual.tcp.payload_len;
        let mut last = actual.tcp;
        while unit > 0 && actual.tcp.payload_len < expected.payload_len && last.payload_len == unit {
            let Some((time, next)) = self.next_sent(event, limit)? else { return Ok(()) };
            let shown = self.mapping.shown(&next, None);
            if !continues(&last, &shown) || shown.ecn != actual.ecn {
                self.sent.push_front((time, next));
                return Ok(());
            }
            last = shown.tcp;
            actual.tcp.payload_len += last.payload_len;
            let at_the_end = TcpFlags::PSH | TcpFlags::FIN;
            actual.tcp.flags.0 = (actual.tcp.flags.0 & !at_the_end) | (last.flags.0 & at_the_end);
        }
        Ok(())
    }

    fn script_line(&self, expected: &Segment, time: u64) -> String {
        let mut text = show::line(Some(time), '>', &header(expected), None);
        if expected.window.is_none() {
            text = text.replacen(" win 0", "", 1);
        }
        if expected.options == Options::Any {
            text.push_str(" <...>");
        }
        text
    }

    fn code(&mut self, event: &Event, code: &str) -> Result<(), Stop> {
        let host = &mut *self.host;
        for finding in python::check(code, &mut self.names, &mut |field| host.info(field)) {
            match finding {
                Finding::Unchecked(text) => self.unchecked.push(Note { line: event.line, text }),
                Finding::Broken(text, values) => {
                    let difference =
                        Difference { field: "assert", expected: "true".into(), actual: "false".into() };
                    return Err(failed(event, vec![difference], text, values));
                }
            }
        }
        Ok(())
    }

    /// What was sent after the last segment that the script waits for.
    fn unread(&mut self) -> Vec<String> {
        let now = self.host.now();
        while let Step::Sent(time, segment) = self.host.step(now) {
            self.sent.push_back((time, segment));
            if self.sent.len() > MOST_STEPS as usize {
                break;
            }
        }
        let sent = std::mem::take(&mut self.sent);
        let lines = sent.iter().map(|(time, segment)| {
            let shown = self.mapping.shown(segment, None);
            show::line(Some(*time), '>', &shown.tcp, Some(shown.ecn))
        });
        lines.collect()
    }
}

/// Whether `next` is the following piece of the same data.
fn continues(last: &tcpwhy_wire::Tcp, next: &OnWire) -> bool {
    // A FIN ends the last piece, CWR stands in the first (RFC 3168 section 6.1.2), and a host may push at the end
    // of what it handed to its device at once.
    let of_one_piece = TcpFlags::PSH | TcpFlags::FIN | TcpFlags::CWR;
    next.tcp.seq == last.seq.wrapping_add(last.payload_len)
        && next.tcp.payload_len > 0
        && next.tcp.payload_len <= last.payload_len
        && next.tcp.ack == last.ack
        && !last.flags.has(TcpFlags::FIN)
        && (next.tcp.flags.0 ^ last.flags.0) & !of_one_piece == 0
}

/// The times between which a step happens, in the host's time.
fn window(when: When, base: u64) -> (u64, u64) {
    match when {
        When::At(time) => (time, time),
        When::Within(from, to) => (from, to),
        When::After(delay) => (base + delay, base + delay),
        When::AfterWithin(from, to) => (base + from, base + to),
        When::Any => (base, base + LONGEST_WAIT_NS),
    }
}

fn range(from: u64, to: u64) -> String {
    format!("{} to {}", show::seconds(from), show::seconds(to))
}

/// What a segment may carry that no host here knows.
fn foreign_parts(event: &Event, segment: &Segment) -> Result<(), Stop> {
    if let Some(flags) = &segment.accurate_ecn {
        return Err(unsupported(event, format!("AccECN (RFC 9768), flags {flags}")));
    }
    if segment.urgent.is_some() || segment.flags.has(TcpFlags::URG) {
        return Err(unsupported(event, "urgent data".into()));
    }
    match &segment.options {
        Options::Listed { others, .. } if !others.is_empty() => {
            Err(unsupported(event, format!("the TCP option {}", others.join(", "))))
        }
        _ => Ok(()),
    }
}

pub(super) fn unsupported(event: &Event, text: String) -> Stop {
    Stop::Unsupported(Note { line: event.line, text })
}

pub(super) fn failed(event: &Event, differences: Vec<Difference>, script: String, actual: String) -> Stop {
    Stop::Failed(Box::new(Failure { line: event.line, differences, script, actual }))
}
