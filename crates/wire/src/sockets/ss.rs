//! What `ss` prints (`ss -tan`, `ss -tinem`, with -p and -o too), and `netstat -tan`.
//!
//! ```text
//! ESTAB      0      34          127.0.0.1:47418    127.0.0.1:9123  timer:(persist,128ms,0) ino:2235716 sk:7 <->
//!      skmem:(r0,rb131072,…) ts sack bbr wscale:10,10 rto:204 rtt:0.047/0.012 mss:32768 … notsent:34 snd_wnd:65536
//! tcp        0     34 127.0.0.1:47418         127.0.0.1:9123          ESTABLISHED 7964/python3
//! ```

use super::words::{address, leading, ms_as_us, rate, timer_ms};
use super::{Buffers, Holder, Info, State, TcpSocket, Timer, TimerKind};

/// Words before the state in a line: `tcp`, a mail's `>`, a prompt.
const MOST_BEFORE: usize = 4;
/// Descriptors of one socket that are kept; a pre-forking server's children all have the listening one.
const MOST_HOLDERS: usize = 64;
/// Words of ss that are neither options of a connection nor its congestion control.
const FLAGS: [&str; 8] =
    ["ts", "sack", "ecn", "ecnseen", "fastopen", "app_limited", "tcp-ulp-tls", "usec_ts"];

/// The line above ss's list. It has no states where only sockets of one state were asked for (`ss state established`).
pub(super) fn is_heading_without_states(line: &str) -> bool {
    line.contains("Recv-Q") && line.contains("Local Address") && !line.contains("State")
}

/// A line below such a heading: of the one state that people ask for, or of a listening socket.
pub(super) fn line_without_state(line: &str) -> Option<TcpSocket> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (mut found, at) = (0..words.len().min(MOST_BEFORE + 1)).find_map(|at| {
        let [received, sent, local, peer] = words.get(at..at + 4)?.try_into().ok()?;
        let state = if peer.ends_with(":*") { "LISTEN" } else { "ESTAB" };
        Some((socket(state, [received, sent], [local, peer])?, at))
    })?;
    details(&mut found, line, &words[at + 4..]);
    Some(found)
}

/// What a line beginning with a socket says; with it, whether the line is ss's, which may go on below.
pub(super) fn line(line: &str) -> Option<(TcpSocket, bool)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let tries = words.len().min(MOST_BEFORE + 1);
    if let Some((mut socket, at)) = (0..tries).find_map(|at| Some((of_ss(&words, at)?, at))) {
        details(&mut socket, line, &words[at + 5..]);
        return Some((socket, true));
    }
    (0..tries).find_map(|at| of_netstat(&words[at..])).map(|socket| (socket, false))
}

/// `ESTAB 0 34 127.0.0.1:47418 127.0.0.1:9123` at `at`.
fn of_ss(words: &[&str], at: usize) -> Option<TcpSocket> {
    let is_other = |word: &&str| *word != "tcp" && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    if at.checked_sub(1).is_some_and(|before| is_other(&words[before])) {
        return None;
    }
    let [state, received, sent, local, peer] = words.get(at..at + 5)?.try_into().ok()?;
    socket(state, [received, sent], [local, peer])
}

/// `tcp 0 34 127.0.0.1:47418 127.0.0.1:9123 ESTABLISHED 7964/python3`
fn of_netstat(words: &[&str]) -> Option<TcpSocket> {
    let [protocol, received, sent, local, peer, state] = words.get(..6)?.try_into().ok()?;
    if !matches!(protocol, "tcp" | "tcp4" | "tcp6") {
        return None;
    }
    let mut socket = socket(state, [received, sent], [local, peer])?;
    let program = words[6..].iter().find_map(|word| word.split_once('/'));
    if let Some((pid, name)) = program.and_then(|(pid, name)| Some((pid.parse().ok()?, name))) {
        socket.holders.push(Holder { name: name.to_owned(), pid, fd: None });
    }
    Some(socket)
}

