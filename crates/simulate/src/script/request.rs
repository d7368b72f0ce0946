//! What a socket call asks for: C's names and argument lists to plain requests.

use super::syntax::{Call, Value};

/// A request to a socket. Sockets go by the numbers that the script gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// `socket`: the new socket's number.
    Open(i64),
    /// `bind`
    Bind(i64),
    /// `listen`
    Listen(i64),
    /// `accept`
    Accept {
        /// The listening socket.
        listener: i64,
        /// The new socket's number.
        accepted: i64,
    },
    /// `connect`
    Connect(i64),
    /// `read`, `recv`, `recvfrom`, `recvmsg`, `readv`
    Read {
        /// The socket.
        socket: i64,
        /// Room in bytes.
        room: u64,
        /// Leaves the bytes where they are (`MSG_PEEK`).
        peek: bool,
        /// Does not wait (`MSG_DONTWAIT`).
        at_once: bool,
    },
    /// `write`, `send`, `sendto`, `sendmsg`, `writev`
    Write {
        /// The socket.
        socket: i64,
        /// Bytes.
        len: u64,
        /// More will follow (`MSG_MORE`).
        more: bool,
        /// Does not wait (`MSG_DONTWAIT`).
        at_once: bool,
    },
    /// `setsockopt`
    SetOption {
        /// The socket.
        socket: i64,
        /// The option's name in C.
        option: String,
        /// Its value: a number, or a text.
        value: OptionValue,
    },
    /// `getsockopt`
    GetOption {
        /// The socket.
        socket: i64,
        /// The option's name in C.
        option: String,
    },
    /// `fcntl(F_SETFL)`: whether calls wait.
    SetBlocking {
        /// The socket.
        socket: i64,
        /// Whether they do.
        blocking: bool,
    },
    /// `fcntl(F_GETFL)`
    GetFlags(i64),
    /// `ioctl(SIOCINQ)`: bytes that can be read.
    Unread(i64),
    /// `ioctl(SIOCOUTQ)`: bytes that are not acknowledged.
    Unacknowledged(i64),
    /// `shutdown`
    Shutdown {
        /// The socket.
        socket: i64,
        /// Whether reading ends.
        reading: bool,
        /// Whether writing ends.
        writing: bool,
    },
    /// `close`
    Close(i64),
    /// `poll` of one socket; the answer is its `revents`.
    Poll {
        /// The socket.
        socket: i64,
        /// What is asked for, as C's bits.
        events: i64,
        /// Whether the call waits until there is something.
        waits: bool,
    },
}

/// The value of a socket option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// A number; for `SO_LINGER` the seconds, or -1 where it is off.
    Number(i64),
    /// A text.
    Text(String),
}

/// `O_NONBLOCK` on Linux.
pub(super) const O_NONBLOCK: i64 = 0o4000;

/// The request that a call makes; `None` for a call that has none here.
pub(super) fn request(call: &Call) -> Option<Request> {
    let arguments = &call.arguments;
    let socket = || arguments.first().and_then(number);
    let result = || number(&call.result).filter(|number| *number >= 0).unwrap_or(i64::MAX);
    Some(match call.name.as_str() {
        "socket" if mentions(arguments, "SOCK_STREAM") => Request::Open(result()),
        "bind" => Request::Bind(socket()?),
        "listen" => Request::Listen(socket()?),
        "accept" | "accept4" => Request::Accept { listener: socket()?, accepted: result() },
        "connect" => Request::Connect(socket()?),
        "read" | "recv" | "recvfrom" => reading(socket()?, number(arguments.get(2)?)?, arguments)?,
        "readv" => reading(socket()?, vector(arguments.get(1)?)?, &[])?,
        "recvmsg" => reading(socket()?, vector(member(arguments.get(1)?, "msg_iov")?)?, arguments)?,
        "write" | "send" | "sendto" => writing(socket()?, number(arguments.get(2)?)?, arguments)?,
        "writev" => writing(socket()?, vector(arguments.get(1)?)?, &[])?,
        "sendmsg" => writing(socket()?, vector(member(arguments.get(1)?, "msg_iov")?)?, arguments)?,
        "setsockopt" => Request::SetOption {
            socket: socket()?,
            option: word(arguments.get(2)?)?,
            value: option_value(arguments.get(3)?)?,
        },
        "getsockopt" => Request::GetOption { socket: socket()?, option: word(arguments.get(2)?)? },
        "fcntl" => control(socket()?, arguments)?,
        "ioctl" => match word(arguments.get(1)?)?.as_str() {
            "SIOCINQ" | "FIONREAD" => Request::Unread(socket()?),
            "SIOCOUTQ" | "TIOCOUTQ" => Request::Unacknowledged(socket()?),
            _ => return None,
        },
        "shutdown" => Request::Shutdown {
            socket: socket()?,
            reading: mentions(arguments, "SHUT_RD") || mentions(arguments, "SHUT_RDWR"),
            writing: mentions(arguments, "SHUT_WR") || mentions(arguments, "SHUT_RDWR"),
        },
        "close" => Request::Close(socket()?),
        "poll" => poll(arguments)?,
        _ => return None,
    })
}

