//! What each descriptor is, asked once.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

use crate::format::Record;
use crate::{log, sys};

/// Descriptors from here on are not watched: few processes may open more.
const MOST: usize = 1 << 16;
const UNKNOWN: u64 = 0;
const NO_TCP: u64 = 1;

/// The program believes that the socket is corked. No cookie is that large.
const CORKED: u64 = 1 << 63;

/// For each descriptor [`UNKNOWN`], [`NO_TCP`] or its socket's cookie and 1 more, with [`CORKED`]. The kernel's cookies
/// begin at 1.
static FDS: [AtomicU64; MOST] = [const { AtomicU64::new(UNKNOWN) }; MOST];

fn entry(fd: c_int) -> Option<&'static AtomicU64> {
    FDS.get(usize::try_from(fd).ok()?)
}

/// The cookie of a TCP socket, 0 for everything else.
#[inline(always)]
pub(crate) fn tcp(fd: c_int) -> u64 {
    if !log::attached() {
        return 0;
    }
    let Some(entry) = entry(fd) else {
        return 0;
    };
    match entry.load(Ordering::Relaxed) {
        UNKNOWN => learn(fd),
        NO_TCP => 0,
        known => (known & !CORKED) - 1,
    }
}

/// Remembers for a TCP socket whether the program believes that it is corked. Later copies of the descriptor know it too.
pub(crate) fn cork(fd: c_int, corked: bool) {
    if let Some(entry) = entry(fd) {
        let mark = if corked { CORKED } else { 0 };
        entry.store(entry.load(Ordering::Relaxed) & !CORKED | mark, Ordering::Relaxed);
    }
}

/// Whether it does.
pub(crate) fn is_corked(fd: c_int) -> bool {
    entry(fd).is_some_and(|entry| entry.load(Ordering::Relaxed) & CORKED != 0)
}

/// Asks the kernel what a descriptor is, and says so in the recording where it is a TCP socket.
#[cold]
pub(crate) fn learn(fd: c_int) -> u64 {
    let Some(entry) = entry(fd) else {
        return 0;
    };
    if !log::attached() || log::borrowed() {
        return 0;
    }
    let errno = sys::errno();
    let cookie = match sys::option::<c_int>(fd, sys::SOL_SOCKET, sys::SO_PROTOCOL) {
        Some(sys::IPPROTO_TCP) => sys::option::<u64>(fd, sys::SOL_SOCKET, sys::SO_COOKIE).unwrap_or(0),
        _ => 0,
    };
    entry.store(if cookie == 0 { NO_TCP } else { cookie + 1 }, Ordering::Relaxed);
    if cookie != 0 {
        describe(fd, cookie);
    }
    sys::set_errno(errno);
    cookie
}

/// Whatever a descriptor was, it is something else now.
pub(crate) fn forget(fd: c_int) {
    if let Some(entry) = entry(fd) {
        // What nobody knew needs no look at whose memory this is.
        if entry.load(Ordering::Relaxed) != UNKNOWN && !log::borrowed() {
            entry.store(UNKNOWN, Ordering::Relaxed);
        }
    }
}

/// All from `first` to `last`.
pub(crate) fn forget_range(first: u32, last: u32) {
    if log::attached() {
        for fd in first..=last.min(MOST as u32 - 1) {
            forget(fd as c_int);
        }
    }
}

/// `new` is what `old` is.
pub(crate) fn copy(old: c_int, new: c_int) {
    if let (Some(from), Some(to)) = (entry(old), entry(new))
        && log::attached()
        && !log::borrowed()
    {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Writes down a socket's two addresses and what TCP knows about it.
pub(crate) fn describe(fd: c_int, cookie: u64) {
    let local = address(fd, sys::getsockname);
    let peer = address(fd, sys::getpeername);
    let nodelay = sys::option::<c_int>(fd, sys::IPPROTO_TCP, sys::TCP_NODELAY).unwrap_or(0);
    let info = info(fd);
    let words =
        [cookie, local[0], local[1], local[2], peer[0], peer[1], peer[2], u64::from(info.mss), info.written];
    if log::with(|pen| pen.write(Record::Socket, u8::from(nodelay != 0), &words, &[])).is_none() {
        log::miss();
    }
}

type NameOf = unsafe extern "C" fn(c_int, *mut c_void, *mut u32) -> c_int;

/// Family and port, then 16 bytes of address; zeros where there is none.
fn address(fd: c_int, name_of: NameOf) -> [u64; 3] {
    // As long as the longest that is read here, `sockaddr_in6`, and aligned for it.
    let mut name = [0_u64; 4];
    let mut len = size_of_val(&name) as u32;
    // SAFETY: writes at most `len` bytes to `name`.
    if unsafe { name_of(fd, name.as_mut_ptr().cast(), &mut len) } != 0 {
        return [0; 3];
    }
    let family = name[0] as u16;
    match family {
        // `sockaddr_in`: family, port, address.
        sys::AF_INET => [name[0] & 0xffff_ffff, name[0] >> 32, 0],
        // `sockaddr_in6`: family, port, flow label, address.
        sys::AF_INET6 => [name[0] & 0xffff_ffff, name[1], name[2]],
        _ => [0; 3],
    }
}

struct Info {
    mss: u32,
    /// Bytes that the program has written, by whatever call.
    written: u64,
}

/// `TCP_INFO` as far as it is needed here; offsets are those of `struct tcp_info`.
fn info(fd: c_int) -> Info {
    const MSS: usize = 16;
    const NOT_SENT: usize = 144;
    const SENT: usize = 200;
    const RETRANSMITTED: usize = 208;
    let mut info = [0_u8; 256];
    let mut len = size_of_val(&info) as u32;
    // SAFETY: writes at most `len` bytes to `info`. Fields that an old kernel does not know stay zero.
    unsafe { sys::getsockopt(fd, sys::IPPROTO_TCP, sys::TCP_INFO, info.as_mut_ptr().cast(), &mut len) };
    let short = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    let long = |at: usize| {
        let (low, high) = (u64::from(short(at)), u64::from(short(at + 4)));
        if cfg!(target_endian = "little") { low | high << 32 } else { high | low << 32 }
    };
    let sent = long(SENT).saturating_sub(long(RETRANSMITTED));
    Info { mss: short(MSS), written: sent.saturating_add(u64::from(short(NOT_SENT))) }
}
