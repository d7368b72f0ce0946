//! Drives `tcpwhy_simulate::link` by the wall clock.
//!
//! ```text
//! clock.rs     one reading of the clock at a time; notices when the machine stood still
//! lateness.rs  how late packets were, and when a run is void
//! tap.rs       captures, made by the emulator itself
//! drive.rs     the loop: take in what hosts sent, deliver what is due, wait
//! ```

mod clock;
mod drive;
mod lateness;
mod tap;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use rustix::event::{EventfdFlags, eventfd};
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

use crate::capture::Capture;
use crate::place::Line;
use crate::recording::{Event, Lateness, Setup};
use drive::Drive;
pub(crate) use lateness::is_void;

/// A thread that drives the links of a run until it is told to stop.
pub(crate) struct Emulator {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<Result<Observed>>>,
}

/// What the emulator saw.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) captures: Vec<Capture>,
    /// Packets that captures lack, because they were full.
    pub(crate) missing: u64,
    pub(crate) events: Vec<Event>,
    pub(crate) lateness: Lateness,
}

impl Emulator {
    /// Starts to carry packets.
    pub(crate) fn start(lines: Vec<Line>, setup: &Setup) -> Result<Self> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let mut drive = Drive::new(lines, setup, Arc::clone(&stop))?;
        let thread = std::thread::Builder::new().name("emulator".to_owned()).spawn(move || {
            hurry();
            drive.run()?;
            drive.finish()
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Waits for what is under way to arrive, and stops.
    pub(crate) fn stop(mut self) -> Result<Observed> {
        self.signal().context("cannot stop the emulator")?;
        let Some(thread) = self.thread.take() else { return Err(anyhow!("the emulator runs no more")) };
        thread.join().map_err(|_| anyhow!("the emulator failed"))?
    }

    fn signal(&self) -> io::Result<()> {
        rustix::io::write(&*self.stop, &1_u64.to_ne_bytes())?;
        Ok(())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if let (Some(thread), Ok(())) = (self.thread.take(), self.signal()) {
            let _ = thread.join();
        }
    }
}

/// Asks the kernel to run this thread before others and to wake it on time; whether it agreed.
fn hurry() -> bool {
    // By default the kernel may wake a thread 50 µs late to save power.
    let _ = nix::sys::prctl::set_timerslack(1);
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    // Any priority of this class comes before all programs; the lowest leaves the kernel's own threads alone.
    let priority = ThreadPriorityValue::try_from(1).map(ThreadPriority::Crossplatform);
    priority
        .is_ok_and(|priority| set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok())
}
