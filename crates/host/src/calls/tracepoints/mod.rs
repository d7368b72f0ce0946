//! Calls of any program, a running one too, by the kernel's own trace events: a second recorder for what the loader cannot
//! put a library into (Go, statically linked programs) and for what runs already.
//!
//! A system call's beginning tells when, which and by what descriptor; `sock_send_length` and `sock_recv_length` tell which
//! socket it was and how many bytes were taken, and bring the stack along. The events are opened for the watched threads
//! (`perf_event_open`), are inherited by what these start, and are gone with this process, however it ends.

mod assemble;
mod events;
mod layout;
mod record;
mod sockets;
mod space;
mod tracefs;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use object::{Object, ReadCache};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use tcpwhy_wire::calls::Recording;

use crate::process;
use assemble::{Assembler, Maker};
use events::Events;
use layout::{Said, Wanted};
use record::{Event, Happened, Stack};
use space::Spaces;
use tracefs::Tracefs;

/// The rings are looked at so often; to wake the reader for each event would take time from the programs.
const BATCH: Duration = Duration::from_millis(5);
/// A CPU may stop between an event's time and its place in the ring: events wait so long, in ns, to be put in order.
const DISORDER: u64 = 2_000_000;
/// Threads that begin while others are being opened are looked for again, so often at most.
const ROUNDS: usize = 20;

/// How stacks are unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stacks {
    /// Not at all.
    None,
    /// By frame pointers, which Go's programs keep.
    FramePointers,
    /// By the tables for exceptions, from a copy of the stack.
    Tables,
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The kernel's trace events are for root, or for programs with these capabilities.
    #[error("that needs root (CAP_PERFMON, CAP_SYS_ADMIN and CAP_SYS_PTRACE)")]
    Rights,
    /// The kernel was built without them, or is too old.
    #[error("this kernel has not all trace events that are needed (syscalls and sock, Linux 6.3 or newer)")]
    Kernel,
    /// There is no such process.
    #[error("there is no process {0}")]
    Nobody(u32),
    /// Anything else.
    #[error(transparent)]
    Other(#[from] io::Error),
}

/// A recording that goes on.
#[derive(Debug)]
pub struct Tracer {
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<Recording>>,
    /// The processes named at the beginning.
    watched: Vec<OwnedFd>,
}

impl Tracer {
    /// Begins to record running processes, and what they start from now on; with `stacks`, who writes.
    ///
    /// # Errors
    ///
    /// [`Refused`] says why not.
    pub fn attach(processes: &[u32], stacks: bool) -> Result<Self, Refused> {
        let mut watched = Vec::new();
        for &process in processes {
            let pid = process.try_into().ok().and_then(Pid::from_raw).ok_or(Refused::Nobody(process))?;
            watched.push(pidfd_open(pid, PidfdFlags::empty()).map_err(|_| Refused::Nobody(process))?);
        }
        let (wanted, mut events) = prepared()?;
        let mut state = Recorded::default();
        for &process in processes {
            state.adopt(process)?;
            let stacks = kind_of_stacks(Path::new(&format!("/proc/{process}/exe")), stacks);
            watch_threads(&mut events, &wanted, process, stacks).map_err(reason)?;
        }
        Self::begin(wanted, events, state, watched)
    }

    /// Will record what the calling thread executes in new processes from now on: a `program` above all.
    ///
    /// # Errors
    ///
    /// [`Refused`] says why not.
    pub fn of_command(program: &Path, stacks: bool) -> Result<Self, Refused> {
        let (wanted, mut events) = prepared()?;
        let stacks = kind_of_stacks(program, stacks);
        events.watch_executed(&wanted, stacks).map_err(reason)?;
        Self::begin(wanted, events, Recorded::default(), Vec::new())
    }

