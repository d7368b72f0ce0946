//! One time-sequence graph: the data of one direction against time, as tcptrace and Wireshark draw it.

use tcpwhy_diagnose::flow::series::{Kind, Mark, TcpFlags};
use tcpwhy_diagnose::report::Side;

use super::Panel;
use super::holes::each_hole;
use super::legend::{Entry, Sample};
use super::marks::{Bars, Boxes, Stairs};
use super::scale::{Scale, Ticks};
use super::svg::{Anchor, Area, Svg, Type};
use super::{shade, style};

/// Around the plot: labels left, a strip of the ledger and labels below, the heading above. Pixels.
const LEFT: f64 = 66.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 52.0;
const STRIP: f64 = 10.0;
const STRIP_GAP: f64 = 3.0;
const LABEL: f64 = 11.0;
/// The smallest bar of a segment, and of one that was sent again. Pixels.
const LEAST: f64 = 3.0;
const LEAST_AGAIN: f64 = 6.0;
/// Half the height of a held ACK's bar. Pixels.
const HELD: f64 = 3.0;
/// From so many segments on bars are thin.
const MANY: usize = 600;
/// The window's edge is drawn if the data takes this share of the height with it.
const LEAST_SHARE: f64 = 0.4;
/// Room above and below the data, as a share of it.
const MARGIN: f64 = 0.05;
/// SYN, FIN and RST are written at most so often.
const MOST_LETTERS: usize = 60;
/// Numbers of packets closer than this, in pixels, would cover each other.
const APART: (f64, f64) = (40.0, 12.0);
/// Radius of a ring. Pixels.
const RING: f64 = 5.0;

/// What a panel shows in some range of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Contents {
    /// Lowest and highest sequence number.
    pub(super) bytes: Option<(f64, f64)>,
    /// The highest edge of the window.
    edge: Option<f64>,
    pub(super) segments: usize,
    pub(super) again: usize,
    pub(super) payload: u64,
    probes: bool,
    sacks: bool,
    acks: bool,
    duplicates: bool,
    held: bool,
}

impl Contents {
    /// Looks through the marks between two moments, ms from the panel's origin.
    pub(super) fn of(panel: &Panel<'_>, time: (f64, f64)) -> Self {
        let mut contents = Self::default();
        let mut last_ack = None;
        for mark in panel.between(time) {
            if mark.from == panel.sender {
                contents.take_sent(mark);
            } else if let Some(ack) = mark.ack {
                contents.acks = true;
                contents.reach(ack as f64, ack as f64);
                contents.duplicates |= is_duplicate(mark, last_ack);
                last_ack = Some((ack, mark.window));
                if let Some(edge) = mark.edge() {
                    contents.edge = Some(contents.edge.unwrap_or(edge as f64).max(edge as f64));
                }
            }
        }
        contents.sacks = panel.sacks(time).next().is_some();
        contents.held = panel.held(time).next().is_some();
        contents
    }

    fn take_sent(&mut self, mark: &Mark) {
        match mark.kind {
            Kind::Bare => return,
            Kind::Probe => self.probes = true,
            Kind::Retransmission => (self.segments, self.again) = (self.segments + 1, self.again + 1),
            Kind::Data => {
                self.segments += 1;
                self.payload += u64::from(mark.len);
            }
        }
        self.reach(mark.seq as f64, mark.end() as f64);
    }

    fn reach(&mut self, low: f64, high: f64) {
        let (lowest, highest) = self.bytes.unwrap_or((low, high));
        self.bytes = Some((lowest.min(low), highest.max(high)));
    }

    /// The range of bytes that the axis shows: the data with its ACKs, and the window's edge where it is near.
    pub(super) fn axis(&self) -> (f64, f64) {
        let (low, high) = self.bytes.unwrap_or((0.0, 1.0));
        let high = if self.shows_edge() { self.edge.unwrap_or(high).max(high) } else { high };
        let span = (high - low).max(1.0);
        (low - span * MARGIN, high + span * MARGIN)
    }

