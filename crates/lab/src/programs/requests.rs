//! Requests that a client writes in two pieces, header and body, and that a server answers once it has both.

use std::net::{SocketAddr, TcpListener};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::socket::{Options, hang_up};
use crate::clock::{ms_between, now};
use crate::place::{Place, join};

/// Bytes of a request's two pieces.
const PIECES: [usize; 2] = [100, 300];
/// Bytes of an answer.
const ANSWER: usize = 200;

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
    let options = Options { nodelay: true, ..Options::default() };
    let stream = options.accept(listener)?;
    while options.read_message(&stream, PIECES.iter().sum())? {
        options.write(&stream, &[0; ANSWER])?;
    }
    Ok(())
}

fn ask(server: SocketAddr, requests: Requests) -> Result<Vec<f64>> {
    let options = Options { nodelay: requests.nodelay, ..Options::default() };
    let stream = options.connect(server)?;
    let mut times = Vec::with_capacity(requests.count);
    for _ in 0..requests.count {
        let begun = now();
        options.write(&stream, &[0; PIECES[0]])?;
        sleep(requests.work);
        options.write(&stream, &[0; PIECES[1]])?;
        ensure!(options.read_message(&stream, ANSWER)?, "no answer");
        times.push(ms_between(begun, now()));
    }
    hang_up(&stream)?;
    Ok(times)
}
