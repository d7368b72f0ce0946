//! Files that somebody named for what comes out: new ones, or their own, and never where a link leads.
//!
//! In a folder that others may write to, a link could lead root's output anywhere, and a file that somebody else has made
//! could be read by them while it is written.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use tcpwhy_host::privileges::{self, Heir};

/// Who may read and write a capture: its owner. There are other people's data in it.
pub(crate) const CAPTURE: u32 = 0o600;
/// Everybody, as far as the umask allows: what is in a report is for others.
const REPORT: u32 = 0o666;

/// Names that are links by their nature: the kernel's and the system's for what this process has open.
const STREAMS: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/"];

const A_LINK: &str = "a symbolic link, which is not followed: name the file itself";

/// A file for a report. What is in it already stays until somebody cuts it off.
pub(crate) fn report(path: &Path) -> io::Result<File> {
    open(path, REPORT).map(|(file, _)| file)
}

/// A file for a capture, with these access rights, also where it was there before; a new one belongs to who goes on where
/// root began. What is in it already stays until somebody cuts it off.
pub(crate) fn capture(path: &Path, mode: u32) -> io::Result<File> {
    let (file, is_new) = open(path, mode)?;
    if file.metadata()?.is_file() && !is_stream(path) {
        // Whatever the umask says.
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    if is_new {
        hand_over(&file, privileges::heir())?;
    }
    Ok(file)
}

/// Fails for a name that is a link, for who puts a whole file into its place.
pub(crate) fn refuse_link(path: &Path) -> io::Result<()> {
    if !is_stream(path) && path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
        return Err(io::Error::other(A_LINK));
    }
    Ok(())
}

/// Cuts off what is in a file; pipes and devices have nothing.
pub(crate) fn emptied(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// A file belongs to who goes on, not to root; nobody shall not own files.
pub(crate) fn hand_over(file: &File, heir: Option<Heir>) -> io::Result<()> {
    match heir.filter(|heir| !heir.is_nobody()) {
        Some(heir) => Ok(fchown(file, Some(heir.uid), Some(heir.gid))?),
        None => Ok(()),
    }
}

/// Access rights in octal digits: `640`, `0640`.
pub(crate) fn mode(text: &str) -> Result<u32, String> {
    /// Those of files; set-user-ID and the like are for programs.
    const ALL: u32 = 0o777;
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= ALL);
    mode.ok_or_else(|| "access rights are octal digits, such as 0600 or 0640".to_owned())
}

fn is_stream(path: &Path) -> bool {
    path.to_str().is_some_and(|path| STREAMS.iter().any(|stream| path.starts_with(stream)))
}

/// Opens the file, and says whether it is new.
fn open(path: &Path, mode: u32) -> io::Result<(File, bool)> {
    if is_stream(path) {
        return OpenOptions::new().write(true).open(path).map(|file| (file, false));
    }
    match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        created => return created.map(|file| (file, true)),
    }
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(number) if number == Errno::LOOP.raw_os_error() => io::Error::other(A_LINK),
        _ => error,
    })?;
    let metadata = file.metadata()?;
    let is_own = |owner: u32| {
        owner == geteuid().as_raw()
            || privileges::heir().is_some_and(|heir| !heir.is_nobody() && heir.uid == owner)
    };
    if metadata.is_file() && !is_own(metadata.uid()) {
        let why = "the file that is there belongs to another user";
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    Ok((file, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_rights_are_octal() {
        assert_eq!((mode("640"), mode("0600"), mode("0")), (Ok(0o640), Ok(0o600), Ok(0)));
        for wrong in ["", "rw", "0o640", "888", "4755", "-1"] {
            mode(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn a_link_is_not_followed_and_a_file_gets_its_rights() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        let mode_of = |path: &Path| path.metadata().expect("a file").mode() & 0o777;
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        for open in [report, |path: &Path| capture(path, CAPTURE)] {
            // It leads nowhere, and then to a file.
            open(&link).expect_err("a link");
            assert!(!file.exists());
            std::fs::write(&file, b"as it was").expect("room");
            open(&link).expect_err("a link");
            assert_eq!(std::fs::read(&file).expect("a file"), b"as it was");
            std::fs::remove_file(&file).expect("it was there");
        }
        for asked in [0o600, 0o664, 0o640] {
            capture(&file, asked).expect("its own");
            assert_eq!(mode_of(&file), asked);
        }
    }
}
