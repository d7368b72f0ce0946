//! A host of a run.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::thread::JoinHandle;

use anyhow::{Context, Result, ensure};

use super::command;
use super::namespace::Namespace;
use super::route;

/// A host of the run.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Where its programs are reached.
    address: IpAddr,
    namespace: Namespace,
}

impl Seat {
    pub(crate) fn new(address: impl Into<IpAddr>, namespace: Namespace) -> Self {
        Self { address: address.into(), namespace }
    }

    /// Where its programs are reached. A relay is reached by the client here.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Runs `work` on a new thread on this host; threads and children it starts are there too.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> JoinHandle<Result<T>> {
        let namespace = self.namespace.clone();
        std::thread::spawn(move || {
            namespace.enter()?;
            work()
        })
    }

    /// A command that dies with the thread that starts it, and takes its own children along: also when this
    /// process is killed. Start it in [`Seat::spawn`]'s work, and let that thread wait for its end.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        command::mortal(program.as_ref())
    }

    /// A file that stands for this host's network while this process runs; `nsenter --net=FILE` enters it.
    pub fn network(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.namespace.descriptor()))
    }

    /// Sets a sysctl of this host alone: `net.ipv4.tcp_sack`, say.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        ensure!(name.starts_with("net."), "{name} is not a sysctl of the network");
        let path = PathBuf::from("/proc/sys").join(name.replace('.', "/"));
        let value = value.to_owned();
        let problem = format!("cannot set {name} to {value}");
        self.namespace.within(move || Ok(std::fs::write(path, value)?)).context(problem)
    }

    /// Connections of this host to `peer`, its neighbour, begin with a congestion window of so many segments.
    pub fn set_initial_window(&self, peer: IpAddr, segments: u32) -> Result<()> {
        let problem = format!("cannot set an initial window of {segments} segments");
        self.namespace.within(move || route::set_initial_window(peer, segments)).context(problem)
    }
}
