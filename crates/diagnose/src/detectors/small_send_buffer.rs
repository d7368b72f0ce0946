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
    /// buffer smaller than rate × round trip is full with what is on its way, the program's `write()` waits, and the
    /// path runs empty until the next ACK: no more than the buffer goes out each round trip.
    ///
    /// ## How it is detected
    /// Nothing left for most of a round trip, a pure ACK came, and full segments left as soon as that can have reached
    /// the sender; the receiver's window had room, and no program had answered. One of four things then tells that the
    /// congestion window was not what stopped it:
    ///
    /// - The segment before each of two stops in a row, or a small one before a single stop, was pushed. A sender pushes
    ///   what empties its buffer; behind a full congestion window it has more. (It does not count where all segments are
    ///   pushed, nor behind a flight of half the largest window, where Linux pushes in any case.)
    /// - ACKs for two segments and more had come a millisecond earlier, and the sender did not use the room. A
    ///   sender that waits for its congestion window goes on with the first ACK; one whose program waits in `write()` goes on
    ///   when a part of the buffer is free.
    /// - It stopped with half or less on its way of what it had had before, with nothing lost, marked or idle since. A
    ///   congestion window does not shrink by itself.
    /// - It stopped with the same amount on its way, within a segment, more than eight rounds in a row, where a congestion
    ///   window would have grown.
    ///
    /// The first is seen from everywhere, the others only where the capture was made at the sender. Rounds before the proof stay with `slow-start` or the ledger's `cwnd`; the rest is on `rwnd`, the line of
    /// buffers. With the receiver's window full it is `small-receive-window`.
    ///
    /// A program cannot see ACKs, so one that keeps a window of its own goes on with answers and is not meant
    /// here. One that writes by its own clock just when ACKs come looks the same; so do, to the second and third sign, a
    /// clamped congestion window and BBR's probe of the round trip. The confidence says so, and the socket tells: `skmem`
    /// of `ss -tm`, whose `tb` is the limit and whose `w` is what is in it.
    ///
    /// ## What to do
    /// Remove a fixed `SO_SNDBUF`: Linux then sizes the buffer itself, up to `net.ipv4.tcp_wmem`. Or make it at least
    /// twice rate × round trip. A larger `TCP_NOTSENT_LOWAT`, and larger writes, if that is what is set.
    ///
    /// ## References
    /// tcp(7), `SO_SNDBUF` and `tcp_wmem`; RFC 9293 section 3.8.6.2.1; RFC 7661 (windows that are not used).
    SMALL_SEND_BUFFER = "small-send-buffer", Severity::Problem, Check::Connection(check),
        [SEND_BUFFER]
}

/// Fewer stops could be a program that was late just then.
const FEWEST: u64 = 3;
/// The congestion window was not the limit; that its program was not just late is inferred.
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
    format!(
        "{} stopped {} and went on {}, although {} had offered more: {} in all, {} of the time in which somebody waited. {}",
        subject.capital(end),
        times(tally.count),
        went_on_with(buffer, u64::from(subject.half(end).full_size())),
        subject.who(1 - end),
        human(tally.total),
        percent(tally.total, subject.waiting()),
        proof(buffer, is_level),
    )
}

/// What was on its way when it went on; from afar that cannot be seen, but what a flight was.
fn went_on_with(buffer: &Buffer, full: u64) -> String {
    match buffer.most - buffer.least {
        _ if buffer.stops == 0 => {
            format!("a round trip after flights of at most {}", counted(buffer.most_sent, "byte"))
        }
        spread if spread <= full => format!("with {} still in flight", counted(buffer.most, "byte")),
        _ => {
            let least = super::subject::grouped(buffer.least);
            format!("with {least} to {} still in flight", counted(buffer.most, "byte"))
        }
    }
}

fn proof(buffer: &Buffer, is_level: bool) -> String {
    if is_level {
        return "That amount does not grow as a congestion window would; a clamped one would look the same."
            .to_owned();
    }
    let shown = if buffer.unanswered > 0 {
        format!("{} ACKs had made room before, and it did not use that.", times(u64::from(buffer.unanswered)))
    } else if buffer.emptied > 0 {
        format!("{} it had just pushed the last of what it had to send.", times(u64::from(buffer.emptied)))
    } else {
        format!("it had allowed {} before, and nothing was lost since.", counted(buffer.allowed, "byte"))
    };
    format!("The congestion window is not what stopped it: {shown}")
}

