//! Lost ends of messages, which only a timer notices.

use super::loss::{
    CONFIDENCE_GAPS, Loss, SMALLEST_STALL, find_the_drops, how_long, of_timer, severity, smaller_window,
    told_of_window,
};
use super::rule::{Check, rule};
use super::subject::{Subject, human, percent, times};
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::ledger::Tally;
use crate::report::{Finding, Fix, Severity};

rule! {
    /// The end of a message was lost, with nothing behind it that told of the loss.
    ///
    /// ## What it means
    /// TCP notices most losses by the ACKs of what was sent after the lost segment. Behind the last segment of a
    /// message, or a lone request, nothing comes. Then a timer must end the silence: on today's Linux a tail-loss
    /// probe after two round trips (and 200 ms more for a lone segment, whose ACK may be delayed), else the
    /// retransmission timer after 200 ms and more, 1 s by the RFC, and twice as long each time it expires again.
    ///
    /// ## How it is detected
    /// A segment was sent again after a silence of both sides, 150 ms and more, or two round trips; no duplicate ACK
    /// and no SACK had told of anything behind it, and the last segment before the silence was no full one, so that a
    /// message ended with it. The silence is the cost, and what the repair then took beyond a round trip. Whether a probe or the timer ended it shows in what was sent:
    /// a probe repeats the last segment or brings new data, the timer repeats the first; where one segment is all,
    /// the time and SACK may tell. A retransmission that the receiver reports as needless (D-SACK), or whose answer
    /// echoes an older timestamp, is no loss: the ACK was late.
    ///
    /// Where the segment was lost before it came to the capture, its retransmission looks like data that comes
    /// late. Linux numbers the packets of each connection one by one in IPv4's identification field: data that
    /// comes after a silence of 200 ms or more, as long as a timer's, with a number left out before it, is
    /// reported too. IPv6 has no such field.
    ///
    /// ## What to do
    /// Find where segments are dropped. SACK at both ends makes tail-loss probes possible, which shorten the wait
    /// to two round trips where more than one segment was in flight. A program that cannot wait may ask again
    /// on another connection, or say something small after an important message.
    ///
    /// ## References
    /// RFC 8985 section 7 (tail-loss probe); RFC 6298 (timer); RFC 2883 (D-SACK); RFC 3522 (Eifel); RFC 791 section 3.1 (identification).
    TAIL_LOSS = "tail-loss", Severity::Problem, Check::Connection(check)
}

/// A retransmission after so long a silence leaves no other reading.
const CONFIDENCE: f64 = 0.95;
/// A packet that never came may have been a pure ACK, and the silence after it a program's.
const CONFIDENCE_UNSEEN: f64 = 0.8;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        if let Some(tally) = judged(subject, end) {
            findings.push(finding(subject, end, tally));
        }
        if let Some(tally) = subject.tally(Cause::UnseenTimeout, end)
            && tally.total >= SMALLEST_STALL
        {
            findings.push(of_unseen_data(subject, end, tally));
        }
    }
}

fn judged<'a>(subject: &'a Subject<'_>, end: End) -> Option<&'a Tally> {
    let tally = subject.tally(Cause::TailLoss, end)?;
    let matters = tally.total >= SMALLEST_STALL || severity(subject, tally.total).is_some();
    (matters && Loss::of(subject, end).is_real()).then_some(tally)
}

/// What repairs of `end`'s lost tails took beyond the timers and a round trip each, ns; 0 where the rule does not speak.
pub(super) fn repair_cost(subject: &Subject<'_>, end: End) -> i64 {
    let repairs = judged(subject, end).and_then(|_| subject.tally(Cause::TailRepair, end));
    repairs.map_or(0, |tally| tally.total)
}

fn finding(subject: &Subject<'_>, end: End, tally: &Tally) -> Finding {
    let repair = repair_cost(subject, end);
    let later = smaller_window(subject, end, Cause::TailLoss);
    let loss = Loss::of(subject, end);
    Finding {
        cost_ms: ms(tally.total + repair + later),
        confidence: if loss.is_in_doubt(subject, end) { CONFIDENCE_GAPS } else { CONFIDENCE },
        summary: format!(
            "The network lost the end of what {} sent {}, and nothing came behind it that told: {} to send it again \
             after {}, {} of the time in which somebody waited.{}{} {} sent again.",
            subject.who(end),
            times(tally.count),
            mended_by(subject, end),
            how_long(tally),
            percent(tally.total, subject.waiting()),
            if repair > 0 {
                format!(" The repair then took another {}.", human(repair))
            } else {
                String::new()
            },
            told_of_window(later),
            loss.sent_again(),
        ),
        evidence: subject.evidence(tally, |_| {
            [
                "the last packet with data before the silence".to_owned(),
                "a timer has expired: sent again, or new data as a probe".to_owned(),
                String::new(),
            ]
        }),
        fixes: fixes(subject, end),
        ..of_timer(&TAIL_LOSS, subject, tally)
    }
}

