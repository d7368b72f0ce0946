//! Segments, and a link that is driven by numbers.

use tcpwhy_simulate::link::{Delivery, Direction, Ends, Event, EventKind, Link, Segment, Settings, Tcp};

pub(crate) const MS: u64 = 1_000_000;

/// The MSS that the tests' SYNs announce.
pub(crate) const MSS: u32 = 1_460;

/// A packet that is not TCP.
pub(crate) fn packet(len: usize) -> Segment {
    Segment { len, ecn_capable: false, tcp: None }
}

/// A TCP segment of 40 bytes of headers and no options.
pub(crate) fn segment(tcp: Tcp) -> Segment {
    Segment { len: 40 + tcp.payload as usize, ecn_capable: false, tcp: Some(Tcp { flow: 7, ..tcp }) }
}

/// Bytes `seq` and following, `payload` of them.
pub(crate) fn data(seq: u32, payload: u32) -> Segment {
    segment(Tcp { seq, payload, ack_flag: true, ..Tcp::default() })
}

/// A pure ACK.
pub(crate) fn ack(ack: u32) -> Segment {
    segment(Tcp { ack, ack_flag: true, ..Tcp::default() })
}

/// Settings of the upward direction alone.
pub(crate) fn up(up: Settings) -> Ends {
    Ends { up, down: Settings::default() }
}

/// Everything that arrives, each when it is due.
pub(crate) fn drain<P: Clone>(link: &mut Link<P>) -> Vec<Delivery<P>> {
    let mut arrived = Vec::new();
    while let Some(at) = link.poll_at() {
        while let Some(delivery) = link.poll_deliver(at) {
            arrived.push(delivery);
        }
        assert!(link.poll_at().is_none_or(|next| next > at), "nothing that was due is left");
    }
    arrived
}

/// The times at which packets arrive, with the packets.
pub(crate) fn arrivals<P: Clone>(link: &mut Link<P>) -> Vec<(u64, P)> {
    drain(link).into_iter().map(|delivery| (delivery.due, delivery.packet)).collect()
}

/// All events.
pub(crate) fn events<P: Clone>(link: &mut Link<P>) -> Vec<Event> {
    std::iter::from_fn(|| link.poll_event()).collect()
}

/// What happened, with the packets' numbers.
pub(crate) fn kinds<P: Clone>(link: &mut Link<P>) -> Vec<(u64, EventKind)> {
    events(link).iter().map(|event| (event.number, event.kind)).collect()
}

/// A packet upward, which carries its own name.
pub(crate) fn send<P: Clone>(link: &mut Link<P>, now: u64, segment: Segment, name: P) {
    link.handle_packet(now, Direction::Up, segment, name);
}
