//! Connections that took several SYNs, or never came about.

use super::loss::{SMALLEST_STALL, how_long, of_timer};
use super::rule::{Check, rule};
use super::subject::{Subject, times};
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::flow::half::NEVER;
use crate::flow::trouble::Answered;
use crate::ledger::Tally;
use crate::report::{Blame, Blamed, Finding, Fix, Line, Severity, Side, Vantage};

rule! {
    /// A SYN or its answer had to be sent again, was refused, or was never answered.
    ///
    /// ## What it means
    /// Nothing is known of a path before the first answer, so TCP waits 1 s for it (3 s before 2011), then 2 s, 4 s…
    /// A lost SYN therefore costs more than any other loss. A server whose listen queue is full drops SYNs as the
    /// network would; a firewall that filters a port lets every one of them vanish. A port on which nobody listens is
    /// refused at once.
    ///
    /// ## How it is detected
    /// The SYN or the SYN-ACK was sent again before the connection stood; the time between the two is the cost. Which of
    /// them was lost shows at the server, and in the answer's timestamp: it echoes the SYN that the server keeps, the
    /// first one where that had arrived, or the last one where those before had left no trace. A SYN that drew a RST was
    /// refused; the time between its tries is the cost. A SYN-ACK that is repeated after the client's ACK is not counted:
    /// the server may only be waiting for data. A SYN with FIN is a scanner's, and is not counted. A SYN that was lost
    /// before it came to the capture leaves no trace.
    ///
    /// ## What to do
    /// See whether the SYN arrives: if not, look at firewalls, rate limits and connection-tracking tables on the way. If
    /// it does and is not answered, the listen queue overflows: accept sooner, or raise the backlog. Keep connections
    /// open, so that the handshake and its losses are paid once.
    ///
    /// ## References
    /// RFC 6298 section 2.1 and appendix A (1 s); RFC 9293 sections 3.8.1 and 3.10.7.1; RFC 7323 section 4.3 (which timestamp is echoed); listen(2).
    SYN_RETRY = "syn-retry", Severity::Problem, Check::Connection(check)
}

/// The SYN was not answered; who dropped it, the packets alone do not say.
const CONFIDENCE: f64 = 0.7;
/// The SYN passed the server's own interface and was not answered, or timestamps tell which packet was lost.
const CONFIDENCE_SURE: f64 = 0.85;
/// A RST in answer to a SYN says what it says.
const CONFIDENCE_REFUSED: f64 = 0.95;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let connection = subject.connection;
    if connection.is_udp || connection.syn.is_none() && connection.syn_ack_at == NEVER {
        return;
    }
    if connection.syn.is_some() && is_refused(subject) {
        findings.push(of_refusal(subject));
        return;
    }
    let client = subject.client();
    let [syn, syn_ack] = [client, 1 - client].map(|end| subject.tally(Cause::SynTimeout, end));
    // Where both were sent again it is one wait: the client's, if its SYN was; their timers may have run at the same time.
    let all = match (syn, syn_ack) {
        (Some(syn), Some(syn_ack)) => Some(syn.clone().with(syn_ack)),
        (tally, other) => tally.or(other).cloned(),
    };
    let all = all.map(|mut tally| {
        tally.total = tally.total.min(subject.booked(Line::Rto));
        tally
    });
    if let Some(tally) = all.filter(|tally| tally.total >= SMALLEST_STALL) {
        findings.push(finding(subject, if syn.is_some() { client } else { 1 - client }, &tally));
    }
}

/// Whether the server's only answer was a RST.
fn is_refused(subject: &Subject<'_>) -> bool {
    let connection = subject.connection;
    let server = subject.half(1 - subject.client());
    connection.reset && connection.syn_ack_at == NEVER && server.packets > 0 && server.bytes == 0
}

/// What became of the first SYN, or of the first SYN-ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// It reached the server, where the capture was made, which did not answer.
    Ignored,
    /// The server never answered any.
    Unanswered,
    /// It arrived, and its answer was lost or late.
    Answer,
    /// The same: the answer passed the capture.
    AnswerBeyond,
    /// It left no trace at the server: lost, or dropped from a full listen queue.
    Syn,
    /// The SYN-ACK, or the ACK that answers it.
    SynAck,
    /// The SYN or its answer.
    Either,
}

