//! Lost segments: noticed by a timer, or by what came behind them.

use tcpwhy_simulate::link::{AckHold, Drop, Queue};

use super::super::case::{Case, Group, Party};
use super::super::run::{Run, Traffic};
use super::road::{LINKS, Road, link, ms, offloaded};
use super::windows::{ONE_EXCHANGE, sender, set_rate};
use super::{case, causes};
use crate::capture::Vantage;
use crate::programs::chat::Chat;
use crate::programs::transfer::Transfer;

pub(super) fn add(cases: &mut Vec<Case>) {
    for road in &LINKS {
        cases.push(lost(road, "lost-request", "one request", true, &[10]));
        // The segment that follows the tenth is its probe (RFC 8985 section 7) or retransmission.
        cases.push(lost(
            road,
            "lost-request-twice",
            "one request and its first retransmission",
            true,
            &[10, 11],
        ));
        cases.push(lost(road, "lost-answer", "one answer", false, &[8]));
    }
    cases.push(lost_syn(&link(20), true));
    cases.push(lost_syn(&link(20), false));
    for road in [link(20), link(100)] {
        cases.push(lost_end(&road, 1));
        cases.push(lost_end(&road, 3));
        cases.push(one_at_a_time(&road));
        cases.push(late_repair_acks(&road));
        cases.push(overtaken(&road));
    }
    for road in [link(1), link(20), link(100), offloaded(20)] {
        cases.push(holes(&road, "lost-in-upload", true, &[120]));
        cases.push(holes(&road, "lost-in-download", false, &[120]));
        cases.push(holes(&road, "four-lost-in-upload", true, &[120, 124, 125, 131]));
    }
    cases.push(random(&link(20)));
    cases.push(random(&link(100)));
}

fn lost(road: &Road, name: &str, what: &str, up: bool, segments: &[u64]) -> Case {
    let chat = Chat { exchanges: road.exchanges().min(20), ..Chat::default() };
    let story = format!("requests and answers of one small segment each; the link loses {what}");
    let mut case = case(Group::Single, name, &story, road, Traffic::Chat(chat), vec![causes::tail_loss(up)]);
    drop_data(&mut case.run, up, segments);
    case
}

/// Loses these data segments of one direction.
pub(super) fn drop_data(run: &mut Run, up: bool, segments: &[u64]) {
    run.wire(|wire| {
        let way = if up { &mut wire.ends.up } else { &mut wire.ends.down };
        way.drops.extend(segments.iter().map(|segment| Drop::Data(*segment)));
    });
}

fn lost_syn(road: &Road, up: bool) -> Case {
    let chat = Chat { exchanges: 20, ..Chat::default() };
    let (name, what, cause) = if up {
        ("lost-syn", "SYN", causes::lost_syn())
    } else {
        ("lost-syn-ack", "SYN-ACK", causes::lost_syn_ack())
    };
    let story = format!("requests and answers of one small segment each; the link loses the {what}");
    let mut case = case(Group::Single, name, &story, road, Traffic::Chat(chat), vec![cause]);
    case.run.wire(|wire| {
        let way = if up { &mut wire.ends.up } else { &mut wire.ends.down };
        way.drops.push(Drop::Syn(1));
    });
    case
}

/// Answers of 21 segments; the link loses the last ones of the eighth.
fn lost_end(road: &Road, count: u64) -> Case {
    let chat = Chat { exchanges: 12, response: vec![ANSWER], ..Chat::default() };
    let (name, cause) = match count {
        1 => ("lost-end", causes::tail_loss(false)),
        _ => ("lost-long-end", causes::long_tail_loss(false)),
    };
    let story = format!("answers of {ANSWER} bytes; the link loses the last {count} segments of the eighth");
    let mut case = case(Group::Single, name, &story, road, Traffic::Chat(chat), vec![cause]);
    let last = 8 * (ANSWER as u64).div_ceil(SEGMENT);
    drop_data(&mut case.run, false, &Vec::from_iter(last + 1 - count..=last));
    case.allowing(OPENS)
}

