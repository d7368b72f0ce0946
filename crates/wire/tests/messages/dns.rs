//! DNS over TCP.

use super::{Kind, Protocol, len_of, read, recognise, says_in};

/// A message with its length; one question of `kind` for `name`, and `more` after it.
fn dns(flags: u16, counts: [u16; 4], name: &str, kind: u16, more: &[u8]) -> Vec<u8> {
    let mut message = vec![0xbe, 0xef];
    message.extend(flags.to_be_bytes());
    message.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
    for label in name.split_terminator('.') {
        message.push(label.len() as u8);
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.extend(kind.to_be_bytes());
    message.extend([0, 1]);
    message.extend(more);
    let len = message.len() as u16;
    [&len.to_be_bytes()[..], &message].concat()
}

fn question(name: &str, kind: u16) -> Vec<u8> {
    dns(0x0100, [1, 0, 0, 0], name, kind, &[])
}

#[test]
fn questions_are_named_by_type_and_name() {
    for (name, kind, text) in [
        ("example.com.", 1, "A example.com"),
        ("example.com.", 28, "AAAA example.com"),
        ("contoso.local.", 252, "AXFR contoso.local"),
        ("", 2, "NS ."),
        ("example.com.", 999, "DNS example.com"),
        ("a-very-long-name.of.some.example.com.", 16, "TXT a-very-long-name.of.some…"),
    ] {
        assert_eq!(says_in(Protocol::Dns, &question(name, kind)), (Kind::Asks, text.to_owned()));
    }
}

#[test]
fn answers_answer() {
    let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 0, 0, 4, 192, 0, 2, 1];
    let answer = dns(0x8180, [1, 1, 0, 0], "example.com.", 1, &record);
    assert_eq!(says_in(Protocol::Dns, &answer), (Kind::Answers, "A example.com".to_owned()));
    let missing = dns(0x8183, [1, 0, 0, 0], "nowhere.example.", 1, &[]);
    assert_eq!(says_in(Protocol::Dns, &missing), (Kind::Answers, "A nowhere.example".to_owned()));
}

#[test]
fn a_transfer_tells_how_far_it_goes() {
    let transfer = dns(0x8480, [1, 400, 0, 0], "contoso.local.", 252, &[0x55; 20_000]);
    assert_eq!(len_of(&transfer, 40, 1_448), Some(transfer.len() as u32));
    // A question is never longer than its segment.
    let long = dns(0x0100, [1, 0, 0, 1], "contoso.local.", 1, &[0x55; 4_000]);
    assert_eq!(recognise(&long[..40], 1_448), None);
}

#[test]
fn several_questions_at_once() {
    let two = [question("a.example.", 1), question("b.example.", 28)].concat();
    assert_eq!(says_in(Protocol::Dns, &two), (Kind::Asks, "A a.example".to_owned()));
}

#[test]
fn near_misses_are_unknown() {
    let not = |bytes: &[u8]| assert_eq!(read(bytes), None, "{}", bytes.escape_ascii());
    // Codes, counts, classes and lengths that do not fit.
    not(&dns(0x1900, [1, 0, 0, 0], "example.com.", 1, &[]));
    not(&dns(0x0140, [1, 0, 0, 0], "example.com.", 1, &[]));
    not(&dns(0x0103, [1, 0, 0, 0], "example.com.", 1, &[]));
    not(&dns(0x0100, [2, 0, 0, 0], "example.com.", 1, &[]));
    not(&dns(0x0100, [1, 9, 0, 0], "example.com.", 1, &[]));
    let mut class = question("example.com.", 1);
    *class.last_mut().unwrap() = 9;
    not(&class);
    not(&[question("example.com.", 1), vec![0; 3]].concat());
    // A label with a control character, and one that is too long.
    not(&question("exa\u{1}mple.com.", 1));
    let mut label = question("example.com.", 1);
    label[14] = 64;
    not(&label);
}
