//! Call stacks: unwound once by the tables that exceptions use, and recognised again by where their return addresses lie.

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::format::{Record, header};
use crate::log::{self, Pen};
use crate::{python, sys};

/// Frames kept of a stack.
const DEPTH: usize = 32;
/// Stacks that a process can tell apart; what comes later has none.
const STACKS: usize = 4096;
/// Stacks of one call site that are compared.
const PROBES: usize = 32;
/// Modules that a process can tell apart; frames in others are kept as addresses.
const MODULES: usize = 512;
/// How often a thread looks whether another has unwound its stack.
const PATIENCE: u32 = 2000;
const LONGEST_PATH: usize = 4096;
const AT_PHDR: usize = 3;
/// What greenlet, by which Python's gevent and eventlet run, calls its library.
const GREENLETS: [&[u8]; 2] = [b"_greenlet.", b"greenlet."];
/// Low bits of a frame that are its offset in the module.
const OFFSET: u64 = (1 << 48) - 1;

/// A stack that was seen: the frames' return addresses, and how far above the hook's frame each lay.
#[derive(Clone, Copy)]
struct Seen {
    depth: usize,
    distance: [u32; DEPTH],
    address: [usize; DEPTH],
}

const NOTHING: Seen = Seen { depth: 0, distance: [0; DEPTH], address: [0; DEPTH] };

struct Slot {
    /// Set last, and from then on the stack does not change; 0 while empty.
    number: AtomicU32,
    seen: UnsafeCell<Seen>,
}

struct Known {
    base: usize,
    number: u32,
}

struct Table {
    slots: [Slot; STACKS],
    /// Written under the lock only.
    modules: UnsafeCell<[Known; MODULES]>,
}

// SAFETY: a slot is written under the lock before its number is published, and only read afterwards; modules are
// accessed under the lock only.
unsafe impl Sync for Table {}

static TABLE: Table = Table {
    slots: [const { Slot { number: AtomicU32::new(0), seen: UnsafeCell::new(NOTHING) } }; STACKS],
    modules: UnsafeCell::new([const { Known { base: 0, number: 0 } }; MODULES]),
};
static LOCKED: AtomicBool = AtomicBool::new(false);
static WANTED: AtomicBool = AtomicBool::new(false);

/// `TCPWHY_STACKS=0` asks for none.
pub(crate) fn read_environment() {
    // SAFETY: the name ends with a zero, and so does the value.
    let none = unsafe {
        let value = sys::getenv(c"TCPWHY_STACKS".as_ptr());
        !value.is_null() && *value == b'0' as c_char
    };
    WANTED.store(!none, Ordering::Relaxed);
}

/// Whether any stack is.
#[inline(always)]
pub(crate) fn wanted() -> bool {
    WANTED.load(Ordering::Relaxed)
}

/// In a new process, whose only thread cannot hold the lock.
pub(crate) fn unlock() {
    LOCKED.store(false, Ordering::Relaxed);
}

/// The frame of the function that this is inlined into, which the build gives a frame pointer: the word above it is its
/// return address.
#[inline(always)]
pub(crate) fn frame() -> usize {
    let frame: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags));
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mov {}, x29", out(reg) frame, options(nomem, nostack, preserves_flags));
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        frame = 0;
    }
    frame
}

/// The number of the stack above a hook's frame; 0 where none is wanted or there is no room.
#[inline(always)]
pub(crate) fn number(pen: &Pen<'_>, frame: usize) -> u32 {
    if frame == 0 || !wanted() {
        return 0;
    }
    // SAFETY: the hook's frame, whose return address lies above the saved frame pointer.
    let caller = unsafe { *((frame + size_of::<usize>()) as *const usize) };
    for slot in probes(caller) {
        match slot.number.load(Ordering::Acquire) {
            0 => break,
            // SAFETY: published, so it does not change.
            number if same(unsafe { &*slot.seen.get() }, frame, caller) => return number,
            _ => {}
        }
    }
    unwind(pen, frame, caller)
}

