//! Programs that let TCP wait.

use super::super::case::{Case, Group};
use super::super::run::Traffic;
use super::road::{LINKS, ROADS, Road, link, ms};
use super::{case, causes};
use crate::programs::chat::Chat;
use crate::programs::stream::{Feed, Stream};

pub(super) fn add(cases: &mut Vec<Case>) {
    for road in &ROADS {
        cases.push(slow_server(road, 15 + 2 * road.round_trip(), Group::Single));
        cases.push(slow_client(road, 30 + 2 * road.round_trip(), Group::Single));
        cases.push(late(road, true));
    }
    // On loopback a new connection costs system calls, and no journey.
    for road in &LINKS {
        cases.push(connection_each(road));
    }
    for road in &ROADS[..3] {
        cases.push(slow_now_and_then(road));
    }
    cases.push(slow_server(&Road::Loopback, 120, Group::Single));
    cases.push(slow_server(&link(20), 250, Group::Single));
    cases.push(late(&link(20), false));
}

/// A server that works so many ms on each request.
pub(super) fn slow_server(road: &Road, work: u64, group: Group) -> Case {
    let exchanges = road.exchanges().min(if work > 100 { 15 } else { 40 });
    let chat = Chat { exchanges, server_think: ms(work), ..Chat::default() };
    let story = format!("the server works {work} ms on each request, which the client writes at once");
    let name = format!("slow-server-{work}");
    case(group, &name, &story, road, Traffic::Chat(chat), vec![causes::slow_server()])
}

/// A client that works so many ms before each request.
pub(super) fn slow_client(road: &Road, work: u64, group: Group) -> Case {
    let exchanges = road.exchanges().min(if work > 100 { 15 } else { 40 });
    let chat = Chat { exchanges, client_think: ms(work), ..Chat::default() };
    let story = format!("the client works {work} ms before each request");
    let name = format!("slow-client-{work}");
    case(group, &name, &story, road, Traffic::Chat(chat), vec![causes::slow_client()])
}

/// Only an interactive connection delays its ACKs: Linux enters that mode when answers follow requests within
/// 40 ms, and leaves it when the timer of a delayed ACK expires. So the ACK of every fourth request goes out
/// before its answer.
fn slow_now_and_then(road: &Road) -> Case {
    let chat = Chat { exchanges: 60, server_think: ms(48), server_thinks_every: 4, ..Chat::default() };
    let story = "the server answers at once but for every fourth request, on which it works 48 ms; its delayed \
                 ACK of that request goes out before the answer";
    let causes = vec![causes::slow_server()];
    case(Group::LookAlike, "slow-server-now-and-then", story, road, Traffic::Chat(chat), causes)
}

fn connection_each(road: &Road) -> Case {
    let chat = Chat { exchanges: road.exchanges(), connect_each: true, ..Chat::default() };
    let story = "the client makes a new connection for every request";
    let causes = vec![causes::handshakes()];
    case(Group::Single, "connection-each", story, road, Traffic::Chat(chat), causes)
}

fn late(road: &Road, down: bool) -> Case {
    let feed = Feed { late_every: 9, late_by: ms(90), ..Feed::even(80, ms(50), 60) };
    let (name, whose) = if down { ("late-updates", "server") } else { ("late-updates-up", "client") };
    let (stream, cause) = if down {
        (Stream { down: Some(feed), ..Stream::default() }, causes::late_down())
    } else {
        (Stream { up: Some(feed), ..Stream::default() }, causes::late_up())
    };
    let stream = with_nodelay(stream);
    let story =
        format!("the {whose} sends 60 bytes every 50 ms; one in nine is 90 ms late and the next catches up");
    case(Group::Single, name, &story, road, Traffic::Stream(stream), vec![cause])
}

/// Both sides with `TCP_NODELAY`.
pub(super) fn with_nodelay(mut stream: Stream) -> Stream {
    (stream.client.nodelay, stream.server.nodelay) = (true, true);
    stream
}
