//! Events to calls: where a call began, what it moved, and on which socket, come one after the other and are put together.

use std::collections::HashMap;

use tcpwhy_wire::calls::{About, Call, Kind, Recording};

use super::layout::{RESTARTS, Said};
use super::sockets::{Known, Table};

/// Calls kept, some 300 MB; later ones are counted.
const MOST_CALLS: usize = 4 << 20;

const EINTR: i64 = 4;
const IPPROTO_TCP: u64 = 6;
const TCP_NODELAY: u64 = 1;
// Commands of fcntl(2) that copy a descriptor.
const F_DUPFD: u64 = 0;
const F_DUPFD_CLOEXEC: u64 = 1030;

/// Who, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maker {
    pub(super) process: u32,
    pub(super) thread: u32,
    /// In ns since the epoch.
    pub(super) time: i64,
    /// The number of its stack, 0 for none.
    pub(super) stack: u32,
}

/// Calls so far.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    pub(super) sockets: Table,
    /// Their sockets are places in the table.
    calls: Vec<Call>,
    open: HashMap<u32, Open>,
    lost: u64,
}

/// A call that has begun in a thread.
#[derive(Clone, Copy, Debug)]
struct Open {
    number: i64,
    arguments: [u64; 6],
    began: i64,
    stack: u32,
    /// `setsockopt`'s, if it could be read.
    value: Option<i32>,
    /// It has moved bytes already, and is this one.
    call: Option<usize>,
}

impl Assembler {
    /// Events that never came.
    pub(super) fn lose(&mut self, events: u64) {
        self.lost = self.lost.saturating_add(events);
    }

    /// Takes an event; `value` is what `setsockopt` sets.
    pub(super) fn take(&mut self, said: &Said, maker: Maker, value: Option<i32>) {
        match *said {
            Said::Enter { number, arguments } => {
                let Maker { time: began, stack, .. } = maker;
                self.open.insert(maker.thread, Open { number, arguments, began, stack, value, call: None });
            }
            Said::Exit { number, result } => {
                if let Some(open) = self.open.remove(&maker.thread).filter(|open| open.number == number) {
                    self.left(open, maker, result);
                }
            }
            Said::Sent { sock, result } => self.moved(sock, maker, result, None),
            Said::Received { sock, result, flags } => self.moved(sock, maker, result, Some(flags)),
            Said::State { sock, old, new, ends } => self.sockets.state(sock, old, new, ends),
        }
    }

    /// A thread's end.
    pub(super) fn ended(&mut self, thread: u32) {
        self.open.remove(&thread);
    }

    /// Everything, its calls in the order of their beginnings. Calls on what was no TCP socket are left out.
    pub(super) fn finish(self) -> Recording {
        let cookies = self.sockets.cookies();
        let named = |mut call: Call| {
            call.socket = cookies[call.socket as usize]?;
            Some(call)
        };
        let mut calls: Vec<_> = self.calls.into_iter().filter_map(named).collect();
        calls.sort_by_key(|call| call.start);
        let about = About { lost: self.lost, ..About::default() };
        Recording { calls, sockets: self.sockets.sockets(), about, ..Recording::default() }
    }

