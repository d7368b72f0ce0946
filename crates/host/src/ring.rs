//! Packets off an interface through a ring that the kernel fills (`PACKET_RX_RING`), and frames back onto it.
//!
//! The ring is of version `TPACKET_V2`: a packet can be read as soon as its slot is filled. V3 packs packets of
//! different sizes closer, but hands them over in blocks, and a block of few packets a millisecond late at best:
//! too late for a link that is emulated through the ring. Slots take no more than the snapshot length needs, so
//! little is lost by their fixed size.
//!
//! The kernel and the reader share the ring's memory. Each slot begins with a status word that says whose the
//! slot is; the rest of the slot is only touched by its owner.

use std::fmt;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, netdevice, sockopt};

mod socket;

pub use socket::switch_offload_off;
use socket::{attach, bind, get_statistics, set_option};

use crate::filter::Instruction;

/// Bytes of a block: slots do not cross its border. A power of two of pages, and room for 15 of the largest
/// packets (64 KiB on loopback).
const BLOCK: usize = 1 << 20;

/// Bytes of a ring: with slots for headers only, more than 100,000 packets, which is some tenths of a second of
/// the fastest loopback traffic. Machines that share their cores stall for tens of ms.
const MEMORY: usize = 32 << 20;

/// Bytes before a packet in its slot: the header and the sender's address, then the link-layer header at the
/// end of a gap that makes the network header's address even (`tpacket_rcv` in `net/packet/af_packet.c`). The gap
/// takes 16 bytes, or the link-layer header where that is longer.
const BEFORE_PACKET: usize = libc::TPACKET2_HDRLEN + 2 * libc::TPACKET_ALIGNMENT;

/// As socket options have it.
const TRUE: libc::c_int = 1;

/// The largest snapshot length: above the 64 KiB of the largest packet and its link-layer header.
const LARGEST: u32 = 1 << 17;

/// Which packets of the interface are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Those that arrive and those that leave. On loopback, where each packet does both, only its arrival.
    All,
    /// Those that arrive.
    Arriving,
}

/// Which way a packet went past the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It arrived here.
    Arrived,
    /// It left from here.
    Left,
}

/// What a ring takes, and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The interface's name; `None` takes the packets of all interfaces.
    pub interface: Option<&'a str>,
    /// Bytes kept of each packet.
    pub snaplen: u32,
    /// Which way packets go that are wanted.
    pub wanted: Wanted,
    /// Which packets are wanted, as a program for the kernel; empty takes all.
    pub filter: &'a [Instruction],
    /// Whether the interface hands over packets for other hosts, too. Ignored where all interfaces are meant.
    pub promiscuous: bool,
}

/// A packet in the ring.
#[derive(Clone, Copy)]
pub struct Packet<'a> {
    /// When the kernel saw it, in ns since the epoch. It goes back by some µs now and then, where the packets
    /// came by different processors.
    pub time: i64,
    /// Which way it went.
    pub passage: Passage,
    /// Bytes on the interface, with the link-layer header.
    pub original_len: u32,
    /// The interface's index.
    pub interface: u32,
    /// The interface's kind, `ARPHRD_…`.
    pub hardware: u16,
    /// The `EtherType` of what is behind the link-layer header.
    pub protocol: u16,
    /// Bytes of the link-layer header.
    pub link_len: u16,
    /// Its first bytes, from the link-layer header on. A VLAN tag that the hardware took off is not among them.
    pub data: &'a [u8],
}

impl fmt::Debug for Packet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, passage, original_len, data, .. } = self;
        write!(f, "{time} ns, {passage:?}, {} of {original_len} bytes", data.len())
    }
}

/// What the kernel counted since the ring was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets in the ring, and those dropped.
    pub packets: u64,
    /// Packets that found no free slot.
    pub dropped: u64,
}

/// A packet socket bound to one interface, with its receive ring.
#[derive(Debug)]
pub struct Ring {
    /// Unmapped before the socket is closed.
    memory: Memory,
    socket: OwnedFd,
    hardware: u16,
    snaplen: usize,
    /// Bytes of a slot.
    slot: usize,
    slots: usize,
    /// The slot to be read next, or that [`Ring::next`] returned last.
    at: usize,
    /// Whether the slot at `at` is lent to the caller.
    lent: bool,
    statistics: Statistics,
}