/// An answer that is no whole number of segments.
const ANSWER: usize = 30_000;
/// Such an answer is twice as long as the ten segments with which a new connection begins (RFC 6928), and so waits for
/// the window to open, as do those after a loss.
const OPENS: &[&str] = &["slow-start"];
/// Bytes of a full segment with timestamps on a path with an MTU of 1,500.
const SEGMENT: u64 = 1_448;

/// Data segments that are lost of one flight: every other one.
const EVERY_OTHER: [u64; 10] = [120, 122, 124, 126, 128, 130, 132, 134, 136, 138];

/// A client that mends one hole a round trip, since the server refuses SACK.
fn one_at_a_time(road: &Road) -> Case {
    let story =
        "1 MB goes up at 20 Mbit/s to a server that refuses SACK; the link loses ten segments of one flight";
    let causes = vec![causes::no_sack(), causes::loss()];
    let mut case = case(Group::Compound, "one-hole-a-round", story, road, bulk(true), causes);
    set_rate(&mut case.run, RATE);
    drop_data(&mut case.run, true, &EVERY_OTHER);
    case.run.no_sack = true;
    case.allowing(ONE_EXCHANGE)
}

/// The same, and the server ACKs what fills a hole late, as far as its client sees.
fn late_repair_acks(road: &Road) -> Case {
    let mut case = one_at_a_time(road);
    case.name = format!("late-repair-acks-{}", road.name());
    case.story += "; the ACK of what fills a hole is delayed by 100 ms";
    case.run.wire(|wire| wire.ends.down.hold_acks = Some(AckHold::HoleFilling(ms(100))));
    case.causes.insert(0, causes::late_repair_acks());
    case.only_at = Some(Vantage::Client);
    case
}

/// Segments are overtaken, which is no loss.
fn overtaken(road: &Road) -> Case {
    let chat = Chat { exchanges: 12, response: vec![ANSWER], ..Chat::default() };
    let story =
        format!("answers of {ANSWER} bytes; 2 % of the packets arrive up to 4 ms after those behind them");
    let mut case = case(Group::LookAlike, "overtaken", &story, road, Traffic::Chat(chat), Vec::new());
    case.run.wire(|wire| (wire.ends.down.reorder, wire.ends.down.reorder_by) = (0.02, ms(4)));
    case.allowing(OPENS)
}

/// What a link of 20 Mbit/s carries in a second and a half at most.
const BULK: usize = 1_000_000;
/// 20 Mbit/s.
pub(super) const RATE: Option<u64> = Some(20_000_000);

fn holes(road: &Road, name: &str, up: bool, segments: &[u64]) -> Case {
    let (way, from) = if up { ("up", Party::Client) } else { ("down", Party::Server) };
    let story = format!("1 MB goes {way} at 20 Mbit/s; the link loses its data segments {segments:?}");
    let mut case = case(Group::Single, name, &story, road, bulk(up), vec![causes::loss()]);
    set_rate(&mut case.run, RATE);
    drop_data(&mut case.run, up, segments);
    case.with_offload(road, from).allowing(ONE_EXCHANGE)
}

fn bulk(up: bool) -> Traffic {
    Traffic::Transfer(if up {
        Transfer { up: BULK, client: sender(), ..Transfer::default() }
    } else {
        Transfer { down: BULK, server: sender(), ..Transfer::default() }
    })
}

fn random(road: &Road) -> Case {
    let story = "1 MB goes up at 20 Mbit/s; the link loses 1 % of the packets at random";
    let causes = vec![causes::random_loss()];
    let mut case = case(Group::Single, "random-loss-in-upload", story, road, bulk(true), causes);
    set_rate(&mut case.run, RATE);
    case.run.wire(|wire| (wire.ends.up.loss, wire.ends.up.queue) = (0.01, Queue::Unlimited));
    case.allowing(ONE_EXCHANGE)
}
