//! Time spent repairing losses.

use super::loss::{CONFIDENCE_GAPS, Loss, SMALLEST_REPAIR, severity, smaller_window, told_of_window, worst};
use super::rule::{Check, rule};
use super::subject::{Subject, counted, grouped, human, percent};
use super::{late_hole_ack, one_hole_per_rtt};
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::flow::half::NEVER;
use crate::ledger::Tally;
use crate::report::{Blame, Blamed, Finding, Fix, Severity};

rule! {
    /// Lost segments had to be repaired before the data behind them could be delivered.
    ///
    /// ## What it means
    /// TCP delivers in order: whatever arrives behind a lost segment waits in the receiver until the segment
    /// has been sent again. Meanwhile the sender halves its congestion window. Without SACK it also learns
    /// of only one hole per round trip, so that a burst of losses takes as many round trips as segments.
    ///
    /// ## How it is detected
    /// Segments were sent again and no timer was needed; the time from the third duplicate ACK (or the
    /// retransmission itself) until everything outstanding was ACKed is the cost, and each wait of the sender's after
    /// that for which less was on its way than its congestion window had allowed before. Where what was ACKed during a
    /// repair took as long as the repair at the path's rate, the path was never idle, and the repair cost nothing: a note.
    /// Segments that only came out of order, and retransmissions that the receiver reports as needless (D-SACK), do not count. Nor does the
    /// part of a repair that `late-hole-ack` or `one-hole-per-rtt` tells of, nor what follows a timer, which is part of
    /// `rto-stall` or `tail-loss`.
    ///
    /// ## What to do
    /// Look for the place that drops: a queue that is too short or too long for its line, a policer, a bad
    /// cable or radio link, duplex or offload faults. SACK and RACK at both ends make repairs take one round
    /// trip; BBR as congestion control stands random loss better than CUBIC. Less loss is the only full cure.
    ///
    /// ## References
    /// RFC 5681 section 3.2; RFC 6582 (NewReno: one hole per round trip); RFC 6675 (SACK); RFC 8985 (RACK).
    FAST_RECOVERY = "fast-recovery", Severity::Problem, Check::Connection(check)
}

/// One repair could be chance of the capture; several are not.
const CONFIDENCE_ONCE: f64 = 0.8;
const CONFIDENCE: f64 = 0.95;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        let loss = Loss::of(subject, end);
        if !loss.is_real() {
            continue;
        }
        let Some(tally) = subject.tally(Cause::Recovery, end) else { continue };
        let waited = of_waits(subject, end, tally, &loss);
        let is_busy = busy(subject, end) >= SMALLEST_REPAIR;
        findings.extend(waited.or_else(|| is_busy.then(|| of_busy_path(subject, end, tally, &loss))));
    }
}

/// What repairs of `end`'s losses took while the path was busy all the time, ns: the transfer took no longer for it.
fn busy(subject: &Subject<'_>, end: End) -> i64 {
    subject.tally(Cause::BusyRepair, end).map_or(0, |tally| tally.total)
}

/// Repairs that held up data.
fn of_waits(subject: &Subject<'_>, end: End, tally: &Tally, loss: &Loss) -> Option<Finding> {
    let elsewhere = late_hole_ack::cost(subject, end) + one_hole_per_rtt::cost(subject, end);
    let later = smaller_window(subject, end, Cause::Recovery);
    let severity = severity(subject, tally.total - elsewhere - busy(subject, end) + later)
        .or_else(|| is_snippet(subject, tally).then_some(Severity::Advice))?;
    Some(finding(subject, end, tally, loss, (severity, elsewhere)))
}

/// Repairs during which the path was busy all the time: they cost what the smaller window cost afterwards, often nothing.
fn of_busy_path(subject: &Subject<'_>, end: End, tally: &Tally, loss: &Loss) -> Finding {
    let later = smaller_window(subject, end, Cause::Recovery);
    let summary = format!(
        "The network lost {} of what {} sent: {} of {} had to be sent again. The path was busy all the while, so the \
         repair itself cost nothing.{}",
        percent(loss.lost() as i64, loss.segments as i64),
        subject.who(end),
        grouped(loss.retransmitted),
        counted(loss.segments, "segment"),
        told_of_window(later),
    );
    Finding {
        summary,
        cost_ms: ms(later),
        worst_ms: ms(later),
        ..finding(subject, end, tally, loss, (severity(subject, later).unwrap_or(Severity::Note), 0))
    }
}

