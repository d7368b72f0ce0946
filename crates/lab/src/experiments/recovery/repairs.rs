//! What a capture shows of repairs: at the sender its recoveries, at the receiver how soon it ACKs a segment that
//! fills a hole.

use crate::clock::ms_between;
use crate::experiments::segments::Seen;

/// A retransmission that leaves so long after the last ACK was sent by a timer. NewReno's leave within µs of an
/// ACK; Linux's timer never fires before 200 ms.
const REACTION_NS: i64 = 20_000_000;

/// Time from the first retransmission to the ACK that covers all that had been sent before it (RFC 6582's
/// `recover`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// First retransmission, in ns since the epoch.
    pub(crate) began: i64,
    /// The covering ACK; the capture's end where there is none.
    pub(crate) ended: i64,
    /// First retransmission by a timer, which ends fast recovery.
    pub(crate) timeout: Option<i64>,
}

impl Recovery {
    /// All of it, in ms.
    pub(crate) fn ms(self) -> f64 {
        ms_between(self.began, self.ended)
    }

    /// Until a timer took over, in ms.
    pub(crate) fn fast_ms(self) -> f64 {
        ms_between(self.began, self.timeout.unwrap_or(self.ended))
    }
}

/// What the sender repaired.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Repairs {
    /// In order of time.
    pub(crate) recoveries: Vec<Recovery>,
    /// Segments sent again.
    pub(crate) retransmissions: u64,
    /// Those that a timer sent.
    pub(crate) timeouts: u64,
    /// From each retransmission to the next in the same recovery, in ms.
    pub(crate) gaps_ms: Vec<f64>,
}

impl Repairs {
    /// Time in recovery, in ms.
    pub(crate) fn ms(&self) -> f64 {
        self.recoveries.iter().map(|recovery| recovery.ms()).sum()
    }

    /// Time in fast recovery, in ms.
    pub(crate) fn fast_ms(&self) -> f64 {
        self.recoveries.iter().map(|recovery| recovery.fast_ms()).sum()
    }
}

/// The repairs in a capture that was made at the sender.
pub(crate) fn repairs(seen: &[Seen]) -> Repairs {
    let mut repairs = Repairs::default();
    let (mut highest, mut last_ack, mut last_repair) = (0, i64::MIN, 0);
    let mut open: Option<(Recovery, u32)> = None;
    for seen in seen {
        match *seen {
            Seen::Data { time, start, end } => {
                if start < highest {
                    repairs.retransmissions += 1;
                    let by_timer = time.saturating_sub(last_ack) > REACTION_NS;
                    repairs.timeouts += u64::from(by_timer);
                    if open.is_some() {
                        repairs.gaps_ms.push(ms_between(last_repair, time));
                    }
                    last_repair = time;
                    let (recovery, recover) =
                        open.get_or_insert((Recovery { began: time, ended: time, timeout: None }, highest));
                    if by_timer {
                        // RFC 6582 section 4: a timeout moves `recover` to the highest number sent.
                        recovery.timeout.get_or_insert(time);
                        *recover = highest;
                    }
                }
                highest = highest.max(end);
            }
            Seen::Ack { time, upto } => {
                last_ack = time;
                if let Some((recovery, _)) = open.take_if(|(_, recover)| upto >= *recover) {
                    repairs.recoveries.push(Recovery { ended: time, ..recovery });
                }
            }
        }
    }
    let end = seen.last().map(|seen| seen.time());
    repairs
        .recoveries
        .extend(open.map(|(recovery, _)| Recovery { ended: end.unwrap_or(recovery.began), ..recovery }));
    repairs
}

/// How long after each segment that filled a hole an ACK of it left, in ms, in a capture that was made at the
/// receiver.
pub(crate) fn hole_filling_acks(seen: &[Seen]) -> Vec<f64> {
    let (mut edge, mut beyond) = (0, Vec::<(u32, u32)>::new());
    let (mut waiting, mut delays) = (Vec::<(i64, u32)>::new(), Vec::new());
    for seen in seen {
        match *seen {
            Seen::Data { start, end, .. } if start > edge => beyond.push((start, end)),
            Seen::Data { time, end, .. } if end > edge => {
                let filled = !beyond.is_empty();
                edge = advance(end, &mut beyond);
                if filled {
                    waiting.push((time, end));
                }
            }
            Seen::Data { .. } => {}
            Seen::Ack { time, upto } => {
                delays.extend(covered(&mut waiting, upto).map(|since| ms_between(since, time)));
            }
        }
    }
    delays
}

