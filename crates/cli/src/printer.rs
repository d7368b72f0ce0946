//! Results, as people or programs read them, on standard output.

use std::io::{self, Write};

use tcpwhy_diagnose::hops::Hops;
use tcpwhy_diagnose::report::Source;
use tcpwhy_report::json::Writer;
use tcpwhy_report::terminal;

use crate::args::Format;
use crate::output::{self, Stdout};

/// Prints one capture's result after the other.
pub(crate) enum Printer {
    Terminal(Stdout, terminal::Options),
    Json(Writer<Stdout>),
}

impl Printer {
    pub(crate) fn new(format: Format, options: terminal::Options) -> io::Result<Self> {
        let out = output::stdout();
        Ok(match format {
            Format::Terminal => Self::Terminal(out, options),
            Format::Json => Self::Json(Writer::begin(out, env!("CARGO_PKG_VERSION"))?),
        })
    }

    pub(crate) fn print(&mut self, source: &dyn Source) -> io::Result<()> {
        match self {
            Self::Terminal(out, options) => {
                terminal::write(out, source, options)?;
                options.follows = true;
                // A person reads while the next file is being analysed.
                out.flush()
            }
            Self::Json(writer) => writer.capture(source),
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
        }
    }
}