/// Whether the capture shows little but a repair, in the midst of a connection: how much of it lies outside is not known.
fn is_snippet(subject: &Subject<'_>, tally: &Tally) -> bool {
    subject.connection.established == NEVER && 2 * tally.total >= subject.duration()
}

/// The finding; what of its time is told of `elsewhere`, by the rules about parts of a repair, is not part of its cost.
fn finding(
    subject: &Subject<'_>,
    end: End,
    tally: &Tally,
    loss: &Loss,
    (severity, elsewhere): (Severity, i64),
) -> Finding {
    let later = smaller_window(subject, end, Cause::Recovery);
    let cost = (tally.total - elsewhere - busy(subject, end)).max(0) + later;
    Finding {
        rule: FAST_RECOVERY.name,
        severity,
        connection: Some(subject.id),
        blame: Blame { side: Blamed::Network, address: None },
        count: tally.count,
        cost_ms: ms(cost),
        worst_ms: ms(worst(tally).min(cost)),
        confidence: confidence(tally, loss),
        summary: summary(subject, end, tally, loss) + &told_of_window(later) + &told_elsewhere(elsewhere),
        evidence: subject.evidence(tally, |case| {
            let [first, last, _] = case.packets;
            let (begun, over) = if first == last {
                ("sent again: a segment was lost; that all of it arrived is not in the capture", "")
            } else {
                ("sent again: a segment was lost", "everything outstanding is ACKed")
            };
            [begun.to_owned(), over.to_owned(), String::new()]
        }),
        fixes: fixes(subject, end),
    }
}

fn confidence(tally: &Tally, loss: &Loss) -> f64 {
    match tally.count {
        _ if loss.has_gaps => CONFIDENCE_GAPS,
        1 => CONFIDENCE_ONCE,
        _ => CONFIDENCE,
    }
}

fn summary(subject: &Subject<'_>, end: End, tally: &Tally, loss: &Loss) -> String {
    let needless = match loss.needless {
        0 => String::new(),
        needless => format!(", {} of them needlessly", grouped(needless)),
    };
    let (repairs, them, in_all) = match tally.count {
        1 => ("the repair".to_owned(), "it", ""),
        count => (counted(count, "repair"), "them", " in all"),
    };
    format!(
        "The network lost {} of what {} sent: {} of {} had to be sent again{needless}, and {repairs} held up the \
         data behind {them} for {}{in_all}, {} of the time in which somebody waited.",
        percent(loss.lost() as i64, loss.segments as i64),
        subject.who(end),
        grouped(loss.retransmitted),
        counted(loss.segments, "segment"),
        human(tally.total),
        percent(tally.total, subject.waiting()),
    )
}

/// What other rules tell of the same time.
fn told_elsewhere(elsewhere: i64) -> String {
    match elsewhere {
        0 => String::new(),
        elsewhere => format!(
            " Of that, {} are told of elsewhere: ACKs that came late, holes mended one at a time.",
            human(elsewhere)
        ),
    }
}

