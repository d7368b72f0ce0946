//! SSH.

use super::{Kind, Protocol, read, says_in};

fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
    let padding = 4 + (8 - (6 + body.len() + 4) % 8) % 8;
    let len = (body.len() + 2 + padding) as u32;
    [&len.to_be_bytes()[..], &[padding as u8, kind], body, &vec![0; padding]].concat()
}

fn ssh(payload: &[u8]) -> (Kind, String) {
    says_in(Protocol::Ssh, payload)
}

#[test]
fn both_ends_greet() {
    assert_eq!(ssh(b"SSH-2.0-OpenSSH_9.6\r\n"), (Kind::Greets, "SSH greeting".to_owned()));
    assert_eq!(ssh(b"SSH-1.99-x\n"), (Kind::Greets, "SSH greeting".to_owned()));
}

#[test]
fn the_key_exchange_is_in_the_clear() {
    let is = |payload: &[u8], kind| assert_eq!(ssh(payload), (kind, "SSH key exchange".to_owned()));
    let names = b"curve25519-sha256,ecdh-sha2-nistp256";
    let init = [&[0x5a; 16][..], &(names.len() as u32).to_be_bytes(), names, &[0; 41]].concat();
    is(&packet(20, &init), Kind::Either);
    let key = [&32_u32.to_be_bytes()[..], &[9; 32]].concat();
    is(&packet(30, &key), Kind::Asks);
    let new_keys = packet(21, &[]);
    is(&[packet(31, &[key.clone(), key].concat()), new_keys.clone()].concat(), Kind::Answers);
    is(&new_keys, Kind::Neither);
}

#[test]
fn near_misses_are_unknown() {
    let not = |bytes: &[u8]| assert_eq!(read(bytes), None, "{bytes:?}");
    not(b"SSH-3.0-x\r\n");
    not(b"SSH-");
    not(&packet(50, &[0; 40]));
    not(&packet(20, &[0; 40]));
    not(&packet(30, &[0xff; 40]));
    not(&[packet(21, &[]), vec![1; 50]].concat());
    not(&[&[0, 0, 0, 44, 3, 30, 0, 0, 0, 32][..], &[0; 38]].concat());
}
