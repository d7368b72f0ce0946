//! Where captured packets go: into the analyser and, if that is wanted, into a file.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use tcpwhy_diagnose::{Analyzer, CaptureInfo};
use tcpwhy_host::ring::{self, Statistics};
use tcpwhy_wire::Packet;
use tcpwhy_wire::calls::{Holder, holders};
use tcpwhy_wire::container::{Frame, Interface};
use tcpwhy_wire::decode::{Tally, Undecoded, decode_onto};

use super::capture::Progress;
use super::kept::{Ends, Kept};
use super::links::{Links, Taken};
use super::names::Names;
use super::open::Output;
use crate::create;

/// Connections kept before the least remarkable half is forgotten. A display clones them all each second, which takes
/// about 1 µs each: with this many, the ring fills by a tenth meanwhile at 500,000 packets/s.
const MOST_CONNECTIONS: usize = 20_000;

/// What is wrong when packets cannot be written.
const UNWRITTEN: &str = "the file cannot be written";

/// Everything that captured packets change.
pub(super) struct Sink {
    /// What the capture is called in the report.
    name: String,
    snaplen: u32,
    pub(super) analyzer: Analyzer,
    batch: Vec<Packet>,
    tally: Tally,
    links: Links,
    writer: Option<Output>,
    /// The latest packets, where somebody may want to save some.
    kept: Option<Kept>,
    /// Frames so far, of every protocol.
    pub(super) frames: u64,
    bytes: u64,
    span: Option<(i64, i64)>,
    /// How often the interface went down.
    pub(super) downs: u64,
    statistics: Statistics,
}

impl Sink {
    /// Where the packets of a capture of that name go, cut to `snaplen` bytes; `keep` says whether the latest are kept, to be
    /// saved.
    pub(super) fn new(name: String, snaplen: u32, writer: Option<Output>, keep: bool) -> Self {
        Self {
            name,
            snaplen,
            analyzer: Analyzer::new(),
            batch: Vec::with_capacity(Analyzer::BATCH),
            tally: Tally::default(),
            links: Links::default(),
            writer,
            kept: keep.then(Kept::new),
            frames: 0,
            bytes: 0,
            span: None,
            downs: 0,
            statistics: Statistics::default(),
        }
    }

    /// Takes a packet off the ring. Fails where the file cannot be written.
    pub(super) fn take(&mut self, packet: &ring::Packet<'_>) -> Result<()> {
        let frame = match self.links.frame(packet) {
            Taken::Frame(frame) => frame,
            Taken::Twin => return Ok(()),
            Taken::Unknown(protocol) => {
                self.count(packet.time, packet.original_len);
                self.tally.add(Undecoded::NotIp(protocol));
                return Ok(());
            }
        };
        self.count(frame.time, frame.original_len);
        if let Some(writer) = &mut self.writer {
            write(writer, &self.links, self.snaplen, &frame).context(UNWRITTEN)?;
        }
        if let Some(kept) = &mut self.kept {
            kept.push(&frame);
        }
        match decode_onto(&frame, self.frames, &mut self.batch) {
            Ok(()) if self.batch.len() == Analyzer::BATCH => self.flush(),
            Ok(()) => {}
            Err(reason) => self.tally.add(reason),
        }
        Ok(())
    }

    fn count(&mut self, time: i64, len: u32) {
        self.frames += 1;
        self.bytes += u64::from(len);
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first, last.max(time)));
    }

    /// Hands gathered packets to the analyser.
    pub(super) fn flush(&mut self) {
        self.analyzer.push(&self.batch);
        self.batch.clear();
        self.analyzer.age_out(MOST_CONNECTIONS);
    }

    /// Notes what the kernel counted, once a second; the file then holds what came so far.
    pub(super) fn each_second(&mut self, statistics: Statistics) -> Result<()> {
        self.statistics = statistics;
        self.writer.as_mut().map_or(Ok(()), |writer| writer.get_mut().flush()).context(UNWRITTEN)
    }

    /// What a display needs.
    pub(super) fn progress(&self) -> Progress {
        Progress { analyzer: self.analyzer.clone(), info: self.info(), statistics: self.statistics }
    }

    /// Writes what is kept of a connection's packets; how many.
    pub(super) fn save(&self, connection: &Ends, path: &Path) -> io::Result<u64> {
        let Some(kept) = &self.kept else { return Ok(0) };
        let file = OpenOptions::new().write(true).create_new(true).mode(create::CAPTURE).open(path)?;
        kept.save(connection, &self.links.described, BufWriter::new(file))
    }

    /// What the report says of the capture so far.
    fn info(&self) -> CaptureInfo {
        let mut notes = Vec::new();
        let Statistics { packets, dropped } = self.statistics;
        if dropped > 0 {
            notes.push(format!(
                "The kernel dropped {dropped} of {packets} packets: tcpwhy was too slow for them. Try a filter. \
                 What needs every packet, such as finding losses, is unsure."
            ));
        }
        match self.downs {
            0 => {}
            1 => notes.push("The interface went down while it was listened to.".to_owned()),
            times => notes.push(format!("The interface went down {times} times while it was listened to.")),
        }
        notes.extend(self.tally.notes());
        CaptureInfo {
            name: self.name.clone(),
            kind: "live".to_owned(),
            frames: self.frames,
            bytes: self.bytes,
            span: self.span,
            has_date: true,
            notes,
            ..CaptureInfo::default()
        }
    }

    /// Ends the file, and hands over what was gathered and the programs at the ends of its connections, whatever `result` the
    /// capture had and the file's end has.
    pub(super) fn finish(
        mut self,
        statistics: Statistics,
        names: &Names,
        result: Result<()>,
    ) -> (Progress, Vec<Holder>, Result<()>) {
        self.flush();
        self.statistics = statistics;
        let holders = names.holders(&self.analyzer.clone().finish(self.info()));
        // A file that could not be written is not tried again.
        let writer = self.writer.take().filter(|_| result.is_ok());
        let result = result
            .and_then(|()| writer.map_or(Ok(()), |writer| self.end(writer, &holders).context(UNWRITTEN)));
        let info = self.info();
        (Progress { analyzer: self.analyzer, info, statistics }, holders, result)
    }

    fn end(&self, mut writer: Output, programs: &[Holder]) -> io::Result<()> {
        let end = self.span.map_or(0, |(_, last)| last);
        // Drops are the socket's, not an interface's; a file has no other place for them.
        if self.statistics.dropped > 0 && !self.links.described.is_empty() {
            writer.dropped(0, end, self.statistics.dropped)?;
        }
        holders(programs).iter().try_for_each(|body| writer.calls(body))?;
        match writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all() {
            // Pipes and their like cannot be synchronised, which is no loss.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synchronised => synchronised,
        }
    }
}