fn fixes(subject: &Subject<'_>, end: End) -> Vec<Fix> {
    vec![
        Fix {
            title: "Find where segments are dropped".to_owned(),
            how: "Drops that come with a rising round trip are a full queue (`tc -s qdisc`, the router's counters): \
                  pace the sender or use fq_codel there. Drops at a steady round trip are a policer, a bad link or \
                  a host that cannot keep up (`ip -s link`, `ethtool -S`)."
                .to_owned(),
        },
        Fix {
            title: "Keep SACK and RACK on at both ends".to_owned(),
            how: "net.ipv4.tcp_sack=1 and net.ipv4.tcp_recovery=1 (Linux's defaults), and no middlebox that strips \
                  the options. Without SACK each further hole costs a round trip."
                .to_owned(),
        },
        Fix {
            title: format!("Try BBR on the {}", subject.side_name(end)),
            how: "net.ipv4.tcp_congestion_control=bbr, or TCP_CONGESTION on the sending socket: it does not halve its \
                  rate on each loss. It does not mend the loss, and may crowd out other traffic on a full line."
                .to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bulk, findings, minute_of_messages};
    use crate::report::{Blamed, Severity};

    const HANDSHAKE: &str = "\
        10:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 99, win 64240, options [mss 1460,sackOK], length 0\n\
        10:00:00.019000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [S.], seq 499, ack 100, win 64240, options [mss 1460,sackOK], length 0\n\
        10:00:00.019050 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 1, win 64240, length 0\n";

    fn segment(us: u64, index: u64) -> String {
        let seq = 1 + index * 1_460;
        format!(
            "10:00:00.{us:06} IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], seq {seq}:{}, ack 1, win 64240, length 1460\n",
            seq + 1_460
        )
    }

    fn ack(us: u64, ack: u64, options: &str) -> String {
        format!(
            "10:00:00.{us:06} IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack {ack}, win 64240, {options}length 0\n"
        )
    }

    /// Ten segments, of which the first is lost; nine duplicate ACKs; it is sent again; all is ACKed.
    fn upload(last_options: &str) -> String {
        let mut text = HANDSHAKE.to_owned();
        text.extend((0..10).map(|index| segment(20_000 + 10 * index, index)));
        text.extend((1..10).map(|index| ack(40_000 + 10 * index, 1, "")));
        text + &segment(40_100, 0) + &ack(60_100, 14_601, last_options)
    }

    #[test]
    fn a_repair_that_the_capture_does_not_see_through_is_not_called_complete() {
        let notes = |is_complete: bool| {
            let mut talk = Bulk::with_sack(20_000);
            (0..10).for_each(|index| talk.segment(30_000 + 10 * index, index));
            (2..10).for_each(|index| talk.sack(50_000 + 10 * index, 0, (1, index)));
            talk.segment(50_100, 0);
            if is_complete {
                talk.ack(70_100, 10);
            } else {
                talk.sack(70_100, 0, (1, 10));
            }
            let found = findings("fast-recovery", &talk.text());
            let [found] = &found[..] else { panic!("{found:?}") };
            found.evidence.iter().map(|one| one.note.clone()).collect::<Vec<_>>()
        };
        let is_told = |notes: Vec<String>| notes.iter().any(|note| note.contains("everything outstanding"));
        assert!(is_told(notes(true)));
        assert!(!is_told(notes(false)));
    }

    /// A flight of 10 segments each round trip of 20 ms, then one of 20, whose first is lost and sent again; then flights of
    /// so many segments each, 40 segments in all.
    fn rounds_after_a_loss(flight: u64) -> String {
        let mut talk = Bulk::with_sack(20_000);
        let send = |talk: &mut Bulk, us: u64, from: u64, count: u64| {
            (from..from + count).for_each(|index| talk.segment(us + 10 * (index - from), index));
        };
        send(&mut talk, 30_000, 0, 10);
        talk.ack(50_000, 10);
        send(&mut talk, 50_050, 10, 20);
        (12..30).for_each(|index| talk.sack(70_000 + 10 * index, 10, (11, index)));
        talk.segment(70_350, 10);
        talk.ack(90_350, 30);
        let mut now = 90_400;
        for first in (30..70).step_by(flight as usize) {
            send(&mut talk, now, first, flight);
            talk.ack(now + 20_000, first + flight);
            now += 20_050;
        }
        talk.text()
    }

    #[test]
    fn rounds_that_the_smaller_window_adds_are_the_losss() {
        let cost = |flight: u64| {
            let found = findings("fast-recovery", &rounds_after_a_loss(flight));
            assert_eq!(found.len(), 1);
            (found[0].cost_ms.0, found[0].summary.contains("smaller afterwards"))
        };
        // With 20 segments a round, as before the loss, 40 segments take two rounds, and the sender stops once; with 10 they
        // take four, and it stops three times, each for a round trip less the time that it sends. Half of that is the loss's.
        let (repair, is_told) = cost(20);
        assert!((repair - 20.2).abs() < 0.1 && !is_told, "{repair}");
        let (with_rounds, is_told) = cost(10);
        assert!((with_rounds - repair - 3.0 * 20.0 / 2.0).abs() < 1.0 && is_told, "{with_rounds}");
    }

    /// Segments that come 0.6 ms apart, captured at the receiver; the 30th is lost, and comes in its turn 20 ms later, or with
    /// nothing but silence around it.
    fn download_at_rate(is_busy: bool) -> String {
        let mut talk = Bulk::at_server(20_000);
        let mut now = 60_000;
        for index in (0..30).chain(31..66) {
            talk.segment_at(now, index, now / 1_000);
            if index < 30 {
                talk.ack(now + 20, index + 1);
            } else {
                talk.sack(now + 20, 30, (31, index + 1));
            }
            now += 600;
        }
        now += if is_busy { 0 } else { 20_000 };
        talk.segment_at(now, 30, now / 1_000);
        talk.ack(now + 20, 66);
        for index in 66..100 {
            now += 600;
            talk.segment_at(now, index, now / 1_000);
            talk.ack(now + 20, index + 1);
        }
        talk.text()
    }

    #[test]
    fn a_repair_on_a_path_that_is_never_idle_costs_nothing() {
        let found = findings("fast-recovery", &download_at_rate(true));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.severity, found.cost_ms.0), (Severity::Note, 0.0));
        assert!(found.summary.contains("cost nothing"), "{}", found.summary);
        let found = findings("fast-recovery", &download_at_rate(false));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert!(found.cost_ms.0 >= 20.0, "{found:?}");
    }

    #[test]
    fn one_of_ten_segments_is_lost_and_mended_after_three_duplicate_acks() {
        let found = findings("fast-recovery", &upload(""));
        assert_eq!(found.len(), 1);
        let finding = &found[0];
        assert_eq!((finding.blame.side, finding.blame.address.as_ref()), (Blamed::Network, None));
        assert_eq!((finding.severity, finding.count), (Severity::Problem, 1));
        // From the first duplicate ACK at .040010 to the ACK of everything at .060100.
        assert!((20.0..=20.2).contains(&finding.cost_ms.0), "{:?}", finding.cost_ms);
        assert!(
            finding.summary.contains("9 %") && finding.summary.contains("1 of 11 segments"),
            "{}",
            finding.summary
        );
        assert!(findings("rto-stall", &upload("")).is_empty());
    }

    #[test]
    fn a_segment_that_came_twice_was_not_lost() {
        assert!(findings("fast-recovery", &upload("options [sack 1 {1:1461}], ")).is_empty());
    }

    #[test]
    fn a_segment_that_comes_a_moment_late_was_overtaken() {
        let mut text = HANDSHAKE.to_owned();
        text += &segment(20_000, 1);
        text += &segment(20_500, 0);
        text += &ack(39_000, 2_921, "");
        assert!(findings("fast-recovery", &text).is_empty());
    }

    #[test]
    fn one_repair_in_a_long_transfer_is_nothing() {
        let text = upload("") + &minute_of_messages(14_601);
        assert!(findings("fast-recovery", &text).is_empty());
    }

    #[test]
    fn idle_time_makes_a_repair_no_smaller() {
        let mut text = upload("");
        text += "10:00:59.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [F.], seq 14601, ack 1, win 64240, length 0\n";
        assert_eq!(findings("fast-recovery", &text).len(), 1);
    }

    /// Captured at the server, 20 ms from the client: the second of five segments comes this much after the third, µs.
    fn late_by(us: u64) -> String {
        let mut talk = Bulk::at_server(20_000);
        talk.segment(30_000, 0);
        talk.ack(30_010, 1);
        for (order, index) in [2, 3, 4].into_iter().enumerate() {
            talk.segment(30_500 + order as u64 * 500, index);
            talk.ack(30_510 + order as u64 * 500, 1);
        }
        talk.segment(30_500 + us, 1);
        talk.ack(30_510 + us, 5);
        talk.text()
    }

    #[test]
    fn what_comes_within_a_round_trip_was_overtaken() {
        for rule in ["fast-recovery", "rto-stall", "tail-loss", "spurious-retransmit", "capture-gap"] {
            assert!(findings(rule, &late_by(15_000)).is_empty(), "{rule}");
        }
        let found = findings("fast-recovery", &late_by(21_000));
        // From the first duplicate ACK at 30.51 ms to the ACK of all at 51.51.
        assert_eq!((found.len(), found[0].cost_ms.0), (1, 21.0));
    }

    #[test]
    fn timestamps_tell_what_was_overtaken_from_what_was_sent_again() {
        let late_by = |us: u64, stamp: u64| {
            let mut talk = Bulk::at_server(20_000);
            talk.segment_at(30_000, 0, 100);
            talk.ack(30_010, 1);
            for (order, index) in [2, 3, 4].into_iter().enumerate() {
                talk.segment_at(30_500 + order as u64 * 500, index, 105);
                talk.ack(30_510 + order as u64 * 500, 1);
            }
            talk.segment_at(30_500 + us, 1, stamp);
            talk.ack(30_510 + us, 5);
            findings("fast-recovery", &talk.text()).len()
        };
        assert_eq!(late_by(60_000, 104), 0, "60 ms late, and older than what overtook it");
        assert_eq!(late_by(15_000, 106), 1, "sooner than a round trip, and younger");
    }

    /// Less than a millisecond in the midst of a repair; before its first segment the server may have told of the hole.
    fn snippet(sack: &str) -> String {
        let (server, client) =
            ("10.0.0.2.80 > 10.0.0.1.40000: Flags [.]", "10.0.0.1.40000 > 10.0.0.2.80: Flags [.]");
        let mut text =
            format!("10:00:00.000000 IP {server}, ack 1, win 382, options [{sack}nop], length 0\n");
        for number in 0..3_u64 {
            let (us, from) = (100 + 100 * number, 10_001 + 1_000 * number);
            let to = from + 1_000;
            text += &format!(
                "10:00:00.{us:06} IP {client}, seq {from}:{to}, ack 1, win 108, length 1000\n\
                 10:00:00.{:06} IP {server}, ack 1, win 382, options [sack 1 {{5001:{to}}}], length 0\n",
                us + 10
            );
        }
        text + &format!(
            "10:00:00.000400 IP {client}, seq 1:1001, ack 1, win 108, length 1000\n\
             10:00:00.000410 IP {server}, ack 1001, win 382, options [sack 1 {{5001:13001}}], length 0\n"
        )
    }

    #[test]
    fn a_snippet_of_a_repair_is_not_innocent() {
        let found = findings("fast-recovery", &snippet("sack 1 {5001:10001},"));
        assert_eq!((found.len(), found[0].severity), (1, Severity::Advice));
    }

    #[test]
    fn what_may_have_been_overtaken_in_a_snippet_is_no_loss() {
        assert!(findings("fast-recovery", &snippet("")).is_empty());
    }

    #[test]
    fn a_probe_whose_answer_tells_of_more_leaves_the_rest_to_acks() {
        // All of four segments is lost; a probe sends the last, a small one, after 50 ms; its SACK brings the others.
        let mut talk = Bulk::with_sack(20_000);
        (0..3).for_each(|index| talk.segment(30_000 + 10 * index, index));
        talk.piece(30_030, 3, 100);
        talk.piece(80_030, 3, 100);
        let sack = "10:00:00.100030 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 1, win 65160, options [nop,nop,sack 1 {4381:4481}], length 0\n";
        let mut rest = Bulk::with_sack(20_000);
        (0..3).for_each(|index| rest.segment(100_080 + 10 * index, index));
        rest.ack_piece(121_000, 3, 100);
        let rest: String = rest.text().lines().skip(3).map(|line| format!("{line}\n")).collect();
        let text = talk.text() + sack + &rest;
        let [probe, acks] = ["tail-loss", "fast-recovery"].map(|rule| findings(rule, &text));
        assert_eq!((probe.len(), acks.len()), (1, 1));
        assert!((probe[0].cost_ms.0 - 50.0).abs() < 0.01, "{:?}", probe[0].cost_ms);
        assert!((acks[0].cost_ms.0 - 40.97).abs() < 0.01, "{:?}", acks[0].cost_ms);
    }

    #[test]
    fn segments_that_are_cut_anew_before_anything_was_heard_are_no_repair() {
        let mut talk = Bulk::with_sack(20_000);
        (0..3).for_each(|index| talk.segment(30_000 + 10 * index, index));
        // An ICMP message told of a smaller MTU: the same bytes again, 1,000 at a time.
        (0..3).for_each(|index| talk.piece(30_200 + 10 * index, index, 1_000));
        talk.ack(190_000, 3);
        for rule in ["fast-recovery", "tail-loss", "rto-stall"] {
            assert!(findings(rule, &talk.text()).is_empty(), "{rule}");
        }
    }
}
