//! The programs of the stories: real sockets, one file each. They log what they write and read.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
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
    join(seat.spawn(move || Ok(TcpListener::bind((address, 0))?)))
}

/// A connection from `listener`; an error if nobody comes.
fn accept_within(listener: &TcpListener, patience: Duration) -> Result<TcpStream> {
    set_socket_timeout(listener, Timeout::Recv, Some(patience))?;
    let (stream, _) = listener.accept().context("nobody came")?;
    Ok(stream)
}

/// CPU time of the calling thread so far.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
