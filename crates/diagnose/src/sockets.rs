//! One look at a socket: what it seems to wait for at this instant.
//!
//! A look is no measurement. It shows that bytes lie somewhere now, not for how long, so what is found is called a
//! suspicion; many looks in a row (`tcpwhy sockets --watch`) make figures of them.

use tcpwhy_wire::sockets::{CongestionState, State, TcpSocket, TimerKind};

/// Where data left less than this many ms ago, what is behind it may be held for microseconds only: a sender of many
/// small writes over a fast path, for which Nagle's algorithm gathers them as it should. Two ticks of the kernel's clock
/// for it at HZ=250, of which one may have just begun.
const JUST_SENT_MS: u64 = 8;
/// Data that came less than this many ms ago may only wait for the program to be woken: the kernel's clock for it ticks
/// each 4 ms (HZ=250) or 10 (HZ=100).
const JUST_CAME_MS: u64 = 10;
/// But not if it fills more than this share of the receive buffer: that is no message that has just come.
const MUCH_OF_BUFFER: u64 = 4;
/// Largest segment, and so the most that a cork can hold back, in bytes.
const LARGEST_SEGMENT: u64 = 65_535;

/// What a socket seems to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Nagle's algorithm holds a small segment until what is in flight is acknowledged (RFC 1122, 4.2.3.4).
    Nagle,
    /// `TCP_CORK` or `MSG_MORE` holds a small segment.
    Cork,
    /// One of the two: the socket's options are not known.
    NagleOrCork,
    /// The peer's window is full or closed.
    PeerWindow,
    /// The window is closed, or a cork holds the data: the source shows only that probes are timed.
    PeerWindowOrCork,
    /// Something is being sent again: a SYN, or lost data.
    Retransmission,
    /// The program does not read what came.
    Unread,
    /// The program does not accept the connections that came.
    Unaccepted,
}

impl Kind {
    /// Every kind, the gravest first.
    pub const ALL: [Self; 8] = [
        Self::Nagle,
        Self::Cork,
        Self::NagleOrCork,
        Self::PeerWindow,
        Self::PeerWindowOrCork,
        Self::Retransmission,
        Self::Unread,
        Self::Unaccepted,
    ];

    /// Its name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nagle => "nagle",
            Self::Cork => "cork",
            Self::NagleOrCork => "nagle-or-cork",
            Self::PeerWindow => "rwnd",
            Self::PeerWindowOrCork => "rwnd-or-cork",
            Self::Retransmission => "retransmission",
            Self::Unread => "unread",
            Self::Unaccepted => "unaccepted",
        }
    }
}

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// What the socket seems to wait for.
    pub kind: Kind,
    /// What waits: bytes; of [`Kind::Retransmission`] retransmissions in a row, of [`Kind::Unaccepted`] connections.
    pub amount: u64,
    /// Since when nothing has moved, in ms: the last data sent, or received for [`Kind::Unread`].
    pub still_ms: Option<u64>,
}

/// What `socket` seems to wait for, the gravest first.
pub fn suspicions(socket: &TcpSocket) -> Vec<Suspicion> {
    let sending = socket.state.may_send().then(|| held(socket).or_else(|| window(socket))).flatten();
    let all = [sending, retransmission(socket), unread(socket), unaccepted(socket)];
    all.into_iter().flatten().collect()
}

/// A small segment that could leave, and does not.
fn held(socket: &TcpSocket) -> Option<Suspicion> {
    let (info, options) = (&socket.info, &socket.options);
    let unsent = info.not_sent.filter(|&unsent| unsent > 0 && unsent < info.mss.unwrap_or(0))?;
    let flight = info.unacked?;
    if !has_room(socket, unsent)? {
        return None;
    }
    // With nothing in flight Nagle's algorithm sends. The kernel times probes where data lies and nothing is in flight
    // (`tcp_check_probe_timer`), so this data has been pushed and held; without that timer it is on its way out.
    let is_corked = flight == 0 && socket.timer.is_some_and(|timer| timer.kind == TimerKind::Probe);
    let kind = match (options.nodelay, options.cork) {
        (_, Some(true)) => Kind::Cork,
        _ if is_corked => Kind::Cork,
        _ if flight == 0 || info.last_sent_ms.is_some_and(|ms| ms < JUST_SENT_MS) => return None,
        (Some(false), Some(false)) => Kind::Nagle,
        // Pacing may keep it for a moment.
        (Some(true), Some(false)) => return None,
        _ => Kind::NagleOrCork,
    };
    Some(Suspicion { kind, amount: unsent, still_ms: info.last_sent_ms })
}

/// Whether both windows have room for `bytes` more; `None` where the source does not tell.
fn has_room(socket: &TcpSocket, bytes: u64) -> Option<bool> {
    let info = &socket.info;
    // `tcp_packets_in_flight` of `include/net/tcp.h`.
    let left = info.sacked.unwrap_or(0) + info.lost.unwrap_or(0);
    let out = (info.unacked? + info.retransmitted.unwrap_or(0)).saturating_sub(left);
    // The window counts from the first byte that is not acknowledged.
    let in_peer_window = socket.bytes_in_flight()?.saturating_add(bytes) <= info.peer_window?;
    Some(out < info.cwnd? && in_peer_window)
}

