//! `tcpwhy-report/2`: the one object that the terminal, JSON, the page and Python all print.
//!
//! docs/report-format.md documents it field by field. Times are milliseconds as floating point numbers;
//! `start_ms` and `time_ms` count from the capture's first packet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The format's name and version; a change that breaks readers raises the number.
pub const FORMAT: &str = "tcpwhy-report/2";

/// One line of the ledger: what the connection is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// SYN, SYN-ACK and ACK are travelling.
    Handshake,
    /// The server waits for the client's program; nothing is withheld or in flight.
    ClientApp,
    /// The client waits for the server's program; nothing is withheld or in flight.
    ServerApp,
    /// Nobody waits for anything: think time, keep-alives, a tunnel or a push stream at rest.
    Idle,
    /// Data or its ACK is travelling: up to the path's base round trip.
    Network,
    /// The round trip takes longer than the base one.
    Queueing,
    /// The sender holds a small segment back until what is in flight is ACKed (RFC 896, RFC 1122 4.2.3.4).
    Nagle,
    /// The sender is blocked, and the receiver holds the ACK that would free it (RFC 1122 4.2.3.2).
    DelayedAck,
    /// The congestion window is full (RFC 5681).
    Cwnd,
    /// The receiver's window is full or zero.
    Rwnd,
    /// A lost segment is being repaired (RFC 5681, 6582, 6675).
    Recovery,
    /// A timer has to expire first: retransmission (RFC 6298) or persist.
    Rto,
    /// Bytes flow back to back at the rate of the path.
    Transfer,
    /// None of the above could be shown.
    Unexplained,
}

impl Line {
    /// Every line, in the order they are printed.
    pub const ALL: [Self; 14] = [
        Self::Handshake,
        Self::ClientApp,
        Self::ServerApp,
        Self::Idle,
        Self::Network,
        Self::Queueing,
        Self::Nagle,
        Self::DelayedAck,
        Self::Cwnd,
        Self::Rwnd,
        Self::Recovery,
        Self::Rto,
        Self::Transfer,
        Self::Unexplained,
    ];

    /// The line's name as reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::ClientApp => "client-app",
            Self::ServerApp => "server-app",
            Self::Idle => "idle",
            Self::Network => "network",
            Self::Queueing => "queueing",
            Self::Nagle => "nagle",
            Self::DelayedAck => "delayed-ack",
            Self::Cwnd => "cwnd",
            Self::Rwnd => "rwnd",
            Self::Recovery => "recovery",
            Self::Rto => "rto",
            Self::Transfer => "transfer",
            Self::Unexplained => "unexplained",
        }
    }

    /// Whether time on this line is time that TCP made the programs wait beyond the path's own round trip:
    /// what connections are ranked by.
    pub fn is_lost(self) -> bool {
        use Line::{Cwnd, DelayedAck, Nagle, Queueing, Recovery, Rto, Rwnd};
        matches!(self, Queueing | Nagle | DelayedAck | Cwnd | Rwnd | Recovery | Rto)
    }
}

/// Booked time in ms, one entry for every [`Line`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LedgerMs(pub [f64; Line::ALL.len()]);

impl LedgerMs {
    /// The time on one line, in ms.
    pub fn get(&self, line: Line) -> f64 {
        self.0[line as usize]
    }

    /// The time on all lines, in ms.
    pub fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    /// The time TCP made the programs wait ([`Line::is_lost`]), in ms.
    pub fn lost(&self) -> f64 {
        Line::ALL.iter().filter(|line| line.is_lost()).map(|line| self.get(*line)).sum()
    }
}

impl Serialize for LedgerMs {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Line::ALL.iter().map(|line| (line.name(), Ms(self.get(*line)))))
    }
}

impl<'de> Deserialize<'de> for LedgerMs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let lines = BTreeMap::<String, f64>::deserialize(deserializer)?;
        Ok(Self(Line::ALL.map(|line| lines.get(line.name()).copied().unwrap_or_default())))
    }
}

/// Milliseconds, printed to the microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Deserialize)]
pub struct Ms(pub f64);

impl Serialize for Ms {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64((self.0 * 1e3).round() / 1e3)
    }
}