    /// A call of which only its own end tells.
    fn left(&mut self, open: Open, maker: Maker, result: i64) {
        let [fd, second, third, ..] = open.arguments;
        let (process, fd) = (maker.process, fd as i32);
        let made = i32::try_from(result).ok().filter(|made| *made >= 0);
        match (open.number, made) {
            // Whatever had this number before has been closed, by close_range() perhaps.
            (libc::SYS_socket, Some(new)) => self.sockets.closed(process, new),
            (libc::SYS_dup | libc::SYS_dup3, Some(to)) => self.sockets.copied(process, fd, to),
            (libc::SYS_fcntl, Some(to)) if matches!(second, F_DUPFD | F_DUPFD_CLOEXEC) => {
                self.sockets.copied(process, fd, to);
            }
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_dup2, Some(to)) if to != fd => self.sockets.copied(process, fd, to),
            (libc::SYS_accept | libc::SYS_accept4, Some(new)) => {
                let known = self.sockets.accepted(process, fd, new);
                self.record(Kind::Accept, known, open, maker, new, result);
            }
            (libc::SYS_connect, _) => {
                let known = self.sockets.of_descriptor(process, fd);
                self.record(Kind::Connect, known, open, maker, fd, result);
            }
            (libc::SYS_setsockopt, _) if second == IPPROTO_TCP => {
                let known = self.sockets.of_descriptor(process, fd);
                let value = if result == 0 { open.value } else { Some(0) };
                if let (Some(known), TCP_NODELAY, Some(value), 0) = (known, third, value, result) {
                    self.sockets.set_nodelay(known, value != 0);
                }
                let known = known.filter(|_| value.is_some());
                self.record(Kind::SetSockOpt, known, Open { value, ..open }, maker, fd, result);
            }
            (libc::SYS_shutdown, _) => {
                if let known @ Some(_) = self.sockets.known_descriptor(process, fd) {
                    self.record(Kind::Shutdown, known, open, maker, fd, result);
                }
            }
            (libc::SYS_close, _) => {
                if let known @ Some(_) = self.sockets.known_descriptor(process, fd) {
                    self.record(Kind::Close, known, open, maker, fd, result);
                    self.sockets.closed(process, fd);
                }
            }
            _ => {}
        }
    }

    /// Bytes went from a program to TCP, or with `flags`, the other way.
    fn moved(&mut self, sock: u64, maker: Maker, result: i64, flags: Option<u64>) {
        if RESTARTS.contains(&result) && flags.is_some() {
            return;
        }
        let result = if RESTARTS.contains(&result) { -EINTR } else { result };
        let is_write = flags.is_none();
        // Without a beginning that fits, it was io_uring.
        let open = self.open.get(&maker.thread).copied();
        let open =
            open.and_then(|open| Some((open, Moving::of(&open).filter(|moving| moving.writes == is_write)?)));
        if let Some((Open { call: Some(at), .. }, _)) = open {
            self.goes_on(at, maker.time, result);
            return;
        }
        let known = self.sockets.at_place(sock, maker.process, open.map(|(_, moving)| moving.fd));
        let at = self.calls.len();
        match open {
            Some((open, moving)) => {
                let asked = if moving.asked == 0 { result.max(0).unsigned_abs() } else { moving.asked };
                let open = Open { arguments: [0, 0, 0, asked, moving.flags, 0], ..open };
                self.record(moving.kind, known, open, maker, moving.fd, result);
            }
            None => {
                let kind = if is_write { Kind::Send } else { Kind::Recv };
                let arguments = [0, 0, 0, result.max(0).unsigned_abs(), flags.unwrap_or(0), 0];
                let open =
                    Open { number: 0, arguments, began: maker.time, stack: 0, value: None, call: None };
                self.record(kind, known, open, maker, -1, result);
            }
        }
        if let Some(open) =
            self.open.get_mut(&maker.thread).filter(|_| open.is_some() && self.calls.len() > at)
        {
            open.call = Some(at);
        }
    }

    /// A call that moves bytes in several goes (`sendfile`, `sendmmsg`) is still one.
    fn goes_on(&mut self, at: usize, now: i64, result: i64) {
        let call = &mut self.calls[at];
        if result > 0 {
            call.result = call.result.max(0) + result;
        }
        call.took = now.saturating_sub(call.start).max(0).unsigned_abs();
        call.asked = call.asked.max(call.result.max(0).unsigned_abs());
    }

    fn record(&mut self, kind: Kind, known: Option<Known>, open: Open, maker: Maker, fd: i32, result: i64) {
        let Some(Known(socket)) = known.filter(|_| self.calls.len() < MOST_CALLS) else {
            self.lose(1);
            return;
        };
        let [_, second, third, asked, flags, _] = open.arguments;
        let (asked, flags) = match kind {
            Kind::SetSockOpt => {
                (second << 32 | third & 0xffff_ffff, u64::from(open.value.unwrap_or(0).cast_unsigned()))
            }
            Kind::Shutdown => (0, second),
            Kind::Accept if open.number == libc::SYS_accept4 => (0, asked),
            Kind::Connect | Kind::Accept | Kind::Close => (0, 0),
            _ => (asked, flags),
        };
        self.calls.push(Call {
            kind,
            process: maker.process,
            thread: maker.thread,
            start: open.began,
            took: maker.time.saturating_sub(open.began).max(0).unsigned_abs(),
            socket,
            asked,
            result,
            fd,
            stack: if maker.stack == 0 { open.stack } else { maker.stack },
            flags,
        });
    }
}

/// A call that moves bytes, by its number and arguments.
#[derive(Clone, Copy, Debug)]
struct Moving {
    kind: Kind,
    writes: bool,
    fd: i32,
    /// Bytes; 0 where they are in memory that was not looked at.
    asked: u64,
    flags: u64,
}