/// From each retransmission to the ACK that first covers it, in ms, in a capture that was made at the sender.
pub(crate) fn answers(seen: &[Seen]) -> Vec<f64> {
    let (mut highest, mut waiting, mut answers) = (0, Vec::<(i64, u32)>::new(), Vec::new());
    for seen in seen {
        match *seen {
            Seen::Data { time, start, end } => {
                if start < highest {
                    // Sent once more: the last one counts.
                    waiting.retain(|(_, other)| *other != end);
                    waiting.push((time, end));
                }
                highest = highest.max(end);
            }
            Seen::Ack { time, upto } => {
                answers.extend(covered(&mut waiting, upto).map(|sent| ms_between(sent, time)));
            }
        }
    }
    answers
}

/// Takes out those that end at `upto` or before; the time of each, in ns.
fn covered(waiting: &mut Vec<(i64, u32)>, upto: u32) -> impl Iterator<Item = i64> {
    waiting.extract_if(.., move |(_, end)| *end <= upto).map(|(time, _)| time)
}

/// The edge after `edge` arrived in order, with what lay beyond and now fits taken from there.
fn advance(mut edge: u32, beyond: &mut Vec<(u32, u32)>) -> u32 {
    while let Some(next) = beyond.iter().position(|&(start, _)| start <= edge) {
        let (_, end) = beyond.swap_remove(next);
        edge = edge.max(end);
    }
    edge
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::segments::tests::{ack, data};

    /// 0..5 sent, 1 and 3 lost (segments of 10 bytes); NewReno mends one a round trip.
    fn newreno() -> Vec<Seen> {
        let mut seen: Vec<Seen> = (0..5).map(|n| data(i64::from(n), n * 10, n * 10 + 10)).collect();
        seen.extend([ack(22, 10), ack(24, 10), ack(26, 10), ack(27, 10)]);
        seen.extend([
            data(27, 10, 20),
            data(28, 50, 60),
            ack(49, 30),
            data(49, 30, 40),
            ack(71, 50),
            ack(72, 60),
        ]);
        seen
    }

    #[test]
    fn recovery_lasts_from_the_first_retransmission_to_the_ack_of_all_sent_before() {
        let repairs = repairs(&newreno());
        let recovery = Recovery { began: 27_000_000, ended: 71_000_000, timeout: None };
        let expected =
            Repairs { recoveries: vec![recovery], retransmissions: 2, timeouts: 0, gaps_ms: vec![22.0] };
        assert_eq!(repairs, expected);
        assert!((repairs.ms() - 44.0).abs() < 1e-9 && (repairs.fast_ms() - 44.0).abs() < 1e-9);
    }

    #[test]
    fn an_answer_covers_the_retransmission_that_it_answers() {
        assert_eq!(answers(&newreno()), [22.0, 22.0]);
    }

    #[test]
    fn a_timer_ends_fast_recovery_but_not_recovery() {
        let mut seen = newreno();
        seen.truncate(13);
        // The second retransmission was lost too: nothing comes back until the timer fires.
        seen.extend([data(249, 30, 40), ack(271, 60)]);
        let repairs = repairs(&seen);
        let recovery = Recovery { began: 27_000_000, ended: 271_000_000, timeout: Some(249_000_000) };
        assert_eq!(repairs.recoveries, [recovery]);
        assert_eq!((repairs.retransmissions, repairs.timeouts), (3, 1));
        assert!((repairs.fast_ms() - 222.0).abs() < 1e-9);
    }

    #[test]
    fn a_lone_lost_tail_is_repaired_by_the_timer_alone() {
        let repairs =
            repairs(&[data(0, 0, 10), data(1, 10, 20), ack(22, 10), data(230, 10, 20), ack(252, 20)]);
        assert_eq!((repairs.retransmissions, repairs.timeouts), (1, 1));
        assert!((repairs.fast_ms()).abs() < 1e-9 && (repairs.ms() - 22.0).abs() < 1e-9);
    }

    #[test]
    fn without_losses_there_is_nothing_to_repair() {
        let seen = [data(0, 0, 10), data(1, 10, 20), ack(22, 20)];
        assert_eq!(repairs(&seen), Repairs::default());
        assert_eq!(hole_filling_acks(&seen), [0.0; 0]);
    }

    #[test]
    fn only_segments_that_fill_holes_count_at_the_receiver() {
        // 10..20 and 30..40 are missing at first; ACKs of segments beyond a hole are immediate and not measured.
        let arrivals = [
            data(0, 0, 10),
            data(1, 20, 30),
            ack(1, 10),
            data(2, 40, 50),
            ack(2, 10),
            data(50, 10, 20),
            ack(250, 30),
            data(300, 30, 40),
            ack(301, 50),
            data(310, 50, 60),
            ack(350, 60),
        ];
        assert_eq!(hole_filling_acks(&arrivals), [200.0, 1.0]);
    }

    #[test]
    fn one_ack_may_answer_two_fillings() {
        let arrivals = [data(0, 20, 30), data(10, 0, 10), data(15, 10, 20), ack(40, 30)];
        assert_eq!(hole_filling_acks(&arrivals), [30.0, 25.0]);
    }
}
