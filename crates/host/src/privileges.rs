//! Giving up what only the opening of a socket needed.

use std::env;
use std::io;

use nix::unistd::{Gid, Uid, getgid, getuid, setgroups, setresgid, setresuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};

/// The user that owns nothing: `nobody`, by the kernel's number for users it cannot name
/// (`/proc/sys/kernel/overflowuid`).
const NOBODY: u32 = 65_534;

/// Who goes on with less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heir {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Heir {
    /// Whether this is the user who owns nothing.
    pub fn is_nobody(self) -> bool {
        self.uid == NOBODY
    }
}

/// Who is to go on where root began: the user who called sudo (`SUDO_UID`, `SUDO_GID`), else nobody. `None` where
/// it is not root who runs this.
pub fn heir() -> Option<Heir> {
    if !getuid().is_root() {
        return None;
    }
    let number = |name: &str| env::var(name).ok()?.parse::<u32>().ok().filter(|id| *id != 0);
    let sudo = number("SUDO_UID").zip(number("SUDO_GID"));
    let (uid, gid) = sudo.unwrap_or((NOBODY, NOBODY));
    Some(Heir { uid, gid })
}

/// Makes the process the heir's, if there is one, and drops all capabilities of the calling thread, for good: what it
/// executes later cannot regain them. To be called before other threads are started, which would keep theirs.
pub fn drop_all(heir: Option<Heir>) -> io::Result<()> {
    if let Some(Heir { uid, gid }) = heir {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        setgroups(&[gid])?;
        setresgid(gid, gid, gid)?;
        setresuid(uid, uid, uid)?;
        if getuid() != uid || getgid() != gid {
            return Err(io::Error::other("the kernel kept the old user"));
        }
    }
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}