impl Moving {
    fn of(open: &Open) -> Option<Self> {
        let [first, _, third, fourth, fifth, _] = open.arguments;
        let moving = |kind, writes, fd, asked, flags| Self { kind, writes, fd: fd as i32, asked, flags };
        Some(match open.number {
            libc::SYS_read => moving(Kind::Read, false, first, third, 0),
            libc::SYS_readv | libc::SYS_preadv2 => moving(Kind::Readv, false, first, 0, 0),
            // The C library's recv() and send() are these without an address.
            libc::SYS_recvfrom if fifth == 0 => moving(Kind::Recv, false, first, third, fourth),
            libc::SYS_recvfrom => moving(Kind::RecvFrom, false, first, third, fourth),
            libc::SYS_recvmsg => moving(Kind::RecvMsg, false, first, 0, third),
            libc::SYS_recvmmsg => moving(Kind::RecvMmsg, false, first, 0, fourth),
            libc::SYS_write => moving(Kind::Write, true, first, third, 0),
            libc::SYS_writev | libc::SYS_pwritev2 => moving(Kind::Writev, true, first, 0, 0),
            libc::SYS_sendto if fifth == 0 => moving(Kind::Send, true, first, third, fourth),
            libc::SYS_sendto => moving(Kind::SendTo, true, first, third, fourth),
            libc::SYS_sendmsg => moving(Kind::SendMsg, true, first, 0, third),
            libc::SYS_sendmmsg => moving(Kind::SendMmsg, true, first, 0, fourth),
            libc::SYS_sendfile => moving(Kind::Sendfile, true, first, fourth, 0),
            libc::SYS_splice => moving(Kind::Splice, true, third, fifth, 0),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOCK: u64 = 0x1000;
    const NODELAY: [u64; 6] = [5, IPPROTO_TCP, TCP_NODELAY, 0, 4, 0];

    /// Takes events of one thread, a microsecond apart.
    fn assembled(events: &[Said]) -> Recording {
        let mut assembler = Assembler::default();
        for (at, said) in (0_i64..).zip(events) {
            // A process that does not exist: nothing can be read of its descriptors.
            let maker = Maker { process: u32::MAX, thread: 1, time: at * 1000, stack: 0 };
            assembler.take(said, maker, Some(1));
        }
        assembler.finish()
    }

    fn enter(number: i64, arguments: [u64; 6]) -> Said {
        Said::Enter { number, arguments }
    }

    fn sent(sock: u64, result: i64) -> Said {
        Said::Sent { sock, result }
    }

    #[test]
    fn a_write_begins_before_its_bytes_are_taken() {
        let made = assembled(&[enter(libc::SYS_write, [5, 0, 70, 0, 0, 0]), sent(SOCK, 60)]);
        let [call] = made.calls[..] else { panic!("{made:?}") };
        assert_eq!((call.kind, call.fd, call.start, call.took), (Kind::Write, 5, 0, 1000));
        assert_eq!((call.asked, call.result), (70, 60));
    }

    #[test]
    fn sendfile_is_one_call_however_often_it_gives_bytes() {
        let file = enter(libc::SYS_sendfile, [5, 3, 0, 150, 0, 0]);
        let made = assembled(&[file, sent(SOCK, 100), sent(SOCK, 50), sent(SOCK, -11)]);
        let [call] = made.calls[..] else { panic!("{made:?}") };
        assert_eq!((call.kind, call.asked, call.result, call.took), (Kind::Sendfile, 150, 150, 3000));
    }

    #[test]
    fn io_uring_does_not_take_an_earlier_calls_beginning() {
        let file = enter(libc::SYS_write, [9, 0, 70, 0, 0, 0]);
        let made = assembled(&[file, enter(libc::SYS_io_uring_enter, [4; 6]), sent(SOCK, 10)]);
        let [call] = made.calls[..] else { panic!("{made:?}") };
        assert_eq!((call.kind, call.fd, call.start, call.took, call.asked), (Kind::Send, -1, 2000, 0, 10));
    }

    #[test]
    fn options_set_before_the_first_write_are_the_sockets_that_is_known_by_then() {
        let set = enter(libc::SYS_setsockopt, NODELAY);
        let left = |number, result| Said::Exit { number, result };
        let write = enter(libc::SYS_write, [6, 0, 1, 0, 0, 0]);
        let made = assembled(&[
            set.clone(),
            left(libc::SYS_setsockopt, 0),
            enter(libc::SYS_dup, [5, 0, 0, 0, 0, 0]),
            left(libc::SYS_dup, 6),
            write.clone(),
            sent(SOCK, 1),
            // Another socket with the first one's number, and one that is never TCP's.
            enter(libc::SYS_socket, [0; 6]),
            left(libc::SYS_socket, 5),
            set,
            left(libc::SYS_setsockopt, 0),
        ]);
        let [option, write] = made.calls[..] else { panic!("{made:?}") };
        assert_eq!((option.kind, option.asked, option.flags), (Kind::SetSockOpt, 6 << 32 | 1, 1));
        assert_eq!(option.socket, write.socket);
        assert_eq!(made.sockets.len(), 1);
    }

    #[test]
    fn memory_that_is_used_again_is_another_socket() {
        let write = enter(libc::SYS_write, [5, 0, 1, 0, 0, 0]);
        let ends = Some((([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into()));
        let state = |old, new, ends| Said::State { sock: SOCK, old, new, ends };
        let made = assembled(&[
            write.clone(),
            sent(SOCK, 1),
            state(1, 7, ends),
            enter(libc::SYS_close, [5, 0, 0, 0, 0, 0]),
            Said::Exit { number: libc::SYS_close, result: 0 },
            state(7, 2, None),
            write,
            sent(SOCK, 1),
        ]);
        let sockets: Vec<_> = made.calls.iter().map(|call| (call.kind, call.socket)).collect();
        let [(Kind::Write, first), (Kind::Close, closed), (Kind::Write, second)] = sockets[..] else {
            panic!("{made:?}")
        };
        assert!(first == closed && first != second, "{sockets:?}");
        let known: Vec<_> = made.sockets.iter().map(|socket| socket.local.zip(socket.peer)).collect();
        assert_eq!(known, [ends, None]);
    }
}
