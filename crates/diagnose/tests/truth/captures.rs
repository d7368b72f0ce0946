//! The analysis on captures that do not show each frame once, from the first on.

use std::collections::BTreeMap;

use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::ledger::Booking;
use tcpwhy_diagnose::report::{Finding, Source};
use tcpwhy_simulate::truth::{Line, Span};
use tcpwhy_simulate::world::Side;
use tcpwhy_wire::Packet;

use crate::kept::{Kept, while_captured};
use crate::score::Score;
use crate::{Run, Worst, analyzed, booked, floors, number_from, setups};

/// Connections of which captures of all kinds are made.
const CONNECTIONS: u64 = 600;
/// From this confidence on a finding is a statement.
const CONFIDENT: f64 = 0.9;
/// How much rounding may take from a ledger's sum, ms.
const ROUNDING: f64 = 1e-6;
/// Of a thousand captures that have each frame twice and no identifications, so many may tell something else than those that
/// have each once: of equal ACKs within microseconds nothing tells the copies, so that one counts at another's time.
const UNLIKE: u64 = 8;

/// What many captures showed.
#[derive(Default)]
struct Tally {
    scores: BTreeMap<Kept, Score>,
    worst: BTreeMap<Kept, Worst>,
    /// Captures without identifications, and those of them that tell something else with each frame twice.
    unnumbered: u64,
    unlike: u64,
    /// By what the capture keeps; the first of all, which keep everything.
    blames: BTreeMap<Option<Kept>, Blames>,
    /// The captures that lack frames and surely blame a program for TCP's time, where the whole one does not.
    misled: Vec<String>,
}

impl Tally {
    fn add(&mut self, number: u64, run: &Run, side: Side) {
        let passed = passed(run, side, number);
        let truth = run.truth(side);
        let whole = analyzed(&passed, &[]);
        let of_whole = Blames::of(&truth, &whole);
        self.blames.entry(None).or_default().merge(of_whole);
        for kind in Kept::ALL {
            let place = format!("{} of connection {number} at the {side:?}", kind.name());
            let packets = kind.packets(&passed, number);
            let truth = while_captured(&truth, &packets);
            let diagnosis = analyzed(&packets, &[]);
            let blames = Blames::of(&truth, &diagnosis);
            self.blames.entry(Some(kind)).or_default().merge(blames);
            assert_sums(&diagnosis, &place);
            match kind {
                Kept::Twice if is_numbered(number) => assert_same(&whole, &diagnosis, &place),
                Kept::Twice => {
                    assert_noted(&diagnosis, &place);
                    self.unnumbered += 1;
                    self.unlike += u64::from(told(&whole) != told(&diagnosis));
                }
                Kept::Lacking if blames.mistaken > of_whole.mistaken => self.misled.push(place),
                Kept::Lacking | Kept::Middle => {}
            }
            let mut score = Score::default();
            score.add(&truth, &booked(&diagnosis));
            self.worst.entry(kind).or_default().add(score.wrong(), number, side);
            self.scores.entry(kind).or_default().merge(&score);
        }
    }

    fn print(&mut self) {
        for (kind, score) in &self.scores {
            println!("{}\n{score}", kind.name());
            self.worst.entry(*kind).or_default().print();
        }
        let (unlike, unnumbered) = (self.unlike, self.unnumbered);
        println!(
            "with each frame twice, {unlike} of {unnumbered} without identifications tell something else"
        );
        for (kind, Blames { confident, mistaken }) in &self.blames {
            let kind = kind.map_or("whole", Kept::name);
            println!(
                "{kind}: {confident} times a program is blamed surely, {mistaken} times for what was TCP's"
            );
        }
        println!("only where frames are lacking: {:?}", self.misled);
    }
}

/// The frames that pass at `side`: those of every other connection over IPv6, which has no identification.
pub(crate) fn passed(run: &Run, side: Side, number: u64) -> Vec<Packet> {
    let mut packets = run.packets(side);
    if !is_numbered(number) {
        packets.iter_mut().for_each(|packet| packet.ip_id = None);
    }
    packets
}

fn is_numbered(number: u64) -> bool {
    number.is_multiple_of(2)
}

