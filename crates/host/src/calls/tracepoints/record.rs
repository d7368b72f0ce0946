//! The ring's bytes to events. The kernel wrote them, but what a stack holds is the program's.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::events::Source;
use super::layout::{Said, Wanted};

// Kinds of records, and a flag, of <linux/perf_event.h>.
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
const EXECUTED: u16 = 1 << 13;

/// Bytes that end each record that is no sample: process, thread, time, number.
const TRAILER: usize = 24;
/// Markers in a list of return addresses are from here on.
const MARKERS: u64 = u64::MAX - 4095;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Happened {
    /// In ns of the monotonic clock.
    pub(super) time: u64,
    pub(super) process: u32,
    pub(super) thread: u32,
    /// The thread that the event was opened for; 0 where it was opened for all.
    pub(super) root: u32,
    pub(super) event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A trace event, and the stack of the program if that was wanted.
    Said(Said, Stack),
    /// A process or thread began.
    Forked { parent: u32 },
    /// A process executes another program, and is called so from then on.
    Executed(String),
    /// A thread ended.
    Ended,
    /// Code was mapped into memory.
    Mapped(Mapping),
    /// So many events found no room.
    Lost(u64),
}

/// A part of a file in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) len: u64,
    /// Where the part begins in the file, in bytes.
    pub(super) offset: u64,
    pub(super) path: PathBuf,
}

/// What was kept of a program's stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stack {
    /// Return addresses by frame pointers, innermost first.
    pub(super) chain: Vec<u64>,
    pub(super) copy: Option<Copied>,
}

/// Registers and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) bp: u64,
    /// From the stack pointer on.
    pub(super) bytes: Vec<u8>,
}

impl Copied {
    /// Bytes of the program's stack, by their address.
    pub(super) fn at<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let from = usize::try_from(address.checked_sub(self.sp)?).ok()?;
        self.bytes.get(from..)?.first_chunk().copied()
    }
}

/// Reads a record. `None` for those that are of no interest, and for damaged ones.
pub(super) fn read(
    kind: u32,
    flags: u16,
    bytes: &[u8],
    wanted: &Wanted,
    source: impl FnOnce(u64) -> Option<Source>,
) -> Option<Happened> {
    if kind == SAMPLE {
        return sample(bytes, wanted, source);
    }
    let (mut body, mut trailer) = bytes.split_at_checked(bytes.len().checked_sub(TRAILER)?)?;
    let event = match kind {
        LOST => {
            let _event = word(&mut body)?;
            Event::Lost(word(&mut body)?)
        }
        LOST_SAMPLES => Event::Lost(word(&mut body)?),
        COMM if flags & EXECUTED != 0 => Event::Executed(name(body)),
        MMAP2 => return mapped(body, trailer),
        // Of these two, the body says who it is; the trailer is the parent's.
        FORK | EXIT => return begun_or_ended(kind, body),
        _ => return None,
    };
    let (process, thread) = pair(&mut trailer)?;
    Some(Happened { time: word(&mut trailer)?, process, thread, root: 0, event })
}

fn sample(bytes: &[u8], wanted: &Wanted, source: impl FnOnce(u64) -> Option<Source>) -> Option<Happened> {
    let rest = &mut &*bytes;
    let source = source(word(rest)?)?;
    let (process, thread) = pair(rest)?;
    let time = word(rest)?;
    let mut stack = Stack::default();
    if source.has_chain {
        let frames = usize::try_from(word(rest)?).ok()?;
        let frames = taken(rest, frames.checked_mul(8)?)?.chunks_exact(8);
        let frames = frames.filter_map(|frame| frame.try_into().ok().map(u64::from_ne_bytes));
        stack.chain = frames.filter(|frame| *frame < MARKERS).collect();
    }
    let len = taken(rest, 4)?.try_into().ok().map(u32::from_ne_bytes)?;
    let said = wanted.said(source.what, taken(rest, len as usize)?);
    if source.has_copy {
        stack.copy = copied(rest);
    }
    Some(Happened { time, process, thread, root: source.root, event: Event::Said(said, stack) })
}

