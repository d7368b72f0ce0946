//! The memory that programs record to, and the library that does it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::process::Command;

use rustix::fs::{MemfdFlags, memfd_create};
use tcpwhy_wire::calls::Recording;

use super::format::{CHUNK, MAGIC, header};
use super::read::{Reader, word};

/// The library, compiled by the build script.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libtcpwhy_preload.so"));

/// What may be recorded, in bytes. Pages that nothing is written to take no memory.
const ROOM: u64 = 1 << 30;

/// A cure that is tried on the watched programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fix {
    /// `TCP_NODELAY` on each socket when it connects or is accepted.
    Nodelay,
    /// `TCP_QUICKACK` before and after each read.
    Quickack,
    /// Neither `TCP_CORK` nor `MSG_MORE`, whatever the program says.
    CorkOff,
}

/// A recording that goes on.
#[derive(Debug)]
pub struct Recorder {
    memory: File,
    library: File,
}

impl Recorder {
    /// Prepares the memory. Both files exist only as open descriptors of this process: nothing of them is left.
    pub fn new() -> io::Result<Self> {
        let mut memory = File::from(memfd_create("tcpwhy-calls", MemfdFlags::CLOEXEC)?);
        memory.set_len(ROOM)?;
        let mut words = [0_u64; header::WORDS];
        words[header::MAGIC] = MAGIC;
        for word in words {
            memory.write_all(&word.to_ne_bytes())?;
        }
        let mut library = File::from(memfd_create("tcpwhy-preload", MemfdFlags::CLOEXEC)?);
        library.write_all(LIBRARY)?;
        Ok(Self { memory, library })
    }

    /// Has the command, and every program that it starts, record its calls; with `stacks`, who made them.
    pub fn watch(&self, command: &mut Command, stacks: bool, fix: Option<Fix>) {
        let mut preload: OsString = path_of(&self.library).into();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        command.env("LD_PRELOAD", preload);
        command.env("TCPWHY_CALLS", path_of(&self.memory));
        command.env("TCPWHY_STACKS", if stacks { "1" } else { "0" });
        match fix {
            Some(Fix::Nodelay) => command.env("TCPWHY_FIX", "nodelay"),
            Some(Fix::Quickack) => command.env("TCPWHY_FIX", "quickack"),
            Some(Fix::CorkOff) => command.env("TCPWHY_FIX", "cork-off"),
            None => command.env_remove("TCPWHY_FIX"),
        };
    }

    /// What was recorded so far. Programs that still run are not disturbed.
    pub fn recording(&mut self) -> io::Result<Recording> {
        let mut head = vec![0; CHUNK];
        self.memory.seek(SeekFrom::Start(0))?;
        self.memory.read_exact(&mut head)?;
        let given = usize::try_from(word(&head, header::CHUNKS)).unwrap_or(usize::MAX);
        let room = ROOM as usize / CHUNK - 1;
        let mut reader = Reader::new(&head);
        let mut chunk = vec![0; CHUNK];
        for _ in 0..given.min(room) {
            self.memory.read_exact(&mut chunk)?;
            reader.chunk(&chunk);
        }
        Ok(reader.finish())
    }
}

/// A name by which processes of the same user can open it.
fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}
