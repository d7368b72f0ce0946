//! The recording as a file: a nameless one that is analysed, and the one that was asked for.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::fstat;
use tcpwhy_wire::calls::Recording;

use super::packets::Packets;
use super::symbols;
use crate::calls::save::save;
use crate::create;

/// A recording, in a file without a name: nothing is left of it, however this process ends.
pub(super) struct Saved {
    file: File,
    path: PathBuf,
}

impl Saved {
    /// Ends the capture, and looks up what only this machine knows.
    pub(super) fn new(mut recording: Recording, packets: Option<Packets>) -> io::Result<Self> {
        let tracks = packets.map(Packets::finish).transpose().unwrap_or_else(|error| {
            recording.about.no_packets = format!("Its packets could not be captured: {error}.");
            None
        });
        symbols::resolve(&mut recording);
        let file = tempfile::tempfile()?;
        save(&mut recording, tracks.unwrap_or_default(), BufWriter::new(&file))?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        Ok(Self { file, path })
    }

    /// By this path it can be opened as long as this is there.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The file that was asked for. It is open from the beginning and stays as it is until there is something to put into it.
pub(super) struct Destination {
    path: PathBuf,
    file: File,
}

impl Destination {
    pub(super) fn open(path: &Path, mode: u32) -> Result<Self> {
        let file = create::capture(path, mode).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Replaces what is in it.
    pub(super) fn take(self, saved: &Saved) -> Result<()> {
        let Self { path, file } = self;
        copy(saved, file).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn copy(saved: &Saved, mut file: File) -> io::Result<()> {
    let mut from = &saved.file;
    from.rewind()?;
    // /dev/stdout may be a file with the command's output, which goes on behind that.
    if is_stdout(&file)? {
        io::copy(&mut from, &mut io::stdout().lock())?;
        return io::stdout().flush();
    }
    file = create::emptied(file)?;
    io::copy(&mut from, &mut file).map(drop)
}

fn is_stdout(file: &File) -> io::Result<bool> {
    // There may be none.
    let Ok(stdout) = fstat(io::stdout().as_fd()) else { return Ok(false) };
    let file = fstat(file)?;
    Ok((file.st_dev, file.st_ino) == (stdout.st_dev, stdout.st_ino))
}
