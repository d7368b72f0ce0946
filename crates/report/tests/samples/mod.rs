//! Reports made by hand: what a diagnosis may look like, without the diagnosis.

use tcpwhy_diagnose::report::{
    Blame, Blamed, Cadence, Capture, Connection, Evidence, Exchanges, Finding, Fix, LedgerMs, Line, Ms,
    PerDirection, Program, Protocol, Severity, Side, Source, Vantage,
};

/// A report held in memory.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) capture: Capture,
    pub(crate) connections: Vec<Connection>,
    pub(crate) findings: Vec<Finding>,
}

impl Sample {
    /// A capture of these connections; its ledger is theirs.
    pub(crate) fn new(name: &str, kind: &str, connections: Vec<Connection>, findings: Vec<Finding>) -> Self {
        let mut ledger_ms = LedgerMs::default();
        for connection in &connections {
            for line in Line::ALL {
                ledger_ms.0[line as usize] += connection.ledger_ms.get(line);
            }
        }
        let packets = connections.iter().map(|c| c.packets.to_server + c.packets.to_client).sum();
        let payload: u64 = connections.iter().map(|c| c.bytes.to_server + c.bytes.to_client).sum();
        let end = connections.iter().map(|c| c.start_ms.0 + c.duration_ms.0).fold(0.0, f64::max);
        let capture = Capture {
            name: name.to_owned(),
            kind: kind.to_owned(),
            packets,
            bytes: payload + packets * 54,
            start: Some("2026-03-02T02:57:11.204518Z".to_owned()),
            duration_ms: Ms(end),
            notes: Vec::new(),
            ledger_ms,
        };
        Self { capture, connections, findings }
    }
}

impl Source for Sample {
    fn capture(&self) -> Capture {
        self.capture.clone()
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        Box::new(self.connections.iter().cloned())
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        Box::new(self.findings.iter().cloned())
    }
}

/// Every sample that is small enough to be held, by name.
pub(crate) fn all() -> Vec<(&'static str, Sample)> {
    vec![
        ("nagle", nagle()),
        ("slow_server", slow_server()),
        ("compound", compound()),
        ("upload", upload()),
        ("clean_udp", clean_udp()),
        ("too_little", too_little()),
        ("empty", Sample::new("dns.pcap", "pcap", vec![], vec![])),
        ("hostile", hostile()),
        ("requests", requests()),
        ("bulk", bulk()),
        ("ack_chatter", ack_chatter()),
    ]
}

pub(crate) fn ledger(booked: &[(Line, f64)]) -> LedgerMs {
    let mut ledger = LedgerMs::default();
    for (line, ms) in booked {
        ledger.0[*line as usize] += ms;
    }
    ledger
}

pub(crate) fn program(name: &str, pid: u32) -> Option<Program> {
    Some(Program { name: name.to_owned(), pid })
}

/// A connection whose duration is what is booked.
pub(crate) fn connection(id: u64, client: &str, server: &str, booked: &[(Line, f64)]) -> Connection {
    let ledger_ms = ledger(booked);
    Connection {
        id,
        protocol: Protocol::Tcp,
        client: client.to_owned(),
        server: server.to_owned(),
        client_program: None,
        server_program: None,
        vantage: Vantage::Unknown,
        start_ms: Ms(0.0),
        duration_ms: Ms(ledger_ms.total()),
        base_rtt_ms: None,
        ledger_ms,
        packets: PerDirection { to_server: 16, to_client: 15 },
        bytes: PerDirection { to_server: 0, to_client: 372 },
        exchanges: None,
        cadence: Vec::new(),
        small_waits: None,
    }
}

pub(crate) fn finding(
    rule: &'static str,
    connection: Option<u64>,
    side: Blamed,
    address: Option<&str>,
) -> Finding {
    Finding {
        rule,
        severity: Severity::Problem,
        connection,
        blame: Blame { side, address: address.map(str::to_owned) },
        count: 1,
        cost_ms: Ms(0.0),
        worst_ms: Ms(0.0),
        confidence: 0.95,
        summary: String::new(),
        evidence: Vec::new(),
        fixes: Vec::new(),
    }
}

fn evidence(cases: &[(u64, f64, &str)]) -> Vec<Evidence> {
    cases
        .iter()
        .map(|(packet, ms, note)| Evidence {
            packet: *packet,
            time_ms: Ms(*ms),
            note: (*note).to_owned(),
            capture: None,
        })
        .collect()
}

fn fixes(fixes: &[(&str, &str)]) -> Vec<Fix> {
    fixes.iter().map(|(title, how)| Fix { title: (*title).to_owned(), how: (*how).to_owned() }).collect()
}

