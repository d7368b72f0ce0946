//! How much time was booked right.

use std::fmt;

use tcpwhy_diagnose::ledger::Booking;
use tcpwhy_diagnose::report::Line;
use tcpwhy_simulate::truth::{self, Span};

use crate::floors::Floors;

/// Time by what it is and as what it was booked, ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    times: [[u64; Line::ALL.len()]; truth::Line::ALL.len()],
}

impl Score {
    /// Adds one connection, instant by instant.
    pub(crate) fn add(&mut self, truth: &[Span], booked: &[Booking]) {
        let mut booked = booked.iter().peekable();
        let is_program = |span: &Span| matches!(span.line, truth::Line::ClientApp | truth::Line::ServerApp);
        let last = truth.iter().rposition(is_program);
        for (index, span) in truth.iter().enumerate() {
            // Nobody waits for a program to close.
            let closes = Some(index) == last;
            let mut now = span.from;
            while now < span.until {
                while booked.next_if(|booking| booking.until as u64 <= now).is_some() {}
                let Some(booking) = booked.peek() else { return };
                let until = span.until.min(booking.until as u64);
                let line = if is_idle(span, booking, closes) { own(span.line) } else { booking.line };
                self.times[span.line as usize][line as usize] += until - now;
                now = until;
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (row, more) in self.times.iter_mut().zip(&other.times) {
            row.iter_mut().zip(more).for_each(|(time, more)| *time += more);
        }
    }

    fn is(&self, line: truth::Line) -> u64 {
        self.times[line as usize].iter().sum()
    }

    fn right(&self, line: truth::Line) -> u64 {
        Line::ALL
            .iter()
            .filter(|booked| booked.name() == line.name())
            .map(|booked| self.times[line as usize][*booked as usize])
            .sum()
    }

    fn booked(&self, line: truth::Line) -> u64 {
        let booked = Line::ALL.iter().find(|booked| booked.name() == line.name());
        booked.map_or(0, |booked| self.times.iter().map(|row| row[*booked as usize]).sum())
    }

    /// Share of the time on a line that was booked on it, in percent.
    pub(crate) fn share(&self, line: truth::Line) -> f64 {
        percent(self.right(line), self.is(line))
    }

    /// The same of all time.
    pub(crate) fn overall(&self) -> f64 {
        let right = truth::Line::ALL.iter().map(|line| self.right(*line)).sum();
        percent(right, truth::Line::ALL.iter().map(|line| self.is(*line)).sum())
    }

    /// What is booked right less often than is recorded.
    pub(crate) fn worse_than(&self, floors: &Floors) -> Vec<String> {
        let lines = floors.lines.iter().map(|(line, floor)| (line.name(), self.share(*line), *floor));
        let all = lines.chain([("overall", self.overall(), floors.overall)]);
        let worse = all.filter(|(_, share, floor)| share < floor);
        worse.map(|(name, share, floor)| format!("{name}: {share:.2} %, recorded is {floor:.1} %")).collect()
    }

    /// Time that was booked on a wrong line, ns.
    pub(crate) fn wrong(&self) -> u64 {
        truth::Line::ALL.iter().map(|line| self.is(*line) - self.right(*line)).sum()
    }

    /// Time that is `line` and was booked as `booked`, ns.
    pub(crate) fn confused(&self, line: &str, booked: &str) -> u64 {
        let row = truth::Line::ALL.iter().position(|known| known.name() == line);
        let column = Line::ALL.iter().position(|known| known.name() == booked);
        row.zip(column).map_or(0, |(row, column)| self.times[row][column])
    }
}

/// Whether a program was silent for so long, or until it closed, that an analysis may say that nobody waited for it. The
/// simulator's programs do not tell whether they wait.
fn is_idle(span: &Span, booking: &Booking, closes: bool) -> bool {
    const DIALOGUE: u64 = 2_000_000_000;
    let is_program = matches!(span.line, truth::Line::ClientApp | truth::Line::ServerApp);
    booking.line == Line::Idle && is_program && (closes || span.until - span.from > DIALOGUE)
}

/// The line of a ledger that has the name of a truth's.
fn own(line: truth::Line) -> Line {
    let known = Line::ALL.into_iter().find(|known| known.name() == line.name());
    known.unwrap_or(Line::Unexplained)
}

pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Elsewhere: the lines that took most.
const MOST_ELSEWHERE: usize = 4;

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns / 1_000_000;
        writeln!(f, "{:<12} {:>10} {:>7} {:>8}  booked elsewhere", "line", "truth ms", "right", "of booked")?;
        for line in truth::Line::ALL {
            let (is, right, booked) = (self.is(line), self.share(line), self.booked(line));
            let sure = percent(self.right(line), booked);
            write!(f, "{:<12} {:>10} {right:>6.1}% {sure:>7.1}% ", line.name(), ms(is))?;
            let row = self.times[line as usize];
            let mut others: Vec<_> =
                Line::ALL.into_iter().filter(|booked| booked.name() != line.name()).collect();
            others.sort_by_key(|other| std::cmp::Reverse(row[*other as usize]));
            for other in others.into_iter().take(MOST_ELSEWHERE).filter(|other| row[*other as usize] > 0) {
                write!(
                    f,
                    " {} {} ({:.1}%)",
                    other.name(),
                    ms(row[other as usize]),
                    percent(row[other as usize], is)
                )?;
            }
            writeln!(f)?;
        }
        write!(
            f,
            "overall {:.2} % of {} ms",
            self.overall(),
            ms(truth::Line::ALL.iter().map(|line| self.is(*line)).sum())
        )
    }
}