    /// Whether all processes that were named have ended.
    pub fn is_over(&self) -> bool {
        self.watched.iter().all(|process| {
            let mut events = [PollFd::new(process, PollFlags::IN)];
            poll(&mut events, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
        })
    }

    /// Ends it, and hands over what was recorded.
    ///
    /// # Errors
    ///
    /// The recording has failed, or was handed over before.
    pub fn finish(&mut self) -> io::Result<Recording> {
        self.ending.store(true, Ordering::SeqCst);
        let recording = self.thread.take().and_then(|thread| thread.join().ok());
        recording.ok_or_else(|| io::Error::other("the recording has failed"))
    }

    fn begin(
        wanted: Wanted,
        events: Events,
        state: Recorded,
        watched: Vec<OwnedFd>,
    ) -> Result<Self, Refused> {
        let ending = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ending);
        let thread = std::thread::Builder::new().name("tcpwhy-calls".to_owned());
        let thread = thread.spawn(move || keep(&wanted, events, state, &until))?;
        Ok(Self { ending, thread: Some(thread), watched })
    }
}

/// The rings, open and empty.
fn prepared() -> Result<(Wanted, Events), Refused> {
    let tracefs = Tracefs::open().map_err(reason)?;
    let wanted = Wanted::find(&tracefs).map_err(reason)?;
    events::allow_many_files();
    let events = Events::open(&wanted).map_err(reason)?;
    Ok((wanted, events))
}

fn reason(error: io::Error) -> Refused {
    match error.kind() {
        ErrorKind::PermissionDenied => Refused::Rights,
        // No such file system, event, or call.
        ErrorKind::NotFound | ErrorKind::Unsupported => Refused::Kernel,
        _ if error.raw_os_error() == Some(libc::ENODEV) => Refused::Kernel,
        _ => Refused::Other(error),
    }
}

fn kind_of_stacks(program: &Path, stacks: bool) -> Stacks {
    match stacks {
        false => Stacks::None,
        true if cfg!(not(target_arch = "x86_64")) || is_go(program) => Stacks::FramePointers,
        true => Stacks::Tables,
    }
}

fn is_go(program: &Path) -> bool {
    let Ok(file) = File::open(program) else { return false };
    let cache = ReadCache::new(file);
    object::File::parse(&cache).is_ok_and(|object| object.section_by_name(".gopclntab").is_some())
}

/// Opens the events for each thread of a process. One that begins meanwhile may be met by inheritance and by its own, which
/// [`Recorded::is_doubled`] tells apart.
fn watch_threads(events: &mut Events, wanted: &Wanted, process: u32, stacks: Stacks) -> io::Result<()> {
    let mut known = HashSet::new();
    for _ in 0..ROUNDS {
        let before = known.len();
        for entry in fs::read_dir(format!("/proc/{process}/task"))?.flatten() {
            let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if known.insert(thread) {
                match events.watch(wanted, thread, stacks) {
                    // It has ended.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    other => other?,
                }
            }
        }
        if known.len() == before {
            break;
        }
    }
    Ok(())
}

/// Takes events out of the rings until the end.
fn keep(wanted: &Wanted, mut events: Events, mut state: Recorded, ending: &AtomicBool) -> Recording {
    let mut waiting = Vec::new();
    loop {
        let ends = ending.load(Ordering::SeqCst);
        // What is older has been written before the rings are read.
        let until = if ends { u64::MAX } else { monotonic().saturating_sub(DISORDER) };
        let Events { rings, sources, .. } = &mut events;
        for ring in &mut *rings {
            while let Some(record) = ring.next_record() {
                let bytes = record.to_contiguous();
                let source = |number| sources.get(&number).copied();
                waiting.extend(record::read(record.ty(), record.misc(), &bytes, wanted, source));
            }
        }
        // In order within each ring, nearly: a stable sort is quick.
        waiting.sort_by_key(|happened: &Happened| happened.time);
        let ready = waiting.partition_point(|happened| happened.time < until);
        let offset = realtime().saturating_sub_unsigned(monotonic());
        for happened in waiting.drain(..ready) {
            state.take(&happened, offset);
        }
        if ends {
            return state.finish();
        }
        events.wait(BATCH);
    }
}

