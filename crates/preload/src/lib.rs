//! The recorder that `tcpwhy run` loads into a program (`LD_PRELOAD`): each function here stands before the C library's
//! of the same name, hands the call on unchanged, and writes down what it was, if it was on a TCP socket.
//!
//! Nothing here allocates, waits, panics or prints, and `errno` is left as the call left it. The functions have no
//! values to drop, so that a thread may be cancelled in a call (`C-unwind`).

use core::ffi::{c_int, c_long, c_uint, c_void};

mod cpython;
mod fds;
mod fix;
pub mod format;
#[path = "../../wire/src/calls/kind.rs"]
pub mod kind;
mod log;
mod memory;
mod python;
mod stack;
mod sys;

use format::Record;
use kind::Kind;
use stack::frame;
use sys::Real;

/// Defines functions of the C library. `|call|` names what calls the real one with the same arguments, but for one that may
/// be changed before.
macro_rules! hooks {
    ($(
        $name:ident($($argument:ident: $type:ty),*) -> $result:ty, $($changed:ident = $value:expr,)?
        |$call:ident| $body:expr;
    )*) => {$(
        #[doc = concat!("Stands before the C library's `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $result {
            type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
            const NAME: &core::ffi::CStr =
                match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                };
            static REAL: Real = Real::new(NAME);
            let Some(real) = REAL.get() else {
                return -1;
            };
            // SAFETY: the C library's function of this name has this type.
            let real = unsafe { core::mem::transmute::<*mut c_void, Function>(real) };
            $(let $changed = $value;)?
            // SAFETY: with the program's own arguments.
            let $call = || unsafe { real($($argument),*) };
            $body
        }
    )*};
}

/// What is known about a call before it is made.
#[derive(Clone, Copy)]
struct Begun {
    call: Kind,
    fd: c_int,
    flags: u64,
    /// The hook's frame, for calls whose stack is kept; else 0.
    frame: usize,
}

/// The numbers of the stacks that made a call, 0 where there are none: of the program's functions, and of the script that
/// it runs.
#[derive(Clone, Copy, Default)]
struct Who {
    stack: u32,
    script: u32,
}

impl Begun {
    /// With the stack, to be called in the hook itself.
    #[inline(always)]
    fn traced(call: Kind, fd: c_int, flags: c_int) -> Self {
        Self { call, fd, flags: u64::from(flags as u32), frame: frame() }
    }

    #[inline(always)]
    fn plain(call: Kind, fd: c_int, flags: c_int) -> Self {
        Self { call, fd, flags: u64::from(flags as u32), frame: 0 }
    }

    /// Makes the call, and writes it down if it is on a TCP socket. `asked` is looked at after the call.
    #[inline(always)]
    fn make(self, asked: impl FnOnce() -> u64, call: impl FnOnce() -> isize) -> isize {
        let cookie = fds::tcp(self.fd);
        if cookie == 0 {
            return call();
        }
        let who = self.who();
        let start = sys::now();
        let result = call();
        self.record(cookie, start, who, asked, result);
        result
    }

    /// Asked for on the way into a call: see [`python::number`].
    #[inline(always)]
    fn who(self) -> Who {
        if self.frame == 0 || !stack::wanted() {
            return Who::default();
        }
        log::with(|pen| Who { stack: stack::number(pen, self.frame), script: python::number(pen) })
            .unwrap_or_default()
    }

    /// `asked` is looked at only where the kernel accepted the arguments.
    #[inline(always)]
    fn record(self, cookie: u64, start: u64, who: Who, asked: impl FnOnce() -> u64, result: isize) {
        let end = sys::now();
        let written = log::with(|pen| {
            let result = if result < 0 { -i64::from(sys::errno()) } else { result as i64 };
            const EFAULT: i64 = -14;
            let asked = if result == EFAULT { 0 } else { asked() };
            let place = u64::from(self.fd as u32) | u64::from(who.stack) << 32;
            let flags = self.flags | u64::from(who.script) << 32;
            let took = end.saturating_sub(start);
            let words = [start, took, cookie, asked, result as u64, place, flags];
            pen.write(Record::Call, self.call as u8, &words, &[]);
        });
        if written.is_none() {
            log::miss();
        }
    }

