//! A program's even beat that does not arrive evenly.

use super::rule::{Check, rule};
use super::subject::{Subject, counted, human, percent};
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::flow::rhythm::Rhythm;
use crate::report::{Blame, Blamed, Finding, Fix, Severity, Side, Vantage};

rule! {
    /// Messages that are sent at an even pace come late now and then, and the next ones catch up.
    ///
    /// ## What it means
    /// A game's updates, a voice call's packets or a sensor's readings have a beat. Where some come late by half
    /// a beat or more and the following ones closely behind, the listener hears a stutter although nothing is
    /// missing. Either the sending program was late (a timer too coarse, a busy processor, garbage
    /// collection), or something on the path held the messages back (a queue, a radio link, power saving).
    ///
    /// ## How it is detected
    /// At least half of the gaps between messages are within an eighth of the median gap, which shows the beat; at least one
    /// in twenty is longer than one and a half of it and ends off the beat, not one or more whole beats later; and there are
    /// as many messages as the beat asks for, so the late ones were caught up with and not left out. Requests and answers, bulk data, and messages that TCP itself held
    /// back (Nagle's algorithm, windows, losses) are left to other rules. A capture at the sender shows its
    /// program's own beat; elsewhere the two cannot be told apart.
    ///
    /// ## What to do
    /// Capture at the sender. If the beat is uneven there already, look at the program's timer and at what else
    /// its thread does; if it is even, look at the path: queues, Wi-Fi, power saving of the receiving host.
    ///
    /// ## References
    /// RFC 3393 (delay variation); RFC 3550 section 6.4.1 (interarrival jitter); `PR_SET_TIMERSLACK` in prctl(2).
    UNEVEN_CADENCE = "uneven-cadence", Severity::Problem, Check::Connection(check)
}

/// Fewer gaps make no beat.
const FEWEST_GAPS: u64 = 20;
/// Share (in percent) of gaps that must lie within an eighth of the median for it to be a program's beat: of
/// random traffic (exponential gaps) 9 % do.
const BEAT: u64 = 50;
/// That part of the median, 1 in so many.
const BEAT_WIDTH: i64 = 8;
/// A gap of whole beats, give or take one in so many of a beat, ends on the beat: a message was left out, or has been sent
/// before.
const ON_BEAT: i64 = 16;
/// Gaps of more beats than this are pauses.
const BEATS_MOST: i64 = 8;
/// Late gaps, each longer than one and a half beats: so many at least…
const FEWEST_LATE: u64 = 5;
/// …and this share of all, in percent; rarer ones nobody notices as a stutter.
const LATE: u64 = 5;
/// Lateness below this in all is nobody's trouble. ns.
const SMALLEST_COST: i64 = 50_000_000;
/// Messages may be fewer or more than the beat asks for by one in so many late ones: where each late one
/// stands for a message that was left out, they are fewer by all of them.
const UNPAIRED: i64 = 2;
/// Messages that may have been seen before the rhythm was recognised.
const UNCOUNTED: i64 = 8;
/// Share (in percent) of a TCP sender's messages that may carry several units: more, and TCP merges them.
const MERGED: u32 = 10;
/// A capture at the sender shows what its program did.
const CONFIDENCE_AT_SENDER: f64 = 0.8;
/// Elsewhere it may be the program or the path.
const CONFIDENCE_ELSEWHERE: f64 = 0.4;

/// How one side's beat was kept.
#[derive(Clone, Copy, Debug)]
struct Beat {
    period: i64,
    gaps: u64,
    late: u64,
    /// Lateness of the late ones in all, and of the worst, ns.
    lateness: i64,
    worst: i64,
}

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    if subject.connection.exchanges.is_request_response() {
        return;
    }
    for end in 0..2 {
        let Some(rhythm) = subject.half(end).rhythm.as_deref() else { continue };
        if let Some(beat) = uneven(rhythm)
            && is_caught_up(subject, end, rhythm, beat)
            && !is_tcps_doing(subject, end, rhythm)
        {
            findings.push(finding(subject, end, rhythm, beat));
        }
    }
}

/// The beat, if there is one and it is not kept.
fn uneven(rhythm: &Rhythm) -> Option<Beat> {
    let gaps = &rhythm.gaps;
    let (count, period) = (gaps.count(), gaps.quantile(0.5));
    let limit = period + period / 2;
    let (on_beat, beats) = on_beat(rhythm, period);
    let late = gaps.between(limit, i64::MAX).saturating_sub(on_beat);
    let near = gaps.between(period - period / BEAT_WIDTH, period + period / BEAT_WIDTH);
    let (below, all) = gaps.split_at(limit);
    let lateness = (all - below).saturating_sub(period.saturating_mul(late as i64 + beats));
    let is_uneven = count >= FEWEST_GAPS
        && near * 100 >= count * BEAT
        && late >= FEWEST_LATE
        && late * 100 >= count * LATE
        && lateness >= SMALLEST_COST;
    is_uneven.then(|| Beat { period, gaps: count, late, lateness, worst: gaps.max() - period })
}

