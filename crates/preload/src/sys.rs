//! What is needed of the C library. Written down here since the command's build script compiles this crate alone.

use core::ffi::{c_char, c_int, c_long, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

pub(crate) const AF_INET: u16 = 2;
pub(crate) const AF_INET6: u16 = 10;
pub(crate) const SOL_SOCKET: c_int = 1;
pub(crate) const SO_PROTOCOL: c_int = 38;
pub(crate) const SO_COOKIE: c_int = 57;
pub(crate) const IPPROTO_TCP: c_int = 6;
pub(crate) const TCP_NODELAY: c_int = 1;
pub(crate) const TCP_CORK: c_int = 3;
pub(crate) const TCP_INFO: c_int = 11;
pub(crate) const TCP_QUICKACK: c_int = 12;
pub(crate) const MSG_MORE: c_int = 0x8000;
pub(crate) const SPLICE_F_MORE: u32 = 4;
pub(crate) const F_DUPFD: c_int = 0;
pub(crate) const F_DUPFD_CLOEXEC: c_int = 1030;
pub(crate) const EINPROGRESS: c_int = 115;
pub(crate) const ENOSYS: c_int = 38;
const CLOCK_REALTIME: c_int = 0;
const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;
pub(crate) const AT_EXECFN: usize = 31;
pub(crate) const RTLD_LAZY: c_int = 1;
pub(crate) const RTLD_NOLOAD: c_int = 4;
#[cfg(target_arch = "x86_64")]
const SYS_GETTID: c_long = 186;
#[cfg(not(target_arch = "x86_64"))]
const SYS_GETTID: c_long = 178;
#[cfg(target_arch = "x86_64")]
const SYS_FCNTL: c_long = 72;
#[cfg(not(target_arch = "x86_64"))]
const SYS_FCNTL: c_long = 25;
#[cfg(target_arch = "x86_64")]
const SYS_STATX: c_long = 332;
#[cfg(not(target_arch = "x86_64"))]
const SYS_STATX: c_long = 291;
const F_GET_SEALS: c_int = 1034;
const AT_EMPTY_PATH: c_int = 0x1000;
const STATX_UID: u32 = 8;
/// Bytes of `struct statx` (linux/stat.h), and where the owner is in it.
const STATX: usize = 256;
const STATX_OWNER: usize = 20;

#[repr(C)]
pub(crate) struct Iovec {
    base: *mut c_void,
    len: usize,
}

#[repr(C)]
pub(crate) struct Msghdr {
    name: *mut c_void,
    name_len: u32,
    iov: *mut Iovec,
    iov_len: usize,
    control: *mut c_void,
    control_len: usize,
    flags: c_int,
}

#[repr(C)]
pub(crate) struct Mmsghdr {
    header: Msghdr,
    len: u32,
}

#[repr(C)]
struct Timespec {
    sec: i64,
    nsec: i64,
}

#[repr(C)]
pub(crate) struct DlInfo {
    pub(crate) name: *const c_char,
    pub(crate) base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
    pub(crate) fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    pub(crate) fn getpid() -> c_int;
    pub(crate) fn getenv(name: *const c_char) -> *const c_char;
    pub(crate) fn getauxval(kind: usize) -> usize;
    pub(crate) fn readlink(path: *const c_char, buffer: *mut u8, size: usize) -> isize;
    pub(crate) fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
    pub(crate) fn openat(folder: c_int, path: *const c_char, flags: c_int, ...) -> c_int;
    pub(crate) fn pread(fd: c_int, buffer: *mut u8, size: usize, offset: i64) -> isize;
    pub(crate) fn geteuid() -> u32;
    pub(crate) fn lseek(fd: c_int, offset: i64, whence: c_int) -> i64;
    pub(crate) fn mmap(
        at: *mut c_void,
        len: usize,
        protection: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut c_void;
    pub(crate) fn madvise(at: *mut c_void, len: usize, advice: c_int) -> c_int;
    pub(crate) fn getsockname(fd: c_int, address: *mut c_void, len: *mut u32) -> c_int;
    pub(crate) fn getpeername(fd: c_int, address: *mut c_void, len: *mut u32) -> c_int;
    pub(crate) fn fileno(stream: *mut c_void) -> c_int;
}

/// The C library's `getsockopt`.
///
/// # Safety
/// As that.
pub(crate) unsafe fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut u32,
) -> c_int {
    type Function = unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut u32) -> c_int;
    static REAL: Real = Real::new(c"getsockopt");
    let Some(real) = REAL.get() else {
        return -1;
    };
    // SAFETY: the C library's function of this name has this type; the rest is the caller's promise.
    unsafe { core::mem::transmute::<*mut c_void, Function>(real)(fd, level, name, value, len) }
}

/// The next function of a name behind this library's own.
pub(crate) struct Real {
    name: &'static core::ffi::CStr,
    at: AtomicPtr<c_void>,
}

