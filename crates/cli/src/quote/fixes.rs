//! Which fixes that what-if knows belong to which rule.

use tcpwhy_diagnose::report::{Blamed, Finding, Severity, WhatIf};
use tcpwhy_simulate::whatif::{Answer, Fix, Gain, LARGE_BUFFER, LARGE_INITIAL_WINDOW, Placed};
use tcpwhy_simulate::world::Side;

use crate::whatif::prediction;

/// Where a fix is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// At the side that the finding blames.
    Blamed,
    /// At the other one.
    Peer,
    /// At either side, or at both.
    Any,
}

/// One that mends all that a rule finds, in the order in which its findings name them. Rules that are not here have no fix
/// that a replay can make: nobody can replay a quicker program.
const OF_RULE: &[(&str, &[(Fix, At)])] = &[
    ("cork-timeout", &[(Fix::NoCork, At::Blamed)]),
    ("delayed-ack", &[(Fix::QuickAck, At::Blamed)]),
    ("fast-recovery", &[(Fix::Sack, At::Any), (Fix::NoLoss, At::Any)]),
    ("handshake-per-request", &[(Fix::KeepAlive, At::Any)]),
    ("idle-restart", &[(Fix::NoIdleRestart, At::Blamed)]),
    ("late-hole-ack", &[(Fix::Sack, At::Any)]),
    ("merged-updates", &[(Fix::NoDelay, At::Blamed), (Fix::QuickAck, At::Peer)]),
    ("nagle-delayed-ack", OF_HOLDS),
    ("nagle-hold", OF_HOLDS),
    ("one-hole-per-rtt", &[(Fix::Sack, At::Any)]),
    ("rto-stall", &[(Fix::Sack, At::Any), (Fix::NoLoss, At::Any)]),
    ("slow-start", &[(Fix::InitialWindow(LARGE_INITIAL_WINDOW), At::Blamed)]),
    ("small-receive-window", &[(Fix::ReceiveBuffer(LARGE_BUFFER), At::Blamed)]),
    ("split-write", OF_HOLDS),
    ("tail-loss", &[(Fix::Sack, At::Any), (Fix::TailLossProbe, At::Any), (Fix::NoLoss, At::Any)]),
];

const OF_HOLDS: &[(Fix, At)] =
    &[(Fix::OneWrite, At::Blamed), (Fix::NoDelay, At::Blamed), (Fix::QuickAck, At::Peer)];

/// A fix that saves less than this share of the time is not worth a word.
const WORTH: f64 = 0.01;
/// Savings that differ by less than this share of the time are alike: then the fix that is named first is quoted.
const ALIKE: f64 = 0.02;

/// The fixes that may mend what was found; none for a note, which has nothing to mend.
pub(super) fn of(finding: &Finding) -> impl Iterator<Item = Placed> {
    table(finding).iter().flat_map(move |(fix, at)| {
        let is_there = move |side: Option<Side>| side.is_none_or(|side| is_there(finding, *at, side));
        fix.everywhere().filter(move |(_, side)| is_there(*side))
    })
}

/// What the one that mends most would have saved, if that is worth a word.
pub(super) fn best(finding: &Finding, answer: &Answer) -> Option<WhatIf> {
    let total = answer.unchanged.total_ms;
    let gain = |(fix, side)| answer.gains.iter().find(|gain| gain.fix == fix && gain.side == side);
    let found = of(finding).filter_map(gain);
    let worth: Vec<&Gain> = found.filter(|gain| gain.saved_ms >= WORTH * total).collect();
    // A path without loss is no fix, so it is quoted only where no other saves anything.
    let fixes: Vec<&Gain> = worth.iter().filter(|gain| gain.fix != Fix::NoLoss).copied().collect();
    let among = if fixes.is_empty() { worth } else { fixes };
    let most = among.iter().map(|gain| gain.saved_ms).max_by(f64::total_cmp)?;
    let first = among.into_iter().find(|gain| gain.saved_ms >= most - ALIKE * total)?;
    Some(prediction::of(answer, first))
}

/// The most that any of its fixes saves, ms; `None` where none was tried.
pub(super) fn most_saved(finding: &Finding, answer: &Answer) -> Option<f64> {
    let gain = |(fix, side)| answer.gains.iter().find(|gain| gain.fix == fix && gain.side == side);
    of(finding).filter_map(gain).map(|gain| gain.saved_ms).max_by(f64::total_cmp)
}

fn table(finding: &Finding) -> &'static [(Fix, At)] {
    let rule = OF_RULE.iter().find(|(rule, _)| *rule == finding.rule && finding.severity != Severity::Note);
    rule.map_or(&[], |(_, fixes)| fixes)
}

/// Whether some fix that is known may mend what was found. One connection alone cannot be joined with others.
pub(super) fn has_any(finding: &Finding) -> bool {
    of(finding).any(|(fix, _)| (fix == Fix::KeepAlive) == finding.connection.is_none())
}

