//! The named facts that flow publishes. Later layers see these and never a packet.
//!
//! Times are ns on the capture's clock; sides are 0 and 1, the connection's two ends in the order of their
//! addresses ([`crate::flow::Connection::client`] says which of them is the client).

/// One end of a connection as an index: 0 or 1.
pub type End = usize;

/// Why a sender could not send, once the packet that ended the wait has shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A small segment was held until all in flight was ACKed. How much of it is the receiver's delayed ACK
    /// is known only at the end, with the shortest round trip of all.
    NagleHold,
    /// The same, perhaps: whether it was held only the whole connection can tell.
    MaybeHeld,
    /// A corked tail left when the cork's timer ran out.
    CorkTimeout,
    /// The receiver held an ACK that a full congestion window was waiting for.
    DelayedAck,
    /// The congestion window was full, and neither of the next two.
    CongestionWindow,
    /// The congestion window was still opening: slow start at the connection's beginning, or after a timeout.
    SlowStart,
    /// The congestion window had fallen while the sender was silent, and opened again.
    IdleRestart,
    /// The congestion window was full, and with less than it had allowed before a loss reduced it.
    AfterLoss,
    /// Neither window was full: the sender's buffer, or its program's own limit.
    SendBuffer,
    /// The receiver's window was full.
    ReceiveWindow,
    /// The receiver's window was full, and what it then had room for was less than a full segment and was filled.
    SillyWindow,
    /// The receiver's window was zero.
    ZeroWindow,
    /// The receiver's window was full, or its ACK late, because its program did not read what had arrived.
    Unread,
    /// A lost segment was being repaired, and no timer had to expire for it.
    Recovery,
    /// The same after a timer had expired.
    AfterTimer,
    /// A retransmission timer had to expire.
    Timeout,
    /// A retransmission timer had to expire for a segment that was lost before it came to the capture point.
    UnseenTimeout,
    /// A timer had to expire for a segment that was lost with nothing behind it.
    TailLoss,
    /// The SYN's retransmission timer had to expire.
    SynTimeout,
    /// Of a repair: what a lost tail took beyond the timer and a round trip.
    TailRepair,
    /// Of a repair: what it took beyond a timer and a round trip, where more than a tail had been lost.
    TimerRepair,
    /// Of a repair: the receiver held the ACK of what filled a hole.
    LateRepairAck,
    /// Of a repair: another round trip for a single hole.
    OneHole,
    /// Of a repair: the whole of it, if the path was kept busy all the time.
    BusyRepair,
    /// No wait: a tail-loss probe sent again what had arrived.
    NeedlessProbe,
    /// No wait: the retransmission timer sent again what had arrived.
    NeedlessTimer,
    /// No wait: duplicate ACKs made the sender send again what had arrived.
    NeedlessRepair,
    /// What was in flight was ACKed so late that its sender sent it again; the original had arrived. What took so long,
    /// the packets do not tell.
    Unanswered,
    /// What was in flight took longer than the base round trip to drain.
    Queueing,
    /// SYN, SYN-ACK, ACK.
    Handshake,
    /// Bytes back to back.
    Transfer,
    /// No wait of TCP's: the program took this long to answer.
    Program,
    /// No wait of TCP's: what came so long after a request that it may be its answer or a notice.
    LateAnswer,
    /// No wait of TCP's: an answer came so late with the request's first ACK that it may have been lost before.
    SilentAnswer,
    /// No wait of TCP's: what the client said last had no answer until it closed, or the capture ended.
    NoAnswer,
    /// No wait of TCP's: the server's program took this long to go on with its answer.
    ProgramPause,
}

impl Cause {
    /// Those for which TCP made a program wait.
    pub(crate) const TCPS: [Self; 20] = [
        Self::NagleHold,
        Self::MaybeHeld,
        Self::CorkTimeout,
        Self::DelayedAck,
        Self::CongestionWindow,
        Self::SlowStart,
        Self::IdleRestart,
        Self::AfterLoss,
        Self::SendBuffer,
        Self::ReceiveWindow,
        Self::SillyWindow,
        Self::ZeroWindow,
        Self::Unread,
        Self::Recovery,
        Self::AfterTimer,
        Self::Timeout,
        Self::UnseenTimeout,
        Self::TailLoss,
        Self::SynTimeout,
        Self::Queueing,
    ];
}

/// One resolved wait of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Why.
    pub cause: Cause,
    /// The sender that waited.
    pub end: End,
    /// From when.
    pub from: i64,
    /// Until when.
    pub until: i64,
    /// The last packet before the wait, the one that ended it, and the one that then left (equal where there
    /// are fewer than three).
    pub packets: [u64; 3],
    /// When each of them passed the capture point.
    pub times: [i64; 3],
}

impl Wait {
    /// A wait that begins with the first of its packets and ends with the others.
    pub(crate) fn new(cause: Cause, end: End, (from, until): (i64, i64), packets: [u64; 3]) -> Self {
        Self { cause, end, from, until, packets, times: [from, until, until] }
    }
}

/// Whether the other end waited for what a program said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// It waited: a request was pending, or a dialogue was under way.
    Yes,
    /// It did not: nothing had been asked, or a person or a timer took their time.
    No,
    /// Only the whole connection tells: long after the last question, an answer looks like a notice.
    Perhaps,
}

/// One named fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A sender's wait, resolved.
    Wait(Wait),
    /// What Nagle's algorithm held, of which it was recorded when it was written: no more than this is left to the end.
    Hold {
        /// From the write on.
        wait: Wait,
        /// From when on only the receiver's delayed ACK was missing.
        late: i64,
    },
    /// Data left `end` and was travelling to the receiver and its ACK back to the capture point.
    InFlight {
        /// The sender.
        end: End,
        /// When the data passed the capture point.
        from: i64,
        /// When its ACK could have passed at the earliest.
        until: i64,
        /// How much of that goes with its length, ns: the path is slow.
        by_length: i64,
    },
    /// The program at `end` spoke: time before that which nothing else claims was its own, or nobody's.
    Spoke {
        /// Whose program.
        end: End,
        /// When.
        time: i64,
        /// Whether the other end waited for it.
        awaited: Awaited,
    },
    /// Everything before this instant is known: no wait that began earlier is still unresolved.
    Settled {
        /// The instant.
        until: i64,
    },
}

/// Who takes facts.
pub trait Facts {
    /// Takes the next fact. Facts come in the order in which they became known, which is not always the order
    /// in which they began.
    fn take(&mut self, fact: Fact);
}

impl Facts for Vec<Fact> {
    fn take(&mut self, fact: Fact) {
        self.push(fact);
    }
}
