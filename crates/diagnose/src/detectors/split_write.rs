//! Messages written in pieces, the last of which wait.

use super::holds::{Holds, Pattern, fixes};
use super::rule::{Check, rule};
use super::subject::{Subject, human, percent};
use crate::diagnosis::ms;
use crate::flow::fact::End;
use crate::flow::held::Sizes;
use crate::flow::nagle::STREAM_RUN;
use crate::report::{Evidence, Finding, Severity};

rule! {
    /// A program writes one message in pieces, and the pieces after the first wait for an ACK.
    ///
    /// ## What it means
    /// Header and body in two writes, a chain of small buffers sent one by one, two requests in a row of which
    /// only the second is answered: each write that finds a small segment still on its way has to wait for its
    /// ACK (Nagle's algorithm). The other side's program cannot answer yet, since it has only half of the
    /// message, so no answer carries that ACK and it comes late. The finding tells the mechanism, too; `nagle-delayed-ack`
    /// and `nagle-hold` stand alone only where the program's habit is not known.
    ///
    /// ## How it is detected
    /// A hold as in `nagle-delayed-ack` and `nagle-hold`, but not in a stream of updates: the pieces belong to
    /// requests or answers, at most every second segment is held, or fewer than three go out in a row before
    /// the other side speaks. Weighed as `nagle-hold` is. Packets do not say where a message
    /// ends: where what waited is as long as what it waited for, and not there in each exchange, or where that side
    /// also sends what nobody answers, the finding names both readings, a message in pieces or several in a row.
    ///
    /// ## What to do
    /// Hand the whole message to TCP at once: copy the pieces into one buffer, or give them all to one
    /// `writev`/`sendmsg`, or wrap the stream in a buffered writer and flush it at the end of the message; on
    /// Linux, `MSG_MORE` on all pieces but the last. `TCP_NODELAY` removes the wait as well, at the price of
    /// a small segment for each piece.
    ///
    /// ## References
    /// RFC 896; RFC 1122 section 4.2.3.4; RFC 9293 section 3.7.4.
    SPLIT_WRITE = "split-write", Severity::Problem, Check::Connection(check),
        [ONE_WRITE, NODELAY]
}

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        let Some(holds) = Holds::of(subject, end).filter(|holds| holds.pattern == Pattern::Pieces) else {
            continue;
        };
        let tally = &holds.tally;
        let severity = holds.severity(subject, end, tally.total, tally.count);
        // A single short hold without a delayed ACK may be chance.
        let is_told =
            |severity: &Severity| holds.delayed > 0 || tally.count > 1 || *severity > Severity::Note;
        let Some(severity) = severity.filter(is_told) else { continue };
        findings.push(Finding {
            rule: SPLIT_WRITE.name,
            severity,
            connection: Some(subject.id),
            blame: subject.blame(end),
            count: tally.count,
            cost_ms: ms(tally.total),
            worst_ms: ms(tally.worst()[0].length),
            confidence: holds.confidence(),
            summary: summary(subject, end, &holds),
            evidence: evidence(subject, end, &holds),
            fixes: fixes(subject, end, &holds),
        });
    }
}

fn summary(subject: &Subject<'_>, end: End, holds: &Holds) -> String {
    let message = match subject.connection.exchanges.is_request_response() {
        true if end == subject.client() => "requests",
        true => "answers",
        false => "messages",
    };
    let (habit, rest) = match may_be_whole(subject, end, holds) {
        true => (format!("several {message} in a row, or one in pieces"), "the next"),
        false => (format!("{message} in pieces"), "the rest"),
    };
    format!(
        "The program of {} writes {habit}: {} went out alone and {rest}, {}, had to wait, {} ({} on average). {}: {} in \
         all, {} of the time in which somebody waited.",
        subject.who(end),
        bytes(holds.held.first),
        bytes(holds.held.rest),
        how_often(subject, holds.tally.count),
        human(super::windows::mean(&holds.tally)),
        holds.chain(subject, end),
        human(holds.tally.total),
        percent(holds.tally.total, subject.waiting()),
    )
}

/// Whether what waited may have been a message of its own: it is as long as what it waited for, and not there in each
/// exchange, or other messages went unanswered, too.
fn may_be_whole(subject: &Subject<'_>, end: End, holds: &Holds) -> bool {
    let exchanges = &subject.connection.exchanges;
    let in_each = exchanges.is_request_response() && holds.tally.count >= exchanges.number();
    (holds.held.first == holds.held.rest && !in_each) || subject.half(end).run_longest >= STREAM_RUN
}

fn how_often(subject: &Subject<'_>, count: u64) -> String {
    let exchanges = subject.connection.exchanges.number();
    match count {
        1 => "once".to_owned(),
        count if subject.connection.exchanges.is_request_response() && count <= exchanges => {
            format!("in {count} of {exchanges} exchanges")
        }
        count => super::subject::times(count),
    }
}

/// `16 bytes`, or `16 to 120 bytes` where sizes differ.
fn bytes(sizes: Sizes) -> String {
    match sizes {
        Sizes { least: 1, most: 1 } => "1 byte".to_owned(),
        Sizes { least, most } if least == most => format!("{most} bytes"),
        Sizes { least, most } => format!("{least} to {most} bytes"),
    }
}

