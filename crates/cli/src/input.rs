//! Where the bytes come from: a file, or a stream that may stay silent for hours.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::complaint;
use crate::progress::Progress;
use crate::stop::Stop;

/// How long a silent stream keeps Ctrl-C (and the progress line) waiting.
const LOOK_UP: Duration = Duration::from_millis(100);

/// In `tcpdump -w - | tcpwhy -` Ctrl-C reaches both, and tcpdump writes its last packets when it hears it: the
/// time it gets for that. It ends the stream itself well within; the limit is for writers that do not stop.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// An open capture.
#[derive(Debug)]
pub(crate) struct Input {
    file: File,
    /// Pipes, terminals and FIFOs: a read may block for as long as nothing happens on the network.
    is_stream: bool,
    stop: Stop,
    /// Since when the end is being waited for.
    stopping: Option<Instant>,
    progress: Rc<Progress>,
}

impl Input {
    /// Opens `path`; `-` is standard input.
    pub(crate) fn open(path: &Path, stop: &Stop) -> io::Result<Self> {
        Self::open_for(path, "lines that tcpdump printed", stop)
    }

    /// The same; `what` may be pasted into a terminal.
    pub(crate) fn open_for(path: &Path, what: &str, stop: &Stop) -> io::Result<Self> {
        let file = if path == Path::new("-") { standard_input()? } else { file(path)? };
        if file.is_terminal() {
            complaint::say(&format!("paste {what}, then press Ctrl-D on a line of its own"));
        }
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        let size = metadata.is_file().then_some(metadata.len());
        let progress = Rc::new(Progress::new(path, size, stop.seen()));
        Ok(Self { file, is_stream: size.is_none(), stop: stop.clone(), stopping: None, progress })
    }

    /// Opens a file in which another goes on; both are one progress.
    pub(crate) fn go_on(path: &Path, stop: &Stop, progress: &Rc<Progress>) -> io::Result<Self> {
        let file = File::open(path)?;
        progress.add_size(file.metadata()?.len());
        let progress = Rc::clone(progress);
        Ok(Self { file, is_stream: false, stop: stop.clone(), stopping: None, progress })
    }

    /// The count of what was read, shared with whoever counts packets.
    pub(crate) fn progress(&self) -> Rc<Progress> {
        Rc::clone(&self.progress)
    }

    /// Waits until the stream has something to say: data or its end. False where Ctrl-C says not to wait.
    fn wait(&mut self) -> io::Result<bool> {
        loop {
            self.progress.tick();
            if self.stop.requested() && self.stopping.get_or_insert_with(Instant::now).elapsed() >= LAST_WORDS
            {
                return Ok(false);
            }
            if readable(&self.file, LOOK_UP)? {
                return Ok(true);
            }
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let go_on = if self.is_stream { self.wait()? } else { !self.stop.requested() };
        if !go_on {
            // An error, not the end: what was being read is not cut short in the file itself.
            return Err(io::Error::other("stopped with Ctrl-C"));
        }
        let count = self.file.read(buffer)?;
        self.progress.add_bytes(count as u64);
        Ok(count)
    }
}

/// Opens a file. One that this process has open already (`/proc/self/fd/N`) may be root's, and the process no longer: then that
/// is read, from its beginning.
fn file(path: &Path) -> io::Result<File> {
    File::open(path).or_else(|error| match error.kind() {
        ErrorKind::PermissionDenied => held(path).ok_or(error),
        _ => Err(error),
    })
}

#[cfg(target_os = "linux")]
fn held(path: &Path) -> Option<File> {
    use std::io::Seek;

    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    let number = path.strip_prefix("/proc/self/fd").ok()?.to_str()?.parse().ok()?;
    let myself = pidfd_open(getpid(), PidfdFlags::empty()).ok()?;
    let mut file = File::from(pidfd_getfd(myself, number, PidfdGetfdFlags::empty()).ok()?);
    file.rewind().ok()?;
    Some(file)
}

#[cfg(not(target_os = "linux"))]
fn held(_: &Path) -> Option<File> {
    None
}

/// Standard input without the standard library's buffer, which would hide data from `poll`.
#[cfg(unix)]
fn standard_input() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

#[cfg(windows)]
fn standard_input() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdin().as_handle().try_clone_to_owned()?.into())
}

/// Whether a read would return at once, waiting at most `timeout`.
#[cfg(unix)]
fn readable(file: &File, timeout: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.subsec_nanos().into() };
    match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Without `poll` a silent stream keeps the report waiting until it speaks or ends.
#[cfg(not(unix))]
fn readable(_: &File, _: Duration) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_c_ends_a_file_where_it_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        std::fs::write(&path, b"abcdef").expect("a written file");
        let stop = Stop::default();
        let mut input = Input::open(&path, &stop).expect("an open file");
        let mut bytes = [0; 3];
        assert_eq!(input.read(&mut bytes).expect("the first half"), 3);
        stop.request();
        assert_eq!(input.read(&mut bytes).expect_err("no second half").to_string(), "stopped with Ctrl-C");
    }
}