/// Data that the peer has no room for.
fn window(socket: &TcpSocket) -> Option<Suspicion> {
    let info = &socket.info;
    let is_probing = socket.timer.is_some_and(|timer| timer.kind == TimerKind::Probe);
    let waiting = info.not_sent.unwrap_or(socket.send_queue);
    if waiting == 0 {
        return None;
    }
    let kind = match (info.peer_window, socket.bytes_in_flight(), info.mss) {
        (Some(window), Some(flight), Some(mss)) => {
            // What does not fit as a whole does not leave (`tcp_snd_wnd_test`).
            let next = waiting.min(mss);
            (flight.saturating_add(next) > window).then_some(Kind::PeerWindow)
        }
        _ if !is_probing => None,
        _ if waiting > LARGEST_SEGMENT => Some(Kind::PeerWindow),
        _ => Some(Kind::PeerWindowOrCork),
    };
    kind.map(|kind| Suspicion { kind, amount: waiting, still_ms: info.last_sent_ms })
}

/// Something is sent again and again, or a loss is being repaired.
fn retransmission(socket: &TcpSocket) -> Option<Suspicion> {
    let may = socket.state.may_send() || matches!(socket.state, State::SynSent | State::SynReceived);
    let info = &socket.info;
    let by_timer = socket.timer.filter(|timer| timer.kind == TimerKind::Retransmit);
    let retries = by_timer.map_or(0, |timer| u64::from(timer.retries)).max(info.timeouts.unwrap_or(0));
    let again = info.retransmitted.unwrap_or(0);
    let repairs = matches!(info.congestion_state, Some(CongestionState::Recovery | CongestionState::Loss));
    let is_lost = info.lost.unwrap_or(0) > 0;
    let found = may && (retries > 0 || again > 0 || repairs || is_lost) && !is_probe_of_window(socket);
    found.then_some(Suspicion { kind: Kind::Retransmission, amount: retries, still_ms: info.last_ack_ms })
}

/// Probes of a closed window are counted as timeouts too.
fn is_probe_of_window(socket: &TcpSocket) -> bool {
    socket.timer.is_some_and(|timer| timer.kind == TimerKind::Probe)
}

fn unread(socket: &TcpSocket) -> Option<Suspicion> {
    let waiting = socket.recv_queue;
    if waiting == 0 || matches!(socket.state, State::Listen | State::Closed | State::TimeWait) {
        return None;
    }
    let still_ms = socket.info.last_received_ms;
    let just_came = still_ms.is_some_and(|ms| ms < JUST_CAME_MS)
        && socket.buffers.recv.is_some_and(|buffer| waiting < buffer / MUCH_OF_BUFFER);
    (!just_came).then_some(Suspicion { kind: Kind::Unread, amount: waiting, still_ms })
}