/// Three registers in the order of their numbers, then the stack; nothing where there is no program, as in the kernel's own
/// threads.
fn copied(rest: &mut &[u8]) -> Option<Copied> {
    let abi = word(rest)?;
    if abi == 0 {
        return None;
    }
    let (bp, sp, ip) = (word(rest)?, word(rest)?, word(rest)?);
    let room = usize::try_from(word(rest)?).ok()?;
    let bytes = taken(rest, room)?;
    let filled = if room == 0 { 0 } else { usize::try_from(word(rest)?).ok()? };
    Some(Copied { ip, sp, bp, bytes: bytes[..filled.min(room)].to_vec() })
}

fn mapped(mut body: &[u8], mut trailer: &[u8]) -> Option<Happened> {
    let (process, thread) = pair(&mut body)?;
    let (start, len, offset) = (word(&mut body)?, word(&mut body)?, word(&mut body)?);
    // Device, inode and its generation; protection and flags.
    taken(&mut body, 32)?;
    let end = body.iter().position(|byte| *byte == 0).unwrap_or(body.len());
    let path = OsStr::from_bytes(&body[..end]).into();
    taken(&mut trailer, 8)?;
    let event = Event::Mapped(Mapping { start, len, offset, path });
    Some(Happened { time: word(&mut trailer)?, process, thread, root: 0, event })
}

/// What a process is called: behind its own number and its thread's, padded with zeros.
fn name(body: &[u8]) -> String {
    let name = body.get(8..).unwrap_or_default().split(|byte| *byte == 0).next();
    String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
}

fn begun_or_ended(kind: u32, mut body: &[u8]) -> Option<Happened> {
    let (process, parent) = pair(&mut body)?;
    let (thread, _) = pair(&mut body)?;
    let event = if kind == FORK { Event::Forked { parent } } else { Event::Ended };
    Some(Happened { time: word(&mut body)?, process, thread, root: 0, event })
}

fn taken<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (first, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(first)
}

fn word(rest: &mut &[u8]) -> Option<u64> {
    taken(rest, 8)?.try_into().ok().map(u64::from_ne_bytes)
}

fn pair(rest: &mut &[u8]) -> Option<(u32, u32)> {
    let half = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_ne_bytes);
    Some((half(taken(rest, 4)?)?, half(taken(rest, 4)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_mapping_is_read_and_damage_is_not() {
        let mut bytes = words(&[7 | 8 << 32, 0x1000, 0x2000, 0x3000, 0, 0, 0, 0]);
        bytes.extend_from_slice(b"/bin/sh\0");
        bytes.extend(words(&[7 | 8 << 32, 99, 1]));
        let read =
            |bytes: &[u8]| mapped(bytes.get(..bytes.len() - TRAILER)?, &bytes[bytes.len() - TRAILER..]);
        let mapping = Mapping { start: 0x1000, len: 0x2000, offset: 0x3000, path: "/bin/sh".into() };
        let expected = Happened { time: 99, process: 7, thread: 8, root: 0, event: Event::Mapped(mapping) };
        assert_eq!(read(&bytes), Some(expected));
        assert_eq!(read(&bytes[40..]), None);
    }

    #[test]
    fn a_program_has_a_name_however_short_the_record_is() {
        let bytes = [&words(&[7 | 7 << 32]), &b"a b\xff\0\0\0\0"[..]].concat();
        assert_eq!(name(&bytes), "a b\u{fffd}");
        assert_eq!((name(&bytes[..9]), name(&bytes[..3])), ("a".to_owned(), String::new()));
    }

    #[test]
    fn a_stack_that_ends_early_is_no_stack() {
        let all = words(&[2, 10, 0x7000, 30, 16, 0x1111, 0x2222, 8]);
        let copy = copied(&mut &all[..]).expect("it is whole");
        assert_eq!((copy.bp, copy.sp, copy.ip), (10, 0x7000, 30));
        // Of 16 bytes, 8 were filled.
        assert_eq!(copy.at(0x7000), Some(0x1111_u64.to_ne_bytes()));
        assert_eq!((copy.at::<8>(0x7008), copy.at::<8>(0x6fff)), (None, None));
        for len in 0..all.len() {
            assert_eq!(copied(&mut &all[..len]), None, "{len} bytes");
        }
    }
}
