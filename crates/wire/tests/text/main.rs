//! tcpdump's printed text, read as a whole.

mod blocks;
mod examples;
mod forms;
mod hostile;
mod numbers;
mod old_form;
mod round_trip;
mod variants;

use tcpwhy_wire::text::{End, Item, Reader, Start};
use tcpwhy_wire::{Packet, Tcp, Transport};

/// One capture of a text.
#[derive(Debug)]
struct Capture {
    start: Start,
    packets: Vec<Packet>,
    end: End,
}

impl Capture {
    fn name(&self) -> Option<&str> {
        self.start.name.as_deref()
    }

    fn tcp(&self, index: usize) -> Tcp {
        match self.packets[index].transport {
            Transport::Tcp(tcp) => tcp,
            Transport::Udp(udp) => panic!("packet {index} is UDP: {udp:?}"),
        }
    }

    fn source(&self, index: usize) -> String {
        self.end.names.socket(self.packets[index].source)
    }

    fn destination(&self, index: usize) -> String {
        self.end.names.socket(self.packets[index].destination)
    }

    fn payload_lens(&self) -> Vec<u32> {
        let payload = |packet: &Packet| match packet.transport {
            Transport::Tcp(tcp) => tcp.payload_len,
            Transport::Udp(udp) => udp.payload_len,
        };
        self.packets.iter().map(payload).collect()
    }
}

/// All captures of `text`; fails unless every one begins, goes on and ends in this order.
fn captures(text: &str) -> Vec<Capture> {
    let mut captures: Vec<Capture> = Vec::new();
    let mut is_open = false;
    for item in Reader::new(text.as_bytes()) {
        match item {
            Item::Start(start) => {
                assert!(!is_open, "a capture begins inside another");
                captures.push(Capture { start, packets: Vec::new(), end: End::default() });
                is_open = true;
            }
            Item::Packet(packet) => {
                assert!(is_open, "a packet outside a capture");
                captures.last_mut().expect("a capture is open").packets.push(packet);
            }
            Item::End(end) => {
                assert!(is_open, "a capture ends twice");
                captures.last_mut().expect("a capture is open").end = end;
                is_open = false;
            }
        }
    }
    assert!(!is_open, "a capture never ends");
    captures
}

/// The only capture of `text`.
fn capture(text: &str) -> Capture {
    let mut captures = captures(text);
    assert_eq!(captures.len(), 1, "{captures:#?}");
    captures.remove(0)
}
