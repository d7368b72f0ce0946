//! Waits for a retransmission timer.

use super::loss::{CONFIDENCE_GAPS, Loss};
use super::rule::{Check, rule};
use super::subject::{Subject, counted, grouped, human, percent};
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::flow::half::NEVER;
use crate::ledger::Tally;
use crate::report::{Blame, Blamed, Finding, Fix, Severity, Side, Vantage};

rule! {
    /// A segment was lost, and only a timer of the sender noticed it.
    ///
    /// ## What it means
    /// TCP notices most losses by the ACKs of what was sent after the lost segment. When nothing comes after
    /// it (the last segment of a message, a lone request, a SYN), only the retransmission timer is left: at
    /// least 200 ms on Linux, 1 s by the RFC and for a SYN, and twice as long each time it expires again.
    ///
    /// ## How it is detected
    /// A segment was sent again after a silence of both sides: 150 ms and more, or two round trips without
    /// any duplicate ACK (a tail-loss probe), or the SYN was sent again. The silence is the cost. A
    /// retransmission that the receiver reports as needless (D-SACK) is not a loss: its ACK was only late.
    /// Probes of a closed window and keep-alives are no retransmissions.
    ///
    /// Where the segment was lost before it came to the capture, its retransmission looks like data that comes
    /// late. Linux numbers the packets of each connection one by one in IPv4's identification field: data that
    /// comes after a silence of 200 ms or more, as long as a timer's, with a number left out before it, is
    /// reported too. IPv6 has no such field; a SYN that was lost before it came to the capture leaves no trace.
    ///
    /// ## What to do
    /// Find where segments are dropped (interfaces, queues, a policer, a firewall, an MTU that is smaller than
    /// it says). A SYN that arrives and is not answered points to a full listen queue instead. RACK with tail-loss
    /// probes, on by default on today's Linux, shortens the wait to two round trips; SACK must be on for it.
    ///
    /// ## References
    /// RFC 6298 (timer); RFC 791 section 3.1 (identification); RFC 8985 (RACK-TLP); RFC 2883 (D-SACK); RFC 9293 section 3.8.1; listen(2).
    RTO_STALL = "rto-stall", Severity::Problem, Check::Connection(check)
}

/// Timers that took less than this in all are no stall: the shortest timer of a kernel is 200 ms
/// (`TCP_RTO_MIN`), less what probes save. ns.
const SMALLEST_COST: i64 = 100_000_000;
/// In lives that are longer than so many times the cost it is advice, not a problem…
const LONG_LIFE: i64 = 100;
/// …unless it cost this much. ns.
const LARGE_COST: i64 = 1_000_000_000;
/// A retransmission after so long a silence leaves no other reading.
const CONFIDENCE: f64 = 0.95;
/// A packet that never came may have been a pure ACK, and the silence after it a program's.
const CONFIDENCE_UNSEEN: f64 = 0.8;
/// The SYN was not answered; who dropped it, the packets alone do not say.
const CONFIDENCE_SYN: f64 = 0.7;
/// The SYN passed the server's own interface and was not answered.
const CONFIDENCE_SYN_AT_SERVER: f64 = 0.85;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        if let Some(tally) = subject.tally(Cause::Timeout, end)
            && tally.total >= SMALLEST_COST
            && Loss::of(subject, end).is_real()
        {
            findings.push(of_data(subject, end, tally));
        }
        if let Some(tally) = subject.tally(Cause::UnseenTimeout, end)
            && tally.total >= SMALLEST_COST
        {
            findings.push(of_unseen_data(subject, end, tally));
        }
        if let Some(tally) = subject.tally(Cause::SynTimeout, end)
            && tally.total >= SMALLEST_COST
        {
            findings.push(of_handshake(subject, end, tally));
        }
    }
}

fn finding(subject: &Subject<'_>, tally: &Tally) -> Finding {
    let is_rare = tally.total < LARGE_COST && tally.total < subject.duration() / LONG_LIFE;
    Finding {
        rule: RTO_STALL.name,
        severity: if is_rare { Severity::Advice } else { RTO_STALL.severity },
        connection: Some(subject.id),
        blame: Blame { side: Blamed::Network, address: None },
        count: tally.count,
        cost_ms: ms(tally.total),
        worst_ms: ms(worst(tally)),
        confidence: CONFIDENCE,
        summary: String::new(),
        evidence: Vec::new(),
        fixes: Vec::new(),
    }
}

fn worst(tally: &Tally) -> i64 {
    tally.worst().first().map_or(0, |case| case.length)
}

/// `300 ms`, or `3.00 s in all, up to 2.00 s each time`.
fn how_long(tally: &Tally) -> String {
    match tally.count {
        1 => human(tally.total),
        _ => format!("{} in all, up to {} each time", human(tally.total), human(worst(tally))),
    }
}

