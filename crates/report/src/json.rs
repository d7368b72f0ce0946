//! `tcpwhy-report/2`, the report for programs: docs/report-format.md describes it, docs/report.schema.json
//! holds it.
//!
//! Connections and findings are written as they are made, one a line, so memory does not grow with them.

use std::io::{self, Write};

use serde::ser::{Serialize, Serializer};
use serde_json::ser::Formatter;
use tcpwhy_diagnose::hops::Hops;
use tcpwhy_diagnose::report::{Capture, FORMAT, Finding, Source, WhatIf};

use crate::plain::is_hidden;
use crate::terminal;

/// Writes a report capture by capture, so that each can be dropped before the next is read.
pub struct Writer<W: Write> {
    out: W,
    captures: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a report; `version` is that of the program.
    pub fn begin(mut out: W, version: &str) -> io::Result<Self> {
        write!(out, "{{\"format\":")?;
        compact(&mut out, FORMAT)?;
        write!(out, ",\"version\":")?;
        compact(&mut out, version)?;
        write!(out, ",\"captures\":[")?;
        Ok(Self { out, captures: 0 })
    }

    /// Writes the next capture.
    pub fn capture(&mut self, source: &dyn Source) -> io::Result<()> {
        self.recorded_capture(source, None::<&()>)
    }

    /// The same with what calls of programs tell beside it, if they were recorded.
    pub fn recorded_capture(
        &mut self,
        source: &dyn Source,
        calls: Option<&impl Serialize>,
    ) -> io::Result<()> {
        self.out.write_all(if self.captures == 0 { b"\n" } else { b",\n" })?;
        self.captures += 1;
        let (connections, findings) = (Connections(source), Findings(source));
        let verdict = Verdict(source);
        compact(
            &mut self.out,
            &CaptureReport { capture: source.capture(), connections, findings, verdict, calls },
        )
    }

    /// Ends the report and hands the output back, flushed.
    pub fn end(self) -> io::Result<W> {
        self.end_with(None)
    }

    /// The same; `hops` are the conversations that its captures show on two hops, if there is anything to say of such.
    pub fn end_with(mut self, hops: Option<&Hops>) -> io::Result<W> {
        self.out.write_all(b"]")?;
        if let Some(hops) = hops {
            self.out.write_all(b",\"hops\":")?;
            compact(&mut self.out, hops)?;
        }
        self.out.write_all(b"}\n")?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Writes a whole report.
pub fn write<'a>(
    out: &mut impl Write,
    sources: impl IntoIterator<Item = &'a dyn Source>,
    version: &str,
) -> io::Result<()> {
    let mut writer = Writer::begin(out, version)?;
    sources.into_iter().try_for_each(|source| writer.capture(source))?;
    writer.end().map(|_| ())
}

/// Serialises `value` in this format's layout: one element a line in its outermost arrays, no other line ends, and
/// nothing in strings that acts on a terminal.
pub fn compact(out: &mut impl Write, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    value
        .serialize(&mut serde_json::Serializer::with_formatter(out, Layout::default()))
        .map_err(io::Error::from)
}

#[derive(serde::Serialize)]
struct CaptureReport<'a, C> {
    #[serde(flatten)]
    capture: Capture,
    connections: Connections<'a>,
    findings: Findings<'a>,
    verdict: Verdict<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<&'a C>,
}

struct Verdict<'a>(&'a dyn Source);

impl Serialize for Verdict<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Signed {
            sign: terminal::Sign,
            text: String,
        }
        let (sign, text) = terminal::signed_verdict(self.0);
        Signed { sign, text }.serialize(serializer)
    }
}

struct Connections<'a>(&'a dyn Source);

impl Serialize for Connections<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.connections())
    }
}

struct Findings<'a>(&'a dyn Source);

impl Serialize for Findings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let findings =
            self.0.findings().map(|finding| Quoting { what_if: self.0.what_if(&finding), finding });
        serializer.collect_seq(findings)
    }
}

/// A finding, and what a fix of it would have saved if somebody knows.
struct Quoting {
    finding: Finding,
    what_if: Option<WhatIf>,
}

impl Serialize for Quoting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Both<'a> {
            #[serde(flatten)]
            finding: &'a Finding,
            what_if: &'a WhatIf,
        }
        match &self.what_if {
            Some(what_if) => Both { finding: &self.finding, what_if }.serialize(serializer),
            None => self.finding.serialize(serializer),
        }
    }
}

/// One element a line in the arrays right below a capture, so that `grep` and `head` work on a report, and
/// nothing in strings that acts on a terminal.
#[derive(Default)]
struct Layout {
    arrays: u32,
}

impl Formatter for Layout {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.arrays += 1;
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.arrays -= 1;
        out.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        if self.arrays == 1 { out.write_all(b"\n") } else { Ok(()) }
    }

    /// JSON itself asks only for C0 controls to be escaped; a terminal also obeys C1 and direction overrides.
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_hidden) {
            let (before, from) = rest.split_at(at);
            out.write_all(before.as_bytes())?;
            let mut chars = from.chars();
            if let Some(c) = chars.next() {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
            rest = chars.as_str();
        }
        out.write_all(rest.as_bytes())
    }
}
