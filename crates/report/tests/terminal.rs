//! The terminal's text: what it says first, that it fits, that nothing in it acts, how it looks.

mod samples;

use std::io::{self, Write};

use samples::{Crowd, Sample, connection, finding};
use tcpwhy_diagnose::report::{Blamed, Connection, Finding, Line, Ms, PerDirection, Severity, Source};
use tcpwhy_report::plain::plain;
use tcpwhy_report::terminal::{self, Options};
use unicode_width::UnicodeWidthStr;

fn text(source: &dyn Source, options: &Options) -> String {
    let mut out = Vec::new();
    terminal::write(&mut out, source, options).unwrap();
    String::from_utf8(out).unwrap()
}

fn at_80(source: &dyn Source) -> String {
    text(source, &Options::default())
}

/// The first paragraph, unwrapped.
fn verdict(source: &dyn Source) -> String {
    let text = at_80(source);
    text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>().join(" ")
}

/// `text` without its colours.
fn uncoloured(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |done, part| done + part.split_once('m').expect("only SGR sequences").1)
}

/// SYNs to a host that never answers.
fn unanswered() -> Sample {
    let syn = |id: u64| Connection {
        packets: PerDirection { to_server: 1, to_client: 0 },
        bytes: PerDirection { to_server: 0, to_client: 0 },
        ..connection(id, &format!("a.{}", 1024 + id), "b.80", &[])
    };
    Sample::new("SYNs", "pcap", (0..20).map(syn).collect(), vec![])
}

#[test]
fn the_verdict_is_a_sentence_for_three_in_the_morning() {
    let cases: [(Sample, &str); 11] = [
        (
            samples::nagle(),
            "✖ The server nestor.4566 makes this connection wait 1.90 s of 3.00 s (63 %). Updates of 12 bytes \
             are written every 100 ms and leave every 200 ms: Nagle's algorithm holds each second one until the \
             client's delayed ACK comes. Fix: write each update with one call.",
        ),
        (
            samples::slow_server(),
            "✖ TCP is innocent here: for 422 ms of 444 ms (95 %) the server's program (127.0.0.1:7777) had not \
             answered yet.",
        ),
        (
            samples::compound(),
            "✖ The longest wait is for a program: for 2.40 s of 6.24 s (38 %) the server's program \
             ([2001:db8::2]:443) had not answered yet. Also: nagle-delayed-ack (1.26 s), rto-stall (1.26 s).",
        ),
        (
            samples::upload(),
            "✖ The server b.80 makes this connection wait 17.6 ms of 34.0 ms (52 %). The server's window is 2896 \
             bytes: two segments a round trip, and the client stands still for the rest of it.",
        ),
        (samples::clean_udp(), "✔ Nothing is wrong. The server sends 10.0/s, one every 100 ms, evenly."),
        (samples::too_little(), "? Too little to judge: 4 packets, no handshake, no stall."),
        (unanswered(), "? Too little to judge: 20 packets, and none of TCP was answered."),
        (Sample::new("x", "pcap", vec![], vec![]), "? There is no TCP or UDP traffic in this capture."),
        (
            samples::requests(),
            "✖ The client 10.0.0.3 makes the connections wait 800 ms. Each of 40 requests opens its own \
             connection: 20 ms of handshake before 43 ms of work. Fix: keep the connection open. The longest wait, \
             48 %, is the path.",
        ),
        (samples::bulk(), "▲ TCP waits 4.20 s of 9.83 s (43 %) on the line cwnd, and no rule names a fault."),
        (
            samples::ack_chatter(),
            "▲ Nothing is broken, and something could be better. Two ACKs for every three segments. For 640 \
             ms of 661 ms the client had not asked yet.",
        ),
    ];
    for (sample, expected) in cases {
        assert_eq!(verdict(&sample), expected);
    }
}

#[test]
fn the_sentence_of_the_verdict_is_not_repeated() {
    let words: String = at_80(&samples::nagle()).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.matches("Updates of 12 bytes").count(), 1);
    let words: String = at_80(&samples::compound()).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.matches("Updates of 12 bytes").count(), 1, "the verdict is about another finding");
}

#[test]
fn a_crowd_is_summed() {
    let text = at_80(&Crowd { connections: 3_000 });
    // Every hundredth connection is held, 30 of them: 40 ms, and the id in tenths of a ms.
    let ids = || (0..30).map(|i| 17 + i * 100);
    let held: f64 = ids().map(|id| 40.0 + f64::from(id) / 10.0).sum();
    assert_eq!(format!("{:.2}", held / 1e3), "5.60");
    assert!(
        text.starts_with("✖ 30 of 3,000 connections lose 5.60 s to nagle-delayed-ack. Worst is #2917."),
        "{text}"
    );
    assert!(text.contains("And 2,995 more connections: "), "{text}");
    let shown: Vec<_> = text.lines().filter(|line| line.starts_with('#')).map(|line| &line[..5]).collect();
    assert_eq!(shown, ["#2917", "#2817", "#2717", "#2617", "#2517"]);
}

/// Findings are counted by connections: both sides of one may have the same fault.
#[test]
fn two_findings_of_one_connection_are_one_connection() {
    let only = connection(0, "a.1", "b.2", &[(Line::DelayedAck, 700.0), (Line::ServerApp, 300.0)]);
    let of = |side, address, ms| {
        let finding = finding("nagle-delayed-ack", Some(0), side, Some(address));
        Finding { cost_ms: Ms(ms), ..finding }
    };
    let both = vec![of(Blamed::Client, "a.1", 300.0), of(Blamed::Server, "b.2", 400.0)];
    let words = verdict(&Sample::new("x", "pcap", vec![only], both));
    assert!(
        words.starts_with("✖ The server b.2 makes this connection wait 400 ms of 1.00 s (40 %)."),
        "{words}"
    );
    assert!(words.ends_with("Also: nagle-delayed-ack again (300 ms)."), "{words}");
}