fn socket(state: &str, queues: [&str; 2], ends: [&str; 2]) -> Option<TcpSocket> {
    let mut socket = TcpSocket::new(address(ends[0])?, address(ends[1])?, state_named(state)?);
    socket.recv_queue = queues[0].parse().ok()?;
    socket.send_queue = queues[1].parse().ok()?;
    Some(socket)
}

fn state_named(word: &str) -> Option<State> {
    Some(match word {
        "ESTAB" | "ESTABLISHED" => State::Established,
        "SYN-SENT" | "SYN_SENT" => State::SynSent,
        "SYN-RECV" | "SYN_RECV" => State::SynReceived,
        "FIN-WAIT-1" | "FIN_WAIT1" => State::FinWait1,
        "FIN-WAIT-2" | "FIN_WAIT2" => State::FinWait2,
        "TIME-WAIT" | "TIME_WAIT" => State::TimeWait,
        "UNCONN" | "CLOSE" => State::Closed,
        "CLOSE-WAIT" | "CLOSE_WAIT" => State::CloseWait,
        "LAST-ACK" | "LAST_ACK" => State::LastAck,
        "LISTEN" => State::Listen,
        "CLOSING" => State::Closing,
        _ => return None,
    })
}

/// Takes a line below a socket's; false if it is something else.
pub(super) fn continuation(socket: &mut TcpSocket, line: &str) -> bool {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    // One word with a colon may be prose; ss indents its second line, mail programs break it anywhere.
    let least = if line.starts_with(char::is_whitespace) { 1 } else { 2 };
    details(socket, line, &words) >= least
}

/// Takes what is known of `words` into the socket; how many were.
fn details(socket: &mut TcpSocket, line: &str, words: &[&str]) -> usize {
    let mut known = holders(socket, line);
    for (i, word) in words.iter().enumerate() {
        let next = words.get(i + 1).copied();
        known += usize::from(match word.split_once(':') {
            Some((key, value)) => named(socket, key, value) || of_connection(&mut socket.info, key, value),
            None => unnamed(socket, word, next),
        });
    }
    known
}

/// `users:(("nginx",pid=12,fd=3),("nginx",pid=13,fd=3))`. Names are anything: one that looks like the end of a name is
/// left out with all behind it.
fn holders(socket: &mut TcpSocket, line: &str) -> usize {
    let Some((_, mut rest)) = line.split_once("users:((\"") else { return 0 };
    while socket.holders.len() < MOST_HOLDERS {
        let Some((holder, after)) = first_holder(rest) else { break };
        socket.holders.push(holder);
        let Some(next) = after.strip_prefix("),(\"") else { break };
        rest = next;
    }
    1
}

/// `nginx",pid=12,fd=3`, or `nginx",12,3` as ss wrote before 2015, and what follows, if that is the end of an item.
fn first_holder(text: &str) -> Option<(Holder, &str)> {
    let (name, after, between) = match text.split_once("\",pid=") {
        Some((name, after)) => (name, after, ",fd="),
        None => text.split_once("\",").map(|(name, after)| (name, after, ","))?,
    };
    let (pid, after) = after.split_once(between)?;
    let digits = after.find(|c: char| !c.is_ascii_digit())?;
    let holder =
        Holder { name: name.to_owned(), pid: pid.parse().ok()?, fd: Some(after[..digits].parse().ok()?) };
    let after = &after[digits..];
    after.starts_with(')').then_some((holder, after))
}

/// `uid:1000`, `timer:(on,204ms,2)`, …: what is the socket's.
fn named(socket: &mut TcpSocket, key: &str, value: &str) -> bool {
    let inner = || value.strip_prefix('(').and_then(|value| value.strip_suffix(')'));
    match key {
        "ino" => socket.inode = leading(value),
        "uid" => socket.uid = value.parse().ok(),
        "timer" => socket.timer = inner().and_then(timer),
        "skmem" => inner().unwrap_or("").split(',').for_each(|item| memory(&mut socket.buffers, item)),
        _ => return false,
    }
    true
}

