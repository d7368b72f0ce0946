//! Time-sequence plots: the data of one direction against time, as tcptrace's graphs and Wireshark's show it, with the
//! ledger's waits shaded behind it.
//!
//! [`svg()`] draws a [`Picture`] of one panel or several, beside or above each other: the two directions of a connection,
//! or two connections that are to be compared; [`png()`] turns what it drew into pixels. A panel takes what
//! [`tcpwhy_diagnose::Analyzer::recording`] recorded of a connection, wherever its packets came from. Both are pure: no
//! file, no font of the system. The number of marks is bounded by the picture's pixels, not by the capture's packets.

mod held;
mod holes;
mod legend;
mod marks;
mod panel;
mod png;
mod scale;
mod shade;
mod style;
mod svg;
mod xplot;

use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::flow::series::{Mark, Sack, Series};
use tcpwhy_diagnose::ledger::Bookings;
use tcpwhy_diagnose::report::{Connection, Line, Protocol, Side, Source as _};

use crate::number;
use crate::page::{GLUE, shortened};
use crate::plain::plain;
pub use held::HeldAck;
pub(crate) use held::held_acks;
use legend::{Entry, Legend, Sample};
use panel::{Contents, Drawing};
pub use png::{PngError, png};
use svg::{Area, Svg, Type};
pub use xplot::xplot;

/// One graph: the data of one side of one connection.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    /// What stands above it.
    pub heading: String,
    /// The connection's packets.
    pub series: &'a Series,
    /// Its ledger, interval by interval.
    pub bookings: &'a Bookings,
    /// Whose data it shows.
    pub sender: Side,
    /// Where its time axis begins, ns on the capture's clock.
    pub origin: i64,
    /// Packets to put a ring around, by number.
    pub evidence: Vec<u64>,
    /// ACKs that the receiver held, in order of time.
    pub held_acks: Vec<HeldAck>,
}

impl<'a> Panel<'a> {
    /// The data of `sender` on `connection`, which `diagnosis` must have recorded; the time axis begins with the capture,
    /// and the packets that show findings have rings. `bookings` are [`Diagnosis::bookings`] of it. `None` where it was
    /// not recorded, or has no TCP packet.
    pub fn of(
        diagnosis: &'a Diagnosis,
        bookings: &'a Bookings,
        connection: &Connection,
        sender: Side,
    ) -> Option<Self> {
        let is_tcp = connection.protocol == Protocol::Tcp;
        let series = diagnosis.series(connection.id).filter(|series| is_tcp && !series.marks.is_empty())?;
        let findings = diagnosis.findings_of(connection.id);
        let evidence =
            findings.iter().flat_map(|finding| &finding.evidence).map(|shown| shown.packet).collect();
        let held_acks = held_acks(series, sender, connection.vantage);
        let (heading, origin) = (String::new(), diagnosis.origin());
        let panel = Self { heading, series, bookings, sender, origin, evidence, held_acks };
        let bytes = match sender {
            Side::Client => connection.bytes.to_server,
            Side::Server => connection.bytes.to_client,
        };
        Some(Self { heading: panel.in_words(bytes), ..panel })
    }

    /// `client → server: 100 kB in 84 segments, 3 sent again`, for the `bytes` that this side sent.
    fn in_words(&self, bytes: u64) -> String {
        let contents = Contents::of(self, self.time());
        let ends = if self.sender == Side::Client { "client → server" } else { "server → client" };
        let Series { dropped, marks, .. } = self.series;
        let mut text = format!("{ends}: {}", number::bytes(bytes));
        if *dropped > 0 {
            let (kept, all) =
                (number::count(marks.len() as u64), number::count(dropped + marks.len() as u64));
            text = format!("{text} ({kept} of {all} packets are drawn)");
        } else {
            text = format!("{text} in {}", number::plural(contents.segments as u64, "segment"));
            if contents.again > 0 {
                text = format!("{text}, {} sent again", number::count(contents.again as u64));
            }
        }
        if self.bookings.is_coarse {
            text += " (short waits are put together)";
        }
        text.replace(GLUE, " ")
    }

    /// A time as ms from the origin.
    fn ms(&self, ns: i64) -> f64 {
        ns.saturating_sub(self.origin) as f64 / 1e6
    }

