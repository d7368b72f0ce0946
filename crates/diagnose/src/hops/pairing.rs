//! Which of the candidates are hops of one conversation.

use std::collections::{HashMap, HashSet};

use super::clocks::Clocks;
use super::likeness::Likeness;
use super::passage::Passage;
use super::report::{HopReport, Hops, Pair, Passed};
use super::stream::Spoken;
use super::{Candidates, Hop, Place};
use crate::detectors;
use crate::diagnosis::ms;

/// Of two connections that both fit, the one whose bytes took less is meant if the other's took so many times as long…
const CLEARLY: i64 = 4;
/// …and so much longer, ns.
const BY: i64 = 1_000_000;

/// Two connections that fit.
struct Fit {
    /// By their index among the candidates' hops: the one nearer to the client, and the other.
    pair: (usize, usize),
    clocks: Clocks,
    likeness: Likeness,
}

impl Hops {
    /// The pairs among `candidates` whose bytes came and left as they do through a proxy; `spoken` has what the second look
    /// at their captures recorded.
    pub fn of(candidates: Candidates, spoken: &HashMap<Place, Spoken>) -> Self {
        let Candidates { hops, pairs, notes } = candidates;
        let all: Vec<Fit> = pairs.into_iter().filter_map(|pair| fit(pair, &hops, spoken)).collect();
        let (fits, unsure): (Vec<Fit>, Vec<Fit>) = all.into_iter().partition(|fit| fit.likeness.is_enough());
        let fits = either_way_once(without_detours(fits));
        let mut found = Self { pairs: Vec::new(), notes };
        if let Some(fit) = unsure.iter().find(|fit| fit.likeness.wants_clocks()) {
            found.notes.push(clocks_apart(fit, &hops, spoken));
        }
        for fit in &fits {
            match rivals(fit, &fits) {
                Rivals::None => found.pairs.extend(report(fit, &hops, spoken)),
                Rivals::Worse => {}
                Rivals::Equal => found.say_once(ambiguous(fit, &hops, spoken)),
            }
        }
        found
    }

    fn say_once(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The two hops of a pair, as they were recorded.
fn recorded<'a>(
    (first, second): (usize, usize),
    hops: &[Hop],
    spoken: &'a HashMap<Place, Spoken>,
) -> Option<[&'a Spoken; 2]> {
    Some([spoken.get(&hops[first].place)?, spoken.get(&hops[second].place)?])
}

/// Where the times of each hop begin: where one clock has seen both, they have one beginning.
fn starts((first, second): (usize, usize), hops: &[Hop], both: [&Spoken; 2]) -> [i64; 2] {
    let is_one_clock = hops[first].place.capture == hops[second].place.capture;
    [both[0].start, if is_one_clock { both[0].start } else { both[1].start }]
}

fn passages<'a>(both: [&'a Spoken; 2], clocks: &'a Clocks, starts: [i64; 2]) -> [Passage<'a>; 2] {
    [0, 1].map(|direction| Passage::new(direction, both, clocks, starts))
}

fn fit(pair: (usize, usize), hops: &[Hop], spoken: &HashMap<Place, Spoken>) -> Option<Fit> {
    let both = recorded(pair, hops, spoken)?;
    let starts = starts(pair, hops, both);
    let unknown = Clocks { drift: 0.0, fastest: [None; 2] };
    let ways = passages(both, &unknown, starts).map(|passage| passage.ways());
    let is_one_clock = hops[pair.0].place.capture == hops[pair.1].place.capture;
    let clocks = if is_one_clock { Clocks::one(&ways) } else { Clocks::two(&ways) }?;
    let likeness = Likeness::of([&hops[pair.0], &hops[pair.1]], &passages(both, &clocks, starts), &clocks);
    Some(Fit { pair, clocks, likeness })
}

