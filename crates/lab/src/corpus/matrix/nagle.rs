//! Nagle's algorithm, the delayed ACK, corks.

use std::time::Duration;

use tcpwhy_simulate::link::AckHold;

use super::super::case::{Case, Group};
use super::super::run::Traffic;
use super::road::{LINKS, ROADS, Road, link, ms, offloaded};
use super::{case, causes};
use crate::capture::Vantage;
use crate::programs::chat::Chat;
use crate::programs::socket::Options;
use crate::programs::stream::{Feed, Stream};

/// A request in two writes, as programs that write header and body apart make it.
pub(super) const IN_TWO: [usize; 2] = [16, 48];
/// An answer in two writes.
pub(super) const ANSWER_IN_TWO: [usize; 2] = [120, 400];
/// A body of some segments behind its header: the full segments leave, the tail is held.
const LONG_BODY: [usize; 2] = [200, 3000];

pub(super) fn add(cases: &mut Vec<Case>) {
    for road in &ROADS {
        cases.push(split_request(road, "split-request", &IN_TWO));
        cases.push(split_response(road, "split-response", &ANSWER_IN_TWO));
        cases.push(cork(road));
    }
    for road in [link(20), link(100), offloaded(20)] {
        cases.push(split_request(&road, "split-long-request", &LONG_BODY));
        cases.push(split_response(&road, "split-long-response", &LONG_BODY));
    }
    for road in [Road::Loopback, link(20)] {
        cases.push(split_request(&road, "split-request-in-four", &[32; 4]));
        cases.push(cork_of_server(&road));
        cases.push(more(&road));
    }
    cases.push(split_request(&Road::Loopback, "split-request-in-chunks", &[8192, 8192, 8192, 500]));
    for road in [link(1), link(20)] {
        cases.push(delayed_ack(&road));
    }
    merged(cases);
    for road in &LINKS[1..] {
        bursts(cases, road);
    }
}

fn split_request(road: &Road, name: &str, pieces: &[usize]) -> Case {
    let chat = Chat { exchanges: road.exchanges(), request: pieces.to_vec(), ..Chat::default() };
    let story = format!(
        "the client writes each request in {} pieces of {pieces:?} bytes under Nagle's algorithm and waits for \
         the answer",
        pieces.len()
    );
    case(Group::Single, name, &story, road, Traffic::Chat(chat), vec![causes::split_request()])
}

fn split_response(road: &Road, name: &str, pieces: &[usize]) -> Case {
    let chat = Chat { exchanges: road.exchanges(), response: pieces.to_vec(), ..Chat::default() };
    let story =
        format!("the server writes each answer in pieces of {pieces:?} bytes under Nagle's algorithm");
    case(Group::Single, name, &story, road, Traffic::Chat(chat), vec![causes::split_response()])
}

/// Exchanges of 200 ms and more each.
const CORKED: usize = 12;

fn cork(road: &Road) -> Case {
    let client = Options { cork: true, ..Options::default() };
    let chat = Chat { exchanges: CORKED, client, ..Chat::default() };
    let story = "the client sets TCP_CORK, writes each request at once and never takes the cork off";
    case(Group::Single, "cork-kept", story, road, Traffic::Chat(chat), vec![causes::client_cork()])
}

fn cork_of_server(road: &Road) -> Case {
    let server = Options { cork: true, ..Options::default() };
    let chat = Chat { exchanges: CORKED, server, ..Chat::default() };
    let story = "the server sets TCP_CORK, writes each answer at once and never takes the cork off";
    case(Group::Single, "cork-kept-by-server", story, road, Traffic::Chat(chat), vec![causes::server_cork()])
}

fn more(road: &Road) -> Case {
    let client = Options { more: true, ..Options::default() };
    let chat = Chat { exchanges: CORKED, client, ..Chat::default() };
    let story = "the client writes each request at once, with MSG_MORE, and nothing follows";
    case(Group::Single, "more-on-last", story, road, Traffic::Chat(chat), vec![causes::client_cork()])
}