    /// Whether there is an edge of the window, far above the data.
    pub(super) fn hides_edge(&self) -> bool {
        self.edge.is_some() && !self.shows_edge()
    }

    /// Whether the window's edge is near enough to the data to be shown.
    pub(super) fn shows_edge(&self) -> bool {
        let (Some((low, high)), Some(edge)) = (self.bytes, self.edge) else { return false };
        high - low >= (edge - low) * LEAST_SHARE
    }

    /// What the legend has to explain.
    pub(super) fn legend(&self) -> Vec<Entry> {
        let all = [
            (self.segments > self.again, Entry::new(Sample::Bar, style::DATA, "data")),
            (self.again > 0, Entry::new(Sample::Bar, style::RETRANSMISSION, "sent again")),
            (self.probes, Entry::new(Sample::Bar, style::PROBE, "probe")),
            (self.acks, Entry::new(Sample::Line, style::ACKED, "ACKed")),
            (self.duplicates, Entry::new(Sample::Bar, style::ACKED, "same ACK again")),
            (self.shows_edge(), Entry::new(Sample::Line, style::WINDOW, "window's edge")),
            (self.sacks, Entry::new(Sample::Bar, style::SACKED, "SACKed")),
            (self.sacks, Entry::new(Sample::Swatch, style::HOLE, "missing")),
            (self.held, Entry::new(Sample::Line, style::HELD, "ACK held")),
        ];
        all.into_iter().filter(|(shown, _)| *shown).map(|(_, entry)| entry).collect()
    }
}

/// Whether an ACK only says again what the one before it said (RFC 5681 section 2).
fn is_duplicate(mark: &Mark, before: Option<(i64, Option<u32>)>) -> bool {
    mark.len == 0
        && !mark.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST)
        && before.is_some_and(|(ack, window)| mark.ack == Some(ack) && mark.window == window)
}

/// SYN, FIN or RST, where a packet is one.
pub(super) fn letters(mark: &Mark) -> Option<&'static str> {
    let names = [(TcpFlags::SYN, "SYN"), (TcpFlags::FIN, "FIN"), (TcpFlags::RST, "RST")];
    names.into_iter().find(|(flag, _)| mark.flags.has(*flag)).map(|(_, name)| name)
}

/// A panel on its way into the picture.
pub(super) struct Drawing<'a> {
    pub(super) panel: &'a Panel<'a>,
    pub(super) contents: Contents,
    /// All that it may use.
    pub(super) area: Area,
    /// ms from the origin.
    pub(super) time: (f64, f64),
    pub(super) bytes: (f64, f64),
}

