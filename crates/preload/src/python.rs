//! The script's own stack, where the program is `CPython`: recognised again by its frames' code objects and positions.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::cpython::{Frames, Layout, Place, Text, mix};
use crate::format::{Record, header};
use crate::log::{self, Pen};
use crate::sys;

/// Frames kept of a stack. More than natively: a library of a library in the standard library is common.
const DEPTH: usize = 32;
/// Stacks, and functions, that a process can tell apart; what comes later has none.
const STACKS: usize = 16384;
const CODES: usize = 16384;
/// Slots that a number may be in.
const PROBES: usize = 32;
/// What libraries with an interpreter in them are called.
const LIBRARY: &[u8] = b"libpython3";

type IsInitialized = unsafe extern "C" fn() -> c_int;
type GetVersion = unsafe extern "C" fn() -> *const c_char;
type ThisThreadState = unsafe extern "C" fn() -> *const c_void;
type LineAt = unsafe extern "C" fn(*const c_void, c_int) -> c_int;

/// The interpreter in this process.
#[derive(Clone, Copy)]
struct Runtime {
    layout: &'static Layout,
    is_initialized: IsInitialized,
    this_thread_state: ThisThreadState,
    /// `PyCode_Addr2Line`, which reads what is constant in a code object and nothing else.
    line_at: LineAt,
    code_type: usize,
}

struct Found {
    is_there: AtomicBool,
    runtime: UnsafeCell<Option<Runtime>>,
}

// SAFETY: written once, under a lock, before `is_there` says so, and only read from then on.
unsafe impl Sync for Found {}

static FOUND: Found = Found { is_there: AtomicBool::new(false), runtime: UnsafeCell::new(None) };

/// Numbers by keys, 0 being none. Nothing is ever taken out.
struct Numbers<const ROOM: usize>([Slot; ROOM]);

struct Slot {
    key: AtomicU64,
    number: AtomicU32,
}

static STACK_NUMBERS: Numbers<STACKS> = Numbers::new();
static CODE_NUMBERS: Numbers<CODES> = Numbers::new();

impl<const ROOM: usize> Numbers<ROOM> {
    const fn new() -> Self {
        Self([const { Slot { key: AtomicU64::new(0), number: AtomicU32::new(0) } }; ROOM])
    }

    fn slots(&self, key: u64) -> impl Iterator<Item = &Slot> {
        let first = key as usize;
        (0..PROBES).map(move |at| &self.0[first.wrapping_add(at) % ROOM])
    }

    #[inline(always)]
    fn get(&self, key: u64) -> Option<u32> {
        for slot in self.slots(key) {
            match slot.key.load(Ordering::Relaxed) {
                0 => return None,
                there if there == key => {
                    return Some(slot.number.load(Ordering::Relaxed)).filter(|&it| it != 0);
                }
                _ => {}
            }
        }
        None
    }

    /// Gives a key the next number of those that this word of the header counts, if there is room for it. Two threads that
    /// do so at once get a number each; both are good, and one of them stays.
    fn give(&self, key: u64, counter: usize) -> Option<u32> {
        let take = |slot: &&Slot| {
            let was = slot.key.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed);
            was.is_ok() || was == Err(key)
        };
        let slot = self.slots(key).find(take)?;
        let number = log::word(counter)?.fetch_add(1, Ordering::Relaxed) as u32 + 1;
        slot.number.store(number, Ordering::Relaxed);
        Some(number)
    }
}

/// Looks for an interpreter among what the program was linked with.
pub(crate) fn look() {
    keep(core::ptr::null_mut());
}

/// Looks for one in a library that was loaded later, under the lock of the table of modules.
pub(crate) fn look_in(library: &CStr) {
    let path = library.to_bytes();
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    if FOUND.is_there.load(Ordering::Relaxed) || !name.starts_with(LIBRARY) {
        return;
    }
    // SAFETY: nothing is loaded, what is there is only asked for. It is never closed: the functions stay where they are.
    let handle = unsafe { sys::dlopen(library.as_ptr(), sys::RTLD_LAZY | sys::RTLD_NOLOAD) };
    if !handle.is_null() {
        keep(handle);
    }
}

fn keep(library: *mut c_void) {
    if let Some(runtime) = find(library) {
        // SAFETY: the only write: at the beginning, when there is one thread, or else under that lock.
        unsafe { *FOUND.runtime.get() = Some(runtime) };
        FOUND.is_there.store(true, Ordering::Release);
    }
}

