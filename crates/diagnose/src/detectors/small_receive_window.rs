//! A receive window too small for the path.

use super::rule::{Check, rule};
use super::subject::{Subject, counted, grouped, human, percent, rate, times};
use super::windows::{TARGET_RATE, Windows, matters, mean};
use crate::diagnosis::ms;
use crate::flow::fact::End;
use crate::flow::half::Half;
use crate::ledger::Tally;
use crate::report::{Finding, Fix, Severity};

rule! {
    /// The receiver's window is smaller than the path: the sender stops each round trip to wait for an ACK.
    ///
    /// ## What it means
    /// A sender may have no more data on its way than the receiver's window allows. Where the window holds
    /// less than the path could carry in one round trip, the sender fills it, stops, and goes on only when the
    /// ACK is back: throughput is the window divided by the round trip, however fast the network is.
    ///
    /// ## How it is detected
    /// The announced window had no room for what was sent next, which then left the moment an ACK moved the
    /// window on, about one round trip after the window was full. Where the wait was much longer than that the
    /// receiver's program did not read, which is another rule's case; where the window had room, the
    /// congestion window had stopped the sender; where ACKs came later than the path's base round trip, data
    /// queued, and the path was busy all the same.
    ///
    /// ## What to do
    /// Where the window grew during the transfer, Linux was sizing it, and lagged behind the sender: a larger
    /// middle value of `net.ipv4.tcp_rmem` lets it begin larger. Otherwise
    /// give the receiver a larger buffer: remove a fixed `SO_RCVBUF` (Linux then sizes the buffer itself, up to
    /// `net.ipv4.tcp_rmem`), or set a larger one *before* `listen()` or `connect()`, since the window scale is
    /// agreed on in the handshake. The buffer should hold bandwidth × round trip. Windows above 64 KB need
    /// window scaling, which both SYNs must offer.
    ///
    /// ## References
    /// RFC 9293 section 3.8.6; RFC 7323 section 2 (window scale); tcp(7), `SO_RCVBUF` and `tcp_rmem`.
    SMALL_RECEIVE_WINDOW = "small-receive-window", Severity::Problem, Check::Connection(check),
        [RECEIVE_BUFFER]
}

/// A single full window could be the tail of something else.
const FEW: u64 = 3;
const CONFIDENCE_FEW: f64 = 0.75;
/// Each wait began with a full window and ended with the ACK that moved it: little else it could be.
const CONFIDENCE: f64 = 0.95;
/// The window without scaling comes to at most 65,535 bytes; receivers that offer nearly that much, and no
/// scale, would probably offer more.
const NEARLY_UNSCALED_MOST: u32 = 60_000;
/// From this many times the first window on a window has grown: Linux gives a fixed buffer's window, which begins
/// below the buffer's size, up to a tenth more.
const GROWN: u64 = 2;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        if let Some(full) = Windows::of(subject, end).small
            && matters(subject, full.total)
            && !was_slow_start(subject, end, full)
        {
            findings.push(finding(subject, end, full));
        }
    }
}

/// Whether the only stop was for a first window that was no smaller than the sender's own: with room for more, its next
/// flight was no more than twice as long, as slow start has it.
fn was_slow_start(subject: &Subject<'_>, end: End, full: &Tally) -> bool {
    let first_window = u64::from(subject.half(end).first_window);
    let Some(sending) = subject.connection.sending(end).filter(|_| full.count == 1) else { return false };
    let rounds = &sending.flights.opening;
    rounds.count > 0 && rounds.first <= 2 * first_window
}

fn finding(subject: &Subject<'_>, end: End, full: &Tally) -> Finding {
    let receiver = 1 - end;
    let evidence = subject.evidence(full, |_| {
        [
            "this fills the receiver's window".to_owned(),
            "the ACK moves the window on".to_owned(),
            "the next segment leaves".to_owned(),
        ]
    });
    Finding {
        rule: SMALL_RECEIVE_WINDOW.name,
        severity: SMALL_RECEIVE_WINDOW.severity,
        connection: Some(subject.id),
        blame: subject.blame(receiver),
        count: full.count,
        cost_ms: ms(full.total),
        worst_ms: ms(full.worst().first().map_or(0, |case| case.length)),
        confidence: if full.count < FEW { CONFIDENCE_FEW } else { CONFIDENCE },
        summary: summary(subject, end, full),
        evidence,
        fixes: fixes(subject, end, round_trip(subject, full)),
    }
}

/// The round trip that the window is measured against: the base one, or where it is not known, the waits'
/// own length. ns.
fn round_trip(subject: &Subject<'_>, full: &Tally) -> i64 {
    subject.connection.base_round_trip().unwrap_or_else(|| mean(full)).max(1)
}

fn summary(subject: &Subject<'_>, end: End, full: &Tally) -> String {
    let half = subject.half(end);
    let round_trip = round_trip(subject, full);
    let stopped = format!(
        "{} stopped {} to wait for room, {} in all, {} of the connection's life.",
        subject.who(end),
        times(full.count),
        human(full.total),
        percent(full.total, subject.duration()),
    );
    let receiver = subject.who(1 - end);
    let window = counted(u64::from(half.max_window), "byte");
    if grew(half) {
        let first = grouped(u64::from(half.first_window));
        return format!(
            "The receive window of {receiver} grew from {first} to {window}, too late: {stopped}"
        );
    }
    format!(
        "The receive window of {receiver} is {window}, {} a round trip of {}: {stopped} No network makes this \
         faster than {}.",
        counted(u64::from((half.max_window / half.full_size()).max(1)), "segment"),
        human(round_trip),
        rate(u64::from(half.max_window), round_trip),
    )
}

