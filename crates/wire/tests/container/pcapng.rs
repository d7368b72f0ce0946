use crate::build::{Big, Little, Order, Seen, block, enhanced, interface, option, read, section, simple};
use tcpwhy_wire::container::{Comment, LinkType};

const COMMENT: u16 = 1;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const END: [u8; 4] = [0; 4];

fn frame(time: i64, link: LinkType, original_len: u32, interface: u32, data: &[u8]) -> Seen {
    Seen { time, link, original_len, interface, data: data.to_vec() }
}

#[test]
fn enhanced_packets_of_two_interfaces_in_both_byte_orders() {
    for order in [Little, Big] {
        let file = [
            section(order, &[]),
            interface(order, 1, 0, &[]),
            interface(order, 276, 96, &[]),
            enhanced(order, 0, 1_700_000_000_123_456, 5, b"fives", &[]),
            enhanced(order, 1, 5_000_000_000, 9000, b"four", &[]),
            enhanced(order, 0, 0, 0, b"", &[]),
        ]
        .concat();
        let content = read(&file[..]);
        assert_eq!(
            content.frames,
            [
                frame(1_700_000_000_123_456_000, LinkType::ETHERNET, 5, 0, b"fives"),
                frame(5_000_000_000_000, LinkType::LINUX_SLL2, 9000, 1, b"four"),
                frame(0, LinkType::ETHERNET, 0, 0, b""),
            ],
            "{order:?}"
        );
        assert_eq!((content.kind, content.notes.len(), content.dropped), ("pcapng", 0, None));
    }
}

#[test]
fn time_resolutions_and_offsets_are_those_of_the_interface() {
    for order in [Little, Big] {
        let nanos = option(order, IF_TSRESOL, &[9]);
        let halves = option(order, IF_TSRESOL, &[0x80 | 1]);
        let shifted = [option(order, IF_TSOFFSET, &order.u64(1_000)), END.to_vec()].concat();
        let earlier = option(order, IF_TSOFFSET, &order.u64((-2_i64) as u64));
        // An option that is cut by its block's end says nothing.
        let broken = [order.u16(IF_TSRESOL), order.u16(400)].concat();
        let mut file = section(order, &[]);
        for options in [nanos, halves, shifted, earlier, broken] {
            file.extend(interface(order, 1, 0, &options));
        }
        for id in 0..5 {
            file.extend(enhanced(order, id, 3_000_001, 1, b"x", &[]));
        }
        let times: Vec<i64> = read(&file[..]).frames.iter().map(|frame| frame.time).collect();
        let micros = 3_000_001_000;
        let expected = [3_000_001, 1_500_000_500_000_000, micros + 1_000_000_000_000, 1_000_001_000, micros];
        assert_eq!(times, expected, "{order:?}");
    }
}

#[test]
fn a_new_section_brings_its_own_byte_order_and_interfaces() {
    let file = [
        section(Little, &[]),
        interface(Little, 1, 0, &[]),
        interface(Little, 113, 0, &[]),
        enhanced(Little, 1, 1, 1, b"a", &[]),
        section(Big, &[]),
        interface(Big, 101, 0, &option(Big, IF_TSRESOL, &[9])),
        enhanced(Big, 0, 1, 1, b"b", &[]),
        section(Little, &[]),
        interface(Little, 228, 0, &[]),
        enhanced(Little, 0, 2, 1, b"c", &[]),
    ]
    .concat();
    let content = read(&file[..]);
    assert_eq!(
        content.frames,
        [
            frame(1_000, LinkType::LINUX_SLL, 1, 1, b"a"),
            frame(1, LinkType::RAW, 1, 2, b"b"),
            frame(2_000, LinkType::IPV4, 1, 3, b"c"),
        ]
    );
    assert!(content.notes.is_empty());
}

