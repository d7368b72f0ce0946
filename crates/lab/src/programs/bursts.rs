//! A client that asks and a server that answers with a burst of bytes, after every silence again; a download is
//! one burst.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::congestion::Congestion;
use super::listen;
use super::socket::{Options, READ_AT_ONCE, hang_up, wait_for_end};
use crate::clock::{ms_between, now};
use crate::place::{Place, join};

/// What client and server do.
#[derive(Clone, Debug, Serialize)]
pub struct Bursts {
    /// Bytes of each burst.
    pub bytes: usize,
    /// How many bursts.
    pub count: usize,
    /// From the end of a burst to the client's next question.
    pub silence: Duration,
    /// The server's.
    pub congestion: Congestion,
}

/// What the client logged.
#[derive(Clone, Debug, Serialize)]
pub struct Log {
    /// Where the server listened.
    pub port: u16,
    /// In order.
    pub bursts: Vec<Burst>,
}

/// One burst as the client saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Burst {
    /// When the client asked, in ns since the epoch.
    pub asked: i64,
    /// Every read: when, and how many bytes of this burst had been read then.
    pub reads: Vec<(i64, usize)>,
}

impl Burst {
    /// When the last byte was read.
    pub fn done(&self) -> i64 {
        self.reads.last().map_or(self.asked, |(time, _)| *time)
    }

    /// From the question to the last byte, in ms.
    pub fn ms(&self) -> f64 {
        ms_between(self.asked, self.done())
    }

    /// Bytes read in each of `cells` equal parts of the first `ms` ms after the question.
    pub fn course(&self, ms: f64, cells: usize) -> Vec<f64> {
        let (mut course, mut before) = (vec![0.0; cells.max(1)], 0);
        let last = course.len() - 1;
        for &(at, read) in &self.reads {
            let share = ms_between(self.asked, at) / ms;
            course[((share * cells as f64) as usize).min(last)] += (read - before) as f64;
            before = read;
        }
        course
    }
}

/// Runs both programs to their end; the server is the sender.
pub fn run(place: &Place, bursts: &Bursts) -> Result<Log> {
    let listener = listen(&place.server)?;
    let address = listener.local_addr()?;
    let todo = bursts.clone();
    let server = place.server.spawn(move || answer(&listener, &todo));
    let todo = bursts.clone();
    let client = place.client.spawn(move || ask(address, &todo));
    let bursts = join(client);
    // The server's own failure is the better explanation of a client that was left alone.
    join(server)?;
    Ok(Log { port: address.port(), bursts: bursts? })
}

/// The server: as many bursts as there are questions.
fn answer(listener: &TcpListener, bursts: &Bursts) -> Result<()> {
    let options = Options { congestion: Some(bursts.congestion.name()), ..Options::default() };
    let client = options.accept(listener)?;
    let burst = vec![b'.'; bursts.bytes];
    for _ in 0..bursts.count {
        ensure!(options.read_message(&client, 1)?, "the client does not ask");
        options.write(&client, &burst)?;
    }
    wait_for_end(&client)
}

/// The client: asks, reads the burst, waits.
fn ask(server: SocketAddr, bursts: &Bursts) -> Result<Vec<Burst>> {
    let options = Options::default();
    let server = options.connect(server)?;
    let mut log = Vec::with_capacity(bursts.count);
    for count in 0..bursts.count {
        if count > 0 {
            sleep(bursts.silence);
        }
        log.push(read_burst(&options, &server, bursts.bytes)?);
    }
    hang_up(&server)?;
    Ok(log)
}

/// One question and its burst.
fn read_burst(options: &Options, server: &TcpStream, bytes: usize) -> Result<Burst> {
    let mut buffer = vec![0; READ_AT_ONCE];
    let mut burst = Burst { asked: now(), reads: Vec::new() };
    options.write(server, b"?")?;
    let mut read = 0;
    while read < bytes {
        let more = options.read(server, &mut buffer)?;
        ensure!(more > 0, "the server ended after {read} bytes of {bytes}");
        read += more;
        burst.reads.push((now(), read));
    }
    Ok(burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_course_counts_bytes_where_they_were_read() {
        let burst =
            Burst { asked: 1_000_000, reads: vec![(2_000_000, 10), (5_900_000, 15), (9_000_000, 40)] };
        assert!((burst.ms() - 8.0).abs() < 1e-9);
        assert_eq!(burst.course(8.0, 4), [10.0, 0.0, 5.0, 25.0]);
    }
}
