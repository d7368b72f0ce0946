//! What is loaded where in each watched process, and stacks to frames.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use object::read::{Object, ObjectSection, ObjectSegment, ReadCache};

use tcpwhy_wire::calls::Frame;

use super::record::{Copied, Mapping, Stack};

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{CacheAarch64 as Cache, UnwinderAarch64 as Unwinder};
#[cfg(not(target_arch = "aarch64"))]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64, UnwinderX86_64 as Unwinder};

/// Frames kept of a stack.
const DEPTH: usize = 32;
/// Stacks that are told apart; what comes later has none.
const MOST_STACKS: usize = 1 << 16;
/// Files that frames are told to be in.
const MOST_FILES: usize = u16::MAX as usize;
/// Bytes of an address that a frame outside any file keeps.
const ADDRESS: u64 = (1 << 48) - 1;
/// Tables for unwinding that are larger than this are left alone: the largest browsers' have a tenth.
const LARGEST_TABLE: u64 = 256 << 20;

/// Every watched process's memory, as far as it is code.
#[derive(Default)]
pub(super) struct Spaces {
    processes: HashMap<u32, Space>,
    files: HashMap<PathBuf, Arc<CodeFile>>,
    /// Where each numbered file is.
    pub(super) paths: BTreeMap<u16, PathBuf>,
    numbers: HashMap<Vec<Frame>, u32>,
    cache: Cache,
}

#[derive(Clone, Default)]
struct Space {
    /// By their beginnings.
    mapped: BTreeMap<u64, Loaded>,
    unwinder: Unwinder<Arc<[u8]>>,
}

#[derive(Clone)]
struct Loaded {
    end: u64,
    /// What is to be taken from an address to have it as the file does.
    bias: u64,
    file: Arc<CodeFile>,
}

/// A file with code.
struct CodeFile {
    number: u16,
    /// The address of its first byte in memory, as the file has it.
    base: u64,
    /// Its code: beginnings in the file, bytes, and addresses.
    segments: Vec<(u64, u64, u64)>,
    tables: ExplicitModuleSectionInfo<Arc<[u8]>>,
}

impl Spaces {
    /// Takes what a process has loaded already.
    pub(super) fn adopt(&mut self, process: u32) {
        for mapping in fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default().lines() {
            if let Some(mapping) = code(mapping) {
                self.map(process, &mapping);
            }
        }
    }

    pub(super) fn map(&mut self, process: u32, mapping: &Mapping) {
        let Some(file) = self.file(process, &mapping.path) else { return };
        let Some(address) = file.address(mapping.offset) else { return };
        let (start, end) = (mapping.start, mapping.start.saturating_add(mapping.len));
        let bias = start.wrapping_sub(address);
        let space = self.processes.entry(process).or_default();
        let tables = file.tables.clone();
        let module = Module::new(String::new(), start..end, bias.wrapping_add(tables.base_svma), tables);
        space.unwinder.remove_module(start);
        space.unwinder.add_module(module);
        space.mapped.insert(start, Loaded { end, bias, file });
    }

    /// A child begins with what its parent has.
    pub(super) fn fork(&mut self, process: u32, parent: u32) {
        if let Some(space) = self.processes.get(&parent).cloned() {
            self.processes.insert(process, space);
        }
    }