fn fixes(subject: &Subject<'_>, end: End, buffer: &Buffer) -> Vec<Fix> {
    let side = subject.side_name(end);
    let base = subject.connection.base_round_trip().unwrap_or(0);
    let wanted = (super::windows::TARGET_RATE / 8).saturating_mul(base / 1_000) / 1_000_000 * BUFFER_SHARE;
    let wanted = wanted.max(BUFFER_SHARE * buffer.most.max(buffer.most_sent).min(1 << 40) as i64);
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

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::Blamed;

    /// An upload on a path of 40 ms in flights of twenty segments. The receiver ACKs two at a time, so many µs apart, and
    /// the sender goes on after so many of those ten ACKs.
    fn upload(rounds: u64, apart: u64, goes_on_after: u64) -> String {
        let mut talk = Talk::near_client(40_000);
        let round = 40_000 + apart * goes_on_after;
        for number in 0..rounds {
            let start = 41_000 + round * number;
            talk.flight(start, true, 20);
            for ack in 1..=10 {
                talk.ack_of(start + 39_950 + apart * ack, false, number * 29_200 + ack * 2_920);
            }
        }
        talk.text()
    }

    #[test]
    fn a_sender_that_leaves_acks_unanswered_waits_for_its_buffer() {
        let found = findings("small-send-buffer", &upload(7, 500, 5));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.count, found.blame.side), (5, Blamed::Client));
        // Of six stops the first shows nothing yet: 42.5 ms less the 190 µs of a flight, and less the 250 µs for which the
        // bytes of the last ACK but its first segment were on the path, by the 500 µs between two ACKs for two segments.
        assert!((found.cost_ms.0 - 5.0 * 42.06).abs() < 0.02, "{:?}", found.cost_ms);
        // Twenty segments less the four ACKs before the one that it went on with.
        assert!(found.summary.contains("17,520 bytes still in flight"), "{}", found.summary);
        assert!(findings("slow-start", &upload(7, 500, 5)).is_empty());
    }

    #[test]
    fn a_sender_that_goes_on_with_the_first_acks_waits_for_its_congestion_window() {
        assert!(findings("small-send-buffer", &upload(7, 5, 10)).is_empty());
    }

    #[test]
    fn a_window_that_never_grows_is_likely_a_buffer() {
        let found = findings("small-send-buffer", &upload(16, 5, 10));
        assert_eq!(found.len(), 1);
        assert!(found[0].confidence < 0.8, "{found:?}");
        assert!(found[0].summary.contains("a clamped one would look the same"), "{}", found[0].summary);
    }

    /// Flights of four segments, of which the last one is pushed or not, each ACKed a round trip later; captured at the
    /// receiver.
    fn flights_from_afar(count: u64, pushed: &str) -> String {
        let mut talk = Talk::near_server(40_000);
        for number in 0..count {
            let (start, first) = (41_000 + 40_100 * number, number * 5_840 + 1);
            for part in 0..4 {
                let flags = if part == 3 { pushed } else { "." };
                let seq = first + part * 1_460;
                talk.line(
                    start + 10 * part,
                    true,
                    &format!("[{flags}], seq {seq}:{}, ack 1, win 502, length 1460", seq + 1_460),
                );
            }
            talk.ack_of(start + 50, false, (number + 1) * 5_840);
        }
        talk.text()
    }

    #[test]
    fn a_sender_that_pushes_the_last_of_each_flight_has_no_more_in_its_buffer() {
        let found = findings("small-send-buffer", &flights_from_afar(8, "P."));
        let [found] = &found[..] else { panic!("{found:?}") };
        // Of seven stops the first one shows nothing yet.
        assert_eq!((found.count, found.blame.side), (6, Blamed::Client));
        assert!(found.summary.contains("flights of at most 5,840 bytes"), "{}", found.summary);
        assert!(found.summary.contains("6 times it had just pushed"), "{}", found.summary);
    }

    #[test]
    fn a_sender_that_has_more_to_send_waits_for_its_congestion_window() {
        assert!(findings("small-send-buffer", &flights_from_afar(8, ".")).is_empty());
    }

    #[test]
    fn a_program_that_waits_for_answers_is_no_buffer() {
        let mut talk = Talk::near_client(40_000);
        for number in 0..16 {
            let start = 41_000 + 40_100 * number;
            talk.flight(start, true, 20);
            talk.data(start + 40_050, false, 20);
        }
        assert!(findings("small-send-buffer", &talk.text()).is_empty());
    }
}