fn nagle_fixes() -> Vec<Fix> {
    fixes(&[
        (
            "Write each update with one call",
            "Gather the pieces in a buffer or use writev(): what is written at once leaves at once while \
             nothing is in flight.",
        ),
        (
            "Set TCP_NODELAY on the server's socket",
            "setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one). Costs one packet for each update.",
        ),
        ("Acknowledge at once on the client", "TCP_QUICKACK before each recv(); the kernel clears it again."),
    ])
}

fn nagle_finding(id: u64, server: &str, cost_ms: f64, count: u64) -> Finding {
    Finding {
        count,
        cost_ms: Ms(cost_ms),
        worst_ms: Ms(199.4),
        summary:
            "Updates of 12 bytes are written every 100 ms and leave every 200 ms: Nagle's algorithm holds \
                  each second one until the client's delayed ACK comes."
                .to_owned(),
        evidence: evidence(&[
            (7, 1204.518, "12 bytes leave the server; nothing else is in flight"),
            (8, 1403.911, "pure ACK of all in flight, 199 ms later"),
            (9, 1403.987, "24 bytes leave 76 µs after it: two updates in one segment"),
        ]),
        fixes: nagle_fixes(),
        ..finding("nagle-delayed-ack", Some(id), Blamed::Server, Some(server))
    }
}

/// Nagle's algorithm against delayed ACKs, one connection.
pub(crate) fn nagle() -> Sample {
    let booked = [
        (Line::Nagle, 1021.0),
        (Line::DelayedAck, 876.25),
        (Line::ServerApp, 1082.0),
        (Line::Network, 20.75),
    ];
    let connection = Connection {
        vantage: Vantage::Server,
        base_rtt_ms: Some(Ms(1.204)),
        cadence: vec![Cadence {
            from: Side::Server,
            messages: 15,
            per_second: 5.0,
            period_ms: Ms(200.1),
            evenness: 0.93,
        }],
        ..connection(0, "pek.1033", "nestor.4566", &booked)
    };
    Sample::new(
        "TCP, 10 updates/s",
        "tcpdump-text",
        vec![connection],
        vec![nagle_finding(0, "nestor.4566", 1897.25, 9)],
    )
}

/// The look-alike: an ACK after 40 ms, and then the server answers.
pub(crate) fn slow_server() -> Sample {
    let booked = [
        (Line::Handshake, 0.061),
        (Line::ServerApp, 421.9),
        (Line::ClientApp, 20.4),
        (Line::Network, 1.2),
        (Line::Transfer, 0.3),
    ];
    let exchanges = Exchanges {
        count: 10,
        p50_ms: Ms(42.18),
        p99_ms: Ms(42.9),
        max_ms: Ms(42.91),
        ledger_ms: ledger(&[(Line::ServerApp, 421.9), (Line::Network, 1.2)]),
        slowest: Some("GET /report".to_owned()),
    };
    let connection = Connection {
        vantage: Vantage::Client,
        base_rtt_ms: Some(Ms(0.061)),
        exchanges: Some(exchanges),
        bytes: PerDirection { to_server: 1_200, to_client: 48_000 },
        client_program: program("curl", 4711),
        ..connection(0, "127.0.0.1:49812", "127.0.0.1:7777", &booked)
    };
    let slow = Finding {
        count: 10,
        cost_ms: Ms(421.9),
        worst_ms: Ms(42.7),
        confidence: 0.99,
        summary:
            "The server's program takes 42 ms for each of 10 answers. Its kernel acknowledges the requests \
                  after 40 ms, and those ACKs release nothing."
                .to_owned(),
        evidence: evidence(&[
            (6, 0.412, "request"),
            (7, 40.5, "pure ACK; the client stays silent"),
            (8, 42.6, "answer"),
        ]),
        fixes: fixes(&[(
            "Look at the server's program",
            "Profile what it does between reading and answering.",
        )]),
        ..finding("slow-server", Some(0), Blamed::Server, Some("127.0.0.1:7777"))
    };
    Sample::new("think-42ms.pcap", "pcap", vec![connection], vec![slow])
}

