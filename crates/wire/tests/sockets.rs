//! Saved listings of sockets: real ones, in which every socket was made to be in a state of its own, and hostile ones.

use proptest::prelude::*;
use tcpwhy_wire::sockets::{Listing, Source, State, TcpSocket, TimerKind};

fn read(text: &str) -> Listing {
    Listing::read(text.as_bytes()).expect("bytes in memory")
}

/// The one socket between these two.
fn between<'a>(listing: &'a Listing, local: &str, peer: &str) -> &'a TcpSocket {
    let mut found = listing.sockets.iter().filter(|socket| socket.local == local && socket.peer == peer);
    let socket = found.next().unwrap_or_else(|| panic!("{local} to {peer} is missing"));
    assert_eq!(found.next(), None);
    socket
}

/// What all tools that looked at the same machine agree on.
type Essence<'a> = (&'a str, &'a str, State, u64, u64);

/// Sorted, without listeners: `/proc/net/tcp` does not tell their backlog.
fn essence(listing: &Listing) -> Vec<Essence<'_>> {
    let mut all: Vec<_> = listing
        .sockets
        .iter()
        .filter(|socket| socket.state != State::Listen)
        .map(|socket| (&*socket.local, &*socket.peer, socket.state, socket.recv_queue, socket.send_queue))
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn all_tools_tell_the_same_of_the_same_machine() {
    let proc = [include_str!("sockets/proc-net-tcp.txt"), include_str!("sockets/proc-net-tcp6.txt")].concat();
    let proc = read(&proc);
    assert_eq!((proc.source, proc.sockets.len(), proc.left_out), (Some(Source::Proc), 18, 0));
    let expected = essence(&proc);
    // By hand: the program wrote 10,010 bytes to a socket that is not read, and until a window of 128,512 was full.
    assert!(expected.contains(&("127.0.0.1:9123", "127.0.0.1:47432", State::Established, 10_010, 0)));
    assert!(expected.contains(&("127.0.0.1:47442", "127.0.0.1:9123", State::Established, 0, 3_782_144)));
    assert!(expected.contains(&("127.0.0.1:47418", "127.0.0.1:9123", State::Established, 0, 34)));
    // A FIN that is not read yet is no byte.
    assert!(expected.contains(&("127.0.0.1:47454", "127.0.0.1:9123", State::CloseWait, 0, 0)));
    for (text, source) in [
        (include_str!("sockets/ss-tan.txt"), Source::Ss),
        (include_str!("sockets/ss-tanpioem.txt"), Source::Ss),
        (include_str!("sockets/netstat.txt"), Source::Netstat),
    ] {
        let listing = read(text);
        assert_eq!(listing.source, Some(source));
        assert_eq!(essence(&listing), expected, "{source:?}");
    }
    assert_eq!(essence(&read(include_str!("sockets/ss-tinem.txt"))), expected);
}

#[test]
fn ss_with_all_options() {
    let listing = read(include_str!("sockets/ss-tanpioem.txt"));
    let listener = between(&listing, "127.0.0.1:9123", "0.0.0.0:*");
    assert_eq!((listener.state, listener.recv_queue, listener.send_queue), (State::Listen, 1, 5));
    let full = between(&listing, "127.0.0.1:47442", "127.0.0.1:9123");
    // ss left the peer's window out: it is zero.
    assert_eq!((full.info.peer_window, full.info.not_sent), (Some(0), Some(3_782_144)));
    assert_eq!(
        (full.info.peer_window_limited_us, full.info.send_buffer_limited_us),
        (full.info.busy_us, Some(0))
    );
    assert_eq!(full.timer.map(|timer| timer.kind), Some(TimerKind::Probe));
    assert_eq!((full.holders[0].name.as_str(), full.holders[0].fd), ("python3", Some(8)));
    assert_eq!((full.info.retransmitted, full.info.retransmissions), (Some(0), Some(1)));
    let corked = between(&listing, "127.0.0.1:47418", "127.0.0.1:9123");
    assert_eq!((corked.info.peer_window, corked.info.not_sent), (Some(65_536), Some(34)));
    let dual = between(&listing, "*:9125", "*:*");
    assert_eq!(dual.inode, Some(2_235_726));
    let v6 = between(&listing, "[::1]:9124", "[::1]:56882");
    assert_eq!(
        (v6.recv_queue, v6.info.mss, v6.congestion_control.as_deref()),
        (5, Some(32_768), Some("bbr"))
    );
}

