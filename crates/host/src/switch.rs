//! An option of a running program's socket, switched from outside and put back.
//!
//! The descriptor is duplicated for each switch and closed again at once: while a duplicate is open, the program's
//! `close()` ends nothing. What was there before is put back when a [`Switched`] is dropped.

use std::os::fd::{AsFd, OwnedFd};

use rustix::net::sockopt::{set_tcp_nodelay, set_tcp_quickack, tcp_nodelay, tcp_quickack};

use crate::process::{Descriptor, Holders, Refused};

/// An option that can be switched while a connection is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// `TCP_NODELAY`: Nagle's algorithm off. Switched on, it sends at once what was held (`__tcp_sock_set_nodelay`).
    NoDelay,
    /// `TCP_QUICKACK`: no delayed ACKs. The kernel switches it back by itself, so it has to be set again and again.
    QuickAck,
}

impl TcpOption {
    /// As `tcp(7)` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoDelay => "TCP_NODELAY",
            Self::QuickAck => "TCP_QUICKACK",
        }
    }

    fn get(self, socket: impl AsFd) -> Result<bool, Refused> {
        Ok(match self {
            Self::NoDelay => tcp_nodelay(socket)?,
            Self::QuickAck => tcp_quickack(socket)?,
        })
    }

    fn set(self, socket: impl AsFd, on: bool) -> Result<(), Refused> {
        match self {
            Self::NoDelay => set_tcp_nodelay(socket, on)?,
            Self::QuickAck => set_tcp_quickack(socket, on)?,
        }
        Ok(())
    }
}

/// A socket whose option is in our hands.
#[derive(Debug)]
pub struct Switched {
    descriptor: Descriptor,
    option: TcpOption,
    before: bool,
    /// What we set last; `None`: nothing yet, or it has been put back.
    ours: Option<bool>,
    overruled: u64,
}

impl Switched {
    /// Looks at the option, and changes nothing yet.
    ///
    /// # Errors
    ///
    /// [`Refused`] says why the socket cannot be reached.
    pub fn new(descriptor: Descriptor, option: TcpOption) -> Result<Self, Refused> {
        let before = option.get(descriptor.duplicate()?)?;
        Ok(Self { descriptor, option, before, ours: None, overruled: 0 })
    }

    /// A socket that somebody else switched, to be put back to `before`: for the process that does so when the one that
    /// switched it was killed.
    pub fn left_behind(descriptor: Descriptor, option: TcpOption, before: bool) -> Self {
        Self { descriptor, option, before, ours: Some(!before), overruled: 0 }
    }

    /// The descriptor as it was named at first.
    pub fn descriptor(&self) -> Descriptor {
        self.descriptor
    }

    /// What will be put back: what was there, or what the program itself has set since.
    pub fn before(&self) -> bool {
        self.before
    }

    /// How often the program itself changed the option between two switches.
    pub fn overruled(&self) -> u64 {
        self.overruled
    }

    /// Switches. What the program itself has set since the last time is what will be put back.
    ///
    /// # Errors
    ///
    /// [`Refused::Gone`]: the program has closed the socket.
    pub fn set(&mut self, on: bool) -> Result<(), Refused> {
        let socket = self.socket()?;
        if self.option == TcpOption::NoDelay && self.ours.is_some() {
            let now = self.option.get(&socket)?;
            if self.ours != Some(now) {
                self.overruled += 1;
                self.before = now;
            }
        }
        // Before the call: whatever happens in it, there is something to put back.
        self.ours = Some(on);
        self.option.set(&socket, on)
    }

    /// The option as it is now.
    ///
    /// # Errors
    ///
    /// [`Refused::Gone`]: the program has closed the socket.
    pub fn now(&self) -> Result<bool, Refused> {
        self.option.get(self.socket()?)
    }

    /// Puts back what was there, unless the program itself has set something else since; does nothing if nothing was
    /// switched.
    ///
    /// # Errors
    ///
    /// [`Refused::Gone`]: the program has closed the socket, and there is nothing left to put back.
    pub fn put_back(&mut self) -> Result<(), Refused> {
        if self.ours.is_none() {
            return Ok(());
        }
        let before = self.before;
        self.set(if self.option == TcpOption::NoDelay { self.latest(before)? } else { before })?;
        self.ours = None;
        Ok(())
    }

    /// `before`, or what the program set last.
    fn latest(&self, before: bool) -> Result<bool, Refused> {
        let now = self.now()?;
        Ok(if self.ours == Some(now) { before } else { now })
    }

    /// Leaves the option as it is now.
    pub fn keep(&mut self) {
        self.ours = None;
    }

    /// The socket, also where the program has moved it to another descriptor or handed it to another process.
    fn socket(&self) -> Result<OwnedFd, Refused> {
        match self.descriptor.duplicate() {
            Err(Refused::Gone) => {
                let holders = Holders::of_all().map_err(|error| Refused::Other(error.to_string()))?;
                let others = holders.of_socket(self.descriptor.inode);
                others.iter().find_map(|other| other.duplicate().ok()).ok_or(Refused::Gone)
            }
            found => found,
        }
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        // A socket that is gone has nothing to be put back.
        let _ = self.put_back();
    }
}
