//! `/proc/net/tcp` and `/proc/net/tcp6`: `get_tcp4_sock` in `net/ipv4/tcp_ipv4.c`. `/proc/net/udp` and `/proc/net/udp6`
//! have the same columns up to the inode (`udp4_format_sock` in `net/ipv4/udp.c`).
//!
//! ```text
//!   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
//!    6: 0100007F:23A3 0100007F:B948 01 00000000:0000271A 00:00000000 00000000     0        0 2235719 1 … 20 4 4 10 -1
//! ```
//!
//! Ports, states, queues and times are hexadecimal numbers. Addresses are too, but of 32-bit words that the machine
//! read in *its* byte order from what stands in the packet: 127.0.0.1 is `0100007F` on a little-endian machine and
//! `7F000001` on a big-endian one. The text does not say which; all machines that are likely to be asked about are
//! little-endian, so that is taken for granted.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{State, TcpSocket, Timer, TimerKind};

/// Ticks of these texts (`USER_HZ` is 100 on all machines but Alpha), in ms.
const TICK_MS: u64 = 10;

impl TcpSocket {
    /// Reads a line of `/proc/net/tcp` or `/proc/net/tcp6`, wherever in it the two addresses begin; `None` where there is
    /// no such thing in it. A line of `/proc/net/udp[6]` is read too: a connected UDP socket is `Established`, another
    /// one `Closed`.
    pub fn of_proc_line(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        (0..words.len()).find_map(|at| socket(&words[at..]))
    }
}

fn socket(words: &[&str]) -> Option<TcpSocket> {
    let (local, peer) = (address(words.first()?)?, address(words.get(1)?)?);
    let state = State::of_linux(u8::try_from(hex(words.get(2)?, 2)?).ok()?)?;
    let (sent, received) = words.get(3)?.split_once(':')?;
    let (timer, when) = words.get(4)?.split_once(':')?;
    let retransmissions = hex(words.get(5)?, 8)?;
    let mut socket = TcpSocket::new(local, peer, state);
    socket.send_queue = hex(sent, 8)?;
    socket.recv_queue = hex(received, 8)?;
    let kind = match hex(timer, 2)? {
        1 => Some(TimerKind::Retransmit),
        2 => Some(TimerKind::KeepAlive),
        3 => Some(TimerKind::TimeWait),
        4 => Some(TimerKind::Probe),
        _ => None,
    };
    let ends_in_ms = hex(when, 8)? * TICK_MS;
    let decimal = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let probes = decimal(7);
    // A probe counts itself in the column `timeout`.
    let retries = retransmissions.max(if kind == Some(TimerKind::Probe) { probes.unwrap_or(0) } else { 0 });
    let retries = u32::try_from(retries).unwrap_or(u32::MAX);
    socket.timer = kind.map(|kind| Timer { kind, ends_in_ms, retries });
    socket.uid = words.get(6).and_then(|word| word.parse().ok());
    socket.inode = decimal(8);
    if !matches!(state, State::Listen | State::TimeWait | State::SynReceived) && words.len() >= 16 {
        connected(&mut socket, words);
    }
    Some(socket)
}

/// The columns behind the pointer, which full sockets have: RTO and ATO in ticks, quick ACKs << 1 | ping-pong mode,
/// congestion window, slow start threshold or -1.
fn connected(socket: &mut TcpSocket, words: &[&str]) {
    let decimal = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    socket.info.rto_us = decimal(11).map(|ticks| ticks.saturating_mul(TICK_MS * 1_000));
    socket.info.ato_us = decimal(12).map(|ticks| ticks.saturating_mul(TICK_MS * 1_000));
    // `TCP_QUICKACK` reads as "not in ping-pong mode" (`do_tcp_getsockopt`).
    socket.options.quickack = decimal(13).map(|mode| mode & 1 == 0);
    socket.info.cwnd = decimal(14);
    socket.info.ssthresh = decimal(15);
}

/// `0100007F:23A3`, or with 32 digits for IPv6.
fn address(word: &str) -> Option<String> {
    let (host, port) = word.split_once(':')?;
    let port = hex(port, 4)?;
    let octets = match host.len() {
        8 => reversed(host)?.to_vec(),
        32 if host.is_ascii() => {
            let words = (0..4).map(|word| reversed(&host[word * 8..word * 8 + 8]));
            words.collect::<Option<Vec<_>>>()?.concat()
        }
        _ => return None,
    };
    if let Ok(octets) = <[u8; 4]>::try_from(octets.as_slice()) {
        return Some(format!("{}:{port}", Ipv4Addr::from(octets)));
    }
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(octets.as_slice()).ok()?);
    // Dual-stack sockets speak IPv4 under such an address; ss writes it this way too.
    match address.to_ipv4_mapped() {
        Some(v4) => Some(format!("[::ffff:{v4}]:{port}")),
        None => Some(format!("[{address}]:{port}")),
    }
}

