//! How recorders name the files that they go through.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Digits of the number that dumpcap and editcap give to a file, at least, and of the time beside it.
const NUMBER: usize = 5;
const TIME: usize = 14;

/// What may stand between the numbers of a time.
const BETWEEN: [&str; 6] = ["", "-", "_", ":", ".", "T"];

/// How many files from the first on are named like parts of one capture.
pub(super) fn of_one_set(files: &[PathBuf]) -> usize {
    let mut count = 1;
    while count < files.len()
        && follows(&files[count - 1], &files[count])
        && !files[..count].contains(&files[count])
    {
        count += 1;
    }
    count
}

/// How a recorder comes from one file to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// By its number.
    Number,
    /// By the time in its name.
    Time,
}

/// The step between two files of a set, or `None` where one between them is missing. `all` has the set: after its last number a
/// ring of files (`tcpdump -W`) begins again with the first.
pub(super) fn step(one: &Path, other: &Path, all: &[PathBuf]) -> Option<Step> {
    let (by, [from, to]) = compared(one, other)?;
    if by == Step::Time {
        return Some(by);
    }
    let numbers = || all.iter().filter_map(|path| compared(one, path)).filter(|(by, _)| *by == Step::Number);
    let all = || numbers().map(|(_, [_, number])| number).chain([from]);
    let is_ring = all().max() == Some(from) && all().min() == Some(to);
    (from + 1 == to || is_ring).then_some(by)
}

/// Whether one file may go on where the other ends, or the other way round: a shell's `*` puts `x.pcap10` before `x.pcap2`.
fn follows(one: &Path, other: &Path) -> bool {
    one.parent() == other.parent() && compared(one, other).is_some()
}

/// What two names of a set differ in, and their numbers.
fn compared(one: &Path, other: &Path) -> Option<(Step, [u64; 2])> {
    let (one, other) = (Name::of(one)?, Name::of(other)?);
    if one.text != other.text {
        return None;
    }
    let differ = |at: &usize| one.digits[*at] != other.digits[*at];
    let (numbers, others): (Vec<usize>, Vec<usize>) =
        (0..one.digits.len()).filter(differ).partition(|&at| one.is_number(at) && other.is_number(at));
    let is_time =
        |&at: &usize| one.digits[at].len() == other.digits[at].len() && one.is_time(at) && other.is_time(at);
    if !others.iter().all(is_time) {
        return None;
    }
    let number = |name: &Name, at: usize| {
        if name.digits[at].is_empty() { Some(0) } else { name.digits[at].parse().ok() }
    };
    match *numbers {
        // With -C and -G, tcpdump counts the files of each time from the beginning.
        [at] if others.is_empty() || at + 1 < one.digits.len() => {
            Some((Step::Number, [number(&one, at)?, number(&other, at)?]))
        }
        [_] | [] if !others.is_empty() => Some((Step::Time, [0; 2])),
        _ => None,
    }
}

/// A file's name as its digits and what is around them.
#[derive(Debug)]
struct Name {
    /// One more than there are digits.
    text: Vec<String>,
    digits: Vec<String>,
}

impl Name {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name().and_then(OsStr::to_str)?;
        let (mut text, mut digits) = (vec![String::new()], Vec::new());
        let mut was_digit = false;
        for c in name.chars() {
            match (c.is_ascii_digit(), was_digit) {
                (true, true) => digits.last_mut().map(|digits: &mut String| digits.push(c))?,
                (true, false) => {
                    digits.push(c.to_string());
                    text.push(String::new());
                }
                (false, _) => text.last_mut()?.push(c),
            }
            was_digit = c.is_ascii_digit();
        }
        let mut name = Self { text, digits };
        name.begin_with_no_number();
        Some(name)
    }

    /// The first file of `tcpdump -C` has no number behind its extension.
    fn begin_with_no_number(&mut self) {
        let Some(last) = self.text.last_mut() else { return };
        let plain = ["", ".gz", ".zst"].into_iter().find_map(|packed| {
            let stem = last.strip_suffix(packed)?;
            is_extension(stem).then(|| (stem.to_owned(), packed.to_owned()))
        });
        if let Some((stem, packed)) = plain {
            *last = stem;
            self.digits.push(String::new());
            self.text.push(packed);
        }
    }

    /// Whether a recorder numbers its files there: behind the extension, or before or behind a whole time.
    fn is_number(&self, at: usize) -> bool {
        let behind = self.text[at + 1].as_str();
        if at + 1 == self.digits.len()
            && ["", ".gz", ".zst"].contains(&behind)
            && is_extension(&self.text[at])
        {
            return true;
        }
        let beside = |other: usize, between: usize| {
            self.text[between] == "_" && self.digits.get(other).is_some_and(|digits| digits.len() == TIME)
        };
        self.digits[at].len() >= NUMBER
            && self.digits[at].len() != TIME
            && (beside(at + 1, at + 1) || at > 0 && beside(at - 1, at))
    }

    /// Whether it is a part of a time as `strftime` writes it.
    fn is_time(&self, at: usize) -> bool {
        let is_part = |digits: &str| matches!(digits.len(), 2 | 4 | 6 | 8 | 10 | 12 | 14);
        let is_between = |at: usize| BETWEEN.contains(&self.text[at].as_str());
        let (mut first, mut last) = (at, at);
        while first > 0 && is_between(first) && is_part(&self.digits[first - 1]) {
            first -= 1;
        }
        while last + 1 < self.digits.len() && is_between(last + 1) && is_part(&self.digits[last + 1]) {
            last += 1;
        }
        is_time(&self.digits[first..=last].concat())
    }
}

