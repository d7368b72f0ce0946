//! Where programs run and what joins them.
//!
//! Every run has namespaces of its own, without names: they are gone with the threads and children that use
//! them, however those end. Nothing but the programs of the run sees them.
//!
//! ```text
//! build.rs      the hosts and devices of each path
//! namespace.rs  network namespaces that are file descriptors
//! seat.rs       a host, and the work done on it
//! command.rs    children that cannot outlive the lab
//! rights.rs     what to do without root's rights
//! device.rs     one end of a link as the emulator sees it; tun.rs and veth.rs are
//! loopback.rs   the capture of a loopback interface
//! netlink.rs    requests to the kernel's routing socket
//! route.rs      routes with metrics
//! ```

mod build;
mod command;
mod device;
mod loopback;
mod namespace;
mod netlink;
mod rights;
mod route;
mod seat;
mod tun;
pub(crate) use namespace::Namespace;
pub(crate) use route::set_initial_window;
pub(crate) use tun::Tun;
mod veth;

use std::thread::JoinHandle;

use anyhow::Result;
use serde::Serialize;
use tcpwhy_simulate::link::Ends;

pub(crate) use build::{Built, Line, Port, build};
pub(crate) use device::Device;
pub(crate) use loopback::{Recorded, Recorder};
pub use rights::enter;
pub use seat::Seat;

/// What joins client and server.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "a run has one")]
pub enum Path {
    /// One host: its loopback interface.
    Loopback {
        /// Largest IP packet in bytes; Linux's is 65,536.
        mtu: u32,
    },
    /// An emulated link.
    Link(Wire),
    /// Client, relay and server, with a link on either side of the relay.
    TwoHops {
        /// Between client and relay.
        near: Wire,
        /// Between relay and server.
        far: Wire,
    },
}

/// An emulated link and the devices at its ends.
#[derive(Clone, Debug, Serialize)]
pub struct Wire {
    /// What it does to packets.
    pub ends: Ends,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Hosts hand segments above the MTU to their device, which cuts them (TSO): captures at the sender show
    /// them whole.
    pub offload: bool,
}

impl Wire {
    /// A link of Ethernet's MTU without offload.
    pub fn new(ends: Ends) -> Self {
        Self { ends, mtu: 1500, offload: false }
    }
}

/// The hosts of a run.
#[derive(Debug)]
pub struct Place {
    /// Where the client runs.
    pub client: Seat,
    /// Where the server runs; on loopback the same host.
    pub server: Seat,
    /// Where the relay runs, on a path of two hops.
    pub relay: Option<Seat>,
}

/// The value of a thread that [`Seat::spawn`] started.
pub fn join<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    thread.join().map_err(|_| anyhow::anyhow!("a program of the lab failed"))?
}
