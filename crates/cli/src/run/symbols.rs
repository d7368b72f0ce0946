//! Addresses to functions and lines.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use addr2line::Loader;
use object::{Object, ObjectSegment, ReadCache};
use tcpwhy_wire::calls::{Frame, Place, Recording};

/// How the names of those of Python's own functions begin that run a script's.
const RUNS_SCRIPT: &str = "_PyEval_";

/// Finds the places of all stacks of a recording, on this machine and now: its programs may be gone tomorrow.
pub(super) fn resolve(recording: &mut Recording) {
    let mut symbols = Symbols { recording, files: BTreeMap::new(), known: BTreeMap::new() };
    let stacks = recording.stacks.iter();
    let places = stacks.map(|(number, frames)| {
        let native = frames.iter().flat_map(|frame| symbols.places(*frame)).collect::<Vec<_>>();
        let script = recording.scripts.get(number).map_or(&[][..], Vec::as_slice);
        (*number, with_script(native, script))
    });
    recording.places = places.collect();
}

/// Puts a script's lines where the interpreter runs them. Its own functions further out make no calls: they run the script.
fn with_script(mut places: Vec<Place>, script: &[Place]) -> Vec<Place> {
    if script.is_empty() {
        return places;
    }
    let runs = places.iter().position(|place| place.function.starts_with(RUNS_SCRIPT));
    // Without symbols, what made the call is known all the same.
    let at = runs.unwrap_or(1).min(places.len());
    let module = places.get(at).or(places.last()).map(|place| place.module.clone()).unwrap_or_default();
    places.truncate(at);
    places.extend(script.iter().map(|line| Place { module: module.clone(), ..line.clone() }));
    places
}

/// The files of a recording.
struct Symbols<'a> {
    recording: &'a Recording,
    files: BTreeMap<u16, Option<Module>>,
    /// The same line is on many stacks.
    known: BTreeMap<Frame, Vec<Place>>,
}

struct Module {
    loader: Loader,
    /// Address of its first byte in memory, as the file has it.
    base: u64,
}

impl Symbols<'_> {
    fn places(&mut self, frame: Frame) -> Vec<Place> {
        if let Some(known) = self.known.get(&frame) {
            return known.clone();
        }
        let places = self.look_up(frame);
        self.known.insert(frame, places.clone());
        places
    }

    fn look_up(&mut self, frame: Frame) -> Vec<Place> {
        let path = self.recording.modules.get(&frame.module);
        let module = path
            .and_then(|path| path.file_name())
            .map_or_else(|| "code made at run time".to_owned(), |name| name.to_string_lossy().into_owned());
        let file = path
            .and_then(|path| self.files.entry(frame.module).or_insert_with(|| Module::open(path)).as_ref());
        // A return address is behind the call.
        let mut places = file.map_or_else(Vec::new, |file| {
            file.places(frame.offset.wrapping_sub(1).wrapping_add(file.base), &module)
        });
        if places.is_empty() {
            places.push(Place { module, ..Place::default() });
        }
        places
    }
}

impl Module {
    fn open(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let object = object::File::parse(&cache).ok()?;
        let base =
            object.segments().map(|segment| segment.address() & !(segment.align().max(1) - 1)).min()?;
        Some(Self { loader: Loader::new(path).ok()?, base })
    }

    /// The function, and those that are inlined there, innermost first.
    fn places(&self, address: u64, module: &str) -> Vec<Place> {
        let mut places = Vec::new();
        let place = Place { module: module.to_owned(), ..Place::default() };
        if let Ok(mut frames) = self.loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.and_then(|name| name.demangle().ok().map(|name| name.into_owned()));
                let line = frame.location.and_then(|at| Some((at.file?.to_owned(), at.line?)));
                let (file, line) = line.unwrap_or_default();
                places.push(Place { function: name.unwrap_or_default(), file, line, ..place.clone() });
            }
        }
        if places.iter().all(|place| place.function.is_empty())
            && let Some(symbol) = self.loader.find_symbol(address)
        {
            let function = addr2line::demangle_auto(symbol.into(), None).into_owned();
            let innermost = places.pop().unwrap_or(place);
            places = vec![Place { function, ..innermost }];
        }
        places
    }
}