/// `a tail-loss probe had`: what mended the tails of `end`.
fn mended_by(subject: &Subject<'_>, end: End) -> &'static str {
    let tails = subject.half(end).trouble.as_ref().map_or([0; 3], |trouble| trouble.tails);
    match tails.map(|count| count > 0) {
        [true, false, false] => "a tail-loss probe had",
        [false, true, false] => "the retransmission timer had",
        [true, true, _] => "tail-loss probes and the retransmission timer had",
        _ => "the retransmission timer, or a tail-loss probe in its place, had",
    }
}

fn of_unseen_data(subject: &Subject<'_>, end: End, tally: &Tally) -> Finding {
    Finding {
        confidence: CONFIDENCE_UNSEEN,
        summary: format!(
            "The network lost data of {} {} on its way to the capture, and nothing came behind it that told: a timer \
             had to send it again after {}, {} of the time in which somebody waited. The identifications of its packets skip \
             those that were lost.",
            subject.who(end),
            times(tally.count),
            how_long(tally),
            percent(tally.total, subject.waiting()),
        ),
        evidence: subject.evidence(tally, |_| {
            [
                "the last packet before the silence".to_owned(),
                "data at last; the identification before its own never came: a retransmission".to_owned(),
                String::new(),
            ]
        }),
        fixes: fixes(subject, end),
        ..of_timer(&TAIL_LOSS, subject, tally)
    }
}

fn fixes(subject: &Subject<'_>, end: End) -> Vec<Fix> {
    let sack = Fix {
        title: match subject.connection.refuses_sack() {
            Some(end) => format!("Allow SACK on {}", subject.address(end)),
            None => format!("Keep tail-loss probes and SACK on at the {}", subject.side_name(end)),
        },
        how: "On Linux: net.ipv4.tcp_sack=1, net.ipv4.tcp_early_retrans=3, net.ipv4.tcp_recovery=1 (the defaults). \
              Probes need SACK at both ends; with several segments in flight they come after two round trips."
            .to_owned(),
    };
    let thin = Fix {
        title: "For small messages now and then: thin-stream timers".to_owned(),
        how: "TCP_THIN_LINEAR_TIMEOUTS on the sending socket (or net.ipv4.tcp_thin_linear_timeouts=1) keeps the timer \
              from doubling; within a data centre `ip route change … rto_min 20ms` shortens it, at the price of \
              needless retransmissions where ACKs are delayed."
            .to_owned(),
    };
    match subject.connection.refuses_sack() {
        Some(_) => vec![sack, find_the_drops(), thin],
        None => vec![find_the_drops(), sack, thin],
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bulk, findings};
    use crate::report::{Blamed, Finding, Severity};

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
        let found = findings("tail-loss", &text);
        assert_eq!(found.len(), 1);
        let finding = &found[0];
        assert_eq!((finding.blame.side, finding.blame.address.as_ref()), (Blamed::Network, None));
        assert_eq!((finding.severity, finding.count), (Severity::Problem, 1));
        // From the request at .011 to its repetition at .311.
        assert!((finding.cost_ms.0 - 300.0).abs() < 0.01, "{:?}", finding.cost_ms);
        assert!(finding.summary.contains("had to send it again after 300 ms,"), "{}", finding.summary);
        assert!(finding.summary.contains("1 of 2 segments was sent again"), "{}", finding.summary);
        assert_eq!(finding.evidence.iter().map(|evidence| evidence.packet).collect::<Vec<_>>(), [4, 5]);
        assert!(findings("fast-recovery", &text).is_empty());
    }

    #[test]
    fn a_program_that_says_more_after_a_pause_has_lost_nothing() {
        let more = "10:00:00.311000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 101:201, ack 1, win 64240, length 100\n\
                    10:00:00.321000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 201, win 64240, length 0\n";
        assert!(findings("tail-loss", &format!("{HANDSHAKE}{more}")).is_empty());
    }

    #[test]
    fn a_probe_that_the_receiver_did_not_need_shows_a_late_ack() {
        let late = "10:00:00.211000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:101, ack 1, win 64240, length 100\n\
                    10:00:00.220000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 101, win 64240, length 0\n\
                    10:00:00.221000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 101, win 64240, options [sack 1 {1:101}], length 0\n";
        assert!(findings("tail-loss", &format!("{HANDSHAKE}{late}")).is_empty());
    }

    #[test]
    fn a_probe_after_50_ms_matters_in_a_short_life_alone() {
        let mut text = format!("{HANDSHAKE}{}", sent_again(50_000));
        let found = findings("tail-loss", &text);
        assert_eq!((found.len(), found[0].cost_ms.0), (1, 50.0));
        assert!(
            found[0].summary.contains("a tail-loss probe had"),
            "too soon for a timer: {}",
            found[0].summary
        );
        text += "10:00:59.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [F.], seq 101, ack 1, win 64240, length 0\n";
        assert!(findings("tail-loss", &text).is_empty());
    }

    #[test]
    fn one_timer_in_a_long_life_is_advice() {
        let mut text = format!("{HANDSHAKE}{}", sent_again(300_000));
        text += "10:00:59.000000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [F.], seq 101, ack 1, win 64240, length 0\n";
        assert_eq!(findings("tail-loss", &text)[0].severity, Severity::Advice);
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
        let found = findings("tail-loss", &far_requests(1));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].blame.side, found[0].count), (Blamed::Network, 1));
        // The answer before passed at 100.470 ms and reached the client 20.0 ms later; the request came at 350.520.
        assert!((229.9..=230.2).contains(&found[0].cost_ms.0), "{:?}", found[0].cost_ms);
    }

    #[test]
    fn a_late_request_whose_number_is_the_next_was_not_lost() {
        assert!(findings("tail-loss", &far_requests(0)).is_empty());
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
        let found = findings("tail-loss", &text);
        assert_eq!(found.len(), 1);
        // From the first piece at .011 to the probe at .241, and the round trip that the SACK took.
        assert!((found[0].cost_ms.0 - 240.0).abs() < 0.01, "{:?}", found[0].cost_ms);
        assert!(findings("fast-recovery", &text).is_empty());
    }

    #[test]
    fn more_data_whose_forerunner_arrived_is_no_probe() {
        let text = probe_with_new_data(
            "10:00:00.251000 IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack 201, win 64240, length 0\n",
        );
        assert!(findings("tail-loss", &text).is_empty());
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
        let found = findings("tail-loss", &text);
        assert_eq!(found.len(), 1);
        assert!((found[0].cost_ms.0 - 212.0).abs() < 0.01, "{:?}", found[0].cost_ms);
        assert!(findings("fast-recovery", &text).is_empty());
    }

    /// A message of three segments, the last one small; what comes 250 ms after it, and the ACK of all.
    fn lost_end(mut talk: Bulk, again: impl Fn(&mut Bulk)) -> Vec<Finding> {
        (0..2).for_each(|index| talk.segment(30_000 + 10 * index, index));
        talk.piece(30_020, 2, 700);
        talk.ack(50_020, 1);
        again(&mut talk);
        talk.ack_piece(320_040, 2, 700);
        findings("tail-loss", &talk.text())
    }

    #[test]
    fn what_is_sent_again_first_tells_a_probe_from_a_timer() {
        let probe = |talk: &mut Bulk| {
            talk.piece(300_020, 2, 700);
            talk.segment(300_040, 1);
        };
        let timer = |talk: &mut Bulk| {
            talk.segment(300_020, 1);
            talk.piece(300_040, 2, 700);
        };
        let found = lost_end(Bulk::with_sack(20_000), probe);
        assert!(found[0].summary.contains("a tail-loss probe had"), "{}", found[0].summary);
        let found = lost_end(Bulk::with_sack(20_000), timer);
        assert!(found[0].summary.contains("told: the retransmission timer had"), "{}", found[0].summary);
        // All is ACKed at 320.04 ms; without the loss it had been at 50.02. The timer took 250 ms of that.
        assert_eq!(found.len(), 1);
        assert!((found[0].cost_ms.0 - 270.02).abs() < 0.02, "{:?}", found[0].cost_ms);
        assert_eq!(found[0].worst_ms.0, 250.0);
        let found = lost_end(Bulk::without_sack(20_000), timer);
        assert!(found[0].fixes[0].title.starts_with("Allow SACK"), "{}", found[0].fixes[0].title);
    }

    #[test]
    fn a_sack_of_something_behind_it_told_of_the_loss() {
        let mut talk = Bulk::with_sack(20_000);
        (0..2).for_each(|index| talk.segment(30_000 + 10 * index, index));
        talk.piece(30_020, 2, 700);
        talk.ack(50_000, 1);
        talk.sack(50_020, 1, (2, 3));
        talk.segment(300_020, 1);
        talk.ack_piece(320_040, 2, 700);
        assert!(findings("tail-loss", &talk.text()).is_empty());
        assert_eq!(findings("rto-stall", &talk.text()).len(), 1);
    }
}
