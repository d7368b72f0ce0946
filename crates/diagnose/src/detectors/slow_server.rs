//! Servers that take long to answer.

use super::rule::{Check, rule};
use super::subject::{Subject, human, percent};
use super::windows::mean;
use crate::diagnosis::ms;
use crate::ledger::Tally;
use crate::report::{Evidence, Finding, Fix, Severity, Vantage};

rule! {
    /// The server's program takes long to answer; TCP has nothing to send meanwhile.
    ///
    /// ## What it means
    /// The request has arrived, nothing is on its way and nothing is held back: the time passes in the
    /// server's program, or in what that program waits for (a database, a lock, another server). TCP is
    /// innocent of it, and no socket option helps.
    ///
    /// ## How it is detected
    /// The server's answer leaves 5 ms or more after the request could have reached it, and no ACK freed it.
    /// A request that took longer than 40 ms to answer draws a pure ACK on the way, just as a stall by Nagle's
    /// algorithm does, but then the *other* side speaks: that ACK released nothing. Reported where such answers
    /// make up at least a quarter of the time spent in exchanges, and 10 ms. (A receiver that reads an upload slowly is late with its answer, too; the
    /// windows' rules speak of that.) Captured far from the server, a queue
    /// on the path looks the same; the confidence says so, and a capture at the server would settle it.
    ///
    /// ## What to do
    /// Profile the server's program, not the network. Its log with times, or `strace -f -r -e trace=network`,
    /// shows what it does between its read and its write. Where the client need not wait, send several requests
    /// before the first answer.
    ///
    /// ## References
    /// RFC 1122 section 4.2.3.2 (why the pure ACK is there).
    SLOW_SERVER = "slow-server", Severity::Advice, Check::Connection(check)
}

/// Costs below this are nobody's trouble. ns.
const SMALLEST_COST: i64 = 10_000_000;
/// The program's part in exchanges, one in so many, from which on it is worth a word.
const SHARE_OF_EXCHANGES: i64 = 4;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let (connection, server) = (subject.connection, 1 - subject.client());
    let exchanges = &connection.exchanges;
    let Some(tally) = &subject.program(server) else { return };
    // A flow over UDP shows no round trip, so the path's part in an answer's delay is not known.
    if connection.is_udp
        || !exchanges.is_request_response()
        || tally.total < SMALLEST_COST.max(exchanges.total / SHARE_OF_EXCHANGES)
    {
        return;
    }
    findings.push(Finding {
        rule: SLOW_SERVER.name,
        severity: SLOW_SERVER.severity,
        connection: Some(subject.id),
        blame: subject.blame(server),
        count: tally.count,
        cost_ms: ms(tally.total),
        worst_ms: ms(tally.worst()[0].length),
        confidence: confidence(subject, tally),
        summary: subject.text(|| summary(subject, tally)),
        evidence: evidence(subject, tally),
        fixes: subject.fixes(|| fixes(subject)),
    });
}

/// Near the server nothing but its program can have taken the time; far from it, a queue could have, the more
/// likely the shorter the answer took against the round trip.
fn confidence(subject: &Subject<'_>, tally: &Tally) -> f64 {
    match (subject.vantage(), subject.connection.base_round_trip()) {
        (Vantage::Server, _) => 0.95,
        (_, Some(base)) if mean(tally) >= base.saturating_mul(10) => 0.95,
        (_, Some(base)) if mean(tally) >= base => 0.8,
        _ => 0.6,
    }
}

fn summary(subject: &Subject<'_>, tally: &Tally) -> String {
    let exchanges = &subject.connection.exchanges;
    let (count, all) = (tally.count, exchanges.latency.count());
    let answers = match (count, all) {
        (1, 1) => "its only answer".to_owned(),
        (1, all) => format!("one of its {all} answers"),
        (count, all) if count >= all => format!("each of {all} answers"),
        (count, all) => format!("each of {count} of its {all} answers"),
    };
    format!(
        "The program of {} took {} for {answers} ({} at most): {} of the {} that exchanges took ({}). TCP is \
         innocent of that time: nothing was on its way and nothing was held back.",
        subject.who(1 - subject.client()),
        average(tally),
        human(tally.worst()[0].length),
        human(tally.total),
        human(exchanges.total),
        percent(tally.total.min(exchanges.total), exchanges.total),
    )
}

