//! The folder of captures: what is in it, by name, and nothing that is not.
//!
//! The server's working directory is the folder, so a name in it is a path. A name that leads anywhere else is none: no
//! separators, no dots to begin with, no links.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::UNIX_EPOCH;

use axum::http::StatusCode;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use serde::Serialize;
use tcpwhy_report::plain::is_hidden;

use super::answer::{Outcome, Problem};

/// Captures that are listed, the latest first: nobody reads on, and the page has to stay small.
const MOST_LISTED: usize = 1_000;
/// Files that are looked at: each is opened, and a page asks every few seconds.
const MOST_LOOKED_AT: usize = 10_000;
/// Bytes of a name: what file systems allow.
const LONGEST_NAME: usize = 255;
/// How captures are called.
const ENDINGS: [&str; 5] = [".pcap", ".pcapng", ".cap", ".dmp", ".dump"];
/// How compressed ones end, beyond that.
const COMPRESSED: [&str; 2] = [".gz", ".zst"];
/// How pcapng and the forms of pcap begin.
const BEGINNINGS: [[u8; 4]; 5] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
];
/// Bytes that show whether a text has lines of tcpdump: in each, somebody sends to somebody.
pub(super) const START: u64 = 4_096;
/// What stands between the two.
const SENDS_TO: &[u8] = b" > ";

/// A capture in the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Bytes.
    pub(super) size: u64,
    /// When it was last written to, in ms since 1970.
    pub(super) modified_ms: u64,
}

/// The captures in the folder.
#[derive(Debug, Serialize)]
pub(super) struct Listing {
    pub(super) captures: Vec<Entry>,
    /// Captures beyond those, files whose names are no text, and files that were not looked at.
    pub(super) more: usize,
}

/// Lists the folder.
pub(super) fn list() -> io::Result<Listing> {
    let mut listing = Listing { captures: Vec::new(), more: 0 };
    for (nth, entry) in fs::read_dir(".")?.enumerate() {
        if nth >= MOST_LOOKED_AT {
            listing.more += 1;
            continue;
        }
        let Ok(name) = entry?.file_name().into_string() else {
            listing.more += 1;
            continue;
        };
        // What goes away meanwhile, or may not be read, is not there.
        let Ok(file) = open(&name) else { continue };
        if is_capture(&name, &file) {
            listing.captures.extend(entry_of(name, &file).ok());
        }
    }
    listing.captures.sort_by(|a, b| b.modified_ms.cmp(&a.modified_ms).then_with(|| a.name.cmp(&b.name)));
    listing.more += listing.captures.len().saturating_sub(MOST_LISTED);
    listing.captures.truncate(MOST_LISTED);
    Ok(listing)
}

/// A file as it is listed.
pub(super) fn entry_of(name: String, file: &File) -> io::Result<Entry> {
    let metadata = file.metadata()?;
    let since = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    Ok(Entry { name, size: metadata.len(), modified_ms })
}

/// Opens a file of the folder, which is no link and no device.
pub(super) fn open(name: &str) -> Outcome<File> {
    check_name(name)?;
    let missing = || Problem::new(StatusCode::NOT_FOUND, "There is no such capture in the folder.");
    // A FIFO would keep who opens it waiting.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(CWD, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::ACCESS | Errno::PERM) => {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "tcpwhy may not read that file: captures made by root are root's.",
            ));
        }
        Err(_) => return Err(missing()),
    };
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if is_file { Ok(file) } else { Err(missing()) }
}

/// Whether `name` is that of a file right in the folder, and not a hidden one.
pub(super) fn check_name(name: &str) -> Outcome<()> {
    // `-` is standard input elsewhere in tcpwhy.
    let is_plain = !name.is_empty() && name.len() <= LONGEST_NAME && !name.starts_with('.') && name != "-";
    if is_plain && !name.contains(['/', '\\', '\0']) {
        Ok(())
    } else {
        Err(Problem::new(StatusCode::BAD_REQUEST, "That is no name of a capture in the folder."))
    }
}

/// What an upload may be called: without what acts on a terminal or reverses what is read, which a browser shows, too.
pub(super) fn name_of_upload(name: &str) -> Outcome<String> {
    check_name(name)?;
    let name: String = name.chars().filter(|c| !is_hidden(*c)).collect();
    check_name(&name).map(|()| name)
}

/// Whether a file is worth listing.
fn is_capture(name: &str, file: &File) -> bool {
    let mut start = Vec::new();
    is_called_so(name) || file.take(START).read_to_end(&mut start).is_ok() && begins_so(name, &start)
}

/// Whether it is called as captures are.
pub(super) fn is_called_so(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let bare = COMPRESSED.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    ENDINGS.iter().any(|ending| bare.ends_with(ending))
}

/// Whether it begins as captures do, whatever it is called; `start` are its first [`START`] bytes.
pub(super) fn begins_so(name: &str, start: &[u8]) -> bool {
    let is_text = Path::new(name).extension().is_some_and(|ending| ending == "txt" || ending == "log");
    BEGINNINGS.iter().any(|beginning| start.starts_with(beginning))
        || is_text && start.windows(SENDS_TO.len()).any(|part| part == SENDS_TO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        for name in ["slow.pcap", "a b.pcap", "naïve.pcapng", "x..y", "x"] {
            check_name(name).expect(name);
        }
        let long = "x".repeat(256);
        for name in
            ["", ".", "..", ".hidden", "../x", "a/b", "/etc/passwd", "a\\b", "a\0b", "-", long.as_str()]
        {
            check_name(name).expect_err(name);
        }
    }

    #[test]
    fn captures_are_known_by_name_or_beginning() {
        for name in ["a.pcap", "a.PCAPNG", "a.cap.gz", "a.dump.zst"] {
            assert!(is_called_so(name), "{name}");
        }
        for name in ["a", "a.gz", "pcap", "a.pcap.txt", "README.md"] {
            assert!(!is_called_so(name), "{name}");
        }
        assert!(begins_so("x", b"\xd4\xc3\xb2\xa1\x02\0\x04\0") && !begins_so("x", b"\x7fELF"));
        assert!(
            begins_so("x.txt", b"12:00 IP a.1 > b.2: .")
                && !begins_so("x.md", b"a > b")
                && !begins_so("x.txt", b"hi")
        );
    }
}