/// Eight digits that a little-endian machine wrote, as bytes in the order of the network.
fn reversed(digits: &str) -> Option<[u8; 4]> {
    u32::try_from(hex(digits, 8)?).ok().map(u32::to_le_bytes)
}

/// Exactly `digits` hexadecimal digits.
fn hex(word: &str, digits: usize) -> Option<u64> {
    let is_hex = word.len() == digits && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(word, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_blog_of_2014() {
        let text = "  79: 5E01A8C0:22B8 5B01A8C0:D3A8 01 00000000:0000271A 00:00000000 00000000     0        0 0 1 \
                    ffff880fc3ff9500 20 3 12 10 -1";
        let socket = TcpSocket::of_proc_line(text).expect("a socket");
        assert_eq!(
            (socket.local.as_str(), socket.peer.as_str()),
            ("192.168.1.94:8888", "192.168.1.91:54184")
        );
        assert_eq!((socket.state, socket.recv_queue, socket.send_queue), (State::Established, 10_010, 0));
        assert_eq!((socket.uid, socket.inode, socket.timer), (Some(0), Some(0), None));
        assert_eq!((socket.info.rto_us, socket.info.ato_us), (Some(200_000), Some(30_000)));
        assert_eq!(
            (socket.info.cwnd, socket.info.ssthresh, socket.options.quickack),
            (Some(10), None, Some(true))
        );
    }

    #[test]
    fn its_listener_and_its_half_open_connection() {
        let listener = "   2: 5E01A8C0:22B8 00000000:0000 0A 00000000:00000012 02:0000000D 00000000  1000        0 \
                        1786995 2 ffff880f999f4600 99 0 0 10 -1";
        let socket = TcpSocket::of_proc_line(listener).expect("a socket");
        assert_eq!((socket.state, socket.recv_queue, socket.uid), (State::Listen, 18, Some(1000)));
        assert_eq!(socket.peer, "0.0.0.0:0");
        let half = "   3: 5E01A8C0:22B8 4101A8C0:F475 03 00000000:00000000 01:00000062 00000000  1000        0 0 2 \
                    ffff880f8b4fce80";
        let socket = TcpSocket::of_proc_line(half).expect("a socket");
        assert_eq!((socket.state, socket.info.cwnd), (State::SynReceived, None));
        let timer = Timer { kind: TimerKind::Retransmit, ends_in_ms: 980, retries: 0 };
        assert_eq!(socket.timer, Some(timer));
    }

    #[test]
    fn ipv6_words_are_turned_each() {
        let text = "   2: 00000000000000000000000001000000:DE32 0000000000000000FFFF00000100007F:23A4 01 \
                    00000000:00000000 00:00000000 00000000     0        0 2235724 1 000000008fae1379 20 0 0 11 -1";
        let socket = TcpSocket::of_proc_line(text).expect("a socket");
        assert_eq!((socket.local.as_str(), socket.peer.as_str()), ("[::1]:56882", "[::ffff:127.0.0.1]:9124"));
    }

    #[test]
    fn what_only_resembles_a_line_is_none() {
        for text in [
            "",
            "sl  local_address rem_address   st",
            "0: 0100007F:23A3",
            "0: 0100007F:23A3 0100007F:B968 FF 00000000:00000001 00:00000000 00000000",
            "0: 0100007F:23A3 0100007F:B968 01 00000000:0000000 00:00000000 00000000",
            "0: +100007F:23A3 0100007F:B968 01 00000000:00000000 00:00000000 00000000",
            "0: é00007Fé:23A3 0100007F:B968 01 00000000:00000000 00:00000000 00000000",
        ] {
            assert_eq!(TcpSocket::of_proc_line(text), None, "{text}");
        }
    }

    #[test]
    fn udp_has_the_same_columns_up_to_the_inode() {
        let text = "  371: 0100007F:14E9 00000000:0000 07 00000000:00000300 00:00000000 00000000   101        0 18023 2 \
                    0000000000000000 0";
        let socket = TcpSocket::of_proc_line(text).expect("a socket");
        assert_eq!((socket.local.as_str(), socket.peer.as_str()), ("127.0.0.1:5353", "0.0.0.0:0"));
        assert_eq!((socket.state, socket.recv_queue), (State::Closed, 768));
        assert_eq!((socket.uid, socket.inode), (Some(101), Some(18_023)));
    }
}
