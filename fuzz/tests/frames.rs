//! Captures of the corpus with random edits: `RUNS` of them (`make frames RUNS=200000`), some thousands by default, the same ones
//! every time. A script that fails is cut down to the edits, then to the frames, that it takes, and both are left in
//! `artifacts/frames/`.

use std::cell::RefCell;
use std::fs;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tcpwhy_fuzz::edits::{self, Owned};

/// What `make test` runs: some seconds.
const RUNS: u64 = 4_000;

/// Faults that are cut down; more are the same ones again.
const MOST_FAULTS: usize = 12;

/// Edits of the longest script.
const MOST_EDITS: u64 = 8;

/// Sebastiano Vigna's splitmix64, as in smoke.rs.
fn splitmix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The script of that number: two bytes for the capture, five for each edit.
fn script(number: u64) -> Vec<u8> {
    let random = |nth: u64| splitmix(splitmix(number).wrapping_add(nth));
    let edits = 1 + random(0) % MOST_EDITS;
    let mut bytes = random(1).to_le_bytes()[..2].to_vec();
    for edit in 0..edits {
        bytes.extend(&random(2 + edit).to_le_bytes()[..5]);
    }
    bytes
}

thread_local! {
    /// What the last panic of this thread said, and where.
    static SAID: RefCell<(String, String)> = const { RefCell::new((String::new(), String::new())) };
}

/// Where `check` panics and what it says; `None` where it does not.
fn fault(check: impl FnOnce()) -> Option<(String, String)> {
    catch_unwind(AssertUnwindSafe(check)).err().map(|_| SAID.take())
}

/// Leaves out what can be left out of `all` while it still fails in the same place: ever smaller pieces.
fn cut_down<T: Clone>(all: &[T], fails: impl Fn(&[T]) -> bool) -> Vec<T> {
    let mut left = all.to_vec();
    let mut piece = left.len().div_ceil(2);
    while piece > 0 {
        let (mut at, before) = (0, left.len());
        while at < left.len() {
            let mut fewer = left.clone();
            fewer.drain(at..(at + piece).min(left.len()));
            if fails(&fewer) {
                left = fewer;
            } else {
                at += piece;
            }
        }
        // Once more where it helped: what was needed may not be any more.
        piece = if left.len() < before && piece == 1 { 1 } else { piece / 2 };
    }
    left
}

/// A fault, made small and saved; what to tell of it.
fn told(number: u64, (place, said): (String, String)) -> String {
    let script = script(number);
    let (choice, edits) = script.split_at(2);
    let whole = |edits: &[[u8; 5]]| [choice, edits.as_flattened()].concat();
    let in_place = |check: &dyn Fn()| fault(check).is_some_and(|(other, _)| other == place);
    let edits = cut_down(edits.as_chunks().0, |edits| in_place(&|| tcpwhy_fuzz::frames(&whole(edits))));
    let script = whole(&edits);
    let (capture, frames) = edits::edited(&script).expect("a script");
    let frames: Vec<Owned> = cut_down(&frames, |frames| in_place(&|| edits::diagnose(frames)));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts/frames");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(format!("{number}")), &script).expect("a written script");
    let file = folder.join(format!("{number}.pcapng"));
    fs::write(&file, edits::file(&frames).expect("a file")).expect("a written file");
    format!(
        "script {number}, {} of {}, {} frames of it are enough ({}):\n  {place}: {said}",
        edits.len(),
        capture.file_name().unwrap_or_default().display(),
        frames.len(),
        file.display()
    )
}

/// What failed once.
#[test]
fn seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/frames");
    for seed in fs::read_dir(folder).expect("the seeds are part of the source") {
        tcpwhy_fuzz::frames(&fs::read(seed.expect("a seed").path()).expect("a seed"));
    }
}

#[test]
fn frames() {
    let runs = std::env::var("RUNS").ok().map_or(RUNS, |runs| runs.parse().expect("RUNS is a number"));
    panic::set_hook(Box::new(|info| {
        let place =
            info.location().map_or(String::new(), |place| format!("{}:{}", place.file(), place.line()));
        SAID.replace((place, info.payload_as_str().unwrap_or_default().to_owned()));
    }));
    let (next, faults) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= runs {
                break;
            }
            if let Some(fault) = fault(|| tcpwhy_fuzz::frames(&script(number))) {
                faults.lock().expect("no panic").push((number, fault));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let mut faults = faults.into_inner().expect("no panic");
    faults.sort();
    let count = faults.len();
    let told: Vec<String> =
        faults.into_iter().take(MOST_FAULTS).map(|(number, fault)| told(number, fault)).collect();
    drop(panic::take_hook());
    assert!(count == 0, "{count} of {runs} scripts failed:\n{}", told.join("\n"));
}