/// An ACK that waits for a second segment, or for 200 ms: what RFC 1122 4.2.3.2 allows at its laxest.
const LAX: AckHold = AckHold::Delay(Duration::from_millis(200));

/// After a pause the congestion window is down to its initial size again (RFC 5681 section 4.1): one segment.
fn delayed_ack(road: &Road) -> Case {
    let client = Options { congestion: Some("reno"), ..Options::default() };
    let pause = ms(600 + 2 * road.round_trip());
    let chat = Chat { exchanges: 12, request: vec![4_000], client, client_think: pause, ..Chat::default() };
    let story = "the client writes 4,000 bytes after a pause, with an initial window of one segment; the server \
                 delays its ACK of that one for 200 ms";
    let causes = vec![causes::delayed_ack()];
    let mut case = case(Group::Single, "delayed-ack-after-pause", story, road, Traffic::Chat(chat), causes);
    case.run.initial_window = Some(1);
    case.run.wire(|wire| wire.ends.down.hold_acks = Some(LAX));
    // The link plays the lax receiver: at the server's own end the ACKs are still in time.
    case.only_at = Some(Vantage::Client);
    // It does pause, on purpose.
    case.allowing(&["slow-client"])
}

/// The receiver of the 1990s: a timer of 200 ms that ticks whatever happens.
const OLD: AckHold = AckHold::Heartbeat(Duration::from_millis(200));

fn merged(cases: &mut Vec<Case>) {
    let story = "the server sends 12 bytes every 100 ms to a receiver of the 1990s, whose ACKs wait for data or \
                 for a 200 ms timer";
    for road in [link(1), link(20)] {
        let mut old = updates("merged-by-old-receiver", story, &road, 100);
        old.run.wire(|wire| wire.ends.up.hold_acks = Some(OLD));
        // The link plays the old receiver: at the client's own end the ACKs are still in time.
        old.only_at = Some(Vantage::Server);
        cases.push(old);
    }
    let story = "the server sends 12 bytes every 50 ms over a round trip of 100 ms, under Nagle's algorithm";
    cases.push(updates("merged-by-round-trip", story, &link(100), 50));
    let story = "the server sends 12 bytes every 100 ms over a round trip of 300 ms, under Nagle's algorithm";
    cases.push(updates("merged-by-round-trip", story, &link(300), 100));

    let up = Stream { up: Some(Feed::even(80, ms(30), 40)), ..Stream::default() };
    let story = "the client sends 40 bytes every 30 ms over a round trip of 100 ms, under Nagle's algorithm";
    let road = link(100);
    let causes = vec![causes::merged_up()];
    cases.push(case(Group::Single, "merged-telemetry", story, &road, Traffic::Stream(up), causes));
}

fn updates(name: &str, story: &str, road: &Road, period: u64) -> Case {
    let stream = Stream { down: Some(Feed::even(50, ms(period), 12)), ..Stream::default() };
    let causes = vec![causes::merged_down()];
    case(Group::Single, name, story, road, Traffic::Stream(stream), causes)
}

/// Time between bursts: longer than each burst's last message takes.
const BETWEEN_BURSTS: Duration = Duration::from_millis(300);

fn bursts(cases: &mut Vec<Case>, road: &Road) {
    let feed = Feed { messages: vec![50, 70], ..Feed::even(15, BETWEEN_BURSTS, 0) };
    let up = Stream { up: Some(feed.clone()), ..Stream::default() };
    let story = "the client writes two messages every 300 ms, one right after the other, and gets no answers";
    let causes = vec![causes::burst_up()];
    cases.push(case(Group::Single, "two-at-once", story, road, Traffic::Stream(up), causes));
    let down = Stream { down: Some(feed), ..Stream::default() };
    let story = "the server writes two messages every 300 ms, one right after the other, and gets no answers";
    let causes = vec![causes::burst_down()];
    cases.push(case(Group::Single, "two-at-once-down", story, road, Traffic::Stream(down), causes));
}