impl Drawing<'_> {
    /// Draws it; `number` tells the panels of a picture apart.
    pub(super) fn draw(&self, svg: &mut Svg, number: usize) {
        let plot = self.plot();
        let strip = Area { y: plot.bottom() + STRIP_GAP, height: STRIP, ..plot };
        let x = Scale { values: self.time, pixels: (plot.x, plot.right()) };
        let y = Scale { values: self.bytes, pixels: (plot.bottom(), plot.y) };
        let ms = |ns| self.panel.ms(ns);
        shade::draw(svg, (&plot, &strip), &self.panel.bookings.intervals, &x, ms);
        self.axes(svg, (&plot, &strip), &x, &y);
        svg.clipped(number, &plot, |svg| self.marks(svg, &x, &y));
        svg.outline(&plot, style::FRAME);
        svg.outline(&strip, style::FRAME);
        let heading = Type { bold: true, ..Type::plain(12.0, style::INK) };
        svg.text((plot.x, plot.y - 8.0), &self.panel.heading, heading);
        if self.contents.segments == 0 {
            let middle = (plot.x + plot.width / 2.0, plot.y + plot.height / 2.0);
            svg.text(
                middle,
                "no data in this direction",
                Type::plain(13.0, style::FAINT).anchored(Anchor::Middle),
            );
        }
    }

    /// Where the graph is, inside of its labels.
    fn plot(&self) -> Area {
        let Area { x, y, width, height } = self.area;
        Area {
            x: x + LEFT,
            y: y + TOP,
            width: (width - LEFT - RIGHT).max(1.0),
            height: (height - TOP - BOTTOM).max(1.0),
        }
    }

    fn axes(&self, svg: &mut Svg, (plot, strip): (&Area, &Area), x: &Scale, y: &Scale) {
        let label = Type::plain(LABEL, style::FAINT);
        let (times, bytes) = (Ticks::of_time(x), Ticks::of_bytes(y));
        for (value, text) in &times.marks {
            let at = x.at(*value);
            svg.rect(&Area { x: at, width: 1.0, ..*plot }, style::GRID, 0.7);
            svg.text((at, strip.bottom() + 13.0), text, label.anchored(Anchor::Middle));
        }
        for (value, text) in &bytes.marks {
            let at = y.at(*value);
            svg.rect(&Area { y: at, height: 1.0, ..*plot }, style::GRID, 0.7);
            svg.text((plot.x - 6.0, at + 4.0), text, label.anchored(Anchor::End));
        }
        let title = format!("{} since the capture's first packet", times.unit);
        let middle = (plot.x + plot.width / 2.0, strip.bottom() + 28.0);
        svg.text(middle, &title, label.anchored(Anchor::Middle));
        let from = if self.panel.sender == Side::Client { "client" } else { "server" };
        let middle = (plot.x - LEFT + 13.0, plot.y + plot.height / 2.0);
        svg.upright(middle, &format!("{} of the {from}", bytes.unit), label);
    }

    fn marks(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        self.draw_sacks(svg, x, y);
        self.draw_acks(svg, x, y);
        self.draw_data(svg, x, y);
        self.draw_letters(svg, x, y);
        self.draw_evidence(svg, x, y);
    }

    fn draw_sacks(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        let (mut sacked, mut missing) = (Bars::default(), Boxes::default());
        let height = |(low, high): (i64, i64)| (y.at(low as f64), y.at(high as f64));
        let all = self.panel.marks_until(self.time.1).filter(|mark| mark.from != self.panel.sender);
        each_hole(all, self.panel.sacks((f64::NEG_INFINITY, self.time.1)), |hole| {
            let (from, until) = (self.panel.ms(hole.from), self.panel.ms(hole.until));
            if until >= self.time.0 {
                missing.add((x.at(from.max(self.time.0)), x.at(until)), height(hole.bytes));
            }
        });
        for sack in self.panel.sacks(self.time) {
            sacked.add(x.at(self.panel.ms(sack.time)), height(sack.block), 1.0);
        }
        missing.draw(svg, "missing", style::HOLE);
        svg.lines("sacked", &sacked.path(), style::SACKED, 1.2);
    }

    fn draw_acks(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        let (mut acked, mut edge, mut duplicates) = (Stairs::default(), Stairs::default(), Bars::default());
        let (mut highest, mut last) = (None, None);
        for mark in self.panel.marks_until(self.time.1).filter(|mark| mark.from != self.panel.sender) {
            let Some(ack) = mark.ack else { continue };
            // What came before the picture begins at its left edge.
            let at = x.at(self.panel.ms(mark.time).max(self.time.0));
            let top = *highest.insert(ack.max(highest.unwrap_or(ack)));
            acked.to(at, y.at(top as f64));
            match mark.edge() {
                Some(right) => edge.to(at, y.at(right as f64)),
                None => edge.lift(),
            }
            if is_duplicate(mark, last) && self.panel.ms(mark.time) >= self.time.0 {
                duplicates.add(at, (y.at(ack as f64), y.at(ack as f64)), 6.0);
            }
            last = Some((ack, mark.window));
        }
        let mut held = Boxes::default();
        for hold in self.panel.held(self.time) {
            let times = (x.at(self.panel.ms(hold.from).max(self.time.0)), x.at(self.panel.ms(hold.until)));
            let middle = y.at(hold.acked as f64);
            held.add(times, (middle - HELD, middle + HELD));
        }
        held.draw(svg, "held", style::HELD);
        let end = x.at(self.panel.last().min(self.time.1));
        svg.lines("window", &edge.path(end), style::WINDOW, 1.3);
        svg.lines("acked", &acked.path(end), style::ACKED, 1.3);
        svg.lines("duplicate", &duplicates.path(), style::ACKED, 1.5);
    }

    fn draw_data(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        let (mut new, mut again, mut probes) = (Bars::default(), Bars::default(), Bars::default());
        for mark in self.panel.between(self.time).filter(|mark| mark.from == self.panel.sender) {
            let at = x.at(self.panel.ms(mark.time));
            let ends = (y.at(mark.seq as f64), y.at(mark.end() as f64));
            match mark.kind {
                Kind::Data => new.add(at, ends, LEAST),
                Kind::Retransmission => again.add(at, ends, LEAST_AGAIN),
                Kind::Probe => probes.add(at, ends, LEAST_AGAIN),
                Kind::Bare => {}
            }
        }
        let width = if self.contents.segments > MANY { 1.2 } else { 2.0 };
        svg.lines("data", &new.path(), style::DATA, width);
        svg.lines("retransmission", &again.path(), style::RETRANSMISSION, width + 0.8);
        svg.lines("probe", &probes.path(), style::PROBE, width + 0.8);
    }

    /// SYN, FIN and RST by name.
    fn draw_letters(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        let named = self.panel.between(self.time).filter(|mark| mark.from == self.panel.sender);
        let named = named.filter_map(|mark| Some((mark, letters(mark)?)));
        for (mark, name) in named.take(MOST_LETTERS) {
            let top = (y.at(mark.end() as f64) - 5.0).max(y.pixels.1 + 9.0);
            let at = (x.at(self.panel.ms(mark.time)), top);
            let anchor = if at.0 > x.pixels.1 - 24.0 { Anchor::End } else { Anchor::Start };
            let look = Type { halo: true, ..Type::plain(9.0, style::INK) };
            svg.text(at, name, look.anchored(anchor));
        }
    }

    /// Rings around the packets that show a finding, with their numbers where there is room.
    fn draw_evidence(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        let mut taken: Vec<(f64, f64)> = Vec::new();
        let shown = self.panel.between(self.time).filter(|mark| self.panel.evidence.contains(&mark.number));
        let placed = shown.filter_map(|mark| {
            let seq = if mark.from == self.panel.sender { Some(mark.end()) } else { mark.ack };
            Some((mark.number, (x.at(self.panel.ms(mark.time)), y.at(seq? as f64))))
        });
        let placed: Vec<_> = placed.collect();
        placed.iter().for_each(|(_, at)| svg.ring(*at, RING, style::INK));
        for (number, at) in &placed {
            let is_right = at.0 > x.pixels.1 - APART.0;
            let (anchor, gap) = if is_right { (Anchor::End, -8.0) } else { (Anchor::Start, 8.0) };
            // Below the mark first: the next ones stand above it.
            let heights = [at.1 + 11.0, at.1 - 6.0].map(|top| top.clamp(y.pixels.1 + 10.0, y.pixels.0 - 3.0));
            let is_free = |top: &f64| {
                let covers =
                    |other: &(f64, f64)| (other.0 - at.0).abs() < APART.0 && (other.1 - top).abs() < APART.1;
                !taken.iter().any(covers)
            };
            let Some(top) = heights.into_iter().find(is_free) else { continue };
            taken.push((at.0, top));
            let look = Type { bold: true, halo: true, ..Type::plain(10.0, style::INK) };
            svg.text((at.0 + gap, top), &number.to_string(), look.anchored(anchor));
        }
    }
}
