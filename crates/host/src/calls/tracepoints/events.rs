//! Trace events opened for threads and what they start, into one ring for each CPU.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use perf_event::events::Tracepoint;
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Stacks;
use super::layout::{Wanted, What};

/// Bytes of all rings together, and of one: some ms of a busy program with its stacks.
const MEMORY: usize = 64 << 20;
const LARGEST_RING: usize = 8 << 20;
const SMALLEST_RING: usize = 512 << 10;
/// The reader is woken when a ring is full to this part; else it looks by itself.
const WAKE_AT: usize = 4;
/// Bytes copied of a stack. What lies between a call and the line that made it takes some hundreds; the callers further out
/// may be cut off.
const STACK: u32 = 4096;
/// The registers that unwinding begins with: `PERF_REG_X86_BP`, `SP` and `IP`, in this order in a sample.
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// Frames taken of a stack by frame pointers.
const DEPTH: u16 = 48;

/// From `<linux/perf_event.h>`: `_IO('$', 5)` and `_IOW('$', 6, char *)`.
const SET_OUTPUT: libc::Ioctl = 0x2405;
const SET_FILTER: libc::Ioctl = 0x4008_2406;

/// What a sample's bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) what: What,
    /// The thread that the event was opened for; others inherited it. 0 where it was opened for all.
    pub(super) root: u32,
    /// Return addresses come along.
    pub(super) has_chain: bool,
    /// Registers and a copy of the stack come along.
    pub(super) has_copy: bool,
}

/// Events under way. They end when this is dropped, and with the process however it ends.
#[derive(Default)]
pub(super) struct Events {
    pub(super) rings: Vec<Sampler>,
    /// By the number that a sample begins with.
    pub(super) sources: HashMap<u64, Source>,
    open: Vec<Counter>,
    cpus: Vec<usize>,
}

impl Events {
    /// Opens the rings, and the event that tells of each connection's beginning and end, whosever it is: most of them happen
    /// in nobody's name.
    pub(super) fn open(wanted: &Wanted) -> io::Result<Self> {
        let cpus = online()?;
        let ring = (MEMORY / cpus.len().max(1)).clamp(SMALLEST_RING, LARGEST_RING);
        let mut events = Self { cpus, ..Self::default() };
        for &cpu in &events.cpus {
            let mut builder = builder(What::State, wanted);
            builder.any_pid().one_cpu(cpu).wakeup_watermark(ring / WAKE_AT).enabled(true);
            let counter = builder.build()?;
            filter(&counter, What::State)?;
            let source = Source { what: What::State, root: 0, has_chain: false, has_copy: false };
            events.sources.insert(counter.id(), source);
            events.rings.push(counter.sampled(ring)?);
        }
        Ok(events)
    }

    /// Watches a thread, and the threads and processes that it starts from now on.
    pub(super) fn watch(&mut self, wanted: &Wanted, thread: u32, stacks: Stacks) -> io::Result<()> {
        self.watch_as(wanted, Some(thread), stacks)
    }

    /// Watches what the calling thread will execute in new processes, from then on.
    pub(super) fn watch_executed(&mut self, wanted: &Wanted, stacks: Stacks) -> io::Result<()> {
        self.watch_as(wanted, None, stacks)
    }

    /// Until a ring fills, but no longer than that.
    #[allow(unsafe_code)]
    pub(super) fn wait(&self, time: Duration) {
        // SAFETY: a ring's descriptor is open for as long as the ring is borrowed.
        let fd = |ring: &Sampler| unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) };
        let mut events: Vec<_> =
            self.rings.iter().map(|ring| PollFd::from_borrowed_fd(fd(ring), PollFlags::IN)).collect();
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        // A signal only means that the next look comes earlier.
        let _ = poll(&mut events, Some(&time));
    }

    fn watch_as(&mut self, wanted: &Wanted, thread: Option<u32>, stacks: Stacks) -> io::Result<()> {
        for at in 0..self.cpus.len() {
            for what in What::OF_THREADS {
                let mut builder = builder(what, wanted);
                builder.one_cpu(self.cpus[at]).inherit(true);
                match thread {
                    Some(thread) => builder.observe_pid(thread.cast_signed()).enabled(true),
                    None => builder.observe_self().enable_on_exec(true),
                };
                if what == What::Sent {
                    // What programs are loaded where, and who begins and ends, comes beside one of the events.
                    builder.mmap(true).mmap2(true).comm(true).comm_exec(true).task(true);
                }
                let source = with_stacks(&mut builder, what, thread.unwrap_or(0), stacks);
                let counter = builder.build().map_err(more_files)?;
                filter(&counter, what)?;
                send_to(&counter, &self.rings[at])?;
                self.sources.insert(counter.id(), source);
                self.open.push(counter);
            }
        }
        Ok(())
    }
}

fn builder(what: What, wanted: &Wanted) -> Builder<'static> {
    let mut builder = Builder::new(Tracepoint::with_id(wanted.number(what)));
    // Tracepoints are the kernel's. Its realtime clock is refused here (it may be set back).
    builder.include_kernel().sample_period(1).clockid(Clock::MONOTONIC).sample_id_all(true);
    builder.sample(SampleFlag::IDENTIFIER | SampleFlag::TID | SampleFlag::TIME | SampleFlag::RAW);
    builder
}

/// Stacks are taken of writes and of options; an option's value lies on the stack, too.
fn with_stacks(builder: &mut Builder<'_>, what: What, root: u32, stacks: Stacks) -> Source {
    let is_told = matches!(what, What::Sent | What::Option);
    let has_chain = is_told && stacks == Stacks::FramePointers;
    let has_copy =
        cfg!(target_arch = "x86_64") && (what == What::Option || is_told && stacks == Stacks::Tables);
    if has_chain {
        builder.sample(SampleFlag::CALLCHAIN).exclude_callchain_kernel(true).sample_max_stack(DEPTH);
    }
    if has_copy {
        builder.sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER);
        builder.sample_regs_user(REGISTERS).sample_stack_user(STACK);
    }
    Source { what, root, has_chain, has_copy }
}

/// A descriptor for each thread, event and CPU makes many: as many as may be are allowed here, once they are needed.
pub(super) fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // At worst there are too few, which is then said.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn more_files(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(libc::EMFILE) {
        io::Error::other(
            "too many threads: five files for each of them and each CPU are above the limit (ulimit -n)",
        )
    } else {
        error
    }
}

/// Has an event write into another's ring.
#[allow(unsafe_code)]
fn send_to(counter: &Counter, ring: &Sampler) -> io::Result<()> {
    // SAFETY: both descriptors are open for as long as they are borrowed, and the kernel takes the second as a number.
    let result = unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, ring.as_raw_fd()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has the kernel leave out what is of no use.
#[allow(unsafe_code)]
fn filter(counter: &Counter, what: What) -> io::Result<()> {
    let text = CString::new(what.filter())?;
    // SAFETY: the kernel reads a string that ends with 0, which `text` is, and which outlives the call.
    let result = unsafe { libc::ioctl(counter.as_raw_fd(), SET_FILTER, text.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPUs in use.
fn online() -> io::Result<Vec<usize>> {
    Ok(numbers(std::fs::read_to_string("/sys/devices/system/cpu/online")?.trim()))
}

/// `0-3,8`
fn numbers(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse::<usize>().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(numbers("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(numbers("0"), [0]);
        assert_eq!(numbers(""), Vec::<usize>::new());
    }
}
