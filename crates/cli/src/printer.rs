//! Results, as people or programs read them, on standard output.

use std::io::{self, Write};

use tcpwhy_diagnose::hops::Hops;
use tcpwhy_diagnose::report::Source;
use tcpwhy_report::csv::Table;
use tcpwhy_report::plain::plain;
use tcpwhy_report::{csv, json, junit, markdown, terminal};

use crate::args::ReportFormat;
use crate::calls::Recorded;
use crate::fail_on::{self, FailOn};

/// Prints one capture's result after the other.
pub(crate) enum Printer<W: Write> {
    Terminal(W, terminal::Options),
    Json(json::Writer<W>),
    Csv(Box<csv::Writer<W>>),
    /// This one and the next with how the terminal would have what calls tell.
    Markdown(markdown::Writer<W>, terminal::Options),
    Junit(junit::Writer<W>, terminal::Options),
}

impl<W: Write> Printer<W> {
    /// `fail_on` says what JUnit's failures are.
    pub(crate) fn new(
        out: W,
        format: ReportFormat,
        options: terminal::Options,
        fail_on: &[FailOn],
    ) -> io::Result<Self> {
        Ok(match format {
            ReportFormat::Terminal => Self::Terminal(out, options),
            ReportFormat::Json => Self::Json(json::Writer::begin(out, env!("CARGO_PKG_VERSION"))?),
            ReportFormat::Csv => Self::Csv(Box::new(csv::Writer::begin(out, Table::Connections)?)),
            ReportFormat::CsvFindings => Self::Csv(Box::new(csv::Writer::begin(out, Table::Findings)?)),
            ReportFormat::Markdown => Self::Markdown(markdown::Writer::begin(out, options.top), options),
            ReportFormat::Junit => {
                Self::Junit(junit::Writer::begin(out, fail_on::criteria(fail_on))?, options)
            }
        })
    }

    /// `recorded` is what was recorded beside the packets.
    pub(crate) fn print(&mut self, source: &dyn Source, recorded: Option<&Recorded>) -> io::Result<()> {
        match self {
            Self::Terminal(out, options) => {
                print(source, recorded, out, options)?;
                options.follows = true;
                // A person reads while the next file is being analysed.
                out.flush()
            }
            Self::Json(writer) => writer.recorded_capture(source, recorded),
            Self::Csv(writer) => writer.capture(source),
            Self::Markdown(writer, options) => match recorded {
                None => writer.capture(source),
                Some(recorded) if source.capture().packets > 0 => {
                    writer.capture(source)?;
                    writer.block(&text(|out| recorded.print(options.top, out))?)
                }
                Some(_) => writer.block(&text(|out| print(source, recorded, out, options))?),
            },
            Self::Junit(writer, options) => {
                let split = recorded.filter(|recorded| recorded.has_split_writes());
                let split = split.map(|recorded| text(|out| recorded.print(options.top, out)));
                writer.capture(source, split.transpose()?)
            }
        }
    }

    /// Whether what is printed says that something passed.
    pub(crate) fn is_verdict(&self) -> bool {
        matches!(self, Self::Junit(..))
    }

    /// A line of its own above what comes next, for people.
    pub(crate) fn heading(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Terminal(out, options) => {
                if std::mem::take(&mut options.follows) {
                    writeln!(out)?;
                }
                writeln!(out, "{text}\n")
            }
            Self::Markdown(writer, _) => writer.heading(text),
            Self::Json(_) | Self::Csv(_) | Self::Junit(..) => Ok(()),
        }
    }

    /// An input could not be read: for formats that somebody reads without looking at standard error.
    pub(crate) fn unread(&mut self, name: &str, why: &str) -> io::Result<()> {
        match self {
            Self::Junit(writer, _) => writer.unread(name, why),
            Self::Terminal(..) | Self::Json(_) | Self::Csv(_) | Self::Markdown(..) => Ok(()),
        }
    }

    /// Ends the report; `hops` are the conversations that its captures show on two hops, if there is anything to say of
    /// such.
    pub(crate) fn finish(self, hops: Option<&Hops>) -> io::Result<()> {
        match self {
            Self::Terminal(mut out, options) => {
                hops.map_or(Ok(()), |hops| terminal::write_hops(&mut out, hops, &options))?;
                out.flush()
            }
            Self::Json(writer) => writer.end_with(hops).map(drop),
            Self::Csv(writer) => writer.end(hops).map(drop),
            Self::Markdown(writer, _) => writer.end(hops).map(drop),
            Self::Junit(writer, _) => writer.end(hops).map(drop),
        }
    }
}

/// What `write` writes.
fn text(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<String> {
    let mut bytes = Vec::new();
    write(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn print(
    source: &dyn Source,
    recorded: Option<&Recorded>,
    out: &mut impl Write,
    options: &terminal::Options,
) -> io::Result<()> {
    let Some(recorded) = recorded else {
        return terminal::write(out, source, options);
    };
    let capture = source.capture();
    if capture.packets > 0 {
        terminal::write(out, source, options)?;
        writeln!(out)?;
        return recorded.print(options.top, out);
    }
    // Calls alone need no analysis of nothing.
    let no_packets = &recorded.about().no_packets;
    if !no_packets.is_empty() && !recorded.sockets.is_empty() {
        writeln!(out, "{}\n", plain(no_packets))?;
    }
    for note in &capture.notes {
        writeln!(out, "{}\n", plain(note))?;
    }
    recorded.print(options.top, out)
}