impl Ring {
    /// Opens a ring on the interface of this name in the calling thread's network namespace, keeping `snaplen`
    /// bytes of each packet. Needs `CAP_NET_RAW` in that namespace.
    pub fn open(interface: &str, snaplen: u32, wanted: Wanted) -> io::Result<Self> {
        Self::open_with(&Settings {
            interface: Some(interface),
            snaplen,
            wanted,
            filter: &[],
            promiscuous: false,
        })
    }

    /// Opens a ring in the calling thread's network namespace. Needs `CAP_NET_RAW` there. An interface that is not there
    /// is `ENODEV`.
    pub fn open_with(settings: &Settings<'_>) -> io::Result<Self> {
        let snaplen = settings.snaplen.min(LARGEST) as usize;
        let slot = (BEFORE_PACKET + snaplen).next_multiple_of(libc::TPACKET_ALIGNMENT);
        let slots = BLOCK / slot * (MEMORY / BLOCK);
        // Protocol 0: nothing arrives before the ring is there and the socket is bound.
        let socket =
            rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let index = match settings.interface {
            Some(name) => netdevice::name_to_index(&socket, name)?,
            None => 0,
        };
        set_option(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
        let request = libc::tpacket_req {
            tp_block_size: count(BLOCK)?,
            tp_block_nr: count(MEMORY / BLOCK)?,
            tp_frame_size: count(slot)?,
            tp_frame_nr: count(slots)?,
        };
        set_option(&socket, libc::PACKET_RX_RING, &request)?;
        let memory = Memory::map(&socket)?;
        if !settings.filter.is_empty() {
            attach(&socket, settings.filter)?;
        }
        let hardware = bind(&socket, index, 0)?;
        if settings.wanted == Wanted::Arriving || index != 0 && hardware == libc::ARPHRD_LOOPBACK {
            set_option(&socket, libc::PACKET_IGNORE_OUTGOING, &TRUE)?;
        }
        if settings.promiscuous && index != 0 {
            let membership = libc::packet_mreq {
                mr_ifindex: index.try_into().map_err(|_| io::ErrorKind::InvalidInput)?,
                mr_type: libc::PACKET_MR_PROMISC as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            };
            set_option(&socket, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        }
        bind(&socket, index, libc::ETH_P_ALL as u16)?;
        let statistics = Statistics::default();
        Ok(Self { memory, socket, hardware, snaplen, slot, slots, at: 0, lent: false, statistics })
    }

    /// The interface's kind, `ARPHRD_…` of `<net/if_arp.h>`: 1 is Ethernet, 772 is loopback, whose packets have
    /// an Ethernet header too. Means nothing for a ring on all interfaces, whose packets tell it.
    pub fn hardware(&self) -> u16 {
        self.hardware
    }

    /// Packets that it holds.
    pub fn capacity(&self) -> usize {
        self.slots
    }

    /// Whether packets begin with an Ethernet header.
    pub fn is_ethernet(&self) -> bool {
        matches!(self.hardware, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK)
    }

    /// The next packet in order of arrival; waits for it, but no longer than `timeout`. A zero `timeout` makes no
    /// system call. Where the interface goes down, that is an error, once.
    pub fn next(&mut self, timeout: Duration) -> io::Result<Option<Packet<'_>>> {
        if self.lent {
            self.lent = false;
            self.status(self.at).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.at = (self.at + 1) % self.slots;
        }
        if !self.wait(timeout)? {
            return Ok(None);
        }
        self.lent = true;
        Ok(Some(self.packet()))
    }

    /// Waits until there is a packet to be read, but no longer than `timeout`; whether there is. To be called when
    /// [`Ring::next`] returned none.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        if self.is_filled() || timeout.is_zero() {
            return Ok(self.is_filled());
        }
        let start = Instant::now();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
            match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if self.is_filled() {
                return Ok(true);
            }
            sockopt::socket_error(&self.socket)??;
            if start.elapsed() >= timeout {
                return Ok(false);
            }
        }
    }

    /// Sends a frame, which begins with its link-layer header. It is not seen in this ring.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.socket, frame, SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// What the kernel counted so far.
    pub fn statistics(&mut self) -> io::Result<Statistics> {
        // The kernel's counters start again at each look.
        let new: libc::tpacket_stats = get_statistics(&self.socket)?;
        self.statistics.packets += u64::from(new.tp_packets);
        self.statistics.dropped += u64::from(new.tp_drops);
        Ok(self.statistics)
    }

    /// Whether the slot at `at` is the reader's.
    fn is_filled(&self) -> bool {
        // Acquire: what the kernel wrote before it set the status is seen after it was read.
        self.status(self.at).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Where the slot begins in the memory: slots do not cross the border of a block.
    fn offset(&self, slot: usize) -> usize {
        let in_block = BLOCK / self.slot;
        slot / in_block * BLOCK + slot % in_block * self.slot
    }

    fn status(&self, slot: usize) -> &AtomicU32 {
        self.memory.word(self.offset(slot))
    }

    /// The packet in the slot at `at`, which is lent.
    fn packet(&self) -> Packet<'_> {
        let slot = self.memory.lent(self.offset(self.at), self.slot);
        let header = Header::of(slot);
        // Bounded by the slot, whatever the header says.
        let from = usize::from(header.mac).min(slot.len());
        let kept = (header.kept as usize).min(self.snaplen).min(slot.len() - from);
        Packet {
            time: i64::from(header.sec) * 1_000_000_000 + i64::from(header.nsec),
            passage: if header.left { Passage::Left } else { Passage::Arrived },
            original_len: header.len,
            interface: header.interface,
            hardware: header.hardware,
            protocol: header.protocol,
            link_len: header.net.saturating_sub(header.mac),
            data: &slot[from..from + kept],
        }
    }
}