/// How many gaps were several whole beats long and ended on the beat, and how many beats they were together. Where the
/// message before came at once with the one that ended such a gap, it was late.
fn on_beat(rhythm: &Rhythm, period: i64) -> (u64, i64) {
    let width = period / ON_BEAT;
    let (count, beats) = (2..=BEATS_MOST).fold((0, 0), |(gaps, all), beats| {
        let middle = period.saturating_mul(beats);
        let count = rhythm.gaps.between(middle - width, middle.saturating_add(width));
        (gaps + count, all + count as i64 * beats)
    });
    let caught_up = count.min(u64::from(rhythm.caught_up));
    (count - caught_up, beats - 2 * caught_up as i64)
}

/// Whether there are as many messages as the beat asks for. Those that came together count each.
fn is_caught_up(subject: &Subject<'_>, end: End, rhythm: &Rhythm, beat: Beat) -> bool {
    let half = subject.half(end);
    let messages = i64::from(if subject.connection.is_udp { half.packets } else { half.segments });
    let asked = (rhythm.last - rhythm.first) / beat.period.max(1) + 1;
    let unpaired = beat.late as i64 / UNPAIRED;
    (-unpaired..=unpaired + UNCOUNTED).contains(&(messages - asked))
}

/// Whether TCP held this side's messages back, which other rules tell.
fn is_tcps_doing(subject: &Subject<'_>, end: End, rhythm: &Rhythm) -> bool {
    use Cause::{CorkTimeout, ReceiveWindow, Recovery, Timeout, Unread, ZeroWindow};
    let causes = [CorkTimeout, ReceiveWindow, ZeroWindow, Unread, Recovery, Timeout];
    let merges = !subject.connection.is_udp
        && u64::from(rhythm.merged) * 100 > (rhythm.gaps.count() + 1) * u64::from(MERGED);
    merges || subject.holds(end).is_some() || causes.iter().any(|cause| subject.tally(*cause, end).is_some())
}

/// Whether the capture was made on the sender's host.
fn is_at_sender(subject: &Subject<'_>, end: End) -> bool {
    match subject.side(end) {
        Side::Client => subject.vantage() == Vantage::Client,
        Side::Server => subject.vantage() == Vantage::Server,
    }
}

fn finding(subject: &Subject<'_>, end: End, rhythm: &Rhythm, beat: Beat) -> Finding {
    let at_sender = is_at_sender(subject, end);
    let note =
        format!("came {} after the message before it, {} late", human(rhythm.gaps.max()), human(beat.worst));
    Finding {
        rule: UNEVEN_CADENCE.name,
        severity: UNEVEN_CADENCE.severity,
        connection: Some(subject.id),
        blame: if at_sender { subject.blame(end) } else { Blame { side: Blamed::Network, address: None } },
        count: beat.late,
        cost_ms: ms(beat.lateness),
        worst_ms: ms(beat.worst),
        confidence: if at_sender { CONFIDENCE_AT_SENDER } else { CONFIDENCE_ELSEWHERE },
        summary: summary(subject, end, beat, at_sender),
        evidence: vec![subject.packet(rhythm.latest_number, rhythm.latest_at, note)],
        fixes: if at_sender { fixes_at_sender(subject, end) } else { fixes_elsewhere(subject, end) },
    }
}

fn summary(subject: &Subject<'_>, end: End, beat: Beat, at_sender: bool) -> String {
    let whose = if at_sender {
        "the capture was made there, so its own program or host was late.".to_owned()
    } else {
        format!(
            "the path or the program may be late; a capture at the {} tells which.",
            subject.side_name(end)
        )
    };
    format!(
        "Messages of {} come every {}, but {} of {} ({}) came late by half of that or more, up to {}, and the next \
         ones caught up: {whose}",
        subject.who(end),
        human(beat.period),
        super::subject::grouped(beat.late),
        counted(beat.gaps + 1, "message"),
        percent(beat.late as i64, beat.gaps as i64),
        human(beat.worst),
    )
}

fn fixes_at_sender(subject: &Subject<'_>, end: End) -> Vec<Fix> {
    vec![Fix {
        title: format!("Look at the timer of the {}'s program", subject.side_name(end)),
        how: "Sleep until the next due time (clock_nanosleep with TIMER_ABSTIME, timerfd), not for a fixed length \
              after the work; keep slow work and garbage collection off that thread; check the load and the \
              scheduling class (chrt) of the host."
            .to_owned(),
    }]
}

