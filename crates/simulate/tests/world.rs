//! Two endpoints and a link, run to the end.

use std::time::Duration;

use tcpwhy_simulate::link::{Ends, Settings};
use tcpwhy_simulate::tcp::eras;
use tcpwhy_simulate::world::{Act, End, Program, Setup, Side, Step, When, World, frame, packet};
use tcpwhy_wire::container::{Frame, LinkType};
use tcpwhy_wire::decode::decode;

const MS: Duration = Duration::from_millis(1);

fn download(bytes: u64, ends: Ends) -> Setup {
    let step = |when, act| Step { when, delay: Duration::ZERO, act };
    Setup {
        client: eras::linux_6(),
        server: eras::linux_6(),
        client_program: Program {
            steps: vec![step(When::Next, Act::Write(100)), step(When::EndOfFile, Act::Close)],
            ..Program::default()
        },
        server_program: Program {
            steps: vec![step(When::Read(100), Act::Write(bytes)), step(When::Next, Act::Close)],
            ..Program::default()
        },
        ends,
        seed: 1,
    }
}

#[test]
fn a_download_arrives_whole_and_both_ends_close() {
    let ends = Ends::round_trip(22 * MS);
    let mut world = World::new(&download(100_000, ends));
    assert_eq!(world.run(60_000_000_000), End::Over);
    assert_eq!(world.log(Side::Client).reads.last().map(|read| read.1), Some(100_000));
}

#[test]
fn losses_are_repaired() {
    let lossy = Settings { delay: 11 * MS, loss: 0.05, ..Settings::default() };
    for seed in 0..200 {
        let setup = Setup { seed, ..download(300_000, Ends { up: lossy.clone(), down: lossy.clone() }) };
        let mut world = World::new(&setup);
        let end = world.run(600_000_000_000);
        let read = world.log(Side::Client).reads.last().map(|read| read.1);
        assert_eq!((end, read), (End::Over, Some(300_000)), "seed {seed}");
    }
}

#[test]
fn what_is_seen_decodes_to_itself() {
    let lossy = Settings { delay: 11 * MS, loss: 0.05, ..Settings::default() };
    let mut world = World::new(&download(100_000, Ends { up: lossy.clone(), down: lossy }));
    world.run(60_000_000_000);
    for (number, seen) in (1..).zip(world.seen(Side::Client)) {
        let data = frame(seen);
        assert_eq!(data.len(), seen.segment.packet_len());
        let expected = packet(number, seen);
        let captured = Frame {
            time: expected.time,
            link: LinkType::RAW,
            original_len: data.len() as u32,
            interface: 0,
            data: &data,
        };
        assert_eq!(decode(&captured, number), Ok(expected));
    }
}
