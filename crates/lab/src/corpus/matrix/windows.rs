//! Receive windows: too small for the path, or kept shut by the reader.

use super::super::case::{Case, Group, Party};
use super::super::run::{Run, Traffic};
use super::road::{Road, link, ms, offloaded};
use super::{case, causes};
use crate::programs::socket::Options;
use crate::programs::transfer::{Reader, Transfer};

/// The congestion control of bulk senders: what most hosts have.
pub(super) const CUBIC: Option<&str> = Some("cubic");

/// A sender's socket.
pub(super) fn sender() -> Options {
    Options { congestion: CUBIC, ..Options::default() }
}

/// A capture with one exchange cannot tell whether the client connects each time; its rule says so, at low
/// confidence.
pub(super) const ONE_EXCHANGE: &[&str] = &["handshake-per-request"];

pub(super) fn add(cases: &mut Vec<Case>) {
    for (road, bytes, buffer) in [
        (link(1), 600_000, 4_096),
        (link(20), 900_000, 8_192),
        (link(100), 900_000, 16_384),
        (offloaded(20), 900_000, 8_192),
    ] {
        cases.push(small(&road, bytes, buffer, true));
        cases.push(small(&road, bytes, buffer, false));
    }
    cases.push(late_window(&link(100), 4_000_000));
    cases.push(late_window(&offloaded(20), 1_500_000));
    for road in [Road::Loopback, link(1), link(20), link(100), offloaded(20)] {
        cases.push(slow_reader(&road, true));
    }
    for road in [Road::Loopback, link(20)] {
        cases.push(slow_reader(&road, false));
    }
}

fn small(road: &Road, bytes: usize, buffer: usize, up: bool) -> Case {
    let small = Options { receive_buffer: Some(buffer), ..Options::default() };
    let (name, story, transfer, causes) = if up {
        (
            "small-window",
            format!(
                "the client uploads {bytes} bytes to a server with SO_RCVBUF {buffer} that reads at once"
            ),
            Transfer { up: bytes, client: sender(), server: small, ..Transfer::default() },
            vec![causes::small_window_up()],
        )
    } else {
        (
            "small-window-down",
            format!("a client with SO_RCVBUF {buffer} downloads {bytes} bytes and reads at once"),
            Transfer { down: bytes, server: sender(), client: small, ..Transfer::default() },
            vec![causes::small_window_down()],
        )
    };
    case(Group::Single, name, &story, road, Traffic::Transfer(transfer), causes).allowing(ONE_EXCHANGE)
}

/// Linux sizes the window and lags behind: what it costs differs from run to run, and each run says its own.
fn late_window(road: &Road, bytes: usize) -> Case {
    let transfer = Transfer { up: bytes, client: sender(), ..Transfer::default() };
    let story = format!(
        "the client uploads {bytes} bytes over a link without a rate; the server's kernel widens its window as it \
         learns how much comes"
    );
    let causes = vec![causes::small_window_up()];
    case(Group::Single, "late-window", &story, road, Traffic::Transfer(transfer), causes)
        .with_offload(road, Party::Client)
        .allowing(ONE_EXCHANGE)
}

/// How much goes over a road to a reader that stops now and then, for longer than its buffer of 200 KB lasts:
/// bytes in all, the link's rate (which the buffer covers), the bytes between two stops, and a stop's length.
pub(super) fn stops(road: &Road) -> (usize, Option<u64>, Reader) {
    let (bytes, rate, works_every, work) = match road.round_trip() {
        0..=1 => (2_100_000, None, 600_000, ms(100)),
        2..=50 => (2_100_000, Some(20_000_000), 600_000, ms(300)),
        _ => (1_500_000, Some(8_000_000), 450_000, ms(600)),
    };
    (bytes, rate, Reader { works_every, work, ..Reader::default() })
}

/// Sets the rate of both directions.
pub(super) fn set_rate(run: &mut Run, rate: Option<u64>) {
    run.wire(|wire| (wire.ends.up.rate, wire.ends.down.rate) = (rate, rate));
}

fn slow_reader(road: &Road, up: bool) -> Case {
    let (bytes, rate, reader) = stops(road);
    let stop = format!("{} ms after each {} KB", reader.work.as_millis(), reader.works_every / 1000);
    let (name, story, transfer, sender) = if up {
        (
            "slow-reader",
            format!("the client uploads {bytes} bytes; the server does something else for {stop}"),
            Transfer { up: bytes, client: sender(), server: bounded(), reader, ..Transfer::default() },
            (causes::slow_reader_up(), Party::Client),
        )
    } else {
        (
            "slow-reader-down",
            format!("the client downloads {bytes} bytes and does something else for {stop}"),
            Transfer { down: bytes, server: sender(), client: bounded(), reader, ..Transfer::default() },
            (causes::slow_reader_down(), Party::Server),
        )
    };
    let mut case = case(Group::Single, name, &story, road, Traffic::Transfer(transfer), vec![sender.0]);
    set_rate(&mut case.run, rate);
    // The server's last stop may come before its last word.
    case.with_offload(road, sender.1).allowing(ONE_EXCHANGE).allowing(&["slow-server"])
}

/// A buffer (the kernel doubles it) that the reader's stops fill, and that the path does not need.
pub(super) fn bounded() -> Options {
    Options { receive_buffer: Some(200_000), ..Options::default() }
}
