//! How a program finds the memory of `tcpwhy run`: it is told the process, when that was started, and the descriptor there.
//!
//! The number of a process is given to another one once it has ended, another user's perhaps, and programs outlive
//! `tcpwhy run`. So what is opened is that process's and nobody else's, or nothing is.

use core::ffi::{CStr, c_char, c_int};

use crate::sys;

const O_RDWR_CLOEXEC: c_int = 0o2_000_002;
const O_RDONLY_CLOEXEC: c_int = 0o2_000_000;
const O_PATH_DIRECTORY_CLOEXEC: c_int =
    if cfg!(target_arch = "aarch64") { 0o12_040_000 } else { 0o12_200_000 };
const AT_FDCWD: c_int = -100;
/// That the file keeps its length for ever: `F_SEAL_SEAL`, `F_SEAL_SHRINK` and `F_SEAL_GROW`. Only memory files can have them.
const SEALED: c_int = 1 | 2 | 4;
/// Fields of `/proc/PID/stat` between the process's name and when it was started, in clock ticks (proc(5)).
const BETWEEN: usize = 19;
/// Bytes of `/proc/PID/stat` up to there: a name of 16 and at most 20 digits a number.
const STAT: usize = 512;
/// Bytes of a path below, with two numbers.
const PATH: usize = 40;

/// Opens it; none where there is no such memory, where it may not be opened, and where it is anybody else's.
pub(crate) fn open() -> Option<c_int> {
    // SAFETY: the name ends with a zero, and so does the value, which nobody changes before the program begins.
    let named = unsafe {
        let value = sys::getenv(c"TCPWHY_CALLS".as_ptr());
        if value.is_null() {
            return None;
        }
        CStr::from_ptr(value).to_bytes()
    };
    let mut numbers = named.split(|byte| *byte == b':').map(number);
    let (process, start, fd) = (numbers.next()??, numbers.next()??, numbers.next()??);
    // What is opened by this is the same process's, or fails once that has ended.
    let folder = open_at(AT_FDCWD, b"/proc/", process, O_PATH_DIRECTORY_CLOEXEC)?;
    let memory =
        (started(folder) == Some(start)).then(|| open_at(folder, b"fd/", fd, O_RDWR_CLOEXEC)).flatten();
    crate::close_quietly(folder);
    memory.filter(|memory| {
        let is_ours = is_ours(*memory);
        if !is_ours {
            crate::close_quietly(*memory);
        }
        is_ours
    })
}

/// Whether it is root's or this user's, and will not be shortened while programs write to it.
fn is_ours(memory: c_int) -> bool {
    let seals = sys::seals(memory);
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { sys::geteuid() };
    seals >= 0
        && seals & SEALED == SEALED
        && sys::owner_of(memory).is_some_and(|owner| owner == 0 || owner == user)
}

/// When a process was started, by its folder in `/proc`.
fn started(folder: c_int) -> Option<u64> {
    // SAFETY: the path ends with a zero.
    let stat = unsafe { sys::openat(folder, c"stat".as_ptr(), O_RDONLY_CLOEXEC) };
    if stat < 0 {
        return None;
    }
    let mut text = [0; STAT];
    // SAFETY: writes at most that many bytes there.
    let len = unsafe { sys::pread(stat, text.as_mut_ptr(), text.len(), 0) };
    crate::close_quietly(stat);
    let text = text.get(..usize::try_from(len).ok()?)?;
    // The name may hold anything, parentheses too.
    let end = text.iter().rposition(|byte| *byte == b')')?;
    number(text.get(end + 2..)?.split(|byte| *byte == b' ').nth(BETWEEN)?)
}

/// Opens the file in a folder whose name is this text and a number.
fn open_at(folder: c_int, before: &[u8], number: u64, flags: c_int) -> Option<c_int> {
    let mut path = [0; PATH];
    path.get_mut(..before.len())?.copy_from_slice(before);
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = number;
    for digit in path.get_mut(before.len()..before.len() + digits)?.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // SAFETY: the path ends with a zero: 20 digits at most and what stands before them are shorter.
    let fd = unsafe { sys::openat(folder, path.as_ptr().cast::<c_char>(), flags) };
    (fd >= 0).then_some(fd)
}

/// A number in digits alone.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}
