//! Clients that ask again and again, and time each answer by their own clock.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// What a client's clock told of each exchange so far, in ms.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<Mutex<Vec<f64>>>);

impl Clock {
    fn tell(&self, ms: f64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(ms);
    }

    pub(crate) fn told(&self) -> Vec<f64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for so many more exchanges, and gives their median, in ms.
    pub(crate) fn median_of_next(&self, n: usize) -> f64 {
        let (begun, before) = (Instant::now(), self.told().len());
        while self.told().len() < before + n {
            assert!(begun.elapsed() < PATIENCE, "the client gets no answers");
            std::thread::sleep(Duration::from_millis(5));
        }
        median(&self.told()[before..])
    }
}

pub(crate) fn median(ms: &[f64]) -> f64 {
    let mut sorted = ms.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A client of some kind; ended when dropped.
pub(crate) struct Client {
    pub(crate) clock: Clock,
    ending: Ending,
}

enum Ending {
    Process(Child),
    Thread(Arc<AtomicBool>, Option<JoinHandle<()>>),
}

impl Client {
    /// curl, which fetches the same page over one connection a million times, or until it is ended. `None`: it is not
    /// here.
    pub(crate) fn curl(address: &str, page: &str) -> Option<Self> {
        let url = format!("http://{address}/{page}?[1-1000000]");
        let mut child = Command::new("curl")
            .args(["-s", "-q", "-N", "-o", "/dev/null", "-w", "%{stderr}%{time_total}\n", &url])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let (clock, lines) = (Clock::default(), BufReader::new(child.stderr.take().expect("a pipe")).lines());
        let times = clock.clone();
        std::thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .filter_map(|line| line.parse::<f64>().ok())
                .for_each(|s| times.tell(s * 1e3));
        });
        Some(Self { clock, ending: Ending::Process(child) })
    }

    /// One that asks with 10 bytes, takes 50 and rests for 2 ms.
    pub(crate) fn plain(port: u16) -> Self {
        let (clock, is_over) = (Clock::default(), Arc::new(AtomicBool::new(false)));
        let (times, over) = (clock.clone(), Arc::clone(&is_over));
        let mut server = TcpStream::connect(("127.0.0.1", port)).expect("a server");
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                server.write_all(&[1; 10]).expect("a server");
                server.read_exact(&mut [0; 50]).expect("an answer");
                times.tell(begun.elapsed().as_secs_f64() * 1e3);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Self { clock, ending: Ending::Thread(is_over, Some(thread)) }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        match &mut self.ending {
            Ending::Process(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Ending::Thread(is_over, thread) => {
                is_over.store(true, Ordering::Relaxed);
                // What went wrong there shows in what it did not tell.
                let _ = thread.take().map(JoinHandle::join);
            }
        }
    }
}
