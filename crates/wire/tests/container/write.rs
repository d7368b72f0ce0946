//! What the writer writes, read back here, by pcap-parser and by tshark.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, OptionCode, PcapBlockOwned, PcapNGOption, PcapNGReader};
use proptest::prelude::*;
use tcpwhy_wire::container::{Comment, Frame, Interface, LinkType, MAX_FRAME, Origin, Writer};

use crate::build::{Seen, read};
use crate::oracle::drain;

const ORIGIN: Origin<'static> =
    Origin { comment: "two hosts", hardware: "a machine", os: "Linux", application: "tcpwhy" };
const TIME: i64 = 1_700_000_000_123_456_789;

fn frame(interface: u32, link: LinkType, original_len: u32, data: &[u8]) -> Frame<'_> {
    Frame { time: TIME, link, original_len, interface, data }
}

/// Two interfaces, the second of 6 bytes a frame; three frames, a comment, drops.
fn sample() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &ORIGIN).unwrap();
    let raw = Interface { name: "client", link: LinkType::RAW, snaplen: 0 };
    let ether = Interface { name: "server", link: LinkType::ETHERNET, snaplen: 6 };
    assert_eq!(writer.interface(&raw).unwrap(), 0);
    assert_eq!(writer.interface(&ether).unwrap(), 1);
    writer.frame(&frame(0, LinkType::RAW, 5, b"fives"), "").unwrap();
    writer.frame(&frame(1, LinkType::ETHERNET, 9, b"nine byte"), "cut — here").unwrap();
    writer.frame(&frame(0, LinkType::RAW, 0, b""), "").unwrap();
    writer.dropped(0, TIME, 2).unwrap();
    writer.dropped(1, TIME, 3).unwrap();
    writer.finish().unwrap()
}

#[test]
fn the_reader_reads_it_back() {
    let content = read(&sample()[..]);
    let seen = |interface, link, original_len, data: &[u8]| Seen {
        time: TIME,
        link,
        original_len,
        interface,
        data: data.to_vec(),
    };
    let expected = [
        seen(0, LinkType::RAW, 5, b"fives"),
        seen(1, LinkType::ETHERNET, 9, b"nine b"),
        seen(0, LinkType::RAW, 0, b""),
    ];
    assert_eq!(content.frames, expected);
    let comment = |frame, text: &str| Comment { frame, text: text.to_owned() };
    assert_eq!(content.comments, [comment(None, "two hosts"), comment(Some(2), "cut — here")]);
    assert_eq!((content.kind, content.dropped), ("pcapng", Some(5)));
}

#[test]
fn pcap_parser_reads_all_of_it() {
    let (mut found, file) = (Vec::new(), sample());
    let options = |options: &[PcapNGOption<'_>]| -> Vec<(u16, String)> {
        let real = options.iter().filter(|option| option.code != OptionCode::EndOfOpt);
        let text = |option: &PcapNGOption<'_>| option.as_bytes().map(<[u8]>::to_vec).unwrap_or_default();
        real.map(|option| (option.code.0, String::from_utf8(text(option)).unwrap())).collect()
    };
    drain(PcapNGReader::new(65_536, &file[..]).unwrap(), |block| match block {
        PcapBlockOwned::NG(Block::SectionHeader(section)) => {
            assert_eq!(section.section_len, -1);
            found.push(("section", options(&section.options), Vec::new()));
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            assert_eq!(interface.ts_resolution(), Some(1_000_000_000));
            found.push(("interface", options(&interface.options), Vec::new()));
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            assert_eq!(packet.decode_ts(0, 1_000_000_000), (1_700_000_000, 123_456_789));
            found.push(("packet", options(&packet.options), packet.packet_data().to_vec()));
        }
        PcapBlockOwned::NG(Block::InterfaceStatistics(statistics)) => {
            let drops = statistics.options.iter().find(|option| option.code == OptionCode::IsbIfDrop);
            found.push(("drops", Vec::new(), drops.unwrap().as_bytes().unwrap_or_default().to_vec()));
        }
        _ => panic!("a block of another kind"),
    });
    let option = |code, text: &str| (code, text.to_owned());
    let origin = [option(1, "two hosts"), option(2, "a machine"), option(3, "Linux"), option(4, "tcpwhy")];
    let expected = [
        ("section", origin.to_vec(), vec![]),
        ("interface", vec![option(2, "client"), option(9, "\t")], vec![]),
        ("interface", vec![option(2, "server"), option(9, "\t")], vec![]),
        ("packet", vec![], b"fives".to_vec()),
        ("packet", vec![option(1, "cut — here")], b"nine b".to_vec()),
        ("packet", vec![], vec![]),
        ("drops", vec![], 2_u64.to_ne_bytes().to_vec()),
        ("drops", vec![], 3_u64.to_ne_bytes().to_vec()),
    ];
    assert_eq!(found, expected);
}

