//! What a recorded call means: bytes moved, options set. Levels, options and flags are those of Linux.

use super::{Call, Kind};

const IPPROTO_TCP: u64 = 6;
const TCP_NODELAY: u64 = 1;
const TCP_CORK: u64 = 3;
const MSG_PEEK: u64 = 0x2;
const MSG_MORE: u64 = 0x8000;

/// An option that says when TCP may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// `TCP_NODELAY`: Nagle's algorithm is off.
    Nodelay,
    /// `TCP_CORK`: only full segments leave.
    Cork,
}

impl Sending {
    /// How a recording has it: the level in the upper half and the option in the lower.
    pub fn asked(self) -> u64 {
        let option = match self {
            Self::Nodelay => TCP_NODELAY,
            Self::Cork => TCP_CORK,
        };
        IPPROTO_TCP << 32 | option
    }
}

impl Call {
    /// When it had returned, ns since the epoch.
    pub fn end(&self) -> i64 {
        self.start.saturating_add_unsigned(self.took)
    }

    /// Bytes that it gave to TCP; `None` where it gave none.
    pub fn wrote(&self) -> Option<u64> {
        u64::try_from(self.result).ok().filter(|bytes| *bytes > 0 && self.kind.writes())
    }

    /// Whether it took bytes from TCP. One that only looks at them does not.
    pub fn reads(&self) -> bool {
        let only_looks = self.kind.takes_recv_flags() && self.flags & MSG_PEEK != 0;
        self.kind.reads() && self.result > 0 && !only_looks
    }

    /// Whether it says that more follows (`MSG_MORE`).
    pub fn says_more(&self) -> bool {
        self.kind.takes_send_flags() && self.flags & MSG_MORE != 0
    }

    /// Which option it switched, and whether on.
    pub fn switched(&self) -> Option<(Sending, bool)> {
        if self.kind != Kind::SetSockOpt || self.result != 0 {
            return None;
        }
        let option =
            [Sending::Nodelay, Sending::Cork].into_iter().find(|option| option.asked() == self.asked)?;
        Some((option, self.flags != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kind: Kind, asked: u64, result: i64, flags: u64) -> Call {
        let (process, thread, socket, fd, stack) = (1, 1, 7, 3, 0);
        Call { kind, process, thread, start: 10, took: 2, socket, asked, result, fd, stack, flags }
    }

    #[test]
    fn only_bytes_that_moved_count() {
        assert_eq!(call(Kind::Send, 10, 7, 0).wrote(), Some(7));
        for none in [call(Kind::Send, 10, -11, 0), call(Kind::Send, 0, 0, 0), call(Kind::Read, 10, 7, 0)] {
            assert_eq!(none.wrote(), None, "{none:?}");
        }
        assert!(call(Kind::Recv, 10, 7, 0).reads() && !call(Kind::Recv, 10, -11, 0).reads());
        assert!(!call(Kind::Recv, 10, 7, MSG_PEEK).reads() && !call(Kind::Send, 10, 7, 0).reads());
    }

    /// `splice` has flags of its own, and 2 of them is `SPLICE_F_NONBLOCK`.
    #[test]
    fn flags_count_where_they_are_those_of_send_or_recv() {
        assert!(call(Kind::SendMsg, 10, 10, MSG_MORE).says_more());
        assert!(!call(Kind::Splice, 10, 10, MSG_MORE).says_more());
        assert!(call(Kind::Readv, 10, 10, MSG_PEEK).reads());
    }

    #[test]
    fn an_option_is_switched_by_a_call_that_succeeds() {
        let cork = |result, value| call(Kind::SetSockOpt, Sending::Cork.asked(), result, value).switched();
        assert_eq!(cork(0, 1), Some((Sending::Cork, true)));
        assert_eq!(cork(0, 0), Some((Sending::Cork, false)));
        assert_eq!(cork(-22, 1), None);
        assert_eq!(call(Kind::SetSockOpt, 6 << 32 | 4, 0, 1).switched(), None);
    }
}
