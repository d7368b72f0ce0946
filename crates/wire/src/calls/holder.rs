//! The programs at the ends of connections.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use super::decode::end;
use super::encode::{Fields, padded};
use super::layout::{HOLDER, LONGEST_NAME, UDP};
use super::{Call, Recording};
use crate::container::bytes::Order;
use crate::container::cut;

/// A process that held the socket at one end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Whether it is a UDP flow's socket; else a TCP connection's.
    pub is_udp: bool,
    /// The socket's own address.
    pub local: SocketAddr,
    /// The other end's.
    pub peer: SocketAddr,
    /// The process.
    pub process: u32,
    /// What it calls itself; any text at all.
    pub name: String,
}

impl Recording {
    /// Who held the sockets whose both ends are known: of several processes the one that read and wrote most, the eldest of
    /// equals. One without a name is left out.
    pub fn holders(&self) -> Vec<Holder> {
        let mut calls: HashMap<u64, BTreeMap<u32, (u64, u64)>> = HashMap::new();
        for call in &self.calls {
            let (moving, all) = calls.entry(call.socket).or_default().entry(call.process).or_default();
            *moving += u64::from(moves(call));
            *all += 1;
        }
        let mut ends = BTreeMap::new();
        for socket in &self.sockets {
            ends.extend(socket.local.zip(socket.peer).map(|ends| (socket.cookie, ends)));
        }
        let holder = |(cookie, (local, peer))| {
            let of_processes = calls.get(&cookie)?.iter().rev();
            let (&process, _) = of_processes.max_by_key(|(_, calls)| **calls)?;
            let name = self.programs.get(&process)?.clone();
            Some(Holder { is_udp: false, local, peer, process, name })
        };
        ends.into_iter().filter_map(holder).collect()
    }
}

fn moves(call: &Call) -> bool {
    call.wrote().is_some() || call.reads()
}

pub(super) fn bytes_of(holder: &Holder) -> Vec<u8> {
    let name = cut(&holder.name, LONGEST_NAME);
    let len = (HOLDER + name.len()).next_multiple_of(4);
    let mut fixed = Fields::<HOLDER>::default();
    fixed.put(0, &(len as u16).to_ne_bytes());
    fixed.put(2, &[if holder.is_udp { UDP } else { 0 }]);
    fixed.put(3, &[name.len() as u8]);
    fixed.put(4, &holder.process.to_ne_bytes());
    fixed.put_end(Some(holder.local), (8, 12, 16));
    fixed.put_end(Some(holder.peer), (9, 14, 32));
    padded([&fixed.0, name.as_bytes()].concat())
}

/// `None` where it says what cannot be.
pub(super) fn of_bytes(order: Order, item: &[u8]) -> Option<Holder> {
    let fixed = item.get(..HOLDER)?;
    let name = item[HOLDER..].get(..usize::from(fixed[3]))?;
    Some(Holder {
        is_udp: fixed[2] & UDP != 0,
        process: order.u32(fixed, 4),
        local: end(fixed[8], order.u16(fixed, 12), &fixed[16..32])?,
        peer: end(fixed[9], order.u16(fixed, 14), &fixed[32..48])?,
        name: cut(&String::from_utf8_lossy(name), LONGEST_NAME).to_owned(),
    })
}