fn probes(caller: usize) -> impl Iterator<Item = &'static Slot> {
    let first = caller.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (first..first + PROBES).map(|at| &TABLE.slots[at % STACKS])
}

/// Whether the same return addresses lie at the same places, innermost first: a place is looked at only when all inner
/// frames are the same, so it is part of the stack.
#[inline(always)]
fn same(seen: &Seen, frame: usize, caller: usize) -> bool {
    seen.address[0] == caller
        && (1..seen.depth).all(|at| {
            // SAFETY: as above, a word of this thread's stack.
            seen.address[at] == unsafe { *((frame + seen.distance[at] as usize) as *const usize) }
        })
}

#[cold]
fn unwind(pen: &Pen<'_>, frame: usize, caller: usize) -> u32 {
    let mut walk = Walk { frame, seen: NOTHING };
    // SAFETY: `step` is called during this call with the pointer to `walk`.
    unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    if walk.seen.depth == 0 {
        // Without tables, the caller is known all the same.
        walk.seen.depth = 1;
        walk.seen.address[0] = caller;
    }
    if !lock() {
        return 0;
    }
    let number = keep(pen, &walk.seen, caller);
    unlock_release();
    number
}

fn keep(pen: &Pen<'_>, seen: &Seen, caller: usize) -> u32 {
    let Some(slot) = probes(caller).find(|slot| slot.number.load(Ordering::Relaxed) == 0) else {
        return 0;
    };
    let Some(numbers) = log::word(header::STACKS) else {
        return 0;
    };
    let number = numbers.fetch_add(1, Ordering::Relaxed) as u32 + 1;
    let mut words = [0_u64; DEPTH + 1];
    words[0] = u64::from(number);
    for at in 0..seen.depth {
        words[at + 1] = place(pen, seen.address[at]);
    }
    pen.write(Record::Stack, 0, &words[..=seen.depth], &[]);
    // SAFETY: under the lock, and nobody reads it before it is published.
    unsafe { *slot.seen.get() = *seen };
    slot.number.store(number, Ordering::Release);
    number
}

/// A return address as module and offset.
fn place(pen: &Pen<'_>, address: usize) -> u64 {
    let mut info = core::mem::MaybeUninit::<sys::DlInfo>::zeroed();
    // SAFETY: writes to `info`, for which zeros are good too.
    let (found, info) = unsafe {
        let found = sys::dladdr(address as *const c_void, info.as_mut_ptr());
        (found, info.assume_init())
    };
    let base = info.base as usize;
    if found == 0 || info.name.is_null() {
        return address as u64 & OFFSET;
    }
    let number = module(pen, base, info.name);
    if number == 0 {
        address as u64 & OFFSET
    } else {
        u64::from(number) << 48 | ((address - base) as u64 & OFFSET)
    }
}

fn module(pen: &Pen<'_>, base: usize, name: *const c_char) -> u32 {
    // SAFETY: under the lock.
    let modules = unsafe { &mut *TABLE.modules.get() };
    let Some(known) = modules.iter_mut().find(|known| known.number == 0 || known.base == base) else {
        return 0;
    };
    if known.number == 0 {
        let Some(numbers) = log::word(header::MODULES) else {
            return 0;
        };
        let number = numbers.fetch_add(1, Ordering::Relaxed) + 1;
        // A frame has 16 bits for it.
        let Ok(number) = u16::try_from(number) else {
            return 0;
        };
        *known = Known { base, number: u32::from(number) };
        write_module(pen, known, name);
    }
    known.number
}

