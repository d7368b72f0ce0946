//! Time-sequence plots: marks and shades are where the numbers say, worked out by hand; text stays text; the PNG is the
//! same picture.

use resvg::tiny_skia::Pixmap;
use roxmltree::{Document, Node};
use tcpwhy_diagnose::flow::series::{Kind, Mark, Sack, Series, TcpFlags};
use tcpwhy_diagnose::ledger::{Booking, Bookings};
use tcpwhy_diagnose::report::{Line, Side};
use tcpwhy_report::plot::{Arrangement, HeldAck, Panel, Picture, png, svg};

const MS: i64 = 1_000_000;
/// Colours of a segment that was sent again, and of time held by Nagle's algorithm.
const RED: &str = "#d1170c";
const ORANGE: &str = "#e69f00";

fn sent(ms: i64, kind: Kind, seq: i64, len: u32) -> Mark {
    let flags = TcpFlags(TcpFlags::ACK);
    Mark {
        number: 7,
        time: ms * MS,
        from: Side::Client,
        kind,
        flags,
        seq,
        len,
        ack: Some(1),
        window: Some(64_000),
    }
}

fn ack(ms: i64, ack: i64, window: u32) -> Mark {
    let from = Side::Server;
    Mark { from, ack: Some(ack), window: Some(window), ..sent(ms, Kind::Bare, 1, 0) }
}

/// 500 bytes at 20 ms, 500 at 50 ms, ACKed at 60; the second again at 75. The window of 1,000 reaches to byte 2,001.
fn series() -> Series {
    let marks = vec![
        sent(20, Kind::Data, 1, 500),
        ack(40, 501, 1_000),
        sent(50, Kind::Data, 501, 500),
        ack(60, 1_001, 1_000),
        sent(75, Kind::Retransmission, 501, 500),
    ];
    Series { marks, ..Series::default() }
}

fn bookings() -> Bookings {
    let booking =
        |from, until, line| Booking { from: from * MS, until: until * MS, line, side: Some(Side::Client) };
    let intervals =
        vec![booking(20, 40, Line::Network), booking(40, 50, Line::Nagle), booking(50, 75, Line::Rto)];
    Bookings { intervals, is_coarse: false }
}

fn panel<'a>(series: &'a Series, bookings: &'a Bookings) -> Panel<'a> {
    Panel {
        heading: "client → server".to_owned(),
        series,
        bookings,
        sender: Side::Client,
        origin: 0,
        evidence: Vec::new(),
        held_acks: Vec::new(),
    }
}

fn picture(panels: Vec<Panel<'_>>) -> Picture<'_> {
    Picture {
        title: "#0".to_owned(),
        subtitle: "Nothing is wrong.".to_owned(),
        panels,
        arrangement: Arrangement::Stacked,
        same_bytes: false,
        time: (Some(0.0), Some(100.0)),
        size: (1_200, 700),
    }
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {name} in {node:?}"))
}

/// A graph's frame: x, y, width, height.
fn frames(document: &Document<'_>) -> Vec<[f64; 4]> {
    let clips = document.descendants().filter(|node| node.has_tag_name("clipPath"));
    let frames = clips.filter_map(|clip| clip.first_element_child());
    frames.map(|rect| ["x", "y", "width", "height"].map(|name| number(rect, name))).collect()
}

/// The path of a kind of mark in the graph of that number.
fn path<'a>(document: &'a Document<'_>, class: &str, graph: usize) -> Option<&'a str> {
    let groups: Vec<_> = document.descendants().filter(|node| node.has_attribute("clip-path")).collect();
    let found = groups[graph].children().find(|node| node.attribute("class") == Some(class));
    found.and_then(|node| node.attribute("d"))
}

/// The numbers of a path.
fn numbers(path: &str) -> Vec<f64> {
    path.split(|c: char| c.is_ascii_alphabetic() || c == ' ').filter_map(|text| text.parse().ok()).collect()
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{found:?} is not {expected:?}");
    // Marks are put into columns of half a pixel, and heights are rounded to a tenth.
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 0.56), "{found:?} is not {expected:?}");
}

#[test]
fn marks_are_where_time_and_sequence_number_say() {
    let (series, bookings) = (series(), bookings());
    let text = svg(&picture(vec![panel(&series, &bookings)]));
    let document = Document::parse(&text).expect("XML");
    let [x, y, width, height] = frames(&document)[0];
    let at = |ms: f64| x + width * ms / 100.0;
    // The window's edge, byte 2,001, is as high above the last byte as that is above the first: it is shown. Bytes 1 to
    // 2,001 have 5 % of 2,000 below and above: 2,200 in all.
    let up = |byte: f64| y + height - height * (byte - 1.0 + 100.0) / 2_200.0;
    let data = numbers(path(&document, "data", 0).expect("data"));
    assert_near(&data, &[at(20.0), up(501.0), up(1.0), at(50.0), up(1_001.0), up(501.0)]);
    let again = numbers(path(&document, "retransmission", 0).expect("what was sent again"));
    assert_near(&again, &[at(75.0), up(1_001.0), up(501.0)]);
    let acked = numbers(path(&document, "acked", 0).expect("ACKs"));
    assert_near(&acked, &[at(40.0), up(501.0), at(60.0), up(1_001.0), at(75.0)]);
    let window = numbers(path(&document, "window", 0).expect("the window"));
    assert_near(&window, &[at(40.0), up(1_501.0), at(60.0), up(2_001.0), at(75.0)]);
    assert!(path(&document, "sacked", 0).is_none() && path(&document, "probe", 0).is_none());
}

