//! Redis.

use super::{Kind, Protocol, len_of, read, recognise, says, says_in};

fn redis(payload: &str) -> (Kind, String) {
    says_in(Protocol::Redis, payload.as_bytes())
}

#[test]
fn commands_are_named_without_their_values() {
    for (payload, name) in [
        ("*1\r\n$4\r\nPING\r\n", "PING"),
        ("*2\r\n$3\r\nget\r\n$6\r\nsecret\r\n", "GET"),
        ("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhello\r\n", "SET"),
        ("*2\r\n$4\r\nAUTH\r\n$7\r\nhunter2\r\n", "AUTH"),
        ("*2\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n", "SUBSCRIBE"),
        ("*2\r\n$8\r\nJSON.GET\r\n$1\r\nk\r\n", "JSON.GET"),
        // Several at once.
        ("*1\r\n$5\r\nMULTI\r\n*1\r\n$4\r\nEXEC\r\n", "MULTI"),
    ] {
        assert_eq!(redis(payload), (Kind::Asks, name.to_owned()));
    }
}

#[test]
fn replies_of_each_type_answer() {
    for (payload, name) in [
        ("+OK\r\n", "status"),
        ("+PONG\r\n", "status"),
        ("-WRONGTYPE Operation against a key\r\n", "error"),
        (":42\r\n", "number"),
        (":-1\r\n", "number"),
        ("$5\r\nhello\r\n", "value"),
        ("$-1\r\n", "nothing"),
        ("*0\r\n", "array"),
        ("*-1\r\n", "array"),
        ("*2\r\n:1\r\n:2\r\n", "array"),
        ("*2\r\n$5\r\napple\r\n$5\r\nworld\r\n", "array"),
        ("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n", "array"),
        ("%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n", "array"),
        (">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n", "array"),
    ] {
        assert_eq!(redis(payload), (Kind::Answers, name.to_owned()), "{payload}");
    }
}

#[test]
fn news_that_nobody_asked_for_answers_nothing() {
    let message = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n";
    assert_eq!(redis(message), (Kind::Neither, "MESSAGE".to_owned()));
    assert_eq!(redis(">2\r\n$10\r\ninvalidate\r\n*0\r\n"), (Kind::Neither, "push".to_owned()));
}

#[test]
fn a_long_value_tells_how_far_it_goes() {
    let set = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    let header = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n".len() as u32;
    assert_eq!(len_of(set, 60, 1_448), Some(header + 100_002));
    let value = b"$5000\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    assert_eq!(len_of(value, 50, 1_448), Some(7 + 5_002));
    let short = b"*1\r\n$4\r\nPING\r\n";
    assert_eq!(len_of(short, short.len(), short.len() as u32), Some(short.len() as u32));
}

#[test]
fn near_misses_are_unknown() {
    for payload in [
        "*",
        "*1",
        "*1\r",
        "*x\r\n",
        "*1\n$4\nPING\n",
        "*+1\r\n",
        "*1\r\nhello\r\n",
        "* bullet\r\n",
        "$5\r\nhelloworld",
        "$5\r\nhelloXX",
        "$99999999999999999999\r\n",
        "$-2\r\n",
        ":\r\n",
        ":-)\r\n",
        ":12a\r\n",
        "+\r\nx",
        "-x lower\r\n",
        "%x\r\n",
        ">quoted\r\n",
        "+one\r\ntwo",
        "-Xy z\r\n",
    ] {
        assert_eq!(read(payload.as_bytes()), None, "{payload:?}");
    }
    // The middle of a mail in base64.
    let line = [b'x'; 60];
    assert_eq!(recognise(&[&b"+"[..], &line].concat(), 1_460), None);
    // POP3's good answer.
    assert_eq!(says(b"+OK ready\r\n").0, Protocol::Lines);
}
