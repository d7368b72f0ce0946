//! Test conversations in tcpdump's own notation, so that a firing case and its near miss read as what they are.

use std::collections::HashMap;

use tcpwhy_wire::text::{Item, Reader};

use crate::hops::{Candidates, Hops, Place};
use crate::report::Finding;
use crate::{Analyzer, CaptureInfo, Diagnosis};

/// Analyses one capture written as tcpdump prints it.
pub(crate) fn diagnose(text: &str) -> Diagnosis {
    analyzed(text, Analyzer::new())
}

/// What captures show on both sides of proxies, one text each.
pub(crate) fn hops(texts: &[&str]) -> Hops {
    let all: Vec<Diagnosis> = texts.iter().map(|text| analyzed(text, Analyzer::recording(0..9))).collect();
    let found = all.iter().enumerate().flat_map(|(capture, diagnosis)| diagnosis.hops(capture));
    let candidates = Candidates::of(found.collect(), None);
    let mut spoken = HashMap::new();
    for (capture, diagnosis) in all.iter().enumerate() {
        let of = |connection| Some((Place { capture, connection }, diagnosis.spoken(connection)?));
        spoken.extend(candidates.wanted(capture).into_iter().filter_map(of));
    }
    Hops::of(candidates, &spoken)
}

/// A conversation as if its client were the proxy 10.0.0.2 and its server 10.0.0.3:90.
pub(crate) fn behind(text: &str) -> String {
    text.replace("10.0.0.2.80", "10.0.0.3.90")
        .replace("10.0.0.1.", "10.0.0.2.")
        .replace("Flags [S], seq 0", "Flags [S], seq 700")
        .replace("Flags [S.], seq 0, ack 1", "Flags [S.], seq 900, ack 701")
}

fn analyzed(text: &str, mut analyzer: Analyzer) -> Diagnosis {
    let mut info = CaptureInfo { has_date: false, ..CaptureInfo::default() };
    for item in Reader::new(text.as_bytes()) {
        match item {
            Item::Packet(packet) => {
                info.frames += 1;
                let first = info.span.map_or(packet.time, |span| span.0);
                info.span = Some((first, packet.time));
                analyzer.push(&[packet]);
            }
            Item::End(end) => info.names = end.names,
            Item::Start(_) => {}
        }
    }
    analyzer.finish(info)
}

/// What one rule finds in a conversation, before time is shared out among rules.
pub(crate) fn findings(rule: &str, text: &str) -> Vec<Finding> {
    let diagnosis = diagnose(text);
    let of_connections = diagnosis.subjects().flat_map(|subject| super::each(&subject));
    let all = super::of_capture(&diagnosis).into_iter().chain(of_connections);
    all.filter(|finding| finding.rule == rule).collect()
}

/// 31 messages of 10 bytes from 10.0.0.1:40000, each 1.9 s after the one before: a minute in which the other end waits for
/// the client's program. The first byte has this relative sequence number.
pub(crate) fn minute_of_messages(first: u64) -> String {
    (0..31)
        .map(|number| {
            let (ms, seq) = (1_000 + number * 1_900, first + number * 10);
            let (sent, acked) = (ms, ms + 20);
            let time = |ms: u64| format!("10:00:{:02}.{:03}000", ms / 1_000, ms % 1_000);
            format!(
                "{} IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq {seq}:{}, ack 1, win 64240, length 10\n\
                 {} IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [.], ack {}, win 65160, length 0\n",
                time(sent),
                seq + 10,
                time(acked),
                seq + 10,
            )
        })
        .collect()
}

/// A conversation with 10.0.0.2:80, packet by packet, as tcpdump prints it. Times are µs; sequence numbers are
/// relative and keep count of themselves.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    lines: Vec<String>,
    /// The client's port, at 10.0.0.1.
    port: u16,
    /// Bytes that client and server have sent so far.
    sent: [u64; 2],
}

impl Talk {
    /// A conversation whose handshake shows a round trip of `round_trip` µs, captured at the client.
    pub(crate) fn near_client(round_trip: u64) -> Self {
        let mut talk = Self::default();
        talk.connect(0, 40_000, round_trip);
        talk
    }

    /// The same, captured at the server: SYN at 0, SYN-ACK 10 µs later, ACK after the round trip.
    pub(crate) fn near_server(round_trip: u64) -> Self {
        let mut talk = Self::default();
        talk.handshake([0, 10, 10 + round_trip], 40_000);
        talk
    }

    /// A conversation whose SYN, SYN-ACK and ACK pass at these times.
    pub(crate) fn with_handshake(times: [u64; 3]) -> Self {
        let mut talk = Self::default();
        talk.handshake(times, 40_000);
        talk
    }

