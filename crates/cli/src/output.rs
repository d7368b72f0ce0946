//! Standard output.

use std::io::{self, BufWriter, ErrorKind, Write};

use anstream::{AutoStream, ColorChoice};
use tcpwhy_report::page::Page;

use crate::args::Color;

/// Bytes gathered before they are written: a report of a million connections is hundreds of megabytes of JSON.
const BUFFER: usize = 64 << 10;

/// Columns where standard output is no terminal.
const COLUMNS: usize = 80;

/// Standard output, buffered.
pub(crate) type Stdout = BufWriter<io::StdoutLock<'static>>;

/// Standard output. Flush it: dropping swallows errors.
pub(crate) fn stdout() -> Stdout {
    BufWriter::with_capacity(BUFFER, io::stdout().lock())
}

/// Prints what `write` writes.
pub(crate) fn print(write: impl FnOnce(&mut Stdout) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = stdout();
    unless_broken_pipe(write(&mut out).and_then(|()| out.flush()))
}

/// Prints JSON for programs that people read, too: indented, with a line's end.
pub(crate) fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    print(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

/// Takes a reader that has seen enough (`| head`) for no error.
pub(crate) fn unless_broken_pipe(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(failed),
    }
}

/// Standard output cannot be written.
pub(crate) fn failed(error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("the result cannot be written")
}

/// How standard output looks to who reads it: its columns, and whether it is coloured.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    width: usize,
    color: bool,
}

impl Look {
    pub(crate) fn of(color: Color) -> Self {
        Self { width: columns(), color: colored(color) }
    }

    /// Prints the page that `write` writes.
    pub(crate) fn print(self, write: impl FnOnce(&mut Page<'_>) -> io::Result<()>) -> anyhow::Result<()> {
        print(|out| write(&mut Page::new(out, self.width, self.color)))
    }
}

/// Whether to colour standard output.
pub(crate) fn colored(color: Color) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
    }
}

/// Columns of the terminal that standard output is.
pub(crate) fn columns() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(COLUMNS, |(width, _)| usize::from(width.0))
}
