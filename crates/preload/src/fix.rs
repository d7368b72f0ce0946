//! Cures that are tried on the program: `TCPWHY_FIX=nodelay` or `quickack`.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU8, Ordering};

use crate::{real_setsockopt, sys};

const NONE: u8 = 0;
const NODELAY: u8 = 1;
const QUICKACK: u8 = 2;
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

#[cold]
fn set(fd: c_int, name: c_int) {
    let errno = sys::errno();
    let on: c_int = 1;
    // A descriptor that is no TCP socket refuses, and stays as it is.
    real_setsockopt(fd, sys::IPPROTO_TCP, name, (&raw const on).cast::<c_void>(), size_of::<c_int>() as u32);
    sys::set_errno(errno);
}