fn evidence(subject: &Subject<'_>, end: End, holds: &Holds) -> Vec<Evidence> {
    let told = match may_be_whole(subject, end, holds) {
        true => [
            "a small message or the first piece of one leaves",
            "its ACK, without data",
            "the next leaves at once",
        ],
        false => [
            "the first piece of a message leaves",
            "its ACK, without data: the other program is still waiting for the rest",
            "the rest leaves at once",
        ],
    };
    subject.evidence(&holds.tally, |_| told.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::Blamed;

    const MS: u64 = 1_000;

    /// Five exchanges on a local network (0.2 ms) in which the client writes 16 and 48 bytes, the server
    /// answers with 120 and 400, and each tail waits 40 ms for a delayed ACK if that side is split.
    fn exchanges(client_splits: bool, server_splits: bool) -> Talk {
        let mut talk = Talk::near_client(200);
        let mut now = MS;
        for _ in 0..5 {
            for (is_client, is_split, first, rest) in
                [(true, client_splits, 16, 48), (false, server_splits, 120, 400)]
            {
                if is_split {
                    talk.data(now, is_client, first);
                    talk.ack(now + 40 * MS, !is_client);
                    now += 40 * MS + 250;
                    talk.data(now, is_client, rest);
                } else {
                    talk.data(now, is_client, first + rest);
                }
                now += 300;
            }
        }
        talk
    }

    #[test]
    fn header_and_body_in_two_writes() {
        let found = findings("split-write", &exchanges(true, false).text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.blame.side, Blamed::Client);
        assert_eq!(found.count, 5);
        // Five times 40.25 ms.
        assert!((201.0..=201.5).contains(&found.cost_ms.0), "{found:?}");
        assert!(found.summary.contains("requests in pieces: 16 bytes went out alone"), "{}", found.summary);
        assert!(found.summary.contains("48 bytes"), "{}", found.summary);
        assert!(found.summary.contains("in 5 of 5 exchanges"), "{}", found.summary);
        assert_eq!(found.fixes[0].title, "Write each message at once");
    }

    #[test]
    fn messages_of_one_kind_in_a_row_are_not_called_pieces_for_sure() {
        // Telemetry every 100 ms that nobody answers; now and then two of them are written at once.
        let mut talk = Talk::near_client(200);
        for number in 1..=20 {
            let now = number * 100 * MS;
            talk.data(now, true, 12);
            talk.ack(now + 40 * MS, false);
            if number % 5 == 0 {
                talk.data(now + 40 * MS + 100, true, 12);
                talk.ack(now + 40 * MS + 400, false);
            }
        }
        let found = findings("split-write", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.count, 4);
        let told = "writes several messages in a row, or one in pieces: 12 bytes went out alone and the next, 12 bytes,";
        assert!(found.summary.contains(told), "{}", found.summary);
    }

    #[test]
    fn both_sides_split_and_neither_masks_the_other() {
        let found = findings("split-write", &exchanges(true, true).text());
        let mut sides: Vec<_> =
            found.iter().map(|one| (format!("{:?}", one.blame.side), one.count)).collect();
        sides.sort();
        assert_eq!(sides, [("Client".to_owned(), 5), ("Server".to_owned(), 5)]);
        assert!(found.iter().all(|one| (201.0..=201.5).contains(&one.cost_ms.0)), "{found:?}");
    }

    #[test]
    fn a_second_answer_that_came_sooner_is_no_beat_of_the_server() {
        // A socket's first ACKs are not delayed: the second of six exchanges takes 1 ms instead of 40.
        let mut talk = Talk::near_client(200);
        let mut now = MS;
        for number in 1..=6 {
            let held = if number <= 2 { MS } else { 40 * MS };
            talk.data(now, true, 16);
            talk.ack(now + held, false);
            talk.data(now + held + 20, true, 48);
            talk.data(now + held + 320, false, 520);
            now += held + 400;
        }
        let found = findings("split-write", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert!(found.summary.contains("of 6 exchanges"), "{}", found.summary);
    }

    #[test]
    fn whole_messages_are_not_split() {
        assert!(findings("split-write", &exchanges(false, false).text()).is_empty());
    }

    #[test]
    fn far_from_the_sender_a_release_is_no_faster_than_the_path() {
        // The server flushes a header and its body 76 ms later; the client ACKs the header after 40 ms. The body
        // comes 36 ms after that ACK, which had not reached the server by the time the body left.
        let mut talk = Talk::near_client(50 * MS);
        for number in 1..=6 {
            let start = number * 400 * MS;
            talk.data(start, true, 64);
            talk.data(start + 50 * MS, false, 120);
            talk.ack(start + 90 * MS, true);
            talk.data(start + 126 * MS, false, 400);
        }
        for rule in ["split-write", "nagle-delayed-ack"] {
            assert!(findings(rule, &talk.text()).is_empty(), "{rule}");
        }
    }

    #[test]
    fn a_program_that_writes_its_second_piece_later_was_not_held() {
        let mut talk = Talk::near_client(200);
        for number in 1..=5 {
            let start = number * 100 * MS;
            talk.data(start, true, 16);
            talk.ack(start + 40 * MS, false);
            // 8 ms after the ACK: it released nothing.
            talk.data(start + 48 * MS, true, 48);
            talk.data(start + 48 * MS + 300, false, 520);
        }
        assert!(findings("split-write", &talk.text()).is_empty());
    }
}
