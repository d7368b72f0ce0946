//! TCP options, well-formed and not.

use tcpwhy_wire::container::LinkType;
use tcpwhy_wire::{TcpFlags, TcpOptions};

use crate::frames::{IPV4, TCP, TIMESTAMPS, concat, decoded_cut, decoded_tcp, ethernet, ipv4, tcp};

const ETHERNET: LinkType = LinkType::ETHERNET;

/// What `options` say, padded to whole words with end-of-list.
fn read(options: &[u8]) -> TcpOptions {
    let padding = options.len().next_multiple_of(4) - options.len();
    let padded = concat(&[options, &[0; 3][..padding]]);
    decoded_tcp(ETHERNET, &ethernet(IPV4, &ipv4(TCP, &tcp(&padded, 0)))).options
}

fn sack(blocks: &[(u32, u32)]) -> TcpOptions {
    let mut options = TcpOptions::default();
    blocks.iter().for_each(|&(left, right)| options.sack.push(left, right));
    options
}

#[test]
fn none() {
    assert_eq!(read(&[]), TcpOptions::default());
    assert_eq!(read(&[1, 1, 1, 1]), TcpOptions::default());
    assert_eq!(read(&[0; 40]), TcpOptions::default());
}

#[test]
fn timestamps_wherever_they_stand() {
    let expected = TcpOptions { timestamps: Some((0x1112_1314, 0x2122_2324)), ..TcpOptions::default() };
    assert_eq!(read(&TIMESTAMPS), expected);
    assert_eq!(read(&TIMESTAMPS[2..]), expected, "first, then padding");
    assert_eq!(read(&concat(&[&TIMESTAMPS[2..], &[1, 1]])), expected, "first, then NOP");
    assert_eq!(read(&concat(&[&[1], &TIMESTAMPS[2..]])), expected, "after one NOP");
}

/// The handshake of Linux: MSS 1460, SACK permitted, timestamps, window scale 7.
#[test]
fn a_syn_of_linux() {
    let options = [2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];
    let expected = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some((9, 0)),
        ..TcpOptions::default()
    };
    assert_eq!(read(&options), expected);
}

/// RFC 7323 section 2.3.
#[test]
fn window_scales_above_14_count_as_14() {
    assert_eq!(read(&[3, 3, 14]).window_scale, Some(14));
    assert_eq!(read(&[3, 3, 15]).window_scale, Some(14));
    assert_eq!(read(&[3, 3, 255]).window_scale, Some(14));
}

#[test]
fn one_to_four_sack_blocks() {
    let block = |n: u8| [0, 0, n, 0, 0, 0, n, 100];
    let pair = |n: u32| (n << 8, (n << 8) + 100);
    assert_eq!(read(&concat(&[&[1, 1, 5, 10], &block(1)])), sack(&[pair(1)]));
    let four = concat(&[&[1, 1, 5, 34], &block(4), &block(3), &block(2), &block(1)]);
    assert_eq!(read(&four), sack(&[pair(4), pair(3), pair(2), pair(1)]));

    let after_timestamps = concat(&[&TIMESTAMPS, &[1, 1, 5, 26], &block(1), &block(2), &block(3)]);
    let expected =
        TcpOptions { timestamps: Some((0x1112_1314, 0x2122_2324)), ..sack(&[pair(1), pair(2), pair(3)]) };
    assert_eq!(read(&after_timestamps), expected);
}

#[test]
fn unknown_options_are_skipped() {
    let fast_open_cookie = [34, 10, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(read(&concat(&[&fast_open_cookie, &[2, 4, 0x05, 0xb4]])).mss, Some(1460));
}

/// A length that does not belong to the option voids that option alone.
#[test]
fn a_wrong_length_voids_the_option() {
    assert_eq!(read(&[2, 3, 5, 3, 3, 7]), TcpOptions { window_scale: Some(7), ..TcpOptions::default() });
    assert_eq!(read(&[5, 9, 0, 0, 0, 0, 0, 0, 0, 3, 3, 7]).sack, TcpOptions::default().sack);
    assert_eq!(read(&[4, 3, 0, 3, 3, 7]), TcpOptions { window_scale: Some(7), ..TcpOptions::default() });
    assert_eq!(read(&[8, 9, 0, 0, 0, 0, 0, 0, 0, 3, 3, 7]).timestamps, None);
}

/// A length that cannot be ends the walk; what stood before it counts.
#[test]
fn an_impossible_length_ends_the_walk() {
    let mss = [2, 4, 0x05, 0xb4];
    let expected = TcpOptions { mss: Some(1460), ..TcpOptions::default() };
    for lie in [[3, 0, 3, 7], [3, 1, 3, 7], [3, 5, 3, 7], [3, 255, 3, 7]] {
        assert_eq!(read(&concat(&[&mss, &lie])), expected, "{lie:?}");
    }
    assert_eq!(read(&concat(&[&mss, &[1, 1, 1, 3]])), expected, "a kind without a length");
    assert_eq!(read(&concat(&[&mss, &[0, 3, 3, 7]])), expected, "beyond the end of the list");
}

#[test]
fn options_in_front_of_the_cut_are_read() {
    let options = [2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];
    let bytes = ethernet(IPV4, &ipv4(TCP, &tcp(&options, 0)));
    let stored = 14 + 20 + 20 + 10;
    let packet = decoded_cut(ETHERNET, &bytes[..stored], bytes.len()).expect("the fixed header is there");
    let tcpwhy_wire::Transport::Tcp(tcp) = packet.transport else { panic!("TCP") };
    let expected = TcpOptions { mss: Some(1460), sack_permitted: true, ..TcpOptions::default() };
    assert_eq!(tcp.options, expected);
}

/// All nine flags and none of the reserved bits.
#[test]
fn flags() {
    let mut bytes = ethernet(IPV4, &ipv4(TCP, &tcp(&[], 0)));
    let at = 14 + 20 + 12;
    (bytes[at], bytes[at + 1]) = (0x5f, 0xff);
    assert_eq!(decoded_tcp(ETHERNET, &bytes).flags, TcpFlags(0x1ff));
    (bytes[at], bytes[at + 1]) = (0x50, 0x02);
    assert_eq!(decoded_tcp(ETHERNET, &bytes).flags, TcpFlags(TcpFlags::SYN));
}