#[test]
fn simple_packets_are_cut_by_the_snapshot_length_and_have_no_time() {
    for order in [Little, Big] {
        let file = [
            section(order, &[]),
            interface(order, 1, 6, &[]),
            interface(order, 113, 2, &[]),
            enhanced(order, 1, 4, 2, b"ti", &[]),
            simple(order, 100, b"sixsix"),
            simple(order, 3, b"abc"),
        ]
        .concat();
        let content = read(&file[..]);
        assert_eq!(
            content.frames[1..],
            [
                frame(4_000, LinkType::ETHERNET, 100, 0, b"sixsix"),
                frame(4_000, LinkType::ETHERNET, 3, 0, b"abc"),
            ]
        );
        assert_eq!(content.notes.len(), 1);
        assert!(
            content.notes[0].starts_with("Stored without a time (simple packet blocks): 2 packets."),
            "{:?}",
            content.notes
        );
    }
}

#[test]
fn a_simple_packet_without_a_snapshot_length_fills_its_block() {
    let file =
        [section(Little, &[]), interface(Little, 1, 0, &[]), simple(Little, 9000, b"eightbyt")].concat();
    assert_eq!(read(&file[..]).frames, [frame(0, LinkType::ETHERNET, 9000, 0, b"eightbyt")]);
}

#[test]
fn old_packet_blocks() {
    for order in [Little, Big] {
        let mut body = [order.u16(1), order.u16(77)].concat(); // Interface, drops.
        for word in [0, 42, 3, 60] {
            body.extend(order.u32(word));
        }
        body.extend(b"abc\0");
        body.extend(option(order, COMMENT, b"old"));
        let file = [
            section(order, &[]),
            interface(order, 1, 0, &[]),
            interface(order, 101, 0, &[]),
            block(order, 2, &body),
        ]
        .concat();
        let content = read(&file[..]);
        assert_eq!(content.frames, [frame(42_000, LinkType::RAW, 60, 1, b"abc")]);
        assert_eq!(content.comments, [Comment { frame: Some(1), text: "old".into() }]);
    }
}

#[test]
fn unknown_blocks_are_skipped_even_if_longer_than_any_buffer() {
    for order in [Little, Big] {
        let file = [
            section(order, &[]),
            interface(order, 1, 0, &[]),
            block(order, 0x0000_000a, &vec![0x5a; 3_000_000]), // Decryption secrets.
            block(order, 4, b"names"),
            block(order, 0x8000_0abc, b""),
            enhanced(order, 0, 1, 1, b"x", &[]),
        ]
        .concat();
        let content = read(&file[..]);
        assert_eq!(content.frames, [frame(1_000, LinkType::ETHERNET, 1, 0, b"x")]);
        assert!(content.notes.is_empty());
    }
}

#[test]
fn comments_of_sections_interfaces_and_frames() {
    let order = Big;
    let two =
        [option(order, COMMENT, b"one"), option(order, 2, &[0, 0, 0, 1]), option(order, COMMENT, b"two")];
    let file = [
        section(order, &option(order, COMMENT, "lab\u{e9}".as_bytes())),
        interface(order, 1, 0, &option(order, COMMENT, b"eth0")),
        enhanced(order, 0, 1, 1, b"x", &[]),
        enhanced(order, 0, 1, 1, b"x", &two.concat()),
        enhanced(order, 0, 1, 3, b"xyz", &[&END[..], &option(order, COMMENT, b"after the end")].concat()),
    ]
    .concat();
    let comment = |frame, text: &str| Comment { frame, text: text.into() };
    let content = read(&file[..]);
    assert_eq!(
        content.comments,
        [comment(None, "lab\u{e9}"), comment(None, "eth0"), comment(Some(2), "one"), comment(Some(2), "two")]
    );
    assert!(content.notes.is_empty());
}

#[test]
fn comments_are_bounded_and_what_is_left_out_is_said() {
    let long = option(Little, COMMENT, &[b'x'; 5_000]);
    let mut file = [section(Little, &[]), interface(Little, 1, 0, &[])].concat();
    for _ in 0..1_003 {
        file.extend(enhanced(Little, 0, 1, 1, b"x", &long));
    }
    let content = read(&file[..]);
    assert_eq!(content.frames.len(), 1_003);
    assert_eq!(content.comments.len(), 1_000);
    assert!(content.comments.iter().all(|comment| comment.text.len() == 1_024));
    assert_eq!(content.notes, ["Left out: 3 more comments in the file."]);
}

