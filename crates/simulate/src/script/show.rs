//! Segments and times as packetdrill and tcpdump print them.

use std::fmt::Write;

use tcpwhy_wire::{Tcp, TcpFlags, TcpOptions};

use crate::tcp::Ecn;

/// `0.104000 > P. 1:1001(1000) ack 1 win 257 <nop,nop,TS val 100 ecr 0>`
pub(super) fn line(time: Option<u64>, direction: char, tcp: &Tcp, ecn: Option<Ecn>) -> String {
    let mut text = time.map_or_else(String::new, |time| format!("{} ", seconds(time)));
    text.push(direction);
    text.push(' ');
    if let Some(bits) = ecn.filter(|bits| *bits != Ecn::NotCapable) {
        let _ = write!(text, "[{}] ", self::ecn(bits));
    }
    text.push_str(&header(tcp));
    let options = options(&tcp.options);
    if !options.is_empty() {
        let _ = write!(text, " <{options}>");
    }
    text
}

/// The ECN field as scripts call it.
pub(super) fn ecn(bits: Ecn) -> &'static str {
    match bits {
        Ecn::NotCapable => "noecn",
        Ecn::Ect1 => "ect1",
        Ecn::Ect0 => "ect0",
        Ecn::Ce => "ce",
    }
}

/// ns as seconds with six places.
pub(super) fn seconds(time: u64) -> String {
    format!("{}.{:06}", time / 1_000_000_000, time / 1_000 % 1_000_000)
}

fn header(tcp: &Tcp) -> String {
    let end = tcp.seq.wrapping_add(tcp.payload_len);
    let mut text = format!("{} {}:{end}({})", flags(tcp.flags), tcp.seq, tcp.payload_len);
    if tcp.flags.has(TcpFlags::ACK) {
        let _ = write!(text, " ack {}", tcp.ack);
    }
    let _ = write!(text, " win {}", tcp.window);
    text
}

/// The flags in packetdrill's order, `-` for none.
pub(super) fn flags(flags: TcpFlags) -> String {
    let letters = [
        (TcpFlags::SYN, 'S'),
        (TcpFlags::FIN, 'F'),
        (TcpFlags::RST, 'R'),
        (TcpFlags::PSH, 'P'),
        (TcpFlags::URG, 'U'),
        (TcpFlags::ECE, 'E'),
        (TcpFlags::CWR, 'W'),
        (TcpFlags::ACK, '.'),
    ];
    let text: String = letters.iter().filter(|(bit, _)| flags.has(*bit)).map(|(_, letter)| letter).collect();
    if text.is_empty() { "-".into() } else { text }
}

/// The options between commas, without padding.
pub(super) fn options(options: &TcpOptions) -> String {
    let mut list = Vec::new();
    list.extend(options.mss.map(|mss| format!("mss {mss}")));
    list.extend(options.sack_permitted.then(|| "sackOK".to_owned()));
    list.extend(options.timestamps.map(|(value, echo)| format!("TS val {value} ecr {echo}")));
    list.extend(options.window_scale.map(|shift| format!("wscale {shift}")));
    let blocks = options.sack.as_slice();
    if !blocks.is_empty() {
        let blocks: Vec<String> = blocks.iter().map(|(left, right)| format!("{left}:{right}")).collect();
        list.push(format!("sack {}", blocks.join(" ")));
    }
    list.join(",")
}
