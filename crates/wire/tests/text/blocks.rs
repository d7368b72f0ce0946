//! Several captures in one text, their names, and the lines that are no packets.

use super::{Capture, capture, captures};
use tcpwhy_wire::text::{Item, Reader};

const PACKET: &str = "12:00:00.5 IP 10.0.0.1.5 > 10.0.0.2.80: Flags [.], ack 1, win 64, length 0\n";
const LATER: &str = "12:00:00.6 IP 10.0.0.2.80 > 10.0.0.1.5: Flags [.], ack 1, win 64, length 0\n";

fn names(captures: &[Capture]) -> Vec<Option<&str>> {
    captures.iter().map(Capture::name).collect()
}

#[test]
fn prose_splits_and_names_blank_lines_do_not() {
    let text = format!("Intro.\n\nFirst run:\n\n{PACKET}\n\n{LATER}.\n.\nWith the option set\n{PACKET}");
    let captures = captures(&text);
    assert_eq!(names(&captures), [Some("First run"), Some("With the option set")]);
    assert_eq!(captures[0].packets.len(), 2);
    assert_eq!((captures[0].start.line, captures[1].start.line), (5, 12));
}

#[test]
fn what_tcpdump_says_names_nothing() {
    let text = format!(
        "My server\n$ sudo tcpdump -ni eth0\ntcpdump: verbose output suppressed, use -v[v]... for full protocol decode\n\
         listening on eth0, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n{PACKET}{LATER}^C\n\
         2 packets captured\n2 packets received by filter\n0 packets dropped by kernel\n"
    );
    assert_eq!(capture(&text).name(), Some("My server"));
}

#[test]
fn a_command_names_where_nothing_better_does_and_a_new_run_splits() {
    let text = format!(
        "$ tcpdump -r a.pcap\n{PACKET}reading from file b.pcap, link-type EN10MB (Ethernet)\n{PACKET}"
    );
    assert_eq!(names(&captures(&text)), [Some("tcpdump -r a.pcap"), None]);
}

#[test]
fn quoted_indented_and_fenced() {
    let text = format!("> He wrote:\n> > ```\n> > {PACKET}> >     {LATER}> > ```\n");
    let capture = capture(&text);
    assert_eq!(capture.packets.len(), 2);
    assert_eq!(capture.name(), Some("He wrote"));
}

#[test]
fn logs_tables_and_code_are_no_packets() {
    let text = "12:00:00.123 INFO server > started: port 80\n\
                2014-01-19 12:00:00 GET /index.html 200\n\
                34.565659  SERVER > CLIENT\n34.606133  SERVER > CLIENT\n\
                2: 5E01A8C0:22B8 00000000:0000 0A 00000000:00000012 02:0000000D 00000000\n\
                if (a > b) return 12.5;\n10:30 a.m. > lunch\n1.5 times > 1.2 times: yes\n";
    let mut reader = Reader::new(text.as_bytes());
    assert_eq!(reader.next(), None);
    assert_eq!((reader.unread(), reader.timeless()), (None, 0));
}

#[test]
fn log_lines_between_packets_split_nothing() {
    let text = format!("Run\n{PACKET}12:00:00.55 INFO accepted\n{LATER}");
    assert_eq!(capture(&text).packets.len(), 2);
}

#[test]
fn damaged_packets_are_counted_and_said() {
    let text = format!(
        "Run\n{PACKET}12:00:00.51 IP 10.0.0.1.5 > 10.0.0.2.80: Flags [?], ack 1\n\
         12:00:00.52 IP 10.0.0.1.5 > 10.0.0.2.80: Flags [.], ack, win 64\n{LATER}"
    );
    let capture = capture(&text);
    assert_eq!(capture.end.notes, ["2 lines look like packets but could not be read; the first is line 3."]);
    assert_eq!(capture.packets.iter().map(|packet| packet.number).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(capture.end.packets, 4);
}

#[test]
fn a_text_without_readable_packets_can_say_why() {
    let mut reader =
        Reader::new("x\nIP c.1 > d.2: UDP, length 3\n12:00:00.5 IP a > b: Flags [?], ack 1\n".as_bytes());
    assert_eq!(reader.next(), None);
    assert_eq!((reader.unread(), reader.timeless()), (Some((1, 3)), 1));
}

#[test]
fn names_are_known_with_every_packet() {
    let text = "One\na.1 > b.2: no time\n12:00:00.5 a.1 > b.2: udp 1\nTwo\n12:00:00.5 c.1 > d.2: udp 1\n";
    let mut reader = Reader::new(text.as_bytes());
    let mut sources = Vec::new();
    while let Some(item) = reader.next() {
        if let Item::Packet(packet) = item {
            sources.push(reader.names().expect("a capture is open").host(packet.source.address));
        }
    }
    assert_eq!(sources, ["a", "c"]);
    assert_eq!(reader.names(), None);
}

#[test]
fn midnight_passes() {
    let text = "23:59:59.9 a.1 > b.2: udp 1\n00:00:00.1 a.1 > b.2: udp 1\n";
    let capture = capture(text);
    assert_eq!(capture.packets[1].time - capture.packets[0].time, 200_000_000);
}

#[test]
fn pasted_from_a_web_page() {
    let text = "12:00:00.5\u{a0}IP 10.0.0.1.5 &gt; 10.0.0.2.80: Flags [.], ack 1, win 64, length 0\r\n";
    assert_eq!(capture(text).packets.len(), 1);
}

#[test]
fn a_read_error_is_said() {
    struct Broken(&'static [u8]);
    impl std::io::Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.0.is_empty() { Err(std::io::Error::other("gone")) } else { self.0.read(buffer) }
        }
    }
    let mut reader = Reader::new(Broken(PACKET.as_bytes()));
    let last = reader.by_ref().last();
    let Some(Item::End(end)) = last else { panic!("{last:?}") };
    assert_eq!(end.notes, ["The text could not be read beyond line 1: gone."]);
    assert!(reader.error().is_some());
}
