//! Clients that leave the connection waiting.

use super::rule::{Check, rule};
use super::subject::{Subject, human, percent, times};
use crate::diagnosis::ms;
use crate::ledger::Tally;
use crate::report::{Evidence, Finding, Fix, Line, Severity};

rule! {
    /// The client's program lets the connection wait for its next request.
    ///
    /// ## What it means
    /// The answer has arrived and the client does not ask again yet: it computes, waits for something else, or
    /// sleeps. TCP and the server are innocent of that time. A connection kept open for later use looks like
    /// this as well, and that is no fault, so this is a note: it matters only if the client's work as a whole
    /// is what seems slow.
    ///
    /// ## How it is detected
    /// The client's next request leaves 2 ms or more after the answer could have reached it, or after the handshake.
    /// Pauses of more than 2 s do not count: they are a person's, a timer's, or an idle connection's. The others make up at
    /// least a quarter of the time in which somebody waited for something, and 20 ms.
    ///
    /// ## What to do
    /// Profile the client's program between an answer and the next request. Sending the next request before
    /// the answer has been worked on (pipelining, several connections) hides its time.
    ///
    /// ## References
    /// RFC 9112 section 9.3 (persistent connections and pipelining, where HTTP/1.1 is spoken).
    SLOW_CLIENT = "slow-client", Severity::Note, Check::Connection(check)
}

/// Pauses that sum up to less are nobody's trouble. ns.
const SMALLEST_COST: i64 = 20_000_000;
/// The pauses' part in the time in which somebody waited, one in so many.
const SHARE_OF_WAITING: i64 = 4;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let (connection, client) = (subject.connection, subject.client());
    let Some(tally) = &subject.program(client) else { return };
    // What was on its way meanwhile has its own line.
    let total = tally.total.min(subject.booked(Line::ClientApp));
    if connection.is_udp
        || connection.exchanges.is_stream()
        || total < SMALLEST_COST.max(subject.waiting() / SHARE_OF_WAITING)
    {
        return;
    }
    findings.push(Finding {
        rule: SLOW_CLIENT.name,
        severity: SLOW_CLIENT.severity,
        connection: Some(subject.id),
        blame: subject.blame(client),
        count: tally.count,
        cost_ms: ms(total),
        worst_ms: ms(tally.worst()[0].length.min(total)),
        confidence: 0.8,
        summary: format!(
            "The program of {} paused {} before its next request, {}{}: {} of the time in which somebody waited. TCP \
             and the server are innocent of it.",
            subject.who(client),
            times(tally.count),
            human(total),
            if tally.count > 1 { format!(" in all, {} on average", human(total / tally.count as i64)) } else { String::new() },
            percent(total, subject.waiting()),
        ),
        evidence: evidence(subject, tally),
        fixes: fixes(subject),
    });
}

fn evidence(subject: &Subject<'_>, tally: &Tally) -> Vec<Evidence> {
    subject.evidence(tally, |case| {
        let request = format!("the next request leaves {} later", human(case.length));
        ["the end of an answer".to_owned(), String::new(), request]
    })
}

fn fixes(subject: &Subject<'_>) -> Vec<Fix> {
    vec![Fix {
        title: "Look into the client's program, if its work as a whole is slow".to_owned(),
        how: format!(
            "Profile what {} does between an answer and its next request. If requests do not depend on each \
             other, send the next one before working on the answer.",
            subject.address(subject.client())
        ),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::{Blamed, Severity};

    const MS: u64 = 1_000;

    /// Requests that follow the answer before them after `pause` ms and are answered 300 µs later.
    fn requests(count: u64, pause: u64) -> String {
        let mut talk = Talk::near_client(200);
        for number in 1..=count {
            let now = number * (pause * MS + 300);
            talk.data(now, true, 64);
            talk.data(now + 300, false, 64);
            talk.ack(now + 320, true);
        }
        talk.text()
    }

    #[test]
    fn a_client_that_works_30_ms_on_each_answer() {
        let found = findings("slow-client", &requests(8, 30));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.severity, Severity::Note);
        assert_eq!(found.blame.side, Blamed::Client);
        // From the handshake on, eight of 30 ms.
        assert_eq!(found.count, 8);
        assert!((found.cost_ms.0 - 240.0).abs() < 0.5, "{found:?}");
        assert!(found.summary.contains("paused 8 times"), "{}", found.summary);
        assert!(findings("slow-server", &requests(8, 30)).is_empty());
    }

    #[test]
    fn a_client_that_asks_at_once_is_not_slow() {
        assert!(findings("slow-client", &requests(8, 1)).is_empty());
    }

    #[test]
    fn an_idle_connection_is_no_fault() {
        assert!(findings("slow-client", &requests(8, 5_000)).is_empty());
        assert_eq!(findings("slow-client", &requests(8, 1_900)).len(), 1);
    }
}