    #[inline(always)]
    fn read(self, size: usize, call: impl FnOnce() -> isize) -> isize {
        self.read_of(|| size as u64, call)
    }

    #[inline(always)]
    fn read_of(self, asked: impl FnOnce() -> u64, call: impl FnOnce() -> isize) -> isize {
        fix::at_read(self.fd);
        let result = self.make(asked, call);
        fix::at_read(self.fd);
        result
    }
}

hooks! {
    write(fd: c_int, buffer: *const c_void, size: usize) -> isize, |call|
        Begun::traced(Kind::Write, fd, 0).make(|| size as u64, call);
    writev(fd: c_int, iov: *const c_void, count: c_int) -> isize, |call|
        Begun::traced(Kind::Writev, fd, 0).make(|| of_list(iov, count), call);
    send(fd: c_int, buffer: *const c_void, size: usize, flags: c_int) -> isize, flags = fix::sent(fd, flags), |call|
        Begun::traced(Kind::Send, fd, flags).make(|| size as u64, call);
    sendto(
        fd: c_int, buffer: *const c_void, size: usize, flags: c_int, to: *const c_void, to_len: u32
    ) -> isize, flags = fix::sent(fd, flags), |call|
        Begun::traced(Kind::SendTo, fd, flags).make(|| size as u64, call);
    sendmsg(fd: c_int, message: *const c_void, flags: c_int) -> isize, flags = fix::sent(fd, flags), |call|
        Begun::traced(Kind::SendMsg, fd, flags).make(|| of_message(message), call);
    sendmmsg(
        fd: c_int, first: *mut c_void, count: c_uint, flags: c_int
    ) -> c_int, flags = fix::sent(fd, flags), |call|
        many(Begun::traced(Kind::SendMmsg, fd, flags), first, call);
    sendfile(out: c_int, from: c_int, offset: *mut i64, size: usize) -> isize, |call|
        Begun::traced(Kind::Sendfile, out, 0).make(|| size as u64, call);
    sendfile64(out: c_int, from: c_int, offset: *mut i64, size: usize) -> isize, |call|
        Begun::traced(Kind::Sendfile, out, 0).make(|| size as u64, call);
    splice(
        from: c_int, from_offset: *mut i64, to: c_int, to_offset: *mut i64, size: usize, flags: c_uint
    ) -> isize, flags = fix::spliced(to, flags), |call|
        Begun::traced(Kind::Splice, to, 0).make(|| size as u64, call);

    read(fd: c_int, buffer: *mut c_void, size: usize) -> isize, |call|
        Begun::plain(Kind::Read, fd, 0).read(size, call);
    __read_chk(fd: c_int, buffer: *mut c_void, size: usize, room: usize) -> isize, |call|
        Begun::plain(Kind::Read, fd, 0).read(size, call);
    readv(fd: c_int, iov: *const c_void, count: c_int) -> isize, |call|
        Begun::plain(Kind::Readv, fd, 0).read_of(|| of_list(iov, count), call);
    recv(fd: c_int, buffer: *mut c_void, size: usize, flags: c_int) -> isize, |call|
        Begun::plain(Kind::Recv, fd, flags).read(size, call);
    __recv_chk(fd: c_int, buffer: *mut c_void, size: usize, room: usize, flags: c_int) -> isize, |call|
        Begun::plain(Kind::Recv, fd, flags).read(size, call);
    recvfrom(
        fd: c_int, buffer: *mut c_void, size: usize, flags: c_int, from: *mut c_void, from_len: *mut u32
    ) -> isize, |call| Begun::plain(Kind::RecvFrom, fd, flags).read(size, call);
    __recvfrom_chk(
        fd: c_int, buffer: *mut c_void, size: usize, room: usize, flags: c_int, from: *mut c_void, from_len: *mut u32
    ) -> isize, |call| Begun::plain(Kind::RecvFrom, fd, flags).read(size, call);
    recvmsg(fd: c_int, message: *mut c_void, flags: c_int) -> isize, |call|
        Begun::plain(Kind::RecvMsg, fd, flags).read_of(|| of_message(message), call);
    recvmmsg(fd: c_int, first: *mut c_void, count: c_uint, flags: c_int, timeout: *mut c_void) -> c_int, |call|
        many(Begun::plain(Kind::RecvMmsg, fd, flags), first, call);

    connect(fd: c_int, address: *const c_void, len: u32) -> c_int, |call|
        connecting(Begun::traced(Kind::Connect, fd, 0), call);
    accept(fd: c_int, address: *mut c_void, len: *mut u32) -> c_int, |call|
        accepting(Begun::traced(Kind::Accept, fd, 0), call);
    accept4(fd: c_int, address: *mut c_void, len: *mut u32, flags: c_int) -> c_int, |call|
        accepting(Begun::traced(Kind::Accept, fd, flags), call);
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: u32) -> c_int, |call| {
        let begun = Begun::traced(Kind::SetSockOpt, fd, 0);
        setting(begun, (level, name), (value, len), call)
    };
    getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut u32) -> c_int, |call| {
        let result = call();
        if result == 0 {
            fix::answer(fd, (level, name), (value, len));
        }
        result
    };
    shutdown(fd: c_int, how: c_int) -> c_int, |call|
        Begun::plain(Kind::Shutdown, fd, how).make(|| 0, || call() as isize) as c_int;

    close(fd: c_int) -> c_int, |call| closing(fd, call);
    fclose(stream: *mut c_void) -> c_int, |call| {
        // SAFETY: the program's own stream.
        fds::forget(if stream.is_null() { -1 } else { unsafe { sys::fileno(stream) } });
        call()
    };
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int, |call| {
        fds::forget_range(first, last);
        call()
    };
    socket(family: c_int, kind: c_int, protocol: c_int) -> c_int, |call| {
        let fd = call();
        fds::forget(fd);
        fd
    };
    dup(old: c_int) -> c_int, |call| copied(old, call());
    dup2(old: c_int, new: c_int) -> c_int, |call| copied(old, call());
    dup3(old: c_int, new: c_int, flags: c_int) -> c_int, |call| copied(old, call());
    // Its third argument, an integer or a pointer, travels in the same register as a named one would.
    fcntl(fd: c_int, command: c_int, argument: c_long) -> c_int, |call| duplicated(fd, command, call());
    fcntl64(fd: c_int, command: c_int, argument: c_long) -> c_int, |call| duplicated(fd, command, call());
}

