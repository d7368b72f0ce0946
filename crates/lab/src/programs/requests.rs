//! Requests that a client writes in two pieces, header and body, and that a server answers once it has both.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::clock::now;
use crate::place::{Place, join};

/// Bytes of a request's two pieces.
const PIECES: [usize; 2] = [100, 300];
/// Bytes of an answer.
const ANSWER: usize = 200;
/// A program that hears nothing for so long has lost its peer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How they are made.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Requests {
    /// How many, one after the other.
    pub count: usize,
    /// The client's `TCP_NODELAY`.
    pub nodelay: bool,
    /// The client's work between a request's two pieces.
    pub work: Duration,
}

/// What the client logged.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answered {
    /// The port that the client spoke to: the server's, or the relay's.
    pub port: u16,
    /// The server's port.
    pub server_port: u16,
    /// From a request's first write until its answer was read, in ms.
    pub times: Vec<f64>,
}

/// Makes the requests; the client speaks to `through`, where something stands between them.
pub fn run(
    place: &Place,
    requests: Requests,
    through: impl FnOnce(SocketAddr) -> Result<SocketAddr>,
) -> Result<Answered> {
    let listener = super::listen(&place.server)?;
    let server_port = listener.local_addr()?.port();
    let spoken_to = through(listener.local_addr()?)?;
    let server: JoinHandle<Result<()>> = place.server.spawn(move || serve(&listener));
    let client = place.client.spawn(move || ask(spoken_to, requests));
    let (times, served) = (join(client), join(server));
    let times = times.context("the client")?;
    served.context("the server")?;
    Ok(Answered { port: spoken_to.port(), server_port, times })
}

fn serve(listener: &TcpListener) -> Result<()> {
    let mut stream = super::accept_within(listener, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut request = vec![0; PIECES.iter().sum()];
    loop {
        match stream.read_exact(&mut request) {
            Ok(()) => stream.write_all(&[0; ANSWER])?,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn ask(server: SocketAddr, requests: Requests) -> Result<Vec<f64>> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE).context("cannot connect")?;
    stream.set_nodelay(requests.nodelay)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut times = Vec::with_capacity(requests.count);
    for _ in 0..requests.count {
        let begun = now();
        stream.write_all(&[0; PIECES[0]])?;
        sleep(requests.work);
        stream.write_all(&[0; PIECES[1]])?;
        stream.read_exact(&mut [0; ANSWER]).context("no answer")?;
        times.push((now() - begun) as f64 / 1e6);
    }
    stream.shutdown(Shutdown::Write)?;
    // Until the server's FIN, so that both are in the capture.
    while stream.read(&mut [0; ANSWER])? > 0 {}
    Ok(times)
}
