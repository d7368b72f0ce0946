//! Linux's `struct tcp_info` (`include/uapi/linux/tcp.h`): what `getsockopt(TCP_INFO)` and `sock_diag` give.
//!
//! The struct grows at its end with each kernel, so a field is there if its bytes are. libc's and the netlink
//! crates' structs have one length each and reject, or pad with zeros, what an older kernel gives.

/// `TCP_INFINITE_SSTHRESH` of `include/net/tcp.h`: slow start has not ended yet.
const NO_THRESHOLD: u64 = 0x7fff_ffff;

/// The state in which the struct says something else (`TCP_LISTEN`).
const LISTEN: u64 = 10;

/// The kernel's view of one connection. `None`: the kernel, or the text, does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// How congestion control sees the path.
    pub congestion_state: Option<CongestionState>,
    /// Retransmission timeouts in a row, without an ACK between them.
    pub timeouts: Option<u64>,
    /// Probes of a closed window, or of an idle peer, without an answer.
    pub probes: Option<u64>,
    /// The retransmission timeout in µs.
    pub rto_us: Option<u64>,
    /// The present delay of ACKs in µs; 0 before the first.
    pub ato_us: Option<u64>,
    /// Payload of a full segment to the peer, in bytes.
    pub mss: Option<u64>,
    /// The peer's segments, as the kernel guesses them to be, in bytes.
    pub recv_mss: Option<u64>,
    /// Segments that are sent and not acknowledged. Of a listening socket: connections that wait for `accept()`.
    pub unacked: Option<u64>,
    /// Of these, segments that the peer acknowledged out of order. Of a listening socket: its backlog.
    pub sacked: Option<u64>,
    /// Of these, segments taken to be lost.
    pub lost: Option<u64>,
    /// Of these, segments that were sent again.
    pub retransmitted: Option<u64>,
    /// Since data was last sent, in ms.
    pub last_sent_ms: Option<u64>,
    /// Since data last came, in ms.
    pub last_received_ms: Option<u64>,
    /// Since an ACK last came, in ms.
    pub last_ack_ms: Option<u64>,
    /// The path's MTU in bytes.
    pub path_mtu: Option<u64>,
    /// The smoothed round trip in µs.
    pub rtt_us: Option<u64>,
    /// Its mean deviation in µs.
    pub rtt_deviation_us: Option<u64>,
    /// The shortest round trip of the last minutes in µs.
    pub min_rtt_us: Option<u64>,
    /// The congestion window in segments.
    pub cwnd: Option<u64>,
    /// The slow start threshold in segments; `None` also while there is none.
    pub ssthresh: Option<u64>,
    /// Segments sent again, in all.
    pub retransmissions: Option<u64>,
    /// Their bytes.
    pub bytes_retransmitted: Option<u64>,
    /// Bytes that the program wrote and TCP has not sent yet.
    pub not_sent: Option<u64>,
    /// The window that the peer last advertised, in bytes.
    pub peer_window: Option<u64>,
    /// The window that was last advertised to the peer, in bytes.
    pub own_window: Option<u64>,
    /// Bytes a second at which the kernel paces; `None` also where it does not.
    pub pacing_rate: Option<u64>,
    /// Bytes a second that the path delivered lately.
    pub delivery_rate: Option<u64>,
    /// Whether `delivery_rate` is the program's rate rather than the path's.
    pub is_app_limited: Option<bool>,
    /// µs in which there was something to send or on its way.
    pub busy_us: Option<u64>,
    /// Of these, µs in which the peer's window was full.
    pub peer_window_limited_us: Option<u64>,
    /// Of these, µs in which the send buffer was full.
    pub send_buffer_limited_us: Option<u64>,
    /// Bytes sent, with retransmissions.
    pub bytes_sent: Option<u64>,
    /// Bytes that the peer acknowledged.
    pub bytes_acked: Option<u64>,
    /// Bytes that came, in order.
    pub bytes_received: Option<u64>,
    /// Segments that came out of order.
    pub out_of_order: Option<u64>,
    /// Segments with data that came, duplicates included.
    pub data_segments_in: Option<u64>,
    /// Segments with data that left, retransmissions included.
    pub data_segments_out: Option<u64>,
}

/// `enum tcp_ca_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionState {
    /// Nothing special.
    Open,
    /// Duplicate ACKs or SACKs came.
    Disorder,
    /// The window is being reduced, after a mark of congestion or a local drop.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// A retransmission timeout.
    Loss,
}

impl CongestionState {
    pub(super) fn of_linux(number: u64) -> Option<Self> {
        [Self::Open, Self::Disorder, Self::Reduced, Self::Recovery, Self::Loss]
            .get(usize::try_from(number).ok()?)
            .copied()
    }
}

/// The bytes that the kernel gave, in this machine's byte order.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn u8(self, at: usize) -> Option<u64> {
        self.0.get(at).map(|&byte| u64::from(byte))
    }

    fn u32(self, at: usize) -> Option<u64> {
        let bytes = self.0.get(at..at + 4)?.try_into().ok()?;
        Some(u64::from(u32::from_ne_bytes(bytes)))
    }

    fn u64(self, at: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(self.0.get(at..at + 8)?.try_into().ok()?))
    }
}

