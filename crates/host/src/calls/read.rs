//! Words to calls. The memory was written by other programs: nothing in it is believed further than bounds allow.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;

use tcpwhy_wire::calls::{About, Call, Frame, Kind, Place, Recording, Socket};

use super::format::{CHUNK, CHUNK_HEADER, NAME, Record, header};

/// `AF_INET` and `AF_INET6` of Linux.
const INET: u16 = 2;
const INET6: u16 = 10;
/// Low bits of a frame that are its offset.
const OFFSET: u64 = (1 << 48) - 1;

/// Takes the chunks one by one.
#[derive(Debug)]
pub(super) struct Reader {
    recording: Recording,
    scripts: Scripts,
}

impl Reader {
    /// With the memory's header.
    pub(super) fn new(head: &[u8]) -> Self {
        let about = About {
            lost: word(head, header::LOST),
            interrupted: word(head, header::INTERRUPTED),
            programs: word(head, header::PROGRAMS),
            ..About::default()
        };
        Self { recording: Recording { about, ..Recording::default() }, scripts: Scripts::default() }
    }

    /// A whole chunk.
    pub(super) fn chunk(&mut self, chunk: &[u8]) {
        self.read_chunk(chunk);
    }

    /// Everything, its calls in the order of time.
    pub(super) fn finish(mut self) -> Recording {
        self.scripts.put_into(&mut self.recording);
        self.recording.calls.sort_by_key(|call| call.start);
        self.recording
    }

    fn read_chunk(&mut self, chunk: &[u8]) {
        let short = |at: usize| {
            let word = chunk.get(at * 4..).and_then(|rest| rest.first_chunk());
            word.map_or(0, |word| u32::from_ne_bytes(*word))
        };
        let (process, thread, used) = (short(0), short(1), short(2) as usize);
        if let Some(name) = text(&chunk[CHUNK_HEADER - NAME..CHUNK_HEADER]) {
            // Chunks come in the order in which they were taken: of a process that executed another program, the later name.
            self.recording.programs.insert(process, name);
        }
        let mut rest = &chunk[CHUNK_HEADER..CHUNK.min(CHUNK_HEADER.saturating_add(used))];
        while !rest.is_empty() {
            let len = (word(rest, 0) >> 32) as usize;
            if len < 8 || !len.is_multiple_of(8) || len > rest.len() {
                break;
            }
            let (record, behind) = rest.split_at(len);
            self.read_record(record, (process, thread));
            rest = behind;
        }
    }

    fn read_record(&mut self, record: &[u8], (process, thread): (u32, u32)) {
        let Self { recording, scripts } = self;
        let [kind, detail, ..] = word(record, 0).to_le_bytes();
        let body = &record[8..];
        match kind {
            kind if kind == Record::Call as u8 => {
                if let Some(kind) = Kind::numbered(detail) {
                    recording.calls.push(call(kind, process, thread, body));
                    scripts.of_calls.push((word(body, 6) >> 32) as u32);
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
            kind if kind == Record::Script as u8 => {
                let lines = (1..body.len() / 8)
                    .map(|at| word(body, at))
                    .map(|line| ((line >> 32) as u32, line as u32));
                scripts.stacks.insert(word(body, 0) as u32, lines.collect());
            }
            kind if kind == Record::Code as u8 => {
                scripts.codes.insert(word(body, 0) as u32, code(body.get(8..).unwrap_or_default()));
            }
            _ => {}
        }
    }
}

/// A text up to its first zero; `None` where there is none.
fn text(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
}

/// A 64-bit word by its number; 0 where there is none.
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at * 8..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u64::from_ne_bytes(*word))
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
        flags: u64::from(word(body, 6) as u32),
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

/// A function of a script.
#[derive(Debug)]
struct Code {
    file: String,
    function: String,
}

/// Two names, each ended by a zero.
fn code(names: &[u8]) -> Code {
    let mut names = names.split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned());
    Code { file: names.next().unwrap_or_default(), function: names.next().unwrap_or_default() }
}

/// Stacks of scripts, as processes have numbered them.
#[derive(Debug, Default)]
struct Scripts {
    codes: BTreeMap<u32, Code>,
    /// Functions' numbers, and lines.
    stacks: BTreeMap<u32, Vec<(u32, u32)>>,
    /// Which one made each call; 0 where none did.
    of_calls: Vec<u32>,
}

