//! The screen on a terminal that only remembers, fed with captures of the corpus.

use std::fs::File;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use tcpwhy_diagnose::{Analyzer, CaptureInfo};
use tcpwhy_host::ring::Statistics;
use tcpwhy_wire::container::{self, Opened};
use tcpwhy_wire::decode::decode;

use super::super::capture::Progress;
use super::super::names::Names;
use super::keys::{Wish, pressed};
use super::model::{Model, Order, Page};
use super::{draw, file_name};

/// One connection each, on loopback: both programs write in pieces; the server takes 40 ms; nothing is wrong.
const CAPTURES: [&str; 3] = ["ping", "slow-server-40", "split-both"];

fn progress(dropped: u64) -> Progress {
    let mut analyzer = Analyzer::new();
    let mut info = CaptureInfo { has_date: true, ..CaptureInfo::default() };
    for name in CAPTURES {
        let path =
            format!("{}/../../tests/corpus/{name}-loopback-both.pcapng.zst", env!("CARGO_MANIFEST_DIR"));
        let Ok(Opened::Capture(mut reader)) = container::open(File::open(&path).expect("a capture")) else {
            panic!("{path} is a capture")
        };
        while let Some(frame) = reader.next_frame() {
            info.frames += 1;
            info.span = Some((info.span.map_or(frame.time, |span| span.0), frame.time));
            analyzer.push(decode(&frame, info.frames).ok().as_slice());
        }
    }
    Progress { analyzer, info, statistics: Statistics { packets: 0, dropped } }
}

fn model(interface: &str) -> Model {
    let mut model = Model::new(interface, "", &Names::default(), true);
    model.update(progress(0), Duration::from_secs(12));
    model
}