    /// A program that is executed, or the end of one, leaves nothing of what was loaded.
    pub(super) fn clear(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    /// The number of a stack; 0 where there is none.
    pub(super) fn stack(&mut self, process: u32, stack: &Stack) -> u32 {
        let addresses = match &stack.copy {
            _ if !stack.chain.is_empty() => stack.chain.clone(),
            Some(copy) => self.unwound(process, copy),
            None => return 0,
        };
        let space = self.processes.get(&process);
        let frames: Vec<_> = addresses.into_iter().take(DEPTH).map(|address| frame(space, address)).collect();
        let next = self.numbers.len() as u32 + 1;
        match self.numbers.get(&frames) {
            Some(number) => *number,
            None if self.numbers.len() < MOST_STACKS && !frames.is_empty() => {
                self.numbers.insert(frames, next);
                next
            }
            None => 0,
        }
    }

    /// All stacks by their numbers.
    pub(super) fn stacks(&self) -> BTreeMap<u32, Vec<Frame>> {
        self.numbers.iter().map(|(frames, number)| (*number, frames.clone())).collect()
    }

    /// Return addresses by the tables that exceptions use; frame pointers where a file has none.
    #[cfg(not(target_arch = "aarch64"))]
    fn unwound(&mut self, process: u32, copy: &Copied) -> Vec<u64> {
        let space = self.processes.entry(process).or_default();
        let registers = UnwindRegsX86_64::new(copy.ip, copy.sp, copy.bp);
        let mut read = |address| copy.at(address).map(u64::from_ne_bytes).ok_or(());
        let mut frames = space.unwinder.iter_frames(copy.ip, registers, &mut self.cache, &mut read);
        let mut addresses = Vec::new();
        while let Ok(Some(frame)) = frames.next()
            && addresses.len() < DEPTH
        {
            addresses.push(frame.address());
        }
        addresses
    }

    /// No copies are taken there.
    #[cfg(target_arch = "aarch64")]
    fn unwound(&mut self, _process: u32, _copy: &Copied) -> Vec<u64> {
        Vec::new()
    }

    fn file(&mut self, process: u32, path: &Path) -> Option<Arc<CodeFile>> {
        // `[vdso]`, `//anon`, and the like.
        let name = path.as_os_str().as_encoded_bytes();
        if !name.starts_with(b"/") || name.starts_with(b"//") {
            return None;
        }
        let path = reachable(process, path);
        if let Some(file) = self.files.get(&path) {
            return Some(Arc::clone(file));
        }
        if self.files.len() == MOST_FILES {
            return None;
        }
        let number = self.files.len() as u16 + 1;
        let file = Arc::new(CodeFile::read(&path, number)?);
        self.paths.insert(number, path.clone());
        self.files.insert(path, Arc::clone(&file));
        Some(file)
    }
}

/// Containers have other files at the same paths.
fn reachable(process: u32, path: &Path) -> PathBuf {
    let mounts = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    match mounts(&process.to_string()) {
        Some(theirs) if Some(&theirs) != mounts("self").as_ref() => {
            Path::new(&format!("/proc/{process}/root")).join(path.strip_prefix("/").unwrap_or(path))
        }
        _ => path.to_owned(),
    }
}

/// `7f0c8a000000-7f0c8a028000 r-xp 00028000 fe:00 1234    /usr/lib/libc.so.6`
fn code(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let start = hex(start)?;
    words.next().filter(|rights| rights.contains('x'))?;
    let offset = hex(words.next()?)?;
    let path = words.nth(2)?.trim_start();
    Some(Mapping { start, len: hex(end)?.checked_sub(start)?, offset, path: path.into() })
}

fn frame(space: Option<&Space>, address: u64) -> Frame {
    let loaded = space.and_then(|space| space.mapped.range(..=address).next_back());
    match loaded {
        Some((_, loaded)) if address < loaded.end => Frame {
            module: loaded.file.number,
            offset: address.wrapping_sub(loaded.bias).wrapping_sub(loaded.file.base) & ADDRESS,
        },
        _ => Frame { module: 0, offset: address & ADDRESS },
    }
}

impl CodeFile {
    fn read(path: &Path, number: u16) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let object = object::File::parse(&cache).ok()?;
        let base = object.segments().map(|part| part.address() & !(part.align().max(1) - 1)).min()?;
        let segments = object.segments().filter(|part| part.permissions().executable()).map(|part| {
            let (from, len) = part.file_range();
            (from, len, part.address())
        });
        let section = |name: &str| {
            let section = object.section_by_name(name).filter(|section| section.size() <= LARGEST_TABLE)?;
            let range = section.address()..section.address().checked_add(section.size())?;
            Some((range, section))
        };
        let bytes = |name: &str| section(name)?.1.uncompressed_data().ok().map(Arc::from);
        let range = |name: &str| section(name).map(|(range, _)| range);
        let tables = ExplicitModuleSectionInfo {
            base_svma: base,
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: bytes(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: bytes(".eh_frame_hdr"),
            debug_frame: bytes(".debug_frame"),
            ..ExplicitModuleSectionInfo::default()
        };
        Some(Self { number, base, segments: segments.collect(), tables })
    }

    /// The address, as the file has it, of a place in its code. Mappings begin at whole pages, so with up to one that is
    /// before the code.
    fn address(&self, offset: u64) -> Option<u64> {
        let ends_behind = |(from, len, _): &&(u64, u64, u64)| offset < from.saturating_add(*len);
        let (from, _, address) = self.segments.iter().find(ends_behind)?;
        Some(address.wrapping_add(offset).wrapping_sub(*from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_taken_of_a_map() {
        let line = "7f0c8a000000-7f0c8a028000 r-xp 00028000 fe:00 1234    /usr/lib/a b.so";
        let mapping = Mapping {
            start: 0x7f0c_8a00_0000,
            len: 0x28000,
            offset: 0x28000,
            path: "/usr/lib/a b.so".into(),
        };
        assert_eq!(code(line), Some(mapping));
        assert_eq!(code(&line.replace("r-xp", "rw-p")), None);
        assert_eq!(code("7ffd-7fff r-xp 0 00:00 0"), None, "without a file");
    }

    #[test]
    fn a_function_of_this_process_is_found_in_its_file() {
        let mut spaces = Spaces::default();
        let me = std::process::id();
        spaces.adopt(me);
        let here = only_code_is_taken_of_a_map as fn() as usize as u64;
        let chain = Stack { chain: vec![here, 0x10], copy: None };
        let number = spaces.stack(me, &chain);
        assert_eq!(spaces.stack(me, &chain), number, "the same stack has the same number");
        let stacks = spaces.stacks();
        let [frame, nowhere] = stacks[&number][..] else { panic!("{stacks:?}") };
        assert_eq!(spaces.paths[&frame.module], std::env::current_exe().expect("its file"));
        assert_eq!(nowhere, Frame { module: 0, offset: 0x10 });
        spaces.clear(me);
        let after = spaces.stack(me, &chain);
        assert_eq!(spaces.stacks()[&after][0].module, 0, "nothing is loaded any more");
    }
}
