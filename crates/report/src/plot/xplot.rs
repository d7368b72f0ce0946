//! One direction of a connection for xplot, in the language that tcptrace's time-sequence graphs (`tcptrace -S`) are
//! written in: <http://www.xplot.org>, <https://www.tcptrace.org/manual/node12_mn.html>.
//!
//! The marks are tcptrace's: who can read its graphs can read these. What it does not have, the ledger's waits and the
//! packets that findings name, stands below the data and beside it. A line of the file is one mark, so it grows with the
//! packets; times have microseconds, as xplot knows no finer ones.

use std::fmt;
use std::io::{self, Write};

use tcpwhy_diagnose::flow::series::{Kind, Mark, TcpFlags};
use tcpwhy_diagnose::ledger::Booking;
use tcpwhy_diagnose::report::Line;

use super::Panel;
use super::panel::{Contents, letters};
use crate::number;
use crate::page::GLUE;
use crate::plain::plain;

/// Waits that are labelled, the longest, and the least share of the time that one has: more would cover each other.
const MOST_LABELS: usize = 40;
const LEAST_LABELLED: f64 = 0.02;
/// How far below the data the waits stand, and how far the plot goes beyond both, as shares of the data's height and of the
/// time.
const BELOW: f64 = 0.06;
const MARGIN: f64 = 0.04;
/// Characters of a title. xplot makes the names of its PostScript files of it, and file systems allow 255 bytes.
const MOST_TITLE: usize = 180;

/// Writes what `panel` shows between two moments, ms from its origin.
pub fn xplot(
    out: &mut impl Write,
    title: &str,
    panel: &Panel<'_>,
    time: (Option<f64>, Option<f64>),
) -> io::Result<()> {
    let range = (time.0.unwrap_or(f64::NEG_INFINITY), time.1.unwrap_or(f64::INFINITY));
    let contents = Contents::of(panel, range);
    let mut file = Xplot { out, panel, range, contents, color: "" };
    file.head(title)?;
    file.waits()?;
    file.acks()?;
    file.sacks()?;
    file.data()?;
    file.evidence()?;
    writeln!(file.out, "go")
}

struct Xplot<'a, W> {
    out: &'a mut W,
    panel: &'a Panel<'a>,
    range: (f64, f64),
    contents: Contents,
    /// The colour of what comes next.
    color: &'static str,
}

