//! Scripts that were not written by friends.

use proptest::prelude::*;
use tcpwhy_simulate::script::{Verdict, parse, run};
use tcpwhy_simulate::tcp::eras;

/// Pieces that scripts are made of, so that random ones get somewhere.
const PIECES: [&str; 34] = [
    "0 ",
    "+0 ",
    "+.1~+.2 ",
    "* ",
    "0...1 ",
    "socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n",
    "listen(3, 1) = 0\n",
    "accept(3, ..., ...) = 4\n",
    "connect(3, ..., ...) = 0\n",
    "write(4, ..., 1000) = 1000\n",
    "read(4, ..., 9) = 9\n",
    "close(4) = 0\n",
    "shutdown(4, SHUT_WR) = 0\n",
    "setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0\n",
    "< S 0:0(0) win 32792 <mss 1000,sackOK,wscale 7>\n",
    "> S. 0:0(0) ack 1 <...>\n",
    "< . 1:1(0) ack 1 win 257\n",
    "> P. 1:1001(1000) ack 1\n",
    "< F. 1:1(0) ack 1 win 0\n",
    "< R. 1:1(0) ack 1 win 0\n",
    "<",
    ">",
    "[",
    "{",
    "(",
    "%{ assert 1 }%\n",
    "`sysctl -q a.b=1`\n",
    "// x\n",
    "/*",
    "<sack 1:2 3:4,nop>",
    "4294967295",
    "\"",
    "é",
    "\0",
];

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let _ = parse(&text);
    }

    #[test]
    fn any_pieces_are_read_or_refused_and_run(picks in prop::collection::vec(0..PIECES.len(), 0..40)) {
        let text: String = picks.iter().map(|pick| PIECES[*pick]).collect();
        if let Ok(script) = parse(&text) {
            let _ = run(&script, &eras::linux_6()).to_string();
        }
    }

    /// Whole steps in any order: sockets in states that no program would bring them into.
    #[test]
    fn any_steps_end(picks in prop::collection::vec(5..20_usize, 0..40)) {
        let text: String = picks.iter().map(|pick| format!("+0 {}", PIECES[*pick])).collect();
        let script = parse(&text).unwrap();
        let _ = run(&script, &eras::linux_6());
    }
}

#[test]
fn nesting_is_limited() {
    for open in ["[", "{", "f("] {
        let error = parse(&format!("0 close({}", open.repeat(200_000))).unwrap_err();
        assert!(error.expected.contains("nested"), "{error}");
    }
}

#[test]
fn what_is_cut_anywhere_is_refused_or_read() {
    let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 < [ect0] S 0:0(0) win 1 <mss 1,sack 1:2>\n\
                +0 %{ assert 1 }%\n+0...1 sendmsg(4, {msg_iov(1)=[{..., 1}]}, MSG_MORE) = -1 EAGAIN (é)\n";
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        let _ = parse(&text[..end]);
    }
}

/// Sizes and times at the edge of what the syntax takes.
#[test]
fn large_numbers_do_no_harm() {
    let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
        +0 listen(3, 1) = 0\n\
        +0 < S 4294967295:4294967295(0) win 65535 <mss 65535,sackOK,wscale 255>\n\
        +0 > S. 0:0(0) ack 0 <...>\n\
        +0 < . 0:0(0) ack 1 win 65535\n\
        +0 accept(3, ..., ...) = 4\n\
        +0 fcntl(4, F_SETFL, O_NONBLOCK) = 0\n\
        +0 setsockopt(4, SOL_SOCKET, SO_SNDBUF, [9223372036854775807], 4) = 0\n\
        +0 setsockopt(4, SOL_SOCKET, SO_RCVBUF, [-9223372036854775808], 4) = 0\n\
        +0 write(4, ..., 9223372036854775807) = ...\n\
        +0 read(4, ..., 9223372036854775807) = ...\n\
        +0 < . 0:4294967295(4294967295) ack 4294967295 win 65535 <sack 4294967295:0>\n\
        +1000000 < . 0:0(0) ack 1 win 0\n";
    let script = parse(text).unwrap();
    let outcome = run(&script, &eras::linux_6());
    assert!(!matches!(outcome.verdict, Verdict::Unsupported(_)), "{outcome}");
}

/// Every ACK doubles the window, every write is as large as it may be: what is sent stays bounded.
#[test]
fn a_flood_is_bounded() {
    let mut text = String::from(
        "`ip route change x initcwnd 4294967295`\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
         +0 listen(3, 1) = 0\n+0 < S 0:0(0) win 65535 <mss 1,sackOK,wscale 14>\n+0 > S. 0:0(0) ack 1 <...>\n\
         +0 < . 1:1(0) ack 1 win 65535\n+0 accept(3, ..., ...) = 4\n+0 fcntl(4, F_SETFL, O_NONBLOCK) = 0\n",
    );
    for _ in 0..20 {
        text.push_str("+0 write(4, ..., 2147483647) = ...\n+1 < . 1:1(0) ack 2147483647 win 65535\n");
    }
    let outcome = run(&parse(&text).unwrap(), &eras::linux_6());
    assert!(outcome.unread.len() <= 1_000_000, "{} segments", outcome.unread.len());
}
