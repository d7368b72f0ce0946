//! Programs are run by a small interpreter and held against libpcap's on the packets of the example captures.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::lower::{
    AND, HEADER_LENGTH_TO_X, IF_AT_LEAST, IF_BITS, IF_EQUAL, IF_GREATER, LOAD_BYTE, LOAD_HALF,
    LOAD_HALF_BEHIND_X, LOAD_LENGTH, LOAD_WORD, NETWORK,
};
use super::*;

/// Only libpcap's programs have it.
const LOAD_BYTE_BEHIND_X: u16 = 0x50;

/// Knows one host with two addresses, and one service.
struct Few;

impl Names for Few {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        match name {
            "both" => vec![Ipv4Addr::new(10, 0, 0, 1).into(), Ipv6Addr::LOCALHOST.into()],
            _ => Vec::new(),
        }
    }

    fn port(&self, name: &str) -> Option<u16> {
        (name == "http").then_some(80)
    }
}

/// What a program says of a packet that begins with its network header; panics on what the kernel would reject.
fn accepts(program: &[Instruction], packet: &[u8]) -> bool {
    let (mut a, mut x, mut at) = (0_u32, 0_u32, 0);
    let number = |offset: u32, bytes: usize| -> Option<u32> {
        let from = offset.wrapping_sub(NETWORK) as usize;
        let bytes = packet.get(from..from.checked_add(bytes)?)?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    };
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let loaded = match code {
            LOAD_WORD => number(k, 4),
            LOAD_HALF => number(k, 2),
            LOAD_BYTE => number(k, 1),
            LOAD_HALF_BEHIND_X => number(k.wrapping_add(x), 2),
            LOAD_BYTE_BEHIND_X => number(k.wrapping_add(x), 1),
            LOAD_LENGTH => Some(packet.len() as u32),
            AND => Some(a & k),
            HEADER_LENGTH_TO_X => match number(k, 1) {
                Some(byte) => {
                    x = 4 * (byte & 0xf);
                    continue;
                }
                None => return false,
            },
            emit::JUMP => {
                at += k as usize;
                continue;
            }
            emit::RETURN => return k > 0,
            _ => {
                let holds = match code {
                    IF_EQUAL => a == k,
                    IF_GREATER => a > k,
                    IF_AT_LEAST => a >= k,
                    IF_BITS => a & k != 0,
                    other => panic!("instruction {other:#x}"),
                };
                at += usize::from(if holds { jt } else { jf });
                continue;
            }
        };
        match loaded {
            Some(loaded) => a = loaded,
            // The kernel rejects a packet that ends before what is asked for.
            None => return false,
        }
    }
}

/// An IPv4 packet: protocol, addresses, ports, words of options, fragment offset.
fn v4(protocol: u8, from: ([u8; 4], u16), to: ([u8; 4], u16), options: u8, fragment: u16) -> Vec<u8> {
    let mut packet = vec![0x45 + options, 0, 0, 40, 0, 0];
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(from.0.iter().chain(&to.0));
    packet.extend(vec![1; usize::from(options) * 4]);
    packet.extend(from.1.to_be_bytes().iter().chain(&to.1.to_be_bytes()));
    packet.extend([0; 16]);
    packet
}

/// An IPv6 packet with one header before TCP or UDP at most.
fn v6(next: u8, from: (Ipv6Addr, u16), to: (Ipv6Addr, u16)) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 20, next, 64];
    packet.extend(from.0.octets().iter().chain(&to.0.octets()));
    packet.extend(from.1.to_be_bytes().iter().chain(&to.1.to_be_bytes()));
    packet.extend([0; 16]);
    packet
}

fn packets() -> Vec<Vec<u8>> {
    let (a, b) = ([10, 0, 0, 1], [192, 168, 7, 9]);
    let far: Ipv6Addr = "2001:db8:1::9".parse().expect("an address");
    let mut all = Vec::new();
    for protocol in [1, 6, 17, 44, 47, 132] {
        for (options, fragment) in [(0, 0), (5, 0), (0, 0x4000), (0, 0x2010), (2, 0x0001)] {
            all.push(v4(protocol, (a, 50_000), (b, 80), options, fragment));
            all.push(v4(protocol, (b, 443), (a, 6001), options, fragment));
        }
    }
    for next in [6, 17, 44, 58, 132] {
        all.push(v6(next, (far, 50_000), (Ipv6Addr::LOCALHOST, 80)));
        all.push(v6(next, (Ipv6Addr::LOCALHOST, 443), (far, 6001)));
    }
    // The fragment header's first byte is the protocol.
    let mut fragment = v6(44, (far, 0), (Ipv6Addr::LOCALHOST, 0));
    fragment[40] = 6;
    all.push(fragment);
    all.push(v4(6, (a, 1), (b, 80), 0, 0)[..22].to_vec());
    all.push(vec![0x45]);
    all.push(Vec::new());
    all
}

