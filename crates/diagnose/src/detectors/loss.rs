//! What one sender lost: shared by the rules about lost segments.

use super::rule::Rule;
use super::subject::{Subject, counted, human};
use crate::diagnosis::ms;
use crate::flow::fact::{Cause, End};
use crate::ledger::Tally;
use crate::report::{Blame, Blamed, Finding, Fix, Severity};

/// Where the capture itself lacks packets, silence and repeats may be its own.
pub(crate) const CONFIDENCE_GAPS: f64 = 0.5;
/// Timers that took less than this in all are no stall: the shortest timer of a kernel is 200 ms
/// (`TCP_RTO_MIN`), less what probes save. ns.
pub(crate) const SMALLEST_STALL: i64 = 100_000_000;
/// In lives that are longer than so many times a stall it is advice, not a problem…
const LONG_LIFE: i64 = 100;
/// …unless it cost this much, as a repair does. ns.
const LARGE_COST: i64 = 1_000_000_000;
/// Repairs that took less than this in all are nobody's trouble. ns.
pub(crate) const SMALLEST_REPAIR: i64 = 10_000_000;
/// Repairs are advice from this share of the time in which somebody waited on, 1 in so many…
const ADVICE_SHARE: i64 = 100;
/// …and a problem from this one on.
const PROBLEM_SHARE: i64 = 20;

/// How much of what one side sent was sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// Segments with data, retransmissions too.
    pub(crate) segments: u64,
    /// Retransmissions.
    pub(crate) retransmitted: u64,
    /// Retransmissions of what had arrived before.
    pub(crate) needless: u64,
    /// Repairs that the capture does not show.
    pub(crate) unseen: u64,
    /// Whether the capture lacks packets of this connection.
    pub(crate) has_gaps: bool,
}

impl Loss {
    /// What `end` lost.
    pub(crate) fn of(subject: &Subject<'_>, end: End) -> Self {
        let half = subject.half(end);
        let trouble = half.trouble.as_ref();
        let needless = trouble.map_or(0, |trouble| trouble.needless);
        let unseen = trouble.map_or(0, |trouble| trouble.unseen_repairs);
        Self {
            segments: u64::from(half.segments),
            retransmitted: u64::from(half.retransmitted()),
            needless: u64::from(needless),
            unseen: u64::from(unseen),
            has_gaps: subject.gaps() > 0,
        }
    }

    /// Retransmissions that nobody reported as needless, also those that the capture does not show.
    pub(crate) fn lost(&self) -> u64 {
        self.retransmitted.saturating_sub(self.needless) + self.unseen
    }

    /// Whether the capture leaves it open that the network lost anything: it lacks packets, or has none of the other side,
    /// whose host may be gone.
    pub(crate) fn is_in_doubt(&self, subject: &Subject<'_>, end: End) -> bool {
        self.has_gaps || subject.half(1 - end).packets == 0
    }

    /// Whether anything was lost at all: where most retransmissions were needless, ACKs were late or segments
    /// out of order, and the network lost nothing that mattered.
    pub(crate) fn is_real(&self) -> bool {
        self.lost() > 0 && self.lost() >= self.needless
    }

    /// `1 of 20 segments was`, with the verb that fits.
    pub(crate) fn sent_again(&self) -> String {
        let verb = if self.retransmitted + self.unseen == 1 { "was" } else { "were" };
        let more = match self.unseen {
            0 => String::new(),
            unseen => format!(", and {} more that the capture lacks,", super::subject::grouped(unseen)),
        };
        let of = counted(self.segments, "segment");
        format!("{} of {of}{more} {verb}", super::subject::grouped(self.retransmitted))
    }
}

/// How much a repair of this cost matters, if it does.
pub(crate) fn severity(subject: &Subject<'_>, cost: i64) -> Option<Severity> {
    if cost < SMALLEST_REPAIR {
        return None;
    }
    if cost >= LARGE_COST || cost >= subject.waiting() / PROBLEM_SHARE {
        return Some(Severity::Problem);
    }
    (cost >= subject.waiting() / ADVICE_SHARE).then_some(Severity::Advice)
}

/// A finding about waits for a timer, for which the network is to blame; still without words. Timers that took no longer
/// than a probe matter as much as repairs do.
pub(crate) fn of_timer(rule: &Rule, subject: &Subject<'_>, tally: &Tally) -> Finding {
    let is_rare = tally.total < LARGE_COST && tally.total < subject.waiting() / LONG_LIFE;
    let is_stall = tally.total >= SMALLEST_STALL;
    let as_repair = severity(subject, tally.total).unwrap_or(Severity::Advice);
    let as_stall = if is_rare { Severity::Advice } else { rule.severity };
    Finding {
        rule: rule.name,
        severity: if is_stall { as_stall } else { as_repair },
        connection: Some(subject.id),
        blame: Blame { side: Blamed::Network, address: None },
        count: tally.count,
        cost_ms: ms(tally.total),
        worst_ms: ms(worst(tally)),
        confidence: 0.0,
        summary: String::new(),
        evidence: Vec::new(),
        fixes: Vec::new(),
    }
}

/// What `end` waited, ns, because losses had left its congestion window smaller than it was. Of all rules about losses one
/// tells it, whose own waits are of the cause `of`: the one that took the most time.
pub(crate) fn smaller_window(subject: &Subject<'_>, end: End, of: Cause) -> i64 {
    let total = |cause: Cause| subject.tally(cause, end).map_or(0, |tally| tally.total);
    let most =
        [Cause::TailLoss, Cause::Timeout, Cause::Recovery].into_iter().max_by_key(|cause| total(*cause));
    if most == Some(of) { total(Cause::AfterLoss) } else { 0 }
}

/// The sentence about that wait.
pub(crate) fn told_of_window(wait: i64) -> String {
    match wait {
        0 => String::new(),
        wait => format!(" The congestion window, smaller afterwards, made it wait another {}.", human(wait)),
    }
}

/// The longest of these waits, ns.
pub(crate) fn worst(tally: &Tally) -> i64 {
    tally.worst().first().map_or(0, |case| case.length)
}

/// `300 ms`, or `3.00 s in all, up to 2.00 s each time`.
pub(crate) fn how_long(tally: &Tally) -> String {
    match tally.count {
        1 => human(tally.total),
        _ => format!("{} in all, up to {} each time", human(tally.total), human(worst(tally))),
    }
}

/// Where to look for the place that drops.
pub(crate) fn find_the_drops() -> Fix {
    Fix {
        title: "Find where segments are dropped".to_owned(),
        how: "Compare captures at both ends. On hosts and routers between: `ip -s link`, `ethtool -S` (drops, missed), \
              `tc -s qdisc`, policers. If only full-sized segments are lost, an MTU is smaller than it says: \
              net.ipv4.tcp_mtu_probing=1."
            .to_owned(),
    }
}