impl Scripts {
    /// Gives each stack of a script a number among the program's stacks, and to the calls that it made. Several processes, and
    /// threads at the same time, may have numbered the same lines: here they are one.
    fn put_into(self, recording: &mut Recording) {
        let mut numbers: BTreeMap<Vec<Place>, u32> = BTreeMap::new();
        let mut next = recording.stacks.keys().max().map_or(1, |last| last.saturating_add(1));
        for (call, script) in recording.calls.iter_mut().zip(&self.of_calls) {
            let lines = self.lines(*script);
            if lines.is_empty() {
                continue;
            }
            let number = *numbers.entry(lines).or_insert_with_key(|lines| {
                let frames = recording.stacks.get(&call.stack).cloned().unwrap_or_default();
                recording.stacks.insert(next, frames);
                recording.scripts.insert(next, lines.clone());
                next = next.saturating_add(1);
                next - 1
            });
            call.stack = number;
        }
    }

    fn lines(&self, script: u32) -> Vec<Place> {
        let lines = self.stacks.get(&script).map_or(&[][..], Vec::as_slice);
        let place = |(code, line): &(u32, u32)| {
            let Code { file, function } = self.codes.get(code)?;
            let (file, function) = (file.clone(), function.clone());
            Some(Place { function, file, line: *line, module: String::new(), script: true })
        };
        lines.iter().filter_map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as it lies in a chunk.
    fn record(kind: Record, detail: u8, words: &[u64], bytes: &[u8]) -> Vec<u8> {
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        body.extend_from_slice(bytes);
        body.resize(body.len().next_multiple_of(8), 0);
        let first = kind as u64 | u64::from(detail) << 8 | (body.len() as u64 + 8) << 32;
        [first.to_ne_bytes().to_vec(), body].concat()
    }

    fn chunk(process: u32, records: &[Vec<u8>]) -> Vec<u8> {
        let records = records.concat();
        let header: Vec<u8> =
            [process, process, records.len() as u32, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut name = format!("program {process}").into_bytes();
        name.resize(NAME, 0);
        let mut chunk = [header, name, records].concat();
        chunk.resize(CHUNK, 0);
        chunk
    }

    fn send(at: u64, stack: u64, script: u64) -> Vec<u8> {
        let words = [at, 1, 7, 10, 10, 5 | stack << 32, 0x8000 | script << 32];
        record(Record::Call, Kind::Send as u8, &words, &[])
    }

    #[test]
    fn equal_lines_of_two_processes_are_one_stack() {
        let mut reader = Reader::new(&[]);
        reader.chunk(&chunk(
            1,
            &[
                record(Record::Stack, 0, &[4, 1 << 48 | 0x10], &[]),
                record(Record::Code, 0, &[1], b"/a.py\0main"),
                record(Record::Script, 0, &[1, 1 << 32 | 12], &[]),
                send(1, 4, 1),
            ],
        ));
        reader.chunk(&chunk(
            2,
            &[
                record(Record::Stack, 0, &[5, 1 << 48 | 0x20], &[]),
                record(Record::Code, 0, &[2], b"/a.py\0main"),
                record(Record::Script, 0, &[2, 2 << 32 | 12], &[]),
                record(Record::Script, 0, &[3, 2 << 32 | 13], &[]),
                send(2, 5, 2),
                send(3, 5, 3),
                // Of a script that is not there, and of none.
                send(4, 5, 9),
                send(5, 5, 0),
            ],
        ));
        let recording = reader.finish();
        let stacks: Vec<_> = recording.calls.iter().map(|call| call.stack).collect();
        assert_eq!(stacks, [6, 6, 7, 5, 5]);
        assert!(recording.calls.iter().all(|call| call.flags == 0x8000 && call.fd == 5));
        let line = |line| Place {
            function: "main".to_owned(),
            file: "/a.py".to_owned(),
            line,
            module: String::new(),
            script: true,
        };
        assert_eq!(recording.programs, [(1, "program 1".to_owned()), (2, "program 2".to_owned())].into());
        assert_eq!(recording.scripts[&6], [line(12)]);
        assert_eq!(recording.scripts[&7], [line(13)]);
        assert_eq!(recording.stacks[&6], [Frame { module: 1, offset: 0x10 }]);
        assert_eq!(recording.stacks[&7], [Frame { module: 1, offset: 0x20 }]);
    }
}
