//! A MUD's client, which uploads lines of code, and its server: some lines are answered, some are not.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;

use super::{cpu_time, listen};
use crate::clock;
use crate::place::{Place, join};

/// Which lines are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// None but the last, which shows that all have arrived.
    Stream,
    /// All, and the client waits for each answer.
    Pairs,
    /// One after so many that are not.
    Mix(u32),
}

impl Traffic {
    /// Whether line `index` of `lines` is answered.
    fn is_answered(self, index: u32, lines: u32) -> bool {
        let last = index + 1 == lines;
        match self {
            Self::Stream => last,
            Self::Pairs => true,
            Self::Mix(without) => last || index % (without + 1) == without,
        }
    }
}

/// What is played.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Options {
    /// Lines to upload.
    pub lines: u32,
    /// The client stops early after this time, so that slow runs end.
    pub budget: Duration,
    /// Which lines are answered.
    pub traffic: Traffic,
    /// `TCP_NODELAY` on the client's socket.
    pub client_nodelay: bool,
    /// `TCP_NODELAY` on the server's socket.
    pub server_nodelay: bool,
    /// The server writes an answer in so many pieces.
    pub pieces: usize,
    /// CPU time that the server spends on each line.
    pub work: Duration,
}

/// One line as the client saw it; ns since the epoch.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Line {
    /// When its `write()` began.
    pub wrote: i64,
    /// When its answer was read, if it has one.
    pub answered: Option<i64>,
}

/// What the programs saw.
#[derive(Clone, Debug, Serialize)]
pub struct Log {
    /// Every line that was uploaded, in order.
    pub lines: Vec<Line>,
    /// From the first write to the last answer.
    pub wall: Duration,
    /// CPU time of the client's thread.
    pub client_cpu: Duration,
    /// CPU time of the server's thread.
    pub server_cpu: Duration,
}

/// Client and server at their seats.
pub fn play(place: &Place, options: &Options) -> Result<Log> {
    let options = *options;
    let listener = listen(&place.server)?;
    let address = listener.local_addr()?;
    let server = place.server.spawn(move || serve(&listener, &options));
    let log = join(place.client.spawn(move || upload(address, &options)))?;
    Ok(Log { server_cpu: join(server)?, ..log })
}

/// Serves one client; returns the CPU time that took.
pub fn serve(listener: &TcpListener, options: &Options) -> Result<Duration> {
    let (mut socket, _) = listener.accept()?;
    socket.set_nodelay(options.server_nodelay)?;
    let mut reader = BufReader::new(socket.try_clone()?);
    let before = cpu_time();
    let mut line = Vec::new();
    let mut count = 0_u64;
    while reader.read_until(b'\n', &mut line)? > 0 {
        count += 1;
        busy(options.work);
        if line.first() == Some(&b'?') {
            answer(&mut socket, count, options.pieces)?;
        }
        line.clear();
    }
    Ok(cpu_time().saturating_sub(before))
}

/// Says how many lines have come, in `pieces` writes.
fn answer(socket: &mut TcpStream, count: u64, pieces: usize) -> Result<()> {
    let text = format!("ok, so far {count}\n");
    for piece in text.as_bytes().chunks(text.len().div_ceil(pieces.max(1))) {
        socket.write_all(piece)?;
    }
    Ok(())
}

/// Uploads the lines.
pub fn upload(server: SocketAddr, options: &Options) -> Result<Log> {
    let mut socket = TcpStream::connect(server)?;
    socket.set_nodelay(options.client_nodelay)?;
    let mut reader = BufReader::new(socket.try_clone()?);
    let (start, before) = (Instant::now(), cpu_time());
    let mut lines = Vec::with_capacity(options.lines as usize);
    for index in 0..options.lines {
        let answered = options.traffic.is_answered(index, options.lines);
        // The last line of an upload that ends early is answered too: else nobody knows that it has arrived.
        let over = start.elapsed() >= options.budget;
        let sign = if answered || over { '?' } else { '!' };
        let wrote = clock::now();
        socket.write_all(format!("{sign}{index:05} if (north) go(north); else look();\n").as_bytes())?;
        let read = if sign == '?' { Some(wait_for(&mut reader, index + 1)?) } else { None };
        lines.push(Line { wrote, answered: read });
        if over {
            break;
        }
    }
    let client_cpu = cpu_time().saturating_sub(before);
    Ok(Log { lines, wall: start.elapsed(), client_cpu, server_cpu: Duration::ZERO })
}

/// Reads an answer, which must have counted `lines`; returns when it was there.
fn wait_for(reader: &mut impl BufRead, lines: u32) -> Result<i64> {
    let mut answer = String::new();
    reader.read_line(&mut answer)?;
    let time = clock::now();
    ensure!(answer == format!("ok, so far {lines}\n"), "the server answered {answer:?} to line {lines}");
    Ok(time)
}

/// Keeps the CPU busy: a sleeping server would look idle, and idleness is what the story is about.
fn busy(work: Duration) {
    let start = Instant::now();
    while start.elapsed() < work {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over_loopback(options: Options) -> Log {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || serve(&listener, &options).unwrap());
        let log = upload(address, &options).unwrap();
        Log { server_cpu: server.join().unwrap(), ..log }
    }

    const OPTIONS: Options = Options {
        lines: 10,
        budget: Duration::from_secs(60),
        traffic: Traffic::Pairs,
        client_nodelay: true,
        server_nodelay: true,
        pieces: 1,
        work: Duration::ZERO,
    };

    #[test]
    fn the_log_has_every_line_and_the_answers_it_should() {
        let cases = [
            (Traffic::Stream, 1, "the last"),
            (Traffic::Pairs, 10, "all"),
            (Traffic::Mix(1), 5, "every other one"),
            (Traffic::Mix(3), 3, "two groups of four and the last"),
        ];
        for (traffic, answers, which) in cases {
            let log = over_loopback(Options { traffic, ..OPTIONS });
            assert_eq!(log.lines.len(), 10, "{which}");
            assert_eq!(log.lines.iter().filter(|line| line.answered.is_some()).count(), answers, "{which}");
            assert!(log.lines.last().unwrap().answered.is_some(), "{which}");
            assert!(
                log.lines.iter().all(|line| line.answered.is_none_or(|read| read >= line.wrote)),
                "{which}"
            );
        }
    }

    #[test]
    fn an_upload_without_time_left_ends_with_an_answered_line() {
        let log = over_loopback(Options { traffic: Traffic::Stream, budget: Duration::ZERO, ..OPTIONS });
        assert_eq!(log.lines.len(), 1);
        assert!(log.lines[0].answered.is_some());
    }

    #[test]
    fn answers_in_pieces_are_read_whole_and_work_takes_cpu() {
        let work = Duration::from_millis(2);
        let log = over_loopback(Options { pieces: 2, work, ..OPTIONS });
        assert_eq!(log.lines.len(), 10);
        assert!(log.wall >= work * 10, "{:?}", log.wall);
        assert!(log.server_cpu > Duration::ZERO && log.server_cpu <= log.wall * 2, "{:?}", log.server_cpu);
    }
}
