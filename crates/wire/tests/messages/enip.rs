//! EtherNet/IP.

use super::{Kind, Protocol, read, recognise, says_in};

/// A command of this session, with data.
fn command(command: u8, session: u8, data: &[u8]) -> Vec<u8> {
    let len = data.len() as u8;
    let header = [command, 0, len, 0, session, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0];
    [&header[..], data].concat()
}

/// A CIP message outside a connection, and one in it.
fn unconnected(cip: &[u8]) -> Vec<u8> {
    let items = [0, 0, 0, 0, 10, 0, 2, 0, 0, 0, 0, 0, 0xb2, 0, cip.len() as u8, 0];
    command(0x6f, 7, &[&items[..], cip].concat())
}

fn connected(cip: &[u8]) -> Vec<u8> {
    let items = [0, 0, 0, 0, 0, 0, 2, 0, 0xa1, 0, 4, 0, 9, 9, 9, 9, 0xb1, 0, cip.len() as u8 + 2, 0, 1, 0];
    command(0x70, 7, &[&items[..], cip].concat())
}

#[test]
fn services_ask_and_answer() {
    let is = |bytes: &[u8], kind, name: &str| {
        assert_eq!(says_in(Protocol::EtherNetIp, bytes), (kind, name.to_owned()));
    };
    is(&unconnected(&[0x52, 2, 0x20, 6, 0x24, 1]), Kind::Asks, "Unconnected Send");
    is(&unconnected(&[0x81, 0, 0, 0, 1, 2]), Kind::Answers, "Get Attributes All");
    is(&connected(&[0x4c, 3, 0x91, 4, b'a', b'b', b'c', b'd', 1, 0]), Kind::Asks, "Read Tag");
    is(&connected(&[0xcc, 0, 0, 0, 0xc4, 0, 1, 0, 0, 0]), Kind::Answers, "Read Tag");
    is(&unconnected(&[0x37, 0, 0]), Kind::Asks, "CIP service");
}

#[test]
fn sessions_and_lists() {
    let is = |bytes: &[u8], kind, name: &str| {
        assert_eq!(says_in(Protocol::EtherNetIp, bytes), (kind, name.to_owned()));
    };
    is(&command(0x65, 0, &[1, 0, 0, 0]), Kind::Asks, "Register Session");
    is(&command(0x65, 7, &[1, 0, 0, 0]), Kind::Answers, "Register Session");
    is(&command(0x63, 0, &[]), Kind::Asks, "List Identity");
    is(&command(0x04, 0, &[1, 0, 0, 0]), Kind::Answers, "List Services");
    is(&command(0x66, 7, &[]), Kind::Neither, "Unregister Session");
}

#[test]
fn what_was_not_stored_is_told_by_who_sent_it() {
    let bytes = connected(&[0x4c, 0, 1, 0]);
    let message = recognise(&bytes[..42], bytes.len() as u32).expect("known");
    assert_eq!((message.kind, message.protocol), (Kind::Either, Protocol::EtherNetIp));
    assert_eq!(message.expected_len(), Some(bytes.len() as u32));
}

#[test]
fn near_misses_are_unknown() {
    let not =
        |bytes: &[u8]| assert_ne!(read(bytes).map(|message| message.protocol), Some(Protocol::EtherNetIp));
    let changed = |at: usize, byte: u8| {
        let mut bytes = unconnected(&[0x52, 2, 0x20, 6, 0x24, 1]);
        bytes[at] = byte;
        bytes
    };
    // A longer length, options, another interface, three items, an address of its own kind, an answer that is none.
    for (at, byte) in [(2, 200), (20, 1), (24, 1), (30, 3), (32, 5), (36, 7)] {
        not(&changed(at, byte));
    }
    not(&unconnected(&[0x81, 9, 0, 0]));
    not(&command(0x65, 0, &[1, 0, 0]));
    // PostgreSQL's data of a COPY, which begins with the same letter as a list of interfaces.
    not(b"d\0\0\0\x20\x01\x02\x03some row of a table, and more\n");
}