/// Confident findings that blame a program and call TCP innocent; and those of them for which most of what is booked on the
/// program was TCP's.
#[derive(Clone, Copy, Debug, Default)]
struct Blames {
    confident: u64,
    mistaken: u64,
}

impl Blames {
    fn of(truth: &[Span], diagnosis: &Diagnosis) -> Self {
        let mut blames = Self::default();
        for finding in diagnosis.findings().filter(|finding| finding.confidence >= CONFIDENT) {
            let line = match finding.rule {
                "slow-server" => "server-app",
                "slow-client" => "client-app",
                _ => continue,
            };
            let mut booked = booked(diagnosis);
            booked.retain(|booking| booking.line.name() == line);
            let all: i64 = booked.iter().map(|booking| booking.until - booking.from).sum();
            blames.confident += 1;
            blames.mistaken += u64::from(time_of_tcp(truth, &booked) * 2 > all.cast_unsigned());
        }
        blames
    }

    fn merge(&mut self, other: Self) {
        self.confident += other.confident;
        self.mistaken += other.mistaken;
    }
}

/// How much of this time was neither a program's nor the path's, ns.
fn time_of_tcp(truth: &[Span], booked: &[Booking]) -> u64 {
    let innocent = [Line::ClientApp, Line::ServerApp, Line::Network, Line::Queueing];
    let common = |span: &Span, booking: &Booking| {
        let [from, until] = [booking.from, booking.until].map(i64::cast_unsigned);
        span.until.min(until).saturating_sub(span.from.max(from))
    };
    let of_tcp = truth.iter().filter(|span| !innocent.contains(&span.line));
    of_tcp.flat_map(|span| booked.iter().map(move |booking| common(span, booking))).sum()
}

/// The lines of each ledger sum to the connection's duration.
fn assert_sums(diagnosis: &Diagnosis, place: &str) {
    for connection in diagnosis.connections() {
        let (sum, duration) = (connection.ledger_ms.total(), connection.duration_ms.0);
        assert!((sum - duration).abs() < ROUNDING, "{place}: the ledger has {sum} ms of {duration}");
    }
}

/// A capture that has each frame twice says what the one that has each once does, and that it has copies.
fn assert_same(once: &Diagnosis, twice: &Diagnosis, place: &str) {
    assert_eq!(told(once), told(twice), "{place}");
    assert_noted(twice, place);
}

fn assert_noted(diagnosis: &Diagnosis, place: &str) {
    assert!(diagnosis.findings().any(|finding| is_note_of_copies(&finding)), "{place}");
}

/// The ledger, interval by interval, and the findings but for the numbers of packets.
fn told(diagnosis: &Diagnosis) -> (Vec<Booking>, Vec<Finding>) {
    let findings = diagnosis.findings().filter(|finding| !is_note_of_copies(finding));
    (booked(diagnosis), findings.map(|finding| Finding { evidence: Vec::new(), ..finding }).collect())
}

fn is_note_of_copies(finding: &Finding) -> bool {
    finding.rule == "duplicated-frames"
}

#[test]
fn the_analysis_agrees_where_a_capture_does_not_show_each_frame_once() {
    let (asked, first) = (number_from("TRUTH_CONNECTIONS"), number_from("TRUTH_FIRST").unwrap_or(0));
    let mut tally = Tally::default();
    for number in first..first + asked.unwrap_or(CONNECTIONS) {
        let run = Run::of(&setups::setup(number).1);
        for side in [Side::Client, Side::Server] {
            tally.add(number, &run, side);
        }
    }
    tally.print();
    assert!(tally.unlike * 1000 <= tally.unnumbered * UNLIKE, "{} of {}", tally.unlike, tally.unnumbered);
    if asked.is_none() {
        for (kind, score) in &tally.scores {
            let worse = score.worse_than(floors::of(*kind));
            assert!(
                worse.is_empty(),
                "{}: less agreement than recorded:\n  {}",
                kind.name(),
                worse.join("\n  ")
            );
        }
        assert!(tally.misled.is_empty(), "a program is blamed for what is lacking: {:?}", tally.misled);
    }
}