/// Three faults on one connection.
pub(crate) fn compound() -> Sample {
    let server = "[2001:db8::2]:443";
    let booked = [
        (Line::Handshake, 50.2),
        (Line::ServerApp, 2_400.0),
        (Line::ClientApp, 310.0),
        (Line::Network, 900.0),
        (Line::Queueing, 22.0),
        (Line::Nagle, 700.0),
        (Line::DelayedAck, 560.0),
        (Line::Rto, 1_260.0),
        (Line::Unexplained, 41.0),
    ];
    let connection = Connection {
        vantage: Vantage::Middle,
        base_rtt_ms: Some(Ms(50.2)),
        packets: PerDirection { to_server: 412, to_client: 530 },
        bytes: PerDirection { to_server: 98_304, to_client: 402_118 },
        ..connection(0, "[2001:db8::17]:51514", server, &booked)
    };
    let slow = Finding {
        count: 24,
        cost_ms: Ms(2_400.0),
        worst_ms: Ms(180.0),
        summary: "The server's program takes 100 ms for each of 24 answers.".to_owned(),
        ..finding("slow-server", Some(0), Blamed::Server, Some(server))
    };
    let nagle = Finding { worst_ms: Ms(41.2), ..nagle_finding(0, server, 1_260.0, 30) };
    let rto = Finding {
        count: 2,
        cost_ms: Ms(1_260.0),
        worst_ms: Ms(1_050.0),
        summary:
            "Two segments were lost with nothing sent after them, so only the retransmission timer could \
                  bring them back: 210 ms and 1.05 s."
                .to_owned(),
        evidence: evidence(&[
            (101, 2_310.0, "last segment of an answer"),
            (102, 3_360.0, "the same bytes again"),
        ]),
        ..finding("rto-stall", Some(0), Blamed::Network, None)
    };
    Sample::new(
        "/var/tmp/captures/checkout-gateway.pcapng.zst",
        "pcapng.zst",
        vec![connection],
        vec![slow, nagle, rto],
    )
}

/// An upload into a window of two segments.
pub(crate) fn upload() -> Sample {
    let booked = [
        (Line::Handshake, 7.4),
        (Line::Rwnd, 17.6),
        (Line::Network, 8.1),
        (Line::ClientApp, 0.7),
        (Line::Transfer, 0.2),
    ];
    let connection = Connection {
        vantage: Vantage::Client,
        base_rtt_ms: Some(Ms(7.3)),
        packets: PerDirection { to_server: 11, to_client: 9 },
        bytes: PerDirection { to_server: 10_010, to_client: 114 },
        ..connection(0, "a.52311", "b.80", &booked)
    };
    let window = Finding {
        count: 3,
        cost_ms: Ms(17.6),
        worst_ms: Ms(6.2),
        summary:
            "The server's window is 2896 bytes: two segments a round trip, and the client stands still for \
                  the rest of it."
                .to_owned(),
        ..finding("small-receive-window", Some(0), Blamed::Server, Some("b.80"))
    };
    let chatter = Finding {
        severity: Severity::Note,
        confidence: 1.0,
        summary: "Nine ACKs for 11 segments.".to_owned(),
        ..finding("ack-chatter", Some(0), Blamed::Both, None)
    };
    let mut sample =
        Sample::new("upload of 10,010 bytes", "tcpdump-text", vec![connection], vec![window, chatter]);
    sample.capture.notes = vec!["The times have no date.".to_owned()];
    sample.capture.start = Some("21:02:34.906526".to_owned());
    sample
}

/// Periodic datagrams, nothing wrong.
pub(crate) fn clean_udp() -> Sample {
    let connection = Connection {
        protocol: Protocol::Udp,
        cadence: vec![Cadence {
            from: Side::Server,
            messages: 30,
            per_second: 10.0,
            period_ms: Ms(100.0),
            evenness: 1.0,
        }],
        ..connection(0, "pek.1040", "nestor.4567", &[(Line::ServerApp, 2_900.0)])
    };
    Sample::new("UDP, 10 updates/s", "tcpdump-text", vec![connection], vec![])
}

/// Four packets from the middle of something.
pub(crate) fn too_little() -> Sample {
    let connection = Connection {
        packets: PerDirection { to_server: 3, to_client: 1 },
        bytes: PerDirection { to_server: 4_344, to_client: 0 },
        ..connection(0, "a.1024", "b.80", &[(Line::Network, 0.11), (Line::Unexplained, 0.2)])
    };
    Sample::new("CWR", "tcpdump-text", vec![connection], vec![])
}

/// What a stranger may put into the names.
pub(crate) fn hostile() -> Sample {
    let client = "\x1b[2J\x1b[1;1Hroot@host#\u{202e}gpj.exe\u{202c}\u{200b}.1033";
    let server = format!("s{}\u{9b}31m.80\n✔ Nothing is wrong.", "\u{301}".repeat(40));
    let connection = Connection {
        vantage: Vantage::Server,
        client_program: program("=\u{9b}2J</script>\n", 1),
        server_program: program("a\u{202e}b`|", u32::MAX),
        ..connection(0, client, &server, &[(Line::Nagle, 900.0), (Line::ServerApp, 100.0)])
    };
    let mut found = nagle_finding(0, &server, 900.0, 3);
    found.summary = format!("The server {server} holds updates for {client}.");
    found.evidence[0].note = format!("\x07bell, {client}");
    found.fixes[0].how = "\x1b]8;;http://example.org\x07click\x1b]8;;\x07".to_owned();
    let mut sample = Sample::new(
        &format!("\x1b]0;title\x07{}東京.pcap", "very-long-name-".repeat(30)),
        "pcap\x1b[31m",
        vec![connection],
        vec![found],
    );
    sample.capture.notes = vec!["cut\r\nin \x1b[5mtwo".to_owned()];
    sample.capture.start = Some("\u{2067}2026".to_owned());
    sample
}