/// Through two proxies the first hop fits the third as well: only neighbours are kept.
fn without_detours(fits: Vec<Fit>) -> Vec<Fit> {
    let pairs: HashSet<(usize, usize)> = fits.iter().map(|fit| fit.pair).collect();
    let is_detour = |(first, last): (usize, usize)| {
        let mut steps = pairs.iter().filter(|step| step.0 == first && step.1 != last);
        // A pair that fits both ways round is no step.
        steps.any(|step| pairs.contains(&(step.1, last)) && !pairs.contains(&(step.1, first)))
    };
    fits.into_iter().filter(|fit| !is_detour(fit.pair)).collect()
}

/// Where the proxy takes no time that the clocks show, and in one direction alone, either may be the first hop: it is the one
/// on which the bytes took less, or else the one that was named first.
fn either_way_once(fits: Vec<Fit>) -> Vec<Fit> {
    let both: HashMap<(usize, usize), i64> = fits.iter().map(|fit| (fit.pair, fit.likeness.took)).collect();
    let is_the_better = |fit: &Fit| {
        let (first, second) = fit.pair;
        both.get(&(second, first)).is_none_or(|other| (fit.likeness.took, first) <= (*other, second))
    };
    fits.into_iter().filter(is_the_better).collect()
}

/// Whether a connection of a pair has another one that it could belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rivals {
    None,
    /// It has, and that is clearly the better one.
    Worse,
    /// It has, and nothing tells which is meant.
    Equal,
}

fn rivals(fit: &Fit, all: &[Fit]) -> Rivals {
    let own = fit.likeness.took;
    let is_better = |one: i64, other: i64| other >= one.saturating_mul(CLEARLY).max(one.saturating_add(BY));
    let others: Vec<i64> = all
        .iter()
        .filter(|other| other.pair != fit.pair)
        .filter(|other| other.pair.0 == fit.pair.0 || other.pair.1 == fit.pair.1)
        .map(|other| other.likeness.took)
        .collect();
    match () {
        () if others.iter().all(|other| is_better(own, *other)) => Rivals::None,
        () if others.iter().any(|other| is_better(*other, own)) => Rivals::Worse,
        () => Rivals::Equal,
    }
}

/// `#0 of a.pcap and #3 of b.pcap`.
fn names(fit: &Fit, hops: &[Hop], spoken: &HashMap<Place, Spoken>) -> String {
    let name = |index: usize| {
        let Place { capture, connection } = hops[index].place;
        let capture =
            spoken.get(&hops[index].place).map_or(capture.to_string(), |spoken| spoken.capture.clone());
        format!("#{connection} of {capture}")
    };
    format!("{} and {}", name(fit.pair.0), name(fit.pair.1))
}

fn ambiguous(fit: &Fit, hops: &[Hop], spoken: &HashMap<Place, Spoken>) -> String {
    format!(
        "{} could be two hops of one conversation, and so could others: their bytes and times are too much alike. They were \
         not joined; --host and --port narrow a capture down.",
        names(fit, hops, spoken)
    )
}

fn clocks_apart(fit: &Fit, hops: &[Hop], spoken: &HashMap<Place, Spoken>) -> String {
    format!(
        "{} could be two hops of one conversation if the captures' clocks are more than a second apart. They were not joined: \
         nothing in their times and lengths is uncommon enough to be sure.",
        names(fit, hops, spoken)
    )
}

