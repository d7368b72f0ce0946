//! Congestion that the path tells of without dropping.

use super::rule::{Check, rule};
use super::subject::{Subject, counted, human, percent, times};
use crate::diagnosis::ms;
use crate::flow::connection::RELEASE_TOLERANCE;
use crate::flow::ecn::Marks;
use crate::flow::fact::End;
use crate::report::{Blame, Blamed, Finding, Fix, Severity};

rule! {
    /// The path marked packets as congested (ECN), and the sender reduced its congestion window.
    ///
    /// ## What it means
    /// Where both ends have agreed on ECN, a queue that grows too long marks packets instead of dropping them. The
    /// receiver echoes the mark (ECE) until the sender says that it has reduced its window (CWR), as it would
    /// after a loss, but with nothing to repair. Marks that come now and then are a healthy path at its limit; what
    /// they may cost is the waiting for a window that is too small afterwards.
    ///
    /// ## How it is detected
    /// The receiver's segments carried ECE after the handshake, and data of the sender CWR. Marks are counted by the
    /// echo's beginnings, since the receiver repeats it. The cost is what the sender then waited for its
    /// congestion window while round trips were the base one, up to that each time: `cwnd` on the ledger that is neither
    /// slow start nor a restart after idle. As long as a queue keeps the path busy, waiting costs nothing, and from afar
    /// that cannot be told. Flags of a few single segments, without both halves of the conversation, prove nothing and
    /// are not told. In captures of accurate ECN (RFC 9768) the same bits count differently; where there is no CWR nothing is
    /// said.
    ///
    /// ## What to do
    /// Mostly nothing: it is what keeps the queue short. If the waits matter, several flows share too narrow a link,
    /// or the marking begins too early for the path's round trip: look at the queue that marks (`tc -s qdisc`, fields
    /// `marked`, `ce_mark`, `target`). Switching ECN off would replace marks by losses.
    ///
    /// ## References
    /// RFC 3168 section 6.1; RFC 8511 (how far to back off); RFC 8290 section 5.2.2 (`ce_threshold`).
    ECN_BACKOFF = "ecn-backoff", Severity::Advice, Check::Connection(check)
}

/// Waits matter from this share of the time in which somebody waited on, 1 in so many; below that, this is a note.
const ADVICE_SHARE: i64 = 20;
/// Both flags, each on the side that it belongs to: nothing else sets them.
const CONFIDENCE: f64 = 0.95;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        if let Some(sending) = subject.connection.sending(end)
            && sending.marks.echoes > 0
            && sending.marks.reductions > 0
        {
            findings.push(finding(subject, end, &sending.marks));
        }
    }
}

fn finding(subject: &Subject<'_>, end: End, marks: &Marks) -> Finding {
    let matters = marks.waited >= subject.waiting() / ADVICE_SHARE && marks.waited > 0;
    let (echo, reduction) = (marks.echo, marks.reduction);
    Finding {
        rule: ECN_BACKOFF.name,
        severity: if matters { ECN_BACKOFF.severity } else { Severity::Note },
        connection: Some(subject.id),
        blame: Blame { side: Blamed::Network, address: None },
        count: u64::from(marks.reductions),
        cost_ms: ms(marks.waited),
        worst_ms: ms(marks.longest),
        confidence: CONFIDENCE,
        summary: subject.text(|| summary(subject, end, marks)),
        evidence: vec![
            subject.packet(echo.0, echo.1, "the receiver echoes a mark (ECE)".to_owned()),
            subject.packet(reduction.0, reduction.1, "the sender has reduced its window (CWR)".to_owned()),
        ],
        fixes: subject.fixes(fixes),
    }
}

fn summary(subject: &Subject<'_>, end: End, marks: &Marks) -> String {
    let is_near = subject.connection.reaction_part(end) <= RELEASE_TOLERANCE;
    let waited = match marks.waits {
        0 if is_near => "It lost no time by that: a queue kept the path busy.".to_owned(),
        0 => "What that cost cannot be told from here: capture at the sender.".to_owned(),
        waits => format!(
            "After that it waited {} for its congestion window, {} in all, {} of the time in which somebody waited.",
            times(u64::from(waits)),
            human(marks.waited),
            percent(marks.waited, subject.waiting()),
        ),
    };
    format!(
        "A queue on the path marked what {} sent: {} began to echo a mark {}, in {}, and the sender reduced its \
         congestion window {}. {waited}",
        subject.who(end),
        subject.who(1 - end),
        times(u64::from(marks.begun)),
        counted(u64::from(marks.echoes), "segment"),
        times(u64::from(marks.reductions)),
    )
}

fn fixes() -> Vec<Fix> {
    vec![Fix {
        title: "Usually nothing to do".to_owned(),
        how: "Marks instead of losses are what ECN is for. If the waits matter, look at the queue that marks (`tc -s \
              qdisc`: marked, ce_mark, target): at a target of 5 ms a path of 100 ms cannot keep its link busy with \
              one flow of CUBIC."
            .to_owned(),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::{Blamed, Severity};

    /// Seed text: segments with CWR of four connections, one or two of each.
    const LONE_FLAGS: &str = include_str!("../../../../examples/ecn-cwr.txt");

    /// An upload on a path of 100 ms whose flight of 40 segments is marked; the sender tells that it has halved its window.
    fn upload(told: bool) -> String {
        let mut talk = Talk::near_client(100_000);
        talk.flight(101_000, true, 40);
        talk.line(201_500, false, "[.E], ack 29201, win 502, length 0");
        talk.line(201_550, false, "[.E], ack 58401, win 502, length 0");
        let flags = if told { "[.W]" } else { "[.]" };
        talk.line(201_600, true, &format!("{flags}, seq 58401:59861, ack 1, win 502, length 1460"));
        for round in 0..4 {
            let start = 59_861 + round * 29_200;
            for number in 0..20 {
                let (us, seq) = (201_610 + 101_000 * round + 10 * number, start + 1_460 * number);
                talk.line(us, true, &format!("[.], seq {seq}:{}, ack 1, win 502, length 1460", seq + 1_460));
            }
            talk.ack_of(302_600 + 101_000 * round, false, start - 1 + 29_200);
        }
        talk.text()
    }

    #[test]
    fn a_marked_flight_halves_the_window() {
        let found = findings("ecn-backoff", &upload(true));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.blame.side, found.count, found.severity), (Blamed::Network, 1, Severity::Advice));
        // Three rounds, each from 190 µs after its first segment to the next one's first.
        assert!((found.cost_ms.0 - 3.0 * 100.81).abs() < 0.01, "{:?}", found.cost_ms);
        assert!(found.summary.contains("once, in 2 segments"), "{}", found.summary);
    }

    #[test]
    fn an_echo_that_no_sender_answers_is_no_backoff() {
        assert!(findings("ecn-backoff", &upload(false)).is_empty());
    }

    #[test]
    fn single_segments_with_cwr_prove_nothing() {
        assert!(findings("ecn-backoff", LONE_FLAGS).is_empty());
    }
}
