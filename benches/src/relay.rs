//! How fast `tcpwhy relay` passes data on, beside socat and beside no relay at all, in one run.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anstream::println;
use anyhow::{Context, Result, ensure};

/// Bytes of one transfer.
const BULK: u64 = 1 << 30;
/// Bytes written at once.
const PIECE: usize = 256 << 10;
/// Round trips of one measurement.
const ROUND_TRIPS: u32 = 20_000;
/// Bytes of a question and of its answer.
const MESSAGE: usize = 64;
/// Measurements of each way, in turn; the best counts, since everything else of the machine only slows down.
const ROUNDS: usize = 3;
/// How long a relay may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Nothing,
    Tcpwhy,
    Socat,
}

impl Between {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Tcpwhy => "tcpwhy relay",
            Self::Socat => "socat",
        }
    }

    /// Starts it; where clients connect.
    fn start(self, tool: &Path, server: SocketAddr) -> Result<(SocketAddr, Option<Running>)> {
        if self == Self::Nothing {
            return Ok((server, None));
        }
        let address = free_port()?;
        let mut command = match self {
            Self::Socat => {
                let mut socat = Command::new("socat");
                socat.arg(format!("TCP-LISTEN:{},reuseaddr,fork,nodelay", address.port()));
                socat.arg(format!("TCP:{server},nodelay"));
                socat
            }
            _ => {
                let mut relay = Command::new(tool);
                relay.args(["relay", &address.to_string(), &server.to_string()]);
                relay
            }
        };
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok((address, Some(Running(child.with_context(|| format!("cannot run {}", self.name()))?))))
    }
}

/// A relay that ends with its measurement.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Prints all figures.
pub fn bench(tool: &Path) -> Result<()> {
    println!("\nThrough a relay over loopback: best of {ROUNDS}, and as a share of what no relay does\n");
    println!("{:<16}{:>12}{:>8}{:>22}{:>8}", "", "Gbit/s", "", "round trips a second", "");
    let ways = [Between::Nothing, Between::Tcpwhy, Between::Socat];
    let ways: Vec<Between> = ways.into_iter().filter(|way| *way != Between::Socat || has_socat()).collect();
    let mut best = vec![(0.0_f64, 0.0_f64); ways.len()];
    for _ in 0..ROUNDS {
        for (best, way) in best.iter_mut().zip(&ways) {
            *best = (best.0.max(bulk(*way, tool)?), best.1.max(round_trips(*way, tool)?));
        }
    }
    let (most, quickest) = best[0];
    for ((gbits, trips), way) in best.iter().zip(&ways) {
        println!(
            "{:<16}{gbits:>12.2}{:>7.0} %{trips:>22.0}{:>6.0} %",
            way.name(),
            gbits / most * 100.0,
            trips / quickest * 100.0
        );
    }
    if ways.len() < 3 {
        println!("socat is not installed (apt-get install socat)");
    }
    Ok(())
}

fn has_socat() -> bool {
    Command::new("socat").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// One transfer, in Gbit/s: from the client's first write until the server has read the end.
fn bulk(way: Between, tool: &Path) -> Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let (address, _running) = way.start(tool, listener.local_addr()?)?;
    let mut client = connect(address)?;
    let (mut server, _) = listener.accept()?;
    let reading = std::thread::spawn(move || -> Result<u64> {
        let (mut buffer, mut read) = (vec![0; PIECE], 0);
        loop {
            match server.read(&mut buffer)? {
                0 => return Ok(read),
                length => read += length as u64,
            }
        }
    });
    let (piece, start) = (vec![0x55; PIECE], Instant::now());
    for _ in 0..BULK / PIECE as u64 {
        client.write_all(&piece)?;
    }
    client.shutdown(Shutdown::Write)?;
    let read = reading.join().ok().context("the server panicked")??;
    ensure!(read == BULK, "{}: {read} of {BULK} bytes came", way.name());
    Ok(BULK as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e9)
}

/// Questions and answers one after the other, a second.
fn round_trips(way: Between, tool: &Path) -> Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let (address, _running) = way.start(tool, listener.local_addr()?)?;
    let mut client = connect(address)?;
    let (mut server, _) = listener.accept()?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    std::thread::spawn(move || {
        let mut message = [0; MESSAGE];
        while server.read_exact(&mut message).and_then(|()| server.write_all(&message)).is_ok() {}
    });
    let (mut message, start) = ([0x55; MESSAGE], Instant::now());
    for _ in 0..ROUND_TRIPS {
        client.write_all(&message)?;
        client.read_exact(&mut message)?;
    }
    Ok(f64::from(ROUND_TRIPS) / start.elapsed().as_secs_f64())
}

/// Connects as soon as somebody listens there.
fn connect(address: SocketAddr) -> Result<TcpStream> {
    let start = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return Ok(stream),
            Err(error) if start.elapsed() > PATIENCE => {
                return Err(error).context("the relay does not listen");
            }
            Err(_) => sleep(Duration::from_millis(5)),
        }
    }
}

/// A port that was free a moment ago.
fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