/// Bytes of a list of buffers that the kernel has taken.
fn of_list(iov: *const c_void, count: c_int) -> u64 {
    // SAFETY: the kernel has read the list during the call that was just made.
    unsafe { sys::total(iov, listed(count)) }
}

/// Bytes of a message that the kernel has taken.
fn of_message(message: *const c_void) -> u64 {
    // SAFETY: the kernel has read the message during the call that was just made.
    unsafe { sys::message(message) }
}

/// A list's length as the kernel understood it.
fn listed(count: c_int) -> usize {
    usize::try_from(count).unwrap_or(0)
}

#[inline(always)]
fn many(begun: Begun, first: *mut c_void, call: impl FnOnce() -> c_int) -> c_int {
    let cookie = fds::tcp(begun.fd);
    if cookie == 0 {
        return call();
    }
    let who = begun.who();
    let start = sys::now();
    let count = call();
    // SAFETY: the kernel took that many.
    let (wanted, done) = unsafe { sys::messages(first, listed(count)) };
    begun.record(cookie, start, who, || wanted, if count < 0 { -1 } else { done as isize });
    count
}

#[inline(always)]
fn connecting(begun: Begun, call: impl FnOnce() -> c_int) -> c_int {
    let cookie = fds::learn(begun.fd);
    if cookie == 0 {
        return call();
    }
    fix::at_birth(begun.fd);
    let who = begun.who();
    let start = sys::now();
    let result = call();
    begun.record(cookie, start, who, || 0, result as isize);
    let errno = sys::errno();
    if result == 0 || errno == sys::EINPROGRESS {
        fds::describe(begun.fd, cookie);
    }
    sys::set_errno(errno);
    result
}

