//! What one sender's holds by Nagle's algorithm add up to: shared by the rules that speak of them.

use super::subject::{Subject, human, times};
use super::weight::Waits;
use crate::flow::connection::RELEASE_TOLERANCE;
use crate::flow::fact::End;
use crate::flow::held::Held;
use crate::flow::nagle::STREAM_RUN;
use crate::flow::release::{ack_held, fastest_reaction};
use crate::flow::rhythm::Rhythm;
use crate::ledger::{Case, Tally};
use crate::report::{Fix, Severity};

/// The pattern in which the program wrote what was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Pieces of one message: a request or an answer.
    Pieces,
    /// Updates of a stream of their own.
    Stream,
}

/// All holds of one sender.
#[derive(Debug)]
pub(crate) struct Holds {
    pub(crate) tally: Tally,
    /// Holds that the base round trip explains, and their cost in ns.
    pub(crate) plain: u64,
    pub(crate) plain_cost: i64,
    /// Holds that ended on a delayed ACK, and their cost in ns.
    pub(crate) delayed: u64,
    pub(crate) delayed_cost: i64,
    /// The median time from the segment in flight to its delayed ACK, and to one that came at once, ns.
    pub(crate) typical: i64,
    pub(crate) plain_typical: i64,
    pub(crate) pattern: Pattern,
    pub(crate) held: Held,
    /// A case longer than this, ns, ended on a delayed ACK.
    limit: i64,
    /// Whether the base round trip is known, and with it which of the two a hold was.
    sure: bool,
    /// Whether the capture was made far from the sender.
    is_far: bool,
}

/// Holds from which on chance is out of the question: each needs an ACK and a write within a millisecond.
const CERTAIN: u64 = 5;
/// A stream under Nagle's algorithm sends each segment when the one before it is ACKed. Where fewer than this
/// share (in percent) leaves so, its holds are those of messages written in pieces.
const STREAM_HELD: u64 = 60;
/// Captured far from the sender, a segment seems to follow an ACK even if it leaves at another time than the
/// ACK's arrival. But a stream that is held goes out several messages at a time: where fewer than this share
/// (in percent) of segments differs from the smallest, the two beats fell together by chance.
const STREAM_MERGED: u64 = 10;
/// Reactions to ACKs take the round trip to the sender, and on average no more than this share of it beyond: what
/// only happens to follow an ACK does so at any time.
const REACTION_SHARE: i64 = 10;
/// How sure holds are at best that were not captured near the sender.
const FAR: f64 = 0.85;
/// A bulk transfer with more holds than this for each answer is a stream whose tails nobody waits for. Messages in
/// pieces have one or two: Nagle's algorithm sends all that has come together meanwhile at once.
const HOLDS_OF_MESSAGE: u64 = 3;

impl Holds {
    /// The holds of `end`, if there were any.
    pub(crate) fn of(subject: &Subject<'_>, end: End) -> Option<Self> {
        let tally = subject.holds(end)?;
        let half = subject.half(end);
        let held = subject.connection.holds(end)?;
        let base = subject.connection.base_round_trip();
        let to_sender = if base.is_some() { subject.half(1 - end).part_or_zero() } else { 0 };
        let is_far = to_sender > RELEASE_TOLERANCE;
        if is_far && half.shown.as_deref().is_some_and(|shown| !are_reactions(&shown.held, to_sender)) {
            return None;
        }
        let pattern = pattern(&held, half.run_longest, half.rhythm.as_deref(), is_far)?;
        // The capture sees the receiver's part of the round trip, from a segment to its ACK.
        let part = if base.is_some() { half.part_or_zero() } else { 0 };
        let limit = part + ack_held(part);
        let waits = &held.waits;
        let delayed = waits.between(limit, i64::MAX).min(waits.count());
        let plain = waits.count() - delayed;
        let middle_of =
            |from: u64, count: u64| waits.quantile((from + count.div_ceil(2)) as f64 / waits.count() as f64);
        let (plain_length, all_length) = waits.split_at(limit);
        let reactions = |count: u64| held.mean_reaction() as f64 * count as f64;
        let plain_share = (plain_length as f64 + reactions(plain))
            / (all_length as f64 + reactions(waits.count())).max(1.0);
        let plain_cost = (tally.total as f64 * plain_share.clamp(0.0, 1.0)) as i64;
        Some(Self {
            plain,
            plain_cost,
            delayed,
            delayed_cost: tally.total - plain_cost,
            typical: middle_of(plain, delayed),
            plain_typical: middle_of(0, plain) + held.mean_reaction(),
            pattern,
            tally,
            limit: limit + base.unwrap_or(part) - part,
            sure: base.is_some(),
            is_far,
            held,
        })
    }

