//! Scenarios: what people write, what they are told about mistakes, and the stories they tell.

use std::time::Duration;

use tcpwhy_simulate::link::{Drop, Queue};
use tcpwhy_simulate::scenario::{self, BUILT_IN, Measured, Runs, Scenario, Variant};
use tcpwhy_simulate::tcp::{DelayedAck, HoleFilled, Trigger, Wait};
use tcpwhy_simulate::world::End;

fn parse(text: &str) -> Scenario {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn variants_of(text: &str) -> Vec<Variant> {
    match parse(text).runs {
        Runs::Variants(variants) => variants,
        Runs::Table(_) => panic!("a table"),
    }
}

/// A variant of a scenario that comes with the program, run to its end.
fn run(scenario: &str, variant: &str) -> Measured {
    let variants = variants_of(scenario::named(scenario).expect(scenario));
    let variant = variants.iter().find(|known| known.name == variant).expect(variant);
    let (_, measured) = scenario::run(variant, Duration::from_secs(300));
    assert_eq!(measured.end, End::Over, "{}", variant.name);
    measured
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn finished(measured: &Measured) -> f64 {
    seconds(measured.finished.expect("an end"))
}

fn median(values: &[u64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    seconds(sorted[sorted.len() / 2])
}

#[test]
fn every_built_in_scenario_is_one() {
    for (name, text) in BUILT_IN {
        let scenario = parse(text);
        assert_eq!(scenario.name, *name);
        assert!(!scenario.about.is_empty() && !scenario.source.is_empty(), "{name}");
    }
}

/// His figures: about 2 s if nothing had gone wrong, nearly 5 s in fast recovery in one of two transfers; losses at
/// around the first second, all of them from slow start.
#[test]
fn cardwells_transfer_takes_two_seconds_or_five() {
    let (at_once, late) = (run("dsl-1998", "at once"), run("dsl-1998", "late"));
    assert!((1.9..2.6).contains(&finished(&at_once)), "{at_once:?}");
    assert!((4.5..6.5).contains(&finished(&late)), "{late:?}");
    assert!(seconds(late.recovery) > 0.5 * finished(&late), "{late:?}");
    for measured in [&at_once, &late] {
        assert!(measured.lost.queue_full >= 5 && measured.lost.planned == 0 && measured.lost.random == 0);
        // One at a time, each once, and no timer had to help.
        assert_eq!(measured.retransmissions.keys().collect::<Vec<_>>(), [&Trigger::FastRetransmit]);
        assert_eq!(measured.retransmissions[&Trigger::FastRetransmit], measured.lost.queue_full);
        assert_eq!(measured.loss, 0);
    }
    // The receiver alone makes the difference: up to half a second for each hole.
    assert!((0.4..=0.5).contains(&seconds(late.held_acks.longest)), "{:?}", late.held_acks);
    // Where holes are acknowledged at once, the longest is that of the very first segment: HZ/3, and nothing else is out.
    assert!((0.3..=0.34).contains(&seconds(at_once.held_acks.longest)), "{:?}", at_once.held_acks);
    let more = seconds(late.held_acks.total - at_once.held_acks.total);
    assert!((finished(&late) - finished(&at_once) - more).abs() < 0.2, "{more}");
}

#[test]
fn the_losses_begin_at_around_the_first_second() {
    let variants = variants_of(scenario::named("dsl-1998").expect("a scenario"));
    let (world, _) = scenario::run(&variants[1], Duration::from_secs(300));
    let duplicates = world.seen(tcpwhy_simulate::world::Side::Server);
    let acks: Vec<_> =
        duplicates.iter().filter(|seen| seen.from == tcpwhy_simulate::world::Side::Client).collect();
    let first = acks.windows(2).find(|pair| {
        pair[0].segment.tcp.ack == pair[1].segment.tcp.ack
            && pair[0].segment.tcp.flags == pair[1].segment.tcp.flags
    });
    // Seen at the sender, as his plots are: when the segment left that the duplicates ask for.
    let missing = first.expect("a duplicate ACK")[1].segment.tcp.ack;
    let sent =
        duplicates.iter().find(|seen| seen.segment.tcp.seq == missing && seen.segment.tcp.payload_len > 0);
    let sent = seconds(sent.expect("the lost segment").time);
    assert!((0.7..1.4).contains(&sent), "{sent}");
}

#[test]
fn netrek_is_held_by_nagle_and_a_heartbeat() {
    let (as_it_was, nodelay) = (run("netrek-1995", "as it was"), run("netrek-1995", "TCP_NODELAY"));
    assert!(median(&as_it_was.deliveries) > 0.05, "{}", median(&as_it_was.deliveries));
    assert!((0.009..0.012).contains(&median(&nodelay.deliveries)), "{}", median(&nodelay.deliveries));
    let nagle = |measured: &Measured| measured.waits.get(&Wait::Nagle).copied().unwrap_or(0);
    assert!(seconds(nagle(&as_it_was)) > 5.0 && nagle(&nodelay) == 0);
}

#[test]
fn chained_buffers_cost_a_delayed_ack() {
    let one = run("chained-buffers-2022", "one buffer");
    let chained = run("chained-buffers-2022", "both chained");
    let nodelay = run("chained-buffers-2022", "both, TCP_NODELAY");
    assert!(median(&one.exchanges) < 0.002 && median(&nodelay.exchanges) < 0.002);
    assert!((0.040..0.050).contains(&median(&chained.exchanges)), "{}", median(&chained.exchanges));
    assert_eq!(one.exchanges.len(), 50);
}

#[test]
fn idle_connections_start_slowly_again() {
    let restart = median(&run("slow-start-after-idle", "restart after idle").exchanges);
    let none = median(&run("slow-start-after-idle", "no restart").exchanges);
    // 300 KB over 100 Mbit/s are 24 ms and a round trip of 100 ms; windows of 10, 20, 40, 80, 160 take four more.
    assert!((0.120..0.140).contains(&none), "{none}");
    assert!((0.450..0.550).contains(&restart), "{restart}");
}

#[test]
fn a_probe_finds_a_lost_tail_before_the_timer() {
    let longest = |measured: &Measured| seconds(*measured.exchanges.iter().max().expect("exchanges"));
    let (probe, timer) = (run("tail-loss", "tail-loss probe"), run("tail-loss", "timer only"));
    assert_eq!(probe.lost.planned, 2);
    assert!(probe.retransmissions.contains_key(&Trigger::TailLossProbe));
    assert!(timer.retransmissions.contains_key(&Trigger::Timeout));
    assert!(longest(&probe) + 0.05 < longest(&timer), "{} {}", longest(&probe), longest(&timer));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let text = BASE.replace("[link]", "[link]\nloss = \"2 %\"");
    let run = |seed| {
        let Runs::Variants(variants) = parse(&text).with_seed(seed).runs else { panic!("a table") };
        scenario::run(&variants[0], Duration::from_secs(60)).1
    };
    let same = |seed| format!("{:?}", run(seed));
    assert_eq!(same(7), same(7));
    assert_ne!(same(7), same(8));
}

const BASE: &str = "
[client]
stack = \"linux-2.0\"
delayed-ack = \"heartbeat 200 ms\"
[server]
hole-filled = \"late\"
[link]
rate = \"1 mbit\"
round-trip = \"20 ms\"
queue = \"8 packets\"
down.rate = \"2 mbit\"
down.drop = [\"data 5\", \"syn 1\"]
[traffic]
download = \"50 KB\"
";

#[test]
fn keys_arrive_where_they_belong() {
    let variants = variants_of(BASE);
    let setup = &variants[0].setup;
    assert_eq!(
        setup.client.receiver.delayed_ack,
        DelayedAck::Heartbeat { period: Duration::from_millis(200) }
    );
    assert_eq!(setup.server.receiver.hole_filled, HoleFilled::Late);
    assert_eq!(setup.ends.up.delay, Duration::from_millis(10));
    assert_eq!((setup.ends.up.rate, setup.ends.down.rate), (Some(1_000_000), Some(2_000_000)));
    assert_eq!((setup.ends.up.queue, setup.ends.down.queue), (Queue::Packets(8), Queue::Packets(8)));
    assert_eq!(setup.ends.down.drops, [Drop::Data(5), Drop::Syn(1)]);
    assert_eq!(setup.ends.up.drops, []);
}

#[test]
fn a_variant_changes_what_it_names() {
    let text = format!(
        "{BASE}\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nlink.rate = \"3 mbit\"\nlink.down.loss = \"1 %\"\nserver.hole-filled = \"at-once\"\n"
    );
    let variants = variants_of(&text);
    let (a, b) = (&variants[0].setup, &variants[1].setup);
    assert_eq!(format!("{a:?}"), format!("{:?}", variants_of(BASE)[0].setup));
    assert_eq!(
        (b.ends.up.rate, b.ends.down.rate, b.ends.down.loss),
        (Some(3_000_000), Some(2_000_000), 0.01)
    );
    assert_eq!(b.server.receiver.hole_filled, HoleFilled::AtOnce);
    assert_eq!(b.client, a.client);
}

#[test]
fn steps_do_what_traffic_does() {
    let steps = BASE.replace("[traffic]\ndownload = \"50 KB\"", "").replace(
        "[server]",
        "steps = [\"on end close\"]\n[server]\nsteps = [\"write 20 KB\", \"after 5 ms write 30 KB\", \"close\"]",
    );
    let variants = variants_of(&steps);
    let (_, measured) = scenario::run(&variants[0], Duration::from_secs(60));
    assert_eq!((measured.end, measured.deliveries.len()), (End::Over, 2));
    assert!(measured.finished.is_some());
}

#[test]
fn mistakes_are_named_with_line_and_remedy() {
    for (from, to, line, said) in [
        ("round-trip", "roundtrip", Some(9), "is it `round-trip`?"),
        ("queue = \"8 packets\"", "queue = \"8 boxes\"", Some(10), "try 8 packets or 12 kB"),
        ("rate = \"1 mbit\"", "rate = \"fast\"", Some(8), "440 kbit"),
        ("hole-filled = \"late\"", "hole-filled = \"soon\"", Some(6), "expected"),
        ("download", "dowload", Some(14), "is it `download`?"),
        ("stack = \"linux-2.0\"", "stack = \"linux-2\"", None, "Is it linux-2."),
        ("download = \"50 KB\"", "", None, "one of download"),
        ("download", "upload = \"1 KB\"\ndownload", None, "one of download"),
        ("rate = \"1 mbit\"\n", "", None, "link.up: queue needs rate"),
        ("\"data 5\"", "\"data 0\"", Some(12), "counted from 1"),
        ("[traffic]", "[[traffic]]", Some(13), ""),
        ("[client]", "[client", Some(2), ""),
        ("50 KB", "50 GB", Some(14), "try"),
        ("[client]", "[client]\nsteps = [\"write 5 B\"]", None, "exclude each other"),
    ] {
        let text = BASE.replacen(from, to, 1);
        let error = Scenario::parse(&text).expect_err(to);
        if line.is_some() {
            assert_eq!(error.line, line, "{to}: {error}");
        }
        assert!(error.what.contains(said) && !error.what.contains('\n'), "{to}: {error}");
    }
}

#[test]
fn nothing_unbounded_is_taken() {
    let requests = |count: &str, pieces: &str| {
        BASE.replace(
            "download = \"50 KB\"",
            &format!(
                "requests = {{ request = \"1 KB\", answer = \"1 KB\", count = {count}, pieces = {pieces} }}"
            ),
        )
    };
    assert!(Scenario::parse(&requests("10", "3")).is_ok());
    for (count, pieces) in [
        ("0", "1"),
        ("10", "0"),
        ("9223372036854775807", "9223372036854775807"),
        ("100001", "1"),
        ("1", "1001"),
    ] {
        assert!(Scenario::parse(&requests(count, pieces)).is_err(), "{count} {pieces}");
    }
    for key in ["mss = 0", "window-scale = 15", "initial-window = 4000000000"] {
        assert!(Scenario::parse(&BASE.replace("[client]", &format!("[client]\n{key}"))).is_err(), "{key}");
    }
    let twice = format!("{BASE}[[variant]]\nname = \"a\"\n[[variant]]\nname = \"a\"\n");
    assert!(Scenario::parse(&twice).expect_err("twice").what.contains("are called a"));
    let rows = format!("{BASE}[[row]]\nname = \"a\"\n");
    assert!(Scenario::parse(&rows).expect_err("no column").what.contains("[[column]]"));
}