/// What is known of one capture as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Capture {
    /// The file's name, or the line of prose above a block of packets in a text.
    pub name: String,
    /// `pcap`, `pcapng`, `pcap.gz`, …, `tcpdump-text`, or `live`.
    pub kind: String,
    /// Frames read, of every protocol.
    pub packets: u64,
    /// Bytes of these frames on the wire.
    pub bytes: u64,
    /// When the first frame was captured: RFC 3339 in UTC; the time of day alone where a text has no date;
    /// null for an empty capture.
    pub start: Option<String>,
    /// From the first frame to the last.
    pub duration_ms: Ms,
    /// What a reader must know before trusting the rest: cut files, frames left out, what the capture
    /// cannot show.
    pub notes: Vec<String>,
    /// The ledgers of all connections, added up.
    pub ledger_ms: LedgerMs,
}

/// Transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Where the capture was taken, seen from one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Vantage {
    /// On the client's host or next to it.
    Client,
    /// On the server's host or next to it.
    Server,
    /// Between the two.
    Middle,
    /// The packets do not tell.
    Unknown,
}

/// One end of a connection: the one that asked for it, or the one that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Sent the SYN; without a handshake, the likelier asker.
    Client,
    /// Answered it.
    Server,
}

/// A figure for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PerDirection {
    /// From the client to the server.
    pub to_server: u64,
    /// From the server to the client.
    pub to_client: u64,
}

/// Request/response latency: from a request's first byte to its answer's last.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exchanges {
    /// How many exchanges.
    pub count: u64,
    /// Median.
    pub p50_ms: Ms,
    /// 99th percentile.
    pub p99_ms: Ms,
    /// Slowest.
    pub max_ms: Ms,
    /// The time inside exchanges, split by ledger line.
    pub ledger_ms: LedgerMs,
    /// What the slowest request is called (`GET /hello.txt`), where its protocol can be read; null elsewhere.
    pub slowest: Option<String>,
}

/// The rhythm in which one side's messages cross the wire, where they have one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cadence {
    /// Who sends.
    pub from: Side,
    /// Messages (segments or datagrams with payload) counted.
    pub messages: u64,
    /// Messages a second.
    pub per_second: f64,
    /// Median time between two messages.
    pub period_ms: Ms,
    /// Share of intervals within a quarter of the period, 0 to 1.
    pub evenness: f64,
}

/// Waits of TCP's that are too few or too short for a finding, or that no rule knows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SmallWaits {
    /// How many.
    pub count: u64,
    /// In all.
    pub total_ms: Ms,
    /// The longest.
    pub worst_ms: Ms,
}

/// A program at one end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// What its process is called: any text at all.
    pub name: String,
    /// The process.
    pub pid: u32,
}

/// One connection, or one UDP flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Connection {
    /// Number from 0 in order of appearance in the capture.
    pub id: u64,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// `ip:port` of the client, or the host's name as a text capture wrote it.
    pub client: String,
    /// The same of the server.
    pub server: String,
    /// The client's program; absent where nobody knows it. Packets do not tell: an analysis alone leaves both empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_program: Option<Program>,
    /// The same of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_program: Option<Program>,
    /// Where the capture was taken.
    pub vantage: Vantage,
    /// First packet, from the capture's first.
    pub start_ms: Ms,
    /// First packet to last.
    pub duration_ms: Ms,
    /// Shortest round trip seen, both parts of the path together; null where none could be measured.
    pub base_rtt_ms: Option<Ms>,
    /// Where the time went; sums to `duration_ms`.
    pub ledger_ms: LedgerMs,
    /// Packets.
    pub packets: PerDirection,
    /// Payload bytes, retransmissions counted once.
    pub bytes: PerDirection,
    /// Request/response latency; null where traffic is not of that kind.
    pub exchanges: Option<Exchanges>,
    /// Rhythms, at most one a side.
    pub cadence: Vec<Cadence>,
    /// Time that was lost to TCP and that no finding owns; null where there is none.
    pub small_waits: Option<SmallWaits>,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information about the traffic or the capture.
    Note,
    /// Nothing is broken, and something could be better.
    Advice,
    /// Time is being lost.
    Problem,
}

/// Whom a finding blames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Blamed {
    /// The client's host or program.
    Client,
    /// The server's host or program.
    Server,
    /// Both ends.
    Both,
    /// The path between them.
    Network,
    /// The way the capture was made.
    Capture,
}

/// The side to blame, and its address where it is one host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blame {
    /// Who.
    pub side: Blamed,
    /// `ip:port` of that side.
    pub address: Option<String>,
}

/// A packet that shows the finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Position in the capture from 1, as Wireshark numbers frames.
    pub packet: u64,
    /// When, from the capture's first packet.
    pub time_ms: Ms,
    /// What this packet shows.
    pub note: String,
    /// Of a finding about two captures: which of the report's captures has the packet, from 0; absent elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<usize>,
}