fn lost(subject: &Subject<'_>, end: End) -> Lost {
    if subject.side(end) == Side::Server {
        return Lost::SynAck;
    }
    let trouble = subject.half(end).trouble.as_ref();
    if trouble.is_some_and(|trouble| trouble.syn.was_answered) {
        return Lost::AnswerBeyond;
    }
    match trouble.and_then(|trouble| trouble.syn.answered()) {
        _ if subject.half(1 - end).packets == 0 => Lost::Unanswered,
        _ if subject.vantage() == Vantage::Server => Lost::Ignored,
        Some(Answered::First) => Lost::Answer,
        Some(Answered::Last) => Lost::Syn,
        None => Lost::Either,
    }
}

fn finding(subject: &Subject<'_>, end: End, tally: &Tally) -> Finding {
    let (lost, server) = (lost(subject, end), 1 - subject.client());
    let what = if lost == Lost::SynAck { "SYN-ACK" } else { "SYN" };
    let established =
        if subject.connection.established == NEVER { "" } else { ", before the connection stood" };
    Finding {
        blame: match lost {
            Lost::Ignored => subject.blame(server),
            _ => Blame { side: Blamed::Network, address: None },
        },
        confidence: match lost {
            Lost::Ignored | Lost::Answer | Lost::AnswerBeyond => CONFIDENCE_SURE,
            _ => CONFIDENCE,
        },
        summary: format!(
            "The {what} of {} had to be sent again {}, which took {}{established}. {}",
            subject.who(end),
            times(tally.count),
            how_long(tally),
            reason(subject, lost, server),
        ),
        evidence: subject.evidence(tally, |_| {
            let first =
                if lost == Lost::SynAck { String::new() } else { "sent, and not answered".to_owned() };
            [first, format!("the timer has expired: the {what} again"), String::new()]
        }),
        fixes: fixes(subject, server, lost),
        ..of_timer(&SYN_RETRY, subject, tally)
    }
}

/// What that shows, in words.
fn reason(subject: &Subject<'_>, lost: Lost, server: End) -> String {
    let who = subject.who(server);
    match lost {
        Lost::Ignored => {
            format!("It reached {who}, where the capture was made, and was not answered: probably the listen queue was full.")
        }
        Lost::Unanswered => format!(
            "Never answered by {who}: the network or a firewall dropped it, the host is down, or its listen queue was full."
        ),
        Lost::Answer => format!(
            "{who} had received the first one: its answer echoes an older timestamp than the retransmission's. So the \
             answer was lost, or came late."
        )
        .replacen("the server", "The server", 1),
        Lost::AnswerBeyond => "The answer had passed the capture: it was lost, or came late, on its way from there to the \
                               client."
            .to_owned(),
        Lost::Syn => format!(
            "The answer echoes the timestamp of the last one, so those before left no trace at {who}: they were lost on \
             the way there, or its listen queue was full."
        ),
        Lost::SynAck => "It, or the ACK that should have answered it, was lost.".to_owned(),
        Lost::Either => "Probably it or its answer was lost on the way, or the listen queue was full; a capture at the \
                         server tells."
            .to_owned(),
    }
}

fn of_refusal(subject: &Subject<'_>) -> Finding {
    let (client, server) = (subject.client(), 1 - subject.client());
    let connection = subject.connection;
    let tries = 1 + subject.half(client).trouble.as_ref().map_or(0, |trouble| u64::from(trouble.syn.count));
    let took = connection.last - connection.first;
    let retries = subject.tally(Cause::SynTimeout, client);
    Finding {
        rule: SYN_RETRY.name,
        severity: Severity::Advice,
        connection: Some(subject.id),
        blame: subject.blame(server),
        count: tries,
        cost_ms: ms(retries.map_or(0, |tally| tally.total)),
        worst_ms: ms(retries.map_or(0, super::loss::worst)),
        confidence: CONFIDENCE_REFUSED,
        summary: subject.text(|| {
            format!(
                "{} refused the connection of {} after {} ({} tried): nobody listens there, or a firewall rejects it.",
                subject.who(server).replacen("the", "The", 1),
                subject.who(client),
                super::subject::human(took),
                times(tries),
            )
        }),
        evidence: vec![subject.packet(connection.syn_packet(), connection.syn_at, "the SYN that drew a RST".to_owned())],
        fixes: subject.fixes(|| {
            vec![Fix {
                title: format!("See whether a program listens on {}", subject.address(server)),
                how: "`ss -ltn` on that host; it may listen on another address (127.0.0.1, or IPv4 alone), or not be \
                      started yet. A firewall that rejects (`nft list ruleset`) answers alike."
                    .to_owned(),
            }]
        }),
    }
}