    /// A conversation under way.
    pub(crate) fn without_handshake() -> Self {
        Self { port: 40_000, sent: [1, 1], ..Self::default() }
    }

    /// From here on the client speaks from this port, on a new connection: SYN at `start`, SYN-ACK after the
    /// round trip, ACK 10 µs later.
    pub(crate) fn connect(&mut self, start: u64, port: u16, round_trip: u64) {
        self.handshake([start, start + round_trip, start + round_trip + 10], port);
    }

    fn handshake(&mut self, times: [u64; 3], port: u16) {
        (self.port, self.sent) = (port, [1, 1]);
        self.line(times[0], true, "[S], seq 0, win 64240, options [mss 1460,nop,wscale 7], length 0");
        self.line(
            times[1],
            false,
            "[S.], seq 0, ack 1, win 65160, options [mss 1460,nop,wscale 7], length 0",
        );
        self.line(times[2], true, "[.], ack 1, win 502, length 0");
    }

    /// A segment as tcpdump prints it, from its flags on.
    pub(crate) fn line(&mut self, us: u64, is_client: bool, rest: &str) {
        let (client, server) = (format!("10.0.0.1.{}", self.port), "10.0.0.2.80".to_owned());
        let (from, to) = if is_client { (client, server) } else { (server, client) };
        let (seconds, micros) = (us / 1_000_000, us % 1_000_000);
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        self.lines.push(format!("10:{minutes:02}:{seconds:02}.{micros:06} IP {from} > {to}: Flags {rest}\n"));
    }

    /// Data that ACKs everything the other side has sent.
    pub(crate) fn data(&mut self, us: u64, is_client: bool, len: u64) {
        let (own, other) = (usize::from(!is_client), usize::from(is_client));
        let (seq, ack) = (self.sent[own], self.sent[other]);
        self.sent[own] += len;
        self.line(us, is_client, &format!("[P.], seq {seq}:{}, ack {ack}, win 502, length {len}", seq + len));
    }

    /// Data that the capture lacks.
    pub(crate) fn lack(&mut self, is_client: bool, len: u64) {
        self.sent[usize::from(!is_client)] += len;
    }

    /// A pure ACK of everything the other side has sent.
    pub(crate) fn ack(&mut self, us: u64, is_client: bool) {
        self.ack_with(us, is_client, 502);
    }

    /// The same with this window, in units of 128 bytes.
    pub(crate) fn ack_with(&mut self, us: u64, is_client: bool, window: u64) {
        let ack = self.sent[usize::from(is_client)];
        self.line(us, is_client, &format!("[.], ack {ack}, win {window}, length 0"));
    }

    /// So many full segments 10 µs apart.
    pub(crate) fn flight(&mut self, us: u64, is_client: bool, segments: u64) {
        for number in 0..segments {
            self.data(us + 10 * number, is_client, 1_460);
        }
    }

    /// A pure ACK of so many bytes of the other side.
    pub(crate) fn ack_of(&mut self, us: u64, is_client: bool, bytes: u64) {
        self.line(us, is_client, &format!("[.], ack {}, win 502, length 0", bytes + 1));
    }

    /// Both sides close at `us`, the client first.
    pub(crate) fn close(&mut self, us: u64) {
        let [client, server] = self.sent;
        self.line(us, true, &format!("[F.], seq {client}, ack {server}, win 502, length 0"));
        self.line(us + 10, false, &format!("[F.], seq {server}, ack {}, win 502, length 0", client + 1));
        self.line(us + 20, true, &format!("[.], ack {}, win 502, length 0", server + 1));
    }

    /// The text, in order of time: connections may have been written down one after the other.
    pub(crate) fn text(&self) -> String {
        let mut lines = self.lines.clone();
        lines.sort_by_key(|line| line.split(' ').next().map(str::to_owned));
        lines.concat()
    }
}

/// An upload to 10.0.0.2:80 in segments of 1,460 bytes. Times are µs; segments count from 0.
#[derive(Debug)]
pub(crate) struct Bulk {
    lines: String,
}

impl Bulk {
    /// Bytes of a segment.
    const SIZE: u64 = 1_460;

    /// Captured at the client; both ends allow SACK.
    pub(crate) fn with_sack(round_trip: u64) -> Self {
        Self::new([round_trip, round_trip + 10], ["sackOK,", "sackOK,"])
    }

    /// The client does not allow it, so the server must not.
    pub(crate) fn without_sack(round_trip: u64) -> Self {
        Self::new([round_trip, round_trip + 10], ["", ""])
    }