/// `persist,128ms,0`
fn timer(inner: &str) -> Option<Timer> {
    let mut items = inner.split(',');
    let kind = match items.next()? {
        "on" => TimerKind::Retransmit,
        "keepalive" => TimerKind::KeepAlive,
        "timewait" => TimerKind::TimeWait,
        "persist" => TimerKind::Probe,
        _ => return None,
    };
    let ends_in_ms = items.next().and_then(timer_ms).unwrap_or(0);
    let retries = items.next().and_then(|retries| retries.parse().ok()).unwrap_or(0);
    Some(Timer { kind, ends_in_ms, retries })
}

/// `rb131072`: letters, then bytes.
fn memory(buffers: &mut Buffers, item: &str) {
    let digits = item.find(|c: char| c.is_ascii_digit()).unwrap_or(item.len());
    let bytes = leading(&item[digits..]);
    match &item[..digits] {
        "rb" => buffers.recv = bytes,
        "tb" => buffers.send = bytes,
        "d" => buffers.drops = bytes,
        _ => {}
    }
}

/// `rtt:0.047/0.012`, `mss:1448`, …: what is the connection's.
fn of_connection(info: &mut Info, key: &str, value: &str) -> bool {
    let (first, second) = value.split_once('/').unwrap_or((value, ""));
    let number = leading(first);
    match key {
        "rto" => info.rto_us = ms_as_us(first),
        "rtt" => (info.rtt_us, info.rtt_deviation_us) = (ms_as_us(first), ms_as_us(second)),
        "minrtt" => info.min_rtt_us = ms_as_us(first),
        "ato" => info.ato_us = ms_as_us(first),
        "mss" => info.mss = number,
        "rcvmss" => info.recv_mss = number,
        "pmtu" => info.path_mtu = number,
        "cwnd" => info.cwnd = number,
        "ssthresh" => info.ssthresh = number,
        "unacked" => info.unacked = number,
        "sacked" => info.sacked = number,
        "lost" => info.lost = number,
        "retrans" => (info.retransmitted, info.retransmissions) = (number, leading(second)),
        "notsent" => info.not_sent = number,
        "snd_wnd" => info.peer_window = number,
        "rcv_wnd" => info.own_window = number,
        "lastsnd" => info.last_sent_ms = number,
        "lastrcv" => info.last_received_ms = number,
        "lastack" => info.last_ack_ms = number,
        "busy" => info.busy_us = ms_as_us(first),
        "rwnd_limited" => info.peer_window_limited_us = ms_as_us(first),
        "sndbuf_limited" => info.send_buffer_limited_us = ms_as_us(first),
        "bytes_sent" => info.bytes_sent = number,
        "bytes_retrans" => info.bytes_retransmitted = number,
        "bytes_acked" => info.bytes_acked = number,
        "bytes_received" => info.bytes_received = number,
        "rcv_ooopack" => info.out_of_order = number,
        // Known, and of no use here.
        "wscale" | "advmss" | "segs_out" | "segs_in" | "data_segs_out" | "data_segs_in" | "bbr"
        | "delivered" | "rcv_rtt" | "rcv_space" | "rcv_ssthresh" | "backoff" | "dsack_dups"
        | "reordering" | "reord_seen" | "sk" | "cgroup" | "v6only" => {}
        _ => return false,
    }
    true
}

