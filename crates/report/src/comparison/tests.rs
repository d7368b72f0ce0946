use tcpwhy_diagnose::report as model;
use tcpwhy_diagnose::report::{
    Blame, Blamed, Capture, Connection, Finding, Line, PerDirection, Protocol, Source, Vantage,
};

use super::*;

/// A capture with connections that each have one finding, or none.
struct Written(Vec<(Connection, Option<Finding>)>);

impl Source for Written {
    fn capture(&self) -> Capture {
        Capture { packets: 100, bytes: 10_000, ..Capture::default() }
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        Box::new(self.0.iter().map(|(connection, _)| connection.clone()))
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        Box::new(self.0.iter().filter_map(|(_, finding)| finding.clone()))
    }
}

fn ledger(lines: &[(Line, f64)]) -> LedgerMs {
    let mut ledger = LedgerMs::default();
    for (line, ms) in lines {
        ledger.0[*line as usize] = *ms;
    }
    ledger
}

fn connection(id: u64, server: &str, lines: &[(Line, f64)], exchanges: u64) -> Connection {
    let ledger_ms = ledger(lines);
    let inside = |count| model::Exchanges {
        count,
        p50_ms: Ms(1.0),
        p99_ms: Ms(1.0),
        max_ms: Ms(90.0),
        ledger_ms,
        slowest: None,
    };
    Connection {
        id,
        protocol: Protocol::Tcp,
        client: "10.0.0.1:50000".to_owned(),
        server: server.to_owned(),
        client_program: None,
        server_program: None,
        vantage: Vantage::Client,
        start_ms: Ms(0.0),
        duration_ms: Ms(ledger_ms.total()),
        base_rtt_ms: None,
        ledger_ms,
        packets: PerDirection::default(),
        bytes: PerDirection::default(),
        exchanges: (exchanges > 0).then(|| inside(exchanges)),
        cadence: Vec::new(),
        small_waits: None,
    }
}

fn finding(rule: &'static str, connection: Option<u64>, cost_ms: f64) -> Finding {
    Finding {
        rule,
        severity: Severity::Problem,
        connection,
        blame: Blame { side: Blamed::Server, address: None },
        count: 10,
        cost_ms: Ms(cost_ms),
        worst_ms: Ms(cost_ms),
        confidence: 0.9,
        summary: String::new(),
        evidence: Vec::new(),
        fixes: Vec::new(),
    }
}

/// Ten exchanges of 41 ms, 40 of them held by Nagle's algorithm.
fn slow(server: &str) -> Digest {
    let lines = [(Line::Network, 10.0), (Line::Nagle, 400.0)];
    let found = finding("nagle-delayed-ack", Some(0), 400.0);
    Digest::of(&Written(vec![(connection(0, server, &lines, 10), Some(found))]))
}

/// Twenty exchanges of 1 ms.
fn quick(server: &str) -> Digest {
    Digest::of(&Written(vec![(connection(0, server, &[(Line::Network, 20.0)], 20), None)]))
}

fn change(comparison: &Comparison, rule: &str) -> Option<Change> {
    let all = comparison.services.iter().flat_map(|pair| &pair.findings).chain(&comparison.findings);
    all.filter(|pair| pair.rule == rule).find_map(|pair| pair.change)
}

#[test]
fn what_was_mended_is_gone_and_exchanges_are_told_by_their_mean() {
    let comparison = compare(&slow("10.0.0.2:80"), &quick("10.0.0.2:80"));
    let [pair] = &comparison.services[..] else { panic!("{comparison:?}") };
    assert_eq!(pair.matched, Some(Matched::Address));
    let mean = |amount: &Option<Amount>| amount.as_ref().and_then(|a| a.exchanges).map(|e| e.mean_ms.0);
    assert_eq!((mean(&pair.before), mean(&pair.after)), (Some(41.0), Some(1.0)));
    let cost = pair.findings[0].before.expect("it was there");
    assert_eq!((cost.per_exchange_ms, cost.share), (Some(Ms(40.0)), 400.0 / 410.0));
    assert_eq!(change(&comparison, "nagle-delayed-ack"), Some(Change::Gone));
    assert_eq!(
        comparison.verdict,
        "Gone: nagle-delayed-ack. An exchange takes 1.00 ms on average, before 41.0 ms: 41.0 times as fast."
    );
    let back = compare(&quick("10.0.0.2:80"), &slow("10.0.0.2:80"));
    assert_eq!(change(&back, "nagle-delayed-ack"), Some(Change::New));
    assert!(
        back.verdict.contains("New: nagle-delayed-ack.") && back.verdict.ends_with("41.0 times as long.")
    );
}

