//! Cures that are tried on the program: `TCPWHY_FIX=nodelay`, `quickack` or `cork-off`.

use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::{AtomicU8, Ordering};

use crate::{fds, real_setsockopt, sys};

const NONE: u8 = 0;
const NODELAY: u8 = 1;
const QUICKACK: u8 = 2;
const CORK_OFF: u8 = 3;
static FIX: AtomicU8 = AtomicU8::new(NONE);

pub(crate) fn read_environment() {
    // SAFETY: the name ends with a zero, and so does the value.
    let name = unsafe {
        let value = sys::getenv(c"TCPWHY_FIX".as_ptr());
        if value.is_null() {
            return;
        }
        core::ffi::CStr::from_ptr(value).to_bytes()
    };
    let fix = match name {
        b"nodelay" => NODELAY,
        b"quickack" => QUICKACK,
        b"cork-off" => CORK_OFF,
        _ => NONE,
    };
    FIX.store(fix, Ordering::Relaxed);
}

/// For a socket that connects or was accepted.
pub(crate) fn at_birth(fd: c_int) {
    if FIX.load(Ordering::Relaxed) == NODELAY {
        set(fd, sys::TCP_NODELAY);
    }
}

/// Around each read: the kernel leaves quick-ACK mode by itself.
#[inline(always)]
pub(crate) fn at_read(fd: c_int) {
    if FIX.load(Ordering::Relaxed) == QUICKACK {
        set(fd, sys::TCP_QUICKACK);
    }
}

/// The flags to send with.
#[inline(always)]
pub(crate) fn sent(fd: c_int, flags: c_int) -> c_int {
    // Of UDP, it joins datagrams: without it there would be others.
    let is_taken = flags & sys::MSG_MORE != 0 && corks_are_off() && fds::tcp(fd) != 0;
    if is_taken { flags & !sys::MSG_MORE } else { flags }
}

/// The flags to splice with.
#[inline(always)]
pub(crate) fn spliced(to: c_int, flags: c_uint) -> c_uint {
    let is_taken = flags & sys::SPLICE_F_MORE != 0 && corks_are_off() && fds::tcp(to) != 0;
    if is_taken { flags & !sys::SPLICE_F_MORE } else { flags }
}

/// Whether the program's `setsockopt` is kept from the kernel: it corks, or ends that.
#[inline(always)]
pub(crate) fn keeps(fd: c_int, (level, name): (c_int, c_int), (value, len): (*const c_void, u32)) -> bool {
    if !is_cork(level, name) || len < size_of::<c_int>() as u32 || value.is_null() || fds::tcp(fd) == 0 {
        return false;
    }
    // SAFETY: the program says that so many bytes are there.
    fds::cork(fd, unsafe { value.cast::<c_int>().read_unaligned() } != 0);
    true
}

/// Makes a `getsockopt` that has succeeded say what the program believes.
#[inline(always)]
pub(crate) fn answer(fd: c_int, (level, name): (c_int, c_int), (value, len): (*mut c_void, *mut u32)) {
    if is_cork(level, name) && fds::tcp(fd) != 0 && fds::is_corked(fd) {
        let corked: c_int = 1;
        // SAFETY: the kernel has written that many bytes, of an integer, there.
        unsafe {
            let len = (*len as usize).min(size_of::<c_int>());
            core::ptr::copy_nonoverlapping((&raw const corked).cast::<u8>(), value.cast::<u8>(), len);
        }
    }
}

#[inline(always)]
fn is_cork(level: c_int, name: c_int) -> bool {
    corks_are_off() && level == sys::IPPROTO_TCP && name == sys::TCP_CORK
}

#[inline(always)]
fn corks_are_off() -> bool {
    FIX.load(Ordering::Relaxed) == CORK_OFF
}

#[cold]
fn set(fd: c_int, name: c_int) {
    let errno = sys::errno();
    let on: c_int = 1;
    // A descriptor that is no TCP socket refuses, and stays as it is.
    real_setsockopt(fd, sys::IPPROTO_TCP, name, (&raw const on).cast::<c_void>(), size_of::<c_int>() as u32);
    sys::set_errno(errno);
}
