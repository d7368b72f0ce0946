//! The fixes, each played against the unchanged replay.

use super::effort::Effort;
use super::fix::{self, Fix, Placed};
use super::likeness::Likeness;
use super::replay::Replay;
use super::scene::{Scene, Span};
use super::{Answer, Figures, Gain, Unfit, fit};
use crate::world::{Setup, Side};

/// Savings that differ by less than this share of the whole are alike: no replay is that exact.
const ALIKE: f64 = 0.01;

/// Connections of one client to one server, one after the other, and their unchanged replays.
#[derive(Debug)]
pub(super) struct Question<'a> {
    scenes: Vec<Scene>,
    unchanged: Vec<Replay>,
    likeness: Likeness,
    effort: &'a Effort,
}

impl<'a> Question<'a> {
    pub(super) fn of(mut scenes: Vec<Scene>, effort: &'a Effort) -> Result<Self, Unfit> {
        let unchanged: Option<Vec<Replay>> =
            scenes.iter_mut().map(|scene| fit::settle(scene, effort)).collect();
        let unchanged = unchanged.filter(|all| !all.is_empty()).ok_or(Unfit::Endless)?;
        let pairs: Vec<(&Scene, &Replay)> = scenes.iter().zip(&unchanged).collect();
        let likeness = Likeness::of(&pairs);
        Ok(Self { unchanged, likeness, scenes, effort })
    }

    pub(super) fn answer(&self, fixes: &[Placed]) -> Answer {
        let unchanged = self.joined(&self.unchanged);
        let mut answer = Answer {
            likeness: self.likeness,
            unchanged: unchanged.figures(),
            has_exchanges: self.has_exchanges(),
            parts: self.scenes[0].parts,
            gains: Vec::new(),
            idle: Vec::new(),
        };
        if !self.likeness.is_good() {
            return answer;
        }
        for (fix, side) in fixes {
            match self.played(*fix, *side, 0).filter(|played| *played != unchanged) {
                Some(played) => answer.gains.push(self.gain(*fix, *side, &unchanged, &played)),
                None => answer.idle.push((*fix, *side)),
            }
        }
        let step = (ALIKE * answer.unchanged.total_ms).max(f64::MIN_POSITIVE);
        // The one that saves most; of those that save about as much, the one with the fewest packets.
        answer.gains.sort_by(|one, other| {
            let steps = |gain: &Gain| (gain.saved_ms / step).round();
            let by_packets = one.figures.packets.cmp(&other.figures.packets);
            steps(other).total_cmp(&steps(one)).then(by_packets)
        });
        answer
    }

    /// Whether somebody waits for answers.
    fn has_exchanges(&self) -> bool {
        self.scenes.iter().flat_map(|scene| &scene.spans).any(|span| span.writer == span.reader)
    }

    fn gain(&self, fix: Fix, side: Option<Side>, unchanged: &Played, played: &Played) -> Gain {
        let saved_ms = self.saved(unchanged, played);
        let slack = self.scenes[0]
            .slack
            .into_iter()
            .flatten()
            .fold((0, 0), |sum, slack| (sum.0.min(slack.0), sum.1.max(slack.1)));
        let at = |shift| {
            let unchanged = self.unchanged_by(shift)?;
            self.played(fix, side, shift).map(|played| self.saved(&unchanged, &played))
        };
        let bounds_ms = (slack != (0, 0)).then(|| at(slack.0).zip(at(slack.1))).flatten();
        let bounds_ms =
            bounds_ms.map(|(one, other)| (one.min(other).min(saved_ms), one.max(other).max(saved_ms)));
        Gain { fix, side, saved_ms, bounds_ms, figures: played.figures() }
    }

    /// By how much sooner the last exchange ends; for how long some update was later, less for how long some is later
    /// now.
    fn saved(&self, unchanged: &Played, played: &Played) -> f64 {
        let ns = if self.has_exchanges() {
            unchanged.ended - played.ended
        } else {
            lateness(&played.spans, &unchanged.spans) - lateness(&unchanged.spans, &played.spans)
        };
        ns as f64 / 1e6
    }

