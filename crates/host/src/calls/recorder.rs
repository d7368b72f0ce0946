//! The memory that programs record to, and what tells them of it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::Command;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use tcpwhy_wire::calls::Recording;

use super::format::{CHUNK, MAGIC, header};
use super::library;
use super::read::{Reader, word};
use crate::process;

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
    library: PathBuf,
}

impl Recorder {
    /// Prepares the memory, which is gone with the last process that has it, and the library, which stays.
    ///
    /// # Errors
    ///
    /// There is no memory, or no place for the library that only root or this user can write to.
    pub fn new() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut memory = File::from(memfd_create("tcpwhy-calls", flags)?);
        memory.set_len(ROOM)?;
        // Whoever has it mapped relies on its length.
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mut words = [0_u64; header::WORDS];
        words[header::MAGIC] = MAGIC;
        for word in words {
            memory.write_all(&word.to_ne_bytes())?;
        }
        Ok(Self { memory, library: library::installed()? })
    }

    /// Has the command, and every program that it starts, record its calls; with `stacks`, who made them.
    ///
    /// # Errors
    ///
    /// `/proc` does not tell when this process was started.
    pub fn watch(&self, command: &mut Command, stacks: bool, fix: Option<Fix>) -> io::Result<()> {
        let mut preload: OsString = self.library.clone().into();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        command.env("LD_PRELOAD", preload);
        command.env("TCPWHY_CALLS", name_of(&self.memory)?);
        command.env("TCPWHY_STACKS", if stacks { "1" } else { "0" });
        match fix {
            Some(Fix::Nodelay) => command.env("TCPWHY_FIX", "nodelay"),
            Some(Fix::Quickack) => command.env("TCPWHY_FIX", "quickack"),
            Some(Fix::CorkOff) => command.env("TCPWHY_FIX", "cork-off"),
            None => command.env_remove("TCPWHY_FIX"),
        };
        Ok(())
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

/// A name by which processes of the same user can open it, and which is never another's: a process's number is given to others
/// after it, but not at the time when this one was started.
fn name_of(file: &File) -> io::Result<String> {
    let process = std::process::id();
    let start = process::start_of(&fs::read("/proc/self/stat")?);
    let start = start.ok_or_else(|| io::Error::other("/proc does not tell when this process was started"))?;
    Ok(format!("{process}:{start}:{}", file.as_raw_fd()))
}
