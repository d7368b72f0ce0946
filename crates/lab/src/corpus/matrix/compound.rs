//! Two causes on one connection.

use super::super::case::{Case, Cause, Group};
use super::super::run::Traffic;
use super::loss::drop_data;
use super::nagle::{ANSWER_IN_TWO, IN_TWO};
use super::road::{ROADS, Road, link, ms};
use super::windows::{ONE_EXCHANGE, sender, set_rate, stops};
use super::{case, causes};
use crate::programs::chat::Chat;
use crate::programs::socket::Options;
use crate::programs::transfer::Transfer;

pub(super) fn add(cases: &mut Vec<Case>) {
    for road in &ROADS {
        split_on_both_sides(cases, road);
        slow_server_and_split(cases, road);
        slow_server_and_split_answer(cases, road);
    }
    for road in [link(1), link(20), link(100)] {
        split_and_loss(cases, &road);
        slow_server_and_connections(cases, &road);
    }
    for road in [Road::Loopback, link(20)] {
        slow_client_and_split(cases, &road);
        slow_on_both_sides(cases, &road);
    }
    split_and_connections(cases, &link(20));
    cork_and_slow_server(cases, &link(1));
    small_window_and_slow_reader(cases, &link(20));
    small_window_and_loss(cases, &link(20));
    small_window_and_loss(cases, &link(100));
    slow_server_and_loss(cases, &link(20));
}

fn chat(road: &Road) -> Chat {
    Chat { exchanges: road.exchanges(), ..Chat::default() }
}

/// A server's work that stands out on a road and leaves a delayed ACK unsent.
fn work(road: &Road) -> u64 {
    30 + road.round_trip()
}

fn of_chat(cases: &mut Vec<Case>, name: &str, story: &str, road: &Road, chat: Chat, causes: Vec<Cause>) {
    cases.push(case(Group::Compound, name, story, road, Traffic::Chat(chat), causes));
}

fn split_on_both_sides(cases: &mut Vec<Case>, road: &Road) {
    let chat = Chat { request: IN_TWO.to_vec(), response: ANSWER_IN_TWO.to_vec(), ..chat(road) };
    let story = "client and server write each message in two pieces under Nagle's algorithm";
    of_chat(cases, "split-both", story, road, chat, vec![causes::split_request(), causes::split_response()]);
}

fn slow_server_and_split(cases: &mut Vec<Case>, road: &Road) {
    let chat = Chat { request: IN_TWO.to_vec(), server_think: ms(work(road)), ..chat(road) };
    let story = format!(
        "the client splits its requests under Nagle's algorithm, and the server works {} ms on each",
        work(road)
    );
    let causes = vec![causes::split_request(), causes::slow_server()];
    of_chat(cases, "split-request-slow-server", &story, road, chat, causes);
}

fn slow_server_and_split_answer(cases: &mut Vec<Case>, road: &Road) {
    let chat = Chat { response: ANSWER_IN_TWO.to_vec(), server_think: ms(work(road)), ..chat(road) };
    let story = format!(
        "the server works {} ms on each request and writes the answer in two pieces under Nagle's algorithm",
        work(road)
    );
    let causes = vec![causes::split_response(), causes::slow_server()];
    of_chat(cases, "split-response-slow-server", &story, road, chat, causes);
}

fn split_and_loss(cases: &mut Vec<Case>, road: &Road) {
    let chat = Chat { request: IN_TWO.to_vec(), ..chat(road) };
    let story = "the client splits its requests under Nagle's algorithm, and the link loses a request's head and \
                 later a tail";
    let causes = vec![causes::split_request(), causes::tail_loss(true)];
    let mut case = case(Group::Compound, "split-request-lost", story, road, Traffic::Chat(chat), causes);
    drop_data(&mut case.run, true, &[7, 15]);
    // A head that the probe's SACK mends shows at the receiver as a repair like any other.
    cases.push(case.allowing(&["fast-recovery"]));
}

fn slow_server_and_loss(cases: &mut Vec<Case>, road: &Road) {
    let chat = Chat { server_think: ms(work(road)), ..chat(road) };
    let story = format!("the server works {} ms on each request, and the link loses one answer", work(road));
    let causes = vec![causes::slow_server(), causes::tail_loss(false)];
    let mut case = case(Group::Compound, "slow-server-lost", &story, road, Traffic::Chat(chat), causes);
    drop_data(&mut case.run, false, &[8]);
    cases.push(case);
}