fn report(fit: &Fit, hops: &[Hop], spoken: &HashMap<Place, Spoken>) -> Option<Pair> {
    let both = recorded(fit.pair, hops, spoken)?;
    let starts = starts(fit.pair, hops, both);
    let passages = passages(both, &fit.clocks, starts);
    let places = [hops[fit.pair.0].place, hops[fit.pair.1].place];
    let mut findings = Vec::new();
    for passage in &passages {
        let capture = |hop: usize| places[if passage.direction == 0 { hop } else { 1 - hop }].capture;
        detectors::of_passage(passage, [capture(0), capture(1)], &mut findings);
    }
    let is_one_clock = places[0].capture == places[1].capture;
    let [to_server, to_client] = passages.map(|passage| {
        let fastest = fit.clocks.fastest[passage.direction].filter(|_| is_one_clock);
        passed(&passage, fastest)
    });
    let ahead = |ns: Option<i64>| ns.map(|ns| ms(ns.saturating_add(starts[1]).saturating_sub(starts[0])));
    let (least, most) = fit.clocks.ahead();
    Some(Pair {
        first: hop(places[0], both[0]),
        second: hop(places[1], both[1]),
        clock_ahead_ms: if is_one_clock { (Some(ms(0)), Some(ms(0))) } else { (ahead(least), ahead(most)) },
        clock_drift_ppm: fit.clocks.drift * 1e6,
        round_ms: fit.clocks.round().map(|round| ms(round.max(0))),
        to_server,
        to_client,
        findings,
    })
}

fn hop(place: Place, spoken: &Spoken) -> HopReport {
    let [client, server] = spoken.addresses.clone();
    let Place { capture, connection } = place;
    HopReport { capture, name: spoken.capture.clone(), connection, client, server }
}

