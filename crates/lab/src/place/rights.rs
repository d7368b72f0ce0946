//! Running without root's rights.

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use rustix::thread::{CapabilitySet, capabilities};

/// Gains the right to make namespaces. Without it, this process enters a user namespace, in which it has every
/// right and outside of which none; call it while the process has one thread, which the kernel demands.
pub fn enter() -> Result<()> {
    if capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN)) {
        return Ok(());
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).map_err(missing)?;
    // A process without rights may map its group only once it gave up setgroups(2) (user_namespaces(7)).
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write("/proc/self/gid_map", &format!("0 {group} 1"))
}

fn write(path: &str, value: &str) -> Result<()> {
    std::fs::write(path, value).with_context(|| {
        format!("this system restricts user namespaces (cannot write {path}): run as root instead")
    })
}

fn missing(error: Errno) -> anyhow::Error {
    let cure = match error {
        Errno::EPERM | Errno::EACCES => {
            "user namespaces are forbidden here (sysctl kernel.unprivileged_userns_clone or \
             kernel.apparmor_restrict_unprivileged_userns, or a container's seccomp profile): allow them, or \
             run as root"
        }
        Errno::ENOSPC | Errno::EUSERS => {
            "sysctl user.max_user_namespaces allows no more: raise it, or run as root"
        }
        Errno::EINVAL => "the process has several threads already, or the kernel has no user namespaces",
        Errno::ENOSYS => "the kernel has no user namespaces: run as root",
        _ => "run as root",
    };
    anyhow::anyhow!("cannot enter a user namespace: {error}; {cure}")
}
