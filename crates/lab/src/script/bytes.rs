//! Segments to IPv4 packets and back.

use etherparse::{IpEcn, Ipv4Header, PacketBuilder, TcpHeader, TcpOptionElement, ip_number};
use tcpwhy_simulate::script::OnWire;
use tcpwhy_simulate::tcp::Ecn;
use tcpwhy_wire::{SackBlocks, Tcp, TcpFlags, TcpOptions};

use super::{LOCAL, REMOTE};

/// A hop limit like any other.
const HOPS: u8 = 64;

/// The connection's ports, as the kernel under test sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) local: u16,
    pub(super) remote: u16,
}

/// The packet that brings `arrival` to the kernel.
pub(super) fn write(arrival: &OnWire, ports: Ports) -> Option<Vec<u8>> {
    let tcp = &arrival.tcp;
    let mut ip = Ipv4Header::new(0, HOPS, ip_number::TCP, REMOTE.octets(), LOCAL.octets()).ok()?;
    ip.ecn = IpEcn::try_new(arrival.ecn as u8).ok()?;
    let mut header = TcpHeader::new(ports.remote, ports.local, tcp.seq, tcp.window);
    header.acknowledgment_number = tcp.ack;
    let flag = |bit| tcp.flags.has(bit);
    header.syn = flag(TcpFlags::SYN);
    header.fin = flag(TcpFlags::FIN);
    header.rst = flag(TcpFlags::RST);
    header.psh = flag(TcpFlags::PSH);
    header.ack = flag(TcpFlags::ACK);
    header.ece = flag(TcpFlags::ECE);
    header.cwr = flag(TcpFlags::CWR);
    header.set_options(&options(&tcp.options)).ok()?;
    let ip = etherparse::IpHeaders::Ipv4(ip, etherparse::Ipv4Extensions::default());
    let mut packet = Vec::new();
    let payload = vec![0; tcp.payload_len as usize];
    PacketBuilder::ip(ip).tcp_header(header).write(&mut packet, &payload).ok()?;
    Some(packet)
}

fn options(options: &TcpOptions) -> Vec<TcpOptionElement> {
    let mut list = Vec::new();
    list.extend(options.mss.map(TcpOptionElement::MaximumSegmentSize));
    list.extend(options.sack_permitted.then_some(TcpOptionElement::SelectiveAcknowledgementPermitted));
    list.extend(options.timestamps.map(|(value, echo)| TcpOptionElement::Timestamp(value, echo)));
    list.extend(options.window_scale.map(TcpOptionElement::WindowScale));
    if let Some((first, more)) = options.sack.as_slice().split_first() {
        let mut rest = [None; 3];
        for (slot, block) in rest.iter_mut().zip(more) {
            *slot = Some(*block);
        }
        list.push(TcpOptionElement::SelectiveAcknowledgement(*first, rest));
    }
    list
}

/// A packet from the kernel, if it is a TCP segment.
pub(super) fn read(packet: &[u8]) -> Option<(Ports, OnWire)> {
    let (ip, rest) = Ipv4Header::from_slice(packet).ok()?;
    if ip.protocol != ip_number::TCP {
        return None;
    }
    let (header, payload) = TcpHeader::from_slice(rest).ok()?;
    let bits = [
        (header.syn, TcpFlags::SYN),
        (header.fin, TcpFlags::FIN),
        (header.rst, TcpFlags::RST),
        (header.psh, TcpFlags::PSH),
        (header.ack, TcpFlags::ACK),
        (header.urg, TcpFlags::URG),
        (header.ece, TcpFlags::ECE),
        (header.cwr, TcpFlags::CWR),
    ];
    let flags = bits.iter().filter(|(set, _)| *set).fold(0, |flags, (_, bit)| flags | bit);
    let tcp = Tcp {
        seq: header.sequence_number,
        ack: header.acknowledgment_number,
        payload_len: u32::try_from(payload.len()).ok()?,
        window: header.window_size,
        flags: TcpFlags(flags),
        options: read_options(&header),
    };
    let ports = Ports { local: header.source_port, remote: header.destination_port };
    Some((ports, OnWire { tcp, ecn: Ecn::of_type_of_service(ip.ecn.value()) }))
}

fn read_options(header: &TcpHeader) -> TcpOptions {
    let mut options = TcpOptions::default();
    for option in header.options_iterator().flatten() {
        match option {
            TcpOptionElement::MaximumSegmentSize(mss) => options.mss = Some(mss),
            TcpOptionElement::WindowScale(shift) => options.window_scale = Some(shift),
            TcpOptionElement::SelectiveAcknowledgementPermitted => options.sack_permitted = true,
            TcpOptionElement::Timestamp(value, echo) => options.timestamps = Some((value, echo)),
            TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                let mut blocks = SackBlocks::default();
                for (left, right) in std::iter::once(first).chain(rest.into_iter().flatten()) {
                    blocks.push(left, right);
                }
                options.sack = blocks;
            }
            TcpOptionElement::Noop => {}
        }
    }
    options
}
