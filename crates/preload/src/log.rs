//! The memory that is shared with `tcpwhy run`, and this thread's part of it.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::format::{CHUNK, CHUNK_HEADER, MAGIC, NAME, Record, header};
use crate::{fix, memory, python, stack, sys};

const SEEK_END: c_int = 2;
const READ_WRITE: c_int = 3;
const MAP_SHARED: c_int = 1;
const MAP_PRIVATE_ANONYMOUS: c_int = 0x22;
const MADV_DONTDUMP: c_int = 16;
const MADV_WIPEONFORK: c_int = 18;
const PAGE: usize = 4096;

/// The shared memory; null where nobody records.
static MEMORY: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static LEN: AtomicUsize = AtomicUsize::new(0);

/// Points to the number of the process that this memory belongs to, on a page that the kernel wipes in every child that
/// gets a copy of it: 0 there says that this is a new process, however it was made. A child of `vfork` shares it.
static OWNER: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());

/// A thread's chunk.
struct Thread {
    /// The process that took it.
    owner: Cell<u32>,
    chunk: Cell<*mut u8>,
    used: Cell<usize>,
    /// The recorder is at work, and what comes now comes from a signal handler.
    busy: Cell<bool>,
}

thread_local! {
    // Constant and without a destructor: no allocation, no registration.
    static THREAD: Thread = const {
        Thread {
            owner: Cell::new(0),
            chunk: Cell::new(core::ptr::null_mut()),
            used: Cell::new(CHUNK),
            busy: Cell::new(false),
        }
    };
}

extern "C" fn attach() {
    let errno = sys::errno();
    // Without memory to record to, every function hands its call on.
    let _ = try_attach();
    sys::set_errno(errno);
}

/// Called by the loader before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static ATTACH: extern "C" fn() = attach;

fn try_attach() -> Option<()> {
    let fd = memory::open()?;
    // SAFETY: the descriptor is this function's own; the mappings are new. The recording's memory is as long as the file,
    // which cannot become shorter, and the owner's page is longer than its number.
    unsafe {
        let len = usize::try_from(sys::lseek(fd, 0, SEEK_END)).unwrap_or(0);
        let memory = sys::mmap(core::ptr::null_mut(), len, READ_WRITE, MAP_SHARED, fd, 0);
        crate::close_quietly(fd);
        let page = sys::mmap(core::ptr::null_mut(), PAGE, READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0);
        if memory as isize == -1 || page as isize == -1 || len < CHUNK || *memory.cast::<u64>() != MAGIC {
            return None;
        }
        sys::madvise(memory, len, MADV_DONTDUMP);
        sys::madvise(page, PAGE, MADV_WIPEONFORK);
        LEN.store(len, Ordering::Relaxed);
        OWNER.store(page.cast(), Ordering::Relaxed);
        MEMORY.store(memory.cast(), Ordering::Release);
    }
    stack::read_environment();
    if stack::wanted() {
        python::look();
    }
    fix::read_environment();
    word(header::PROGRAMS)?.fetch_add(1, Ordering::Relaxed);
    Some(())
}

/// Whether calls are recorded at all.
#[inline(always)]
pub(crate) fn attached() -> bool {
    !MEMORY.load(Ordering::Relaxed).is_null()
}

/// A word of the header.
pub(crate) fn word(at: usize) -> Option<&'static AtomicU64> {
    let memory = MEMORY.load(Ordering::Acquire);
    if memory.is_null() {
        return None;
    }
    // SAFETY: inside the header, aligned, mapped until the process ends, and only accessed atomically.
    Some(unsafe { AtomicU64::from_ptr(memory.cast::<u64>().add(at)) })
}

/// The process that this memory belongs to.
#[inline(always)]
pub(crate) fn owner() -> u32 {
    // SAFETY: set before the memory was; mapped until the process ends.
    let owner = unsafe { &*OWNER.load(Ordering::Relaxed) };
    match owner.load(Ordering::Relaxed) {
        0 => adopt(owner),
        process => process,
    }
}

#[cold]
fn adopt(owner: &AtomicU32) -> u32 {
    // SAFETY: takes nothing and cannot fail.
    let process = unsafe { sys::getpid() } as u32;
    // Another thread of the parent may have held it.
    stack::unlock();
    owner.store(process, Ordering::Relaxed);
    process
}

/// Whether this is a child of `vfork`, whose descriptors are its own while its memory is its parent's.
pub(crate) fn borrowed() -> bool {
    // SAFETY: takes nothing and cannot fail.
    owner() != unsafe { sys::getpid() } as u32
}

