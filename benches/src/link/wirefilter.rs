//! VDE's wirefilter, another emulator in user space, where it is installed: the same pings through it.

use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tcpwhy_lab::place::{Place, Seat, join};

use super::ping;

const CLIENT: &str = "10.9.0.1/24";
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// Its devices are there within this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether its parts are here.
pub(super) fn is_installed() -> bool {
    ["wirefilter", "dpipe", "vde_plug2tap", "nsenter", "ip"].iter().all(|tool| {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| folder.join(tool).exists())
    })
}

/// Puts it between the two hosts, besides the lab's link, and pings through it.
pub(super) fn pings(place: &Place, round_trip: Duration) -> Result<Vec<Duration>> {
    let (client, _keep_client) = namespace(&place.client)?;
    let (server, _keep_server) = namespace(&place.server)?;
    let delay = (round_trip / 2).as_millis().to_string();
    // Its parts outlive dpipe otherwise.
    let mut pipe = place.client.command("dpipe");
    pipe.args(["nsenter", &client, "vde_plug2tap", "-s", "-", "vde0", "="]);
    pipe.args(["wirefilter", "-d", &delay, "="]);
    pipe.args(["nsenter", &server, "vde_plug2tap", "-s", "-", "vde0"]);
    pipe.stdout(Stdio::null()).stderr(Stdio::null());
    let pipe = Running(pipe.spawn().context("cannot start dpipe")?);
    configure(&place.client, CLIENT)?;
    configure(&place.server, &format!("{SERVER}/24"))?;
    let took = ping::pings(place, SERVER);
    drop(pipe);
    took
}

/// Ends with the measurement.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The option that leads nsenter to a host, as long as the second value lives.
fn namespace(seat: &Seat) -> Result<(String, std::sync::mpsc::Sender<()>)> {
    let (keep, until) = channel::<()>();
    let (tell, told) = channel();
    seat.spawn(move || {
        tell.send(rustix::thread::gettid())?;
        let _ = until.recv();
        Ok(())
    });
    let thread = told.recv()?.as_raw_nonzero();
    Ok((format!("--net=/proc/{}/task/{thread}/ns/net", std::process::id()), keep))
}

/// Waits for the device and gives it an address.
fn configure(seat: &Seat, address: &str) -> Result<()> {
    let address = address.to_owned();
    join(seat.spawn(move || {
        let ip = |words: &[&str]| {
            Ok::<_, std::io::Error>(Command::new("ip").args(words).output()?.status.success())
        };
        let since = Instant::now();
        while !ip(&["link", "set", "vde0", "up"])? {
            ensure!(since.elapsed() < PATIENCE, "vde_plug2tap made no device");
        }
        ensure!(ip(&["address", "add", &address, "dev", "vde0"])?, "cannot give the device an address");
        Ok(())
    }))
}