/// Writes a frame, and before it the description of interfaces that are new.
fn write(writer: &mut Output, links: &Links, snaplen: u32, frame: &Frame<'_>) -> io::Result<()> {
    while writer.interfaces() <= frame.interface as usize {
        let described = &links.described[writer.interfaces()];
        writer.interface(&Interface { name: &described.name, link: described.link, snaplen })?;
    }
    writer.frame(frame, "")
}

#[cfg(test)]
mod tests {
    use tcpwhy_diagnose::report::{Line, Source};
    use tcpwhy_host::ring::Passage;

    use super::*;

    const MS: i64 = 1_000_000;

    /// A UDP datagram over bare IPv4 of the flow of that number, at that time (ns).
    fn take(sink: &mut Sink, flow: u32, time: i64) {
        let mut data = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1];
        data.extend((0x0a01_0000 + flow).to_be_bytes());
        data.extend([0x30, 0x39, 0, 53, 0, 8, 0, 0]);
        let packet = ring::Packet {
            time,
            passage: Passage::Left,
            original_len: 28,
            interface: 1,
            hardware: 0xfffe,
            protocol: 0x0800,
            link_len: 0,
            data: &data,
        };
        sink.take(&packet).expect("no file");
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_stays_in_the_sums() {
        const FLOWS: u32 = 50_000;
        let mut sink = Sink::new("live on test".to_owned(), 256, None, true);
        for flow in 0..FLOWS {
            take(&mut sink, flow, i64::from(flow) * MS);
            take(&mut sink, flow, i64::from(flow) * MS + MS / 2);
            assert!(sink.analyzer.len() <= MOST_CONNECTIONS + Analyzer::BATCH, "{}", sink.analyzer.len());
        }
        let (progress, _, result) = sink.finish(Statistics::default(), &Names::default(), Ok(()));
        result.expect("no file");
        let (kept, forgotten) = (progress.analyzer.len() as u64, progress.analyzer.forgotten());
        assert!(forgotten > 0 && kept + forgotten == u64::from(FLOWS), "{kept} + {forgotten}");
        let diagnosis = progress.diagnosis();
        let capture = diagnosis.capture();
        assert_eq!(capture.packets, 2 * u64::from(FLOWS));
        // Half a ms of each, in which its program was silent.
        assert!((capture.ledger_ms.total() - f64::from(FLOWS) / 2.0).abs() < 1e-3, "{:?}", capture.ledger_ms);
        assert!((capture.ledger_ms.get(Line::ClientApp) - f64::from(FLOWS) / 2.0).abs() < 1e-3);
        let said = format!("{forgotten} connections were forgotten");
        assert!(capture.notes.iter().any(|note| note.starts_with(&said)), "{:?}", capture.notes);
        // The latest are there, since none lost anything.
        let last = diagnosis.connections().last().expect("a connection");
        assert_eq!(last.server, format!("10.1.{}.{}:53", (FLOWS - 1) >> 8, (FLOWS - 1) & 0xff));
    }

    #[test]
    fn what_makes_the_report_unsure_is_in_its_notes() {
        let mut sink = Sink::new("live on test".to_owned(), 256, None, false);
        take(&mut sink, 1, 0);
        sink.downs = 2;
        let statistics = Statistics { packets: 100, dropped: 99 };
        let (progress, ..) = sink.finish(statistics, &Names::default(), Ok(()));
        let notes = progress.diagnosis().capture().notes;
        assert!(
            notes.iter().any(|note| note.starts_with("The kernel dropped 99 of 100 packets")),
            "{notes:?}"
        );
        assert!(notes.iter().any(|note| note.starts_with("The interface went down 2 times")), "{notes:?}");
    }
}