    /// First packet to last, ms from the origin.
    fn time(&self) -> (f64, f64) {
        let first = self.series.marks.first().map_or(0.0, |mark| self.ms(mark.time));
        (first, self.last())
    }

    fn last(&self) -> f64 {
        self.series.marks.last().map_or(0.0, |mark| self.ms(mark.time))
    }

    fn marks_until(&self, ms: f64) -> impl Iterator<Item = &'a Mark> {
        let end = self.series.marks.partition_point(|mark| self.ms(mark.time) <= ms);
        self.series.marks[..end].iter()
    }

    fn between(&self, (from, until): (f64, f64)) -> impl Iterator<Item = &'a Mark> {
        let begin = self.series.marks.partition_point(|mark| self.ms(mark.time) < from);
        self.marks_until(until).skip(begin)
    }

    fn held(&self, (from, until): (f64, f64)) -> impl Iterator<Item = &HeldAck> {
        let shown = move |held: &&HeldAck| self.ms(held.until) >= from && self.ms(held.from) <= until;
        self.held_acks.iter().filter(shown)
    }

    /// What the receiver of this direction's data reported.
    fn sacks(&self, (from, until): (f64, f64)) -> impl Iterator<Item = &'a Sack> {
        let begin = self.series.sacks.partition_point(|sack| self.ms(sack.time) < from);
        let end = self.series.sacks.partition_point(|sack| self.ms(sack.time) <= until).max(begin);
        self.series.sacks[begin..end].iter().filter(|sack| sack.from != self.sender)
    }
}

/// How several panels stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrangement {
    /// Above each other.
    #[default]
    Stacked,
    /// Side by side.
    SideBySide,
}

/// A picture of one panel or several, all with the same time axis.
#[derive(Clone, Debug)]
pub struct Picture<'a> {
    /// What it shows: one line, in bold.
    pub title: String,
    /// What that means: a sentence or two, on two lines at most.
    pub subtitle: String,
    /// The graphs, in order.
    pub panels: Vec<Panel<'a>>,
    /// How they stand.
    pub arrangement: Arrangement,
    /// Whether all have the same range of bytes, as transfers that are compared should; the two directions of a
    /// connection need their own.
    pub same_bytes: bool,
    /// From when until when, ms on the panels' axes; without an end from the first packet or to the last.
    pub time: (Option<f64>, Option<f64>),
    /// Width and height, pixels.
    pub size: (u32, u32),
}

/// Distance of everything from the picture's edges, pixels.
const EDGE: f64 = 14.0;
/// Sizes of the letters, the title's baseline, and the room below the subtitle.
const TITLE: f64 = 15.0;
const SUBTITLE: f64 = 12.0;
const TITLE_AT: f64 = 23.0;
const BELOW_HEAD: f64 = 8.0;
/// Bold letters are wider by this factor, prose with its many narrow ones is narrower.
const BOLD: f64 = 1.1;
const PROSE: f64 = 0.9;
/// Lines of the subtitle; what does not fit is cut.
const SUBTITLE_LINES: usize = 2;
/// Below the panels, above the legend.
const ABOVE_LEGEND: f64 = 6.0;
/// Room left and right of the first and last packet, as a share of the time between.
const MARGIN: f64 = 0.01;
/// A connection of one instant is drawn as if it took so many ms.
const SHORTEST: f64 = 0.001;

/// Draws a picture as SVG 1.1. Text from captures is written as text, whatever it holds.
pub fn svg(picture: &Picture<'_>) -> String {
    let (width, height) = (f64::from(picture.size.0), f64::from(picture.size.1));
    let time = picture.axis();
    let contents: Vec<_> = picture.panels.iter().map(|panel| Contents::of(panel, time)).collect();
    let legend = Legend::new(picture.legend(&contents, time), width - 2.0 * EDGE);
    let mut svg = Svg::new(picture.size, &picture.title, &picture.subtitle);
    let top = picture.draw_head(&mut svg);
    let foot = legend.height() + ABOVE_LEGEND + EDGE / 2.0;
    let room = Area { x: 0.0, y: top, width, height: height - top - foot };
    for (number, panel) in picture.panels.iter().enumerate() {
        let bytes = if picture.same_bytes { all_bytes(&contents) } else { contents[number].axis() };
        let area = picture.place(number, &room);
        Drawing { panel, contents: contents[number], area, time, bytes }.draw(&mut svg, number);
    }
    legend.draw(&mut svg, (EDGE, room.bottom() + ABOVE_LEGEND));
    svg.finish()
}

