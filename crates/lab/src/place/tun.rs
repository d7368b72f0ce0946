//! TUN devices: the host's packets are read from a file, and written to it.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{Context, Result};
use tun_rs::{
    DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_GSO_UDP_L4, VIRTIO_NET_HDR_LEN, VirtioNetHdr, checksum,
    gso_split,
};

use super::device::{Device, Pieces, Received};

/// Packets the device holds until the emulator reads them. The kernel's 500 would lose packets of a large
/// window: TUN orphans packets, so that TCP's limit for unsent packets (TSQ) does not hold its sender back.
const QUEUE: u32 = 20_000;
/// Column of /proc/net/dev, after the name: packets that the host sent and the device dropped.
const DROPPED: usize = 11;
/// `VIRTIO_NET_HDR_GSO_NONE`: one packet, whatever its size.
const ONE_PACKET: u8 = 0;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is left to the device.
const NEEDS_CHECKSUM: u8 = 1;
/// A virtio header and the largest IP packet.
const LARGEST: usize = VIRTIO_NET_HDR_LEN + 65_536;

/// A TUN device in the namespace where it was made.
pub(crate) struct Tun {
    device: SyncDevice,
    /// /proc/net/dev of its namespace.
    counters: File,
    name: String,
    /// Whether each packet comes with a virtio header, and may be larger than the MTU.
    offload: bool,
    buffer: Vec<u8>,
    pieces: Vec<Vec<u8>>,
    lengths: Vec<usize>,
}

impl Tun {
    /// Makes a device in the calling thread's namespace and gives it an address in a net of 24 bits.
    pub(crate) fn open(address: Ipv4Addr, mtu: u32, offload: bool) -> Result<Self> {
        let mtu = u16::try_from(mtu).context("the MTU of a link is at most 65,535 bytes")?;
        let device = DeviceBuilder::new()
            .with(|options| {
                options.offload(offload).tx_queue_len(QUEUE);
            })
            .mtu(mtu)
            .ipv4(address, 24, None)
            .build_sync()?;
        device.set_nonblocking(true)?;
        let counters = File::open("/proc/thread-self/net/dev").context("cannot open /proc")?;
        let name = device.name()?;
        let buffer = vec![0; LARGEST];
        Ok(Self { device, counters, name, offload, buffer, pieces: Vec::new(), lengths: Vec::new() })
    }

    /// Completes what the host left to its device: the checksum, or cutting at the MTU.
    fn finish(&mut self, length: usize) -> io::Result<Received<'_>> {
        let (header, packet) = self.buffer[..length]
            .split_at_mut_checked(VIRTIO_NET_HDR_LEN)
            .ok_or(io::ErrorKind::InvalidData)?;
        let header = VirtioNetHdr::decode(header)?;
        if header.gso_type == ONE_PACKET {
            if header.flags & NEEDS_CHECKSUM != 0 {
                sum(packet, header.csum_start.into(), header.csum_offset.into());
            }
            return Ok(Received { whole: packet, pieces: None });
        }
        let count = cut(header, packet, &mut self.pieces, &mut self.lengths)?;
        let pieces = Pieces { buffers: &self.pieces[..count], lengths: &self.lengths[..count] };
        Ok(Received { whole: packet, pieces: Some(pieces) })
    }
}

/// Completes a checksum of everything from `start` on: at `offset` from there is the pseudo-header's part.
fn sum(packet: &mut [u8], start: usize, offset: usize) {
    let Some(covered) = packet.get_mut(start..) else { return };
    let Some(&[high, low]) = covered.get(offset..offset + 2) else { return };
    covered[offset..offset + 2].fill(0);
    let sum = !checksum(covered, u16::from_be_bytes([high, low]).into());
    covered[offset..offset + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Cuts a large segment into packets as a network card would; returns how many.
fn cut(
    mut header: VirtioNetHdr,
    packet: &mut [u8],
    pieces: &mut Vec<Vec<u8>>,
    lengths: &mut Vec<usize>,
) -> io::Result<usize> {
    let version = packet.first().map_or(0, |byte| byte >> 4);
    // The header's length as the kernel states it may cover the whole first packet (forwarded segments).
    let transport = usize::from(header.csum_start);
    let offset = packet.get(transport + 12).ok_or(io::ErrorKind::InvalidData)?;
    let is_udp = header.gso_type == VIRTIO_NET_HDR_GSO_UDP_L4;
    header.hdr_len = header.csum_start + if is_udp { 8 } else { u16::from(offset >> 4) * 4 };
    let data = packet.len().saturating_sub(usize::from(header.hdr_len));
    let count = data.div_ceil(usize::from(header.gso_size.max(1)));
    let size = usize::from(header.hdr_len) + usize::from(header.gso_size);
    pieces.resize_with(count.max(pieces.len()), Vec::new);
    lengths.resize(count.max(lengths.len()), 0);
    for piece in pieces.iter_mut().filter(|piece| piece.len() < size) {
        piece.resize(size, 0);
    }
    gso_split(packet, header, pieces, lengths, 0, version == 6)
}

impl Device for Tun {
    fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
        let length = match self.device.recv(&mut self.buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        if self.offload {
            return self.finish(length).map(Some);
        }
        Ok(Some(Received { whole: &self.buffer[..length], pieces: None }))
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        if self.offload {
            // A header of zeros: one packet with its checksum in place.
            let header = [0; VIRTIO_NET_HDR_LEN];
            self.device.send_vectored(&[io::IoSlice::new(&header), io::IoSlice::new(packet)])?;
        } else {
            self.device.send(packet)?;
        }
        Ok(())
    }

    fn lost(&mut self) -> io::Result<u64> {
        let mut table = String::new();
        self.counters.rewind()?;
        self.counters.read_to_string(&mut table)?;
        let mut rows =
            table.lines().filter_map(|line| line.trim_start().strip_prefix(&self.name)?.strip_prefix(':'));
        let dropped = rows.next().and_then(|row| row.split_whitespace().nth(DROPPED)?.parse().ok());
        dropped.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}