#[inline(always)]
fn accepting(begun: Begun, call: impl FnOnce() -> c_int) -> c_int {
    if !log::attached() {
        return call();
    }
    let who = begun.who();
    let start = sys::now();
    let fd = call();
    if fd >= 0 {
        let cookie = fds::learn(fd);
        if cookie != 0 {
            fix::at_birth(fd);
            Begun { fd, ..begun }.record(cookie, start, who, || 0, fd as isize);
        }
    }
    fd
}

#[inline(always)]
fn setting(
    begun: Begun,
    (level, name): (c_int, c_int),
    (value, len): (*const c_void, u32),
    call: impl FnOnce() -> c_int,
) -> c_int {
    let cookie = fds::tcp(begun.fd);
    if cookie == 0 {
        return call();
    }
    // The kernel does not hear of it, so it is no call.
    if fix::keeps(begun.fd, (level, name), (value, len)) {
        return 0;
    }
    let who = begun.who();
    let start = sys::now();
    let result = call();
    let is_number = len as usize >= size_of::<c_int>() && !value.is_null();
    // SAFETY: the kernel has read that many bytes there, unless it refused; a pointer that it refused is not followed.
    let value = if is_number && result == 0 { unsafe { value.cast::<c_int>().read_unaligned() } } else { 0 };
    let option = u64::from(level as u32) << 32 | u64::from(name as u32);
    Begun { flags: u64::from(value as u32), ..begun }.record(cookie, start, who, || option, result as isize);
    result
}

#[inline(always)]
fn closing(fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if !log::attached() {
        return call();
    }
    let cookie = fds::tcp(fd);
    if cookie == 0 || log::borrowed() {
        fds::forget(fd);
        return call();
    }
    let errno = sys::errno();
    // The last chance to ask how many bytes it has sent.
    fds::describe(fd, cookie);
    sys::set_errno(errno);
    // Before: another thread may get the number as soon as it is free.
    fds::forget(fd);
    let start = sys::now();
    let result = call();
    Begun::plain(Kind::Close, fd, 0).record(cookie, start, Who::default(), || 0, result as isize);
    result
}

fn copied(old: c_int, new: c_int) -> c_int {
    if new >= 0 {
        fds::copy(old, new);
    }
    new
}

fn duplicated(fd: c_int, command: c_int, result: c_int) -> c_int {
    if command == sys::F_DUPFD || command == sys::F_DUPFD_CLOEXEC { copied(fd, result) } else { result }
}

/// Closes a descriptor of the recorder's own.
fn close_quietly(fd: c_int) {
    static REAL: Real = Real::new(c"close");
    if let Some(real) = REAL.get() {
        // SAFETY: the C library's function of this name has this type.
        unsafe { core::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> c_int>(real)(fd) };
    }
}

/// `setsockopt` unrecorded.
fn real_setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: u32) -> c_int {
    type Function = unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, u32) -> c_int;
    static REAL: Real = Real::new(c"setsockopt");
    let Some(real) = REAL.get() else {
        return -1;
    };
    // SAFETY: the C library's function of this name has this type; the kernel checks the rest.
    unsafe { core::mem::transmute::<*mut c_void, Function>(real)(fd, level, name, value, len) }
}