impl<W: Write> Xplot<'_, W> {
    fn head(&mut self, title: &str) -> io::Result<()> {
        // Sequence numbers are no `unsigned`, xplot's other type for them: those have 32 bits.
        writeln!(self.out, "timeval double")?;
        writeln!(self.out, "title\n{}", name(title))?;
        writeln!(self.out, "xlabel\ntime\nylabel\nsequence offset")
    }

    fn color(&mut self, color: &'static str) -> io::Result<()> {
        if self.color == color {
            return Ok(());
        }
        self.color = color;
        writeln!(self.out, "{color}")
    }

    fn point(&mut self, what: &str, ns: i64, seq: i64) -> io::Result<()> {
        writeln!(self.out, "{what} {} {seq}", Seconds(ns))
    }

    fn line(&mut self, from: (i64, i64), to: (i64, i64)) -> io::Result<()> {
        writeln!(self.out, "line {} {} {} {}", Seconds(from.0), from.1, Seconds(to.0), to.1)
    }

    /// A text beside a point: `a` above, `b` below, `r` right of it.
    fn text(&mut self, place: char, ns: i64, seq: i64, text: &str) -> io::Result<()> {
        writeln!(self.out, "{place}text {} {seq}\n{}", Seconds(ns), ascii(text))
    }

    /// What TCP withholds, as bars below the data, the longest with their names.
    fn waits(&mut self) -> io::Result<()> {
        let Some((low, high)) = self.contents.bytes else { return Ok(()) };
        let span = (high - low).max(1.0);
        let height = (low - (span * BELOW).max(1.0)).floor() as i64;
        let duration = self.margins(height, (high + span * MARGIN).ceil() as i64)?;
        let waits = lost(self.panel, self.range);
        let mut lengths: Vec<_> = waits.iter().map(|wait| wait.until - wait.from).collect();
        lengths.sort_unstable_by(|one, other| other.cmp(one));
        let least = lengths.get(MOST_LABELS).map_or(0, |next| next + 1);
        let least = least.max((duration as f64 * LEAST_LABELLED) as i64);
        // Neighbours' labels stand above and below.
        let mut places = ['a', 'b'].into_iter().cycle();
        for wait in waits {
            self.color(color(wait.line))?;
            self.line((wait.from, height), (wait.until, height))?;
            let length = wait.until - wait.from;
            if length >= least {
                let text = format!("{} {}", wait.line.name(), number::duration(length as f64 / 1e6));
                self.text(places.next().unwrap_or('a'), wait.from + length / 2, height, &text)?;
            }
        }
        Ok(())
    }

    /// Keeps the axes away from what is drawn, where it could not be read: from `low` down, from `high` up, and on both sides.
    /// The time in between, ns.
    fn margins(&mut self, low: i64, high: i64) -> io::Result<i64> {
        let (panel, range) = (self.panel, self.range);
        let ends = [panel.between(range).next(), panel.between(range).last()];
        let [first, last] = ends.map(|mark| mark.map_or(0, |mark| mark.time));
        let margin = |span: i64| (span as f64 * MARGIN).ceil() as i64;
        self.point("invisible", first - margin(last - first), low - margin(high - low))?;
        self.point("invisible", last + margin(last - first), high)?;
        Ok(last - first)
    }

    /// What has been ACKed (green, a tick down where an ACK says it again), and up to where the window reaches (yellow),
    /// where that is not so far above the data that these would be flat.
    fn acks(&mut self) -> io::Result<()> {
        let panel = self.panel;
        let (mut acked, mut edge) = (None, None);
        for mark in panel.between(self.range).filter(|mark| mark.from != panel.sender) {
            let Some(ack) = mark.ack else { continue };
            let highest = ack.max(acked.map_or(ack, |(_, before)| before));
            self.step("green", "dtick", &mut acked, (mark.time, highest))?;
            match mark.edge().filter(|_| self.contents.shows_edge()) {
                Some(right) => self.step("yellow", "utick", &mut edge, (mark.time, right))?,
                None => edge = None,
            }
        }
        Ok(())
    }

    /// A stair that keeps its height until `to`, and what is there.
    fn step(
        &mut self,
        color: &'static str,
        tick: &str,
        stair: &mut Option<(i64, i64)>,
        to: (i64, i64),
    ) -> io::Result<()> {
        self.color(color)?;
        match stair.replace(to) {
            None => self.point("dot", to.0, to.1),
            Some((time, height)) => {
                self.line((time, height), (to.0, height))?;
                if height == to.1 { self.point(tick, to.0, height) } else { self.line((to.0, height), to) }
            }
        }
    }

    /// What the receiver has beyond its ACK.
    fn sacks(&mut self) -> io::Result<()> {
        let panel = self.panel;
        for sack in panel.sacks(self.range) {
            self.color("purple")?;
            self.line((sack.time, sack.block.0), (sack.time, sack.block.1))?;
            self.text('r', sack.time, sack.block.1, "S")?;
        }
        Ok(())
    }

    /// Segments: an arrow down at the first byte, one up behind the last.
    fn data(&mut self) -> io::Result<()> {
        let panel = self.panel;
        for mark in panel.between(self.range).filter(|mark| mark.from == panel.sender) {
            match mark.kind {
                Kind::Data => self.segment("white", mark, None)?,
                Kind::Retransmission => self.segment("red", mark, Some("R"))?,
                Kind::Probe => self.segment("red", mark, Some("P"))?,
                Kind::Bare => {}
            }
            if let Some(letters) = letters(mark) {
                self.color("orange")?;
                self.text('a', mark.time, mark.end(), letters)?;
            }
        }
        Ok(())
    }

    fn segment(&mut self, color: &'static str, mark: &Mark, letter: Option<&str>) -> io::Result<()> {
        let (time, first, end) = (mark.time, mark.seq, mark.end());
        self.color(color)?;
        self.point("darrow", time, first)?;
        self.point("uarrow", time, end)?;
        self.line((time, first), (time, end))?;
        if mark.flags.has(TcpFlags::PSH) {
            self.point("diamond", time, end)?;
        }
        letter.map_or(Ok(()), |letter| self.text('a', time, end, letter))
    }

    /// The packets that findings name, by their numbers.
    fn evidence(&mut self) -> io::Result<()> {
        let panel = self.panel;
        for mark in panel.between(self.range).filter(|mark| panel.evidence.contains(&mark.number)) {
            let seq = if mark.from == panel.sender { Some(mark.end()) } else { mark.ack };
            let Some(seq) = seq else { continue };
            self.color("magenta")?;
            self.point("box", mark.time, seq)?;
            self.text('r', mark.time, seq, &mark.number.to_string())?;
        }
        Ok(())
    }
}

/// The waits between two moments, ms from the panel's origin, that TCP is to blame for, cut at these.
fn lost(panel: &Panel<'_>, range: (f64, f64)) -> Vec<Booking> {
    let [from, until] = [range.0, range.1].map(|ms| panel.origin.saturating_add((ms * 1e6) as i64));
    let lost = panel.bookings.intervals.iter().filter(|wait| wait.line.is_lost());
    let inside =
        lost.map(|wait| Booking { from: wait.from.max(from), until: wait.until.min(until), ..*wait });
    inside.filter(|wait| wait.from < wait.until).collect()
}

/// A time in ns as xplot reads it: seconds and six digits.
struct Seconds(i64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.max(0) / 1_000;
        write!(f, "{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    }
}

/// A text on one line, in the letters that X's old fonts have.
fn ascii(text: &str) -> String {
    let text = plain(text).replace(GLUE, " ").replace('→', "->").replace('µ', "u");
    text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}

/// A title, of which xplot makes a file's name.
fn name(title: &str) -> String {
    ascii(title).chars().map(|c| if c == '/' { '_' } else { c }).take(MOST_TITLE).collect()
}

/// xplot's colours for what TCP withholds, on its black ground.
fn color(line: Line) -> &'static str {
    match line {
        Line::Nagle => "orange",
        Line::DelayedAck => "yellow",
        Line::Cwnd => "purple",
        Line::Rwnd => "blue",
        Line::Queueing => "pink",
        Line::Recovery => "red",
        _ => "magenta",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_titles_name_no_folder() {
        assert_eq!(name("#0  ../../etc/cron.d/x → b\n\u{1b}"), "#0  .._.._etc_cron.d_x -> b \\u{1b}");
        assert_eq!(name(&"x".repeat(1_000)).len(), MOST_TITLE);
        assert_eq!(ascii("Zürich\ngo"), "Z?rich go");
    }

    #[test]
    fn times_have_six_digits() {
        assert_eq!(Seconds(1_700_000_000_000_012_999).to_string(), "1700000000.000012");
        assert_eq!(Seconds(-5).to_string(), "0.000000");
    }
}