/// The interpreter in a library, if it is one that is known.
fn find(library: *mut c_void) -> Option<Runtime> {
    let version = sys::symbol(library, c"Py_GetVersion")?;
    // SAFETY: CPython's functions of these names have these types in all its versions. The version is a constant text.
    unsafe {
        let version = CStr::from_ptr(core::mem::transmute::<*mut c_void, GetVersion>(version)());
        Some(Runtime {
            layout: Layout::of(version)?,
            is_initialized: core::mem::transmute::<*mut c_void, IsInitialized>(sys::symbol(
                library,
                c"Py_IsInitialized",
            )?),
            this_thread_state: core::mem::transmute::<*mut c_void, ThisThreadState>(sys::symbol(
                library,
                c"PyGILState_GetThisThreadState",
            )?),
            line_at: core::mem::transmute::<*mut c_void, LineAt>(sys::symbol(library, c"PyCode_Addr2Line")?),
            code_type: sys::symbol(library, c"PyCode_Type")? as usize,
        })
    }
}

impl Runtime {
    /// The frames of this thread, if it runs Python.
    ///
    /// When an interpreter ends, the states of threads that it leaves behind (daemons) go, and before they do it counts as
    /// no longer initialised. So this is asked first, and on the way into a call: such a thread has just given up the lock
    /// that the end needs, which then has yet to begin.
    #[inline(always)]
    fn frames(&self) -> Option<impl Iterator<Item = Place> + use<>> {
        // SAFETY: both may be called by every thread at any time, with or without the interpreter's lock. A state that is
        // given is this thread's.
        unsafe {
            if (self.is_initialized)() == 0 {
                return None;
            }
            let thread = (self.this_thread_state)() as usize;
            (thread != 0).then(|| Frames::of(thread, self.layout, self.code_type).take(DEPTH))
        }
    }
}

/// The number of the stack of the script that this thread runs; 0 where it runs none or there is no room.
#[inline(always)]
pub(crate) fn number(pen: &Pen<'_>) -> u32 {
    if !FOUND.is_there.load(Ordering::Acquire) {
        return 0;
    }
    // SAFETY: it is there, so it does not change.
    let Some(runtime) = (unsafe { &*FOUND.runtime.get() }) else {
        return 0;
    };
    let Some(frames) = runtime.frames() else {
        return 0;
    };
    let key = frames.fold(0, |key: u64, place| mix(key, place.key() as usize));
    // Of no frame at all.
    if key == 0 {
        return 0;
    }
    STACK_NUMBERS.get(key).or_else(|| learn(pen, runtime, key)).unwrap_or(0)
}

/// Writes a stack down that was not met before.
#[cold]
fn learn(pen: &Pen<'_>, runtime: &Runtime, key: u64) -> Option<u32> {
    // All frames first, for the same reason: their code objects stay.
    let mut places = [None; DEPTH];
    for (place, found) in places.iter_mut().zip(runtime.frames()?) {
        *place = Some(found);
    }
    let mut words = [0_u64; DEPTH + 1];
    let mut used = 1;
    for (word, place) in words.iter_mut().skip(1).zip(places.into_iter().flatten()) {
        let offset = place.offset();
        // SAFETY: a code object that a frame of this thread holds, and an offset in it.
        let line = offset.map_or(0, |at| unsafe { (runtime.line_at)(place.code() as *const c_void, at) });
        *word = u64::from(code(pen, place).unwrap_or(0)) << 32 | u64::from(line.max(0) as u32);
        used += 1;
    }
    let number = STACK_NUMBERS.give(key, header::SCRIPTS)?;
    words[0] = u64::from(number);
    pen.write(Record::Script, 0, words.get(..used)?, &[]);
    Some(number)
}

/// The number of a function, which is known by its names: its address may have been another's before. None where there is
/// no room, or it has no names.
fn code(pen: &Pen<'_>, place: Place) -> Option<u32> {
    let mut names = Text::new();
    place.write_names(&mut names)?;
    let key = names.bytes().iter().fold(0, |key, byte| mix(key, usize::from(*byte)));
    CODE_NUMBERS.get(key).or_else(|| {
        let number = CODE_NUMBERS.give(key, header::CODES)?;
        pen.write(Record::Code, 0, &[u64::from(number)], names.bytes());
        Some(number)
    })
}