/// One way to mend it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fix {
    /// In a few words.
    pub title: String,
    /// How, and what it costs.
    pub how: String,
}

/// A fault, a piece of advice, or a note; always with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule's name, as `tcpwhy explain` knows it.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The connection, or null where it is about several or the whole capture.
    pub connection: Option<u64>,
    /// Whom it blames.
    pub blame: Blame,
    /// How often it was seen.
    pub count: u64,
    /// What it cost in all.
    pub cost_ms: Ms,
    /// The worst single case.
    pub worst_ms: Ms,
    /// 0 (a guess) to 1 (the packets leave no other reading).
    pub confidence: f64,
    /// In plain words, with the numbers in it.
    pub summary: String,
    /// The worst cases, by packet.
    pub evidence: Vec<Evidence>,
    /// In order of preference.
    pub fixes: Vec<Fix>,
}

/// What a connection's programs waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Awaited {
    /// Answers: how long requests took counts.
    Exchanges,
    /// Nothing: each update counts by itself.
    Updates,
}

/// How long things took in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Played {
    /// From the first SYN to the end of the last exchange or update.
    pub total_ms: Ms,
    /// Median of an exchange, or of an update's way from one program to the other.
    pub p50_ms: Ms,
    /// Their 99th percentile.
    pub p99_ms: Ms,
    /// Packets sent by both sides; null where the replay's ACKs are not those of the hosts.
    pub packets: Option<u64>,
    /// Bytes of their IP packets; null likewise.
    pub bytes: Option<u64>,
}

/// How far the unchanged replay is from the capture. Shares: 0.05 is 5 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Likeness {
    /// Exchanges or updates that were compared.
    pub compared: u64,
    /// The median of how far each one's latency is off.
    pub latency_p50: f64,
    /// The 90th percentile.
    pub latency_p90: f64,
    /// How far the time from the SYN to the end of the last one is off.
    pub total: f64,
    /// How far the number of segments with data is off.
    pub segments: f64,
    /// How far the number of all packets is off, those that only acknowledge included.
    pub packets: f64,
}

/// What a fix would have saved, predicted by playing the finding's connection again in a simulator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIf {
    /// The fix, as `tcpwhy whatif --fix` knows it.
    pub fix: String,
    /// The fix in a few words.
    pub title: String,
    /// Where it is made; null where it is not one side's.
    pub side: Option<Side>,
    /// What the programs waited for.
    #[serde(rename = "kind")]
    pub awaited: Awaited,
    /// The time it saves: by how much sooner the last exchange ends, or for how long some update would not have been late.
    pub saved_ms: Ms,
    /// The least and the most it saves, where the capture leaves open when updates were written.
    pub saved_ms_bounds: Option<(Ms, Ms)>,
    /// The replay without the fix.
    pub unchanged: Played,
    /// The replay with it.
    pub with_it: Played,
    /// Its price in packets, less than zero where it saves some; null where they are not known.
    pub more_packets: Option<i64>,
    /// The same in bytes.
    pub more_bytes: Option<i64>,
    /// Whether to trust all of this.
    pub likeness: Likeness,
}

/// One capture's report, made piece by piece: with a million connections the pieces together are more than
/// should be in memory at once.
pub trait Source {
    /// The capture as a whole.
    fn capture(&self) -> Capture;
    /// Its connections in order of their ids.
    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_>;
    /// Its findings: those about the capture first, then by connection.
    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_>;
    /// The same in the same order, for ranking and adding up: of findings about one connection, addresses,
    /// summary, evidence and fixes may be left empty. A million of these texts take longer than the analysis.
    fn skim(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        self.findings()
    }
    /// The findings about one connection, in full.
    fn findings_of(&self, connection: u64) -> Vec<Finding> {
        self.findings().filter(|finding| finding.connection == Some(connection)).collect()
    }
    /// What a fix of one of these findings would have saved, where a simulator has been asked: an analysis alone does not
    /// know.
    fn what_if(&self, finding: &Finding) -> Option<WhatIf> {
        let _ = finding;
        None
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn capture(&self) -> Capture {
        (**self).capture()
    }

    fn connections(&self) -> Box<dyn Iterator<Item = Connection> + '_> {
        (**self).connections()
    }

    fn findings(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        (**self).findings()
    }

    fn skim(&self) -> Box<dyn Iterator<Item = Finding> + '_> {
        (**self).skim()
    }

    fn findings_of(&self, connection: u64) -> Vec<Finding> {
        (**self).findings_of(connection)
    }

    fn what_if(&self, finding: &Finding) -> Option<WhatIf> {
        (**self).what_if(finding)
    }
}
