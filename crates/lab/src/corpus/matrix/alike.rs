//! Traffic that looks like another cause's, and is not.

use super::super::case::{Case, Group};
use super::super::run::Traffic;
use super::nagle::{ANSWER_IN_TWO, IN_TWO};
use super::programs::{slow_client, slow_server};
use super::road::{ROADS, Road, link, ms};
use super::{case, causes};
use crate::programs::chat::Chat;
use crate::programs::socket::Options;
use crate::programs::stream::{Feed, Stream};

/// A server's work that takes as long as a delayed ACK (40 ms, up to a tick of 4 ms late), or as a cork's timer.
const LIKE_A_TIMER: [u64; 5] = [40, 42, 44, 200, 204];

pub(super) fn add(cases: &mut Vec<Case>) {
    for work in LIKE_A_TIMER {
        cases.push(slow_server(&Road::Loopback, work, Group::LookAlike));
        cases.push(slow_server(&link(1), work, Group::LookAlike));
    }
    for work in [42, 200] {
        cases.push(slow_server(&link(20), work, Group::LookAlike));
    }
    for road in [Road::Loopback, link(20)] {
        cases.push(slow_client(&road, 41, Group::LookAlike));
        cases.push(beat(&road, 40, true));
        cases.push(beat(&road, 200, true));
        cases.push(beat(&road, 44, false));
    }
    for road in &ROADS[..3] {
        cases.push(two_flushes(road, 60, false));
        cases.push(two_flushes(road, 25, true));
    }
    for road in &ROADS {
        cases.push(pieces_with_nodelay(road, true));
        cases.push(pieces_with_nodelay(road, false));
    }
}

/// A sender whose own beat is a timer's. Each message waits for nothing.
fn beat(road: &Road, period: u64, down: bool) -> Case {
    let feed = Feed::even((4000 / period).min(60) as usize, ms(period), 40);
    let (name, whose) = if down { ("beat", "server") } else { ("beat-up", "client") };
    let stream = if down {
        Stream { down: Some(feed), ..Stream::default() }
    } else {
        Stream { up: Some(feed), ..Stream::default() }
    };
    let story = format!("the {whose} sends 40 bytes every {period} ms; each message leaves at once");
    let traffic = Traffic::Stream(stream);
    case(Group::LookAlike, &format!("{name}-{period}"), &story, road, traffic, Vec::new())
}

/// The work between the two writes is longer than the first one's ACK takes, or the option is on: TCP holds
/// nothing back.
fn two_flushes(road: &Road, work: u64, nodelay: bool) -> Case {
    let work = work + road.round_trip();
    let server = Options { nodelay, ..Options::default() };
    let chat = Chat {
        exchanges: road.exchanges(),
        response: ANSWER_IN_TWO.to_vec(),
        server,
        server_pauses: ms(work),
        ..Chat::default()
    };
    let (name, with) = if nodelay { ("two-flushes-nodelay", "with") } else { ("two-flushes", "without") };
    let story = format!(
        "the server writes half of each answer, works {work} ms and writes the rest, {with} TCP_NODELAY; nothing \
         is held back"
    );
    case(Group::LookAlike, name, &story, road, Traffic::Chat(chat), vec![causes::two_flushes()])
}

fn pieces_with_nodelay(road: &Road, by_client: bool) -> Case {
    let nodelay = Options { nodelay: true, ..Options::default() };
    let chat = Chat { exchanges: road.exchanges(), ..Chat::default() };
    let (name, story, chat) = if by_client {
        (
            "pieces-with-nodelay",
            "the client writes each request in two pieces with TCP_NODELAY",
            Chat { request: IN_TWO.to_vec(), client: nodelay, ..chat },
        )
    } else {
        (
            "answer-in-pieces-with-nodelay",
            "the server writes each answer in two pieces with TCP_NODELAY",
            Chat { response: ANSWER_IN_TWO.to_vec(), server: nodelay, ..chat },
        )
    };
    case(Group::LookAlike, name, story, road, Traffic::Chat(chat), Vec::new())
}
