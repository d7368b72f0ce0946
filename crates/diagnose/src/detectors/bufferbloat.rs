//! Queues that are longer than the path.

use super::rule::{Check, rule};
use super::subject::{Subject, counted, human, percent, rate};
use super::windows::Windows;
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::flow::queue::Queue;
use crate::ledger::Tally;
use crate::report::{Blame, Blamed, Finding, Fix, Line, Severity};

rule! {
    /// A queue on the path made round trips far longer than they are on an idle path.
    ///
    /// ## What it means
    /// A buffer in front of a slow link takes what a sender sends too early, and does not drop it. The sender sees no
    /// loss and sends more, until the buffer is full or a window ends it. The transfer itself is as fast as the
    /// link; but everything else that goes through the same queue, this connection's requests too, is late by the
    /// queue's length, and so is the repair of every loss.
    ///
    /// ## How it is detected
    /// Round trips of data were longer than the base one by 100 ms and by the base one itself, at least four times
    /// and for a twentieth of the time in which somebody waited (or a second). Only ACKs that the receiver cannot have held
    /// back count: for two full segments, or with more in flight. The queue in bytes is its time at the rate at
    /// which ACKs came. If round trips that began with nothing of this sender in flight were as long, others fill the
    /// queue; otherwise this connection does. A capture at the receiver does not show it: there the way back to the
    /// sender is missing.
    ///
    /// The cost is what the ledger has on `queueing`, which is what senders and receivers of this connection waited for
    /// and no other line explains. A transfer that keeps the link busy through the queue loses nothing by it
    /// (`transfer`), and a window that the queue makes wait is `small-receive-window` only as far as the base round
    /// trip goes.
    ///
    /// ## What to do
    /// Where the queue is (the slowest link: often the home router's uplink, a modem, a virtual machine's rate
    /// limit): `fq_codel` or CAKE, shaped to a little less than the link's rate. At the sender: BBR, which does not
    /// fill queues; a smaller `SO_SNDBUF`, or `TCP_NOTSENT_LOWAT` so that at least what is not sent yet stays
    /// short. At the receiver: a smaller `SO_RCVBUF`. ECN at both ends lets the queue mark instead of drop.
    ///
    /// ## References
    /// RFC 7567 (queue management); RFC 8289 (`CoDel`); RFC 8290 (FQ-`CoDel`); tc-cake(8); tcp(7),
    /// `TCP_CONGESTION`; Linux Documentation/networking/ip-sysctl, `tcp_notsent_lowat`.
    BUFFERBLOAT = "bufferbloat", Severity::Problem, Check::Connection(check),
        [BBR, UNSENT]
}

/// Fewer long round trips are a burst that a queue is for.
const FEWEST: u32 = 4;
/// They matter from this share of the time in which somebody waited on, 1 in so many…
const SHARE_OF_LIFE: i64 = 20;
/// …or, in long lives, from this much time on. ns.
const LONG: i64 = 1_000_000_000;
/// The connection itself loses time if so much of its life, 1 in so many, is queueing that nothing else explains; else
/// this is advice for the sake of the others.
const PROBLEM_SHARE: i64 = 20;
/// Round trips that began alone, from so many on, tell whose queue it is…
const FEWEST_ALONE: u32 = 3;
/// …and without them it is likely this connection's, which is the one that is known to send.
const CONFIDENCE_LIKELY: f64 = 0.8;
const CONFIDENCE: f64 = 0.95;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        let Some(sending) = subject.connection.sending(end) else { continue };
        let queue = &sending.queue;
        let share = subject.waiting() / SHARE_OF_LIFE;
        if Windows::of(subject, end).unread_total() >= queue.lasted {
            // ACKs came when the receiver's program read, not when a queue let them.
            continue;
        }
        if queue.long >= FEWEST && (queue.lasted >= LONG || queue.lasted >= share) {
            findings.push(finding(subject, end, queue));
        }
    }
}

/// Whose data the queue is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filler {
    Itself,
    Others,
}

fn filler(queue: &Queue) -> Filler {
    let met_long = queue.alone >= FEWEST_ALONE && 2 * queue.alone_long >= queue.alone;
    if met_long { Filler::Others } else { Filler::Itself }
}

fn finding(subject: &Subject<'_>, end: End, queue: &Queue) -> Finding {
    let waits = subject.tally(Cause::Queueing, end);
    let cost = cost(subject, waits);
    let is_costly = cost > 0 && cost >= subject.waiting() / PROBLEM_SHARE;
    let (packet, at) = queue.worst_packet;
    let note = format!("this ACK comes {} later than on an idle path", human(queue.worst));
    Finding {
        rule: BUFFERBLOAT.name,
        severity: if is_costly { BUFFERBLOAT.severity } else { Severity::Advice },
        connection: Some(subject.id),
        blame: Blame { side: Blamed::Network, address: None },
        count: u64::from(queue.long),
        cost_ms: ms(cost),
        worst_ms: ms(queue.worst),
        confidence: if queue.alone >= FEWEST_ALONE { CONFIDENCE } else { CONFIDENCE_LIKELY },
        summary: subject.text(|| summary(subject, end, queue)),
        evidence: vec![subject.packet(packet, at, note)],
        fixes: subject.fixes(|| fixes(subject, end, filler(queue))),
    }
}

