//! Two questions to the kernel that no crate has a call for.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `getsockopt` for an option whose value is a struct, or is newer than the crates: how many bytes of `value` the
/// kernel filled.
///
/// # Errors
///
/// Those of `getsockopt(2)`; `ENOPROTOOPT` where the kernel does not know the option.
#[allow(unsafe_code)]
pub(super) fn option(socket: impl AsFd, level: i32, name: i32, value: &mut [u8]) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(value.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: `value` is valid for writes of `length` bytes, both outlive the call, and the kernel writes no more than
    // `length` of them. The descriptor is borrowed, so it is open.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast(),
            std::ptr::from_mut(&mut length),
        )
    };
    if result == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

/// `SIOCOUTQ`: bytes that were written and are not acknowledged, our FIN among them.
///
/// # Errors
///
/// Those of `ioctl(2)`; `EINVAL` on a listening socket.
#[allow(unsafe_code)]
pub(super) fn send_queue(socket: impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SIOCOUTQ is another name of TIOCOUTQ.
    // SAFETY: for this request the kernel writes one int, which `bytes` is, and which outlives the call.
    let result =
        unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, std::ptr::from_mut(&mut bytes)) };
    if result == 0 { Ok(u64::try_from(bytes).unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
}
