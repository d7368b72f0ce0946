use crate::build::{
    Big, Content, Little, MICROS, MODIFIED, NANOS, Seen, pcap_header, pcap_header_of, read, record,
};
use tcpwhy_wire::container::{LinkType, MAX_FRAME};

const SECOND: i64 = 1_000_000_000;

#[test]
fn micro_and_nanoseconds_in_both_byte_orders() {
    for order in [Little, Big] {
        for (magic, unit) in [(MICROS, 1_000), (NANOS, 1)] {
            let mut file = pcap_header(order, magic);
            file.extend(record(order, 1_700_000_000, 123_456, 1514, b"first"));
            file.extend(record(order, 1_700_000_001, 0, 3, b"two"));
            let ethernet = |time, original_len, data: &[u8]| Seen {
                time,
                link: LinkType::ETHERNET,
                original_len,
                interface: 0,
                data: data.to_vec(),
            };
            let frames = vec![
                ethernet(1_700_000_000 * SECOND + 123_456 * unit, 1514, b"first"),
                ethernet(1_700_000_001 * SECOND, 3, b"two"),
            ];
            let expected = Content { kind: "pcap", frames, notes: vec![], comments: vec![], dropped: None };
            assert_eq!(read(&file[..]), expected, "{order:?} {magic:x}");
        }
    }
}

#[test]
fn kuznetsov_records_have_eight_bytes_more() {
    for order in [Little, Big] {
        let mut file = pcap_header(order, MODIFIED);
        for data in [b"abcd", b"efgh"] {
            let plain = record(order, 7, 5, 60, data);
            file.extend(&plain[..16]);
            file.extend(order.u32(2)); // Interface index.
            file.extend(order.u16(0x0800)); // Protocol.
            file.extend([0, 0]); // Packet type, padding.
            file.extend(&plain[16..]);
        }
        let content = read(&file[..]);
        let got: Vec<_> = content.frames.iter().map(|f| (f.time, f.original_len, &f.data[..])).collect();
        assert_eq!(got, [(7 * SECOND + 5_000, 60, &b"abcd"[..]), (7 * SECOND + 5_000, 60, b"efgh")]);
        assert!(content.notes.is_empty());
    }
}

#[test]
fn the_link_type_shares_its_field_with_the_frame_check_sequence() {
    // Bit 26 says that the upper four bits count the FCS in 16-bit units: here 2.
    let mut file = pcap_header_of(Little, MICROS, 4, 0x2400_0000 | 113);
    file.extend(record(Little, 0, 1, 1, b"x"));
    assert_eq!(read(&file[..]).frames[0].link, LinkType::LINUX_SLL);
}

#[test]
fn before_version_2_4_the_lengths_may_be_swapped() {
    let swapped = |minor| {
        let mut file = pcap_header_of(Little, MICROS, minor, 1);
        for word in [9, 0, 1500, 4] {
            file.extend(Little.u32(word));
        }
        file.extend(b"data");
        file
    };
    let content = read(&swapped(3)[..]);
    assert_eq!((content.frames[0].original_len, &content.frames[0].data[..]), (1500, &b"data"[..]));
    assert!(content.notes.is_empty());
    // In a file of today the first one counts, and so 1500 bytes are missing.
    assert!(read(&swapped(4)[..]).notes[0].starts_with("Cut short at byte 44: the last record needs 1516"));
}

#[test]
fn fractions_above_a_second_and_the_last_second_there_is() {
    let mut file = pcap_header(Little, MICROS);
    file.extend(record(Little, 10, 2_500_000, 1, b"x"));
    file.extend(record(Little, u32::MAX, u32::MAX, 1, b"x"));
    let times: Vec<i64> = read(&file[..]).frames.iter().map(|frame| frame.time).collect();
    assert_eq!(times, [12_500_000_000, 4_294_967_295 * SECOND + 4_294_967_295_000]);
}

#[test]
fn the_largest_frame_is_read_and_a_larger_one_is_damage() {
    let largest = vec![0xab; MAX_FRAME];
    let mut file = pcap_header(Little, MICROS);
    file.extend(record(Little, 1, 0, 1_000_000, &largest));
    let damage = file.len();
    for word in [2, 0, MAX_FRAME as u32 + 1, MAX_FRAME as u32 + 1] {
        file.extend(Little.u32(word));
    }
    file.resize(file.len() + MAX_FRAME + 1, 0);
    let content = read(&file[..]);
    assert_eq!(content.frames.len(), 1);
    assert_eq!(content.frames[0].data, largest);
    assert_eq!(content.notes.len(), 1);
    assert!(content.notes[0].starts_with(&format!("Damaged at byte {damage}: ")), "{:?}", content.notes);
}

#[test]
fn a_tail_of_zeros_is_damage_and_an_empty_frame_is_not() {
    let mut file = pcap_header(Little, MICROS);
    file.extend(record(Little, 1, 0, 60, b""));
    let damage = file.len();
    file.resize(damage + 4096, 0);
    let content = read(&file[..]);
    assert_eq!(content.frames.len(), 1);
    assert_eq!((content.frames[0].original_len, content.frames[0].data.len()), (60, 0));
    assert!(content.notes[0].starts_with(&format!("Damaged at byte {damage}: zeros")), "{:?}", content.notes);
}

#[test]
fn a_file_without_packets_is_complete() {
    let content = read(&pcap_header(Big, NANOS)[..]);
    assert_eq!((content.kind, content.frames.len(), content.notes.len()), ("pcap", 0, 0));
}