fn of_data(subject: &Subject<'_>, end: End, tally: &Tally) -> Finding {
    let loss = Loss::of(subject, end);
    Finding {
        confidence: if loss.has_gaps { CONFIDENCE_GAPS } else { CONFIDENCE },
        summary: format!(
            "The network lost data of {}, and nothing that came later told of it: the {} waited {} for its \
             retransmission timer: {}, {} of the connection's life. {} of {} sent again.",
            subject.who(end),
            subject.side_name(end),
            super::subject::times(tally.count),
            how_long(tally),
            percent(tally.total, subject.duration()),
            grouped(loss.retransmitted),
            segments(&loss),
        ),
        evidence: subject.evidence(tally, |_| {
            [
                "the last packet with data before the silence".to_owned(),
                "the timer has expired: sent again".to_owned(),
                String::new(),
            ]
        }),
        fixes: fixes_of_data(subject, end),
        ..finding(subject, tally)
    }
}

fn of_unseen_data(subject: &Subject<'_>, end: End, tally: &Tally) -> Finding {
    Finding {
        confidence: CONFIDENCE_UNSEEN,
        summary: format!(
            "The network lost data of {} on its way to the capture, and nothing that came later told of it: the {} \
             waited {} for its retransmission timer: {}, {} of the connection's life. The identifications of its \
             packets skip those that were lost.",
            subject.who(end),
            subject.side_name(end),
            super::subject::times(tally.count),
            how_long(tally),
            percent(tally.total, subject.duration()),
        ),
        evidence: subject.evidence(tally, |_| {
            [
                "the last packet before the silence".to_owned(),
                "data at last; the identification before its own never came: a retransmission".to_owned(),
                String::new(),
            ]
        }),
        fixes: fixes_of_data(subject, end),
        ..finding(subject, tally)
    }
}

/// `23 segments were`, with the verb that fits the retransmissions before it.
fn segments(loss: &Loss) -> String {
    let verb = if loss.retransmitted == 1 { "was" } else { "were" };
    format!("{} {verb}", counted(loss.segments, "segment"))
}

fn fixes_of_data(subject: &Subject<'_>, end: End) -> Vec<Fix> {
    vec![
        Fix {
            title: "Find where segments are dropped".to_owned(),
            how: "Compare captures at both ends. On hosts and routers between: `ip -s link`, `ethtool -S` (drops, \
                  missed), `tc -s qdisc`, policers. If only full-sized segments are lost, an MTU is smaller than it \
                  says: net.ipv4.tcp_mtu_probing=1."
                .to_owned(),
        },
        Fix {
            title: format!("Keep tail-loss probes and SACK on at the {}", subject.side_name(end)),
            how: "On Linux: net.ipv4.tcp_recovery=1, net.ipv4.tcp_early_retrans=3, net.ipv4.tcp_sack=1 (the \
                  defaults). A probe after two round trips then replaces most timers."
                .to_owned(),
        },
        Fix {
            title: "For small messages now and then: thin-stream timers".to_owned(),
            how: "TCP_THIN_LINEAR_TIMEOUTS on the sending socket (or net.ipv4.tcp_thin_linear_timeouts=1) keeps the \
                  timer from doubling; within a data centre `ip route change … rto_min 20ms` shortens it, at the \
                  price of needless retransmissions where ACKs are delayed."
                .to_owned(),
        },
    ]
}

/// Whether the first SYN was seen at the server's own interface, so that the network is not to blame.
fn reached_server(subject: &Subject<'_>, end: End) -> bool {
    subject.side(end) == Side::Client && subject.vantage() == Vantage::Server
}

fn of_handshake(subject: &Subject<'_>, end: End, tally: &Tally) -> Finding {
    let other = 1 - end;
    let is_client = subject.side(end) == Side::Client;
    let answered = subject.connection.established != NEVER;
    let what = if is_client { "SYN" } else { "SYN-ACK" };
    let blamed = if reached_server(subject, end) {
        format!("it reached {}, where the capture was made, and was not answered", subject.who(other))
    } else if !answered && is_client && subject.half(other).packets == 0 {
        format!(
            "{} never answered: the network, a firewall or its listen queue dropped it",
            subject.who(other)
        )
    } else {
        "it or its answer was lost on the way, or the listen queue was full; a capture at the server tells"
            .to_owned()
    };
    let at_server = reached_server(subject, end);
    Finding {
        blame: if at_server { subject.blame(other) } else { Blame { side: Blamed::Network, address: None } },
        confidence: if at_server { CONFIDENCE_SYN_AT_SERVER } else { CONFIDENCE_SYN },
        summary: format!(
            "The {what} of {} had to be sent again {}, which took {}{}. Probably {blamed}.",
            subject.who(end),
            super::subject::times(tally.count),
            how_long(tally),
            if answered { ", before the connection stood" } else { "" },
        ),
        evidence: subject.evidence(tally, |_| {
            let first = if is_client { "sent, and not answered".to_owned() } else { String::new() };
            [first, format!("the timer has expired: the {what} again"), String::new()]
        }),
        fixes: fixes_of_handshake(subject, end, at_server),
        ..finding(subject, tally)
    }
}