/// Ns of the clock that events have.
fn monotonic() -> u64 {
    nanoseconds(ClockId::Monotonic).max(0).unsigned_abs()
}

/// Ns since the epoch.
fn realtime() -> i64 {
    nanoseconds(ClockId::Realtime)
}

fn nanoseconds(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

/// What is known so far.
#[derive(Default)]
struct Recorded {
    calls: Assembler,
    spaces: Spaces,
    /// For which thread each watched thread's events were opened.
    roots: HashMap<u32, u32>,
    programs: u64,
    /// What processes were called when they executed their programs.
    names: BTreeMap<u32, String>,
}

impl Recorded {
    /// A process that runs already.
    fn adopt(&mut self, process: u32) -> Result<(), Refused> {
        if self.calls.sockets.adopt(process) > 0 {
            return Err(Refused::Rights);
        }
        self.spaces.adopt(process);
        self.called(process, process::name(process).ok());
        self.programs += 1;
        Ok(())
    }

    /// `offset` is what a time is to be added to for ns since the epoch.
    fn take(&mut self, happened: &Happened, offset: i64) {
        let Happened { time, process, thread, root, ref event } = *happened;
        let is_process = process == thread;
        match event {
            Event::Said(said, stack) if !self.is_doubled(thread, root, said) => {
                let value = option_of(said, process, stack);
                let stack = self.spaces.stack(process, stack);
                let time = offset.saturating_add_unsigned(time);
                self.calls.take(said, Maker { process, thread, time, stack }, value);
            }
            Event::Forked { parent } if is_process => {
                self.programs += 1;
                self.spaces.fork(process, *parent);
                self.called(process, self.names.get(parent).cloned());
                self.calls.sockets.forked(process, *parent);
            }
            Event::Executed(name) => {
                self.programs += 1;
                self.called(process, Some(name.clone()));
                self.spaces.clear(process);
                // Most are closed by it, and which is not told.
                self.calls.sockets.ended(process);
            }
            Event::Ended => self.end(process, thread),
            Event::Mapped(mapping) => self.spaces.map(process, mapping),
            Event::Lost(events) => self.calls.lose(*events),
            Event::Said(..) | Event::Forked { .. } => {}
        }
    }

    fn called(&mut self, process: u32, name: Option<String>) {
        self.names.extend(name.filter(|name| !name.is_empty()).map(|name| (process, name)));
    }

    fn end(&mut self, process: u32, thread: u32) {
        self.calls.ended(thread);
        self.roots.remove(&thread);
        if process == thread {
            self.spaces.clear(process);
            self.calls.sockets.ended(process);
        }
    }

    /// Whether the same event comes a second time, inherited from another thread than the first.
    fn is_doubled(&mut self, thread: u32, root: u32, said: &Said) -> bool {
        !matches!(said, Said::State { .. }) && *self.roots.entry(thread).or_insert(root) != root
    }

    fn finish(self) -> Recording {
        let stacks = self.spaces.stacks();
        let mut recording = self.calls.finish();
        recording.about.programs = self.programs;
        Recording { stacks, modules: self.spaces.paths, programs: self.names, ..recording }
    }
}

/// What `setsockopt` sets: an int that mostly lies on the stack, else in memory that does not change.
fn option_of(said: &Said, process: u32, stack: &Stack) -> Option<i32> {
    let Said::Enter { number: libc::SYS_setsockopt, arguments: [_, _, _, address, len, _] } = *said else {
        return None;
    };
    if len < size_of::<i32>() as u64 {
        // A short name, of a congestion control for example.
        return Some(0);
    }
    let copied = stack.copy.as_ref().and_then(|copy| copy.at(address));
    copied.or_else(|| memory(process, address)).map(i32::from_ne_bytes)
}

fn memory(process: u32, address: u64) -> Option<[u8; 4]> {
    use std::os::unix::fs::FileExt;
    let mut word = [0; 4];
    let file = File::open(format!("/proc/{process}/mem")).ok()?;
    file.read_exact_at(&mut word, address).ok().map(|()| word)
}