fn fixes_elsewhere(subject: &Subject<'_>, end: End) -> Vec<Fix> {
    let side = subject.side_name(end);
    vec![
        Fix {
            title: format!("Capture at the {side}, at the same time"),
            how: format!(
                "If the beat is uneven on {} too, its program or host is late; if it is even there, the path is.",
                subject.address(end)
            ),
        },
        Fix {
            title: "If it is the path: queues and radio".to_owned(),
            how: "Look for other traffic in the same queue (fq_codel or cake keep such flows apart), for Wi-Fi power \
                  saving and for interrupt coalescing (`ethtool -c`)."
                .to_owned(),
        },
        Fix {
            title: "Either way: a small playout buffer at the receiver".to_owned(),
            how: "Holding messages for about the usual lateness evens the beat out, at the price of that much delay."
                .to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::findings;
    use crate::report::Blamed;

    /// A server's datagrams, sent at these times (ms).
    fn datagrams(times: impl Iterator<Item = u64>) -> String {
        times
            .map(|ms| {
                let (s, us) = (ms / 1_000, ms % 1_000 * 1_000);
                format!(
                    "10:{:02}:{:02}.{us:06} IP 10.0.0.2.5000 > 10.0.0.1.40000: UDP, length 16\n",
                    s / 60,
                    s % 60
                )
            })
            .collect()
    }

    /// Every 100 ms; each tenth one `late` ms late.
    fn beat(count: u64, late: u64) -> String {
        datagrams((0..count).map(|index| index * 100 + if index % 10 == 9 { late } else { 0 }))
    }

    #[test]
    fn every_tenth_message_is_late_and_caught_up_with() {
        let found = findings("uneven-cadence", &beat(101, 80));
        assert_eq!(found.len(), 1);
        let finding = &found[0];
        assert_eq!((finding.blame.side, finding.blame.address.as_ref()), (Blamed::Network, None));
        // Ten messages, 80 ms each; the histogram of gaps knows them to 0.8 %.
        assert_eq!(finding.count, 10);
        assert!((780.0..=820.0).contains(&finding.cost_ms.0), "{:?}", finding.cost_ms);
        assert!((79.0..=81.0).contains(&finding.worst_ms.0), "{:?}", finding.worst_ms);
        assert!(finding.confidence <= 0.5, "{}", finding.confidence);
        assert_eq!(finding.evidence[0].packet, 10);
    }

    #[test]
    fn messages_that_catch_up_all_at_once_are_still_counted() {
        // Each tenth message comes together with the next.
        let found = findings("uneven-cadence", &beat(101, 99));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].count, 10);
    }

    #[test]
    fn an_even_beat_is_even() {
        assert!(findings("uneven-cadence", &beat(101, 20)).is_empty());
        for text in [
            include_str!("../../../../examples/netrek-udp-10.txt"),
            include_str!("../../../../examples/netrek-tcp-5.txt"),
            include_str!("../../../../examples/netrek-tcp-10.txt"),
            include_str!("../../../../examples/netrek-patched-10.txt"),
        ] {
            assert!(findings("uneven-cadence", text).is_empty());
        }
    }

    #[test]
    fn a_beat_that_is_left_out_while_two_messages_share_another_is_kept() {
        // Of ten messages, one comes with the one before it and none at the beat after the next: each is on its beat.
        let shared = (0..200_u64).map(|index| match index % 10 {
            6 => (index - 1) * 100 + 1,
            _ => index * 100,
        });
        let left_out: Vec<u64> = shared.collect();
        assert!(findings("uneven-cadence", &datagrams(left_out.into_iter())).is_empty());
    }

    #[test]
    fn bulk_that_is_clocked_by_its_path_has_no_beat() {
        // ms between datagrams: most are near 9, and few within an eighth of it.
        let gaps = [
            29, 13, 0, 13, 13, 7, 0, 6, 10, 8, 28, 17, 19, 7, 11, 6, 8, 8, 0, 12, 9, 7, 9, 7, 10, 6, 11, 5, 6,
        ];
        let times = gaps.iter().cycle().take(120).scan(0, |now, gap| {
            *now += gap;
            Some(*now)
        });
        assert!(findings("uneven-cadence", &datagrams(times)).is_empty());
    }

    #[test]
    fn beats_left_out_are_silence_and_not_lateness() {
        let spoken = (0..120_u64).filter(|index| index % 10 != 9).map(|index| index * 100);
        assert!(findings("uneven-cadence", &datagrams(spoken)).is_empty());
    }

    #[test]
    fn traffic_without_a_beat_has_none_to_miss() {
        // Gaps of 10 to 317 ms in no order: the powers of 3 modulo 308.
        let mut now = 0;
        let times = std::iter::successors(Some(1_u64), |gap| Some(gap * 3 % 308 + 1)).take(200).map(|gap| {
            now += 9 + gap;
            now
        });
        assert!(findings("uneven-cadence", &datagrams(times)).is_empty());
    }
}
