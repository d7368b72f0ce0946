//! Where the recorder's library lies: a file that programs name in `LD_PRELOAD` for as long as they run, daemons too.
//!
//! Whoever could put another file in its place would have it loaded into those programs, root's among them. So it is never
//! removed, and it lies where nobody but root or this user can ever make, rename or remove anything, up to `/`.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::geteuid;

/// The library, compiled by the build script.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libtcpwhy_preload.so"));

/// The system's places, in which only root makes files. The first is emptied when the machine starts; Debian mounts it
/// without the right to execute.
const SYSTEM: [&str; 2] = ["/run", "/var/lib"];
/// The folder in each place.
const FOLDER: &str = "tcpwhy";
/// Programs that become another user have to find it, too.
const FOLDER_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o555;
/// Who else than its owner may write to something: its group, and everybody. A list of access rights (acl(5)) shows there, too.
const WRITTEN_BY_OTHERS: u32 = 0o022;
/// What the loader takes for something else in `LD_PRELOAD`: separators, and the beginning of `$ORIGIN` (ld.so(8)).
const NOT_IN_A_PATH: [u8; 4] = *b": \n$";

/// The path of the library, which is put there if it is not.
///
/// # Errors
///
/// There is no place for it; the text says what was tried and how to have one.
pub(super) fn installed() -> io::Result<PathBuf> {
    let mut tried = String::new();
    for place in places() {
        match installed_in(&place) {
            Ok(path) => return Ok(path),
            Err(error) => tried.push_str(&format!(" {}: {error};", place.display())),
        }
    }
    Err(io::Error::other(format!(
        "no folder is safe for the recorder's library; set XDG_CACHE_HOME to one in which, up to /, only root or you may \
         write, and programs may be executed (tried:{})",
        tried.trim_end_matches(';')
    )))
}

/// Where it may lie, the best place first: the user's own cache outlives a session, the runtime folder does not.
fn places() -> Vec<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let own = cache.into_iter().chain(set("XDG_RUNTIME_DIR")).filter(|place| place.is_absolute());
    SYSTEM.iter().map(PathBuf::from).chain(own).collect()
}

fn installed_in(place: &Path) -> io::Result<PathBuf> {
    // ~/.cache of a new user.
    if !place.exists() {
        DirBuilder::new().mode(0o700).create(place)?;
    }
    let place = place.canonicalize()?;
    is_ours_alone(&place)?;
    let folder = place.join(FOLDER);
    match DirBuilder::new().mode(FOLDER_MODE).create(&folder) {
        // Whatever the umask says.
        Ok(()) => fs::set_permissions(&folder, Permissions::from_mode(FOLDER_MODE))?,
        Err(_) if folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) => {}
        Err(error) => return Err(error),
    }
    is_ours_alone(&folder)?;
    if statvfs(&folder)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(io::Error::other("mounted noexec"));
    }
    let path = folder.join(name());
    if path.as_os_str().as_bytes().iter().any(|byte| NOT_IN_A_PATH.contains(byte)) {
        return Err(io::Error::other("the loader cannot be told such a path"));
    }
    if !is_there(&path) {
        write(&folder, &path)?;
    }
    Ok(path)
}

/// A name that no other version has: programs that run go on with theirs.
fn name() -> OsString {
    let mut hasher = DefaultHasher::new();
    LIBRARY.hash(&mut hasher);
    format!("preload-{}-{:016x}.so", env!("CARGO_PKG_VERSION"), hasher.finish()).into()
}

/// Fails where anybody but root and this user may write to the folder or to one that it is in. A sticky folder (`/tmp`) is none
/// for this: once a cleaner has removed a name there, it is anybody's.
fn is_ours_alone(folder: &Path) -> io::Result<()> {
    let root = Path::new("/").symlink_metadata()?.uid();
    for folder in folder.ancestors() {
        let metadata = folder.symlink_metadata()?;
        let owner = metadata.uid();
        // In a user namespace root's files have another number; whoever has `/` has the loader itself.
        let is_trusted = owner == root || owner == 0 || owner == geteuid().as_raw();
        if !is_trusted || metadata.mode() & WRITTEN_BY_OTHERS != 0 {
            let why = format!("others may write to {}", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
    }
    Ok(())
}

/// Whether the file is there as it should be.
fn is_there(path: &Path) -> bool {
    let fits = |metadata: fs::Metadata| metadata.is_file() && metadata.mode() & 0o777 == FILE_MODE;
    path.symlink_metadata().is_ok_and(fits)
        && is_ours_alone(path).is_ok()
        && fs::read(path).is_ok_and(|content| content == LIBRARY)
}

/// Puts it there whole: others may start at the same time.
fn write(folder: &Path, path: &Path) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".preload-").tempfile_in(folder)?;
    file.write_all(LIBRARY)?;
    File::set_permissions(file.as_file(), Permissions::from_mode(FILE_MODE))?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(mode: u32) -> tempfile::TempDir {
        // The tests' own build folder: nobody else writes there.
        let folder = tempfile::TempDir::new_in(env!("OUT_DIR")).expect("a folder");
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).expect("its own");
        folder
    }

    #[test]
    fn a_place_in_which_others_write_is_none() {
        if let Err(error) = is_ours_alone(Path::new(env!("OUT_DIR"))) {
            // Straight to standard error, which shows it; eprintln! is kept from a passing test.
            let _ = writeln!(io::stderr(), "SKIPPED a_place_in_which_others_write_is_none: {error}");
            return;
        }
        for mode in [0o700, 0o755] {
            let folder = folder_with(mode);
            let path = installed_in(folder.path()).expect("a place");
            assert_eq!(fs::read(&path).expect("the library"), LIBRARY);
            assert_eq!(path.metadata().expect("a file").mode() & 0o7777, FILE_MODE);
        }
        for mode in [0o770, 0o757, 0o1777] {
            let folder = folder_with(mode);
            installed_in(folder.path()).expect_err("others write there");
            // Nor inside it, whoever has that.
            let inside = folder.path().join("inside");
            DirBuilder::new().mode(0o700).create(&inside).expect("a folder");
            installed_in(&inside).expect_err("others rename it");
        }
    }

    #[test]
    fn what_lies_there_and_is_not_the_library_is_replaced() {
        let folder = folder_with(0o700);
        let Ok(path) = installed_in(folder.path()) else { return };
        for mode in [FILE_MODE, 0o755] {
            fs::remove_file(&path).expect("it was there");
            fs::write(&path, b"half").expect("room");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("its own");
            assert_eq!(installed_in(folder.path()).expect("a place"), path);
            assert!(is_there(&path));
        }
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let (folder, other) = (folder_with(0o700), folder_with(0o700));
        std::os::unix::fs::symlink(other.path(), folder.path().join(FOLDER)).expect("a link");
        installed_in(folder.path()).expect_err("a link");
        assert_eq!(fs::read_dir(other.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_path_that_the_loader_would_divide_is_none() {
        let folder = folder_with(0o700);
        for name in ["a b", "a:b", "$LIB"] {
            let place = folder.path().join(name);
            DirBuilder::new().mode(0o700).create(&place).expect("a folder");
            installed_in(&place).expect_err(name);
        }
    }
}