/// What a screen of that size shows, line by line.
fn screen(model: &mut Model, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw::draw(model, frame)).expect("a drawn screen");
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn press(model: &mut Model, code: KeyCode) -> Option<Wish> {
    pressed(model, &Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn type_text(model: &mut Model, text: &str) {
    for c in text.chars() {
        assert_eq!(press(model, KeyCode::Char(c)), None);
    }
}

#[test]
fn connections_findings_and_keys_are_on_the_screen() {
    let lines = screen(&mut model("eth0"), 80, 24);
    let all = lines.join("\n");
    assert!(lines[0].starts_with(" tcpwhy live · eth0") && lines[0].contains("12.0 s"), "{all}");
    assert!(lines[2].contains("lost") && lines[2].contains("client → server"), "{all}");
    assert!(lines[3].starts_with('>') && lines[3].contains(" → "), "{all}");
    assert!(lines[3].contains("✖ "), "{all}");
    assert!(lines[23].contains("q end"), "{all}");
    assert!(lines.iter().any(|line| line.contains("findings, the latest first")), "{all}");
}

#[test]
fn programs_have_a_column_on_a_wide_screen_and_a_line_on_every() {
    let mut model = model("eth0");
    let worst = model.rows[0].connection.clone();
    let hostile = "a\x1b[2Jb";
    model.names = Names::of_sockets(&[
        (&worst.client, Some(&worst.server), hostile),
        (&worst.server, Some(&worst.client), "nginx"),
    ]);
    let narrow = screen(&mut model, 80, 24);
    assert_eq!(narrow[1], " a\\u{1b}[2Jb (1) → nginx (1)");
    assert!(!narrow[2].contains("programs") && !narrow[3].contains("nginx"), "{narrow:?}");
    let wide = screen(&mut model, 140, 24);
    assert!(wide[2].contains("programs") && wide[3].contains("a\\u{1b}[2Jb → nginx"), "{wide:?}");
    // The columns behind stay where they are.
    let at = |line: &str, what: &str| line.find(what).map(|at| line[..at].chars().count());
    assert_eq!(at(&wide[2], "found"), at(&wide[3], "✖"));
    type_text(&mut model, "/nginx");
    assert_eq!(model.rows.len(), 1);
}

#[test]
fn the_worst_is_first_and_the_order_can_be_changed() {
    let mut model = model("eth0");
    let lost: Vec<f64> = model.rows.iter().map(super::Row::lost).collect();
    assert!(lost.len() > 1 && lost.is_sorted_by(|a, b| a >= b), "{lost:?}");
    press(&mut model, KeyCode::Char('s'));
    press(&mut model, KeyCode::Char('s'));
    assert_eq!(model.order, Order::Packets);
    let packets = |row: &super::Row| row.connection.packets.to_client + row.connection.packets.to_server;
    let packets: Vec<u64> = model.rows.iter().map(packets).collect();
    assert!(packets.is_sorted_by(|a, b| a >= b), "{packets:?}");
}

#[test]
fn text_leaves_connections_out_and_escape_brings_them_back() {
    let mut model = model("eth0");
    let all = model.rows.len();
    let server = model.rows[0].connection.server.clone();
    type_text(&mut model, "/");
    // Keys are letters now: q ends nothing.
    type_text(&mut model, "qqq");
    assert!(model.rows.is_empty() && screen(&mut model, 80, 24).join("\n").contains("no connection has"));
    for _ in 0..3 {
        press(&mut model, KeyCode::Backspace);
    }
    type_text(&mut model, &server);
    press(&mut model, KeyCode::Enter);
    assert!(!model.rows.is_empty() && model.rows.iter().all(|row| row.connection.server.contains(&server)));
    press(&mut model, KeyCode::Esc);
    assert_eq!(model.rows.len(), all);
    assert_eq!(press(&mut model, KeyCode::Char('q')), Some(Wish::End));
}

#[test]
fn a_connection_opens_scrolls_to_its_end_and_closes() {
    let mut model = model("eth0");
    press(&mut model, KeyCode::Enter);
    let top = screen(&mut model, 80, 24).join("\n");
    assert!(top.contains(&model.rows[0].connection.client), "{top}");
    press(&mut model, KeyCode::End);
    let bottom = screen(&mut model, 80, 24).join("\n");
    assert!(bottom.contains("tcpwhy explain"), "{bottom}");
    let Page::Report(line) = model.page else { panic!("a report") };
    assert!(0 < line && line < 1_000, "{line}");
    press(&mut model, KeyCode::Char('q'));
    assert_eq!(model.page, Page::Connections);
}

#[test]
fn what_makes_figures_unsure_is_said() {
    let mut model = model("eth0");
    model.update(progress(1_234), Duration::from_secs(13));
    press(&mut model, KeyCode::Char(' '));
    let second = screen(&mut model, 80, 24)[1].clone();
    assert!(second.contains("frozen") && second.contains("dropped 1,234 packets"), "{second}");
}

#[test]
fn findings_are_news_once() {
    let mut model = model("eth0");
    let news = model.news.len();
    assert!(news > 0);
    model.update(progress(0), Duration::from_secs(13));
    assert_eq!(model.news.len(), news);
}

#[test]
fn every_size_is_drawn_and_nothing_acts_on_the_terminal() {
    let mut model = model("e\x1b[31m\u{202e}th");
    type_text(&mut model, "/");
    for page in [Page::Connections, Page::Report(0), Page::Help] {
        for (width, height) in [(1, 1), (7, 3), (40, 10), (80, 24), (120, 40), (300, 100)] {
            model.page = page;
            let all = screen(&mut model, width, height).join("\n");
            let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!all.contains(acts), "{width}×{height}: {all:?}");
        }
    }
}

#[test]
fn a_file_name_is_only_letters_digits_and_dots() {
    let mut row = model("eth0").rows[0].clone();
    row.connection.client = "[fe80::1]:4711".to_owned();
    row.connection.server = "../../etc/passwd".to_owned();
    let name = file_name(&row, 2).to_string_lossy().into_owned();
    assert!(!name.contains('/') && !name.contains(".."), "{name}");
    assert!(name.starts_with("tcpwhy-fe80.1.4711-") && name.ends_with("-2.pcapng"), "{name}");
}
