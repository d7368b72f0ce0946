//! Where the page is written.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::{Builder, NamedTempFile};

use crate::output;

/// Bytes written at once.
const BUFFER: usize = 1 << 20;

/// Standard output, or a file: whole, or as it was before.
pub(super) struct Target {
    /// As it was named.
    path: PathBuf,
    kind: Kind,
}

enum Kind {
    Stdout,
    /// A file that is replaced, by a rename.
    File(PathBuf),
    /// A device or a pipe.
    Stream,
}

impl Target {
    /// The target that is called so; `-` is standard output. Fails where a page could not be written.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let kind = if path == Path::new("-") { Ok(Kind::Stdout) } else { Kind::of(path) };
        Ok(Self { path: path.to_owned(), kind: kind.with_context(|| unwritten(path))? })
    }

    /// The file, if it is one.
    pub(super) fn path(&self) -> Option<&Path> {
        (!matches!(self.kind, Kind::Stdout)).then_some(&self.path)
    }

    /// Writes all that `write` writes, or nothing; how many bytes.
    pub(super) fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<u64> {
        let written = match &self.kind {
            Kind::Stdout => return output::print(|out| write(out)).map(|()| 0),
            Kind::File(target) => replace(target, write),
            Kind::Stream => {
                OpenOptions::new().write(true).open(&self.path).and_then(|file| put(&file, write))
            }
        };
        written.with_context(|| unwritten(&self.path))
    }
}

impl Kind {
    /// What a path leads to, where a page can be written there.
    fn of(path: &Path) -> io::Result<Self> {
        // What a link leads to is replaced, and not the link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match target.metadata() {
            Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => return Ok(Self::Stream),
            Ok(_) => drop(OpenOptions::new().write(true).open(&target)?),
            Err(_) => {}
        }
        // Now, not after an hour's capture.
        beside(&target).map(drop)?;
        Ok(Self::File(target))
    }
}

fn unwritten(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Puts a new file into the place of the one there.
fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<u64> {
    let file = beside(path)?;
    let bytes = put(file.as_file(), write)?;
    // A page that is there after a power failure, and empty, would be worse than the old one.
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(bytes)
}

/// A file in the same folder, which is gone again unless it takes that one's place.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let mut builder = Builder::new();
    builder.prefix(".tcpwhy-");
    // Like any other new file, and not for its owner alone.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder).map_err(without_path)
}

/// The error without the name of the temporary file, which is nobody's business.
fn without_path(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(std::error::Error::source);
    let inner = inner.and_then(|inner| inner.downcast_ref::<io::Error>());
    inner.and_then(io::Error::raw_os_error).map_or(error, io::Error::from_raw_os_error)
}

fn put(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<u64> {
    let mut out = Counted { out: BufWriter::with_capacity(BUFFER, file), bytes: 0 };
    write(&mut out)?;
    out.flush()?;
    Ok(out.bytes)
}

/// Counts what is written.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