    /// The server does not.
    pub(crate) fn server_without_sack(round_trip: u64) -> Self {
        Self::new([round_trip, round_trip + 10], ["sackOK,", ""])
    }

    /// Captured at the server; both ends allow SACK.
    pub(crate) fn at_server(round_trip: u64) -> Self {
        Self::new([10, round_trip + 10], ["sackOK,", "sackOK,"])
    }

    /// SYN at 0, SYN-ACK and ACK at these times, with these options.
    fn new([syn_ack, ack]: [u64; 2], [client, server]: [&str; 2]) -> Self {
        let mut talk = Self { lines: String::new() };
        talk.line(0, true, &format!("[S], seq 0, win 64240, options [{client}mss 1460], length 0"));
        let options = format!("options [{server}mss 1460]");
        talk.line(syn_ack, false, &format!("[S.], seq 0, ack 1, win 65160, {options}, length 0"));
        talk.line(ack, true, "[.], ack 1, win 64240, length 0");
        talk
    }

    fn line(&mut self, us: u64, is_client: bool, rest: &str) {
        let (client, server) = ("10.0.0.1.40000", "10.0.0.2.80");
        let (from, to) = if is_client { (client, server) } else { (server, client) };
        let (seconds, micros) = (us / 1_000_000, us % 1_000_000);
        self.lines += &format!("10:00:{seconds:02}.{micros:06} IP {from} > {to}: Flags {rest}\n");
    }

    /// A full segment, for the first time or again.
    pub(crate) fn segment(&mut self, us: u64, index: u64) {
        self.piece(us, index, Self::SIZE);
    }

    /// The same with this timestamp.
    pub(crate) fn segment_at(&mut self, us: u64, index: u64, stamp: u64) {
        let seq = 1 + index * Self::SIZE;
        let options = format!("options [nop,nop,TS val {stamp} ecr 7]");
        let end = seq + Self::SIZE;
        self.line(us, true, &format!("[.], seq {seq}:{end}, ack 1, win 64240, {options}, length 1460"));
    }

    /// The first `len` bytes of a segment.
    pub(crate) fn piece(&mut self, us: u64, index: u64, len: u64) {
        let seq = 1 + index * Self::SIZE;
        self.line(us, true, &format!("[P.], seq {seq}:{}, ack 1, win 64240, length {len}", seq + len));
    }

    /// An ACK of everything before a segment.
    pub(crate) fn ack(&mut self, us: u64, index: u64) {
        self.line(us, false, &format!("[.], ack {}, win 65160, length 0", 1 + index * Self::SIZE));
    }

    /// An ACK of everything before a segment and `len` bytes of it.
    pub(crate) fn ack_piece(&mut self, us: u64, index: u64, len: u64) {
        self.line(us, false, &format!("[.], ack {}, win 65160, length 0", 1 + index * Self::SIZE + len));
    }

    /// An ACK with a SACK block from one segment to another.
    pub(crate) fn sack(&mut self, us: u64, index: u64, (from, to): (u64, u64)) {
        let [ack, left, right] = [index, from, to].map(|index| 1 + index * Self::SIZE);
        let options = format!("options [nop,nop,sack 1 {{{left}:{right}}}]");
        self.line(us, false, &format!("[.], ack {ack}, win 65160, {options}, length 0"));
    }

    /// An ACK of everything before a segment, which reports that those from one to another came twice (RFC 2883).
    pub(crate) fn duplicate_below(&mut self, us: u64, index: u64, twice: (u64, u64)) {
        self.sack(us, index, twice);
    }

    /// The same of the bytes from one to another, with an ACK of all up to there.
    pub(crate) fn duplicate(&mut self, us: u64, (from, to): (u64, u64)) {
        let (left, right) = (1 + from, 1 + to);
        let options = format!("options [nop,nop,sack 1 {{{left}:{right}}}]");
        self.line(us, false, &format!("[.], ack {right}, win 65160, {options}, length 0"));
    }

    /// The first `len` bytes, with this timestamp.
    pub(crate) fn stamped(&mut self, us: u64, len: u64, stamp: u64) {
        let options = format!("options [nop,nop,TS val {stamp} ecr 7]");
        self.line(us, true, &format!("[P.], seq 1:{}, ack 1, win 64240, {options}, length {len}", 1 + len));
    }

    /// An ACK of the first `len` bytes that echoes this timestamp.
    pub(crate) fn echo(&mut self, us: u64, len: u64, stamp: u64) {
        let options = format!("options [nop,nop,TS val 8 ecr {stamp}]");
        self.line(us, false, &format!("[.], ack {}, win 65160, {options}, length 0", 1 + len));
    }

    /// The text.
    pub(crate) fn text(&self) -> String {
        self.lines.clone()
    }
}