/// Words without a colon: `pacing_rate 576283534880bps`, `app_limited`, and the congestion control's name, which
/// stands before the first of the others.
fn unnamed(socket: &mut TcpSocket, word: &str, next: Option<&str>) -> bool {
    match word {
        "pacing_rate" => socket.info.pacing_rate = next.and_then(rate),
        "delivery_rate" => socket.info.delivery_rate = next.and_then(rate),
        "app_limited" => socket.info.is_app_limited = Some(true),
        _ => {
            let is_name = !FLAGS.contains(&word)
                && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                && next
                    .is_some_and(|next| ["wscale:", "rto:", "cwnd:"].iter().any(|key| next.starts_with(key)));
            if !is_name {
                return false;
            }
            socket.congestion_control = Some(word.to_owned());
        }
    }
    true
}

/// ss leaves out what is zero. Where a line has what comes from `struct tcp_info` at all, what is missing is zero; of
/// what only newer kernels know, if it has something else of them.
pub(super) fn complete(socket: &mut TcpSocket) {
    let info = &mut socket.info;
    if info.mss.is_none() || socket.state == State::Listen {
        return;
    }
    for value in [
        &mut info.unacked,
        &mut info.sacked,
        &mut info.lost,
        &mut info.retransmitted,
        &mut info.retransmissions,
        &mut info.last_sent_ms,
        &mut info.last_received_ms,
        &mut info.last_ack_ms,
    ] {
        value.get_or_insert(0);
    }
    // All three came with Linux 4.6.
    if info.min_rtt_us.is_some() || info.delivery_rate.is_some() || info.not_sent.is_some() {
        info.not_sent.get_or_insert(0);
        info.is_app_limited.get_or_insert(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> TcpSocket {
        let mut lines = text.lines();
        let (mut socket, goes_on) = line(lines.next().expect("a line")).expect("a socket");
        for below in lines {
            assert!(goes_on && continuation(&mut socket, below), "{below}");
        }
        complete(&mut socket);
        socket
    }

    #[test]
    fn a_corked_socket() {
        let socket = read(
            "ESTAB      0      34          127.0.0.1:47418    127.0.0.1:9123  timer:(persist,128ms,0) ino:2235716 sk:7 cgroup:/ <->\n\
             \t skmem:(r0,rb131072,t0,tb3939840,f3230,w866,o0,bl0,d0) ts sack bbr wscale:10,10 rto:204 \
             rtt:0.047/0.012 mss:32768 pmtu:65535 rcvmss:536 advmss:65483 cwnd:15 bytes_sent:170 bytes_acked:171 \
             pacing_rate 178226499864bps delivery_rate 6898526312bps delivered:6 app_limited busy:1120ms notsent:34 \
             minrtt:0.038 snd_wnd:65536",
        );
        assert_eq!(
            (socket.state, socket.send_queue, socket.inode),
            (State::Established, 34, Some(2_235_716))
        );
        let timer = Timer { kind: TimerKind::Probe, ends_in_ms: 128, retries: 0 };
        assert_eq!(socket.timer, Some(timer));
        assert_eq!(
            (socket.buffers.recv, socket.buffers.send, socket.buffers.drops),
            (Some(131_072), Some(3_939_840), Some(0))
        );
        assert_eq!(socket.congestion_control.as_deref(), Some("bbr"));
        let info = socket.info;
        assert_eq!((info.rtt_us, info.rtt_deviation_us, info.min_rtt_us), (Some(47), Some(12), Some(38)));
        assert_eq!(
            (info.not_sent, info.peer_window, info.mss, info.cwnd),
            (Some(34), Some(65_536), Some(32_768), Some(15))
        );
        assert_eq!((info.unacked, info.retransmissions, info.busy_us), (Some(0), Some(0), Some(1_120_000)));
        assert_eq!((info.pacing_rate, info.is_app_limited), (Some(22_278_312_483), Some(true)));
    }

    #[test]
    fn names_of_programs_are_anything() {
        let socket = read(
            "tcp  ESTAB 0 0 10.0.0.1:22 10.0.0.2:5000 users:((\"a b\",pid=1,fd=2\",pid=7964,fd=3),(\"x\",pid=12,fd=4)) cubic cwnd:10",
        );
        // That program calls itself `a b",pid=1,fd=2`. It is not process 1.
        assert_eq!(socket.holders, []);
        let socket = read("LISTEN 1 5 *:http *:* users:((\"Web Content\",pid=8,fd=3),(\"x\",pid=12,fd=4))");
        let names: Vec<_> =
            socket.holders.iter().map(|holder| (holder.name.as_str(), holder.pid, holder.fd)).collect();
        assert_eq!(names, [("Web Content", 8, Some(3)), ("x", 12, Some(4))]);
        assert_eq!((socket.local.as_str(), socket.recv_queue, socket.send_queue), ("*:http", 1, 5));
    }

    #[test]
    fn older_forms() {
        let socket = read("ESTAB 0 0 10.0.0.1:22 10.0.0.2:5000 users:((\"sshd\",1234,3),(\"sshd\",1235,3))");
        let pids: Vec<_> = socket.holders.iter().map(|holder| (holder.pid, holder.fd)).collect();
        assert_eq!(pids, [(1234, Some(3)), (1235, Some(3))]);
        let text = "0      34     10.0.0.1:80     10.0.0.2:5000    timer:(on,204ms,0)";
        assert_eq!(line(text), None);
        let socket = line_without_state(text).expect("a socket");
        assert_eq!((socket.state, socket.send_queue), (State::Established, 34));
        assert!(socket.timer.is_some());
        assert_eq!(line_without_state("0 128 *:22 *:*").map(|socket| socket.state), Some(State::Listen));
    }

    #[test]
    fn netstat_has_the_state_behind() {
        let socket = read(
            "tcp6       5      0 ::1:9124                ::1:56882               ESTABLISHED 7964/python3",
        );
        assert_eq!(
            (socket.local.as_str(), socket.state, socket.recv_queue),
            ("[::1]:9124", State::Established, 5)
        );
        assert_eq!(socket.holders, [Holder { name: "python3".to_owned(), pid: 7964, fd: None }]);
    }

    #[test]
    fn retransmissions_and_limits() {
        let socket = read(
            "> ESTAB 0 26064 192.168.1.5:443 203.0.113.9:5123 timer:(on,1.204ms,3)\n\
             >  ts sack cubic wscale:7,7 rto:1648 backoff:3 rtt:21.5/3.2 mss:1448 cwnd:1 ssthresh:7 unacked:18 retrans:1/9 \
             lost:17 sacked:1 busy:8412ms rwnd_limited:84ms(1.0%) sndbuf_limited:4ms(0.0%)",
        );
        assert_eq!(socket.timer.map(|timer| (timer.ends_in_ms, timer.retries)), Some((1_204, 3)));
        let info = socket.info;
        assert_eq!((info.unacked, info.lost, info.sacked), (Some(18), Some(17), Some(1)));
        assert_eq!((info.retransmitted, info.retransmissions, info.ssthresh), (Some(1), Some(9), Some(7)));
        assert_eq!((info.peer_window_limited_us, info.send_buffer_limited_us), (Some(84_000), Some(4_000)));
        // Nothing shows that the kernel knows unsent bytes.
        assert_eq!(info.not_sent, None);
    }

    #[test]
    fn other_protocols_and_prose_are_no_sockets() {
        for text in [
            "udp   UNCONN 0      0          127.0.0.1:323        0.0.0.0:*",
            "u_str ESTAB  0      0                  * 21480            * 21481",
            "State  Recv-Q Send-Q Local Address:Port Peer Address:Port Process",
            "The socket is ESTAB 5 times: see http://x.example:80 and below:",
            "tcp connections: 5 4 of them:x y:z ESTABLISHED",
        ] {
            assert_eq!(line(text), None, "{text}");
        }
        let mut socket = TcpSocket::new("a:1".to_owned(), "b:2".to_owned(), State::Established);
        assert!(!continuation(&mut socket, "Note: the first one hangs, rtt:5 or so"));
        assert!(!continuation(&mut socket, ""));
    }
}
