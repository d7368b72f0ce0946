//! What a rule may look at: one connection's facts and ledger, with the words to speak of them.

use tcpwhy_wire::Names;

use crate::diagnosis::ms;
use crate::flow::Connection;
use crate::flow::beliefs::vantage;
use crate::flow::fact::{Cause, End};
use crate::flow::half::Half;
use crate::flow::table::Record;
use crate::ledger::{Case, Ledger, Tally};
use crate::report::{Blame, Blamed, Evidence, Fix, Line, Side, Vantage};

/// One connection as the rules see it.
#[derive(Debug)]
pub struct Subject<'a> {
    pub(crate) id: u64,
    pub(crate) connection: &'a Connection,
    pub(crate) ledger: &'a Ledger,
    names: &'a Names,
    origin: i64,
    /// Texts are not wanted ([`crate::report::Source::skim`]).
    brief: bool,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(id: u64, record: &'a Record, names: &'a Names, origin: i64) -> Self {
        Self { id, connection: &record.connection, ledger: &record.ledger, names, origin, brief: false }
    }

    /// The same without texts.
    pub(crate) fn brief(self) -> Self {
        Self { brief: true, ..self }
    }

    /// A text, if texts are wanted.
    pub(crate) fn text(&self, make: impl FnOnce() -> String) -> String {
        if self.brief { String::new() } else { make() }
    }

    /// Fixes, if texts are wanted.
    pub(crate) fn fixes(&self, make: impl FnOnce() -> Vec<Fix>) -> Vec<Fix> {
        if self.brief { Vec::new() } else { make() }
    }

    /// First packet to last, ns.
    pub(crate) fn duration(&self) -> i64 {
        self.connection.last - self.connection.first
    }

    /// At how many places the capture lacks packets of this connection, as far as ACKs tell.
    pub(crate) fn gaps(&self) -> u64 {
        let is_lacking = |end: &usize| super::capture_gap::missing(self.connection, *end) > 0;
        let troubles = (0..2).filter(is_lacking).filter_map(|end| self.half(end).trouble.as_ref());
        troubles.map(|trouble| u64::from(trouble.gaps)).sum()
    }

    /// The time in which somebody waited for something, ns: all but what is idle.
    pub(crate) fn waiting(&self) -> i64 {
        self.duration() - self.booked(Line::Idle)
    }

    /// The time that is booked on a line, ns.
    pub(crate) fn booked(&self, line: Line) -> i64 {
        self.ledger.lines(self.connection)[line as usize]
    }

    /// The client's index.
    pub(crate) fn client(&self) -> End {
        self.connection.client().unwrap_or(0)
    }

    /// Which side an end is.
    pub(crate) fn side(&self, end: End) -> Side {
        if end == self.client() { Side::Client } else { Side::Server }
    }

    /// `client` or `server`.
    pub(crate) fn side_name(&self, end: End) -> &'static str {
        match self.side(end) {
            Side::Client => "client",
            Side::Server => "server",
        }
    }

    /// `ip:port` of an end.
    pub(crate) fn address(&self, end: End) -> String {
        self.text(|| self.names.socket(self.connection.ends[end]))
    }

    /// The host of an end, without its port.
    pub(crate) fn host(&self, end: End) -> String {
        self.names.host(self.connection.ends[end].address)
    }

    /// `the server 10.0.0.2:80`.
    pub(crate) fn who(&self, end: End) -> String {
        format!("the {} {}", self.side_name(end), self.address(end))
    }

    /// The same at the beginning of a sentence.
    pub(crate) fn capital(&self, end: End) -> String {
        format!("The {} {}", self.side_name(end), self.address(end))
    }

    /// Blame on one end.
    pub(crate) fn blame(&self, end: End) -> Blame {
        let side = match self.side(end) {
            Side::Client => Blamed::Client,
            Side::Server => Blamed::Server,
        };
        Blame { side, address: Some(self.address(end)) }
    }

    /// What `end` sends.
    pub(crate) fn half(&self, end: End) -> &Half {
        &self.connection.halves[end]
    }

    /// Waits of one cause on one end.
    pub(crate) fn tally(&self, cause: Cause, end: End) -> Option<&Tally> {
        self.ledger.tallies.get(cause, end)
    }

    /// All that Nagle's algorithm held of `end`.
    pub(crate) fn holds(&self, end: End) -> Option<Tally> {
        self.ledger.holds(self.connection, end)
    }

    /// All that the program of `end` took to answer.
    pub(crate) fn program(&self, end: End) -> Option<Tally> {
        self.ledger.program(self.connection, end)
    }

    /// Where the capture was taken.
    pub(crate) fn vantage(&self) -> Vantage {
        vantage(self.connection)
    }

    /// One packet as evidence.
    pub(crate) fn packet(&self, packet: u64, time: i64, note: String) -> Evidence {
        Evidence { packet, time_ms: ms(time.saturating_sub(self.origin).max(0)), note, capture: None }
    }

    /// The worst cases of a tally as evidence: for each, a note on the packet before the wait, the one that
    /// ended it and the one that then left; an empty note leaves that packet out.
    pub(crate) fn evidence(&self, tally: &Tally, note: impl Fn(&Case) -> [String; 3]) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        if self.brief {
            return evidence;
        }
        for case in tally.worst() {
            for ((packet, time), note) in case.packets.into_iter().zip(case.times).zip(note(case)) {
                if !note.is_empty() && packet != 0 {
                    evidence.push(self.packet(packet, time, note));
                }
            }
        }
        evidence
    }
}

