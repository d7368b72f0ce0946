//! What the sender's side waits for: its congestion window, its buffer, and the queue that it fills.

use super::super::case::{Case, Group};
use super::super::run::Traffic;
use super::road::{Road, link, ms};
use super::windows::{ONE_EXCHANGE, sender, set_rate};
use super::{case, causes};
use crate::programs::chat::Chat;
use crate::programs::socket::Options;
use crate::programs::transfer::Transfer;

/// 100 Mbit/s: a path that covers what is sent here in less than a round trip.
const WIDE: Option<u64> = Some(100_000_000);
/// 50 Mbit/s.
const MODEST: Option<u64> = Some(50_000_000);
/// 2 Mbit/s: 100 ms of queue are 25 KB.
const NARROW: Option<u64> = Some(2_000_000);
/// 20 Mbit/s.
const MARKED: Option<u64> = Some(20_000_000);
/// Packets in the queue from which on it marks: far fewer than a round trip of 100 ms has on its way at that rate, so
/// that the halved window leaves the path empty.
const MARKS_ABOVE: usize = 8;

pub(super) fn add(cases: &mut Vec<Case>) {
    for road in [link(20), link(100)] {
        cases.push(slow_start(&road));
        cases.push(idle_restart(&road));
        cases.push(send_buffer(&road));
    }
    cases.push(bloat(&link(20)));
    cases.push(marks(&link(100)));
}

/// The first receive window, 64 KB at most (RFC 7323 section 2.2), has room for it: the congestion window alone is what
/// the transfer waits for.
fn slow_start(road: &Road) -> Case {
    let transfer = Transfer { up: 60_000, client: sender(), ..Transfer::default() };
    let story = "the client uploads 60 KB at 100 Mbit/s on a new connection";
    let traffic = Traffic::Transfer(transfer);
    let mut case = case(Group::Single, "slow-start", story, road, traffic, vec![causes::slow_start()]);
    set_rate(&mut case.run, WIDE);
    case.run.wide_windows = true;
    case.allowing(ONE_EXCHANGE)
}

/// That the client rests before each request is true besides.
fn idle_restart(road: &Road) -> Case {
    let server = Options { congestion: sender().congestion, ..Options::default() };
    let chat =
        Chat { exchanges: 6, response: vec![200_000], server, client_think: ms(900), ..Chat::default() };
    let story = "the client rests 900 ms before each request, and each answer of 200 KB begins with a window that has \
                 fallen back";
    let causes = vec![causes::idle_restart()];
    let mut case = case(Group::Single, "idle-restart", story, road, Traffic::Chat(chat), causes);
    set_rate(&mut case.run, WIDE);
    case.allowing(&["slow-client"])
}

fn send_buffer(road: &Road) -> Case {
    let client = Options { send_buffer: Some(8_192), ..sender() };
    let transfer = Transfer { up: 2_000_000, client, ..Transfer::default() };
    let story = "the client uploads 2 MB at 50 Mbit/s through a socket with SO_SNDBUF 8192";
    let traffic = Traffic::Transfer(transfer);
    let causes = vec![causes::send_buffer()];
    let mut case = case(Group::Single, "small-send-buffer", story, road, traffic, causes);
    set_rate(&mut case.run, MODEST);
    case.allowing(ONE_EXCHANGE)
}

fn bloat(road: &Road) -> Case {
    let transfer = Transfer { up: 700_000, client: sender(), ..Transfer::default() };
    let story = "the client uploads 700 KB at 2 Mbit/s through a queue that takes everything";
    let traffic = Traffic::Transfer(transfer);
    let mut case = case(Group::Single, "bufferbloat", story, road, traffic, vec![causes::bloat()]);
    set_rate(&mut case.run, NARROW);
    case.allowing(ONE_EXCHANGE)
}

fn marks(road: &Road) -> Case {
    let transfer = Transfer { up: 3_000_000, client: sender(), ..Transfer::default() };
    let story = format!(
        "the client uploads 3 MB at 20 Mbit/s; both ends speak ECN, and the link marks packets that find {MARKS_ABOVE} \
         others in its queue"
    );
    let traffic = Traffic::Transfer(transfer);
    let mut case = case(Group::Single, "ecn-marks", &story, road, traffic, vec![causes::marks()]);
    set_rate(&mut case.run, MARKED);
    case.run.ecn = true;
    case.run.wide_windows = true;
    case.run.wire(|wire| wire.ends.up.mark_above = Some(MARKS_ABOVE));
    case.allowing(ONE_EXCHANGE)
}
