//! Giving up what only the opening of a socket needed.

use std::env;
use std::io;

use nix::unistd::{Gid, Uid, getgid, getuid, setgroups, setresgid, setresuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs,
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
///
/// # Errors
///
/// The kernel refuses; the process is not to go on then.
pub fn drop_all(heir: Option<Heir>) -> io::Result<()> {
    become_heir(heir)?;
    keep_only(CapabilitySet::empty())
}

/// The same, but for what it takes to see which process holds which socket: `CAP_SYS_PTRACE` and `CAP_DAC_READ_SEARCH`
/// stay where they were there. That is enough to read all files, so only a process that handles nothing from outside
/// may go on with it.
///
/// # Errors
///
/// The kernel refuses; the process is not to go on then.
pub fn keep_looking(heir: Option<Heir>) -> io::Result<()> {
    // Else they would go with the user (capabilities(7)).
    set_keep_capabilities(true)?;
    become_heir(heir)?;
    set_keep_capabilities(false)?;
    let looking = CapabilitySet::SYS_PTRACE | CapabilitySet::DAC_READ_SEARCH;
    keep_only(capabilities(None)?.permitted & looking)
}

fn become_heir(heir: Option<Heir>) -> io::Result<()> {
    let Some(Heir { uid, gid }) = heir else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    setgroups(&[gid])?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    if getuid() == uid && getgid() == gid {
        Ok(())
    } else {
        Err(io::Error::other("the kernel kept the old user"))
    }
}

fn keep_only(rights: CapabilitySet) -> io::Result<()> {
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: rights, permitted: rights, inheritable })?;
    Ok(())
}