fn average(tally: &Tally) -> String {
    let average = human(mean(tally));
    if tally.count == 1 { average } else { format!("{average} on average") }
}

fn evidence(subject: &Subject<'_>, tally: &Tally) -> Vec<Evidence> {
    subject.evidence(tally, |case| {
        let [asked, acked, answered] = case.packets;
        let answer = format!("the answer leaves {} later", human(case.length));
        let answer = if acked > asked && acked < answered {
            format!("{answer}; the ACK in packet {acked} released nothing")
        } else {
            answer
        };
        ["the request".to_owned(), String::new(), answer]
    })
}

fn fixes(subject: &Subject<'_>) -> Vec<Fix> {
    vec![
        Fix {
            title: "Look into the server's program".to_owned(),
            how: format!(
                "Profile what {} does between reading a request and writing its answer: computing, disk, a lock, a \
                 database. TCP options change nothing here.",
                subject.address(1 - subject.client())
            ),
        },
        Fix {
            title: "Do not wait for each answer".to_owned(),
            how: "Where requests do not depend on each other, send them before the first answer is back, or over \
                  several connections. Costs memory at the server."
                .to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::Blamed;

    const MS: u64 = 1_000;

    /// Six requests over a round trip of `path` µs, answered after `think` ms more; a delayed ACK goes out
    /// 40 ms after a request whose answer is not there by then.
    fn exchanges(path: u64, think: u64) -> Talk {
        let mut talk = Talk::near_client(path);
        for number in 1..=6 {
            let start = number * 200 * MS;
            talk.data(start, true, 64);
            if think > 40 {
                talk.ack(start + path + 40 * MS, false);
            }
            talk.data(start + path + think * MS, false, 64);
            talk.ack(start + path + think * MS + 20, true);
        }
        talk
    }

    #[test]
    fn a_server_that_thinks_42_ms_behind_its_own_delayed_ack() {
        let text = exchanges(200, 42);
        let found = findings("slow-server", &text.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.blame.side, Blamed::Server);
        assert_eq!(found.blame.address.as_deref(), Some("10.0.0.2:80"));
        assert_eq!(found.count, 6);
        // Six times 42 ms.
        assert!((found.cost_ms.0 - 252.0).abs() < 1.0, "{found:?}");
        assert!((found.worst_ms.0 - 42.0).abs() < 0.2, "{found:?}");
        assert!(found.summary.contains("each of 6 answers"), "{}", found.summary);
        assert!(
            found.evidence.iter().any(|one| one.note.contains("released nothing")),
            "{:?}",
            found.evidence
        );
        for rule in ["nagle-delayed-ack", "nagle-hold", "split-write", "delayed-ack"] {
            assert!(findings(rule, &text.text()).is_empty(), "{rule}");
        }
    }

    #[test]
    fn a_long_path_is_not_a_slow_server() {
        assert!(findings("slow-server", &exchanges(42 * MS, 0).text()).is_empty());
    }

    #[test]
    fn a_thought_as_long_as_the_path_is_less_sure() {
        let found = findings("slow-server", &exchanges(50 * MS, 30).text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert!(found.confidence < 0.7, "{found:?}");
        assert!((found.cost_ms.0 - 180.0).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn a_split_request_does_not_hide_the_servers_part() {
        let mut talk = Talk::near_client(200);
        for number in 1..=6 {
            let start = number * 200 * MS;
            talk.data(start, true, 16);
            talk.ack(start + 40 * MS, false);
            talk.data(start + 40 * MS + 30, true, 48);
            talk.data(start + 70 * MS + 230, false, 64);
        }
        let found = findings("slow-server", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        // Six times 30 ms.
        assert!((found.cost_ms.0 - 180.0).abs() < 1.0, "{found:?}");
        assert_eq!(findings("split-write", &talk.text()).len(), 1);
    }

    #[test]
    fn a_server_that_pushes_at_its_own_pace_answers_nothing() {
        let mut talk = Talk::near_client(200);
        talk.data(MS, true, 12);
        for number in 1..=20 {
            talk.data(number * 100 * MS, false, 12);
            talk.ack(number * 100 * MS + 40 * MS, true);
        }
        assert!(findings("slow-server", &talk.text()).is_empty());
    }
}