#[test]
fn waits_are_shaded_and_the_legend_adds_them_up() {
    let (series, bookings) = (series(), bookings());
    let text = svg(&picture(vec![panel(&series, &bookings)]));
    let document = Document::parse(&text).expect("XML");
    let [x, y, width, height] = frames(&document)[0];
    let shade = document
        .descendants()
        .find(|node| node.attribute("fill") == Some(ORANGE) && node.has_attribute("fill-opacity"));
    let shade = shade.expect("a shade");
    let found = ["x", "y", "width", "height"].map(|name| number(shade, name));
    assert_near(&found, &[x + width * 0.4, y, width * 0.1, height]);
    let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
    for entry in ["data", "sent again", "network 20.0\u{a0}ms", "nagle 10.0\u{a0}ms", "rto 25.0\u{a0}ms"] {
        assert!(texts.contains(&entry), "{entry:?} in {texts:?}");
    }
    assert!(!texts.iter().any(|text| text.starts_with("cwnd") || *text == "SACKed"), "{texts:?}");
    // Half of the retransmission timer's time is in this part of the picture.
    let part = Picture { time: (Some(0.0), Some(62.5)), ..picture(vec![panel(&series, &bookings)]) };
    assert!(svg(&part).contains("rto 12.5\u{a0}ms"));
}

#[test]
fn holes_and_held_acks_are_drawn() {
    let mut series = series();
    // 1 to 501 is missing from 55 ms, when the receiver tells of what came after, until it ACKs all at 60.
    series.marks[1] = ack(55, 1, 1_000);
    series.marks.swap(1, 2);
    series.sacks = vec![Sack { time: 55 * MS, from: Side::Server, ack: 1, block: (501, 1_001) }];
    let bookings = bookings();
    let held_acks = vec![HeldAck { from: 30 * MS, until: 55 * MS, acked: 1 }];
    let text = svg(&picture(vec![Panel { held_acks, ..panel(&series, &bookings) }]));
    let document = Document::parse(&text).expect("XML");
    let [x, y, width, height] = frames(&document)[0];
    let at = |ms: f64| x + width * ms / 100.0;
    let up = |byte: f64| y + height - height * (byte - 1.0 + 100.0) / 2_200.0;
    let sacked = numbers(path(&document, "sacked", 0).expect("a block"));
    assert_near(&sacked, &[at(55.0), up(1_001.0), up(501.0)]);
    // Around the box: left, top, right, bottom, left.
    let missing = numbers(path(&document, "missing", 0).expect("a hole"));
    assert_near(&missing, &[at(55.0), up(501.0), at(60.0), up(1.0), at(55.0)]);
    let held = numbers(path(&document, "held", 0).expect("a held ACK"));
    assert_near(&held, &[at(30.0), up(1.0) - 3.0, at(55.0), up(1.0) + 3.0, at(30.0)]);
}

#[test]
fn evidence_has_rings_and_numbers() {
    let (mut series, bookings) = (series(), bookings());
    series.marks[3].number = 4_711;
    let text = svg(&picture(vec![Panel { evidence: vec![4_711], ..panel(&series, &bookings) }]));
    let document = Document::parse(&text).expect("XML");
    let rings: Vec<_> = document.descendants().filter(|node| node.has_tag_name("circle")).collect();
    let [x, _, width, _] = frames(&document)[0];
    assert_eq!(rings.len(), 1);
    assert_near(&[number(rings[0], "cx")], &[x + width * 0.6]);
    assert!(document.descendants().any(|node| node.text() == Some("4711")));
}

#[test]
fn transfers_that_are_compared_have_the_same_axes() {
    let (short, long, bookings) = (series(), series(), bookings());
    let later = Bookings { intervals: bookings.intervals[..1].to_vec(), is_coarse: false };
    let mut long = long;
    long.marks.push(sent(90, Kind::Data, 1_001, 3_000));
    let panels = vec![panel(&short, &bookings), panel(&long, &later)];
    let picture = Picture {
        arrangement: Arrangement::SideBySide,
        same_bytes: true,
        time: (None, None),
        ..picture(panels)
    };
    let text = svg(&picture);
    let document = Document::parse(&text).expect("XML");
    let [left, right] = <[[f64; 4]; 2]>::try_from(frames(&document)).expect("two graphs");
    assert_eq!((left[1], left[2], left[3]), (right[1], right[2], right[3]));
    assert_near(&[right[0] - left[0]], &[600.0]);
    let first = |graph| numbers(path(&document, "data", graph).expect("data"))[..3].to_vec();
    let moved: Vec<_> = first(0).iter().zip([600.0, 0.0, 0.0]).map(|(at, by)| at + by).collect();
    assert_near(&first(1), &moved);
    // Whose time the sums would be is unclear.
    let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
    assert!(texts.contains(&"nagle") && !texts.iter().any(|text| text.starts_with("nagle ")), "{texts:?}");
}

