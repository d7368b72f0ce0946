//! The script's numbers against those on the wire.
//!
//! A stack chooses its initial sequence number and its timestamps' clock, so packetdrill maps both: the first SYN
//! tells by how much the stack's sequence numbers are ahead of the script's, the first timestamp by how much its
//! clock is. What the other side sends is the script's own and needs no mapping.

use std::collections::HashMap;

use tcpwhy_wire::{SackBlocks, Tcp, TcpFlags, TcpOptions};

use super::host::OnWire;
use super::outcome::Difference;
use super::show;
use super::syntax::{EcnBits, Options, Segment};
use crate::tcp::Ecn;

/// What the numbers of the stack under test are ahead of the script's.
#[derive(Clone, Debug, Default)]
pub(super) struct Mapping {
    /// Sequence numbers, once a SYN was sent.
    ahead: Option<u32>,
    /// Whether a new connection has begun: the next SYN sent tells `ahead` anew.
    anew: bool,
    /// The script's and the real value of the first timestamp sent.
    first_timestamp: Option<(u32, u32)>,
    /// Real timestamps by the script's.
    timestamps: HashMap<u32, u32>,
}

impl Mapping {
    /// A segment from the stack, in the script's sequence numbers; `expected` is what the script has for it.
    pub(super) fn shown(&mut self, sent: &OnWire, expected: Option<&Segment>) -> OnWire {
        let mut shown = *sent;
        if let Some(expected) = expected {
            self.learn(&sent.tcp, expected);
        }
        shown.tcp.seq = shown.tcp.seq.wrapping_sub(self.ahead.unwrap_or(0));
        if let (Some((script, real)), Some((value, _))) =
            (self.first_timestamp, &mut shown.tcp.options.timestamps)
        {
            *value = value.wrapping_sub(real).wrapping_add(script);
        }
        shown
    }

    /// A connection begins, maybe not the first.
    pub(super) fn begin(&mut self) {
        self.anew = true;
    }

    fn learn(&mut self, sent: &Tcp, expected: &Segment) {
        if sent.flags.has(TcpFlags::SYN) && (self.anew || self.ahead.is_none()) {
            self.ahead = Some(sent.seq.wrapping_sub(expected.seq));
            self.first_timestamp = self.first_timestamp.filter(|_| !self.anew);
            self.anew = false;
        }
        let Options::Listed { known, .. } = &expected.options else { return };
        if let (Some((script, _)), Some((real, _))) = (known.timestamps, sent.options.timestamps) {
            self.timestamps.insert(script, real);
            self.first_timestamp.get_or_insert((script, real));
        }
    }

    /// What the stack under test receives: acknowledgments and echoes in its own numbers.
    pub(super) fn to_wire(&self, segment: &Segment) -> OnWire {
        let mut tcp = header(segment);
        let ahead = self.ahead.unwrap_or(0);
        tcp.ack = tcp.ack.wrapping_add(ahead);
        let mut blocks = SackBlocks::default();
        for &(left, right) in tcp.options.sack.as_slice() {
            blocks.push(left.wrapping_add(ahead), right.wrapping_add(ahead));
        }
        tcp.options.sack = blocks;
        if let Some((_, echo)) = tcp.options.timestamps.as_mut().filter(|_| segment.ack.is_some()) {
            *echo = self.real_timestamp(*echo);
        }
        OnWire { tcp, ecn: ecn(segment.ecn) }
    }

    /// A value the script saw before, or one as far from the first as the script says.
    fn real_timestamp(&self, script: u32) -> u32 {
        let scaled = || {
            let (first, real) = self.first_timestamp.unwrap_or_default();
            script.wrapping_sub(first).wrapping_add(real)
        };
        self.timestamps.get(&script).copied().unwrap_or_else(scaled)
    }
}

/// The header that a script writes.
pub(super) fn header(segment: &Segment) -> Tcp {
    let options = match &segment.options {
        Options::Any => TcpOptions::default(),
        Options::Listed { known, .. } => *known,
    };
    Tcp {
        seq: segment.seq,
        ack: segment.ack.unwrap_or(0),
        payload_len: segment.payload_len,
        window: segment.window.unwrap_or(0),
        flags: segment.flags,
        options,
        message: None,
    }
}

fn ecn(bits: Option<EcnBits>) -> Ecn {
    match bits {
        None | Some(EcnBits::None) => Ecn::NotCapable,
        Some(EcnBits::Ect1) => Ecn::Ect1,
        Some(EcnBits::Ect0 | EcnBits::Either) => Ecn::Ect0,
        Some(EcnBits::Ce) => Ecn::Ce,
    }
}

/// What differs between the script's segment and the one sent, which is in the script's numbers. The order of the
/// options and their padding are not compared, and neither are the values of timestamps, as in packetdrill.
pub(super) fn differences(expected: &Segment, actual: &OnWire) -> Vec<Difference> {
    let wanted = header(expected);
    let tcp = &actual.tcp;
    let mut list = Vec::new();
    list.extend(Difference::between("flags", &show::flags(wanted.flags), &show::flags(tcp.flags)));
    list.extend(Difference::between("seq", &wanted.seq, &tcp.seq));
    list.extend(Difference::between("payload bytes", &wanted.payload_len, &tcp.payload_len));
    if wanted.flags.has(TcpFlags::ACK) && tcp.flags.has(TcpFlags::ACK) {
        list.extend(Difference::between("ack", &wanted.ack, &tcp.ack));
    }
    if let Some(window) = expected.window {
        list.extend(Difference::between("win", &window, &tcp.window));
    }
    list.extend(ecn_difference(expected.ecn, actual.ecn));
    if let Options::Listed { known, .. } = &expected.options {
        let actual = without_timestamp_value(known, &tcp.options);
        list.extend(Difference::between("options", &show::options(known), &show::options(&actual)));
    }
    list
}

fn ecn_difference(expected: Option<EcnBits>, actual: Ecn) -> Option<Difference> {
    let expected = expected?;
    let wanted = ecn(Some(expected));
    let agrees = actual == wanted || (expected == EcnBits::Either && actual == Ecn::Ect1);
    let (wanted, was) = (show::ecn(wanted).to_owned(), show::ecn(actual).to_owned());
    (!agrees).then_some(Difference { field: "ecn", expected: wanted, actual: was })
}

/// The options sent, with the script's timestamp value where both have timestamps.
fn without_timestamp_value(expected: &TcpOptions, actual: &TcpOptions) -> TcpOptions {
    let mut actual = *actual;
    if let (Some((value, _)), Some((real, _))) = (expected.timestamps, &mut actual.timestamps) {
        *real = value;
    }
    actual
}
