//! The benchmark's real traffic: programs that talk over the loopback interface, recorded by tcpdump.

use std::io::{Read, Result as IoResult, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;

use anyhow::{Context, Result};

use crate::manifest::Capture;
use crate::recorder::Recorder;

/// Connections that talk at the same time; more would only wait for this machine's cores.
const CLIENTS: u64 = 8;
/// How often all of them connect at scale 1.
const ROUNDS: u64 = 46;
/// Exchanges of one connection.
const EXCHANGES: u64 = 2_000;
/// One response in so many is large.
const LARGE_EVERY: u64 = 40;
/// Bytes of a large response: what a page or a picture has.
const LARGE_BYTES: usize = 60_000;

/// Records `scale` times 1.4 GB of traffic into `dir`.
pub(crate) fn record(dir: &Path, name: &str, scale: f64) -> Result<Capture> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on the loopback interface")?;
    let port = listener.local_addr()?.port();
    let file = format!("{name}.pcap");
    let path = dir.join(&file);
    let recorder = Recorder::start("lo", port, &path)?;
    let rounds = ((ROUNDS as f64 * scale) as u64).max(1);
    let connections = rounds * CLIENTS;
    let server = serve(listener, connections);
    for _ in 0..rounds {
        round(port)?;
        // The programs are faster than tcpdump; its buffer holds a round.
        recorder.catch_up(([127, 0, 0, 1], port).into())?;
    }
    server.join().map_err(|_| anyhow::anyhow!("the server failed"))??;
    let recorded = recorder.finish(([127, 0, 0, 1], port).into())?;
    let bytes = std::fs::metadata(&path)?.len();
    let (packets, dropped) = (recorded.packets, recorded.dropped);
    anstream::println!(
        "{file}: {packets} packets, {connections} connections, {bytes} bytes, {dropped} packets lost"
    );
    let what = "real traffic over the loopback interface: small exchanges and large responses".into();
    Ok(Capture { name: name.into(), file, what, packets, connections, bytes })
}

/// Answers each request `[length: u32]` with so many bytes, for so many connections.
fn serve(listener: TcpListener, connections: u64) -> JoinHandle<Result<()>> {
    std::thread::spawn(move || {
        let mut serving = Vec::new();
        for _ in 0..connections {
            let (stream, _) = listener.accept()?;
            serving.push(std::thread::spawn(move || answer(stream)));
        }
        for one in serving {
            one.join().map_err(|_| anyhow::anyhow!("a connection failed"))??;
        }
        Ok(())
    })
}

fn answer(mut stream: TcpStream) -> IoResult<()> {
    let response = vec![b'x'; LARGE_BYTES];
    let mut length = [0; 4];
    while stream.read_exact(&mut length).is_ok() {
        let wanted = (u32::from_le_bytes(length) as usize).min(response.len());
        stream.write_all(&response[..wanted])?;
    }
    Ok(())
}

/// One conversation of every client, all at the same time.
fn round(port: u16) -> Result<()> {
    let clients: Vec<_> = (0..CLIENTS).map(|_| std::thread::spawn(move || ask(port))).collect();
    for client in clients {
        client.join().map_err(|_| anyhow::anyhow!("a client failed"))??;
    }
    Ok(())
}

fn ask(port: u16) -> IoResult<()> {
    let mut buffer = vec![0; LARGE_BYTES];
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    for exchange in 0..EXCHANGES {
        let large = exchange % LARGE_EVERY == 0;
        let wanted = if large { LARGE_BYTES } else { 40 + (exchange % 400) as usize };
        stream.write_all(&(wanted as u32).to_le_bytes())?;
        stream.read_exact(&mut buffer[..wanted])?;
    }
    Ok(())
}
