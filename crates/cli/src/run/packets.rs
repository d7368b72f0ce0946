//! The packets beside the calls, where they may be captured.

use std::fs::File;
use std::io::{self, BufWriter};
use std::iter;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tcpwhy_host::interface;
use tcpwhy_host::ring::{Ring, Wanted};
use tcpwhy_wire::container::{Frame, Interface, LinkType, Origin, Writer};
use tempfile::NamedTempFile;

/// Bytes kept of a packet: all headers.
const SNAPLEN: u32 = 128;
/// The ring has room for far more than comes in so long, and to be woken for each packet would take time from programs.
const BATCH: Duration = Duration::from_millis(5);
const LOOPBACK: &str = "lo";

type Output = Writer<BufWriter<File>>;

/// A capture under way, of loopback and of the interface that leads out.
pub(super) struct Packets {
    file: NamedTempFile,
    writer: Arc<Mutex<Output>>,
    ending: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<u64>>>,
}

impl Packets {
    /// Starts to capture. Needs `CAP_NET_RAW`.
    pub(super) fn capture() -> io::Result<Self> {
        let file = NamedTempFile::new()?;
        let mut writer = Writer::new(BufWriter::new(file.reopen()?), &Origin::default())?;
        let mut rings = Vec::new();
        for name in interfaces() {
            let ring = Ring::open(&name, SNAPLEN, Wanted::All)?;
            let link = if ring.is_ethernet() { LinkType::ETHERNET } else { LinkType::RAW };
            let number = writer.interface(&Interface { name: &name, link, snaplen: SNAPLEN })?;
            rings.push((ring, link, number));
        }
        let writer = Arc::new(Mutex::new(writer));
        let ending = Arc::new(AtomicBool::new(false));
        let thread = |(ring, link, number)| {
            let (writer, ending) = (Arc::clone(&writer), Arc::clone(&ending));
            std::thread::spawn(move || keep(ring, link, number, &writer, &ending))
        };
        let threads = rings.into_iter().map(thread).collect();
        Ok(Self { file, writer, ending, threads })
    }

    /// Ends it; `analyze` gets the file, and how many packets found no room.
    pub(super) fn finish<T>(self, analyze: impl FnOnce(&Path, u64) -> io::Result<T>) -> io::Result<T> {
        self.ending.store(true, Ordering::SeqCst);
        let mut dropped = 0;
        for thread in self.threads {
            dropped += thread.join().map_err(|_| io::Error::other("the capture has failed"))??;
        }
        io::Write::flush(locked(&self.writer).get_mut())?;
        analyze(self.file.path(), dropped)
    }
}

fn locked(writer: &Mutex<Output>) -> MutexGuard<'_, Output> {
    // A thread that panicked has left whole blocks behind.
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps what comes until the ring is empty after the end.
fn keep(
    mut ring: Ring,
    link: LinkType,
    interface: u32,
    writer: &Mutex<Output>,
    ending: &AtomicBool,
) -> io::Result<u64> {
    loop {
        let ends = ending.load(Ordering::SeqCst);
        while let Some(packet) = ring.next(Duration::ZERO)? {
            let frame = Frame {
                time: packet.time,
                link,
                original_len: packet.original_len,
                interface,
                data: packet.data,
            };
            locked(writer).frame(&frame, "")?;
        }
        if ends {
            return Ok(ring.statistics()?.dropped);
        }
        std::thread::sleep(BATCH);
    }
}

/// Loopback, and where default routes lead.
fn interfaces() -> impl Iterator<Item = String> {
    let outwards = interface::of_default_routes().into_iter().filter(|name| name != LOOPBACK);
    iter::once(LOOPBACK.to_owned()).chain(outwards)
}
