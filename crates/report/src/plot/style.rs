//! Colours that people with any colour vision can tell apart on white: the palette of Okabe and Ito
//! (<https://jfly.uni-koeln.de/color/>), and greys and tints beside it for what TCP does not withhold.

use tcpwhy_diagnose::report::Line;

pub(super) const BACKGROUND: &str = "#ffffff";
/// Titles.
pub(super) const INK: &str = "#1f2328";
/// Labels.
pub(super) const FAINT: &str = "#59636e";
/// Frames and axes.
pub(super) const FRAME: &str = "#8c959f";
/// Lines across the plot at each tick.
pub(super) const GRID: &str = "#e4e8ec";

/// Data that was sent for the first time.
pub(super) const DATA: &str = "#1b3a8a";
/// Data that was sent again.
pub(super) const RETRANSMISSION: &str = "#d1170c";
/// What has been ACKed.
pub(super) const ACKED: &str = "#00734f";
/// Up to where the window reaches.
pub(super) const WINDOW: &str = "#7a8794";
/// What the receiver has beyond its ACK.
pub(super) const SACKED: &str = "#8e3fa8";
/// What it lacks below that.
pub(super) const HOLE: &str = "#ee7aa5";
/// While its receiver held an ACK.
pub(super) const HELD: &str = "#c9a400";
/// A segment that asks whether the window has opened or the other side is there.
pub(super) const PROBE: &str = "#8c510a";

/// The first is what pictures are measured with; Verdana has the same widths.
pub(super) const FONT: &str = "DejaVu Sans, Verdana, sans-serif";
/// Width of a character of that font, on average, as a share of its size.
pub(super) const CHARACTER: f64 = 0.61;

/// The colour of a ledger's line.
pub(super) fn color(line: Line) -> &'static str {
    match line {
        Line::Handshake => "#8c8c8c",
        Line::ClientApp => "#dcdfe3",
        Line::ServerApp => "#bfc5cc",
        Line::Idle => "#f7f8f9",
        Line::Network => "#eef1f4",
        Line::Transfer => "#cfe8d8",
        Line::Queueing => "#cc79a7",
        Line::Nagle => "#e69f00",
        Line::DelayedAck => "#f0e442",
        Line::Cwnd => "#56b4e9",
        Line::Rwnd => "#0072b2",
        Line::Recovery => "#d55e00",
        Line::Rto => "#7b1e4b",
        Line::Unexplained => "#fbd5d0",
    }
}

/// How strongly a line's time is shaded over the height of the plot, 0 to 1: what TCP withholds is, what programs and
/// the path take is not.
pub(super) fn shade(line: Line) -> f64 {
    match line {
        // The palette's yellow is pale, its purple dark.
        Line::DelayedAck => 0.4,
        Line::Rto => 0.2,
        Line::Rwnd => 0.22,
        Line::Handshake => 0.15,
        _ if line.is_lost() => 0.28,
        _ => 0.0,
    }
}
