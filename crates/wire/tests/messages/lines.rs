//! Dialogues in lines.

use super::{Kind, Protocol, read, recognise, says_in};

fn says(line: &str) -> (Kind, String) {
    says_in(Protocol::Lines, line.as_bytes())
}

#[test]
fn commands_are_named_by_their_word_alone() {
    for (line, name) in [
        ("EHLO client.example.com\r\n", "EHLO"),
        ("helo client\r\n", "HELO"),
        ("MAIL FROM:<a@example.com>\r\n", "MAIL"),
        ("MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.com>\r\nDATA\r\n", "MAIL"),
        ("RCPT TO:<b@example.com>\r\n", "RCPT"),
        ("DATA\r\n", "DATA"),
        ("QUIT\r\n", "QUIT"),
        ("AUTH PLAIN AGFsaWNlAGh1bnRlcjI=\r\n", "AUTH"),
        ("USER alice\r\n", "USER"),
        ("PASS hunter2\r\n", "PASS"),
        ("RETR 1\r\n", "RETR"),
        ("PORT 192,0,2,1,4,1\r\n", "PORT"),
        ("a001 LOGIN alice hunter2\r\n", "LOGIN"),
        ("A12.3 UID FETCH 1:* (FLAGS)\r\n", "UID"),
        ("7 noop\r\n", "NOOP"),
        (". CAPABILITY\r\n", "CAPABILITY"),
        ("DONE\r\n", "DONE"),
    ] {
        assert_eq!(says(line), (Kind::Asks, name.to_owned()));
    }
}

#[test]
fn servers_greet_and_answer() {
    for (line, kind, name) in [
        ("220 mail.example.com ESMTP\r\n", Kind::Greets, "220"),
        ("220-Welcome\r\n220 ready\r\n", Kind::Greets, "220"),
        ("250 OK\r\n", Kind::Answers, "250"),
        ("250-mail.example.com\r\n250-8BITMIME\r\n250 HELP\r\n", Kind::Answers, "250"),
        ("354 go on\r\n", Kind::Answers, "354"),
        ("535 5.7.8 no\r\n", Kind::Answers, "535"),
        ("221\r\n", Kind::Answers, "221"),
        ("230 Willkommen, sch\u{f6}n\r\n", Kind::Answers, "230"),
        ("+OK POP3 ready\r\n", Kind::Answers, "+OK"),
        ("-ERR no such message\r\n", Kind::Answers, "-ERR"),
        ("* OK IMAP4rev1 ready\r\n", Kind::Greets, "IMAP greeting"),
        ("* 3 EXISTS\r\n* 0 RECENT\r\n", Kind::Answers, "IMAP answer"),
        ("* CAPABILITY IMAP4rev1\r\na1 OK done\r\n", Kind::Answers, "IMAP answer"),
        ("a001 OK done\r\n", Kind::Answers, "IMAP OK"),
        ("a001 NO [AUTHENTICATIONFAILED]\r\n", Kind::Answers, "IMAP NO"),
        ("+ idling\r\n", Kind::Answers, "+"),
    ] {
        assert_eq!(says(line), (kind, name.to_owned()));
    }
}

#[test]
fn the_end_of_a_text_goes_by_direction() {
    for end in [".\r\n", "\r\n.\r\n"] {
        assert_eq!(says(end), (Kind::Either, "end of text".to_owned()));
    }
}

#[test]
fn lines_that_were_cut_are_read_as_far_as_they_go() {
    let line = "250 2.0.0 a very long line of which the snapshot length took the end\r\n";
    let cut = recognise(&line.as_bytes()[..40], line.len() as u32).expect("known");
    assert_eq!((cut.kind, cut.name.as_str()), (Kind::Answers, "250"));
}

#[test]
fn near_misses_are_unknown() {
    for line in [
        "Hello, world\r\n",
        "Help me out\r\n",
        "Data\r\n",
        "DATA follows\r\n",
        "MAIL order\r\n",
        "RCPT b@example.com\r\n",
        "EHLO client",
        "EHLO client\n",
        "EHLO cli\u{1}ent\r\n",
        "QUITE\r\n",
        "2500 Fine\r\n",
        "650 Fine\r\n",
        "299 x",
        "260 x\r\n",
        "25 Fine\r\n",
        "this LOGIN page\r\n",
        "a1 hello\r\n",
        "a!1 NOOP\r\n",
        "* bullet\r\n",
        "*\r\n",
        "+OKAY\r\n\r\nx",
        "-ERROR\r\nx",
        "..\r\n",
        // The middle of a text.
        "216-054-105 is a host\r\nand another li",
        "541 J. Postel\r\n542 X. Y",
    ] {
        assert_eq!(read(line.as_bytes()), None, "{line:?}");
    }
}
