//! Captures of the corpus with their frames dropped, repeated, put elsewhere and cut: what captures look like that
//! nobody made for tcpwhy.
//!
//! Two bytes choose a capture, every five after them are one edit, so a script that fails is made shorter by leaving edits
//! out. What edits make is mostly still TCP, which no mutation of a file's bytes is.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tcpwhy_diagnose::CaptureInfo;
use tcpwhy_wire::container::{self, Frame, Interface, LinkType, Opened, Origin, Writer};
use tcpwhy_wire::decode::{Tally, decode};

/// Frames of a capture that are edited; those behind them would only take time.
const MOST_FRAMES: usize = 2_000;

/// Edits of one script. One frame that is missed or doubled makes most faults; a few more mix them.
const MOST_EDITS: usize = 24;

/// Bytes that choose the capture, and bytes of an edit.
const CHOICE: usize = 2;
const EDIT: usize = 5;

/// Bytes of a frame that are always kept: the corpus has IP packets, and without their addresses there is no connection.
const LEAST_LEN: usize = 20;

/// A frame that can be moved and cut.
#[derive(Clone, Debug)]
pub struct Owned {
    time: i64,
    link: LinkType,
    original_len: u32,
    data: Vec<u8>,
}

/// A capture of the corpus.
struct Capture {
    path: PathBuf,
    frames: Vec<Owned>,
}

/// The corpus, read once.
fn corpus() -> &'static [Capture] {
    static CORPUS: OnceLock<Vec<Capture>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus");
        let entries = std::fs::read_dir(folder).expect("the corpus is part of the source");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
        paths.retain(|path| path.to_string_lossy().ends_with(".pcapng.zst"));
        paths.sort();
        paths.into_iter().map(|path| Capture { frames: read(&path), path }).collect()
    })
}

fn read(path: &Path) -> Vec<Owned> {
    let file = std::fs::File::open(path).expect("a capture of the corpus");
    let Ok(Opened::Capture(mut reader)) = container::open(file) else { panic!("{}", path.display()) };
    let mut frames = Vec::new();
    while let Some(Frame { time, link, original_len, data, .. }) = reader.next_frame() {
        frames.push(Owned { time, link, original_len, data: data.to_vec() });
        if frames.len() == MOST_FRAMES {
            break;
        }
    }
    frames
}

/// Bytes as edits of a capture; the file's name, and its frames when all is done.
pub fn edited(data: &[u8]) -> Option<(&'static Path, Vec<Owned>)> {
    let (choice, edits) = data.split_first_chunk::<CHOICE>()?;
    let corpus = corpus();
    let capture = &corpus[usize::from(u16::from_le_bytes(*choice)) % corpus.len()];
    let mut frames = capture.frames.clone();
    let (edits, _) = edits.as_chunks::<EDIT>();
    for edit in edits.iter().take(MOST_EDITS) {
        if frames.is_empty() {
            break;
        }
        Edit::new(*edit, frames.len()).apply(&mut frames);
    }
    Some((&capture.path, frames))
}

/// One edit: what, where, and how much of it.
struct Edit {
    what: u8,
    at: usize,
    much: u8,
    fine: u8,
}

impl Edit {
    fn new([what, low, high, much, fine]: [u8; EDIT], frames: usize) -> Self {
        // A share of the capture, so that the same edit is as far on in a shorter one.
        let at = (usize::from(u16::from_le_bytes([low, high])) * frames) >> 16;
        Self { what, at, much, fine }
    }

    fn apply(&self, frames: &mut Vec<Owned>) {
        let Self { at, much, .. } = *self;
        let run = at..(at + 1 + usize::from(much)).min(frames.len());
        match self.what % 14 {
            0 | 1 => drop(frames.remove(at)),
            2 => drop(frames.drain(run)),
            3 => self.thin(frames),
            4 => self.drop_one_side(frames),
            5 | 6 => self.repeat(frames, 1),
            7 => self.repeat(frames, 1 + usize::from(much % 8)),
            8 => self.put_behind(frames),
            9 => frames[run].reverse(),
            10 => drop(frames.drain(..at)),
            11 => frames.truncate(at.max(1)),
            12 => frames[run].iter_mut().for_each(|frame| self.cut(frame)),
            _ => self.wait(frames),
        }
    }