impl AsFd for Ring {
    /// Readable when there is a packet, for a `poll` of several things.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The fields of a `tpacket2_hdr`, and of the address behind it, that are needed.
struct Header {
    len: u32,
    kept: u32,
    mac: u16,
    net: u16,
    sec: u32,
    nsec: u32,
    left: bool,
    interface: u32,
    hardware: u16,
    protocol: u16,
}

impl Header {
    /// Reads field by field, in the host's byte order; the offsets are those of `struct tpacket2_hdr`. The slot
    /// is longer than [`BEFORE_PACKET`].
    fn of(slot: &[u8]) -> Self {
        let word = |at: usize| u32::from_ne_bytes([slot[at], slot[at + 1], slot[at + 2], slot[at + 3]]);
        // `struct sockaddr_ll` follows the header.
        let address = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
        let half = |at: usize| u16::from_ne_bytes([slot[at], slot[at + 1]]);
        let kind = slot[address + offset_of!(libc::sockaddr_ll, sll_pkttype)];
        Self {
            len: word(4),
            kept: word(8),
            mac: half(12),
            net: half(14),
            sec: word(16),
            nsec: word(20),
            left: kind == libc::PACKET_OUTGOING,
            interface: word(address + offset_of!(libc::sockaddr_ll, sll_ifindex)),
            hardware: half(address + offset_of!(libc::sockaddr_ll, sll_hatype)),
            protocol: u16::from_be(half(address + offset_of!(libc::sockaddr_ll, sll_protocol))),
        }
    }
}

fn count(value: usize) -> io::Result<libc::c_uint> {
    value.try_into().map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// The memory that the kernel shares.
#[derive(Debug)]
struct Memory {
    start: NonNull<u8>,
}

// SAFETY: the mapping belongs to this value alone and does not depend on the thread; shared references only read
// the status words atomically and slots that the kernel has handed over.
#[allow(unsafe_code)]
unsafe impl Send for Memory {}

impl Memory {
    #[allow(unsafe_code)]
    fn map(socket: &OwnedFd) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice; no other memory is touched.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                MEMORY,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                socket,
                0,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start })
    }

    /// The word at this offset, which kernel and reader both write.
    #[allow(unsafe_code)]
    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= MEMORY);
        // SAFETY: aligned (the mapping begins at a page) and inside the mapping, as just checked, which lives as
        // long as `self`. All of this program's accesses to status words while the kernel may write them are
        // atomic.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// The bytes of a slot that the kernel has handed over. To be called for such a slot only, between
    /// [`Ring::is_filled`] and the store that gives it back; [`Ring::next`] sees to it.
    #[allow(unsafe_code)]
    fn lent(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset <= MEMORY && len <= MEMORY - offset);
        // SAFETY: inside the mapping, as just checked, which lives as long as `self` and was zeroed by the
        // kernel. The slot's status was read as TP_STATUS_USER with Acquire ordering: the kernel does not write
        // to it until the status is TP_STATUS_KERNEL again. That store needs `&mut Ring`, so no reference to the
        // slot is alive then.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), len) }
    }
}

impl Drop for Memory {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`, whole; references into it cannot outlive `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), MEMORY) };
    }
}

#[cfg(test)]
mod tests;
