//! Congestion that the path tells of without dropping.

use super::rule::{Check, rule};
use super::subject::{Subject, counted, human, percent, times};
use crate::diagnosis::ms;
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
    /// congestion window, up to the base round trip each time: `cwnd` on the ledger that is neither slow start nor a
    /// restart after idle. Flags of a few single segments, without both halves of the conversation, prove nothing and
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

/// Waits matter from this share of the connection's life on, 1 in so many; below that, this is a note.
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
    let matters = marks.waited >= subject.duration() / ADVICE_SHARE && marks.waited > 0;
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
    let waited = match marks.waits {
        0 => "It never had to stop for it.".to_owned(),
        waits => format!(
            "After that it waited {} for its congestion window, {} in all, {} of the connection's life.",
            times(u64::from(waits)),
            human(marks.waited),
            percent(marks.waited, subject.duration()),
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
