//! Where there must be no figures.

use tcpwhy_simulate::tcp::Buffer;
use tcpwhy_simulate::tcp::eras;
use tcpwhy_simulate::whatif::{Effort, Fix, Unfit, ask, ask_within, connections};
use tcpwhy_simulate::world::{Act, Reader, Side, When};

use crate::build::{MS, answered, capture, chat, setup, step};

/// A host that stood still for two seconds in the middle of an upload, with segments on their way: no replay knows.
#[test]
fn a_host_that_stood_still() {
    let client = vec![step(When::Next, Act::Write(300_000)), step(When::Read(2), Act::Shutdown)];
    let server = vec![step(When::Read(300_000), Act::Write(2)), step(When::EndOfFile, Act::Shutdown)];
    let mut packets = capture(&setup(&eras::linux_6(), 50 * MS, client, server), Side::Client).0;
    assert!(answered(packets.clone(), &Fix::ALL).likeness.is_good());
    for packet in &mut packets[100..] {
        packet.time += 2_000_000_000;
    }
    let answer = answered(packets, &Fix::ALL);
    assert!(!answer.likeness.is_good(), "{:?}", answer.likeness);
    assert!(answer.gains.is_empty() && answer.idle.is_empty());
}

#[test]
fn a_reader_that_stops() {
    let client = vec![step(When::Next, Act::Write(300_000)), step(When::Read(2), Act::Shutdown)];
    let server = vec![step(When::Read(300_000), Act::Write(2)), step(When::EndOfFile, Act::Shutdown)];
    let mut setup = setup(&eras::linux_6(), 20 * MS, client, server);
    setup.server.receiver.buffer = Buffer::Fixed(30_000);
    setup.server_program.reader = Reader { not_before: 800 * MS, ..Reader::default() };
    let packets = capture(&setup, Side::Client).0;
    assert_eq!(ask(&[packets], [false; 2], &Fix::ALL), Err(Unfit::ClosedWindow));
}

#[test]
fn captures_that_lack_something() {
    let (client, server) = chat(5, &[64], 64);
    let packets = capture(&setup(&eras::linux_6(), 20 * MS, client, server), Side::Client).0;
    let asked = |packets: &[tcpwhy_wire::Packet]| ask(&[packets.to_vec()], [false; 2], &Fix::ALL).map(drop);
    assert_eq!(asked(&packets[3..]), Err(Unfit::NoHandshake));
    assert_eq!(asked(&packets[..3]), Err(Unfit::NoData));
    let mut cut = packets.clone();
    cut.remove(5);
    cut.remove(5);
    assert_eq!(asked(&cut), Err(Unfit::Gaps));
    assert_eq!(asked(&packets), Ok(()));
    assert!(ask(&[], [false; 2], &Fix::ALL).is_err());
}

/// Bounded work gives the same answer or none, and no more is done than was allowed.
#[test]
fn more_work_than_it_may_be() {
    let (client, server) = chat(30, &[16, 48], 64);
    let packets = vec![capture(&setup(&eras::linux_6(), 20 * MS, client, server), Side::Client).0];
    let all: Vec<_> = Fix::ALL.into_iter().flat_map(Fix::everywhere).collect();
    let within = |effort: &Effort| ask_within(effort, &packets, [false; 2], &all);
    let enough = Effort::of(1_000_000);
    assert_eq!(within(&enough), ask(&packets, [false; 2], &Fix::ALL));
    assert!((1_000..1_000_000).contains(&enough.spent()), "{}", enough.spent());
    for most in [0, 1, enough.spent() / 2, enough.spent()] {
        let little = Effort::of(most);
        assert_eq!(within(&little), Err(Unfit::TooMuchWork), "{most}");
        assert_eq!(little.spent(), most);
    }
    assert!(within(&Effort::of(enough.spent() + 1)).is_ok());
}

/// The same two sockets again: a new SYN is a new connection.
#[test]
fn connections_between_the_same_sockets() {
    let (client, server) = chat(1, &[64], 64);
    let first = capture(&setup(&eras::linux_6(), 20 * MS, client.clone(), server.clone()), Side::Client).0;
    let mut again = setup(&eras::linux_6(), 20 * MS, client, server);
    again.seed = 7;
    let second = capture(&again, Side::Client).0;
    let both: Vec<_> = first.iter().chain(&second).copied().collect();
    assert_eq!(connections(&both), [first, second]);
}
