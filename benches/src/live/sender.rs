//! Frames onto an interface, as many a second as asked for.

use std::hint;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, sendmmsg};
use tcpwhy_host::ring::{Ring, Wanted};

use super::frames::Frames;

/// Frames of a system call, of which each would cost a fifth of the time otherwise.
const TOGETHER: usize = 64;

/// What was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) took: Duration,
}

impl Sent {
    pub(super) fn per_second(self) -> f64 {
        self.packets as f64 / self.took.as_secs_f64()
    }
}

/// Sends for so long, at `rate` packets a second or as fast as it goes.
pub(super) fn send(interface: &str, rate: u32, time: Duration) -> Result<Sent> {
    // Its socket is what is needed of it: nothing arrives there.
    let socket = Ring::open(interface, 64, Wanted::Arriving)?;
    let mut frames = Frames::new();
    let mut batch = vec![Vec::new(); TOGETHER];
    let mut headers = MultiHeaders::<()>::preallocate(TOGETHER, None);
    let (start, mut packets) = (Instant::now(), 0);
    while start.elapsed() < time {
        batch.iter_mut().for_each(|frame| frames.next(frame));
        packets += send_all(&socket, &batch, &mut headers)?;
        let due = Duration::from_secs_f64(packets as f64 / f64::from(rate));
        while start.elapsed() < due {
            hint::spin_loop();
        }
    }
    Ok(Sent { packets, took: start.elapsed() })
}

/// How many of them the interface took.
fn send_all(socket: &Ring, batch: &[Vec<u8>], headers: &mut MultiHeaders<()>) -> io::Result<u64> {
    let slices: Vec<[IoSlice<'_>; 1]> = batch.iter().map(|frame| [IoSlice::new(frame)]).collect();
    let nowhere = vec![None; batch.len()];
    let socket = socket.as_fd().as_raw_fd();
    match sendmmsg(socket, headers, &slices, nowhere, [], MsgFlags::MSG_DONTWAIT) {
        Ok(sent) => Ok(sent.count() as u64),
        Err(Errno::EAGAIN | Errno::ENOBUFS) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
