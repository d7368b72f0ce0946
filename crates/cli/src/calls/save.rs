//! A recording and its packets into one file, both in the order of time: docs/recording.md.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};

use tcpwhy_wire::calls::{Calls, Recording, head};
use tcpwhy_wire::container::{self, Frame, Interface, LinkType, Opened, Origin, Reader, Writer};
use tcpwhy_wire::decode::decode;
use tcpwhy_wire::{Packet, Socket};

/// The packets of one interface, in a pcapng file of their own.
#[derive(Debug)]
pub(crate) struct Track {
    pub(crate) file: File,
    /// The interface's name.
    pub(crate) name: String,
    pub(crate) link: LinkType,
    pub(crate) snaplen: u32,
    /// Packets that found no room.
    pub(crate) dropped: u64,
}

/// Said in a recording instead.
const NO_PACKETS: &str =
    "None of its packets passed where they were captured: loopback, and the default route's interface.";

/// Writes the recording, and of the packets those of its sockets' connections.
pub(crate) fn save(recording: &mut Recording, tracks: Vec<Track>, out: impl Write) -> io::Result<()> {
    let application = concat!("tcpwhy ", env!("CARGO_PKG_VERSION"));
    let mut writer = Writer::new(out, &Origin { application, ..Origin::default() })?;
    let ends = ends(recording);
    let mut playing = Vec::new();
    for track in tracks {
        let Track { name, link, snaplen, .. } = &track;
        let interface = writer.interface(&Interface { name, link: *link, snaplen: *snaplen })?;
        playing.push(Playing::of(track, interface, &ends)?);
    }
    if !playing.is_empty() && earliest(&playing).is_none() {
        NO_PACKETS.clone_into(&mut recording.about.no_packets);
    }
    head(recording).iter().try_for_each(|body| writer.calls(body))?;
    let mut calls = Calls::new(&recording.calls);
    let mut last = 0;
    while let Some((at, time)) = earliest(&playing) {
        write_calls(&mut calls, time, &mut writer)?;
        playing[at].write(&mut writer)?;
        playing[at].advance(&ends);
        last = time;
    }
    write_calls(&mut calls, i64::MAX, &mut writer)?;
    for track in playing.iter().filter(|track| track.dropped > 0) {
        writer.dropped(track.interface, last, track.dropped)?;
    }
    writer.finish().map(drop)
}

fn write_calls(calls: &mut Calls<'_>, time: i64, writer: &mut Writer<impl Write>) -> io::Result<()> {
    while let Some(body) = calls.by(time) {
        writer.calls(&body)?;
    }
    Ok(())
}

/// Source and destination of the packets that belong to a recording.
type Ends = HashSet<(Socket, Socket)>;

fn ends(recording: &Recording) -> Ends {
    let socket =
        |address: std::net::SocketAddr| Socket { address: address.ip().into(), port: address.port() };
    let known = recording.sockets.iter().filter_map(|known| known.local.zip(known.peer));
    known.map(|(local, peer)| (socket(local), socket(peer))).flat_map(|(a, b)| [(a, b), (b, a)]).collect()
}

/// A track that is being read, and its next packet.
struct Playing {
    reader: Option<Reader<File>>,
    interface: u32,
    link: LinkType,
    dropped: u64,
    next: Option<i64>,
    original_len: u32,
    data: Vec<u8>,
}

impl Playing {
    fn of(track: Track, interface: u32, ends: &Ends) -> io::Result<Self> {
        let Track { file, link, dropped, .. } = track;
        let reader = match container::open(file) {
            Ok(Opened::Capture(reader)) => Some(reader),
            Ok(Opened::Other(_)) => None,
            Err(error) => return Err(io::Error::other(error)),
        };
        let mut playing =
            Self { reader, interface, link, dropped, next: None, original_len: 0, data: Vec::new() };
        playing.advance(ends);
        Ok(playing)
    }

    /// Goes to the next packet of one of the connections.
    fn advance(&mut self, ends: &Ends) {
        self.next = None;
        while let Some(frame) = self.reader.as_mut().and_then(Reader::next_frame) {
            if let Some(headers) = decode(&frame, 1).ok().and_then(|packet| headers(&packet, ends)) {
                (self.next, self.original_len) = (Some(frame.time), frame.original_len);
                self.data.clear();
                self.data.extend_from_slice(&frame.data[..headers.min(frame.data.len())]);
                return;
            }
        }
    }

    fn write(&self, writer: &mut Writer<impl Write>) -> io::Result<()> {
        let Self { interface, link, next, original_len, data, .. } = self;
        let frame = Frame {
            time: next.unwrap_or(0),
            link: *link,
            original_len: *original_len,
            interface: *interface,
            data,
        };
        writer.frame(&frame, "")
    }
}

/// How long the headers of a packet are, if it belongs to one of the connections. What people say to each other is not saved.
fn headers(packet: &Packet, ends: &Ends) -> Option<usize> {
    let tcp = packet.tcp().filter(|_| ends.contains(&(packet.source, packet.destination)))?;
    Some(packet.frame_len.saturating_sub(tcp.payload_len) as usize)
}

fn earliest(playing: &[Playing]) -> Option<(usize, i64)> {
    let next = playing.iter().enumerate().filter_map(|(at, track)| Some((at, track.next?)));
    next.min_by_key(|(_, time)| *time)
}
