//! Primitives of the filter language to comparisons of the packet's bytes, from the network header on.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::Instruction;
use super::emit::{Expression, Test};

/// Offsets from here on count from the network header: `SKF_NET_OFF` of `<linux/filter.h>`.
pub(super) const NETWORK: u32 = 0xfff0_0000;

// Instructions of `<linux/bpf_common.h>`, with the class, size and mode that are needed.
pub(super) const LOAD_WORD: u16 = 0x20;
pub(super) const LOAD_HALF: u16 = 0x28;
pub(super) const LOAD_BYTE: u16 = 0x30;
pub(super) const LOAD_HALF_BEHIND_X: u16 = 0x48;
/// The packet's length.
pub(super) const LOAD_LENGTH: u16 = 0x80;
/// X becomes the length of the IPv4 header at an offset.
pub(super) const HEADER_LENGTH_TO_X: u16 = 0xb1;
pub(super) const AND: u16 = 0x54;
pub(super) const IF_EQUAL: u16 = 0x15;
pub(super) const IF_GREATER: u16 = 0x25;
pub(super) const IF_AT_LEAST: u16 = 0x35;
pub(super) const IF_BITS: u16 = 0x45;

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
/// The IPv6 extension header of a fragment.
const FRAGMENT: u8 = 44;
/// Bytes of an IPv6 header without extensions.
const IPV6_HEADER: u32 = 40;
/// The fragment offset among the bytes at 6 of an IPv4 header.
const FRAGMENT_OFFSET: u32 = 0x1fff;

/// Which end of a packet is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Source,
    Destination,
    Either,
    Both,
}

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

fn compare(load: Vec<Instruction>, compare: u16, with: u32) -> Expression {
    Expression::Test(Test { load, compare, with })
}

fn plain(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

fn at(code: u16, offset: u32) -> Instruction {
    plain(code, NETWORK + offset)
}

fn byte_is(offset: u32, value: u8) -> Expression {
    compare(vec![at(LOAD_BYTE, offset)], IF_EQUAL, value.into())
}

pub(super) fn version(version: Version) -> Expression {
    let number = match version {
        Version::V4 => 0x40,
        Version::V6 => 0x60,
    };
    compare(vec![at(LOAD_BYTE, 0), plain(AND, 0xf0)], IF_EQUAL, number)
}

/// IP of that version with that protocol; for IPv6, also in a fragment.
pub(super) fn protocol(of: Version, number: u8) -> Expression {
    let is = match of {
        Version::V4 => byte_is(9, number),
        Version::V6 => byte_is(6, number).or(byte_is(6, FRAGMENT).and(byte_is(IPV6_HEADER, number))),
    };
    version(of).and(is)
}

/// Either version with that protocol.
pub(super) fn transport(number: u8) -> Expression {
    protocol(Version::V6, number).or(protocol(Version::V4, number))
}

/// `test` of the wanted end; it is given whether the source is meant.
fn at_end(end: End, test: impl Fn(bool) -> Expression) -> Expression {
    match end {
        End::Source => test(true),
        End::Destination => test(false),
        End::Either => test(true).or(test(false)),
        End::Both => test(true).and(test(false)),
    }
}

/// Addresses of which the first `prefix` bits are those of `address`.
pub(super) fn network(end: End, address: IpAddr, prefix: u32) -> Expression {
    match address {
        IpAddr::V4(address) => {
            let mask = mask(prefix);
            let test = |source| words(if source { 12 } else { 16 }, &[(address.to_bits(), mask)]);
            version(Version::V4).and(at_end(end, test))
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            let parts: Vec<_> = (0..4)
                .map(|i| ((bits >> (96 - 32 * i)) as u32, mask(prefix.saturating_sub(32 * i).min(32))))
                .collect();
            let test = |source| words(if source { 8 } else { 24 }, &parts);
            version(Version::V6).and(at_end(end, test))
        }
    }
}

/// The first `bits` (at most 32) of a word.
fn mask(bits: u32) -> u32 {
    u32::MAX.checked_shl(32 - bits).unwrap_or(0)
}

/// Words from an offset on, each with the bits of it that count. At least the first is compared.
fn words(offset: u32, words: &[(u32, u32)]) -> Expression {
    let test = |(i, (value, mask)): (usize, &(u32, u32))| {
        let mut load = vec![at(LOAD_WORD, offset + 4 * i as u32)];
        if *mask != u32::MAX {
            load.push(plain(AND, *mask));
        }
        compare(load, IF_EQUAL, value & mask)
    };
    let counting = words.iter().enumerate().skip(1).filter(|(_, (_, mask))| *mask != 0);
    counting.map(test).fold(test((0, &words[0])), Expression::and)
}

/// Segments and datagrams with a port in `ports`: of that transport, or of any that has ports.
pub(super) fn ports(end: End, transport: Option<u8>, ports: &RangeInclusive<u16>) -> Expression {
    let transports = transport.map_or_else(|| vec![SCTP, TCP, UDP], |one| vec![one]);
    let any = |offset| {
        let mut tests = transports.iter().map(|number| byte_is(offset, *number));
        let first = tests.next().unwrap_or_else(|| byte_is(offset, TCP));
        tests.fold(first, Expression::or)
    };
    let in_v6 = |source| in_range(vec![at(LOAD_HALF, IPV6_HEADER + if source { 0 } else { 2 })], ports);
    let in_v4 = |source| {
        let port = at(LOAD_HALF_BEHIND_X, if source { 0 } else { 2 });
        in_range(vec![at(HEADER_LENGTH_TO_X, 0), port], ports)
    };
    // Only a datagram's first fragment has ports.
    let first = compare(vec![at(LOAD_HALF, 6)], IF_BITS, FRAGMENT_OFFSET).negated();
    let v6 = version(Version::V6).and(any(6)).and(at_end(end, in_v6));
    let v4 = version(Version::V4).and(any(9)).and(first).and(at_end(end, in_v4));
    v6.or(v4)
}

fn in_range(load: Vec<Instruction>, range: &RangeInclusive<u16>) -> Expression {
    let (low, high) = (u32::from(*range.start()), u32::from(*range.end()));
    if low == high {
        return compare(load, IF_EQUAL, low);
    }
    compare(load.clone(), IF_AT_LEAST, low).and(compare(load, IF_GREATER, high).negated())
}

/// Packets of at least so many bytes, with their link-layer header.
pub(super) fn at_least(length: u32) -> Expression {
    compare(vec![plain(LOAD_LENGTH, 0)], IF_AT_LEAST, length)
}

/// Packets of more than so many bytes.
pub(super) fn more_than(length: u32) -> Expression {
    compare(vec![plain(LOAD_LENGTH, 0)], IF_GREATER, length)
}

/// The protocol number of a transport that is written before `port`.
pub(super) fn number_of(word: &str) -> Option<u8> {
    match word {
        "tcp" => Some(TCP),
        "udp" => Some(UDP),
        "sctp" => Some(SCTP),
        _ => None,
    }
}