    /// The replay with a fix; `shift` moves updates whose time is open, ns.
    fn played(&self, fix: Fix, side: Option<Side>, shift: i64) -> Option<Played> {
        if fix == Fix::KeepAlive {
            return self.kept_alive();
        }
        self.play_all(shift, |setup| fix.apply(setup, side.unwrap_or(Side::Client)))
    }

    fn unchanged_by(&self, shift: i64) -> Option<Played> {
        self.play_all(shift, |_| ())
    }

    fn play_all(&self, shift: i64, change: impl Fn(&mut Setup)) -> Option<Played> {
        let replays: Option<Vec<Replay>> = self
            .scenes
            .iter()
            .map(|scene| {
                let mut setup = scene.setup.clone();
                scene.shift(&mut setup, shift);
                change(&mut setup);
                Replay::of(&setup, &scene.spans, fit::longest(scene), self.effort)
            })
            .collect();
        Some(self.joined(&replays?))
    }

    /// One replay after the other, with the client's pauses between them.
    fn joined(&self, replays: &[Replay]) -> Played {
        let (mut played, mut since) = (Played::default(), 0);
        for (number, (scene, replay)) in self.scenes.iter().zip(replays).enumerate() {
            since += number.checked_sub(1).map_or(0, |before| fix::pause(&self.scenes[before], scene));
            for (index, (from, until)) in replay.spans.iter().enumerate() {
                // With a connection for each, the handshake is part of the exchange.
                let from = if index == 0 && replays.len() > 1 { 0 } else { *from };
                played.spans.push((since + from, since + until));
            }
            since += replay.ended;
            played.ended = since;
            played.packets += replay.packets;
            played.bytes += replay.bytes;
        }
        played
    }

    fn kept_alive(&self) -> Option<Played> {
        if self.scenes.len() < 2 {
            return None;
        }
        let setup = fix::keep_alive(&self.scenes)?;
        let mut sent = [0_u64; 2];
        let mut spans: Vec<Span> = Vec::new();
        for scene in &self.scenes {
            spans.extend(scene.spans.iter().map(|span| Span {
                start: span.start + sent[span.writer as usize],
                end: span.end + sent[span.reader.other() as usize],
                ..*span
            }));
            for (sum, host) in sent.iter_mut().zip(&scene.hosts) {
                *sum += host.pieces.last().map_or(0, |piece| piece.end);
            }
        }
        let until = self.scenes.iter().map(fit::longest).fold(0, i64::saturating_add);
        let mut replay = Replay::of(&setup, &spans, until, self.effort)?;
        if let Some(first) = replay.spans.first_mut() {
            first.0 = 0;
        }
        let Replay { spans, ended, packets, bytes, .. } = replay;
        Some(Played { spans, ended, packets, bytes })
    }
}

/// Replays of all connections on one clock, ns since the first SYN.
#[derive(Clone, Debug, Default, PartialEq)]
struct Played {
    spans: Vec<(i64, i64)>,
    ended: i64,
    packets: u64,
    bytes: u64,
}

impl Played {
    fn figures(&self) -> Figures {
        let mut times: Vec<i64> = self.spans.iter().map(|(from, until)| until - from).collect();
        times.sort_unstable();
        let at = |share: f64| {
            let index = (times.len() as f64 * share) as usize;
            times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or(0) as f64 / 1e6
        };
        Figures {
            total_ms: self.ended as f64 / 1e6,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            packets: self.packets,
            bytes: self.bytes,
        }
    }
}

/// For how long some span of `slow` was not over though the same one of `quick` was, ns: moments at which several are
/// late count once.
fn lateness(quick: &[(i64, i64)], slow: &[(i64, i64)]) -> i64 {
    let mut late: Vec<(i64, i64)> = quick.iter().zip(slow).map(|(quick, slow)| (quick.1, slow.1)).collect();
    late.sort_unstable();
    let (mut sum, mut until) = (0, i64::MIN);
    for (due, end) in late {
        sum += (end - due.max(until)).max(0);
        until = until.max(end);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_are_late_at_the_same_time_count_once() {
        let quick = [(0, 10), (5, 15), (100, 110)];
        let slow = [(0, 30), (5, 30), (100, 105)];
        // From 10 to 30 the first is late, and so is the second from 15 on; the third is sooner.
        assert_eq!(lateness(&quick, &slow), 20);
        assert_eq!(lateness(&slow, &quick), 5);
    }
}
