//! The TCP sockets of the machine, or of some processes, with the programs that hold them and their options.
//!
//! [`Diag`] asks the kernel for all sockets of a network namespace, for which no rights are needed.
//! [`crate::process`] finds who holds them. What `sock_diag` does not tell, `TCP_NODELAY` above all, is read from a
//! duplicate of the program's descriptor, which is closed again at once.

mod descriptor;
mod diag;
mod raw;

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use tcpwhy_wire::sockets::{Holder, TcpSocket};

use crate::process::{self, Descriptor, Holders, Refused};
pub(crate) use descriptor::state_and_info;
pub use descriptor::{buffers, describe, info, options};
pub use diag::Diag;

/// A socket of the running system.
#[derive(Clone, Debug)]
pub struct Found {
    /// What is known of it.
    pub socket: TcpSocket,
    /// Its own address.
    pub local: SocketAddr,
    /// The other side's; unspecified, with port 0, where there is none.
    pub peer: SocketAddr,
    /// The kernel's number for it, unlike any other's for as long as the machine runs.
    pub cookie: u64,
    /// The descriptors that are this socket, of the processes asked.
    pub descriptors: Vec<Descriptor>,
    /// Why its options are not known, if they were asked for in vain.
    pub refused: Option<Refused>,
    /// It lives in another network namespace than ours.
    pub is_elsewhere: bool,
}

impl Found {
    pub(crate) fn new(socket: TcpSocket, local: SocketAddr, peer: SocketAddr, cookie: u64) -> Self {
        Self { socket, local, peer, cookie, descriptors: Vec::new(), refused: None, is_elsewhere: false }
    }

    /// Reads the options through the first of its descriptors that may be duplicated. Some 5 µs.
    pub fn read_options(&mut self) {
        self.refused = None;
        for descriptor in &self.descriptors {
            match descriptor.duplicate() {
                Ok(twin) => {
                    self.socket.options = options(&twin).unwrap_or_default();
                    if let Ok(buffers) = buffers(&twin) {
                        self.socket.buffers = buffers;
                    }
                    self.refused = None;
                    return;
                }
                Err(refused) => self.refused = Some(refused),
            }
        }
    }
}

/// Looks at sockets, again and again.
#[derive(Debug)]
pub struct Observer {
    diag: Diag,
    /// Our own network namespace; `None` before Linux 5.14.
    namespace: Option<u64>,
    /// Names of processes, as long as they hold sockets.
    names: HashMap<u32, String>,
}

impl Observer {
    /// Begins to look, in the calling thread's network namespace.
    ///
    /// # Errors
    ///
    /// Those of [`Diag::open`].
    pub fn new() -> io::Result<Self> {
        // Any socket of ours tells our namespace.
        let own = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).ok();
        let namespace = own.as_ref().and_then(descriptor::namespace);
        Ok(Self { diag: Diag::open()?, namespace, names: HashMap::new() })
    }

    /// Every TCP socket of the namespace, without its holders.
    ///
    /// # Errors
    ///
    /// Those of [`Diag::sockets`].
    pub fn all(&mut self) -> io::Result<Vec<Found>> {
        self.diag.sockets()
    }

    /// The TCP sockets that `holders` found, wherever they live: those of other namespaces, and those that are not
    /// connected yet, through their descriptors. Who holds which is for [`Observer::attribute`] to say.
    ///
    /// # Errors
    ///
    /// Those of [`Diag::sockets`].
    pub fn held(&mut self, holders: &Holders) -> io::Result<Vec<Found>> {
        let mut found = self.diag.sockets()?;
        found.retain(|one| one.socket.inode.is_some_and(|inode| !holders.of_socket(inode).is_empty()));
        let seen: HashSet<u64> = found.iter().filter_map(|one| one.socket.inode).collect();
        let mut unseen: Vec<_> =
            holders.descriptors().filter(|descriptor| !seen.contains(&descriptor.inode)).collect();
        unseen.sort_unstable_by_key(|descriptor| (descriptor.inode, descriptor.pid, descriptor.fd));
        unseen.dedup_by_key(|descriptor| descriptor.inode);
        found.extend(unseen.into_iter().filter_map(|descriptor| self.elsewhere(descriptor)));
        Ok(found)
    }

    /// A socket that `sock_diag` does not show; `None` if it is none of TCP's, or out of reach.
    fn elsewhere(&self, descriptor: Descriptor) -> Option<Found> {
        let twin = descriptor.duplicate().ok()?;
        let mut found = describe(&twin).ok().flatten()?;
        found.is_elsewhere = self.namespace.is_some() && descriptor::namespace(&twin) != self.namespace;
        Some(found)
    }

    /// Says who holds each socket.
    pub fn attribute(&mut self, found: &mut [Found], holders: &Holders) {
        for one in found {
            one.descriptors = holders.of_socket(one.socket.inode.unwrap_or(0)).to_vec();
            one.socket.holders = one.descriptors.iter().map(|descriptor| self.holder(*descriptor)).collect();
        }
    }

    fn holder(&mut self, descriptor: Descriptor) -> Holder {
        let Descriptor { pid, fd, .. } = descriptor;
        let name = self.names.entry(pid).or_insert_with(|| process::name(pid).unwrap_or_default());
        Holder { name: name.clone(), pid, fd: u32::try_from(fd).ok() }
    }

    /// Forgets the names of processes: they may end, and their numbers be given to others.
    pub fn forget_names(&mut self) {
        self.names.clear();
    }
}