fn slow_server_and_connections(cases: &mut Vec<Case>, road: &Road) {
    let chat = Chat { connect_each: true, server_think: ms(work(road)), ..chat(road) };
    let story = format!(
        "the client makes a new connection for every request, and the server works {} ms on each",
        work(road)
    );
    // 1 ms of 31 for a handshake is too little to be worth a word.
    let name = "connection-each-slow-server";
    of_chat(cases, name, &story, road, chat, vec![causes::handshakes(), causes::slow_server()]);
}

fn split_and_connections(cases: &mut Vec<Case>, road: &Road) {
    let chat = Chat { connect_each: true, request: IN_TWO.to_vec(), ..chat(road) };
    let story = "the client makes a new connection for every request and writes it in two pieces";
    // A new connection ACKs at once, so that it hides what a kept one would wait: its removal costs more than
    // it saves. That each request pays a handshake is true all the same.
    let handshakes = Cause { costs: false, ..causes::handshakes() };
    let causes = vec![handshakes, causes::split_request()];
    of_chat(cases, "connection-each-split-request", story, road, chat, causes);
}

fn slow_client_and_split(cases: &mut Vec<Case>, road: &Road) {
    let think = 60 + 4 * road.round_trip();
    let chat = Chat { client_think: ms(think), request: IN_TWO.to_vec(), ..chat(road) };
    let story = format!("the client works {think} ms before each request and writes it in two pieces");
    let causes = vec![causes::slow_client(), causes::split_request()];
    of_chat(cases, "split-request-slow-client", &story, road, chat, causes);
}

fn slow_on_both_sides(cases: &mut Vec<Case>, road: &Road) {
    let (client, server) = (90 + 2 * road.round_trip(), 20 + road.round_trip());
    let chat = Chat { client_think: ms(client), server_think: ms(server), ..chat(road) };
    let story = format!("the client works {client} ms before each request and the server {server} ms on it");
    let causes = vec![causes::slow_client(), causes::slow_server()];
    of_chat(cases, "slow-both", &story, road, chat, causes);
}

fn cork_and_slow_server(cases: &mut Vec<Case>, road: &Road) {
    let client = Options { cork: true, ..Options::default() };
    let chat = Chat { exchanges: 12, client, server_think: ms(120), ..Chat::default() };
    let story = "the client never takes its cork off, and the server works 120 ms on each request";
    of_chat(cases, "cork-slow-server", story, road, chat, vec![causes::client_cork(), causes::slow_server()]);
}

/// SO_RCVBUF of a receiver whose window is smaller than the path.
const SMALL: usize = 8_192;

fn small_window_and_slow_reader(cases: &mut Vec<Case>, road: &Road) {
    let server = Options { receive_buffer: Some(SMALL), ..Options::default() };
    let (_, rate, mut reader) = stops(road);
    reader.works_every = 100_000;
    let transfer = Transfer { up: 500_000, client: sender(), server, reader, ..Transfer::default() };
    let story = "the client uploads 500 KB to a server with SO_RCVBUF 8192 that does something else for 300 ms \
                 after each 100 KB";
    let causes = vec![causes::small_window_up(), causes::slow_reader_up()];
    let traffic = Traffic::Transfer(transfer);
    let mut case = case(Group::Compound, "small-window-slow-reader", story, road, traffic, causes);
    set_rate(&mut case.run, rate);
    cases.push(case.allowing(ONE_EXCHANGE));
}

fn small_window_and_loss(cases: &mut Vec<Case>, road: &Road) {
    let server = Options { receive_buffer: Some(SMALL * 4), ..Options::default() };
    let transfer = Transfer { up: 900_000, client: sender(), server, ..Transfer::default() };
    let story = "the client uploads 900 KB to a server with SO_RCVBUF 32768; the link loses three segments";
    let causes = vec![causes::small_window_up(), causes::loss()];
    let traffic = Traffic::Transfer(transfer);
    let mut case = case(Group::Compound, "small-window-lost", story, road, traffic, causes);
    drop_data(&mut case.run, true, &[150, 250, 350]);
    cases.push(case.allowing(ONE_EXCHANGE));
}