#[test]
fn nobodys_text_is_markup() {
    let (series, bookings) = (series(), bookings());
    let hostile = "</text><script>alert('1')</script>&amp;\u{202e}\u{0}\u{1b}[2J";
    let mut picture = picture(vec![Panel { heading: hostile.to_owned(), ..panel(&series, &bookings) }]);
    (picture.title, picture.subtitle) = (hostile.to_owned(), hostile.to_owned());
    let text = svg(&picture);
    let document = Document::parse(&text).expect("XML");
    assert!(!document.descendants().any(|node| node.has_tag_name("script")));
    let safe = "</text><script>alert('1')</script>&amp;\\u{202e}\\u{0}\\u{1b}[2J";
    // In the heading, the subtitle, and the title and description for those who cannot see it.
    assert!(document.descendants().filter(|node| node.text() == Some(safe)).count() >= 4, "{text}");
    assert!(png(&text).is_ok());
}

#[test]
fn the_png_is_the_same_picture() {
    let (series, bookings) = (series(), bookings());
    let picture = Picture { size: (800, 500), ..picture(vec![panel(&series, &bookings)]) };
    let text = svg(&picture);
    let pixels = Pixmap::decode_png(&png(&text).expect("a PNG")).expect("a PNG that can be read");
    assert_eq!((pixels.width(), pixels.height()), (800, 500));
    let document = Document::parse(&text).expect("XML");
    let again = numbers(path(&document, "retransmission", 0).expect("what was sent again"));
    let (x, y) = (again[0] as u32, ((again[1] + again[2]) / 2.0) as u32);
    let pixel = pixels.pixel(x, y).expect("a pixel").demultiply();
    let found = format!("#{:02x}{:02x}{:02x}", pixel.red(), pixel.green(), pixel.blue());
    assert_eq!(found, RED);
    // The font is there: the title has dark pixels.
    let title = (10..30).flat_map(|y| (10..60).map(move |x| (x, y)));
    let dark = title.filter(|(x, y)| pixels.pixel(*x, *y).is_some_and(|pixel| pixel.red() < 100)).count();
    assert!(dark > 20, "{dark} dark pixels");
}

#[test]
fn a_large_connection_is_a_small_picture() {
    let marks = (0..200_000_i64).map(|n| {
        let ms = n / 20;
        if n % 2 == 0 { sent(ms, Kind::Data, 1 + n * 724, 1_448) } else { ack(ms, 1 + n * 724, 60_000) }
    });
    let series = Series { marks: marks.collect(), ..Series::default() };
    let intervals = (0..100_000).map(|n| Booking {
        from: n * MS / 10,
        until: (n + 1) * MS / 10,
        line: Line::ALL[n as usize % Line::ALL.len()],
        side: None,
    });
    let bookings = Bookings { intervals: intervals.collect(), is_coarse: false };
    let text = svg(&Picture { time: (None, None), ..picture(vec![panel(&series, &bookings)]) });
    // 1,100 pixels, each with 20 rectangles of 100 bytes for the ledger and some 50 bytes of marks.
    assert!(text.len() < 3_000_000, "{} bytes", text.len());
    assert!(Document::parse(&text).is_ok());
}

#[test]
fn strange_connections_are_drawn_all_the_same() {
    let none = Bookings::default();
    let one = Series { marks: vec![ack(0, 1, 0)], ..Series::default() };
    assert!(svg(&Picture { time: (None, None), ..picture(vec![panel(&one, &none)]) }).contains("no data"));
    let mut far = series();
    far.marks[0].time = i64::MIN / 2;
    far.marks[4].time = i64::MAX / 2;
    far.marks[4].seq = i64::MAX / 4;
    far.sacks =
        vec![Sack { time: 0, from: Side::Server, ack: i64::MIN / 4, block: (i64::MIN / 4, i64::MAX / 4) }];
    let all = [Series::default(), one, far];
    for series in &all {
        for size in [(300, 300), (8_000, 300)] {
            let picture = Picture { time: (None, None), size, ..picture(vec![panel(series, &none)]) };
            let text = svg(&picture);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert!(Document::parse(&text).is_ok() && png(&text).is_ok());
        }
    }
    assert!(Document::parse(&svg(&picture(Vec::new()))).is_ok());
}