fn unaccepted(socket: &TcpSocket) -> Option<Suspicion> {
    let waits = socket.state == State::Listen && socket.recv_queue > 0;
    waits.then_some(Suspicion { kind: Kind::Unaccepted, amount: socket.recv_queue, still_ms: None })
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::sockets::{Info, Options, Timer};

    use super::*;

    /// 34 bytes wait behind one segment of 10, with room in both windows.
    fn small() -> TcpSocket {
        let mut socket =
            TcpSocket::new("10.0.0.1:80".to_owned(), "10.0.0.2:5000".to_owned(), State::Established);
        socket.send_queue = 44;
        socket.info = Info {
            not_sent: Some(34),
            unacked: Some(1),
            mss: Some(1448),
            cwnd: Some(10),
            peer_window: Some(65_536),
            last_sent_ms: Some(12),
            ..Info::default()
        };
        socket.options = Options { nodelay: Some(false), cork: Some(false), quickack: Some(true) };
        socket
    }

    fn kinds(socket: &TcpSocket) -> Vec<Kind> {
        suspicions(socket).into_iter().map(|suspicion| suspicion.kind).collect()
    }

    /// `small()`, changed.
    fn with(change: impl FnOnce(&mut TcpSocket)) -> Vec<Kind> {
        let mut socket = small();
        change(&mut socket);
        kinds(&socket)
    }

    fn probing() -> Option<Timer> {
        Some(Timer { kind: TimerKind::Probe, ends_in_ms: 128, retries: 0 })
    }

    #[test]
    fn a_small_segment_behind_data_in_flight_is_held_by_nagle() {
        let expected = Suspicion { kind: Kind::Nagle, amount: 34, still_ms: Some(12) };
        assert_eq!(suspicions(&small()), [expected]);
    }

    #[test]
    fn near_misses_of_nagle() {
        assert_eq!(with(|socket| socket.info.not_sent = Some(0)), []);
        assert_eq!(with(|socket| socket.info.not_sent = Some(1448)), [], "a full segment");
        assert_eq!(with(|socket| socket.info.unacked = Some(0)), [], "nothing to wait for: it is leaving");
        assert_eq!(with(|socket| socket.info.cwnd = Some(1)), [], "the congestion window is full");
        assert_eq!(with(|socket| socket.info.peer_window = None), [], "the window is not known");
        assert_eq!(with(|socket| socket.options.nodelay = Some(true)), [], "paced");
        assert_eq!(with(|socket| socket.info.last_sent_ms = Some(4)), [], "gathered in passing");
        assert_eq!(with(|socket| socket.state = State::TimeWait), []);
        // 44 bytes do not fit.
        assert_eq!(with(|socket| socket.info.peer_window = Some(43)), [Kind::PeerWindow]);
        assert_eq!(with(|socket| socket.info.peer_window = Some(44)), [Kind::Nagle]);
        // Lost and acknowledged segments are not in flight.
        let lost = |socket: &mut TcpSocket| {
            (socket.info.unacked, socket.info.lost) = (Some(10), Some(1));
        };
        assert_eq!(with(lost), [Kind::Nagle, Kind::Retransmission]);
    }

    #[test]
    fn corks() {
        assert_eq!(with(|socket| socket.options.cork = Some(true)), [Kind::Cork]);
        let both =
            |socket: &mut TcpSocket| (socket.options.cork, socket.options.nodelay) = (Some(true), Some(true));
        assert_eq!(with(both), [Kind::Cork], "a cork holds with TCP_NODELAY too");
        // MSG_MORE is no option that could be read.
        let more = |socket: &mut TcpSocket| {
            (socket.info.unacked, socket.send_queue, socket.timer) = (Some(0), 34, probing());
        };
        assert_eq!(with(more), [Kind::Cork]);
        let unknown = |socket: &mut TcpSocket| {
            more(socket);
            socket.options = Options::default();
        };
        assert_eq!(with(unknown), [Kind::Cork], "nothing is in flight: it cannot be Nagle");
        assert_eq!(with(|socket| socket.options = Options::default()), [Kind::NagleOrCork]);
    }

    #[test]
    fn windows() {
        let closed = |socket: &mut TcpSocket| {
            (socket.send_queue, socket.info.not_sent, socket.info.unacked) = (5_000, Some(5_000), Some(0));
            (socket.info.peer_window, socket.timer, socket.info.timeouts) = (Some(0), probing(), Some(3));
        };
        assert_eq!(with(closed), [Kind::PeerWindow], "probes are no retransmissions");
        // As /proc/net/tcp has it.
        let queue = |bytes: u64| {
            move |socket: &mut TcpSocket| {
                (socket.info, socket.options) = (Info::default(), Options::default());
                (socket.send_queue, socket.timer) = (bytes, probing());
            }
        };
        assert_eq!(with(queue(34)), [Kind::PeerWindowOrCork]);
        assert_eq!(with(queue(3_782_144)), [Kind::PeerWindow], "more than a cork can hold");
        assert_eq!(with(queue(0)), []);
    }

    #[test]
    fn what_is_sent_again() {
        let timer = Some(Timer { kind: TimerKind::Retransmit, ends_in_ms: 204, retries: 3 });
        let syn = |socket: &mut TcpSocket| {
            (socket.state, socket.timer, socket.info) = (State::SynSent, timer, Info::default());
        };
        assert_eq!(with(syn), [Kind::Retransmission]);
        let plain = Some(Timer { kind: TimerKind::Retransmit, ends_in_ms: 204, retries: 0 });
        assert_eq!(with(|socket| (socket.timer, socket.info.not_sent) = (plain, Some(0))), []);
        let recovery = Some(CongestionState::Recovery);
        assert_eq!(
            with(|socket| (socket.info.congestion_state, socket.info.not_sent) = (recovery, Some(0))),
            [Kind::Retransmission]
        );
    }

    #[test]
    fn what_the_program_does_not_take() {
        let unread = |bytes: u64, ms: Option<u64>| {
            move |socket: &mut TcpSocket| {
                socket.info = Info { last_received_ms: ms, ..Info::default() };
                socket.recv_queue = bytes;
                socket.buffers.recv = Some(131_072);
            }
        };
        assert_eq!(with(unread(10_010, Some(500))), [Kind::Unread]);
        assert_eq!(with(unread(10_010, None)), [Kind::Unread]);
        assert_eq!(with(unread(10_010, Some(4))), [], "the program is being woken");
        assert_eq!(with(unread(100_000, Some(0))), [Kind::Unread], "that did not come at once");
        let listens = |socket: &mut TcpSocket| {
            unread(18, None)(socket);
            socket.state = State::Listen;
        };
        assert_eq!(with(listens), [Kind::Unaccepted]);
    }

    #[test]
    fn names_are_told_apart() {
        let names: std::collections::HashSet<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), Kind::ALL.len());
        assert!(Kind::ALL.is_sorted());
    }
}
