//! A short fuzz run on the stable toolchain: the seeds, then the same mutations of them every time.
//!
//! `make fuzz` searches longer and guided by coverage. What it finds goes to `seeds/`, and so stays tested.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Inputs longer than this are cut: small ones find as much, sooner.
const LONGEST: usize = 8_192;

/// Numbers that lie at the edge of something.
const EDGES: [u32; 12] =
    [0, 1, 4, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/// Sebastiano Vigna's splitmix64: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Changes a few places, each in one of the ways that parsers fall for.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = random.next() as u8,
            2 | 3 => {
                let edge = EDGES[random.below(EDGES.len())];
                let edge = if random.below(2) == 0 { edge.to_le_bytes() } else { edge.to_be_bytes() };
                let edge = &edge[..1 << random.below(3)];
                let end = (at + edge.len()).min(bytes.len());
                bytes[at..end].copy_from_slice(&edge[..end - at]);
            }
            4 => bytes.truncate(at),
            5 => drop(bytes.drain(at..(at + random.below(32)).min(bytes.len()))),
            6 => {
                let from = random.below(other.len());
                let piece = other[from..(from + random.below(64)).min(other.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                let again = bytes[at..(at + random.below(64)).min(bytes.len())].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes.truncate(LONGEST);
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the seeds are part of the source")
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no seeds in {}", folder.display());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Runs `target`; an input that fails is written where libFuzzer writes its own.
fn run(name: &str, target: fn(&[u8]), input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts").join(name);
        let path = folder.join("smoke");
        fs::create_dir_all(&folder).and_then(|()| fs::write(&path, input)).unwrap();
        eprintln!("again: cargo run --manifest-path fuzz/Cargo.toml --bin {name} {}", path.display());
        std::panic::resume_unwind(panic);
    }
}

/// The seeds, then `rounds` mutations; all six targets together take some ten seconds on two processors.
fn fuzz(name: &str, target: fn(&[u8]), rounds: usize) {
    let seeds = seeds(name);
    for seed in &seeds {
        run(name, target, seed);
    }
    let mut random = Random(0x7463_7077_6879);
    for _ in 0..rounds {
        let mut input = seeds[random.below(seeds.len())].clone();
        let other = &seeds[random.below(seeds.len())];
        mutate(&mut input, other, &mut random);
        run(name, target, &input);
    }
}

#[test]
fn container() {
    fuzz("container", tcpwhy_fuzz::container, 500_000);
}

#[test]
fn calls() {
    fuzz("calls", tcpwhy_fuzz::calls, 500_000);
}

#[test]
fn decode() {
    fuzz("decode", tcpwhy_fuzz::decode, 3_000_000);
}

#[test]
fn text() {
    fuzz("text", tcpwhy_fuzz::text, 100_000);
}

#[test]
fn sockets() {
    fuzz("sockets", tcpwhy_fuzz::sockets, 100_000);
}

#[test]
fn flow() {
    fuzz("flow", tcpwhy_fuzz::flow, 100_000);
    // Scripts need no seeds: every byte string is one.
    let mut random = Random(1);
    for length in 0..5_000 {
        let input: Vec<u8> = (0..length % 3_000).map(|_| random.next() as u8).collect();
        run("flow", tcpwhy_fuzz::flow, &input);
    }
}