#[test]
fn the_rest_is_what_is_not_shown() {
    let lost = |id, ms| connection(id, "a.1", "b.2", &[(Line::Rto, ms), (Line::Network, 10.0)]);
    let sample =
        Sample::new("x", "pcap", (0..4).map(|id| lost(id, 100.0 * (id + 1) as f64)).collect(), vec![]);
    let text = text(&sample, &Options { top: 2, ..Options::default() });
    assert!(text.contains("And 2 more connections: 300 ms lost in all, 200 ms in the worst"), "{text}");
}

#[test]
fn the_connection_of_the_verdict_is_shown_though_others_lost_more() {
    let mut connections: Vec<_> = (0..9)
        .map(|id| connection(id, "a.1", "b.2", &[(Line::Queueing, 1.0), (Line::ClientApp, 900.0)]))
        .collect();
    connections.push(connection(9, "a.9", "b.2", &[(Line::ServerApp, 5_000.0)]));
    let mut slow = finding("slow-server", Some(9), Blamed::Server, Some("b.2"));
    slow.cost_ms = Ms(5_000.0);
    let sample = Sample::new("x", "pcap", connections, vec![slow]);
    let text = at_80(&sample);
    let shown: Vec<_> = text.lines().filter(|line| line.starts_with('#')).map(|line| &line[..2]).collect();
    assert_eq!(shown, ["#9", "#0", "#1", "#2", "#3"]);
    assert!(text.contains("And 5 more connections: 5.00 ms lost in all, 1.00 ms in the worst"), "{text}");
}

#[test]
fn one_slow_program_is_named_and_several_are_not_taken_for_one() {
    let sample = |servers: [&str; 3]| {
        let ends = (0..).zip(servers);
        let connections =
            ends.clone().map(|(id, server)| connection(id, "a.1", server, &[(Line::ServerApp, 1_000.0)]));
        let slow = |((id, server), cost_ms)| Finding {
            cost_ms: Ms(cost_ms),
            ..finding("slow-server", Some(id), Blamed::Server, Some(server))
        };
        let findings = ends.clone().zip([300.0, 500.0, 400.0]).map(slow);
        Sample::new("x", "pcap", connections.collect(), findings.collect())
    };
    assert_eq!(
        verdict(&sample(["b.2"; 3])),
        "✖ TCP is innocent here: the server's program (b.2) had not answered yet for 1.20 s, over 3 connections."
    );
    assert_eq!(
        verdict(&sample(["b.2", "c.2", "c.2"])),
        "✖ TCP is innocent here: programs of several servers had not answered yet for 1.20 s, over 3 \
         connections; the longest (c.2) on #1, for 500 ms."
    );
}

#[test]
fn a_problem_goes_before_advice_that_costs_more() {
    let only = connection(0, "a.1", "b.2", &[(Line::Rto, 400.0), (Line::ServerApp, 600.0)]);
    let mut problem = finding("rto-stall", Some(0), Blamed::Network, None);
    problem.cost_ms = Ms(400.0);
    let mut advice = finding("delayed-ack", Some(0), Blamed::Client, None);
    advice.severity = Severity::Advice;
    advice.cost_ms = Ms(500.0);
    let sample = Sample::new("x", "pcap", vec![only], vec![advice, problem]);
    assert_eq!(
        verdict(&sample),
        "✖ The network makes this connection wait 400 ms of 1.00 s (40 %). For 600 ms of 1.00 s the server had not \
         answered yet."
    );
}

#[test]
fn a_guess_is_called_one() {
    let mut sample = samples::upload();
    sample.findings[0].confidence = 0.5;
    assert!(verdict(&sample).starts_with("✖ Probably: The server b.80 makes"), "{}", verdict(&sample));
    let mut sample = samples::slow_server();
    sample.findings[0].confidence = 0.5;
    assert!(verdict(&sample).starts_with("✖ TCP is probably innocent here: "), "{}", verdict(&sample));
}

#[test]
fn no_line_is_wider_than_the_page() {
    for width in [40, 60, 61, 80, 100] {
        let options = Options { width, ..Options::default() };
        let crowd = Crowd { connections: 300 };
        let all = samples::all();
        for source in all.iter().map(|(_, sample)| sample as &dyn Source).chain([&crowd as &dyn Source]) {
            let plain = text(source, &options);
            for line in plain.lines() {
                assert!(line.width() <= width, "{} > {width}: {line}", line.width());
                assert!(!line.ends_with(' '), "ends in a space: {line:?}");
            }
            assert_eq!(
                uncoloured(&text(source, &Options { color: true, ..options })).replace(' ', ""),
                plain.replace(' ', "")
            );
        }
    }
}

#[test]
fn nothing_from_a_capture_acts_on_the_terminal() {
    let text = at_80(&samples::hostile());
    for line in text.lines() {
        assert_eq!(plain(line), line);
    }
    assert_eq!(text.lines().filter(|line| line.starts_with('✔')).count(), 0);
}

#[test]
fn a_reader_that_goes_away_is_an_error_and_not_a_panic() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let error = terminal::write(&mut Closed, &samples::nagle(), &Options::default()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn looks() {
    for (name, sample) in samples::all() {
        insta::assert_snapshot!(name, at_80(&sample));
    }
    insta::assert_snapshot!("crowd", at_80(&Crowd { connections: 3_000 }));
}

#[test]
fn looks_in_colour() {
    let options = Options { color: true, follows: true, ..Options::default() };
    insta::assert_snapshot!("nagle_in_colour", text(&samples::nagle(), &options).replace('\x1b', "␛"));
}
