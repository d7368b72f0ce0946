//! A random packet, printed in either form and wrapped at a random column, reads back the same.

use std::fmt::Write as _;

use proptest::prelude::*;
use tcpwhy_wire::{Tcp, TcpFlags, TcpOptions};

use super::capture;

fn segments() -> impl Strategy<Value = Tcp> {
    let flags = prop::sample::select(vec![
        TcpFlags::SYN,
        TcpFlags::SYN | TcpFlags::ACK,
        TcpFlags::ACK,
        TcpFlags::PSH | TcpFlags::ACK,
        TcpFlags::FIN | TcpFlags::PSH | TcpFlags::ACK,
        TcpFlags::RST | TcpFlags::ACK,
        TcpFlags::PSH | TcpFlags::ACK | TcpFlags::CWR,
    ]);
    let numbers = (any::<u32>(), any::<u32>(), 1..70_000_u32, any::<u16>());
    let options =
        (any::<Option<u16>>(), prop::option::of(0..15_u8), any::<bool>(), any::<Option<(u32, u32)>>());
    (flags, numbers, options).prop_map(|(flags, (seq, ack, payload_len, window), options)| {
        let (mss, window_scale, sack_permitted, timestamps) = options;
        let options = TcpOptions { mss, window_scale, sack_permitted, timestamps, ..TcpOptions::default() };
        let ack = if flags & TcpFlags::ACK == 0 { 0 } else { ack };
        Tcp { seq, ack, payload_len, window, flags: TcpFlags(flags), options, message: None }
    })
}

fn options(tcp: &Tcp, timestamps: &str) -> String {
    let (first, second) = if timestamps == "TS" { ("TS val", "ecr ") } else { ("timestamp", "") };
    let mut list = Vec::new();
    list.extend(tcp.options.mss.map(|mss| format!("mss {mss}")));
    list.extend(
        tcp.options.timestamps.map(|(value, echo)| format!("nop,nop,{first} {value} {second}{echo}")),
    );
    list.extend(tcp.options.window_scale.map(|shift| format!("nop,wscale {shift}")));
    list.extend(tcp.options.sack_permitted.then(|| "sackOK".to_owned()));
    list.join(",")
}

fn letters(tcp: &Tcp, ack: &str) -> String {
    let names = [
        (TcpFlags::FIN, "F"),
        (TcpFlags::SYN, "S"),
        (TcpFlags::RST, "R"),
        (TcpFlags::PSH, "P"),
        (TcpFlags::ACK, ack),
        (TcpFlags::CWR, "W"),
    ];
    names.into_iter().filter(|(bit, _)| tcp.flags.has(*bit)).map(|(_, letter)| letter).collect()
}

fn new_form(tcp: &Tcp) -> String {
    let end = tcp.seq.wrapping_add(tcp.payload_len);
    let mut line = format!(
        "10:20:30.405060 IP 10.0.0.1.80 > 10.0.0.2.4000: Flags [{}], seq {}:{end}",
        letters(tcp, "."),
        tcp.seq
    );
    if tcp.flags.has(TcpFlags::ACK) {
        write!(line, ", ack {}", tcp.ack).expect("a string takes all");
    }
    write!(line, ", win {}, options [{}], length {}: HTTP", tcp.window, options(tcp, "TS"), tcp.payload_len)
        .expect("a string takes all");
    line
}

fn old_form(tcp: &Tcp) -> String {
    let flags = letters(tcp, "");
    let flags = if flags.is_empty() { "." } else { flags.as_str() };
    let end = tcp.seq.wrapping_add(tcp.payload_len);
    let mut line = format!(
        "10:20:30.405060 10.0.0.1.80 > 10.0.0.2.4000: {flags} {}:{end}({})",
        tcp.seq, tcp.payload_len
    );
    if tcp.flags.has(TcpFlags::ACK) {
        write!(line, " ack {}", tcp.ack).expect("a string takes all");
    }
    write!(line, " win {} <{}> (DF)", tcp.window, options(tcp, "timestamp")).expect("a string takes all");
    line
}

/// Wraps at blanks so that no line is longer than `columns` unless one word is.
fn wrapped(line: &str, columns: usize, mark: &str) -> String {
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let last = lines.last_mut().expect("one line at least");
        if last.is_empty() {
            last.push_str(word);
        } else if last.len() + 1 + word.len() <= columns {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|line| format!("{mark}{line}\n")).collect()
}

proptest! {
    #[test]
    fn printed_wrapped_and_read(
        tcp in segments(),
        is_new in any::<bool>(),
        columns in 25..160_usize,
        mark in prop::sample::select(vec!["", "> ", "> > ", "    "]),
    ) {
        let line = if is_new { new_form(&tcp) } else { old_form(&tcp) };
        let text = format!("A heading\n\n{}\n", wrapped(&line, columns, mark));
        let capture = capture(&text);
        prop_assert_eq!(capture.packets.len(), 1, "{}", text);
        prop_assert_eq!(capture.tcp(0), tcp, "{}", text);
        prop_assert_eq!(capture.packets[0].time, 37_230_405_060_000);
        prop_assert_eq!(capture.name(), Some("A heading"));
        prop_assert_eq!(capture.end.notes.len(), 0);
    }
}
