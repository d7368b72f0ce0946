//! The programs of the stories: real sockets, one file each. They log what they write and read.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

use crate::place::{Seat, join};

pub mod bulk;
pub mod bursts;
pub mod calls;
pub mod chat;
pub mod congestion;
pub mod gateway;
pub mod login;
pub mod message;
pub mod mud;
pub mod relay;
pub mod requests;
pub mod socket;
pub mod stream;
pub mod transfer;
pub mod updates;
pub mod upload;

/// A listening socket on that host, on a port that the kernel chose. A socket stays on the host where it was
/// made, whichever thread uses it.
fn listen(seat: &Seat) -> Result<TcpListener> {
    let address = seat.address();
    join(seat.spawn(move || socket::Options::default().listen(address)))
}

/// CPU time of the calling thread so far.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
