//! Counting what gave no packet, so that no frame is left out in silence.

use super::Undecoded;

/// Kinds told apart in a note; the rest are counted together.
const KINDS: usize = 12;

/// Kinds that a note names.
const NAMED: usize = 4;

/// The frames of one capture that gave no packet, by reason. Its size is fixed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    fragments: u64,
    cut_short: u64,
    malformed: u64,
    longer_than_frame: u64,
    protocols: Kinds<Protocol>,
    links: Kinds<u32>,
}

impl Tally {
    /// Counts one frame.
    #[cold]
    pub fn add(&mut self, reason: Undecoded) {
        match reason {
            Undecoded::Fragment => self.fragments += 1,
            Undecoded::CutShort => self.cut_short += 1,
            Undecoded::Malformed => self.malformed += 1,
            Undecoded::LongerThanFrame => self.longer_than_frame += 1,
            Undecoded::NotIp(ethertype) => self.protocols.add(Protocol::Ether(ethertype)),
            Undecoded::OtherIpProtocol(number) => self.protocols.add(Protocol::Ip(number)),
            Undecoded::UnknownLink(number) => self.links.add(number),
        }
    }

    /// Frames counted, for whatever reason.
    pub fn total(&self) -> u64 {
        self.fragments
            + self.cut_short
            + self.malformed
            + self.longer_than_frame
            + self.protocols.total()
            + self.links.total()
    }

    /// One sentence for each reason that occurred, the gravest first.
    pub fn notes(&self) -> Vec<String> {
        let (links, protocols) = (self.links.total(), self.protocols.total());
        let unreadable = format!("tcpwhy cannot read this link layer ({})", self.links.list(link_name));
        let longer = "the headers count more bytes than the frame had, and are damaged";
        let other = format!("of other protocols left out ({}).", self.protocols.list(Protocol::name));
        [
            because(links, &unreadable),
            because(self.longer_than_frame, longer),
            because(
                self.cut_short,
                "the snapshot length cut the TCP or UDP header; capture with a larger -s",
            ),
            because(self.malformed, "the headers contradict themselves"),
            because(self.fragments, "IP fragments; tcpwhy needs whole segments"),
            (protocols > 0).then(|| format!("{} {other}", packets(protocols))),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn because(count: u64, reason: &str) -> Option<String> {
    (count > 0).then(|| format!("{} left out: {reason}.", packets(count)))
}

fn packets(count: u64) -> String {
    if count == 1 { "1 packet".to_owned() } else { format!("{count} packets") }
}

/// A protocol that is neither TCP nor UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Ether(u16),
    Ip(u8),
}

impl Protocol {
    fn name(self) -> String {
        let name = match self {
            Self::Ether(0x0000..0x0600) => "802.3 or other non-IP",
            Self::Ether(0x0806) => "ARP",
            Self::Ether(0x22f3) => "TRILL",
            Self::Ether(0x8035) => "RARP",
            Self::Ether(0x8809) => "LACP",
            Self::Ether(0x880b) => "PPP control",
            Self::Ether(0x8847 | 0x8848) => "MPLS",
            Self::Ether(0x8863) => "PPPoE discovery",
            Self::Ether(0x888e) => "EAPOL",
            Self::Ether(0x88cc) => "LLDP",
            Self::Ether(0x88e5) => "MACsec",
            Self::Ether(0x88f7) => "PTP",
            Self::Ether(0x9000) => "Ethernet loopback",
            Self::Ether(other) => return format!("EtherType 0x{other:04x}"),
            Self::Ip(1) => "ICMP",
            Self::Ip(2) => "IGMP",
            Self::Ip(33) => "DCCP",
            Self::Ip(47) => "GRE",
            Self::Ip(50) => "ESP",
            Self::Ip(58) => "ICMPv6",
            Self::Ip(88) => "EIGRP",
            Self::Ip(89) => "OSPF",
            Self::Ip(103) => "PIM",
            Self::Ip(112) => "VRRP",
            Self::Ip(115) => "L2TP",
            Self::Ip(132) => "SCTP",
            Self::Ip(136) => "UDP-Lite",
            Self::Ip(other) => return format!("IP protocol {other}"),
        };
        name.to_owned()
    }
}

/// The link layers that people capture on and that carry no IP we can reach.
fn link_name(number: u32) -> String {
    let name = match number {
        105 | 119 | 127 | 163 | 192 => "802.11",
        147..=162 => "private use",
        187 | 201 => "Bluetooth",
        189 | 220 | 249 => "USB",
        195 | 215 | 230 | 283 => "802.15.4",
        197 => "ERF",
        227 => "CAN",
        239 => "nflog",
        253 => "netlink",
        _ => return format!("link type {number}"),
    };
    format!("link type {number}, {name}")
}

/// How often each of a few kinds occurred: the first [`KINDS`] that were seen, and all others together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kinds<K> {
    seen: [Option<(K, u64)>; KINDS],
    others: u64,
}

impl<K: Copy> Default for Kinds<K> {
    fn default() -> Self {
        Self { seen: [None; KINDS], others: 0 }
    }
}

impl<K: Copy + PartialEq> Kinds<K> {
    fn add(&mut self, kind: K) {
        for slot in &mut self.seen {
            let (known, count) = slot.get_or_insert((kind, 0));
            if *known == kind {
                *count += 1;
                return;
            }
        }
        self.others += 1;
    }

    fn total(&self) -> u64 {
        self.others + self.seen.iter().flatten().map(|(_, count)| count).sum::<u64>()
    }

    /// `3 ARP, 2 ICMP, 1 other`, the most frequent first; a single kind needs no count.
    fn list(&self, name: impl Fn(K) -> String) -> String {
        let mut seen: Vec<(K, u64)> = self.seen.iter().flatten().copied().collect();
        if let ([(kind, _)], 0) = (seen.as_slice(), self.others) {
            return name(*kind);
        }
        seen.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let others = self.others + seen.iter().skip(NAMED).map(|(_, count)| count).sum::<u64>();
        let mut parts: Vec<String> =
            seen.iter().take(NAMED).map(|(kind, count)| format!("{count} {}", name(*kind))).collect();
        if others > 0 {
            parts.push(format!("{others} other"));
        }
        parts.join(", ")
    }
}
