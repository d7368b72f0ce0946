//! Lost segments: noticed by a timer, or by what came behind them.

use tcpwhy_simulate::link::{Drop, Queue};

use super::super::case::{Case, Group, Party};
use super::super::run::{Run, Traffic};
use super::road::{LINKS, Road, link, offloaded};
use super::windows::{ONE_EXCHANGE, sender, set_rate};
use super::{case, causes};
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
    cases.push(lost_syn(&link(20)));
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

fn lost_syn(road: &Road) -> Case {
    let chat = Chat { exchanges: 20, ..Chat::default() };
    let story = "requests and answers of one small segment each; the link loses the SYN";
    let causes = vec![causes::lost_syn()];
    let mut case = case(Group::Single, "lost-syn", story, road, Traffic::Chat(chat), causes);
    case.run.wire(|wire| wire.ends.up.drops.push(Drop::Syn(1)));
    case
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
