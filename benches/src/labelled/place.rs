//! Where programs and recorders run: on the loopback interface, or in two network namespaces.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Where one end of a case runs.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The network namespace; this process's own where there is none.
    namespace: Option<String>,
    /// The interface to record.
    pub interface: &'static str,
    /// What a capture recorded here sees: `client`, `server` or `both`.
    pub vantage: &'static str,
}

impl Seat {
    /// Runs `work` on a new thread in this seat's namespace.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> std::thread::JoinHandle<Result<T>> {
        let namespace = self.namespace.clone();
        std::thread::spawn(move || {
            if let Some(name) = namespace {
                enter(&name)?;
            }
            work()
        })
    }
}

/// Moves the calling thread, and the children it starts, into a named namespace.
fn enter(name: &str) -> Result<()> {
    let file = File::open(format!("/run/netns/{name}")).with_context(|| format!("no namespace {name}"))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .with_context(|| format!("cannot enter namespace {name}"))
}

/// A place for a case to run.
#[derive(Debug)]
pub struct Place {
    /// `loopback` or `veth`.
    pub name: &'static str,
    /// Where the client runs.
    pub client: Seat,
    /// Where the server runs.
    pub server: Seat,
    /// The server's address.
    pub address: IpAddr,
}

impl Place {
    /// This host's loopback interface.
    pub fn loopback() -> Self {
        let seat = Seat { namespace: None, interface: "lo", vantage: "both" };
        Self {
            name: "loopback",
            client: seat.clone(),
            server: seat,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }

    /// Two namespaces, joined by a veth pair with all offloads off, so that captures show real segments.
    pub fn veth() -> Result<Self> {
        let id = std::process::id();
        let (client, server) = (format!("tcpwhy-c-{id}"), format!("tcpwhy-s-{id}"));
        let place = Self {
            name: "veth",
            client: Seat { namespace: Some(client.clone()), interface: "veth0", vantage: "client" },
            server: Seat { namespace: Some(server.clone()), interface: "veth0", vantage: "server" },
            address: IpAddr::V4(Ipv4Addr::new(10, 99, 0, 2)),
        };
        ip(&["netns", "add", &client])?;
        ip(&["netns", "add", &server])?;
        ip(&[
            "-n", &client, "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns", &server,
        ])?;
        for (namespace, address) in [(&client, "10.99.0.1/24"), (&server, "10.99.0.2/24")] {
            ip(&["-n", namespace, "address", "add", address, "dev", "veth0"])?;
            ip(&["-n", namespace, "link", "set", "veth0", "up"])?;
            let offloads = ["tso", "off", "gso", "off", "gro", "off", "tx", "off"];
            let prefix = ["netns", "exec", namespace, "ethtool", "-K", "veth0"];
            ip(&[&prefix[..], &offloads[..]].concat()).context("apt-get install ethtool")?;
        }
        Ok(place)
    }
}

impl Drop for Place {
    /// Takes the namespaces away again; the veth pair goes with them.
    fn drop(&mut self) {
        for name in [&self.client.namespace, &self.server.namespace].into_iter().flatten() {
            // Nothing is left to do about it where this fails.
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output =
        Command::new("ip").args(arguments).output().context("cannot run ip (apt-get install iproute2)")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {}: {}", arguments.join(" "), said.trim());
    Ok(())
}
