//! Results, as people or programs read them, on standard output.

use std::io::{self, Write};

use tcpwhy_diagnose::hops::Hops;
use tcpwhy_diagnose::report::Source;
use tcpwhy_report::json::Writer;
use tcpwhy_report::plain::plain;
use tcpwhy_report::terminal;

use crate::args::Format;
use crate::calls::Recorded;

/// Prints one capture's result after the other.
pub(crate) enum Printer<W: Write> {
    Terminal(W, terminal::Options),
    Json(Writer<W>),
}

impl<W: Write> Printer<W> {
    pub(crate) fn new(out: W, format: Format, options: terminal::Options) -> io::Result<Self> {
        Ok(match format {
            Format::Terminal => Self::Terminal(out, options),
            Format::Json => Self::Json(Writer::begin(out, env!("CARGO_PKG_VERSION"))?),
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
        }
    }

    /// A line of its own above what comes next, for people.
    pub(crate) fn heading(&mut self, text: &str) -> io::Result<()> {
        let Self::Terminal(out, options) = self else { return Ok(()) };
        if std::mem::take(&mut options.follows) {
            writeln!(out)?;
        }
        writeln!(out, "{text}\n")
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
        }
    }
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
