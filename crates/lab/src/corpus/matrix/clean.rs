//! Connections of every shape with nothing wrong.

use super::super::case::{Case, Group, Party};
use super::super::run::Traffic;
use super::case;
use super::programs::with_nodelay;
use super::road::{OFFLOADED, ROADS, Road, link, ms};
use super::windows::{ONE_EXCHANGE, sender, set_rate};
use crate::place::Wire;
use crate::programs::chat::Chat;
use crate::programs::socket::Options;
use crate::programs::stream::{Feed, Stream};
use crate::programs::transfer::{Transfer, Writer};

pub(super) fn add(cases: &mut Vec<Case>) {
    for road in &ROADS {
        chats(cases, road);
        cases.push(bulk(road, true, 1_000_000));
        cases.push(bulk(road, false, 1_000_000));
    }
    for road in &OFFLOADED {
        cases.push(bulk(road, true, 1_500_000));
        cases.push(bulk(road, false, 1_500_000));
    }
    for road in [Road::Loopback, link(20), link(100)] {
        streams(cases, &road);
        cases.push(full_duplex(&road));
    }
    cases.push(queue(&link(20)));
    cases.push(producer(&link(20)));
    cases.push(disturbed(&link(20), "jitter", "adds up to 5 ms to packets", |wire| {
        (wire.ends.up.jitter, wire.ends.down.jitter) = (ms(5), ms(5));
    }));
    cases.push(disturbed(&link(20), "duplicates", "delivers 5 % of the packets twice", |wire| {
        (wire.ends.up.duplicate, wire.ends.down.duplicate) = (0.05, 0.05);
    }));
}

fn of_chat(cases: &mut Vec<Case>, name: &str, story: &str, road: &Road, chat: Chat) {
    cases.push(case(Group::Clean, name, story, road, Traffic::Chat(chat), Vec::new()));
}

fn chats(cases: &mut Vec<Case>, road: &Road) {
    let plain = Chat { exchanges: road.exchanges(), ..Chat::default() };
    of_chat(cases, "ping", "requests and answers of 64 bytes", road, plain.clone());
    let pages = Chat { exchanges: 20, response: vec![30_000], ..plain.clone() };
    of_chat(cases, "pages", "small requests, answers of 30,000 bytes in one write", road, pages);
    let nodelay = Options { nodelay: true, ..Options::default() };
    let ahead = Chat { ahead: 8, client: nodelay.clone(), server: nodelay, ..plain.clone() };
    of_chat(
        cases,
        "pipelined",
        "eight requests ahead of their answers, TCP_NODELAY on both sides",
        road,
        ahead,
    );
    let documents = Chat { exchanges: 20, request: vec![10_010], response: vec![2], ..plain };
    of_chat(cases, "documents", "requests of 10,010 bytes in one write, answers of 2", road, documents);
}

fn bulk(road: &Road, up: bool, bytes: usize) -> Case {
    let (name, from, transfer) = if up {
        ("upload", Party::Client, Transfer { up: bytes, client: sender(), ..Transfer::default() })
    } else {
        ("download", Party::Server, Transfer { down: bytes, server: sender(), ..Transfer::default() })
    };
    let name = format!("{name}-{}kb", bytes / 1000);
    let story = format!("{bytes} bytes one way as fast as it goes");
    let mut case = case(Group::Clean, &name, &story, road, Traffic::Transfer(transfer), Vec::new());
    set_rate(&mut case.run, rate(road));
    let case = case.with_offload(road, from).allowing(ONE_EXCHANGE);
    if matches!(road, Road::Loopback) { case.allowing(RATELESS) } else { case }
}

/// A rate that the kernel's own windows cover.
fn rate(road: &Road) -> Option<u64> {
    Some(if road.round_trip() > 5 { 20_000_000 } else { 100_000_000 })
}

/// Where nothing limits the rate, the window that the kernel still widens is what limits a transfer.
const RATELESS: &[&str] = &["small-receive-window"];

fn streams(cases: &mut Vec<Case>, road: &Road) {
    // The round trip is shorter than the period, so that each message is ACKed before the next.
    let period = 50 + road.round_trip();
    let down = Stream { down: Some(Feed::even(40, ms(period), 12)), ..Stream::default() };
    let story = format!("the server sends 12 bytes every {period} ms; the client only reads");
    cases.push(case(Group::Clean, "updates", &story, road, Traffic::Stream(down), Vec::new()));
    let both = with_nodelay(Stream {
        up: Some(Feed::even(60, ms(33), 20)),
        down: Some(Feed::even(40, ms(50), 80)),
        ..Stream::default()
    });
    let story =
        "a game: updates of 80 bytes down every 50 ms, inputs of 20 bytes up every 33 ms, TCP_NODELAY";
    cases.push(case(Group::Clean, "game", story, road, Traffic::Stream(both), Vec::new()));
    let voice = with_nodelay(Stream { up: Some(Feed::even(100, ms(20), 160)), ..Stream::default() });
    let story = "a voice: 160 bytes up every 20 ms, TCP_NODELAY";
    cases.push(case(Group::Clean, "voice", story, road, Traffic::Stream(voice), Vec::new()));
}

fn full_duplex(road: &Road) -> Case {
    let transfer =
        Transfer { up: 700_000, down: 700_000, client: sender(), server: sender(), ..Transfer::default() };
    let story = "700 KB each way at once";
    let mut case = case(Group::Clean, "both-ways", story, road, Traffic::Transfer(transfer), Vec::new());
    set_rate(&mut case.run, rate(road));
    let case = case.allowing(ONE_EXCHANGE);
    if matches!(road, Road::Loopback) { case.allowing(RATELESS) } else { case }
}

fn queue(road: &Road) -> Case {
    let transfer = Transfer { down: 1_000_000, server: sender(), ..Transfer::default() };
    let story = "1 MB down at 10 Mbit/s through a queue that takes everything";
    let mut case = case(Group::Clean, "long-queue", story, road, Traffic::Transfer(transfer), Vec::new());
    set_rate(&mut case.run, Some(10_000_000));
    case.allowing(ONE_EXCHANGE)
}

/// The sending program has no more yet: that it is slow is true, and nobody waits for it in an exchange.
fn producer(road: &Road) -> Case {
    let writer = Writer { at_once: 16_000, work: ms(10) };
    let transfer = Transfer { up: 800_000, client: sender(), writer, ..Transfer::default() };
    let story = "the client uploads 800 KB as it makes them: 16,000 bytes every 10 ms";
    case(Group::Clean, "producer", story, road, Traffic::Transfer(transfer), Vec::new())
        .allowing(ONE_EXCHANGE)
        .allowing(&["slow-client"])
}

fn disturbed(road: &Road, name: &str, what: &str, change: fn(&mut Wire)) -> Case {
    let chat = Chat { exchanges: 40, ..Chat::default() };
    let story = format!("requests and answers of 64 bytes over a link that {what}");
    let name = format!("ping-{name}");
    let mut case = case(Group::Clean, &name, &story, road, Traffic::Chat(chat), Vec::new());
    case.run.wire(change);
    case
}
