//! What the mail says, held against what was measured.

use super::Options;
use super::games::{Part, Receiver, Shown};
use crate::experiments::figures::{quantile, time};
use crate::experiments::{Claim, Verdict};
use crate::programs::updates::Carrier;

/// A rate counts as reached from this share of what was asked for: a game of seconds misses one update at its end.
const REACHED: f64 = 0.95;
/// A login counts as deferred from this multiple of the time that it takes without Nagle's algorithm.
const DEFERRED: f64 = 3.0;

pub(super) fn of(shown: &[Shown], options: &Options) -> Vec<Claim> {
    let games = Games(shown);
    let rate = options.rate();
    let mut claims = Vec::new();
    claims.extend(options.rates.iter().filter_map(|&rate| games.stutters(rate)));
    claims.extend(games.udp_keeps_pace());
    claims.extend(
        [games.cured(rate), games.repaired(rate), games.client_sends(rate), games.costs(rate)]
            .into_iter()
            .flatten(),
    );
    claims.extend([games.relay_merges(rate), games.login_waits()].into_iter().flatten());
    claims
}

/// The games, to be looked up.
struct Games<'a>(&'a [Shown]);

impl Games<'_> {
    fn mail(&self, mode: &str, receiver: Receiver, rate: f64) -> Option<&Shown> {
        self.0.iter().find(|game| {
            let plan = &game.plan;
            plan.part == Part::Mail
                && plan.mode == mode
                && plan.receiver == receiver
                && plan.game.rate == rate
        })
    }

    fn part(&self, part: Part) -> impl Iterator<Item = &Shown> {
        self.0.iter().filter(move |game| game.plan.part == part)
    }

    /// (a) and (b).
    fn stutters(&self, rate: f64) -> Option<Claim> {
        let (old, today) = (self.mail("TCP", Receiver::Old, rate)?, self.mail("TCP", Receiver::Today, rate)?);
        let measured = format!(
            "asked {rate}/s: {:.1}/s with the receiver of the 1990s, {:.1}/s with today's",
            old.rate(),
            today.rate()
        );
        let old_keeps_pace = old.rate() >= REACHED * rate;
        let verdict = match (today.rate() >= REACHED * rate, old_keeps_pace) {
            (false, _) => Verdict::Holds,
            (true, false) => Verdict::NoLongerHolds(
                "today's kernel ACKs as soon as a client that only listens has read, and an ACK is all that \
                 Nagle's algorithm waits for; with the old receiver the updates are merged as then"
                    .to_owned(),
            ),
            (true, true) => Verdict::NoLongerHolds(
                "nor did it then: an ACK timer of the same period as the updates always comes before the next \
                 one, and the mail's own trace has 10 segments in 1.8 s, 5.0/s"
                    .to_owned(),
            ),
        };
        let (claim, seed) = if rate > 5.0 {
            (
                "TCP, asked for ten updates a second, delivers half of them",
                "below 5/s; in the mail's trace 5.0/s, two updates in each",
            )
        } else {
            ("TCP merges even at five updates a second", "below 5/s")
        };
        Some(Claim { claim, seed, measured, verdict })
    }

    /// (c) and (d).
    fn udp_keeps_pace(&self) -> Option<Claim> {
        let games: Vec<&Shown> =
            self.part(Part::Mail).filter(|game| game.plan.game.carrier == Carrier::Udp).collect();
        let rates: Vec<String> = games
            .iter()
            .map(|game| format!("asked {}/s: {:.1}/s", game.plan.game.rate, game.rate()))
            .collect();
        let size = games.first()?.arrivals.usual_size()?;
        let holds = games.iter().all(|game| game.rate() >= REACHED * game.plan.game.rate);
        Some(Claim {
            claim: "UDP delivers each update when it is sent",
            seed: "10/s and 5/s, 16 bytes each",
            measured: format!("{}; {size:.0} bytes each", rates.join(", ")),
            verdict: Verdict::from(holds, "updates are missing"),
        })
    }

    fn cured(&self, rate: f64) -> Option<Claim> {
        let (held, cured) =
            (self.mail("TCP", Receiver::Old, rate)?, self.mail("TCP_NODELAY", Receiver::Old, rate)?);
        let worst = |game: &Shown| quantile(&game.played.ages(), 1.0).map_or_else(|| "?".to_owned(), time);
        Some(Claim {
            claim: "TCP_NODELAY on the server's socket ends the stutter",
            seed: "10/s with the option",
            measured: format!(
                "1990s' receiver: {:.1}/s instead of {:.1}/s; the oldest update {} instead of {}",
                cured.rate(),
                held.rate(),
                worst(cured),
                worst(held)
            ),
            verdict: Verdict::from(cured.rate() >= REACHED * rate, "updates are late with the option too"),
        })
    }

    /// The proof: the option toggled on a living socket.
    fn repaired(&self, rate: f64) -> Option<Claim> {
        let game = self.part(Part::Repair).next()?;
        let (at, _) = *game.played.repairs.first()?;
        let part = |after: bool| {
            let arrivals = game.arrivals.0.iter().filter(|arrival| (arrival.time > at) == after);
            crate::experiments::arrivals::Arrivals(arrivals.copied().collect()).rate().unwrap_or(0.0)
        };
        let (before, after) = (part(false), part(true));
        Some(Claim {
            claim: "Toggling the option in the middle of a game acts at once",
            seed: "a toggle in the Repair key's handler was the proof",
            measured: format!("{before:.1}/s before the key, {after:.1}/s after it"),
            verdict: Verdict::from(
                after >= REACHED * rate && before < REACHED * rate,
                "the key changes nothing",
            ),
        })
    }

    fn client_sends(&self, rate: f64) -> Option<Claim> {
        let quiet = self.mail("TCP", Receiver::Old, rate)?;
        let sends = self.mail("TCP, client sends", Receiver::Old, rate)?;
        Some(Claim {
            claim: "A client that sends too receives at a higher rate",
            seed: "expected, not measured",
            measured: format!("{:.1}/s, {:.1}/s from a client that only listens", sends.rate(), quiet.rate()),
            verdict: Verdict::from(
                sends.rate() > quiet.rate() * 1.1,
                "the client's own segments free nothing",
            ),
        })
    }

    fn costs(&self, rate: f64) -> Option<Claim> {
        let (held, cured) =
            (self.mail("TCP", Receiver::Old, rate)?, self.mail("TCP_NODELAY", Receiver::Old, rate)?);
        let ((packets, bytes), (more_packets, more_bytes)) = (held.load, cured.load);
        Some(Claim {
            claim: "TCP_NODELAY costs packets",
            seed: "\"will increase packet load\": 15 packets a second in the mail's trace, 10 without",
            measured: format!(
                "{packets} packets and {bytes} bytes become {more_packets} and {more_bytes} in {} s, both ways",
                held.plan.game.length.as_secs_f64()
            ),
            verdict: Verdict::from(more_packets > packets, "it costs none"),
        })
    }

    fn relay_merges(&self, rate: f64) -> Option<Claim> {
        let mut games = self.part(Part::Relay);
        let (without, with) = (games.next()?, games.next()?);
        let merges = without.rate() < REACHED * rate && with.rate() >= REACHED * rate;
        Some(Claim {
            claim: "A proxy without the option merges again what the server sent apart",
            seed: "expected of trekhopd, not measured",
            measured: format!(
                "{:.1}/s behind a relay without the option, {:.1}/s with it (1990s' receiver)",
                without.rate(),
                with.rate()
            ),
            verdict: Verdict::from(merges, "the relay makes no difference"),
        })
    }

    fn login_waits(&self) -> Option<Claim> {
        let mut games = self.part(Part::Login).filter_map(|game| game.played.first_frame());
        let (old, old_cured, today, today_cured) =
            (games.next()?, games.next()?, games.next()?, games.next()?);
        let measured = format!(
            "first frame after {} with the 1990s' receiver, {} with TCP_NODELAY; {} and {} with today's",
            time(old),
            time(old_cured),
            time(today),
            time(today_cured)
        );
        let verdict = match (today > DEFERRED * today_cured, old > DEFERRED * old_cured) {
            (true, _) => Verdict::Holds,
            (false, true) => Verdict::NoLongerHolds("today's receiver does not hold its ACKs".to_owned()),
            (false, false) => Verdict::NoLongerHolds("no answer of the login waits for an ACK".to_owned()),
        };
        Some(Claim {
            claim: "Logins are slow because their many small writes are deferred",
            seed: "suspected (\"login ghostbusts\")",
            measured,
            verdict,
        })
    }
}
