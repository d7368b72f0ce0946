//! Addresses to functions and lines.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use addr2line::Loader;
use object::{Object, ObjectSegment, ReadCache};
use tcpwhy_wire::calls::{Frame, Recording};

/// Sources of libraries whose code is generated into a program: the line to change is further out.
const FOREIGN: [&str; 3] = ["/rustc/", "/usr/include/", "/usr/lib/"];

/// One function on a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) function: Option<String>,
    /// Source file and line.
    pub(super) line: Option<(String, u32)>,
    /// The file's name that its code is in.
    pub(super) module: String,
}

impl Place {
    /// Whether somebody can be sent there.
    fn is_own(&self) -> bool {
        self.line.as_ref().is_some_and(|(file, _)| !FOREIGN.iter().any(|start| file.starts_with(start)))
    }

    /// `server.c:118 in flush_chain()`, or as much of it as is known.
    pub(super) fn text(&self) -> String {
        let function = self.function.as_ref().map(|name| call_of(name));
        match (&self.line, function) {
            (Some((file, line)), Some(function)) => format!("{}:{line} in {function}", base(file)),
            (Some((file, line)), None) => format!("{}:{line}", base(file)),
            (None, Some(function)) => format!("{function} in {}", self.module),
            (None, None) => format!("{}, no symbols", self.module),
        }
    }
}

/// `flush_chain()`; demangled names of C++ bring their arguments along.
fn call_of(name: &str) -> String {
    if name.contains('(') { name.to_owned() } else { format!("{name}()") }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The files of a recording.
pub(super) struct Symbols<'a> {
    recording: &'a Recording,
    files: BTreeMap<u16, Option<Module>>,
    stacks: BTreeMap<u32, Vec<Place>>,
}

struct Module {
    loader: Loader,
    /// Address of its first byte in memory, as the file has it.
    base: u64,
}

impl<'a> Symbols<'a> {
    pub(super) fn new(recording: &'a Recording) -> Self {
        Self { recording, files: BTreeMap::new(), stacks: BTreeMap::new() }
    }

    /// The functions of a stack, innermost first; empty where none was kept.
    pub(super) fn stack(&mut self, number: u32) -> &[Place] {
        if !self.stacks.contains_key(&number) {
            let frames = self.recording.stacks.get(&number).map_or(&[][..], Vec::as_slice);
            let places = frames.iter().flat_map(|frame| self.places(*frame)).collect();
            self.stacks.insert(number, places);
        }
        &self.stacks[&number]
    }

    /// Where to send somebody who wants to change a call, and who called that.
    pub(super) fn site(&mut self, number: u32) -> Option<(String, Vec<String>)> {
        let places = self.stack(number);
        let at = places.iter().position(Place::is_own).unwrap_or(0);
        let place = places.get(at)?;
        let callers = places[at + 1..].iter().filter_map(|place| place.function.clone());
        Some((place.text(), callers.collect()))
    }

    fn places(&mut self, frame: Frame) -> Vec<Place> {
        let path = self.recording.modules.get(&frame.module);
        let module = path
            .and_then(|path| path.file_name())
            .map_or_else(|| "code made at run time".to_owned(), |name| name.to_string_lossy().into_owned());
        let plain = || vec![Place { module: module.clone(), ..Place::default() }];
        let Some(path) = path else {
            return plain();
        };
        let file = self.files.entry(frame.module).or_insert_with(|| Module::open(path));
        let Some(file) = file else {
            return plain();
        };
        // A return address is behind the call.
        let places = file.places(frame.offset.wrapping_sub(1).wrapping_add(file.base), &module);
        if places.is_empty() { plain() } else { places }
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
        if let Ok(mut frames) = self.loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.and_then(|name| name.demangle().ok().map(|name| name.into_owned()));
                let line = frame.location.and_then(|at| Some((at.file?.to_owned(), at.line?)));
                places.push(Place { function: name, line, module: module.to_owned() });
            }
        }
        if places.iter().all(|place| place.function.is_none())
            && let Some(symbol) = self.loader.find_symbol(address)
        {
            let name = addr2line::demangle_auto(symbol.into(), None).into_owned();
            let line = places.pop().and_then(|place| place.line);
            places = vec![Place { function: Some(name), line, module: module.to_owned() }];
        }
        places
    }
}
