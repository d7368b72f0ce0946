//! A sender that could send more and does not.

use super::rule::{Check, rule};
use super::subject::{Subject, counted, human, percent, times};
use super::windows::matters;
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::flow::flight::Buffer;
use crate::ledger::Tally;
use crate::report::{Finding, Fix, Severity};

rule! {
    /// The sender stopped with little in flight although both windows had room: its send buffer was full.
    ///
    /// ## What it means
    /// What is in flight stays in the sender's socket buffer until it is ACKed, in case it has to be sent again. A
    /// buffer smaller than rate × round trip is full with what is on its way, the program's write() waits, and the
    /// path runs empty until the next ACK: no more than the buffer goes out each round trip.
    ///
    /// ## How it is detected
    /// Captured at the sender: it stopped, a pure ACK came, and full segments left within a millisecond; the
    /// receiver's window had room, nothing had been lost or marked, the round trip was the base one, and no program
    /// had answered. Two things then tell that the congestion window was not what stopped it: it stopped with half or
    /// less on its way of what it had had on its way before, and a congestion window does not shrink by itself; or
    /// it stopped with the same amount, within a segment, more than eight rounds in a row, where a congestion window
    /// would have grown. Rounds before the proof stay with `slow-start` or the ledger's `cwnd`; the rest is on `rwnd`, the
    /// line of buffers. From a full receive window it differs by that window's room: that is `small-receive-window`.
    ///
    /// A program cannot see ACKs as long as it does not ask the kernel (`SIOCOUTQ`), so one that keeps a window of its own
    /// waits for answers and is not meant here. `TCP_NOTSENT_LOWAT` and a fixed congestion window (a clamp, a
    /// route's `cwnd` lock, BBR's probe of the round trip) can look alike; the finding's confidence says so.
    ///
    /// ## What to do
    /// Remove a fixed `SO_SNDBUF`: Linux then sizes the buffer itself, up to `net.ipv4.tcp_wmem`. Or make it at least
    /// twice rate × round trip. A larger `TCP_NOTSENT_LOWAT`, and larger writes, if that is what is set.
    ///
    /// ## References
    /// tcp(7), `SO_SNDBUF` and `tcp_wmem`; RFC 9293 section 3.8.6.2.1; RFC 7661 (windows that are not used).
    SMALL_SEND_BUFFER = "small-send-buffer", Severity::Problem, Check::Connection(check)
}

/// Fewer stops could be a program that was late just then.
const FEWEST: u64 = 3;
/// The congestion window has been seen larger: it cannot have stopped the sender, its program hardly.
const CONFIDENCE: f64 = 0.85;
/// Nothing but the lack of growth speaks against the congestion window.
const CONFIDENCE_LEVEL: f64 = 0.7;
/// A send buffer holds about twice what is in flight (Linux counts its own overhead), and the advice leaves as much again.
const BUFFER_SHARE: i64 = 4;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        let Some(sending) = subject.connection.sending(end) else { continue };
        if let Some(tally) = subject.tally(Cause::SendBuffer, end)
            && tally.count >= FEWEST
            && matters(subject, tally.total)
        {
            findings.push(finding(subject, end, tally, &sending.flights.buffer));
        }
    }
}

fn finding(subject: &Subject<'_>, end: End, tally: &Tally, buffer: &Buffer) -> Finding {
    let is_level = buffer.level_stops * 2 > buffer.stops;
    Finding {
        rule: SMALL_SEND_BUFFER.name,
        severity: SMALL_SEND_BUFFER.severity,
        connection: Some(subject.id),
        blame: subject.blame(end),
        count: tally.count,
        cost_ms: ms(tally.total),
        worst_ms: ms(tally.worst().first().map_or(0, |case| case.length)),
        confidence: if is_level { CONFIDENCE_LEVEL } else { CONFIDENCE },
        summary: subject.text(|| summary(subject, end, tally, buffer, is_level)),
        evidence: subject.evidence(tally, |_| {
            [
                "the sender stops; both windows have room".to_owned(),
                "an ACK frees part of its buffer".to_owned(),
                "it goes on at once".to_owned(),
            ]
        }),
        fixes: subject.fixes(|| fixes(subject, end, buffer)),
    }
}

fn summary(subject: &Subject<'_>, end: End, tally: &Tally, buffer: &Buffer, is_level: bool) -> String {
    let amount = if buffer.most - buffer.least <= u64::from(subject.half(end).full_size()) {
        counted(buffer.most, "byte")
    } else {
        format!("{} to {}", super::subject::grouped(buffer.least), counted(buffer.most, "byte"))
    };
    let proof = if is_level {
        "That amount does not grow as a congestion window would; a clamped one would look the same."
            .to_owned()
    } else {
        format!(
            "The congestion window is not what stopped it: it had allowed {} before, and nothing was lost since.",
            counted(buffer.allowed, "byte")
        )
    };
    format!(
        "{} stopped {} with {amount} in flight and went on with the next ACK, although {} had offered more: {} in \
         all, {} of the connection's life. {proof}",
        subject.capital(end),
        times(tally.count),
        subject.who(1 - end),
        human(tally.total),
        percent(tally.total, subject.duration()),
    )
}

fn fixes(subject: &Subject<'_>, end: End, buffer: &Buffer) -> Vec<Fix> {
    let side = subject.side_name(end);
    let base = subject.connection.base_round_trip().unwrap_or(0);
    let wanted = (super::windows::TARGET_RATE / 8).saturating_mul(base / 1_000) / 1_000_000 * BUFFER_SHARE;
    let wanted = wanted.max(BUFFER_SHARE * buffer.most.min(1 << 40) as i64);
    vec![
        Fix {
            title: format!("Let the {side}'s kernel size its send buffer"),
            how: "If the program sets SO_SNDBUF, remove that: Linux then grows the buffer with the congestion window, \
                  up to the last value of net.ipv4.tcp_wmem. `ss -tmi` shows the limit as tb in skmem, and the time it \
                  cost as sndbuf_limited."
                .to_owned(),
        },
        Fix {
            title: format!("Or set a larger SO_SNDBUF on the {side}"),
            how: format!(
                "At 100 Mbit/s and this round trip it takes {}; raise net.core.wmem_max if it is capped. Where \
                 TCP_NOTSENT_LOWAT is set instead, write more at a time and raise it.",
                counted(wanted as u64, "byte")
            ),
        },
    ]
}
