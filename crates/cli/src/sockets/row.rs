//! One socket on its way to the reader, with what is not known of it and why.

use tcpwhy_diagnose::sockets::{Suspicion, suspicions};
use tcpwhy_host::process::Refused;
use tcpwhy_wire::sockets::{State, TcpSocket};

/// A socket and its suspicions.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) socket: TcpSocket,
    pub(super) suspicions: Vec<Suspicion>,
    /// Tells it from all other sockets; 0 in a saved text.
    pub(super) cookie: u64,
    /// It lives in another network namespace than ours.
    pub(super) is_elsewhere: bool,
    /// Why its program is not known.
    pub(super) program_unknown: Option<Unknown>,
    /// Why its options are not known.
    pub(super) options_unknown: Option<Unknown>,
}

impl Row {
    /// Why no program is known to hold a socket that no process holds, as its number 0 tells: a socket gets its number
    /// when a program accepts it, and loses it when the last program closes it.
    pub(super) fn held_by_none(state: State) -> Unknown {
        match state {
            State::Established | State::CloseWait | State::SynReceived => Unknown::Unaccepted,
            _ => Unknown::Nobody,
        }
    }

    pub(super) fn new(socket: TcpSocket) -> Self {
        let suspicions = suspicions(&socket);
        Self {
            socket,
            suspicions,
            cookie: 0,
            is_elsewhere: false,
            program_unknown: None,
            options_unknown: None,
        }
    }

    /// `python3 4711`, without anything cleaned from the name; else why there is no name.
    pub(super) fn program(&self) -> String {
        let holders = &self.socket.holders;
        let Some(first) = holders.first() else {
            return self
                .program_unknown
                .as_ref()
                .map_or(String::new(), |unknown| unknown.instead_of_program(self));
        };
        let others = holders.iter().filter(|holder| holder.pid != first.pid).count();
        match others {
            0 => format!("{} {}", first.name, first.pid),
            others => format!("{} {} and {others} more", first.name, first.pid),
        }
    }

    pub(super) fn ends(&self) -> String {
        let TcpSocket { local, peer, state, .. } = &self.socket;
        if matches!(state, State::Listen | State::Closed) {
            local.clone()
        } else {
            format!("{local} → {peer}")
        }
    }
}

/// Why something is not known of a socket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unknown {
    /// We lack the rights.
    Rights,
    /// No process has accepted it yet.
    Unaccepted,
    /// No process holds it.
    Nobody,
    /// Closed while we looked.
    Gone,
    /// The kernel is too old.
    Kernel,
    /// The saved text does not say.
    NotTold,
    /// Something else.
    Other(String),
}

impl Unknown {
    /// Why a refused descriptor's options are not known.
    pub(super) fn of(refused: &Refused) -> Self {
        match refused {
            Refused::Rights => Self::Rights,
            Refused::Gone => Self::Gone,
            Refused::Kernel => Self::Kernel,
            Refused::Other(why) => Self::Other(why.clone()),
        }
    }

    /// In a cell of the table.
    pub(super) fn short(&self) -> &'static str {
        match self {
            Self::Rights => "denied",
            Self::Unaccepted | Self::Nobody => "none",
            Self::Gone => "gone",
            Self::Kernel => "old",
            Self::NotTold => "?",
            Self::Other(_) => "error",
        }
    }

    /// What `short` means, below the table.
    pub(super) fn footnote(&self) -> String {
        match self {
            Self::Rights => {
                "needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH (try sudo): the program is another user's or \
                             protected, or this machine lets users trace only children (kernel.yama.ptrace_scope)"
                    .to_owned()
            }
            Self::Unaccepted | Self::Nobody => "no process holds the socket".to_owned(),
            Self::Gone => "closed while tcpwhy looked".to_owned(),
            Self::Kernel => Refused::Kernel.to_string(),
            Self::NotTold => "the text does not tell".to_owned(),
            Self::Other(why) => why.clone(),
        }
    }

    /// Where a program's name would stand.
    fn instead_of_program(&self, row: &Row) -> String {
        match self {
            Self::Rights => match row.socket.uid {
                Some(uid) => format!("user {uid}'s (denied)"),
                None => "denied".to_owned(),
            },
            Self::Unaccepted => "not accepted yet".to_owned(),
            Self::Nobody => "no process".to_owned(),
            _ => match row.socket.uid {
                Some(uid) => format!("user {uid}'s"),
                None => "program not told".to_owned(),
            },
        }
    }
}