/// Whether the window grew with the transfer, so that its size is no measure of what it allowed.
fn grew(half: &Half) -> bool {
    half.first_window > 0 && u64::from(half.max_window) >= GROWN * u64::from(half.first_window)
}

fn fixes(subject: &Subject<'_>, end: End, round_trip: i64) -> Vec<Fix> {
    let side = subject.side_name(1 - end);
    let half = subject.half(end);
    let wanted = (TARGET_RATE / 8).saturating_mul(round_trip / 1_000) / 1_000_000;
    let before = if side == "server" { "listen()" } else { "connect()" };
    let mut fixes = Vec::new();
    if grew(half) {
        fixes.push(Fix {
            title: format!("Let windows on the {side} begin larger"),
            how: format!(
                "Linux begins with half of the middle value of net.ipv4.tcp_rmem, 64 KB, and widens the window a \
                 round trip after the sender has filled it. For many transfers like this one raise the middle \
                 value on the {side}'s host to {} (bytes); it takes memory only where the program reads late.",
                grouped(wanted.max(i64::from(half.max_window) * 2) as u64),
            ),
        });
    }
    fixes.extend([
        Fix {
            title: format!("Let the {side}'s kernel size the buffer"),
            how: "If the program sets SO_RCVBUF, remove that: Linux then grows the buffer with the traffic, up to \
                  the last value of net.ipv4.tcp_rmem. A fixed SO_RCVBUF switches this off."
                .to_owned(),
        },
        Fix {
            title: format!("Or set a larger SO_RCVBUF on the {side}, before {before}"),
            how: format!(
                "At 100 Mbit/s and this round trip it takes {}; Linux uses about half of the value for data. \
                 Raise net.core.rmem_max if it is capped. After {before} it is too late: the window scale \
                 is fixed in the handshake.",
                counted(wanted.max(i64::from(half.max_window) * 2) as u64, "byte"),
            ),
        },
    ]);
    if half.shift == 0 && half.max_window >= NEARLY_UNSCALED_MOST {
        fixes.push(Fix {
            title: "Switch window scaling on".to_owned(),
            how: format!(
                "The window stays at {} bytes because it is not scaled. Both SYNs must carry the option: \
                 net.ipv4.tcp_window_scaling=1 on both hosts, and no firewall that strips it.",
                grouped(u64::from(half.max_window))
            ),
        });
    }
    fixes
}

#[cfg(test)]
mod tests {
    use super::super::testing::{findings, minute_of_messages};
    use crate::report::Blamed;

    /// A call of 1 MSS and more to a server whose window holds two segments (a developer's blog, 2014).
    const UPLOAD: &str = include_str!("../../../../examples/upload-10010.txt");

    #[test]
    fn the_upload_of_ten_thousand_bytes_waits_for_a_window_of_two_segments() {
        let found = findings("small-receive-window", UPLOAD);
        assert_eq!(found.len(), 1);
        let finding = &found[0];
        assert_eq!((finding.blame.side, finding.blame.address.as_deref()), (Blamed::Server, Some("SERVER")));
        assert_eq!(finding.count, 3);
        // Three stops of a round trip: .113625 to .120443, .120695 to .127322, .127370 to .132814.
        assert!((15.0..=20.0).contains(&finding.cost_ms.0), "{:?}", finding.cost_ms);
        assert!((finding.worst_ms.0 - 6.818).abs() < 0.01, "{:?}", finding.worst_ms);
        assert!(finding.summary.contains("2,896 bytes, 2 segments a round trip"), "{}", finding.summary);
        assert_eq!(finding.evidence.len(), 6);
        assert!(findings("zero-window", UPLOAD).is_empty());
    }

    /// A client uploads `windows` of two segments, each ACKed 10 ms later; the window is `win` bytes.
    fn upload(windows: u64, win: u32) -> String {
        let mut text = format!(
            "10:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 99, win 64240, options [mss 1460], length 0\n\
             10:00:00.010000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 499, ack 100, win {win}, options [mss 1460], length 0\n\
             10:00:00.010050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, length 0\n"
        );
        for round in 0..windows {
            let (now, seq) = (11_000 + 10_100 * round, 1 + 2_920 * round);
            for (offset, seq) in [(0, seq), (10, seq + 1_460)] {
                text += &format!(
                    "10:00:00.{:06} IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], seq {seq}:{}, ack 1, win 64240, length 1460\n",
                    now + offset,
                    seq + 1_460
                );
            }
            text += &format!(
                "10:00:00.{:06} IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack {}, win {win}, length 0\n",
                now + 10_050,
                seq + 2_920
            );
        }
        text
    }

    #[test]
    fn a_window_of_two_segments_bounds_the_rate() {
        let found = findings("small-receive-window", &upload(9, 2_920));
        assert_eq!(found.len(), 1);
        // Eight stops of 10.09 ms: between a window's second segment and the next one's first.
        assert_eq!(found[0].count, 8);
        assert!((80.0..=81.0).contains(&found[0].cost_ms.0), "{:?}", found[0].cost_ms);
        // 2,920 bytes in 10.05 ms: SYN to SYN-ACK 10 ms, SYN-ACK to ACK 0.05 ms.
        assert!(found[0].summary.contains("2.32 Mbit/s"), "{}", found[0].summary);
    }

    #[test]
    fn a_sender_that_stops_with_room_in_the_window_is_bound_by_its_congestion_window() {
        assert!(findings("small-receive-window", &upload(9, 64_000)).is_empty());
    }

    #[test]
    fn a_window_full_for_a_moment_of_a_long_life_is_nothing() {
        let text = upload(2, 2_920) + &minute_of_messages(5_841);
        assert!(findings("small-receive-window", &text).is_empty());
    }
}