/// Twice as long a capture of the same costs twice as much in all, and the same for each exchange.
#[test]
fn longer_captures_are_not_worse() {
    let of = |connections: u64, cost: f64| {
        let lines = [(Line::Network, 10.0), (Line::Nagle, cost)];
        let one = |id| {
            let found = finding("nagle-delayed-ack", Some(id), cost);
            (connection(id, "10.0.0.2:80", &lines, 10), Some(found))
        };
        Digest::of(&Written((0..connections).map(one).collect()))
    };
    let told = |before: &Digest, after: &Digest| change(&compare(before, after), "nagle-delayed-ack");
    assert_eq!(told(&of(1, 400.0), &of(2, 400.0)), Some(Change::Same));
    assert_eq!(told(&of(1, 400.0), &of(1, 330.0)), Some(Change::Same));
    assert_eq!(told(&of(1, 400.0), &of(1, 310.0)), Some(Change::Better));
    assert_eq!(told(&of(1, 330.0), &of(1, 400.0)), Some(Change::Same));
    assert_eq!(told(&of(1, 310.0), &of(1, 400.0)), Some(Change::Worse));
}

#[test]
fn without_exchanges_the_share_of_the_time_counts() {
    let of = |idle: f64| {
        let lines = [(Line::ServerApp, idle), (Line::Rwnd, 100.0)];
        let found = finding("zero-window", Some(0), 100.0);
        Digest::of(&Written(vec![(connection(0, "10.0.0.2:80", &lines, 0), Some(found))]))
    };
    let comparison = compare(&of(100.0), &of(900.0));
    assert_eq!(change(&comparison, "zero-window"), Some(Change::Better));
    assert_eq!(comparison.verdict, "Costs less: zero-window.");
}

#[test]
fn services_are_recognised_by_address_then_port_then_because_there_is_no_other() {
    let of = |servers: &[&str]| {
        let one =
            |(id, server): (usize, &&str)| (connection(id as u64, server, &[(Line::Network, 1.0)], 0), None);
        Digest::of(&Written(servers.iter().enumerate().map(one).collect()))
    };
    let matched = |before: &[&str], after: &[&str]| {
        let pairs = compare(&of(before), &of(after)).services;
        pairs.into_iter().map(|pair| pair.matched).collect::<Vec<_>>()
    };
    use Matched::{Address, Only, Port};
    assert_eq!(matched(&["a:80", "a:81"], &["a:81", "b:80"]), [Some(Address), Some(Port)]);
    assert_eq!(matched(&["a:80"], &["b:8080"]), [Some(Only)]);
    // Two of one port: which of them it is now cannot be told.
    assert_eq!(matched(&["a:80", "b:80"], &["c:80"]), [None, None, None]);
    assert_eq!(matched(&["a:80", "x:1"], &["a:80", "y:2"]), [Some(Address), None, None]);
}

/// A finding is not gone because nobody asked that service.
#[test]
fn what_is_in_one_report_only_has_not_changed() {
    let both = |server: &str| {
        let found = finding("rto-stall", Some(1), 5.0);
        let lines = [(Line::Rto, 5.0)];
        let pairs =
            vec![(connection(0, "a:80", &lines, 0), None), (connection(1, server, &lines, 0), Some(found))];
        Digest::of(&Written(pairs))
    };
    let comparison = compare(&both("a:1"), &both("a:2"));
    assert_eq!(comparison.services.len(), 3);
    assert_eq!(change(&comparison, "rto-stall"), None);
    assert_eq!(comparison.verdict, "No problem before, none after.");
    assert_eq!(
        compare(&slow("a:80"), &Digest::default()).verdict,
        "The two reports have no service in common."
    );
}

#[test]
fn findings_about_several_connections_are_compared_too() {
    let of = |found: Option<Finding>| {
        let mut entries = vec![(connection(0, "a:80", &[(Line::Network, 10.0)], 0), found)];
        entries.push((connection(1, "a:80", &[(Line::Network, 10.0)], 0), None));
        Digest::of(&Written(entries))
    };
    let comparison = compare(&of(Some(finding("clock-step", None, 0.0))), &of(None));
    assert_eq!(comparison.findings.len(), 1);
    assert_eq!(comparison.findings[0].change, Some(Change::Gone));
}

#[test]
fn a_scan_does_not_make_the_digest_grow_and_the_worst_stay() {
    let many = 3 * MOST_SERVICES as u64;
    let one = |id| {
        let lost = if id == 7 { 99.0 } else { 0.0 };
        let lines = [(Line::Network, 1.0), (Line::Rto, lost)];
        (connection(id, &format!("10.0.0.9:{}", id + 1), &lines, 0), None)
    };
    let digest = Digest::of(&Written((0..many).map(one).collect()));
    assert_eq!((digest.connections, digest.services.len()), (many, MOST_SERVICES));
    assert_eq!(digest.services.len() as u64 + digest.more_services, many);
    assert_eq!(digest.services[0].server, "10.0.0.9:8");
    assert_eq!(digest.ledger_ms.get(Line::Rto), 99.0);
}

/// What is kept is what was made.
#[test]
fn a_digest_survives_being_written_down() {
    let digest = slow("[2001:db8::1]:443");
    let text = serde_json::to_string(&digest).expect("JSON");
    assert_eq!(serde_json::from_str::<Digest>(&text).expect("the same"), digest);
}
