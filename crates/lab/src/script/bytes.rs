//! Segments to IPv4 packets and back.

use tcpwhy_simulate::script::OnWire;
use tcpwhy_simulate::tcp::Ecn;
use tcpwhy_simulate::world::ipv4_packet;
use tcpwhy_wire::container::{Frame, LinkType};
use tcpwhy_wire::decode::decode;

use super::{LOCAL, REMOTE};

/// The connection's ports, as the kernel under test sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) local: u16,
    pub(super) remote: u16,
}

/// The packet that brings `arrival` to the kernel; `None` if none can be as long.
pub(super) fn write(arrival: &OnWire, ports: Ports) -> Option<Vec<u8>> {
    ipv4_packet(arrival, (REMOTE.octets(), ports.remote), (LOCAL.octets(), ports.local), 0)
}

/// A packet from the kernel, if it is a TCP segment over IPv4.
pub(super) fn read(packet: &[u8]) -> Option<(Ports, OnWire)> {
    let [version, service, ..] = *packet else { return None };
    if version >> 4 != 4 {
        return None;
    }
    let original_len = u32::try_from(packet.len()).ok()?;
    let frame = Frame { time: 0, data: packet, original_len, link: LinkType::RAW, interface: 0 };
    let decoded = decode(&frame, 1).ok()?;
    let ports = Ports { local: decoded.source.port, remote: decoded.destination.port };
    Some((ports, OnWire { tcp: *decoded.tcp()?, ecn: Ecn::of_type_of_service(service) }))
}
