//! What the kernel counted on one socket: the fields of `TCP_INFO` that a relay can use.

use tokio::net::TcpStream;

/// The kernel's account of one socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpInfo {
    /// The connection is over for the kernel: reset, or both ends are closed.
    pub(super) is_closed: bool,
    /// Segments that are sent and not yet acknowledged.
    pub(super) unacked: u32,
    /// Bytes that are written and not yet sent.
    pub(super) unsent: u32,
    /// Segments sent again, in all.
    pub(super) retransmits: u32,
    /// The smoothed round trip, µs.
    pub(super) rtt: u32,
    /// The shortest round trip, µs; `u32::MAX` before the first.
    pub(super) min_rtt: u32,
    /// Segments with data that came, duplicates included.
    pub(super) data_segments_in: u32,
    /// Segments with data that left, retransmissions included.
    pub(super) data_segments_out: u32,
}

impl TcpInfo {
    /// Whether everything written has reached the other host, or cannot any more.
    pub(super) fn is_drained(&self) -> bool {
        self.is_closed || self.unacked == 0 && self.unsent == 0
    }
}

/// What the kernel says of a socket; `None` where it does not say that much.
pub(super) fn of(socket: &TcpStream) -> Option<TcpInfo> {
    #[cfg(target_os = "linux")]
    return linux::of(socket);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = socket;
        None
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::OnceLock;

    use nix::sys::socket::GetSockOpt;
    use nix::{getsockopt_impl, sockopt_impl};
    use tokio::net::TcpStream;

    use super::TcpInfo;

    /// `struct tcp_info` up to and with `tcpi_data_segs_out`: fields are only ever added behind it, and the kernel fills as
    /// many bytes as are asked for (`tcp_get_info`, `include/uapi/linux/tcp.h`).
    const LENGTH: usize = 160;
    /// The first kernel whose `tcp_info` is that long.
    const SINCE: (u32, u32) = (4, 6);
    /// `TCP_CLOSE` of `include/net/tcp_states.h`.
    const CLOSE: u8 = 7;

    sockopt_impl!(
        /// `TCP_INFO`, as bytes.
        Bytes,
        GetOnly,
        libc::IPPROTO_TCP,
        libc::TCP_INFO,
        [u8; LENGTH]
    );

    pub(super) fn of(socket: &TcpStream) -> Option<TcpInfo> {
        let bytes = is_long_enough().then(|| Bytes.get(socket).ok())??;
        let at = |offset: usize| {
            let field = bytes.get(offset..offset + 4).and_then(|field| field.try_into().ok());
            field.map_or(0, u32::from_ne_bytes)
        };
        Some(TcpInfo {
            is_closed: bytes[0] == CLOSE,
            unacked: at(24),
            rtt: at(68),
            retransmits: at(100),
            unsent: at(144),
            min_rtt: at(148),
            data_segments_in: at(152),
            data_segments_out: at(156),
        })
    }

    fn is_long_enough() -> bool {
        static ANSWER: OnceLock<bool> = OnceLock::new();
        *ANSWER.get_or_init(|| {
            let name = rustix::system::uname();
            let mut numbers =
                name.release().to_str().unwrap_or_default().split(|c: char| !c.is_ascii_digit());
            let mut next = || numbers.next()?.parse::<u32>().ok();
            next().zip(next()).is_some_and(|version| version >= SINCE)
        })
    }
}
