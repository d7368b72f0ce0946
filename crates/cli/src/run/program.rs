//! Whether a program can be watched: what its file is.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use object::{Object, ReadCache};

/// Why the recorder will see nothing of a program.
pub(super) fn why_unseen(command: &OsStr) -> Option<String> {
    let path = find(command)?;
    let name = path.display();
    let cache = ReadCache::new(File::open(&path).ok()?);
    // Scripts, and what the kernel will refuse anyway.
    let object = object::File::parse(&cache).ok()?;
    let has = |section: &str| object.section_by_name(section).is_some();
    if has(".go.buildinfo") || has(".note.go.buildid") {
        return Some(format!(
            "{name} is a Go program: it calls the kernel itself, so its calls cannot be seen."
        ));
    }
    if !has(".interp") {
        return Some(format!("{name} is statically linked: its calls cannot be seen."));
    }
    None
}

/// As the shell finds it.
pub(super) fn find(command: &OsStr) -> Option<PathBuf> {
    let path = Path::new(command);
    if path.components().count() > 1 || command.as_encoded_bytes().contains(&b'/') {
        return Some(path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| path.is_file())
}