    /// What TCP did: `Held by Nagle's algorithm until the delayed ACK, typically 42.0 ms`.
    pub(crate) fn chain(&self, subject: &Subject<'_>, end: End) -> String {
        let (delayed, plain) = (human(self.typical), human(self.plain_typical));
        let until = match (self.delayed, self.plain) {
            (0, _) => format!("until the ACK, one round trip later, typically {plain}"),
            (_, 0) => format!("until {}'s delayed ACK, typically {delayed}", subject.who(1 - end)),
            (late, _) => format!(
                "until the ACK, which {} delayed {}, typically {delayed}",
                subject.who(1 - end),
                times(late)
            ),
        };
        format!("Held by Nagle's algorithm {until}")
    }

    /// How sure it is that these were holds: a single one could be chance. And without a known round trip,
    /// a late ACK may be a long path's instead of a delayed one.
    pub(crate) fn confidence(&self) -> f64 {
        match self.tally.count {
            1 => 0.7,
            _ if !self.sure => 0.7,
            _ if self.is_far => FAR,
            count if count < CERTAIN => 0.9,
            _ => 0.98,
        }
    }

    /// Whether a case of the tally was a hold that the base round trip explains.
    pub(crate) fn is_plain(&self, case: &Case) -> bool {
        case.length < self.limit
    }

    /// How loudly holds of `end` are told that cost so many ns, `count` of them; `None` where they are nobody's trouble.
    /// Those inside a bulk transfer are not: what is behind a held tail comes later still.
    pub(crate) fn severity(
        &self,
        subject: &Subject<'_>,
        end: End,
        cost: i64,
        count: u64,
    ) -> Option<Severity> {
        let exchanges = &subject.connection.exchanges;
        if subject.half(end).is_bulk() && self.tally.count > HOLDS_OF_MESSAGE * exchanges.number() {
            return None;
        }
        let worst = self.tally.worst().first().map_or(0, |case| case.length).min(cost);
        Waits { cost, worst, count }.severity(subject.waiting(), Severity::Problem)
    }
}

/// Whether what followed the ACKs, seen far from the sender, did so as reactions do.
fn are_reactions(held: &Held, to_sender: i64) -> bool {
    let mean = held.mean_reaction();
    held.waits.count() == 0
        || mean >= fastest_reaction(to_sender)
            && mean <= to_sender + to_sender / REACTION_SHARE + RELEASE_TOLERANCE
}

/// How the program wrote what was held; `None` where its holds were chance.
fn pattern(held: &Held, run_longest: u8, rhythm: Option<&Rhythm>, is_far: bool) -> Option<Pattern> {
    let Some(rhythm) = rhythm else { return Some(Pattern::Pieces) };
    let messages = rhythm.gaps.count();
    if run_longest < STREAM_RUN || held.waits.count() * 100 < messages * STREAM_HELD {
        return Some(Pattern::Pieces);
    }
    let several = u64::from(rhythm.merged.max(rhythm.odd));
    let chance = is_far && several * 100 < messages * STREAM_MERGED;
    (!chance).then_some(Pattern::Stream)
}

/// What to do about holds, in order of preference.
pub(crate) fn fixes(subject: &Subject<'_>, end: End, holds: &Holds) -> Vec<Fix> {
    let nodelay = Fix {
        title: format!("Set TCP_NODELAY on the {}'s socket", subject.side_name(end)),
        how: format!(
            "setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) on {}, which sends; on the other side it \
             changes nothing. Each write then becomes a segment of its own, with 40 bytes of headers or more.",
            subject.address(end),
        ),
    };
    let one_write = Fix {
        title: "Write each message at once".to_owned(),
        how: "Collect the pieces in one buffer, or hand them over together with writev()/sendmsg(); or mark \
              all pieces but the last with MSG_MORE (Linux). Costs nothing and saves segments."
            .to_owned(),
    };
    let quick_ack = Fix {
        title: format!("Ask the {} to ACK at once", subject.side_name(1 - end)),
        how: "If only the receiver can be changed: TCP_QUICKACK after each recv() (Linux), or the route option \
              `quickack 1`."
            .to_owned(),
    };
    match (holds.pattern, holds.delayed > 0) {
        (Pattern::Stream, true) => vec![nodelay, quick_ack],
        (Pattern::Stream, false) => vec![nodelay],
        (Pattern::Pieces, true) => vec![one_write, nodelay, quick_ack],
        (Pattern::Pieces, false) => vec![one_write, nodelay],
    }
}