/// `.pcap`, `.cap`, `.pcapng`, `.dmp`: behind the last full stop only letters.
fn is_extension(text: &str) -> bool {
    let letters = text.rsplit_once('.').map_or("", |(_, letters)| letters);
    letters.len() >= 3 && letters.chars().all(|c| c.is_ascii_alphabetic()) && !["zst"].contains(&letters)
}

/// Whether digits are a date, a time of the day, both, or the seconds since 1970.
fn is_time(digits: &str) -> bool {
    let part =
        |from: usize, len: usize| digits.get(from..from + len).and_then(|part| part.parse::<u32>().ok());
    let within = |from, len, low, high| part(from, len).is_some_and(|part| (low..=high).contains(&part));
    let day = |from| within(from, 2, 1, 12) && within(from + 2, 2, 1, 31);
    let clock = |from| within(from, 2, 0, 23) && within(from + 2, 2, 0, 59);
    let year = |from| within(from, 4, 1970, 2106);
    match digits.len() {
        6 => clock(0) && within(4, 2, 0, 60) || day(2),
        8 => year(0) && day(4),
        10 => digits.starts_with('1') || year(0) && day(4),
        12 => year(0) && day(4) && clock(8) || day(2) && clock(6),
        TIME => year(0) && day(4) && clock(8),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_set(names: &[&str], count: usize) {
        let files: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
        assert_eq!(of_one_set(&files), count, "{names:?}");
    }

    #[test]
    fn names_of_recorders_are_known() {
        assert_set(&["x_00000_20201122100000.pcap", "x_00001_20201122100500.pcap"], 2);
        assert_set(&["d/x_20201122100000_00000.pcapng", "d/x_20201122100000_00001.pcapng"], 2);
        assert_set(&["x.pcap", "x.pcap1", "x.pcap2", "x.pcap10"], 4);
        assert_set(&["x.pcap0", "x.pcap1"], 2);
        assert_set(&["x.pcap.gz", "x.pcap1.gz"], 2);
        assert_set(&["x-2020-11-22_10:00:00.pcap", "x-2020-11-22_10:05:00.pcap"], 2);
        assert_set(&["x-20201122-235500.pcap", "x-20201123-000000.pcap", "x-20201123-000000.pcap1"], 3);
        assert_set(&["x.1606039200.pcap", "x.1606039260.pcap"], 2);
        assert_set(&["x-095500.pcap", "x-100000.pcap"], 2);
    }

    #[test]
    fn other_names_are_no_sets() {
        for [one, other] in [
            ["a.pcap", "b.pcap"],
            ["run1.pcap", "run2.pcap"],
            ["run-0001.pcap", "run-0002.pcap"],
            ["before_00001_20201122100000.pcap", "behind_00001_20201122100000.pcap"],
            ["a/x.pcap0", "b/x.pcap1"],
            ["x.pcap", "x.pcap"],
            ["x.pcap", "x.pcapng"],
            ["x.pcap1", "x.pcap2.gz"],
            ["10.0.0.11.pcap", "10.0.0.12.pcap"],
            ["10.10.10.11.pcap", "10.10.10.12.pcap"],
            ["-", "-"],
        ] {
            assert_set(&[one, other], 1);
        }
    }

    #[test]
    fn numbers_are_told_from_times() {
        let step = |one: &str, other: &str| step(Path::new(one), Path::new(other), &[]);
        for [one, other] in
            [["x.pcap", "x.pcap1"], ["x_00000_20201122100000.pcap", "x_00001_20201122100500.pcap"]]
        {
            assert_eq!(step(one, other), Some(Step::Number), "{one} {other}");
        }
        assert_eq!(step("x-20201122.pcap", "x-20201123.pcap"), Some(Step::Time));
        assert_eq!(step("x-20201122.pcap7", "x-20201123.pcap"), Some(Step::Time));
        assert_eq!(step("x.pcap1", "x.pcap3"), None);
    }

    #[test]
    fn a_ring_begins_again() {
        let ring: Vec<PathBuf> = (0..5).map(|number| PathBuf::from(format!("x.pcap{number}"))).collect();
        assert_eq!(step(&ring[4], &ring[0], &ring), Some(Step::Number));
        assert_eq!(step(&ring[3], &ring[0], &ring), None);
    }
}