fn statistics(order: Order, interface: u32, if_drop: u64, os_drop: u64) -> Vec<u8> {
    let mut body = order.u32(interface).to_vec();
    body.extend(order.u64(0));
    body.extend(option(order, 4, &order.u64(999))); // Received.
    body.extend(option(order, 5, &order.u64(if_drop)));
    body.extend(option(order, 7, &order.u64(os_drop)));
    block(order, 5, &body)
}

#[test]
fn drops_add_up_over_interfaces_and_sections_and_the_last_count_holds() {
    let part = |order, counts: &[(u32, u64)]| {
        let mut bytes =
            [section(order, &[]), interface(order, 1, 0, &[]), interface(order, 1, 0, &[])].concat();
        for (id, count) in counts {
            bytes.extend(statistics(order, *id, *count, 1));
        }
        bytes
    };
    let file = [part(Little, &[(0, 5), (1, 7), (0, 10), (9, 4_000)]), part(Big, &[(1, 100)])].concat();
    let content = read(&file[..]);
    assert_eq!(content.dropped, Some(11 + 8 + 101));
    assert!(content.notes[0].starts_with("The capturing host dropped 120 packets"), "{:?}", content.notes);

    let one = part(Little, &[(0, 0)]);
    let content = read(&one[..]);
    assert_eq!(content.dropped, Some(1));
    assert!(content.notes[0].starts_with("The capturing host dropped 1 packet:"), "{:?}", content.notes);
    let unknown = [section(Little, &[]), interface(Little, 1, 0, &[])].concat();
    assert_eq!(read(&unknown[..]).dropped, None);
}

/// Reads one good packet, then `bad`, then another good one, and gives the only note and the offset of `bad`.
fn damage(bad: &[u8]) -> (String, usize) {
    let good = enhanced(Little, 0, 1, 1, b"x", &[]);
    let before = [section(Little, &[]), interface(Little, 1, 0, &[]), good.clone()].concat();
    let file = [&before, bad, &good].concat();
    let mut content = read(&file[..]);
    assert_eq!(content.frames.len(), 1);
    assert_eq!(content.notes.len(), 1, "{:?}", content.notes);
    (content.notes.remove(0), before.len())
}

#[test]
fn damage_ends_the_file_at_its_offset() {
    let good = enhanced(Little, 0, 1, 4, b"abcd", &[]);
    let patched = |at: usize, value: u32| {
        let mut bytes = good.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let mut other_version = section(Little, &[]);
    other_version[12] = 2;
    let mut no_order = section(Little, &[]);
    no_order[8] = 0;
    let cases = [
        ("length of no block", patched(4, 8)),
        ("length of no packet", patched(4, 28)),
        ("odd length", patched(4, 37)),
        ("huge length", patched(4, 0x7fff_fff0)),
        ("end disagrees", patched(good.len() - 4, 40)),
        ("more data than block", patched(20, 5)),
        ("data beyond addition", patched(20, u32::MAX)),
        ("no such interface", patched(8, 1)),
        ("zeros", vec![0; 64]),
        ("version 2", other_version),
        ("no byte order", no_order),
        (
            "unknown block whose end disagrees",
            patched(0, 0x0bad)[..32].iter().chain(&[0; 8]).copied().collect(),
        ),
    ];
    for (name, bad) in cases {
        let (note, at) = damage(&bad);
        assert!(note.starts_with(&format!("Damaged at byte {at}: ")), "{name}: {note}");
    }
}

#[test]
fn packets_before_any_interface_are_damage() {
    for packet in [simple(Little, 1, b"x"), enhanced(Little, 0, 1, 1, b"x", &[])] {
        let content = read(&[section(Little, &[]), packet].concat()[..]);
        assert_eq!(content.frames.len(), 0);
        assert!(
            content.notes[0].starts_with("Damaged at byte 28: a packet of interface 0"),
            "{:?}",
            content.notes
        );
    }
}

#[test]
fn interfaces_are_bounded() {
    let one = interface(Little, 1, 0, &[]);
    let mut file = section(Little, &[]);
    for _ in 0..65_536 {
        file.extend(&one);
    }
    let damage = file.len();
    assert!(read(&file[..]).notes.is_empty());
    file.extend(&one);
    let notes = read(&file[..]).notes;
    assert!(notes[0].starts_with(&format!("Damaged at byte {damage}: more interfaces")), "{notes:?}");
}
