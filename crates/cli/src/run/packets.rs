//! The packets beside the calls, where they may be captured.

use std::fs::File;
use std::io::{self, BufWriter, Seek};
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tcpwhy_host::interface;
use tcpwhy_host::ring::{Packet, Ring, Wanted};
use tcpwhy_wire::container::{Frame, Interface, LinkType, Origin, Writer};

use crate::calls::save::Track;

/// Bytes kept of a packet: all headers.
const SNAPLEN: u32 = 128;
/// The ring has room for far more than comes in so long, and to be woken for each packet would take time from programs.
const BATCH: Duration = Duration::from_millis(5);
const LOOPBACK: &str = "lo";

/// A capture under way, of loopback and of the interface that leads out.
pub(super) struct Packets {
    ending: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<Track>>>,
}

impl Packets {
    /// Starts to capture. Needs `CAP_NET_RAW`.
    pub(super) fn capture() -> io::Result<Self> {
        let open = |name: String| Ok((Ring::open(&name, SNAPLEN, Wanted::All)?, name, tempfile::tempfile()?));
        let rings = interfaces().map(open).collect::<io::Result<Vec<_>>>()?;
        let ending = Arc::new(AtomicBool::new(false));
        let thread = |(ring, name, file)| {
            let ending = Arc::clone(&ending);
            std::thread::spawn(move || keep(ring, name, file, &ending))
        };
        let threads = rings.into_iter().map(thread).collect();
        Ok(Self { ending, threads })
    }

    /// Ends it.
    pub(super) fn finish(self) -> io::Result<Vec<Track>> {
        self.ending.store(true, Ordering::SeqCst);
        let joined = |thread: JoinHandle<io::Result<Track>>| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the capture has failed")))
        };
        self.threads.into_iter().map(joined).collect()
    }
}

/// Keeps what comes until the ring is empty after the end.
fn keep(mut ring: Ring, name: String, file: File, ending: &AtomicBool) -> io::Result<Track> {
    let link = if ring.is_ethernet() { LinkType::ETHERNET } else { LinkType::RAW };
    let mut writer = Writer::new(BufWriter::new(file), &Origin::default())?;
    let interface = writer.interface(&Interface { name: &name, link, snaplen: SNAPLEN })?;
    loop {
        let ends = ending.load(Ordering::SeqCst);
        while let Some(packet) = ring.next(Duration::ZERO)? {
            let Packet { time, original_len, data, .. } = packet;
            writer.frame(&Frame { time, link, original_len, interface, data }, "")?;
        }
        if ends {
            break;
        }
        std::thread::sleep(BATCH);
    }
    let mut file = writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(Track { file, name, link, snaplen: SNAPLEN, dropped: ring.statistics()?.dropped })
}

/// Loopback, and where default routes lead.
fn interfaces() -> impl Iterator<Item = String> {
    let outwards = interface::of_default_routes().into_iter().filter(|name| name != LOOPBACK);
    iter::once(LOOPBACK.to_owned()).chain(outwards)
}