fn fixes_of_handshake(subject: &Subject<'_>, end: End, at_server: bool) -> Vec<Fix> {
    let server = if subject.side(end) == Side::Client { 1 - end } else { end };
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
        how:
            "A pool of connections pays for the handshake, and for its loss, once. Retrying sooner than the \
              kernel does (1 s, then 3 s, then 7 s) costs the server more than it helps."
                .to_owned(),
    };
    if at_server { vec![queue, keep] } else { vec![path, queue, keep] }
}

#[cfg(test)]
mod tests {
    use super::super::testing::findings;
    use crate::report::{Blamed, Severity};

    const HANDSHAKE: &str = "\
        10:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 99, win 64240, options [mss 1460,sackOK], length 0\n\
        10:00:00.010000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 499, ack 100, win 64240, options [mss 1460,sackOK], length 0\n\
        10:00:00.010050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, length 0\n\
        10:00:00.011000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:101, ack 1, win 64240, length 100\n";

    fn sent_again(after_us: u64) -> String {
        let (again, ack) = (11_000 + after_us, 21_000 + after_us);
        format!(
            "10:00:00.{again:06} IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:101, ack 1, win 64240, length 100\n\
             10:00:00.{ack:06} IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 101, win 64240, length 0\n"
        )
    }

    #[test]
    fn a_lone_request_is_lost_and_a_timer_sends_it_again() {
        let text = format!("{HANDSHAKE}{}", sent_again(300_000));
        let found = findings("rto-stall", &text);
        assert_eq!(found.len(), 1);
        let finding = &found[0];
        assert_eq!((finding.blame.side, finding.blame.address.as_ref()), (Blamed::Network, None));
        assert_eq!((finding.severity, finding.count), (Severity::Problem, 1));
        // From the request at .011 to its repetition at .311.
        assert!((finding.cost_ms.0 - 300.0).abs() < 0.01, "{:?}", finding.cost_ms);
        assert!(
            finding.summary.contains("once for its retransmission timer: 300 ms,"),
            "{}",
            finding.summary
        );
        assert!(finding.summary.contains("1 of 2 segments was sent again"), "{}", finding.summary);
        assert_eq!(finding.evidence.iter().map(|evidence| evidence.packet).collect::<Vec<_>>(), [4, 5]);
        assert!(findings("fast-recovery", &text).is_empty());
    }

    #[test]
    fn a_program_that_says_more_after_a_pause_has_lost_nothing() {
        let more = "10:00:00.311000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 101:201, ack 1, win 64240, length 100\n\
                    10:00:00.321000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 201, win 64240, length 0\n";
        assert!(findings("rto-stall", &format!("{HANDSHAKE}{more}")).is_empty());
    }

    #[test]
    fn a_probe_that_the_receiver_did_not_need_shows_a_late_ack() {
        let late = "10:00:00.211000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:101, ack 1, win 64240, length 100\n\
                    10:00:00.220000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 101, win 64240, length 0\n\
                    10:00:00.221000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 101, win 64240, options [sack 1 {1:101}], length 0\n";
        assert!(findings("rto-stall", &format!("{HANDSHAKE}{late}")).is_empty());
    }

    #[test]
    fn a_probe_after_50_ms_is_no_stall() {
        assert!(findings("rto-stall", &format!("{HANDSHAKE}{}", sent_again(50_000))).is_empty());
    }

    #[test]
    fn one_timer_in_a_long_life_is_advice() {
        let mut text = format!("{HANDSHAKE}{}", sent_again(300_000));
        text += "10:00:59.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [F.], seq 101, ack 1, win 64240, length 0\n";
        assert_eq!(findings("rto-stall", &text)[0].severity, Severity::Advice);
    }

