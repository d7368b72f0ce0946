//! Runs a case, records it, and writes down what its programs know.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, ensure};
use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::cases::{Case, Program};
use super::place::{Place, Seat};
use super::truth::{CaptureFile, Clock, Exchange, Latency, Stream, Truth};
use crate::recorder::{Recorded, Recorder};

/// Bytes stored of a packet: all headers (Ethernet 14, IPv4 20, TCP 60 at most).
const SNAPLEN: u32 = 96;

/// What both programs logged.
struct Logs {
    exchanges: Vec<Exchange>,
    stream: Option<Stream>,
}

/// Runs `case` in `place` and writes captures and truth into `dir`; returns the truth and its file.
pub fn record(case: &Case, place: &Place, dir: &Path) -> Result<(Truth, PathBuf)> {
    let listener = Arc::new(listen(case, place)?);
    let server = listener.local_addr()?;
    let stem =
        if place.name == "loopback" { case.name.to_owned() } else { format!("{}-{}", case.name, place.name) };
    let seats = seats(place);
    let mut captures = Vec::new();
    let mut recorders = Vec::new();
    for seat in &seats {
        let file =
            if seats.len() == 1 { format!("{stem}.pcap") } else { format!("{stem}-{}.pcap", seat.vantage) };
        let (path, interface) = (dir.join(&file), seat.interface);
        recorders.push(joined(
            seat.spawn(move || Recorder::start(interface, server.port(), Some(SNAPLEN), &path)),
        )?);
        captures.push(CaptureFile { file, vantage: seat.vantage.into() });
    }
    let clock = Clock::start();
    let logs = run(case, place, &listener, clock)?;
    for recorder in finish(recorders, place, server)? {
        ensure!(recorder.dropped == 0, "{} packets were lost while recording", recorder.dropped);
    }
    let truth = truth(case, place, captures, server, clock, logs);
    let path = dir.join(format!("{stem}.json"));
    truth.save(&path)?;
    Ok((truth, path))
}

/// The seats to record at: both ends, or one where they are the same.
fn seats(place: &Place) -> Vec<Seat> {
    if place.name == "loopback" {
        vec![place.client.clone()]
    } else {
        vec![place.client.clone(), place.server.clone()]
    }
}

fn listen(case: &Case, place: &Place) -> Result<TcpListener> {
    let (address, program) = (place.address, case.program);
    joined(place.server.spawn(move || {
        let listener = TcpListener::bind((address, 0)).context("cannot listen")?;
        if let Program::Upload(upload) = program
            && let Some(bytes) = upload.receive_buffer
        {
            // Accepted sockets inherit it, and their handshake offers a window that fits.
            set_socket_recv_buffer_size(&listener, bytes)?;
        }
        Ok(listener)
    }))
}

/// Runs both programs to their end.
fn run(case: &Case, place: &Place, listener: &Arc<TcpListener>, clock: Clock) -> Result<Logs> {
    let address = listener.local_addr()?;
    let connect = move || TcpStream::connect(address);
    let listener = Arc::clone(listener);
    match case.program {
        Program::Chat(chat) => {
            let server = place.server.spawn(move || Ok(chat.server(&listener, clock)?));
            let client = joined(place.client.spawn(move || Ok(chat.client(connect, clock)?)))?;
            Ok(Logs { exchanges: merged(client, joined(server)?)?, stream: None })
        }
        Program::Upload(upload) => {
            let server = place.server.spawn(move || Ok(upload.server(&listener, clock)?));
            let client = joined(place.client.spawn(move || Ok(upload.client(connect()?, clock)?)))?;
            Ok(Logs { exchanges: Vec::new(), stream: Some(upload.log(client, joined(server)?)) })
        }
        Program::Updates(updates) => {
            let server = place.server.spawn(move || Ok(updates.server(&listener, clock)?));
            let client = joined(place.client.spawn(move || Ok(updates.client(connect()?, clock)?)))?;
            Ok(Logs { exchanges: Vec::new(), stream: Some(updates.log(joined(server)?, client)) })
        }
    }
}

/// Each exchange as client and server saw it.
fn merged(client: Vec<Exchange>, server: Vec<Exchange>) -> Result<Vec<Exchange>> {
    ensure!(client.len() == server.len(), "client and server counted differently");
    let both = client.into_iter().zip(server);
    Ok(both
        .map(|(client, server)| Exchange {
            client_wrote: client.client_wrote,
            client_read: client.client_read,
            ..server
        })
        .collect())
}

/// Ends all recorders; every one of them must have seen the others' markers by then, which it leaves out.
fn finish(recorders: Vec<Recorder>, place: &Place, server: SocketAddr) -> Result<Vec<Recorded>> {
    let finishing = move || recorders.into_iter().map(|recorder| recorder.finish(server)).collect();
    joined(place.client.spawn(finishing))
}

fn joined<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("a thread failed"))?
}

fn truth(
    case: &Case,
    place: &Place,
    captures: Vec<CaptureFile>,
    server: SocketAddr,
    clock: Clock,
    logs: Logs,
) -> Truth {
    let (client_options, server_options, connections) = options(case);
    Truth {
        case: case.name.into(),
        story: case.story.into(),
        place: place.name.into(),
        captures,
        server: server.to_string(),
        client_options,
        server_options,
        connections,
        start_unix_us: clock.start_unix_us(),
        latency: Latency::of(&logs.exchanges),
        exchanges: logs.exchanges,
        stream: logs.stream,
    }
}

/// Options of the client's and the server's sockets, and how many connections there are.
fn options(case: &Case) -> (Vec<String>, Vec<String>, u64) {
    let (mut client, mut server, mut connections) = (Vec::new(), Vec::new(), 1);
    match case.program {
        Program::Chat(chat) => {
            if chat.client_nodelay {
                client.push("TCP_NODELAY".into());
            }
            if chat.client_cork {
                client.push("TCP_CORK".into());
            }
            if chat.connect_each {
                connections = chat.exchanges as u64;
            }
        }
        Program::Upload(upload) => {
            server.extend(upload.receive_buffer.map(|bytes| format!("SO_RCVBUF={bytes}")));
        }
        Program::Updates(_) => {}
    }
    (client, server, connections)
}
