//! The files of one capture: mostly one, or several that a recorder went through (`tcpdump -C` and `-G`, `dumpcap -b`,
//! `editcap -c`).
//!
//! Names make candidates, and the packets decide: files are one capture where each begins when the one before has ended.

pub(crate) mod joined;
mod names;

use std::cell::Cell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tcpwhy_wire::container::{self, LinkType, Opened};

use crate::complaint;

/// How much earlier than the latest packet of a file the next one may begin, ns. Packets that several processors, or interfaces,
/// hand to a recorder come out of order by milliseconds; captures that were made side by side overlap by much more.
const DISORDER: i64 = 100_000_000;
/// Nor by more than one in so many of the time that was captured so far: two short captures of the same time are two.
const OF_SPAN: i64 = 4;

/// How long nothing may pass between two files whose names differ in times alone, ns: one recording a night has such names, too.
/// Where files are numbered, one recorder counted them, however quiet it was.
const SILENCE: i64 = 3_600_000_000_000;

/// The beginning of a file that goes on in any case.
const WHENEVER: (i64, i64) = (i64::MAX, i64::MAX);

/// Files that may be one capture, in order.
#[derive(Debug)]
pub(crate) struct Parts {
    all: Vec<Part>,
    /// How many of them are, once that has been read.
    joined: Cell<usize>,
}

#[derive(Clone, Debug)]
struct Part {
    path: PathBuf,
    /// When its first packet was captured, and the longest silence before that; `None` where it goes on in no other file.
    begins: Option<(i64, i64)>,
}

impl From<&Path> for Parts {
    fn from(path: &Path) -> Self {
        Self { all: vec![Part { path: path.to_owned(), begins: None }], joined: Cell::new(1) }
    }
}

impl Parts {
    /// The captures of files that were named in this order, as far as their names and beginnings tell.
    pub(crate) fn of(files: &[PathBuf]) -> Vec<Rc<Self>> {
        let mut all: Vec<Rc<Self>> = Vec::new();
        let mut left = files;
        while let Some(first) = left.first() {
            let count = names::of_one_set(left);
            let (these, others) = left.split_at(count);
            left = others;
            match in_order(these) {
                Some(parts) if count > 1 => all.push(Rc::new(Self { all: parts, joined: Cell::new(1) })),
                _ if count > 1 => all.extend(these.iter().map(|path| Rc::new(Self::from(path.as_path())))),
                _ => all.push(Rc::new(Self::from(first.as_path()))),
            }
        }
        all
    }

    /// The first file.
    pub(crate) fn first(&self) -> &Path {
        &self.all[0].path
    }

    /// The files of the capture: of a set, those that were found to be one when it was read.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.all[..self.joined.get()].iter().map(|part| part.path.clone()).collect()
    }

    /// The same files again, in a form that nothing more is added to.
    pub(crate) fn again(paths: &[PathBuf]) -> Self {
        let parts = paths.iter().map(|path| Part { path: path.clone(), begins: Some(WHENEVER) });
        Self { all: parts.collect(), joined: Cell::new(1) }
    }

    /// The files that turned out to belong to another capture.
    pub(crate) fn others(&self) -> Option<Rc<Self>> {
        let others = &self.all[self.joined.get()..];
        (!others.is_empty()).then(|| Rc::new(Self { all: others.to_vec(), joined: Cell::new(1) }))
    }

    /// The next file of the capture, whose first and latest packet so far were captured at these times.
    pub(crate) fn go_on(&self, span: Option<(i64, i64)>) -> Option<&Path> {
        let next = self.all.get(self.joined.get())?;
        let (begins, silence) = next.begins?;
        let is_next = span.is_none_or(|(first, latest)| {
            let early = latest.saturating_sub(begins);
            early <= DISORDER.min((latest - first) / OF_SPAN) && early.saturating_neg() <= silence
        });
        is_next.then(|| {
            self.joined.set(self.joined.get() + 1);
            next.path.as_path()
        })
    }

    /// The file last gone on to cannot be read.
    pub(crate) fn go_back(&self) {
        self.joined.set(self.joined.get() - 1);
    }

    /// It is read from the beginning.
    pub(crate) fn begin(&self) {
        self.joined.set(1);
    }

    /// Whether all of it can be read a second time; a pipe cannot. What is not there is not for another reason.
    pub(crate) fn can_be_read_again(&self) -> bool {
        self.all.len() > 1
            || self.first() != Path::new("-") && (self.first().is_file() || !self.first().exists())
    }

    /// Bytes of all of its files, as they are stored; `None` of a stream.
    pub(crate) fn size(&self) -> Option<u64> {
        if self.first() == Path::new("-") {
            return None;
        }
        let files = self.all[..self.joined.get()].iter().map(|part| part.path.metadata().ok());
        files.map(|file| file.filter(std::fs::Metadata::is_file).map(|file| file.len())).sum()
    }

    /// What the capture is called.
    pub(crate) fn name(&self) -> String {
        let first = complaint::name(self.first());
        match self.joined.get() {
            1 => first,
            2 => format!("{first} and 1 more"),
            files => format!("{first} and {} more", files - 1),
        }
    }
}

/// The files by when they begin; `None` where they are no captures of the same kind of link.
fn in_order(files: &[PathBuf]) -> Option<Vec<Part>> {
    let mut begun: Vec<Begun<'_>> = Vec::new();
    for path in files {
        let first = first_packet(path)?;
        // A file without a packet is where it was named: the last one of a recorder that was stopped.
        let (time, link) = first.or(begun.last().map(|before| (before.time, before.link)))?;
        begun.push(Begun { time, link, is_empty: first.is_none(), path });
    }
    begun.sort_by_key(|file| file.time);
    let link = begun.first()?.link;
    let are_alike = begun.iter().all(|file| file.link == link);
    let before = std::iter::once(None).chain(begun.iter().map(|file| Some(file.path)));
    let part = |(before, file): (Option<&Path>, &Begun<'_>)| {
        let step = before.and_then(|before| names::step(before, file.path, files));
        let begins = step.map(|step| match step {
            _ if file.is_empty => WHENEVER,
            names::Step::Number => (file.time, i64::MAX),
            names::Step::Time => (file.time, SILENCE),
        });
        Part { path: file.path.to_owned(), begins }
    };
    are_alike.then(|| before.zip(&begun).map(part).collect())
}

/// How a file begins.
struct Begun<'a> {
    /// When its first packet was captured; of one without, that of the file before.
    time: i64,
    link: LinkType,
    is_empty: bool,
    path: &'a Path,
}

/// When the first packet of a capture file was captured, and what it begins with; the inner `None` where it has no packet.
fn first_packet(path: &Path) -> Option<Option<(i64, LinkType)>> {
    if !path.is_file() {
        return None;
    }
    match container::open(File::open(path).ok()?) {
        Ok(Opened::Capture(mut reader)) => Some(reader.next_frame().map(|frame| (frame.time, frame.link))),
        _ => None,
    }
}