/// A connection for every request: a finding about several connections.
pub(crate) fn requests() -> Sample {
    let server = "10.0.0.9:8080";
    let connections: Vec<Connection> = (0..40)
        .map(|id| {
            let booked = [(Line::Handshake, 20.0), (Line::Network, 40.0), (Line::ServerApp, 3.0 + id as f64)];
            let client = format!("10.0.0.3:{}", 40_000 + id);
            Connection {
                start_ms: Ms(id as f64 * 100.0),
                base_rtt_ms: Some(Ms(20.0)),
                ..connection(id, &client, server, &booked)
            }
        })
        .collect();
    let reuse = Finding {
        count: 40,
        cost_ms: Ms(800.0),
        worst_ms: Ms(20.0),
        summary: "Each of 40 requests opens its own connection: 20 ms of handshake before 43 ms of work."
            .to_owned(),
        fixes: fixes(&[("Keep the connection open", "A pool in the client; keep-alive on the server.")]),
        ..finding("handshake-per-request", None, Blamed::Client, Some("10.0.0.3"))
    };
    let gap = Finding {
        severity: Severity::Note,
        summary: "3 packets were acknowledged and are not in the capture.".to_owned(),
        ..finding("capture-gap", None, Blamed::Capture, None)
    };
    Sample::new("api.pcap.gz", "pcap.gz", connections, vec![reuse, gap])
}

/// Time on a lost line that no rule speaks for.
pub(crate) fn bulk() -> Sample {
    let booked =
        [(Line::Handshake, 30.0), (Line::Cwnd, 4_200.0), (Line::Network, 600.0), (Line::Transfer, 5_000.0)];
    let connection = Connection {
        base_rtt_ms: Some(Ms(30.0)),
        packets: PerDirection { to_server: 40_112, to_client: 81_004 },
        bytes: PerDirection { to_server: 140, to_client: 117_290_118 },
        ..connection(0, "192.0.2.7:50112", "198.51.100.4:443", &booked)
    };
    Sample::new("download.pcap", "pcap", vec![connection], vec![])
}

/// Nothing but a note.
pub(crate) fn ack_chatter() -> Sample {
    let booked =
        [(Line::Handshake, 1.0), (Line::ClientApp, 640.0), (Line::ServerApp, 8.0), (Line::Network, 12.0)];
    let note = Finding {
        severity: Severity::Advice,
        summary: "Two ACKs for every three segments".to_owned(),
        ..finding("ack-chatter", Some(0), Blamed::Both, None)
    };
    Sample::new("idle.pcap", "pcap", vec![connection(0, "10.0.0.1:5000", "10.0.0.2:22", &booked)], vec![note])
}

/// `connections` connections made on demand, every hundredth with a fault.
pub(crate) struct Crowd {
    pub(crate) connections: u64,
}

impl Crowd {
    fn connection(id: u64) -> Connection {
        let held = if id % 100 == 17 { 40.0 + (id % 7_919) as f64 / 10.0 } else { 0.0 };
        let booked = [
            (Line::Handshake, 0.4),
            (Line::Network, 1.6),
            (Line::ServerApp, 2.0),
            (Line::Nagle, held / 2.0),
            (Line::DelayedAck, held / 2.0),
            (Line::Queueing, (id % 13) as f64 / 100.0),
        ];
        let client = format!("10.{}.{}.{}:{}", id >> 16 & 255, id >> 8 & 255, id & 255, 30_000 + id % 30_000);
        Connection {
            start_ms: Ms(id as f64 * 0.06),
            base_rtt_ms: Some(Ms(0.4)),
            vantage: Vantage::Server,
            ..connection(id, &client, "10.200.0.1:8080", &booked)
        }
    }
}

impl Source for Crowd {
    fn capture(&self) -> Capture {
        let mut capture = Sample::new("million.pcap", "pcap", vec![], vec![]).capture;
        capture.packets = self.connections * 31;
        capture.bytes = self.connections * 2_046;
        capture.duration_ms = Ms(self.connections as f64 * 0.06);
        for connection in self.connections() {
            for line in Line::ALL {
                capture.ledger_ms.0[line as usize] += connection.ledger_ms.get(line);
            }
        }
        capture
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        Box::new((0..self.connections).map(Self::connection))
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        Box::new(
            (0..self.connections)
                .filter(|id| id % 100 == 17)
                .map(|id| nagle_finding(id, "10.200.0.1:8080", Self::connection(id).ledger_ms.lost(), 1)),
        )
    }
}
