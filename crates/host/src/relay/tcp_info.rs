//! What the kernel counted on one socket: the fields of `TCP_INFO` that a relay can use.

#[cfg(target_os = "linux")]
use tcpwhy_wire::sockets::State;
use tokio::net::TcpStream;

#[cfg(target_os = "linux")]
use crate::sockets::state_and_info;

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
    /// The smoothed round trip, µs; 0 before the first.
    pub(super) rtt: u32,
    /// The shortest round trip, µs; `None` before the first.
    pub(super) min_rtt: Option<u32>,
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

/// What the kernel says of a socket; `None` where it does not say that much (Linux before 4.6, other systems).
#[cfg(target_os = "linux")]
pub(super) fn of(socket: &TcpStream) -> Option<TcpInfo> {
    let (state, info) = state_and_info(socket).ok()?;
    let number = |field: Option<u64>| field.and_then(|field| u32::try_from(field).ok());
    Some(TcpInfo {
        is_closed: state == Some(State::Closed),
        unacked: number(info.unacked)?,
        unsent: number(info.not_sent)?,
        retransmits: number(info.retransmissions)?,
        rtt: number(info.rtt_us).unwrap_or(0),
        min_rtt: number(info.min_rtt_us),
        data_segments_in: number(info.data_segments_in)?,
        data_segments_out: number(info.data_segments_out)?,
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn of(_: &TcpStream) -> Option<TcpInfo> {
    None
}
