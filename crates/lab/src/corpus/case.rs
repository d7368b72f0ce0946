//! A case: a run, and what is wrong with it.

use serde::{Deserialize, Serialize};

use super::run::{Run, Traffic};
use crate::capture::Vantage;
use crate::place::{Path, Wire};
use crate::programs::chat::Chat;
use crate::programs::stream::Stream;
use crate::programs::transfer::Transfer;

/// What kind of case it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// One cause.
    Single,
    /// Several causes on one connection.
    Compound,
    /// Looks like another cause's traffic, and is not.
    LookAlike,
    /// Nothing is wrong.
    Clean,
}

/// Who is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Party {
    /// The client's host or program.
    Client,
    /// The server's.
    Server,
    /// Either end: each could mend it alone.
    Ends,
    /// The path.
    Network,
    /// The way the capture was made.
    Capture,
}

/// One cause, and the same run without it.
#[derive(Clone, Debug)]
pub struct Cause {
    /// Its name in tables.
    pub name: &'static str,
    /// Rules that name it, the best name first.
    pub rules: &'static [&'static str],
    /// Who is to blame.
    pub side: Party,
    /// Whether it costs time; a trait of the traffic or the capture does not.
    pub costs: bool,
    /// Where a capture shows nothing of it: the lost segment never came there, and nothing came behind it.
    pub unseen_at: Option<Vantage>,
    /// Takes it out of a run.
    pub cure: fn(&mut Run),
}

/// What names the capture of segments that the device will cut.
pub(super) const OFFLOAD: &[&str] = &["offloaded-segments"];

impl Cause {
    /// Whether a capture made there can show it: segments that the device will cut show only on the host that
    /// sends them.
    pub(super) fn shows_at(&self, vantage: Vantage) -> bool {
        self.rules != OFFLOAD || vantage.is_at(self.side)
    }
}

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Short; the captures are named after it.
    pub name: String,
    /// What the programs and the path do.
    pub story: String,
    /// What kind of case it is.
    pub group: Group,
    /// The run.
    pub run: Run,
    /// What is wrong with it.
    pub causes: Vec<Cause>,
    /// Rules that are true of it besides, and why that is so in the story or the matrix.
    pub allowed: Vec<&'static str>,
    /// The one place whose capture is kept; all without.
    pub only_at: Option<Vantage>,
}

impl Case {
    /// The run without any of its causes.
    pub fn cured(&self) -> Run {
        let mut run = self.run.clone();
        for cause in &self.causes {
            (cause.cure)(&mut run);
        }
        run
    }

    /// The run without one cause.
    pub fn without(&self, cause: &Cause) -> Run {
        let mut run = self.run.clone();
        (cause.cure)(&mut run);
        run
    }

    /// The run without all causes but this one.
    pub fn alone(&self, cause: &Cause) -> Run {
        let mut run = self.run.clone();
        for other in self.causes.iter().filter(|other| other.name != cause.name || other.side != cause.side) {
            (other.cure)(&mut run);
        }
        run
    }

    /// The same case, with these rules allowed too.
    #[must_use]
    pub fn allowing(mut self, rules: &[&'static str]) -> Self {
        self.allowed.extend(rules);
        self
    }
}

/// Parts of a run that a cure or the matrix changes; nothing happens where a run has no such part.
impl Run {
    /// Changes a chat.
    pub fn chat(&mut self, change: impl FnOnce(&mut Chat)) {
        if let Traffic::Chat(chat) = &mut self.traffic {
            change(chat);
        }
    }

    /// Changes a stream.
    pub fn stream(&mut self, change: impl FnOnce(&mut Stream)) {
        if let Traffic::Stream(stream) = &mut self.traffic {
            change(stream);
        }
    }

    /// Changes a transfer.
    pub fn transfer(&mut self, change: impl FnOnce(&mut Transfer)) {
        if let Traffic::Transfer(transfer) = &mut self.traffic {
            change(transfer);
        }
    }

    /// Changes an emulated link.
    pub fn wire(&mut self, change: impl FnOnce(&mut Wire)) {
        if let Path::Link(wire) = &mut self.path {
            change(wire);
        }
    }
}