/// Runs `record` with the pen of this thread, and leaves `errno` alone. None where nobody records, or the pen is in use.
#[inline(always)]
pub(crate) fn with<T>(record: impl FnOnce(&Pen) -> T) -> Option<T> {
    if !attached() {
        return None;
    }
    let errno = sys::errno();
    let done = THREAD.with(|thread| {
        if thread.busy.replace(true) {
            return None;
        }
        let done = record(&Pen { thread });
        thread.busy.set(false);
        Some(done)
    });
    sys::set_errno(errno);
    done
}

/// Counts a call of a signal handler that interrupted the recorder.
#[cold]
pub(crate) fn miss() {
    if let Some(word) = word(header::INTERRUPTED) {
        word.fetch_add(1, Ordering::Relaxed);
    }
}

/// The right to write to this thread's chunk.
pub(crate) struct Pen<'a> {
    thread: &'a Thread,
}

impl Pen<'_> {
    /// Writes a record of this kind: its words, then bytes. `detail` is kept in its first word's second byte.
    #[inline(always)]
    pub(crate) fn write(&self, record: Record, detail: u8, words: &[u64], bytes: &[u8]) {
        let len = 8 + size_of_val(words) + bytes.len().next_multiple_of(8);
        let Some(at) = self.reserve(len) else {
            return;
        };
        let first = record as u64 | u64::from(detail) << 8 | (len as u64) << 32;
        // SAFETY: `reserve` has found `len` bytes in this thread's chunk, aligned to eight; nobody reads them before
        // `publish`. The memory was zero, so padding is.
        unsafe {
            at.cast::<u64>().write(first);
            core::ptr::copy_nonoverlapping(words.as_ptr(), at.add(8).cast(), words.len());
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), at.add(8 + size_of_val(words)), bytes.len());
        }
        self.publish(len);
    }

    #[inline(always)]
    fn reserve(&self, len: usize) -> Option<*mut u8> {
        let thread = self.thread;
        if thread.owner.get() != owner() || CHUNK - thread.used.get() < len {
            self.next_chunk(len)?;
        }
        // SAFETY: `used` bytes and `len` more are inside the chunk.
        Some(unsafe { thread.chunk.get().add(thread.used.get()) })
    }

    /// A process that is killed now leaves a whole record or none.
    #[inline(always)]
    fn publish(&self, len: usize) {
        let thread = self.thread;
        thread.used.set(thread.used.get() + len);
        // SAFETY: the chunk's third word, aligned; it is only accessed atomically while processes run.
        let used = unsafe { AtomicU32::from_ptr(thread.chunk.get().cast::<u32>().add(2)) };
        used.store((thread.used.get() - CHUNK_HEADER) as u32, Ordering::Release);
    }

    #[cold]
    fn next_chunk(&self, len: usize) -> Option<()> {
        let memory = MEMORY.load(Ordering::Acquire);
        let room = LEN.load(Ordering::Relaxed) / CHUNK - 1;
        let chunks = word(header::CHUNKS)?;
        // Looked at first, so that the count cannot run over however many calls are lost.
        if chunks.load(Ordering::Relaxed) >= room as u64 || len > CHUNK - CHUNK_HEADER {
            word(header::LOST)?.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let number = chunks.fetch_add(1, Ordering::Relaxed) as usize;
        if number >= room {
            word(header::LOST)?.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let thread = self.thread;
        let owner = owner();
        // SAFETY: chunk `number` is inside the memory and was given to nobody else.
        unsafe {
            let chunk = memory.add((number + 1) * CHUNK);
            chunk.cast::<u32>().write(owner);
            chunk.cast::<u32>().add(1).write(sys::thread());
            write_name(chunk.add(CHUNK_HEADER - NAME));
            thread.chunk.set(chunk);
        }
        thread.used.set(CHUNK_HEADER);
        thread.owner.set(owner);
        Some(())
    }
}

/// Writes what the program was started as, without the folder, as the kernel names processes: at most 15 bytes. A name that
/// it gives itself later is not looked for, which would be a system call of its own.
///
/// # Safety
/// There are [`NAME`] bytes at `at`, all zero.
unsafe fn write_name(at: *mut u8) {
    // SAFETY: the kernel's text, which ends with a zero and stays where it is; of it no more than the room is copied.
    unsafe {
        let path = sys::getauxval(sys::AT_EXECFN) as *const c_char;
        if path.is_null() {
            return;
        }
        let path = CStr::from_ptr(path).to_bytes();
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        core::ptr::copy_nonoverlapping(name.as_ptr(), at, name.len().min(NAME - 1));
    }
}
