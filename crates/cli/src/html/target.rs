//! Where the page is written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{create, output};

/// Bytes written at once.
const BUFFER: usize = 1 << 20;

/// What a page begins with.
const BEGINNING: &[u8] = b"<!doctype html";

/// Names tried for the file beside: those of processes that were killed may be taken.
const MOST_TRIED: u32 = 100;

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
    /// A device, a pipe, or a file that was opened while that was still allowed.
    Open(File),
}

impl Target {
    /// The target that is called so; `-` is standard output. Fails where a page could not be written.
    pub(super) fn new(path: &Path) -> Result<Self> {
        refuse_what_is_no_page(path)?;
        let kind = if path == Path::new("-") { Ok(Kind::Stdout) } else { Kind::of(path) };
        Ok(Self { path: path.to_owned(), kind: kind.with_context(|| unwritten(path))? })
    }

    /// The same for who will lose the right to write there: a file that is opened now. It is not replaced but written anew.
    pub(super) fn held(path: &Path) -> Result<Self> {
        refuse_what_is_no_page(path)?;
        let file = create::report(path).with_context(|| unwritten(path))?;
        Ok(Self { path: path.to_owned(), kind: Kind::Open(file) })
    }

    /// The file that is held.
    pub(super) fn file(&self) -> Option<&File> {
        if let Kind::Open(file) = &self.kind { Some(file) } else { None }
    }

    /// The path, unless it is standard output.
    pub(super) fn path(&self) -> Option<&Path> {
        (!matches!(self.kind, Kind::Stdout)).then_some(&self.path)
    }

    /// Writes all that `write` writes, or nothing; how many bytes.
    pub(super) fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<u64> {
        let written = match &self.kind {
            Kind::Stdout => return output::print(|out| write(out)).map(|()| 0),
            Kind::File(target) => replace(target, write),
            Kind::Open(file) => anew(file, write),
        };
        written.with_context(|| unwritten(&self.path))
    }
}

impl Kind {
    /// What a path leads to, where a page can be written there.
    fn of(path: &Path) -> io::Result<Self> {
        create::refuse_link(path)?;
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match target.metadata() {
            Ok(metadata) if metadata.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => {
                return OpenOptions::new().write(true).open(&target).map(Self::Open);
            }
            Ok(_) => drop(OpenOptions::new().write(true).open(&target)?),
            Err(_) => {}
        }
        // Now, not after an hour's capture.
        beside(&target).map(drop)?;
        Ok(Self::File(target))
    }
}

/// Whoever names a capture, or a text of their own, has made a mistake that would cost it.
fn refuse_what_is_no_page(path: &Path) -> Result<()> {
    let mut start = Vec::new();
    if path.is_file()
        && let Ok(file) = File::open(path)
    {
        file.take(BEGINNING.len() as u64).read_to_end(&mut start).with_context(|| unwritten(path))?;
    }
    if !start.is_empty() && !start.eq_ignore_ascii_case(BEGINNING) {
        bail!("{} is there, and is no page: write to another file, or remove it", path.display());
    }
    Ok(())
}

fn unwritten(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Puts a new file into the place of the one there.
fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<u64> {
    let beside = beside(path)?;
    let bytes = put(&beside.file, write)?;
    // A page that is there after a power failure, and empty, would be worse than the old one.
    beside.file.sync_all()?;
    fs::rename(&beside.path, path)?;
    Ok(bytes)
}

/// Writes into a file from its beginning; if that fails, nothing is in it.
fn anew(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<u64> {
    let is_file = file.metadata()?.is_file();
    if is_file {
        file.set_len(0)?;
    }
    let written = put(file, write);
    if is_file && written.is_err() {
        // The error that is told is the first one.
        let _ = file.set_len(0);
    }
    written
}

/// A new file in the folder of another one, which is gone again unless it was renamed.
struct Beside {
    path: PathBuf,
    file: File,
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After a rename there is none of this name.
        let _ = fs::remove_file(&self.path);
    }
}

fn beside(path: &Path) -> io::Result<Beside> {
    for number in 0..MOST_TRIED {
        let path = path.with_file_name(format!(".tcpwhy-{}-{number}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created.map(|file| Beside { path, file }),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
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