fn reading(socket: i64, room: i64, flags: &[Value]) -> Option<Request> {
    let unread = ["MSG_ERRQUEUE", "MSG_OOB", "MSG_WAITALL", "MSG_TRUNC"];
    if unread.iter().any(|flag| mentions(flags, flag)) {
        return None;
    }
    Some(Request::Read {
        socket,
        room: u64::try_from(room).ok()?,
        peek: mentions(flags, "MSG_PEEK"),
        at_once: mentions(flags, "MSG_DONTWAIT"),
    })
}

fn writing(socket: i64, len: i64, flags: &[Value]) -> Option<Request> {
    let other = ["MSG_FASTOPEN", "MSG_OOB", "MSG_EOR"];
    if other.iter().any(|flag| mentions(flags, flag)) {
        return None;
    }
    Some(Request::Write {
        socket,
        len: u64::try_from(len).ok()?,
        more: mentions(flags, "MSG_MORE"),
        at_once: mentions(flags, "MSG_DONTWAIT"),
    })
}

fn control(socket: i64, arguments: &[Value]) -> Option<Request> {
    match word(arguments.get(1)?)?.as_str() {
        "F_GETFL" => Some(Request::GetFlags(socket)),
        "F_SETFL" => {
            let is_bit = |value: &Value| number(value).is_some_and(|flags| flags & O_NONBLOCK != 0);
            let flags = arguments.get(2)?;
            let blocking = !mentions(arguments, "O_NONBLOCK") && !is_bit(flags);
            Some(Request::SetBlocking { socket, blocking })
        }
        _ => None,
    }
}

/// `[{fd=4, events=POLLIN, revents=…}], 1, TIMEOUT`
fn poll(arguments: &[Value]) -> Option<Request> {
    let entry = poll_entry(arguments)?;
    let events = poll_bits(member(entry, "events")?)?;
    let waits = number(arguments.get(2)?)? != 0;
    Some(Request::Poll { socket: number(member(entry, "fd")?)?, events, waits })
}

/// The only entry of `poll`'s list; several are not supported.
pub(super) fn poll_entry(arguments: &[Value]) -> Option<&Value> {
    let Some(Value::List(items)) = arguments.first() else { return None };
    let [entry] = items.as_slice() else { return None };
    Some(entry)
}

/// `POLLIN|POLLOUT` as Linux's bits.
pub(super) fn poll_bits(value: &Value) -> Option<i64> {
    match value {
        Value::Int(bits) => Some(*bits),
        Value::Flags(parts) => parts.iter().try_fold(0, |bits, part| Some(bits | poll_bits(part)?)),
        Value::Word(word) => Some(match word.as_str() {
            "POLLIN" => 0x1,
            "POLLOUT" => 0x4,
            "POLLERR" => 0x8,
            "POLLHUP" => 0x10,
            "POLLRDHUP" => 0x2000,
            _ => return None,
        }),
        _ => None,
    }
}

/// The bytes of `[{…, 1000}, {…, 2000}]`.
fn vector(list: &Value) -> Option<i64> {
    let Value::List(items) = list else { return None };
    items.iter().try_fold(0_i64, |sum, item| {
        let Value::Record(members) = item else { return None };
        sum.checked_add(number(&members.get(1)?.1)?)
    })
}

fn option_value(value: &Value) -> Option<OptionValue> {
    match value {
        Value::List(items) => option_value(items.first()?),
        Value::Text(text) => Some(OptionValue::Text(text.clone())),
        Value::Record(_) => {
            let off = number(member(value, "onoff")?)? == 0;
            let seconds = number(member(value, "linger")?)?;
            Some(OptionValue::Number(if off { -1 } else { seconds }))
        }
        _ => number(value).map(OptionValue::Number),
    }
}

pub(super) fn member<'a>(record: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Record(members) = record else { return None };
    members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
}

pub(super) fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::Word(word) => Some(word.clone()),
        _ => None,
    }
}

/// Whether the constant `name` is one of the values, or one of their flags.
fn mentions(values: &[Value], name: &str) -> bool {
    values.iter().any(|value| match value {
        Value::Word(word) => word == name,
        Value::Flags(parts) => mentions(parts, name),
        _ => false,
    })
}