impl Info {
    /// Takes the struct apart, as long as the kernel made it. It is this machine's: integers are in its byte order.
    pub fn of_tcp_info(bytes: &[u8]) -> Self {
        let kernel = Bytes(bytes);
        // Of a listening socket only the queue and its limit are filled in; the rest is zero and means nothing.
        if kernel.u8(0) == Some(LISTEN) {
            return Self { unacked: kernel.u32(24), sacked: kernel.u32(28), ..Self::default() };
        }
        let info = Self {
            congestion_state: kernel.u8(1).and_then(CongestionState::of_linux),
            timeouts: kernel.u8(2),
            probes: kernel.u8(3),
            rto_us: kernel.u32(8),
            ato_us: kernel.u32(12),
            mss: kernel.u32(16),
            recv_mss: kernel.u32(20),
            unacked: kernel.u32(24),
            sacked: kernel.u32(28),
            lost: kernel.u32(32),
            retransmitted: kernel.u32(36),
            last_sent_ms: kernel.u32(44),
            last_received_ms: kernel.u32(52),
            last_ack_ms: kernel.u32(56),
            path_mtu: kernel.u32(60),
            // 0: there was no round trip yet.
            rtt_us: kernel.u32(68).filter(|rtt| *rtt > 0),
            rtt_deviation_us: kernel.u32(72).filter(|_| kernel.u32(68) > Some(0)),
            ssthresh: kernel.u32(76).filter(|segments| *segments < NO_THRESHOLD),
            cwnd: kernel.u32(80),
            retransmissions: kernel.u32(100),
            ..Self::default()
        };
        info.with_counters(kernel)
    }

    /// What kernels since 4.6 know (busy times since 4.10, the peer's window since 5.4, the own since 6.2).
    fn with_counters(self, kernel: Bytes<'_>) -> Self {
        Self {
            // All ones: pacing is off.
            pacing_rate: kernel.u64(104).filter(|rate| *rate < u64::MAX),
            bytes_acked: kernel.u64(120),
            bytes_received: kernel.u64(128),
            not_sent: kernel.u32(144),
            // All ones, likewise.
            min_rtt_us: kernel.u32(148).filter(|rtt| *rtt < u64::from(u32::MAX)),
            data_segments_in: kernel.u32(152),
            data_segments_out: kernel.u32(156),
            delivery_rate: kernel.u64(160),
            is_app_limited: kernel.u64(160).and(kernel.u8(7)).map(|bits| bits & 1 == 1),
            busy_us: kernel.u64(168),
            peer_window_limited_us: kernel.u64(176),
            send_buffer_limited_us: kernel.u64(184),
            bytes_sent: kernel.u64(200),
            bytes_retransmitted: kernel.u64(208),
            out_of_order: kernel.u32(224),
            peer_window: kernel.u32(228),
            own_window: kernel.u32(232),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_kernels_struct_ends_earlier_and_says_less() {
        // A kernel's bytes of 104 (2.6.39 to 3.14), as libc's struct still has it.
        let mut bytes = [0; 104];
        bytes[68..72].copy_from_slice(&21_u32.to_ne_bytes());
        bytes[76..80].copy_from_slice(&0x7fff_ffff_u32.to_ne_bytes());
        bytes[80..84].copy_from_slice(&10_u32.to_ne_bytes());
        let info = Info::of_tcp_info(&bytes);
        assert_eq!((info.rtt_us, info.cwnd, info.retransmissions), (Some(21), Some(10), Some(0)));
        assert_eq!((info.ssthresh, info.not_sent, info.peer_window), (None, None, None));
        assert_eq!(Info::of_tcp_info(&[]), Info::default());
    }

    #[test]
    fn of_a_listening_socket_only_the_queue_is_told() {
        let mut bytes = [0; 236];
        bytes[0] = 10;
        bytes[24..28].copy_from_slice(&1_u32.to_ne_bytes());
        bytes[28..32].copy_from_slice(&128_u32.to_ne_bytes());
        let expected = Info { unacked: Some(1), sacked: Some(128), ..Info::default() };
        assert_eq!(Info::of_tcp_info(&bytes), expected);
    }

    #[test]
    fn every_length_is_taken() {
        for length in 0..300 {
            let info = Info::of_tcp_info(&vec![0xff; length]);
            assert_eq!(info.own_window.is_some(), length >= 236, "{length}");
        }
    }

    #[test]
    fn offsets_are_those_of_the_kernels_header() {
        // Each u32 and u64 field's bytes hold its own offset.
        let mut bytes = vec![0; 236];
        for at in (8..104).step_by(4).chain((136..160).step_by(4)).chain((224..236).step_by(4)) {
            bytes[at..at + 4].copy_from_slice(&(at as u32).to_ne_bytes());
        }
        for at in [104_usize, 112, 120, 128, 160, 168, 176, 184, 200, 208] {
            bytes[at..at + 8].copy_from_slice(&(at as u64).to_ne_bytes());
        }
        let info = Info::of_tcp_info(&bytes);
        // Counted by hand in linux/tcp.h.
        assert_eq!((info.mss, info.unacked, info.lost), (Some(16), Some(24), Some(32)));
        assert_eq!((info.rtt_us, info.cwnd, info.retransmissions), (Some(68), Some(80), Some(100)));
        assert_eq!((info.not_sent, info.min_rtt_us, info.delivery_rate), (Some(144), Some(148), Some(160)));
        assert_eq!((info.busy_us, info.send_buffer_limited_us), (Some(168), Some(184)));
        assert_eq!((info.out_of_order, info.peer_window), (Some(224), Some(228)));
        assert_eq!((info.data_segments_in, info.data_segments_out), (Some(152), Some(156)));
    }
}