    /// Every so-manieth frame is missed.
    fn thin(&self, frames: &mut Vec<Owned>) {
        let (mut number, every) = (usize::from(self.fine), 2 + usize::from(self.much));
        frames.retain(|_| {
            number += 1;
            !number.is_multiple_of(every)
        });
    }

    /// From here on, or up to here, one side's frames are not captured.
    fn drop_one_side(&self, frames: &mut Vec<Owned>) {
        let source = |frame: &Owned| decode(&frame.lent(), 1).ok().map(|packet| packet.source);
        let (at, is_before) = (self.at, self.fine & 1 == 0);
        let side = source(&frames[at]);
        let mut number = 0;
        frames.retain(|frame| {
            number += 1;
            (number <= at) != is_before || source(frame) != side
        });
    }

    /// Frames come a second time, microseconds later: from a mirror port, a bridge, or two interfaces.
    fn repeat(&self, frames: &mut Vec<Owned>, count: usize) {
        let run = self.at..(self.at + count).min(frames.len());
        let late = i64::from(self.fine) * 1_000;
        let copies: Vec<Owned> = frames[run.clone()]
            .iter()
            .map(|frame| Owned { time: (frame.time + late).min(container::MAX_TIME), ..frame.clone() })
            .collect();
        frames.splice(run.end..run.end, copies);
    }

    /// A frame comes later than it should, with the time of its new place or with its own.
    fn put_behind(&self, frames: &mut Vec<Owned>) {
        let mut frame = frames.remove(self.at);
        let place = (self.at + 1 + usize::from(self.much % 32)).min(frames.len());
        if self.fine & 1 == 0
            && let Some(before) = place.checked_sub(1)
        {
            frame.time = frames[before].time;
        }
        frames.insert(place, frame);
    }

    /// A snapshot length: of Ethernet and IP at least.
    fn cut(&self, frame: &mut Owned) {
        frame.data.truncate(LEAST_LEN + usize::from(self.fine % 64));
    }

    /// Nothing happens for a while, or the clock is set back: all frames from here on are at other times.
    fn wait(&self, frames: &mut [Owned]) {
        let by = i64::from(self.much as i8) << (self.fine % 36);
        for frame in &mut frames[self.at..] {
            frame.time = (frame.time + by).clamp(0, container::MAX_TIME);
        }
    }
}

/// Bytes as edits of a capture, diagnosed.
pub fn frames(data: &[u8]) {
    if let Some((_, frames)) = edited(data) {
        diagnose(&frames);
    }
}

/// Diagnoses frames and holds the report against what is true of any.
pub fn diagnose(frames: &[Owned]) {
    let (mut packets, mut tally, mut number) = (Vec::new(), Tally::default(), 0);
    for frame in frames {
        number += 1;
        match decode(&frame.lent(), number) {
            Ok(packet) => packets.push(packet),
            Err(reason) => tally.add(reason),
        }
    }
    let info = CaptureInfo { frames: number, notes: tally.notes(), has_date: true, ..CaptureInfo::default() };
    super::diagnose(&packets, info);
}

impl Owned {
    fn lent(&self) -> Frame<'_> {
        let Self { time, link, original_len, ref data } = *self;
        Frame { time, link, original_len, interface: 0, data }
    }
}

/// The frames as a pcapng file, for other tools to look at.
pub fn file(frames: &[Owned]) -> std::io::Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new(), &Origin::default())?;
    let link = frames.first().map_or(LinkType::ETHERNET, |frame| frame.link);
    writer.interface(&Interface { link, ..Interface::default() })?;
    for frame in frames {
        writer.frame(&frame.lent(), "")?;
    }
    writer.finish()
}