fn write_module(pen: &Pen<'_>, known: &Known, name: *const c_char) {
    let mut path = [0_u8; LONGEST_PATH];
    let words = [u64::from(known.number)];
    if known.base == program() {
        // The program's own name is as it was called; the link has its file.
        // SAFETY: writes at most that many bytes to `path`.
        let len = unsafe { sys::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr(), path.len()) };
        pen.write(Record::Module, 0, &words, &path[..usize::try_from(len).unwrap_or(0)]);
        return;
    }
    // SAFETY: the loader's name for the module, which ends with a zero.
    let name = unsafe { core::ffi::CStr::from_ptr(name) };
    python::look_in(name);
    let name = name.to_bytes();
    pen.write(Record::Module, 0, &words, &name[..name.len().min(LONGEST_PATH)]);
}

/// Where the program itself was loaded.
fn program() -> usize {
    let mut info = core::mem::MaybeUninit::<sys::DlInfo>::zeroed();
    // SAFETY: the kernel says where the program's headers are; `dladdr` writes to `info`, for which zeros are good.
    unsafe {
        sys::dladdr(sys::getauxval(AT_PHDR) as *const c_void, info.as_mut_ptr());
        info.assume_init().base as usize
    }
}

/// Never waits for good: the holder may be what a signal handler interrupted.
fn lock() -> bool {
    for _ in 0..PATIENCE {
        if LOCKED.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return true;
        }
        core::hint::spin_loop();
    }
    false
}

fn unlock_release() {
    LOCKED.store(false, Ordering::Release);
}

struct Walk {
    frame: usize,
    seen: Seen,
}

const GO_ON: c_int = 0;
const END: c_int = 5;

extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: the `Walk` that `unwind` passed, which nobody else uses meanwhile.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    // SAFETY: the unwinder's context, during its call.
    let (address, stack) = unsafe { (_Unwind_GetIP(context), _Unwind_GetCFA(context)) };
    // Frames of this library come first: theirs lie below the hook's.
    if stack <= walk.frame {
        return GO_ON;
    }
    let seen = &mut walk.seen;
    if address == 0 || seen.depth == DEPTH || begins_a_greenlet(address) {
        return END;
    }
    let Some(distance) = distance(walk.frame, stack, address) else {
        return END;
    };
    seen.address[seen.depth] = address;
    seen.distance[seen.depth] = distance;
    seen.depth += 1;
    GO_ON
}

/// Whether a greenlet begins there: above its first function, which is in greenlet's library, lies what other greenlets
/// have left on the same stack, and the unwinder would follow whatever that is.
fn begins_a_greenlet(address: usize) -> bool {
    let mut info = core::mem::MaybeUninit::<sys::DlInfo>::zeroed();
    // SAFETY: as in `place`; the name ends with a zero.
    let path = unsafe {
        let found = sys::dladdr(address as *const c_void, info.as_mut_ptr());
        let info = info.assume_init();
        if found == 0 || info.name.is_null() {
            return false;
        }
        core::ffi::CStr::from_ptr(info.name).to_bytes()
    };
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    GREENLETS.iter().any(|library| name.starts_with(library))
}

/// How far above the hook's frame a return address lies: on x86-64 just below where its caller's stack ended.
#[cfg(target_arch = "x86_64")]
fn distance(frame: usize, stack: usize, address: usize) -> Option<u32> {
    let at = stack - size_of::<usize>();
    // SAFETY: the unwinder has just read the return address there, or near there.
    let lies = unsafe { *(at as *const usize) } == address;
    // What lies elsewhere (above a signal handler) could not be recognised again.
    if lies { u32::try_from(at - frame).ok() } else { None }
}

/// Elsewhere return addresses have no fixed place: a stack is its innermost frame.
#[cfg(not(target_arch = "x86_64"))]
fn distance(frame: usize, stack: usize, _: usize) -> Option<u32> {
    let _ = (frame, stack);
    None
}

// Of libgcc_s, which Rust's own library needs anyway.
unsafe extern "C" {
    fn _Unwind_Backtrace(step: extern "C" fn(*mut c_void, *mut c_void) -> c_int, data: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}
