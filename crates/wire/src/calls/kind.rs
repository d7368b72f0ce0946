//! Which call it was. The recorder, which has no dependencies, is compiled with this same file.

/// The calls. `sendfile`'s and `splice`'s socket is the one written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// `connect(2)`
    Connect = 1,
    /// `accept(2)`, `accept4(2)`; the socket is the new one.
    Accept = 2,
    /// `send(2)`
    Send = 3,
    /// `sendto(2)`
    SendTo = 4,
    /// `sendmsg(2)`
    SendMsg = 5,
    /// `sendmmsg(2)`
    SendMmsg = 6,
    /// `write(2)`
    Write = 7,
    /// `writev(2)`
    Writev = 8,
    /// `sendfile(2)`
    Sendfile = 9,
    /// `splice(2)`
    Splice = 10,
    /// `read(2)`
    Read = 11,
    /// `readv(2)`
    Readv = 12,
    /// `recv(2)`
    Recv = 13,
    /// `recvfrom(2)`
    RecvFrom = 14,
    /// `recvmsg(2)`
    RecvMsg = 15,
    /// `recvmmsg(2)`
    RecvMmsg = 16,
    /// `setsockopt(2)`: bytes asked for are the level in the upper half and the option, flags its value.
    SetSockOpt = 17,
    /// `shutdown(2)`: flags are which side.
    Shutdown = 18,
    /// `close(2)`
    Close = 19,
}
