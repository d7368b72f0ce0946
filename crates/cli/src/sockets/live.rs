//! The sockets of the running system.

use std::io::ErrorKind;

use anyhow::{Context, Result, bail};
use tcpwhy_diagnose::sockets::{Kind, suspicions};
use tcpwhy_host::process::{self, Holders};
use tcpwhy_host::sockets::{Found, Observer};

use super::row::{Row, Unknown};
use super::{Look, sentence};
use crate::complaint;

/// Looks at all sockets, or at those of some processes.
pub(super) struct Live {
    observer: Observer,
    pids: Vec<u32>,
    holders: Holders,
}

impl Live {
    pub(super) fn new(pids: &[u32]) -> Result<Self> {
        let observer = Observer::new().context("this system's sockets cannot be listed")?;
        let pids = reachable(pids)?;
        Ok(Self { observer, pids, holders: Holders::default() })
    }

    /// One careful look: options of every socket are read.
    pub(super) fn look(&mut self) -> Result<Look> {
        self.find_holders()?;
        let mut found = self.sockets()?;
        self.observer.attribute(&mut found, &self.holders);
        found.iter_mut().for_each(Found::read_options);
        let rows = found.into_iter().map(|found| self.row(found)).collect();
        Ok(Look { source: "kernel", rows, notes: self.notes() })
    }

    /// One quick look, of many: programs are named only where there is a suspicion, and options are read only where it
    /// depends on them.
    pub(super) fn glance(&mut self) -> Result<Vec<Row>> {
        if !self.pids.is_empty() {
            // Their sockets come and go; all processes' are too many to be asked for each time.
            self.find_holders()?;
        }
        let mut found = self.sockets()?;
        for one in &mut found {
            let suspicions = suspicions(&one.socket);
            if suspicions.is_empty() {
                continue;
            }
            self.observer.attribute(std::slice::from_mut(one), &self.holders);
            let depends = |kind| matches!(kind, Kind::Nagle | Kind::Cork | Kind::NagleOrCork);
            if suspicions.iter().any(|suspicion| depends(suspicion.kind)) {
                one.read_options();
            }
        }
        Ok(found.into_iter().map(|found| self.row(found)).collect())
    }

    /// Asks anew who holds what.
    pub(super) fn find_holders(&mut self) -> Result<()> {
        self.observer.forget_names();
        self.holders = if self.pids.is_empty() {
            Holders::of_all().context("/proc cannot be read")?
        } else {
            Holders::of(&self.pids)
        };
        Ok(())
    }

    /// Whether none of the processes is left.
    pub(super) fn is_over(&self) -> bool {
        !self.pids.is_empty() && !self.pids.iter().any(|&pid| process::is_running(pid))
    }

    /// All that were asked for.
    fn sockets(&mut self) -> Result<Vec<Found>> {
        let found =
            if self.pids.is_empty() { self.observer.all() } else { self.observer.held(&self.holders) };
        found.context("this system's sockets cannot be listed")
    }

    fn row(&self, found: Found) -> Row {
        let program_unknown = found.socket.holders.is_empty().then(|| self.why_nobody(&found));
        let is_unknown = found.socket.options.nodelay.is_none();
        let why = || found.refused.as_ref().map(Unknown::of).or_else(|| program_unknown.clone());
        let options_unknown = is_unknown.then(|| why().unwrap_or(Unknown::Gone));
        let Found { cookie, is_elsewhere, socket, .. } = found;
        Row { cookie, is_elsewhere, program_unknown, options_unknown, ..Row::new(socket) }
    }

    /// Why no process is known to hold a socket.
    fn why_nobody(&self, found: &Found) -> Unknown {
        match found.socket.inode {
            Some(0) => Row::held_by_none(found.socket.state),
            _ if self.holders.hidden > 0 => Unknown::Rights,
            _ => Unknown::Nobody,
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for &pid in &self.pids {
            if process::shares_our_network(pid).is_ok_and(|shares| !shares) {
                notes.push(format!("Process {pid} lives in another network namespace."));
            }
        }
        if self.pids.is_empty() {
            let hidden = self.holders.hidden;
            if hidden > 0 {
                notes.push(format!(
                    "{} not be looked into, so some sockets have no name: that takes CAP_SYS_PTRACE and \
                     CAP_DAC_READ_SEARCH ({}).",
                    sentence::plural(hidden as u64, "process may", "processes may"),
                    complaint::try_sudo()
                ));
            }
            match process::other_networks() {
                0 => {}
                1 => notes.push("Another network namespace is not shown: -p PID looks into it.".to_owned()),
                many => notes
                    .push(format!("{many} other network namespaces are not shown: -p PID looks into one.")),
            }
        }
        notes
    }
}

/// Those of `pids` that can be looked into; says why of the others, and fails if none is left.
fn reachable(pids: &[u32]) -> Result<Vec<u32>> {
    let mut left = Vec::new();
    let mut refusals = Vec::new();
    for &pid in pids {
        let pid = process::leader(pid).unwrap_or(pid);
        match process::sockets_of(pid) {
            Ok(_) => left.push(pid),
            Err(error) => refusals.push(match error.kind() {
                ErrorKind::NotFound => format!("process {pid}: there is none"),
                ErrorKind::PermissionDenied => format!(
                    "process {pid} may not be looked into: that needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH ({})",
                    complaint::try_sudo()
                ),
                _ => format!("process {pid}: {error}"),
            }),
        }
    }
    match refusals.as_slice() {
        [only] if left.is_empty() => bail!("{only}"),
        [_, _, ..] if left.is_empty() => bail!("{}", refusals.join("; ")),
        some => some.iter().for_each(|refusal| complaint::say(refusal)),
    }
    Ok(left)
}