const EXPRESSIONS: [&str; 32] = [
    "tcp",
    "udp",
    "ip",
    "ip6",
    "icmp",
    "icmp6",
    "port 80",
    "tcp port 80",
    "udp dst port 6001",
    "src port 443",
    "src or dst port 443",
    "src and dst port 443",
    "portrange 6000-6010",
    "tcp portrange 440-50000",
    "host 10.0.0.1",
    "src host 10.0.0.1",
    "dst 10.0.0.1",
    "ip host 192.168.7.9",
    "net 10.0.0.0/8",
    "net 10",
    "src net 192.168",
    "net 192.168.0.0 mask 255.255.0.0",
    "host ::1",
    "dst host 2001:db8:1::9",
    "net 2001:db8::/32",
    "ip6 net 2001:db8:1::/48",
    "net ::/0",
    "tcp and port 80 or udp and not host ::1",
    "not (tcp or udp)",
    "port 80 or 443 and !icmp",
    "tcp port 80 && (src 10.0.0.1 || src 2001:db8:1::9)",
    "greater 41 and less 44",
];

#[test]
fn libpcap_accepts_the_same_packets() {
    let packets = packets();
    let mut differing = Vec::new();
    for expression in EXPRESSIONS {
        let own = compile_own(expression, &Few).expect(expression);
        let Some(theirs) = libpcap::compile(expression) else {
            let _ =
                writeln!(io::stderr(), "SKIPPED libpcap_accepts_the_same_packets: libpcap is not installed");
            return;
        };
        let theirs = theirs.expect(expression);
        for packet in &packets {
            if accepts(&own, packet) != accepts(&theirs, packet) {
                differing.push((expression, packet));
            }
        }
    }
    assert!(differing.is_empty(), "{differing:02x?}");
}

/// Which of two packets an expression accepts: 10.0.0.1:50000 to 192.168.7.9:80, and the answer.
fn both_ways(expression: &str) -> [bool; 2] {
    let program = compile_own(expression, &Few).expect(expression);
    let (client, server) = (([10, 0, 0, 1], 50_000), ([192, 168, 7, 9], 80));
    [accepts(&program, &v4(6, client, server, 0, 0)), accepts(&program, &v4(6, server, client, 0, 0))]
}

#[test]
fn what_is_asked_for_is_accepted() {
    let cases = [
        ("port 80", [true, true]),
        ("dst port 80", [true, false]),
        ("src port 80", [false, true]),
        ("port http", [true, true]),
        ("udp port 80", [false, false]),
        ("host both", [true, true]),
        ("src host both", [true, false]),
        ("src both and dst port 80", [true, false]),
        ("not src both", [false, true]),
        ("!port 80", [false, false]),
        ("port 443 or 80", [true, true]),
        // From left to right, not "and" first: (port 1 or tcp) and src port 80.
        ("port 1 or tcp and src port 80", [false, true]),
        ("port 1 or (tcp and src port 80)", [false, true]),
        ("tcp or port 1 and src port 80", [false, true]),
        ("tcp or (port 1 and src port 80)", [true, true]),
        ("portrange 79-81", [true, true]),
        ("portrange 81-79", [true, true]),
        ("portrange 81-90", [false, false]),
        ("net 192.168.0.0/16", [true, true]),
        ("dst net 192.168.0.0/16", [true, false]),
        ("net 192.169.0.0/16", [false, false]),
        ("less 40", [true, true]),
        ("greater 41", [false, false]),
    ];
    for (expression, expected) in cases {
        assert_eq!(both_ways(expression), expected, "{expression}");
    }
}

