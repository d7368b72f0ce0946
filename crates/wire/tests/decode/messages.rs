//! What payloads say, frame by frame.

use tcpwhy_wire::container::LinkType;
use tcpwhy_wire::messages::{Kind, Message};

use crate::frames::{IPV4, IPV6, TCP, TIMESTAMPS, concat, decoded_cut, ethernet, ipv4, ipv6, tcp};

const REQUEST: &[u8] = b"GET /hello.txt HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n";

/// The message in a frame of which `stored` bytes were stored.
fn message(frame: &[u8], stored: usize) -> Option<Message> {
    let packet = decoded_cut(LinkType::ETHERNET, &frame[..stored], frame.len()).expect("TCP");
    packet.tcp().and_then(|tcp| tcp.message)
}

fn frame(options: &[u8], payload: &[u8]) -> Vec<u8> {
    ethernet(IPV4, &ipv4(TCP, &concat(&[&tcp(options, 0), payload])))
}

#[test]
fn a_request_is_read_with_and_without_options() {
    for options in [&[][..], &TIMESTAMPS] {
        let frame = frame(options, REQUEST);
        for stored in [96, frame.len()] {
            let message = message(&frame, stored).expect("a request");
            assert_eq!((message.kind, message.name.as_str()), (Kind::Asks, "GET /hello.txt"));
        }
    }
    let six = ethernet(IPV6, &ipv6(TCP, &concat(&[&tcp(&TIMESTAMPS, 0), REQUEST])));
    assert_eq!(message(&six, six.len()).map(|message| message.kind), Some(Kind::Asks));
}

#[test]
fn what_was_not_sent_or_not_stored_says_nothing() {
    let whole = frame(&TIMESTAMPS, REQUEST);
    let headers = whole.len() - REQUEST.len();
    assert_eq!(message(&whole, headers), None);
    // The snapshot length cut the options.
    assert_eq!(message(&whole, headers - 4), None);
    // Ethernet's padding is no payload, whatever it holds.
    let padded = concat(&[&frame(&[], &[]), b"GET / HTTP/1.1\r\n"]);
    assert_eq!(message(&padded, padded.len()), None);
}