fn passed(passage: &Passage<'_>, fastest: Option<i64>) -> Option<Passed> {
    let (arrivals, departures) = (passage.arrivals(), passage.departures());
    let mut ages = passage.stays();
    ages.sort_unstable();
    Some(Passed {
        bytes: passage.sink().pieces.iter().map(super::stream::Piece::len).sum(),
        came: arrivals.len() as u64,
        left: departures.len() as u64,
        fastest_ms: fastest.map(|fastest| ms(fastest.max(0))),
        age_p50_ms: ms(*ages.get(ages.len() / 2)?),
        age_max_ms: ms(*ages.last()?),
    })
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::{Address, Packet, Socket, Tcp, TcpFlags, Transport};

    use super::*;
    use crate::detectors::testing::{Talk, behind, hops};
    use crate::{Analyzer, CaptureInfo, Diagnosis};

    const MS: u64 = 1_000;

    /// A client that asks with `asked` bytes and a server that answers, 30 times at odd moments; captured with all times
    /// `late` µs later, at the proxy. What the proxy passes on takes it 0.2 ms.
    fn talk(late: u64, asked: u64, is_behind: bool) -> String {
        let mut talk = Talk::default();
        let took = if is_behind { 200 } else { 0 };
        talk.connect(late + took, if is_behind { 41_000 } else { 40_000 }, 300);
        for number in 0..30 {
            let time = late + 10 * MS + number * 50 * MS + number * number % 7 * 5 * MS;
            talk.data(time + took, true, asked + number);
            talk.data(time + 4 * MS - took, false, 100);
        }
        talk.close(late + 2_000 * MS + took);
        if is_behind { behind(&talk.text()) } else { talk.text() }
    }

    fn places(hops: &Hops) -> Vec<(usize, usize)> {
        hops.pairs.iter().map(|pair| (pair.first.capture, pair.second.capture)).collect()
    }

    #[test]
    fn two_captures_of_a_conversation_in_either_order() {
        let (near, far) = (talk(0, 20, false), talk(0, 20, true));
        let found = hops(&[&near, &far]);
        assert_eq!((places(&found), &found.notes), (vec![(0, 1)], &vec![]));
        let pair = &found.pairs[0];
        assert_eq!(
            (pair.first.client.as_str(), pair.second.server.as_str()),
            ("10.0.0.1:40000", "10.0.0.3:90")
        );
        // 0.2 ms each way; 30 questions of 20 to 49 bytes.
        assert_eq!(pair.round_ms.map(|ms| ms.0), Some(0.4));
        assert_eq!(
            pair.to_server.map(|passed| (passed.bytes, passed.came, passed.left)),
            Some((1_035, 30, 30))
        );
        assert_eq!(places(&hops(&[&far, &near])), [(1, 0)]);
    }

    #[test]
    fn both_hops_in_one_capture() {
        let lines = |text: &str| text.lines().map(|line| format!("{line}\n")).collect::<Vec<_>>();
        let mut both = lines(&talk(0, 20, false));
        both.extend(lines(&talk(0, 20, true)));
        both.sort_by_key(|line| line.split(' ').next().map(str::to_owned));
        let found = hops(&[&both.concat()]);
        assert_eq!(places(&found), [(0, 0)]);
        let passed = found.pairs[0].to_server.expect("bytes to the server");
        assert_eq!(passed.fastest_ms.map(|ms| ms.0), Some(0.2));
        assert_eq!(found.pairs[0].clock_ahead_ms, (Some(ms(0)), Some(ms(0))));
    }

    #[test]
    fn clocks_that_differ_by_fifty_minutes_are_compared_all_the_same() {
        let found = hops(&[&talk(0, 20, false), &talk(3_000_000 * MS, 20, true)]);
        assert_eq!(places(&found), [(0, 1)]);
        let (least, most) = found.pairs[0].clock_ahead_ms;
        assert_eq!((least.map(|ms| ms.0), most.map(|ms| ms.0)), (Some(2_999_999.8), Some(3_000_000.2)));
    }

    #[test]
    fn an_even_stream_of_another_hour_is_another_one() {
        let even = |late: u64, is_behind: bool| {
            let mut talk = Talk::default();
            talk.connect(late, if is_behind { 41_000 } else { 40_000 }, 300);
            (1..30).for_each(|number| talk.data(late + number * 100 * MS, false, 12));
            talk.close(late + 4_000 * MS);
            if is_behind { behind(&talk.text()) } else { talk.text() }
        };
        assert_eq!(places(&hops(&[&even(0, false), &even(10, true)])), [(0, 1)]);
        let other = hops(&[&even(0, false), &even(3_000_000 * MS, true)]);
        assert_eq!(places(&other), []);
        assert!(other.notes[0].contains("more than a second apart"), "{:?}", other.notes);
    }

    #[test]
    fn a_byte_more_makes_it_another_conversation() {
        assert_eq!(places(&hops(&[&talk(0, 20, false), &talk(0, 21, true)])), []);
    }

    #[test]
    fn bytes_that_leave_before_they_come_make_it_another_conversation() {
        // One clock: the second hop's questions and answers 20 ms too late or too soon.
        for late in [0, 20 * MS] {
            let (near, far) = (talk(20 * MS - late, 20, false), talk(late, 20, true));
            let mut both: Vec<String> =
                near.lines().chain(far.lines()).map(|line| format!("{line}\n")).collect();
            both.sort_by_key(|line| line.split(' ').next().map(str::to_owned));
            assert_eq!(places(&hops(&[&both.concat()])), [], "{late}");
        }
    }

    #[test]
    fn a_connection_captured_twice_is_no_proxys() {
        let near = talk(0, 20, false);
        let found = hops(&[&near, &near]);
        assert_eq!(places(&found), []);
        assert!(found.notes[0].contains("same TCP connection"), "{:?}", found.notes);
        // A second look at one hop changes nothing.
        assert_eq!(places(&hops(&[&near, &near, &talk(0, 20, true)])), [(0, 2)]);
    }

    #[test]
    fn of_two_that_fit_as_well_neither_is_taken() {
        let far = talk(0, 20, true);
        let other = far
            .replace("seq 700", "seq 7000")
            .replace("ack 701", "ack 7001")
            .replace("10.0.0.2.41000", "10.0.0.2.42000");
        let found = hops(&[&talk(0, 20, false), &far, &other]);
        assert_eq!(places(&found), []);
        assert!(found.notes.iter().any(|note| note.contains("too much alike")), "{:?}", found.notes);
    }

    #[test]
    fn through_two_proxies_neighbours_are_joined() {
        let far = talk(0, 20, true);
        // The second proxy is 10.0.0.3 and takes no time that these clocks show.
        let last = far
            .replace("10.0.0.3.90", "10.0.0.4.91")
            .replace("10.0.0.2.41000", "10.0.0.3.42000")
            .replace("seq 700", "seq 7000")
            .replace("ack 701", "ack 7001");
        let found = hops(&[&talk(0, 20, false), &far, &last]);
        assert_eq!(places(&found), [(0, 1), (1, 2)], "{found:?}");
    }

    #[test]
    fn two_conversations_of_one_client_are_two() {
        // The same to another server, from the same client, in the same second.
        let near = talk(0, 20, false);
        let other = near
            .replace("10.0.0.2.80", "10.0.0.9.80")
            .replace("seq 0", "seq 5000")
            .replace("ack 1,", "ack 5001,");
        assert_eq!(places(&hops(&[&near, &other])), []);
    }

    /// Two connections through 10.0.0.2 with whatever the generator says: times as far apart as there are, bytes sent twice,
    /// out of order, never, and ends of all kinds.
    fn anything(random: &mut impl FnMut(u64) -> u64) -> Vec<Packet> {
        let socket = |host: u8, port| Socket { address: Address::v4([10, 0, 0, host]), port };
        let ends = [[socket(1, 40_000), socket(2, 80)], [socket(2, 41_000), socket(3, 90)]];
        let far = [0, 1_000, 1_000_000, 1_i64 << 40, 1 << 62][random(5) as usize];
        let (mut packets, mut time) = (Vec::new(), [i64::MIN / 2, 0, i64::MAX / 2][random(3) as usize]);
        for number in 1..80 {
            let (hop, side) = (random(2) as usize, random(2) as usize);
            time = time
                .saturating_add(if random(9) == 0 { far } else { 700_000 } - (random(2) as i64) * 200_000);
            let flags = match number {
                1..=8 => [TcpFlags::SYN, TcpFlags::SYN | TcpFlags::ACK][side],
                _ => [TcpFlags::ACK, TcpFlags::ACK, TcpFlags::ACK, TcpFlags::ACK | TcpFlags::FIN]
                    [random(4) as usize],
            };
            let tcp = Tcp {
                seq: (hop as u32 * 1_000).wrapping_add(random(400) as u32),
                ack: (hop as u32 * 1_000).wrapping_add(random(400) as u32),
                payload_len: [0, 1, 12, 12, 1_460, 65_495][random(6) as usize] * u32::from(number > 8),
                window: 60_000,
                flags: TcpFlags(flags),
                ..Tcp::default()
            };
            let (source, destination) = (ends[hop][side], ends[hop][1 - side]);
            let transport = Transport::Tcp(tcp);
            packets.push(Packet { number, time, source, destination, transport, ..Packet::default() });
        }
        packets
    }

    #[test]
    fn whatever_was_captured_is_compared_without_overflow() {
        // Numerical Recipes' linear congruential generator.
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut compared = 0;
        for _ in 0..500 {
            let mut all: Vec<Diagnosis> = Vec::new();
            for _ in 0..2 {
                let mut analyzer = Analyzer::recording(0..9);
                analyzer.push(&anything(&mut random));
                all.push(analyzer.finish(CaptureInfo::default()));
            }
            let found = all.iter().enumerate().flat_map(|(capture, diagnosis)| diagnosis.hops(capture));
            let candidates = Candidates::of(found.collect(), None);
            compared += candidates.pairs.len();
            let mut spoken = HashMap::new();
            for (capture, diagnosis) in all.iter().enumerate() {
                let of = |connection| Some((Place { capture, connection }, diagnosis.spoken(connection)?));
                spoken.extend(candidates.wanted(capture).into_iter().filter_map(of));
            }
            for pair in Hops::of(candidates, &spoken).pairs {
                assert!(
                    pair.passed().into_iter().flatten().all(|passed| passed.age_p50_ms <= passed.age_max_ms)
                );
            }
        }
        assert!(compared > 100, "{compared}");
    }
}