    /// Five exchanges over 20 ms, captured at the server, which answers at once; then a request that comes 230 ms
    /// after it could have, `skipped` identifications later.
    fn far_requests(skipped: u64) -> String {
        let header = |us: u64, id: u64| {
            format!(
                "10:00:00.{us:06} IP (tos 0x0, ttl 64, id {id}, offset 0, flags [DF], proto TCP (6), length 60)\n    "
            )
        };
        let client = "10.0.0.1.40000 > 10.0.0.2.80";
        let server = "10.0.0.2.80 > 10.0.0.1.40000";
        let mut text = header(0, 100)
            + &format!("{client}: Flags [S], seq 99, win 64240, options [mss 1460], length 0\n");
        text += &(header(10, 0)
            + &format!("{server}: Flags [S.], seq 499, ack 100, win 64240, options [mss 1460], length 0\n"));
        text += &(header(20_010, 101) + &format!("{client}: Flags [.], ack 1, win 64240, length 0\n"));
        for number in 0..6 {
            let late = if number == 5 { 230_000 } else { 0 };
            let asked = 20_020 + number * 20_100 + late;
            let id = 102 + number + if number == 5 { skipped } else { 0 };
            let (own, next) = (1 + number * 100, 101 + number * 100);
            text += &(header(asked, id)
                + &format!("{client}: Flags [P.], seq {own}:{next}, ack {own}, win 64240, length 100\n"));
            text += &(header(asked + 50, 700 + number)
                + &format!("{server}: Flags [P.], seq {own}:{next}, ack {next}, win 64240, length 100\n"));
        }
        text
    }

    #[test]
    fn a_request_that_was_lost_before_the_capture_left_out_its_number() {
        let found = findings("rto-stall", &far_requests(1));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].blame.side, found[0].count), (Blamed::Network, 1));
        // The answer before passed at 100.470 ms and reached the client 20.0 ms later; the request came at 350.520.
        assert!((229.9..=230.2).contains(&found[0].cost_ms.0), "{:?}", found[0].cost_ms);
    }

    #[test]
    fn a_late_request_whose_number_is_the_next_was_not_lost() {
        assert!(findings("rto-stall", &far_requests(0)).is_empty());
    }

    /// A request's first piece is lost; a probe sends the second, new data; the SACK of that brings the first again.
    fn probe_with_new_data(last: &str) -> String {
        let probe = "10:00:00.241000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 101:201, ack 1, win 64240, length 100\n";
        format!("{HANDSHAKE}{probe}{last}")
    }

    #[test]
    fn a_tail_loss_probe_may_send_new_data() {
        let text = probe_with_new_data(
            "10:00:00.251000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 1, win 64240, options [sack 1 {101:201}], length 0\n\
             10:00:00.251050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:101, ack 1, win 64240, length 100\n\
             10:00:00.261050 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 201, win 64240, length 0\n",
        );
        let found = findings("rto-stall", &text);
        assert_eq!(found.len(), 1);
        // From the first piece at .011 to the probe at .241; the repair by SACK is not the timer's.
        assert!((found[0].cost_ms.0 - 230.0).abs() < 0.01, "{:?}", found[0].cost_ms);
        assert!(findings("fast-recovery", &text).is_empty());
    }

    #[test]
    fn more_data_whose_forerunner_arrived_is_no_probe() {
        let text = probe_with_new_data(
            "10:00:00.251000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 201, win 64240, length 0\n",
        );
        assert!(findings("rto-stall", &text).is_empty());
    }

    #[test]
    fn the_other_sides_needless_retransmission_does_not_break_the_silence() {
        let text = format!(
            "{HANDSHAKE}\
             10:00:00.021000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], seq 1:101, ack 101, win 64240, length 100\n\
             10:00:00.021050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 101:201, ack 101, win 64240, length 100\n\
             10:00:00.231000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], seq 1:101, ack 101, win 64240, length 100\n\
             10:00:00.231050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 101, win 64240, options [sack 1 {{1:101}}], length 0\n\
             10:00:00.233050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 101:201, ack 101, win 64240, length 100\n\
             10:00:00.243050 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], seq 101:201, ack 201, win 64240, length 100\n"
        );
        let found = findings("rto-stall", &text);
        assert_eq!(found.len(), 1);
        assert!((found[0].cost_ms.0 - 212.0).abs() < 0.01, "{:?}", found[0].cost_ms);
        assert!(findings("fast-recovery", &text).is_empty());
    }

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
        let found = findings("rto-stall", &syns(Some([10_000, 50])));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].blame.side, found[0].count), (Blamed::Network, 2));
        assert_eq!((found[0].cost_ms.0, found[0].worst_ms.0), (3_000.0, 2_000.0));
        assert!(found[0].summary.contains("The SYN of the client"), "{}", found[0].summary);
    }

    #[test]
    fn a_syn_that_reaches_the_server_and_is_not_answered_is_the_servers() {
        let found = findings("rto-stall", &syns(Some([50, 10_000])));
        assert_eq!(
            (found[0].blame.side, found[0].blame.address.as_deref()),
            (Blamed::Server, Some("10.0.0.2:80"))
        );
    }

    #[test]
    fn a_syn_that_is_never_answered() {
        let found = findings("rto-stall", &syns(None));
        assert_eq!((found[0].blame.side, found[0].count, found[0].cost_ms.0), (Blamed::Network, 2, 3_000.0));
        assert!(found[0].summary.contains("never answered"), "{}", found[0].summary);
    }
}