#[test]
fn mistakes_are_named() {
    let cases = [
        ("port", "a port is missing after \"port\""),
        ("port 99999", "port 99999 is above 65535"),
        ("port nosuch", "no port is called \"nosuch\""),
        ("host nosuch", "\"nosuch\" is neither an address nor a host that can be found"),
        ("tcp host 10.0.0.1", "tcp has no addresses of its own: say \"tcp and\" before the host or net"),
        ("ip port 80", "ip has no ports"),
        ("ip6 host 10.0.0.1", "10.0.0.1 is no IPv6 address"),
        ("port 80 and", "a port is missing after \"and\""),
        ("(port 80", "a ( without its )"),
        ("port 80)", "a ) without its ("),
        ("port 80 81", "\"81\" is not expected after \"80\""),
        ("net 10.0.0.1/8", "\"10.0.0.1/8\" has bits beyond its mask of 8"),
        ("net 10.0.0.0/33", "\"10.0.0.0/33\" is no net, such as 10.0.0.0/8"),
        ("net 10.0.0.0 mask 255.0.255.0", "\"255.0.255.0\" is no mask"),
        ("portrange 80", "\"80\" is no range of ports, such as 6000-6010"),
        ("src or src port 1", "\"src or src\" says the same twice"),
        ("and", "a host is expected instead of \"and\""),
    ];
    for (expression, expected) in cases {
        let error = compile_own(expression, &Few).expect_err(expression).to_string();
        assert_eq!(error, expected, "{expression}");
    }
}

#[test]
fn nothing_asked_for_accepts_everything() {
    assert_eq!(compile_own("  ", &Few), Ok(Vec::new()));
}

#[test]
fn the_rest_of_the_language_is_left_to_libpcap() {
    let syn = "tcp[tcpflags] & tcp-syn != 0";
    compile_own(syn, &Few).expect_err("not read here");
    let Some(program) = libpcap::compile(syn) else {
        let _ = writeln!(io::stderr(), "SKIPPED the_rest_of_the_language…: libpcap is not installed");
        return;
    };
    let program = program.expect("a program");
    let mut packet = v4(6, ([1, 2, 3, 4], 5), ([6, 7, 8, 9], 10), 0, 0);
    assert!(!accepts(&program, &packet));
    packet[20 + 13] = 0x02;
    assert!(accepts(&program, &packet));
    compile("ether host 1:2:3:4:5:6").expect_err("no link layer in the program");
}

#[test]
fn long_expressions_reach_their_ends_or_are_refused() {
    let ports: Vec<_> = (1..=60).map(|port| format!("port {port}")).collect();
    let program = compile_own(&ports.join(" or "), &Few).expect("a program");
    // Comparisons alone would not reach that far.
    assert!(program.len() > 512, "{}", program.len());
    for (port, expected) in [(1, true), (30, true), (60, true), (61, false)] {
        let packet = v4(6, ([1, 2, 3, 4], 1_000), ([6, 7, 8, 9], port), 0, 0);
        assert_eq!(accepts(&program, &packet), expected, "{port}");
    }
    let ports: Vec<_> = (1..=500).map(|port| format!("port {port}")).collect();
    compile_own(&ports.join(" or "), &Few).expect_err("too long for the kernel");
    compile_own(&"(".repeat(100_000), &Few).expect_err("too long to read");
    compile_own(&"not ".repeat(10_000), &Few).expect_err("nested too deep");
    compile_own(&"tcp or ".repeat(5_000), &Few).expect_err("too many terms");
}

/// Words of the language and others, in any order.
fn word() -> impl Strategy<Value = String> {
    let words = "and or not ! ( ) && || host net port portrange src dst ip ip6 tcp udp icmp less greater mask 80 \
                 10.0.0.1 10/8 ::1 2001:db8::/32 1-2 both http vlan tcp[13] é";
    let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
    prop::sample::select(words)
}

proptest! {
    #[test]
    fn any_text_is_a_program_or_an_error(text in "\\PC*", packet in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(program) = compile_own(&text, &Few) && !program.is_empty() {
            accepts(&program, &packet);
        }
    }

    #[test]
    fn any_words_are_a_program_that_ends_or_an_error(
        words in prop::collection::vec(word(), 1..24),
        packet in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let text = words.join(" ");
        if let Ok(program) = compile_own(&text, &Few) {
            let yes = accepts(&program, &packet);
            // Only what is asked for in all of the packet can be turned round.
            if packet.len() >= 64 && packet[0] == 0x45 {
                let turned = compile_own(&format!("not ({text})"), &Few).expect("longer by a negation");
                prop_assert_ne!(yes, accepts(&turned, &packet));
            }
        }
    }
}
