//! Network namespaces without names.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};

use super::netlink;

/// A network namespace. It has no name: the kernel takes it down when no thread, child or handle uses it.
#[derive(Clone, Debug)]
pub(crate) struct Namespace(Arc<OwnedFd>);

impl Namespace {
    /// A new one with its loopback interface up; `setup` runs in it.
    pub(crate) fn new<T: Send + 'static>(
        loopback_mtu: u32,
        setup: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<(Self, T)> {
        on_a_thread(move || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(not_allowed)?;
            let namespace = File::open("/proc/thread-self/ns/net").context("cannot open /proc")?;
            silence_ipv6();
            netlink::set_up("lo", loopback_mtu).context("cannot bring the loopback interface up")?;
            let value = setup()?;
            Ok((Self(Arc::new(namespace.into())), value))
        })
    }

    /// Its number among this process's open files.
    pub(crate) fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Moves the calling thread into it; threads and children that it starts follow.
    pub(crate) fn enter(&self) -> Result<()> {
        setns(&*self.0, CloneFlags::CLONE_NEWNET).context("cannot enter a network namespace")
    }

    /// Runs `work` in it and waits for the end.
    pub(crate) fn within<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let namespace = self.clone();
        on_a_thread(move || {
            namespace.enter()?;
            work()
        })
    }
}

/// Runs `work` on a thread of its own: a namespace is a property of the thread.
fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let Ok(result) = thread::spawn(work).join() else { bail!("a thread of the lab failed") };
    result
}

/// No router solicitations, no multicast reports: captures show the programs' packets alone. A kernel without
/// IPv6 has no such files.
fn silence_ipv6() {
    for scope in ["all", "default"] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
    }
}

fn not_allowed(error: Errno) -> anyhow::Error {
    match error {
        Errno::EPERM => anyhow::anyhow!(
            "no right to make network namespaces: run as root, or where \
             unprivileged user namespaces are allowed"
        ),
        Errno::ENOSPC => anyhow::anyhow!("no more network namespaces (sysctl user.max_net_namespaces)"),
        error => anyhow::anyhow!("cannot make a network namespace: {error}"),
    }
}