/// The bytes that all panels show together.
fn all_bytes(contents: &[Contents]) -> (f64, f64) {
    let axes = contents.iter().filter(|contents| contents.bytes.is_some()).map(Contents::axis);
    axes.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).unwrap_or((0.0, 1.0))
}

impl Picture<'_> {
    /// From when until when the axes go, ms.
    fn axis(&self) -> (f64, f64) {
        let times = self.panels.iter().map(Panel::time);
        let all = times.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).unwrap_or_default();
        let (first, last) = (self.time.0.unwrap_or(all.0), self.time.1.unwrap_or(all.1));
        let margin = (last - first).max(SHORTEST) * MARGIN;
        let from = self.time.0.unwrap_or(first - margin);
        let until = self.time.1.unwrap_or(last + margin);
        (from, until.max(from + SHORTEST))
    }

    /// The place of a panel in the room for all of them.
    fn place(&self, number: usize, room: &Area) -> Area {
        let (number, count) = (number as f64, self.panels.len() as f64);
        match self.arrangement {
            Arrangement::Stacked => {
                let height = room.height / count;
                Area { y: room.y + number * height, height, ..*room }
            }
            Arrangement::SideBySide => {
                let width = room.width / count;
                Area { x: room.x + number * width, width, ..*room }
            }
        }
    }

    /// The title, and the subtitle on as many lines as there is room for. Returns where they end.
    fn draw_head(&self, svg: &mut Svg) -> f64 {
        let columns =
            |size: f64| ((f64::from(self.size.0) - 2.0 * EDGE) / (size * style::CHARACTER)) as usize;
        let clean = |text: &str| plain(text).replace(GLUE, " ");
        let title = Type { bold: true, ..Type::plain(TITLE, style::INK) };
        svg.text((EDGE, TITLE_AT), &shortened(&clean(&self.title), columns(TITLE * BOLD)), title);
        let subtitle = clean(&self.subtitle);
        let mut lines = textwrap::wrap(&subtitle, columns(SUBTITLE * PROSE).max(1));
        if lines.len() > SUBTITLE_LINES {
            lines.truncate(SUBTITLE_LINES);
            lines[SUBTITLE_LINES - 1] += "…";
        }
        let mut y = TITLE_AT;
        for line in lines {
            y += SUBTITLE + 5.0;
            svg.text((EDGE, y), &line, Type::plain(SUBTITLE, style::FAINT));
        }
        y + BELOW_HEAD
    }

    /// The marks, and the lines of the ledger with the time they took. Where panels show several connections, whose
    /// time that is would be unclear.
    fn legend(&self, contents: &[Contents], time: (f64, f64)) -> Vec<Vec<Entry>> {
        let mut marks: Vec<Entry> = Vec::new();
        for entry in contents.iter().flat_map(Contents::legend) {
            if !marks.contains(&entry) {
                marks.push(entry);
            }
        }
        if contents.iter().any(Contents::hides_edge) && !contents.iter().any(Contents::shows_edge) {
            marks.push(Entry::new(Sample::Nothing, style::WINDOW, "(the window's edge is far above)"));
        }
        let mut sums: Vec<_> = self.panels.iter().map(|panel| panel.sums(time)).collect();
        sums.dedup();
        let lines = Line::ALL.into_iter().filter(|line| sums.iter().any(|sums| sums[*line as usize] > 0));
        let lines = lines.map(|line| {
            let text = match sums.as_slice() {
                [sums] => format!("{} {}", line.name(), number::duration(sums[line as usize] as f64 / 1e6)),
                _ => line.name().to_owned(),
            };
            Entry::new(Sample::Swatch, style::color(line), text)
        });
        vec![marks, lines.collect()]
    }
}

impl Panel<'_> {
    /// The ledger's time between two moments, ns on each line.
    fn sums(&self, (from, until): (f64, f64)) -> [i64; Line::ALL.len()] {
        let ns = |ms: f64| self.origin.saturating_add((ms * 1e6) as i64);
        shade::sums(&self.bookings.intervals, (ns(from), ns(until)))
    }
}