fn fixes(subject: &Subject<'_>, server: End, lost: Lost) -> Vec<Fix> {
    let queue = Fix {
        title: "See whether the listen queue overflows".to_owned(),
        how: format!(
            "On the host of {}: `nstat -az TcpExtListenOverflows TcpExtListenDrops`, and `ss -ltn` (Recv-Q \
             against Send-Q). If so accept() sooner, raise the backlog of listen() and net.core.somaxconn.",
            subject.address(server)
        ),
    };
    let path = Fix {
        title: "See whether the SYN arrives".to_owned(),
        how: format!(
            "Capture `tcp[tcpflags] & tcp-syn != 0` at {}. If it does not arrive, look at firewalls, rate limits \
             and connection-tracking tables on the way.",
            subject.address(server)
        ),
    };
    let keep = Fix {
        title: "Keep connections open".to_owned(),
        how: "A pool of connections pays for the handshake, and for its loss, once. Retrying sooner than the kernel \
              does (1 s, then 3 s, then 7 s) costs the server more than it helps."
            .to_owned(),
    };
    match lost {
        Lost::Ignored => vec![queue, keep],
        Lost::Answer | Lost::AnswerBeyond | Lost::SynAck => vec![path, keep],
        _ => vec![path, queue, keep],
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::findings;
    use crate::report::{Blamed, Finding, Severity};

    /// A SYN sent at 0, 1 and 3 s; the answer and the last ACK come after these (µs), if at all.
    fn syns(answer: Option<[u64; 2]>) -> String {
        let mut text: String = [0, 1, 3]
            .iter()
            .map(|s| format!("10:00:{s:02}.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 99, win 64240, options [mss 1460], length 0\n"))
            .collect();
        if let Some([answer, ack]) = answer {
            text += &format!(
                "10:00:03.{answer:06} IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 499, ack 100, win 64240, options [mss 1460], length 0\n\
                 10:00:03.{:06} IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, length 0\n",
                answer + ack
            );
        }
        text
    }

    #[test]
    fn a_syn_that_gets_lost_costs_seconds() {
        let found = findings("syn-retry", &syns(Some([10_000, 50])));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].blame.side, found[0].count), (Blamed::Network, 2));
        assert_eq!((found[0].cost_ms.0, found[0].worst_ms.0), (3_000.0, 2_000.0));
        assert!(found[0].summary.contains("The SYN of the client"), "{}", found[0].summary);
    }

    #[test]
    fn a_syn_that_reaches_the_server_and_is_not_answered_is_the_servers() {
        let found = findings("syn-retry", &syns(Some([50, 10_000])));
        assert_eq!(
            (found[0].blame.side, found[0].blame.address.as_deref()),
            (Blamed::Server, Some("10.0.0.2:80"))
        );
    }

    /// Nmap asks so what a host makes of flags that exclude each other.
    #[test]
    fn a_scanner_that_asks_again_wants_no_connection() {
        assert!(findings("syn-retry", &syns(None).replace("[S]", "[FSPU]")).is_empty());
    }

    #[test]
    fn a_syn_that_is_never_answered() {
        let found = findings("syn-retry", &syns(None));
        assert_eq!((found[0].blame.side, found[0].count, found[0].cost_ms.0), (Blamed::Network, 2, 3_000.0));
        assert!(found[0].summary.contains("Never answered"), "{}", found[0].summary);
    }

    /// SYNs with timestamps 0 and 1 s after another; the answer echoes this timestamp.
    fn stamped(echo: u64) -> Vec<Finding> {
        let syn = |second: u64, stamp: u64| {
            format!(
                "10:00:{second:02}.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 99, win 64240, options [mss 1460,TS val {stamp} ecr 0], length 0\n"
            )
        };
        let text = syn(0, 5_000)
            + &syn(1, 6_000)
            + &format!(
                "\
            10:00:01.010000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 499, ack 100, win 64240, options [mss 1460,TS val 1 ecr {echo}], length 0\n\
            10:00:01.010050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, options [nop,nop,TS val 6010 ecr 1], length 0\n"
            );
        findings("syn-retry", &text)
    }

    #[test]
    fn the_echoed_timestamp_tells_which_packet_was_lost() {
        let [first, last] = [stamped(5_000), stamped(6_000)].map(|mut found| found.remove(0));
        assert!(first.summary.contains("answer was lost"), "{}", first.summary);
        assert!(last.summary.contains("left no trace"), "{}", last.summary);
        assert_eq!((first.cost_ms.0, last.cost_ms.0), (1_000.0, 1_000.0));
        assert!(first.confidence > last.confidence);
    }

    #[test]
    fn a_syn_ack_that_is_sent_again() {
        let found = findings(
            "syn-retry",
            "10:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 99, win 64240, options [mss 1460], length 0\n\
             10:00:00.000050 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 499, ack 100, win 64240, options [mss 1460], length 0\n\
             10:00:01.000050 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 499, ack 100, win 64240, options [mss 1460], length 0\n\
             10:00:01.020050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, length 0\n",
        );
        assert_eq!((found.len(), found[0].cost_ms.0), (1, 1_000.0));
        assert!(found[0].summary.contains("The SYN-ACK of the server"), "{}", found[0].summary);
    }

    /// A SYN, and what comes 100 µs later.
    fn answered_by(answer: &str) -> String {
        format!(
            "10:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 99, win 64240, options [mss 1460], length 0\n\
             10:00:00.000100 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags {answer}, length 0\n"
        )
    }

    #[test]
    fn a_port_on_which_nobody_listens() {
        let found = findings("syn-retry", &answered_by("[R.], seq 0, ack 100, win 0"));
        assert_eq!((found.len(), found[0].blame.side, found[0].count), (1, Blamed::Server, 1));
        assert_eq!((found[0].severity, found[0].cost_ms.0), (Severity::Advice, 0.0));
        assert!(found[0].summary.contains("refused"), "{}", found[0].summary);
    }

    #[test]
    fn a_server_that_resets_later_has_not_refused() {
        let text = answered_by("[S.], seq 499, ack 100, win 64240, options [mss 1460]")
            + "10:00:00.000200 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [R.], seq 500, ack 100, win 0, length 0\n";
        assert!(findings("syn-retry", &text).is_empty());
    }

    #[test]
    fn a_handshake_over_a_long_path_takes_one_syn() {
        let text = "\
            10:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 99, win 64240, options [mss 1460], length 0\n\
            10:00:00.900000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 499, ack 100, win 64240, options [mss 1460], length 0\n\
            10:00:00.900050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, length 0\n";
        assert!(findings("syn-retry", text).is_empty());
    }

    /// A server's SYN-ACK at 0 and again a second later, without the SYN; the client's ACK between them or behind them.
    fn without_syn(ack: &str) -> String {
        let syn_ack = "10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 70, ack 11, win 65160, options [mss 1460], length 0\n";
        format!(
            "10:00:00.000000 IP {syn_ack}10:00:01.000000 IP {syn_ack}\
             {ack} IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, length 0\n\
             10:00:01.400000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:101, ack 1, win 64240, length 100\n"
        )
    }

    #[test]
    fn a_syn_ack_again_whose_syn_was_not_captured() {
        let found = findings("syn-retry", &without_syn("10:00:01.020000"));
        assert_eq!((found.len(), found[0].count), (1, 1));
        assert!((found[0].cost_ms.0 - 1_000.0).abs() < 0.01, "{:?}", found[0].cost_ms);
    }

    #[test]
    fn a_server_that_waits_for_data_repeats_its_syn_ack_for_nobody() {
        let text = without_syn("10:00:00.020000");
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert!(findings("syn-retry", &(lines.join("\n") + "\n")).is_empty());
    }

    #[test]
    fn an_answer_that_passed_and_was_lost_behind_the_capture() {
        let syn =
            "10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 10, win 64240, options [mss 1460], length 0\n";
        let syn_ack = "10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 70, ack 11, win 65160, options [mss 1460], length 0\n";
        let text = format!(
            "10:00:00.000000 IP {syn}10:00:00.100000 IP {syn_ack}\
             10:00:01.000000 IP {syn}10:00:01.100000 IP {syn_ack}\
             10:00:01.120000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, length 0\n"
        );
        let found = findings("syn-retry", &text);
        assert_eq!((found.len(), found[0].count), (1, 1), "{found:?}");
        assert!((found[0].cost_ms.0 - 1_000.0).abs() < 0.01, "{:?}", found[0].cost_ms);
        assert!(found[0].summary.contains("had passed the capture"), "{}", found[0].summary);
    }
}