impl Real {
    pub(crate) const fn new(name: &'static core::ffi::CStr) -> Self {
        Self { name, at: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// None where the C library has no such function; then `errno` says so.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<*mut c_void> {
        let at = self.at.load(Ordering::Relaxed);
        if at.is_null() { self.find() } else { Some(at) }
    }

    #[cold]
    fn find(&self) -> Option<*mut c_void> {
        // SAFETY: the name ends with a zero.
        let at = unsafe { dlsym(RTLD_NEXT, self.name.as_ptr()) };
        self.at.store(at, Ordering::Relaxed);
        if at.is_null() {
            set_errno(ENOSYS);
            return None;
        }
        Some(at)
    }
}

/// A symbol of a library; of all that are loaded where `library` is null.
pub(crate) fn symbol(library: *mut c_void, name: &core::ffi::CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero, and a handle that `dlopen` gave stays open. That there is no such symbol is
    // nothing that the program should find when it asks for its own errors.
    let at = unsafe {
        let at = dlsym(library, name.as_ptr());
        if at.is_null() {
            dlerror();
        }
        at
    };
    (!at.is_null()).then_some(at)
}

#[inline(always)]
pub(crate) fn errno() -> c_int {
    // SAFETY: this thread's error number, always there.
    unsafe { *__errno_location() }
}

#[inline(always)]
pub(crate) fn set_errno(value: c_int) {
    // SAFETY: as above.
    unsafe { *__errno_location() = value }
}

/// Ns since the epoch, by the clock that stamps packets.
#[inline(always)]
pub(crate) fn now() -> u64 {
    let mut time = Timespec { sec: 0, nsec: 0 };
    // SAFETY: writes to `time`.
    unsafe { clock_gettime(CLOCK_REALTIME, &mut time) };
    (time.sec * 1_000_000_000 + time.nsec) as u64
}

pub(crate) fn thread() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { syscall(SYS_GETTID) as u32 }
}

/// What is promised of a memory file (`F_SEAL_SHRINK` and the like); negative of another file. By the system call, since
/// `fcntl` is this library's own.
pub(crate) fn seals(fd: c_int) -> c_int {
    // SAFETY: takes no memory.
    unsafe { syscall(SYS_FCNTL, fd, F_GET_SEALS) as c_int }
}

/// The user who owns an open file.
pub(crate) fn owner_of(fd: c_int) -> Option<u32> {
    let mut about = [0_u64; STATX / 8];
    // SAFETY: the path ends with a zero; writes a `struct statx` to `about`, which is as large and as aligned.
    let result =
        unsafe { syscall(SYS_STATX, fd, c"".as_ptr(), AT_EMPTY_PATH, STATX_UID, about.as_mut_ptr()) };
    // SAFETY: inside the structure, and any bits are a number.
    (result == 0).then(|| unsafe { about.as_ptr().cast::<u8>().add(STATX_OWNER).cast::<u32>().read() })
}

/// An integer option of a socket; none also where `fd` is no socket.
pub(crate) fn option<T: Copy + Default>(fd: c_int, level: c_int, name: c_int) -> Option<T> {
    let mut value = T::default();
    let mut len = size_of::<T>() as u32;
    // SAFETY: writes at most `len` bytes to `value`, an integer.
    let result = unsafe { getsockopt(fd, level, name, (&raw mut value).cast(), &mut len) };
    (result == 0 && len as usize == size_of::<T>()).then_some(value)
}

/// Bytes that a list of buffers (`struct iovec`) holds.
///
/// # Safety
/// As `writev(2)` asks; this runs after the kernel has accepted the same list.
pub(crate) unsafe fn total(iov: *const c_void, count: usize) -> u64 {
    let iov = iov.cast::<Iovec>();
    let mut sum = 0_u64;
    for at in 0..count {
        // SAFETY: the kernel has read these structures.
        sum = sum.saturating_add(unsafe { (*iov.add(at)).len } as u64);
    }
    sum
}

/// Bytes that a message (`struct msghdr`) holds.
///
/// # Safety
/// As [`total`].
pub(crate) unsafe fn message(header: *const c_void) -> u64 {
    let header = header.cast::<Msghdr>();
    // SAFETY: the caller's promise.
    unsafe { total((*header).iov.cast(), (*header).iov_len) }
}

/// Bytes in the first `count` messages (`struct mmsghdr`): wanted, and done.
///
/// # Safety
/// As [`total`].
pub(crate) unsafe fn messages(first: *const c_void, count: usize) -> (u64, u64) {
    let first = first.cast::<Mmsghdr>();
    let (mut wanted, mut done) = (0_u64, 0_u64);
    for at in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            let one = first.add(at);
            wanted = wanted.saturating_add(message((&raw const (*one).header).cast()));
            done = done.saturating_add(u64::from((*one).len));
        }
    }
    (wanted, done)
}