/// A duration as a person reads it: three significant figures with its unit.
pub(crate) fn human(ns: i64) -> String {
    let ns = ns as f64;
    let (value, unit) = match ns.abs() {
        ns if ns < 999.5e3 => (1e3, "µs"),
        ns if ns < 999.5e6 => (1e6, "ms"),
        ns if ns < 120e9 => (1e9, "s"),
        _ => (60e9, "min"),
    };
    let value = ns / value;
    match value.abs() {
        0.0 => format!("0 {unit}"),
        v if v < 9.995 => format!("{value:.2} {unit}"),
        v if v < 99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

/// How often, in words where that reads better.
pub(crate) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// A count with its thousands apart: `10,010`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 segment`, `2,000 segments`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A share (0 to 1) in percent, never rounded to 0 or 100 unless it is.
pub(crate) fn percent(part: i64, whole: i64) -> String {
    let share = if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 };
    match share {
        0.0 => "0 %".to_owned(),
        s if s < 1.0 => "under 1 %".to_owned(),
        s if s > 99.0 && s < 100.0 => "over 99 %".to_owned(),
        s => format!("{s:.0} %"),
    }
}

/// Bytes in a time (ns) as a rate a person compares with a link's.
pub(crate) fn rate(bytes: u64, time: i64) -> String {
    let bits = bytes as f64 * 8e9 / time as f64;
    match bits {
        bits if bits < 999.5e3 => format!("{:.0} kbit/s", bits / 1e3),
        bits if bits < 9.995e6 => format!("{:.2} Mbit/s", bits / 1e6),
        bits if bits < 999.5e6 => format!("{:.0} Mbit/s", bits / 1e6),
        bits => format!("{:.1} Gbit/s", bits / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let cases = [(0, "0 µs"), (1_500, "1.50 µs"), (44_012_000, "44.0 ms"), (200_000_000, "200 ms")];
        for (ns, text) in cases {
            assert_eq!(human(ns), text);
        }
        assert_eq!(human(999_600_000), "1.00 s");
        assert_eq!(human(7_200_000_000_000), "120 min");
    }

    #[test]
    fn counts_read_well() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(10_010), "10,010");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(1, "segment"), "1 segment");
        assert_eq!(counted(2_000, "segment"), "2,000 segments");
    }

    #[test]
    fn a_share_is_never_rounded_to_all_or_nothing() {
        assert_eq!(percent(0, 5), "0 %");
        assert_eq!(percent(1, 1_000), "under 1 %");
        assert_eq!(percent(999, 1_000), "over 99 %");
        assert_eq!(percent(5, 5), "100 %");
        assert_eq!(percent(75, 100), "75 %");
    }

    #[test]
    fn rates_read_well() {
        assert_eq!(rate(2_896, 6_636_000), "3.49 Mbit/s");
        assert_eq!(rate(1_000, 100_000_000), "80 kbit/s");
        assert_eq!(rate(1_250_000, 1_000_000), "10.0 Gbit/s");
    }
}