#[test]
fn lines_of_a_blog_with_its_prose_around_them() {
    let listing = read(include_str!("sockets/blog-2014.txt"));
    assert_eq!((listing.source, listing.sockets.len()), (Some(Source::Proc), 10));
    assert_eq!((listing.sockets[0].state, listing.sockets[0].recv_queue), (State::Listen, 18));
    let waiting: Vec<_> = listing.sockets[3..].iter().map(|socket| socket.recv_queue).collect();
    // "Note 271A is 10010 - the size of our payload."
    assert_eq!(waiting, [5_914, 10_010, 2_048, 10_010, 10_010, 10_010, 0]);
    assert_eq!(listing.sockets[4].peer, "192.168.1.91:54189");
}

#[test]
fn a_mail_breaks_and_quotes_lines() {
    let text = "> Here is what it looks like when it hangs:\n\
                > ESTAB 0 34 10.0.0.1:8080 10.0.0.2:51000\n\
                > ts sack cubic wscale:7,7 rto:204 rtt:0.9/0.1\n\
                > mss:1448 cwnd:10 unacked:1 notsent:34 minrtt:0.4\n\
                >\n\
                > The rtt:0.9 mss:1 looks fine to me.\n";
    let socket = &read(text).sockets[0];
    assert_eq!((socket.info.not_sent, socket.info.unacked, socket.info.mss), (Some(34), Some(1), Some(1448)));
    assert_eq!((socket.info.rtt_us, socket.info.peer_window), (Some(900), None));
}

#[test]
fn ss_asked_for_one_state_leaves_the_state_out() {
    let text = "Recv-Q Send-Q Local Address:Port  Peer Address:Port Process\n\
                0      34         10.0.0.1:8080      10.0.0.2:51000\n\
                \t cubic rto:204 rtt:0.9/0.1 mss:1448 cwnd:10 unacked:1 notsent:34 snd_wnd:65536 lastsnd:20\n\
                0      0          10.0.0.1:8080      10.0.0.2:51002\n\
                \t cubic rto:204 rtt:0.9/0.1 mss:1448 cwnd:10 snd_wnd:65536\n";
    let listing = read(text);
    assert_eq!((listing.source, listing.sockets.len()), (Some(Source::Ss), 2));
    let info = listing.sockets[0].info;
    assert_eq!((info.not_sent, info.last_sent_ms, info.peer_window), (Some(34), Some(20), Some(65_536)));
    // Without the heading two numbers and two addresses are no socket.
    let lines: Vec<_> = text.lines().skip(1).collect();
    assert_eq!(read(&lines.join("\n")), Listing::default());
}

#[test]
fn nothing_is_found_in_nothing() {
    for text in ["", "\n\n", "It just hangs.\n", include_str!("../../../README.md")] {
        assert_eq!(read(text), Listing::default());
    }
}

#[test]
fn memory_has_a_bound() {
    let line = "ESTAB 0 0 10.0.0.1:80 10.0.0.2:5000\n";
    let listing = read(&line.repeat(100_002));
    assert_eq!((listing.sockets.len(), listing.left_out), (100_000, 2));
}

/// Pieces of which listings consist, put together in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "ESTAB",
        "LISTEN",
        "0",
        "34",
        "127.0.0.1:9123",
        "[::1]:80",
        "*:*",
        "tcp",
        "tcp6",
        "users:((\"",
        "\",pid=",
        ",fd=",
        "),(\"",
        "))",
        "timer:(",
        "persist,",
        "128ms",
        "1.204ms,",
        "skmem:(r0,rb",
        ")",
        "rtt:",
        "/",
        "0.047",
        "mss:",
        "18446744073709551616",
        "0100007F:23A3",
        "01",
        "00000000:0000271A",
        "04:0000000F",
        "00000000",
        "-1",
        "notsent:",
        "snd_wnd:",
        "\t",
        " ",
        "\n",
        "pacing_rate ",
        "bps",
        "busy:",
        "é",
        "\u{1b}",
        "CLOSE-WAIT",
        "cubic",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<Vec<u8>>()) {
        let _ = Listing::read(&text[..]);
    }

    #[test]
    fn no_mixture_of_its_words_makes_it_panic(text in pieces()) {
        for socket in read(&text).sockets {
            // Nothing that acts on a terminal gets through as an address.
            prop_assert!(socket.local.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }

    #[test]
    fn a_line_cut_anywhere_is_read_or_passed_over(at in 0_usize..700, line in 0_usize..40) {
        let text = include_str!("sockets/ss-tanpioem.txt");
        let line = text.lines().nth(line).unwrap_or_default();
        let cut: String = line.chars().take(at).collect();
        prop_assert!(read(&cut).sockets.len() <= 1);
    }
}