/// Whether that side is where the finding wants the fix.
fn is_there(finding: &Finding, at: At, side: Side) -> bool {
    let blamed = match finding.blame.side {
        Blamed::Client => Side::Client,
        Blamed::Server => Side::Server,
        Blamed::Both | Blamed::Network | Blamed::Capture => return true,
    };
    match at {
        At::Blamed => side == blamed,
        At::Peer => side != blamed,
        At::Any => true,
    }
}

#[cfg(test)]
mod tests {
    use tcpwhy_diagnose::detectors::Rule;
    use tcpwhy_diagnose::report::{Blame, Ms, Side as Place};
    use tcpwhy_simulate::whatif::{Figures, Likeness, Parts};

    use super::*;

    #[test]
    fn every_rule_here_is_one_and_every_fix_is_among_all() {
        for (rule, fixes) in OF_RULE {
            assert!(Rule::named(rule).is_some(), "{rule}");
            assert!(fixes.iter().all(|(fix, _)| Fix::ALL.contains(fix)), "{rule}");
        }
    }

    fn finding(rule: &'static str, side: Blamed, severity: Severity) -> Finding {
        Finding {
            rule,
            severity,
            connection: Some(0),
            blame: Blame { side, address: None },
            count: 1,
            cost_ms: Ms(100.0),
            worst_ms: Ms(100.0),
            confidence: 1.0,
            summary: String::new(),
            evidence: Vec::new(),
            fixes: Vec::new(),
        }
    }

    /// An answer about 1,000 ms in which these fixes save so many of them.
    fn answer(gains: &[(Fix, Option<Side>, f64)]) -> Answer {
        let gain = |(fix, side, saved_ms): &(Fix, Option<Side>, f64)| Gain {
            fix: *fix,
            side: *side,
            saved_ms: *saved_ms,
            bounds_ms: None,
            figures: Figures::default(),
        };
        Answer {
            likeness: Likeness::default(),
            unchanged: Figures { total_ms: 1_000.0, ..Figures::default() },
            has_exchanges: true,
            parts: Parts([0; 2]),
            gains: gains.iter().map(gain).collect(),
            idle: Vec::new(),
        }
    }

    fn quoted(
        rule: &'static str,
        side: Blamed,
        gains: &[(Fix, Option<Side>, f64)],
    ) -> Option<(String, Option<Place>)> {
        best(&finding(rule, side, Severity::Problem), &answer(gains))
            .map(|what_if| (what_if.fix, what_if.side))
    }

    #[test]
    fn the_fix_that_is_named_first_is_quoted_unless_another_saves_more() {
        let of_client = |saved: [f64; 3]| {
            let gains = [
                (Fix::NoDelay, Some(Side::Client), saved[1]),
                (Fix::OneWrite, Some(Side::Client), saved[0]),
                (Fix::QuickAck, Some(Side::Server), saved[2]),
            ];
            quoted("split-write", Blamed::Client, &gains)
        };
        let client = |fix: &str| Some((fix.to_owned(), Some(Place::Client)));
        assert_eq!(of_client([600.0, 610.0, 0.0]), client("one-write"));
        assert_eq!(of_client([600.0, 650.0, 0.0]), client("nodelay"));
        assert_eq!(of_client([0.0, 30.0, 400.0]), Some(("quickack".to_owned(), Some(Place::Server))));
        assert_eq!(of_client([9.0, 9.0, -50.0]), None);
    }

    #[test]
    fn a_fix_at_the_other_side_is_another_fix() {
        let gains = [(Fix::OneWrite, Some(Side::Server), 500.0), (Fix::QuickAck, Some(Side::Client), 500.0)];
        assert_eq!(quoted("split-write", Blamed::Client, &gains), None);
        assert_eq!(
            quoted("split-write", Blamed::Server, &gains),
            Some(("one-write".to_owned(), Some(Place::Server)))
        );
    }

    #[test]
    fn a_path_without_loss_is_quoted_where_nothing_mends() {
        let loss = (Fix::NoLoss, None, 300.0);
        assert_eq!(quoted("tail-loss", Blamed::Network, &[loss]), Some(("no-loss".to_owned(), None)));
        let mended = [loss, (Fix::TailLossProbe, Some(Side::Server), 250.0)];
        assert_eq!(
            quoted("tail-loss", Blamed::Network, &mended),
            Some(("tlp".to_owned(), Some(Place::Server)))
        );
    }

    #[test]
    fn a_note_has_nothing_to_mend() {
        let loss = answer(&[(Fix::NoLoss, None, 300.0)]);
        assert!(best(&finding("tail-loss", Blamed::Network, Severity::Note), &loss).is_none());
        assert!(best(&finding("slow-server", Blamed::Server, Severity::Problem), &loss).is_none());
    }
}