#[test]
fn tshark_reads_it() {
    let Some(lines) = tshark(&sample()) else {
        return;
    };
    let expected = [
        "1700000000.123456789\t0\tclient\t5\t5\t",
        "1700000000.123456789\t1\tserver\t9\t6\tcut — here",
        "1700000000.123456789\t0\tclient\t0\t0\t",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn calls_between_packets_change_nothing_for_others() {
    let mut writer = Writer::new(Vec::new(), &ORIGIN).unwrap();
    writer.calls(b"tcpwhy/1 and something").unwrap();
    writer.interface(&Interface { name: "lo", link: LinkType::RAW, snaplen: 0 }).unwrap();
    writer.frame(&frame(0, LinkType::RAW, 5, b"fives"), "").unwrap();
    writer.calls(&[b"tcpwhy/1".as_slice(), &[7; 60_000]].concat()).unwrap();
    writer.frame(&frame(0, LinkType::RAW, 4, b"four"), "").unwrap();
    let file = writer.finish().unwrap();
    assert_eq!(read(&*file).frames.len(), 2);
    if let Some(lines) = tshark(&file) {
        let line = |len| format!("1700000000.123456789\t0\tlo\t{len}\t{len}\t");
        assert_eq!(lines, [line(5), line(4)]);
    }
}

/// Time, interface, its name, lengths and comment of each frame; says why where tshark cannot be asked.
pub(crate) fn tshark(file: &[u8]) -> Option<Vec<String>> {
    let fields = ["frame.time_epoch", "frame.interface_id", "frame.interface_name", "frame.len"];
    let mut command = Command::new("tshark");
    command.args(["-n", "-r", "-", "-T", "fields"]);
    for field in fields.iter().chain(&["frame.cap_len", "frame.comment"]) {
        command.args(["-e", field]);
    }
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            let _ = writeln!(io::stderr(), "SKIPPED: tshark cannot be asked: {error}");
            return None;
        }
    };
    // It fits into the pipe. Dropping the handle ends tshark's input.
    child.stdin.take().unwrap().write_all(file).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "tshark takes it for a good file");
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn an_empty_file_is_a_good_one() {
    let file = Writer::new(Vec::new(), &Origin::default()).unwrap().finish().unwrap();
    let content = read(&file[..]);
    assert_eq!((content.kind, content.frames.len(), content.notes.len()), ("pcapng", 0, 0));
    assert_eq!(file.len(), 28, "what is empty is left out");
}

#[test]
fn long_texts_and_frames_are_cut() {
    // 65,535 bytes end inside a character of two.
    let long = "ö".repeat(40_000);
    let mut writer = Writer::new(Vec::new(), &Origin { comment: &long, ..Origin::default() }).unwrap();
    let header = writer.get_mut().len();
    assert_eq!(header, 28 + 4 + 65_536 + 4);
    assert_eq!(u16::from_ne_bytes([writer.get_mut()[26], writer.get_mut()[27]]), 65_534);
    writer.interface(&Interface { link: LinkType::RAW, ..Interface::default() }).unwrap();
    let data = vec![1; MAX_FRAME + 1];
    writer.frame(&frame(0, LinkType::RAW, data.len() as u32, &data), &long).unwrap();
    let content = read(&writer.finish().unwrap()[..]);
    assert_eq!(
        (content.frames[0].data.len(), content.frames[0].original_len),
        (MAX_FRAME, data.len() as u32)
    );
    assert!(content.notes.is_empty() && content.comments.len() == 2);
}

#[test]
fn what_pcapng_cannot_say_is_refused() {
    let mut writer = Writer::new(Vec::new(), &Origin::default()).unwrap();
    let foreign = Interface { link: LinkType(65_536), ..Interface::default() };
    assert_eq!(writer.interface(&foreign).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    let raw = frame(0, LinkType::RAW, 0, b"");
    assert_eq!(writer.frame(&raw, "").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    writer.interface(&Interface { link: LinkType::ETHERNET, ..Interface::default() }).unwrap();
    assert_eq!(writer.frame(&raw, "").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    // Refused frames leave no trace.
    let content = read(&writer.finish().unwrap()[..]);
    assert_eq!((content.frames.len(), content.notes.len()), (0, 0));
}

/// Takes whole blocks alone.
struct Blocks(Vec<Vec<u8>>);

impl Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn each_block_is_written_at_once() {
    let mut writer = Writer::new(Blocks(Vec::new()), &ORIGIN).unwrap();
    writer.interface(&Interface { link: LinkType::RAW, ..Interface::default() }).unwrap();
    writer.frame(&frame(0, LinkType::RAW, 3, b"abc"), "remark").unwrap();
    let blocks = writer.finish().unwrap().0;
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        assert_eq!(u32::from_ne_bytes(block[4..8].try_into().unwrap()) as usize, block.len());
    }
}

proptest! {
    #[test]
    fn any_frames_come_back(
        frames in prop::collection::vec(
            (0..1_i64 << 62, 0..2_u32, any::<u32>(), prop::collection::vec(any::<u8>(), 0..300), "\\PC{0,40}"),
            0..20,
        ),
    ) {
        let links = [LinkType::RAW, LinkType::LINUX_SLL2];
        let mut writer = Writer::new(Vec::new(), &Origin::default()).unwrap();
        for link in links {
            writer.interface(&Interface { name: "any", link, snaplen: 262_144 }).unwrap();
        }
        let (mut expected, mut comments) = (Vec::new(), Vec::new());
        for (time, interface, original_len, data, comment) in frames {
            let (link, frame) = (links[interface as usize], Some(expected.len() as u64 + 1));
            writer.frame(&Frame { time, link, original_len, interface, data: &data }, &comment).unwrap();
            expected.push(Seen { time, link, original_len, interface, data });
            if !comment.is_empty() {
                comments.push(Comment { frame, text: comment });
            }
        }
        let content = read(&writer.finish().unwrap()[..]);
        prop_assert_eq!(content.frames, expected);
        prop_assert_eq!(content.comments, comments);
    }
}
