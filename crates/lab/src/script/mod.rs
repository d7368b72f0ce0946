//! packetdrill scripts on this machine's kernel: the truth that the simulator's scripts are held against.
//!
//! The host is a network namespace with one TUN device. The script's segments go in and out there; its calls are
//! made on real sockets, which never wait: the runner repeats a call that would. Sockets use CUBIC, Linux's own
//! default, unless the script says otherwise; the machine's default may be another.

mod bytes;
mod sockets;

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tcpwhy_simulate::script::{Host, OnWire, Outcome, Reply, Request, Script, Step, run_on};
use tcpwhy_wire::TcpFlags;

use crate::place::{Device, Namespace, Tun, set_initial_window};
use bytes::Ports;
use sockets::Sockets;

/// The kernel under test, and who it talks to: a neighbour that is not there.
const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 2);
const MTU: u32 = 1500;
/// The server's port, whichever side that is; packetdrill's.
const SERVER: u16 = 8080;
/// The port of the first client that a script plays.
const FIRST_CLIENT: u16 = 40_000;
/// How often calls that wait are made again.
const PATIENCE: Duration = Duration::from_micros(500);

/// Runs `script` on this machine's kernel, in real time.
///
/// # Errors
/// Without the right to make namespaces and TUN devices.
pub fn run(script: &Script) -> Result<Outcome> {
    let script = script.clone();
    let (namespace, ()) = Namespace::new(u32::from(u16::MAX), || Ok(()))?;
    namespace.within(move || {
        let device = Tun::open(LOCAL, MTU, false)?;
        let mut kernel = Kernel::new(device);
        Ok(run_on(&script, &mut kernel))
    })
}

/// This machine's kernel in the calling thread's namespace.
struct Kernel {
    begin: Instant,
    device: Tun,
    sockets: Sockets,
    connection: Ports,
    /// Whether the present connection's peer has sent anything after its SYN.
    under_way: bool,
    /// Whether the next SYN from the kernel is of the connection under test.
    connecting: bool,
    sent: VecDeque<(u64, OnWire)>,
}

impl Kernel {
    fn new(device: Tun) -> Self {
        Self {
            begin: Instant::now(),
            device,
            sockets: Sockets::new(REMOTE, SERVER),
            connection: Ports { local: SERVER, remote: FIRST_CLIENT },
            under_way: false,
            connecting: false,
            sent: VecDeque::new(),
        }
    }

    /// Takes what the kernel has sent since the last time.
    fn receive(&mut self) -> Result<()> {
        loop {
            let now = self.now();
            let Some(received) = self.device.receive().context("the TUN device failed")? else {
                return Ok(());
            };
            let Some((ports, segment)) = bytes::read(received.whole) else { continue };
            let flags = segment.tcp.flags;
            if self.connecting && flags.has(TcpFlags::SYN) && ports.remote == SERVER {
                self.connection = ports;
                self.connecting = false;
            }
            if ports == self.connection {
                self.sent.push_back((now, segment));
            }
        }
    }

    /// Sleeps until the kernel sends something, for at most `time`.
    fn sleep(&mut self, time: Duration) {
        let fd = self.device.fd();
        let timeout = Timespec::try_from(time).ok();
        let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], timeout.as_ref());
    }
}

impl Host for Kernel {
    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn step(&mut self, until: u64) -> Step {
        if self.sent.is_empty() {
            let left = Duration::from_nanos(until.saturating_sub(self.now()));
            if self.receive().is_ok() && self.sent.is_empty() {
                self.sleep(left.min(PATIENCE));
                let _ = self.receive();
            }
        }
        match self.sent.pop_front() {
            Some((time, segment)) => Step::Sent(time, segment),
            None if self.now() >= until => Step::Reached,
            None => Step::Changed,
        }
    }

    fn deliver(&mut self, arrival: &OnWire) {
        let opening = arrival.tcp.flags.are_opening();
        if opening && self.under_way {
            self.connection = Ports { local: SERVER, remote: self.connection.remote.wrapping_add(1) };
        }
        self.under_way = !opening;
        if let Some(packet) = bytes::write(arrival, self.connection) {
            let _ = self.device.send(&packet);
        }
    }

    fn call(&mut self, request: &Request) -> Reply {
        self.connecting |= matches!(request, Request::Connect(_));
        self.sockets.call(request)
    }

    fn info(&mut self, field: &str) -> Option<f64> {
        self.sockets.info(field)
    }

    fn set(&mut self, name: &str, value: &str) -> bool {
        if name == "initcwnd" {
            let segments = value.parse().ok();
            return segments.is_some_and(|segments| set_initial_window(REMOTE.into(), segments).is_ok());
        }
        if name == "net.ipv4.tcp_congestion_control" {
            self.sockets.set_congestion(value);
            return true;
        }
        let is_tcp = name.starts_with("net.ipv4.tcp_") && !name.contains("..");
        is_tcp && std::fs::write(format!("/proc/sys/{}", name.replace('.', "/")), value).is_ok()
    }
}
