//! The capture of a loopback interface.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tcpwhy_host::ring::{Packet, Ring, Wanted};
use tcpwhy_wire::container::{Frame, Interface, LinkType, Origin, Writer};

use super::{Seat, join};
use crate::capture::{Capture, Vantage};

const LOOPBACK: &str = "lo";
/// Bytes of a capture in memory: at the lab's usual snaplen more than a million packets.
const MOST: usize = 256 << 20;
/// The ring is emptied so often. To be woken for each packet would take time from the programs; meanwhile the ring
/// has room for ten times what this machine can send.
const BATCH: Duration = Duration::from_millis(5);
/// The longest wait for the markers, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes before the network header; the loopback interface has Ethernet's.
const ETHERNET: usize = 14;
/// Of an IPv4 packet without options: the protocol, the UDP source port and the first byte of UDP's data.
const PROTOCOL: usize = ETHERNET + 9;
const SOURCE_PORT: usize = ETHERNET + 20;
const PAYLOAD: usize = ETHERNET + 20 + 8;
const UDP: u8 = 17;
/// Bytes that a marker needs, its four of data too.
const MARKER: u32 = PAYLOAD as u32 + 4;

/// A capture under way, by a thread on the host.
pub(crate) struct Recorder {
    seat: Seat,
    /// Source of the markers. No program of the run can have its port.
    marker: UdpSocket,
    ending: Sender<BTreeSet<u32>>,
    thread: JoinHandle<Result<Recorded>>,
}

/// A capture, and whether it is whole.
pub(crate) struct Recorded {
    pub(crate) capture: Capture,
    /// Packets that found no room in the ring.
    pub(crate) dropped: u64,
}

impl Recorder {
    /// Starts to capture; what is sent from now on is seen. Keeps `snaplen` bytes from the IP header on.
    pub(crate) fn start(seat: &Seat, snaplen: u32) -> Result<Self> {
        let marker = join(seat.spawn(|| Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?)))?;
        let port = marker.local_addr()?.port();
        let (ending, ends) = channel();
        let (ready, started) = channel();
        let thread = seat.spawn(move || {
            let snaplen = snaplen.saturating_add(ETHERNET as u32);
            let ring = Ring::open(LOOPBACK, snaplen.max(MARKER), Wanted::All);
            let ring = ring.context("cannot capture on the loopback interface")?;
            let tape = Tape::new(snaplen)?;
            // It waits for it.
            let _ = ready.send(());
            record(ring, tape, port, &ends)
        });
        if started.recv().is_err() {
            join(thread)?;
            bail!("the capture ended before it began");
        }
        Ok(Self { seat: seat.clone(), marker, ending, thread })
    }

    /// The capture with every packet that was sent before this call.
    ///
    /// A packet on the loopback interface passes the capture on the processor that sent it, in the order of
    /// sending there. So a marker is sent on each processor, and the capture ends when all of them were seen.
    pub(crate) fn finish(self) -> Result<Recorded> {
        let Self { seat, marker, ending, thread } = self;
        join(seat.spawn(move || {
            let processors = allowed()?;
            // It has ended where nobody receives, and says why.
            let _ = ending.send(processors.clone());
            let to = marker.local_addr()?;
            for processor in processors {
                let mut here = CpuSet::new();
                here.set(processor as usize);
                sched_setaffinity(None, &here).context("cannot choose a processor")?;
                marker.send_to(&processor.to_be_bytes(), to).context("cannot send a marker")?;
            }
            Ok(())
        }))?;
        join(thread)
    }
}

/// The processors that this process may use, and so its programs.
fn allowed() -> Result<BTreeSet<u32>> {
    let set = sched_getaffinity(None).context("cannot ask for the processors")?;
    Ok((0..CpuSet::MAX_CPU as u32).filter(|&processor| set.is_set(processor as usize)).collect())
}

/// Reads the ring until the markers of all processors were seen.
fn record(mut ring: Ring, mut tape: Tape, port: u16, ends: &Receiver<BTreeSet<u32>>) -> Result<Recorded> {
    let mut seen = BTreeSet::new();
    let mut awaited: Option<(BTreeSet<u32>, Instant)> = None;
    loop {
        while let Some(packet) = ring.next(Duration::ZERO)? {
            match marked(packet.data, port) {
                Some(processor) => drop(seen.insert(processor)),
                None => tape.write(&packet)?,
            }
        }
        match &awaited {
            Some((all, _)) if seen.is_superset(all) => break,
            Some((_, since)) => {
                ensure!(since.elapsed() < PATIENCE, "the capture did not see the end of the run");
                ring.wait(BATCH)?;
            }
            None => match ends.recv_timeout(BATCH) {
                Ok(all) => awaited = Some((all, Instant::now())),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("the run was given up"),
            },
        }
    }
    let dropped = ring.statistics()?.dropped;
    Ok(Recorded { capture: tape.finish(dropped)?, dropped })
}

/// The processor of a marker.
fn marked(frame: &[u8], port: u16) -> Option<u32> {
    let is_udp = frame.get(PROTOCOL) == Some(&UDP) && frame.get(ETHERNET) == Some(&0x45);
    let from_marker = frame.get(SOURCE_PORT..SOURCE_PORT + 2) == Some(port.to_be_bytes().as_slice());
    let processor = frame.get(PAYLOAD..)?.first_chunk()?;
    (is_udp && from_marker).then(|| u32::from_be_bytes(*processor))
}

/// The file, in memory.
struct Tape {
    writer: Writer<Vec<u8>>,
    latest: i64,
}

impl Tape {
    fn new(snaplen: u32) -> Result<Self> {
        let origin = Origin { application: "tcpwhy", ..Origin::default() };
        let mut writer = Writer::new(Vec::new(), &origin)?;
        writer.interface(&Interface { name: LOOPBACK, link: LinkType::ETHERNET, snaplen })?;
        Ok(Self { writer, latest: 0 })
    }

    fn write(&mut self, packet: &Packet<'_>) -> Result<()> {
        ensure!(
            self.writer.get_mut().len() < MOST,
            "the capture outgrows {} MiB: make the run shorter",
            MOST >> 20
        );
        self.latest = self.latest.max(packet.time);
        let frame = Frame {
            time: packet.time,
            interface: 0,
            link: LinkType::ETHERNET,
            original_len: packet.original_len,
            data: packet.data,
        };
        Ok(self.writer.frame(&frame, "")?)
    }

    fn finish(mut self, dropped: u64) -> Result<Capture> {
        self.writer.dropped(0, self.latest, dropped)?;
        Ok(Capture { vantage: Vantage::Both, bytes: self.writer.finish()? })
    }
}
