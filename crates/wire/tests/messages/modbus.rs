//! Modbus over TCP.

use super::{Kind, Protocol, read, recognise, says_in};

/// A message of unit 1.
fn adu(pdu: &[u8]) -> Vec<u8> {
    let len = pdu.len() as u16 + 1;
    [&[0x15, 0xb3, 0, 0], &len.to_be_bytes()[..], &[1], pdu].concat()
}

fn modbus(pdu: &[u8]) -> (Kind, String) {
    says_in(Protocol::Modbus, &adu(pdu))
}

#[test]
fn reads_ask_and_answer() {
    let is = |pdu: &[u8], kind, name: &str| assert_eq!(modbus(pdu), (kind, name.to_owned()));
    is(&[3, 0, 100, 0, 10], Kind::Asks, "Read Holding Registers");
    is(&[3, 4, 0, 1, 0, 2], Kind::Answers, "Read Holding Registers");
    is(&[4, 3, 0, 0, 1], Kind::Asks, "Read Input Registers");
    is(&[1, 0, 0, 0, 8], Kind::Asks, "Read Coils");
    is(&[1, 1, 0x55], Kind::Answers, "Read Coils");
    is(&[2, 0, 0, 7, 208], Kind::Asks, "Read Discrete Inputs");
    // Three bytes of coils, or coils from 768 on; three bytes that cannot be a number of coils.
    is(&[1, 3, 0, 0, 9], Kind::Either, "Read Coils");
    is(&[1, 3, 0, 0xff, 9], Kind::Answers, "Read Coils");
    is(&[43, 14, 1, 0], Kind::Asks, "Read Device Identification");
    is(&[43, 14, 1, 1, 0, 0, 1, 0, 2, b'a', b'b'], Kind::Answers, "Read Device Identification");
}

#[test]
fn writes_and_their_echoes_go_by_direction() {
    let is = |pdu: &[u8], kind, name: &str| assert_eq!(modbus(pdu), (kind, name.to_owned()));
    is(&[5, 0, 1, 0xff, 0], Kind::Either, "Write Single Coil");
    is(&[6, 0, 1, 0, 7], Kind::Either, "Write Single Register");
    is(&[16, 0, 1, 0, 2, 4, 0, 1, 0, 2], Kind::Asks, "Write Multiple Registers");
    is(&[16, 0, 1, 0, 2], Kind::Answers, "Write Multiple Registers");
    is(&[15, 0, 1, 0, 3, 1, 5], Kind::Asks, "Write Multiple Coils");
    is(&[0x83, 2], Kind::Answers, "Modbus exception");
}

#[test]
fn several_at_once_are_read_to_the_end() {
    let two = [adu(&[3, 0, 0, 0, 1]), adu(&[4, 0, 0, 0, 1])].concat();
    assert_eq!(says_in(Protocol::Modbus, &two), (Kind::Asks, "Read Holding Registers".to_owned()));
    // The second one was not stored.
    assert_eq!(
        recognise(&two[..14], 24).map(|message| (message.kind, message.expected_len())),
        Some((Kind::Asks, None))
    );
}

#[test]
fn near_misses_are_unknown() {
    let not = |bytes: &[u8]| assert_eq!(read(bytes), None, "{bytes:?}");
    not(&adu(&[3, 0, 0, 0, 0]));
    not(&adu(&[3, 0, 0, 8, 0]));
    not(&adu(&[3, 5, 1, 2, 3, 4, 5]));
    not(&adu(&[3, 9, 0, 1, 0, 2]));
    not(&adu(&[16, 0, 1, 0, 2, 5, 0, 1, 0, 2]));
    not(&adu(&[0x83, 99]));
    not(&adu(&[0xe3, 2]));
    not(&adu(&[99, 0, 0, 0, 1]));
    not(&adu(&[]));
    not(&adu(&[17, 9, 1, 2]));
    // Half of a segment that is longer than Modbus makes them.
    assert_eq!(recognise(&adu(&[3, 0, 0, 0, 1]), 1_452), None);
    // Zeros, and lengths that do not fit.
    not(&[0; 260]);
    not(&[0, 1, 0, 0, 0, 7, 1, 3, 0, 0, 0, 1]);
    not(&[0, 1, 0, 1, 0, 6, 1, 3, 0, 0, 0, 1]);
    not(&[adu(&[3, 0, 0, 0, 1]), vec![0; 20]].concat());
    not(&[adu(&[8, 0, 0x3b, 0, 0x17]), vec![0x78; 200]].concat());
}
