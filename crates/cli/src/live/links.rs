//! Packets of the ring as frames of a capture: which link layer, which interface.

use tcpwhy_host::interface;
use tcpwhy_host::ring::{Packet, Passage};
use tcpwhy_wire::container::{Frame, LinkType};

/// Kinds of interfaces, `ARPHRD_…` of `<net/if_arp.h>`.
const ETHERNET: u16 = 1;
const LOOPBACK: u16 = 772;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Interfaces that are told apart; containers come and go for days.
const MOST: usize = 1_000;

/// An interface as a capture file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Described {
    index: u32,
    pub(super) link: LinkType,
    pub(super) name: String,
}

/// The interfaces that packets came by, in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) described: Vec<Described>,
}

/// What is left of a packet of the ring.
pub(super) enum Taken<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// Loopback hands out each packet as it leaves and as it arrives: the one that leaves.
    Twin,
    /// No way is known to the IP header, or there is none: the `EtherType`.
    Unknown(u16),
}

impl Links {
    /// The packet as a frame. Ethernet frames stay what they are; of other link layers only what follows is kept.
    pub(super) fn frame<'a>(&mut self, packet: &Packet<'a>) -> Taken<'a> {
        if packet.hardware == LOOPBACK && packet.passage == Passage::Left {
            return Taken::Twin;
        }
        let (link, skipped) = match packet.hardware {
            ETHERNET | LOOPBACK => (LinkType::ETHERNET, 0),
            _ if matches!(packet.protocol, IPV4 | IPV6) => (LinkType::RAW, packet.link_len),
            _ => return Taken::Unknown(packet.protocol),
        };
        let Some(interface) = self.number(packet.interface, link) else {
            return Taken::Unknown(packet.protocol);
        };
        Taken::Frame(Frame {
            time: packet.time,
            link,
            original_len: packet.original_len.saturating_sub(skipped.into()),
            interface,
            data: packet.data.get(usize::from(skipped)..).unwrap_or_default(),
        })
    }

    /// The number of an interface with that link layer; `None` for one too many.
    pub(super) fn number(&mut self, index: u32, link: LinkType) -> Option<u32> {
        let known = self.described.iter().position(|known| known.index == index && known.link == link);
        let number = known.or_else(|| {
            (self.described.len() < MOST).then(|| {
                let name = interface::name(index).unwrap_or_default();
                self.described.push(Described { index, link, name });
                self.described.len() - 1
            })
        });
        number.map(|number| number as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet behind a header of `link_len` bytes.
    fn packet(hardware: u16, passage: Passage, protocol: u16, link_len: u16, data: &[u8]) -> Packet<'_> {
        let original_len = 100;
        Packet { time: 7, passage, original_len, interface: 1, hardware, protocol, link_len, data }
    }

    #[test]
    fn ethernet_is_kept_and_other_link_layers_are_cut_off() {
        let mut links = Links::default();
        let data = [1; 40];
        let taken = |links: &mut Links, packet: Packet<'_>| match links.frame(&packet) {
            Taken::Frame(frame) => (frame.link, frame.interface, frame.data.len(), frame.original_len),
            _ => panic!("no frame"),
        };
        let ethernet = packet(ETHERNET, Passage::Left, IPV4, 14, &data);
        assert_eq!(taken(&mut links, ethernet), (LinkType::ETHERNET, 0, 40, 100));
        // ARPHRD_TUNNEL6, whose header is that of the outer packet.
        let tunnel = packet(769, Passage::Left, IPV6, 38, &data);
        assert_eq!(taken(&mut links, tunnel), (LinkType::RAW, 1, 2, 62));
        // ARPHRD_NONE: a TUN device or WireGuard.
        let bare = packet(0xfffe, Passage::Arrived, IPV4, 0, &data);
        assert_eq!(taken(&mut links, bare), (LinkType::RAW, 1, 40, 100));
        // A hostile header's length is no reason to panic.
        assert_eq!(taken(&mut links, packet(0xfffe, Passage::Arrived, IPV4, 99, &data)).2, 0);
        assert!(matches!(
            links.frame(&packet(0xfffe, Passage::Arrived, 0x88cc, 0, &data)),
            Taken::Unknown(_)
        ));
    }

    #[test]
    fn loopback_is_taken_once() {
        let mut links = Links::default();
        assert!(matches!(links.frame(&packet(LOOPBACK, Passage::Left, IPV4, 14, &[0; 60])), Taken::Twin));
        assert!(matches!(
            links.frame(&packet(LOOPBACK, Passage::Arrived, IPV4, 14, &[0; 60])),
            Taken::Frame(_)
        ));
    }

    #[test]
    fn interfaces_are_bounded() {
        let mut links = Links::default();
        for interface in 0..2 * MOST as u32 {
            links.frame(&Packet { interface, ..packet(ETHERNET, Passage::Left, IPV4, 14, &[0; 60]) });
        }
        assert_eq!(links.described.len(), MOST);
    }
}
