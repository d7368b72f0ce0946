//! What a trial gave.

use std::net::SocketAddr;
use std::time::Duration;

use tcpwhy_diagnose::trial::{Block, Comparison, Measure, Verdict, judge};
use tcpwhy_host::process::Refused;
use tcpwhy_host::switch::TcpOption;

/// How the trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All blocks were measured.
    Whole,
    /// Somebody asked for the end.
    BrokenOff,
    /// The program has closed the last of the connections.
    Gone,
}

/// A socket that was switched.
pub(super) struct Account {
    pub(super) fd: i32,
    pub(super) local: SocketAddr,
    /// `None`: it listens.
    pub(super) peer: Option<SocketAddr>,
    pub(super) before: bool,
    /// As it is now; [`Refused::Gone`]: the program has closed it. Anything else: it may not be as it should.
    pub(super) after: Result<bool, Refused>,
    /// Times that the program itself switched it meanwhile.
    pub(super) overruled: u64,
}

impl Account {
    /// Whether it is as it should be: what was wanted is there, or the socket is gone.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.after, Ok(_) | Err(Refused::Gone))
    }
}

/// What a trial gave.
pub(super) struct Outcome {
    pub(super) pid: u32,
    pub(super) program: String,
    pub(super) option: TcpOption,
    /// Whether it was to be left on.
    pub(super) keep: bool,
    pub(super) planned: usize,
    pub(super) block: Duration,
    pub(super) seed: u64,
    pub(super) pairs: Vec<[Block; 2]>,
    pub(super) takes_turns: bool,
    pub(super) accounts: Vec<Account>,
    pub(super) end: End,
    pub(super) interface: Option<String>,
    pub(super) notes: Vec<String>,
    /// The program is a server: a listening socket can pass the option on.
    pub(super) serves: bool,
}

impl Outcome {
    /// The figure that decides. Exchanges where the sides take turns and their packets were seen; else what the option is
    /// there for. It is chosen by what kind of traffic there was, never by what came out.
    pub(super) fn measure(&self) -> Measure {
        if self.takes_turns || self.option == TcpOption::QuickAck { Measure::Latency } else { Measure::Wait }
    }

    pub(super) fn comparison(&self) -> Option<Comparison> {
        self.measure().compare(&self.pairs)
    }

    pub(super) fn verdict(&self) -> Verdict {
        judge(self.comparison().as_ref())
    }

    /// Whether the trial came to its end and says what the option does, or that it does nothing.
    pub(super) fn has_answer(&self) -> bool {
        self.end != End::BrokenOff && !matches!(self.verdict(), Verdict::Unclear | Verdict::TooLittle)
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.pairs.iter().flatten()
    }

    /// Something a second in the blocks of one setting. `None`: not known in all of them.
    pub(super) fn rate(&self, is_on: bool, of: impl Fn(&Block) -> Option<u64>) -> Option<f64> {
        let of = &of;
        let blocks = || self.blocks().filter(move |block| block.is_on == is_on);
        let seconds: f64 = blocks().map(|block| block.seconds).sum();
        let sum: Option<u64> = blocks().map(of).sum();
        sum.filter(|_| seconds > 0.0).map(|sum| sum as f64 / seconds)
    }
}