/// What the ledger has on queueing, as far as this direction waited. ns.
fn cost(subject: &Subject<'_>, waits: Option<&Tally>) -> i64 {
    let booked = subject.ledger.lines(subject.connection)[Line::Queueing as usize];
    waits.map_or(0, |waits| waits.total.min(booked))
}

fn summary(subject: &Subject<'_>, end: End, queue: &Queue) -> String {
    let base = subject.connection.base_round_trip().unwrap_or(0);
    let size =
        queue.rate().filter(|_| filler(queue) == Filler::Itself).map_or_else(String::new, |bytes_a_second| {
            let bytes = (bytes_a_second * queue.mean() as f64 / 1e9) as u64;
            let carried = rate(queue.carried, queue.carried_in);
            format!(", at {carried} some {}", counted(bytes, "byte"))
        });
    let whose = match filler(queue) {
        Filler::Itself => format!(
            "{} fills it with its own data, up to {} in flight",
            subject.capital(end),
            counted(queue.in_flight, "byte")
        ),
        Filler::Others => {
            "Others fill it: also what met nothing of this connection in flight was as late".to_owned()
        }
    };
    format!(
        "A queue of {} on average and {} at most{size} stood between {} and {}, whose base round trip is {}, for {} \
         of the time in which somebody waited. {whose}.",
        human(queue.mean()),
        human(queue.worst),
        subject.who(end),
        subject.who(1 - end),
        human(base),
        percent(queue.lasted.min(subject.waiting()), subject.waiting()),
    )
}

fn fixes(subject: &Subject<'_>, end: End, filler: Filler) -> Vec<Fix> {
    let (sender, receiver) = (subject.side_name(end), subject.side_name(1 - end));
    let mut fixes = vec![Fix {
        title: "Manage the queue where it is".to_owned(),
        how: "At the host or router in front of the slowest link: `tc qdisc replace dev DEV root cake bandwidth …` (or \
              fq_codel behind a shaper) with a little less than the link's rate, so that the queue is there and not in \
              the modem."
            .to_owned(),
    }];
    if filler == Filler::Itself {
        fixes.push(Fix {
            title: format!("Use BBR on the {sender}"),
            how: "net.ipv4.tcp_congestion_control=bbr, or TCP_CONGESTION on the sending socket: it sends at the rate \
                  that it measures instead of filling the queue until something is lost."
                .to_owned(),
        });
        fixes.push(Fix {
            title: "Or bound what is in flight".to_owned(),
            how: format!(
                "A smaller SO_RCVBUF on the {receiver} before the handshake, or SO_SNDBUF on the {sender}: rate × base \
                 round trip is enough. TCP_NOTSENT_LOWAT on the {sender} at least keeps what is not sent yet short, so \
                 that the program can still change its mind."
            ),
        });
    }
    fixes
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::{Blamed, Severity};

    /// An upload of 600 segments with forty of them on their way, through a link that takes 12 ms for each and a path of
    /// `base` ms: seen at the client. The receiver ACKs every second one.
    fn upload(base: u64) -> String {
        let mut talk = Talk::near_client(base * 1_000);
        let arrives = |segment: u64| 21_000 + base * 1_000 + 12_000 * segment;
        for segment in 0..600 {
            let free = if segment < 40 { 21_000 + base * 1_000 } else { arrives((segment - 40) | 1) };
            talk.data(free + 10 + 10 * (segment % 40), true, 1_460);
            if segment % 2 == 1 {
                talk.ack_of(arrives(segment), false, (segment + 1) * 1_460);
            }
        }
        talk.text()
    }

    #[test]
    fn forty_segments_in_front_of_a_slow_link_are_a_queue_of_its_own() {
        let found = findings("bufferbloat", &upload(20));
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.blame.side, found.severity), (Blamed::Network, Severity::Advice));
        // 40 segments of 12 ms, less what is on the path.
        assert!((400.0..=480.0).contains(&found.worst_ms.0), "{found:?}");
        // 1,460 bytes in 12 ms.
        assert!(found.summary.contains("at 973 kbit/s"), "{}", found.summary);
        assert!(
            found.summary.contains("fills it with its own data, up to 58,400 bytes"),
            "{}",
            found.summary
        );
    }

    #[test]
    fn a_path_that_is_as_long_has_no_queue() {
        let mut talk = Talk::near_client(480_000);
        for round in 0..8 {
            let start = 500_000 + 480_100 * round;
            talk.flight(start, true, 40);
            talk.ack(start + 480_050, false);
        }
        assert!(findings("bufferbloat", &talk.text()).is_empty());
    }

    #[test]
    fn what_meets_a_queue_with_nothing_of_its_own_in_it_meets_others() {
        let mut talk = Talk::near_client(20_000);
        for message in 0..6 {
            let start = 100_000 + 1_000_000 * message;
            talk.flight(start, true, 4);
            talk.ack(start + 320_000, false);
        }
        let found = findings("bufferbloat", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert!(found.summary.contains("Others fill it"), "{}", found.summary);
        assert!(found.summary.contains("A queue of 300 ms on average"), "{}", found.summary);
    }

    #[test]
    fn one_late_ack_for_a_single_segment_is_the_receivers() {
        let mut talk = Talk::near_client(20_000);
        for message in 0..6 {
            let start = 100_000 + 1_000_000 * message;
            talk.data(start, true, 1_460);
            talk.ack(start + 220_000, false);
        }
        assert!(findings("bufferbloat", &talk.text()).is_empty());
    }
}
