//! Words to calls. The memory was written by other programs: nothing in it is believed further than bounds allow.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;

use tcpwhy_wire::calls::{About, Call, Frame, Kind, Recording, Socket};

use super::format::{CHUNK, CHUNK_HEADER, Record, header};

/// `AF_INET` and `AF_INET6` of Linux.
const INET: u16 = 2;
const INET6: u16 = 10;
/// Low bits of a frame that are its offset.
const OFFSET: u64 = (1 << 48) - 1;

/// Takes the chunks one by one.
#[derive(Debug)]
pub(super) struct Reader(Recording);

impl Reader {
    /// With the memory's header.
    pub(super) fn new(head: &[u8]) -> Self {
        let about = About {
            lost: word(head, header::LOST),
            interrupted: word(head, header::INTERRUPTED),
            programs: word(head, header::PROGRAMS),
            ..About::default()
        };
        Self(Recording { about, ..Recording::default() })
    }

    /// A whole chunk.
    pub(super) fn chunk(&mut self, chunk: &[u8]) {
        read_chunk(chunk, &mut self.0);
    }

    /// Everything, its calls in the order of time.
    pub(super) fn finish(mut self) -> Recording {
        self.0.calls.sort_by_key(|call| call.start);
        self.0
    }
}

/// A 64-bit word by its number; 0 where there is none.
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at * 8..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u64::from_ne_bytes(*word))
}

fn read_chunk(chunk: &[u8], recording: &mut Recording) {
    let short = |at: usize| {
        let word = chunk.get(at * 4..).and_then(|rest| rest.first_chunk());
        word.map_or(0, |word| u32::from_ne_bytes(*word))
    };
    let (process, thread, used) = (short(0), short(1), short(2) as usize);
    let mut rest = &chunk[CHUNK_HEADER..CHUNK.min(CHUNK_HEADER.saturating_add(used))];
    while !rest.is_empty() {
        let len = (word(rest, 0) >> 32) as usize;
        if len < 8 || !len.is_multiple_of(8) || len > rest.len() {
            break;
        }
        let (record, behind) = rest.split_at(len);
        read_record(record, (process, thread), recording);
        rest = behind;
    }
}

fn read_record(record: &[u8], (process, thread): (u32, u32), recording: &mut Recording) {
    let [kind, detail, ..] = word(record, 0).to_le_bytes();
    let body = &record[8..];
    match kind {
        kind if kind == Record::Call as u8 => {
            if let Some(kind) = Kind::numbered(detail) {
                recording.calls.push(call(kind, process, thread, body));
            }
        }
        kind if kind == Record::Socket as u8 => recording.sockets.push(socket(detail != 0, body)),
        kind if kind == Record::Stack as u8 => {
            let frames = (1..body.len() / 8).map(|at| frame(word(body, at))).collect();
            recording.stacks.insert(word(body, 0) as u32, frames);
        }
        kind if kind == Record::Module as u8 => {
            let path = body.get(8..).unwrap_or_default();
            let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
            recording.modules.insert(word(body, 0) as u16, OsStr::from_bytes(&path[..end]).into());
        }
        _ => {}
    }
}

fn call(kind: Kind, process: u32, thread: u32, body: &[u8]) -> Call {
    let place = word(body, 5);
    Call {
        kind,
        process,
        thread,
        start: word(body, 0) as i64,
        took: word(body, 1),
        socket: word(body, 2),
        asked: word(body, 3),
        result: word(body, 4) as i64,
        fd: place as i32,
        stack: (place >> 32) as u32,
        flags: word(body, 6),
    }
}

fn socket(nodelay: bool, body: &[u8]) -> Socket {
    Socket {
        cookie: word(body, 0),
        local: address([word(body, 1), word(body, 2), word(body, 3)]),
        peer: address([word(body, 4), word(body, 5), word(body, 6)]),
        nodelay,
        mss: word(body, 7) as u32,
        written: word(body, 8),
    }
}

/// The address in the words that a `sockaddr` begins with.
fn address([first, low, high]: [u64; 3]) -> Option<SocketAddr> {
    let first = first.to_ne_bytes();
    let family = u16::from_ne_bytes([first[0], first[1]]);
    let port = u16::from_be_bytes([first[2], first[3]]);
    let ip = match family {
        INET => {
            let [a, b, c, d, ..] = low.to_ne_bytes();
            IpAddr::from([a, b, c, d])
        }
        INET6 => {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&low.to_ne_bytes());
            bytes[8..].copy_from_slice(&high.to_ne_bytes());
            plain(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// IPv4 addresses that an IPv6 socket uses, as packets have them.
fn plain(address: Ipv6Addr) -> IpAddr {
    address.to_ipv4_mapped().map_or(IpAddr::V6(address), |v4: Ipv4Addr| IpAddr::V4(v4))
}

fn frame(word: u64) -> Frame {
    Frame { module: (word >> 48) as u16, offset: word & OFFSET }
}
