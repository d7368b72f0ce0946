//! Connections made anew for each request.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashMap;
use tcpwhy_wire::{Address, Socket};

use super::rule::{Check, rule};
use super::subject::{Subject, human, percent};
use crate::diagnosis::{Diagnosis, ms};
use crate::flow::Connection;
use crate::report::{Blame, Blamed, Evidence, Finding, Fix, Severity};

rule! {
    /// A client makes a new connection for each request and pays a handshake every time.
    ///
    /// ## What it means
    /// Before the first byte of a request can leave, SYN and SYN-ACK travel once there and back. With one
    /// request a connection every request pays that round trip (two or three with TLS on top), and starts
    /// again with a small congestion window. A connection that stays open pays once.
    ///
    /// ## How it is detected
    /// Whole connections, handshake to close, that carried one exchange each, grouped by client host and server
    /// socket. A connection could have been saved if an earlier one of its group had its answer by then and was
    /// not needed by another in the meantime; what runs in parallel is not counted. Reported for the three
    /// groups that could save most, from three such connections on, where these handshakes are at least 10 % of
    /// the group's time from SYN to the end of the answer. If the capture has a single such connection, it is a note with low
    /// confidence, from 1 ms and 15 % of its life (first packet to last) on: nobody can tell whether the client does this
    /// each time. With TLS a connection has more than one
    /// exchange, and this rule does not see it.
    ///
    /// ## What to do
    /// Keep the connection open and use it again: a connection pool or keep-alive in the client's library, and
    /// a server that does not close after each answer. TCP Fast Open saves the round trip where reuse is
    /// impossible.
    ///
    /// ## References
    /// RFC 9293 section 3.5 (the handshake); RFC 9112 section 9.3 (persistent connections); RFC 7413 (Fast
    /// Open); RFC 5681 section 3.1 (initial window).
    HANDSHAKE_PER_REQUEST = "handshake-per-request", Severity::Advice, Check::Capture(check),
        [REUSE]
}

/// Fewer connections that could have been saved are no habit.
const FEWEST: u64 = 3;
/// The handshakes' part in the time from SYN to answer, one in so many, from which on it is worth a word.
const SHARE: i64 = 10;
/// A single connection's handshake must last this long, ns, and be this part of its life, in percent.
const SINGLE_HANDSHAKE: i64 = 1_000_000;
const SINGLE_PERCENT: i64 = 15;
/// Groups kept; a capture with more has so many clients that none stands out. Some 10 MB.
const GROUPS: usize = 65_536;
/// Groups reported.
const REPORTED: usize = 3;
/// Connections shown as evidence.
const SHOWN: usize = 3;

/// Connections of one client host to one server socket, one exchange each.
#[derive(Debug, Default)]
struct Group {
    count: u64,
    /// How many could have used an earlier connection, what their handshakes took, and the longest of those.
    saved: u64,
    saved_time: i64,
    worst: i64,
    /// The time of all of them from SYN to answer, and from first packet to last, ns.
    calls: i64,
    lives: i64,
    /// The first of them, by number.
    ids: Vec<u64>,
    /// When connections that would be open with reuse become free.
    free: BinaryHeap<Reverse<i64>>,
}

impl Group {
    /// Counts a connection; in order of their beginnings.
    fn add(&mut self, id: u64, connection: &Connection) {
        self.count += 1;
        self.calls = self.calls.saturating_add(connection.handshake() + connection.exchanges.total());
        self.lives = self.lives.saturating_add(connection.last - connection.first);
        if self.free.peek().is_some_and(|free| free.0 <= connection.first) {
            self.free.pop();
            self.saved += 1;
            self.saved_time = self.saved_time.saturating_add(connection.handshake());
            self.worst = self.worst.max(connection.handshake());
        }
        self.free.push(Reverse(connection.exchanges.answered));
        if self.ids.len() < SHOWN {
            self.ids.push(id);
        }
    }

    fn is_worth_a_word(&self) -> bool {
        self.saved >= FEWEST && self.saved_time >= self.calls / SHARE
    }
}

fn check(diagnosis: &Diagnosis, findings: &mut Vec<Finding>) {
    let mut groups: HashMap<(Address, Socket), Group, foldhash::fast::RandomState> = HashMap::default();
    for (id, connection) in diagnosis.flows().filter(|flow| is_one_request(flow.1)) {
        let client = connection.client().unwrap_or(0);
        let key = (connection.ends[client].address, connection.ends[1 - client]);
        if groups.len() < GROUPS || groups.contains_key(&key) {
            groups.entry(key).or_default().add(id, connection);
        }
    }
    if groups.len() == 1 && groups.values().all(|group| group.count == 1) {
        let only = groups.values().find_map(|group| group.ids.first());
        findings.extend(only.and_then(|id| single(&diagnosis.subject(*id)?)));
        return;
    }
    let mut worst: Vec<_> = groups.into_values().filter(Group::is_worth_a_word).collect();
    worst.sort_by_key(|group| (Reverse(group.saved_time), group.ids.first().copied()));
    findings.extend(worst.iter().take(REPORTED).filter_map(|group| several(diagnosis, group)));
}

/// Whether a connection was seen from handshake to close and carried one exchange.
fn is_one_request(connection: &Connection) -> bool {
    let is_closed = connection.reset || connection.halves.iter().all(|half| half.closed);
    !connection.is_udp && connection.handshake() > 0 && is_closed && connection.exchanges.number() == 1
}

fn several(diagnosis: &Diagnosis, group: &Group) -> Option<Finding> {
    let shown: Vec<_> = group.ids.iter().filter_map(|id| diagnosis.subject(*id)).collect();
    let first = shown.first()?;
    let (client, server) = (first.host(first.client()), first.address(1 - first.client()));
    Some(Finding {
        rule: HANDSHAKE_PER_REQUEST.name,
        severity: HANDSHAKE_PER_REQUEST.severity,
        connection: None,
        count: group.saved,
        cost_ms: ms(group.saved_time),
        worst_ms: ms(group.worst),
        confidence: 0.9,
        summary: format!(
            "The client {client} made {} connections to {server} for one exchange each; {} of them could have \
             used an earlier one. Their handshakes took {}, {} of the \
             time from SYN to answer ({} of these connections' life).",
            group.count,
            group.saved,
            human(group.saved_time),
            percent(group.saved_time, group.calls),
            percent(group.saved_time, group.lives),
        ),
        evidence: shown.iter().map(syn).collect(),
        blame: Blame { side: Blamed::Client, address: Some(client) },
        fixes: fixes(),
    })
}

fn single(subject: &Subject<'_>) -> Option<Finding> {
    let handshake = subject.connection.handshake();
    let is_costly = handshake >= SINGLE_HANDSHAKE
        && handshake.saturating_mul(100) >= subject.waiting().saturating_mul(SINGLE_PERCENT);
    is_costly.then(|| Finding {
        rule: HANDSHAKE_PER_REQUEST.name,
        severity: Severity::Note,
        connection: Some(subject.id),
        blame: subject.blame(subject.client()),
        count: 1,
        cost_ms: ms(handshake),
        worst_ms: ms(handshake),
        confidence: 0.3,
        summary: format!(
            "The handshake took {} of the {} that {}'s connection lived ({}), for one exchange. If it connects \
             for each request, every request pays that; this capture shows one only.",
            human(handshake),
            human(subject.waiting()),
            subject.who(subject.client()),
            percent(handshake, subject.waiting()),
        ),
        evidence: vec![syn(subject)],
        fixes: fixes(),
    })
}

/// A connection's SYN as evidence.
fn syn(subject: &Subject<'_>) -> Evidence {
    let connection = subject.connection;
    let note = format!("SYN: a handshake of {} for one exchange", human(connection.handshake()));
    subject.packet(connection.syn_packet(), connection.established - connection.handshake(), note)
}

fn fixes() -> Vec<Fix> {
    vec![
        Fix {
            title: "Use the connection again".to_owned(),
            how: "Client: a connection pool, or keep-alive in the HTTP or RPC library. Server: leave the connection \
                  open after an answer, longer than the client usually pauses. Costs an open socket at both ends."
                .to_owned(),
        },
        Fix {
            title: "Where that is impossible, TCP Fast Open".to_owned(),
            how: "sysctl net.ipv4.tcp_fastopen=3 at both ends, TCP_FASTOPEN_CONNECT at the client and TCP_FASTOPEN \
                  at the server: the request leaves with the SYN. Only for requests that may arrive twice."
                .to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::{Blamed, Severity};

    const MS: u64 = 1_000;

    /// One call on a connection of its own, from `start` µs on: a handshake of 10.01 ms, an answer 12 ms after
    /// the request, and the end if it is seen.
    fn call(talk: &mut Talk, start: u64, port: u16, closes: bool) {
        talk.connect(start, port, 10 * MS);
        talk.data(start + 10 * MS + 20, true, 64);
        talk.data(start + 22 * MS + 20, false, 64);
        if closes {
            talk.close(start + 22 * MS + 100);
        }
    }

    #[test]
    fn five_calls_one_after_the_other() {
        let mut talk = Talk::default();
        for number in 0..5 {
            call(&mut talk, number * 50 * MS, 40_000 + number as u16, true);
        }
        let found = findings("handshake-per-request", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.connection, None);
        assert_eq!(found.blame.side, Blamed::Client);
        assert_eq!(found.blame.address.as_deref(), Some("10.0.0.1"));
        // All but the first could have used an earlier one: four times 10.01 ms.
        assert_eq!(found.count, 4);
        assert!((found.cost_ms.0 - 40.04).abs() < 0.001, "{found:?}");
        assert!(found.summary.contains("made 5 connections to 10.0.0.2:80"), "{}", found.summary);
        // The SYN of each of the first three: eight packets a connection.
        assert_eq!(found.evidence.iter().map(|one| one.packet).collect::<Vec<_>>(), [1, 9, 17]);
    }

    #[test]
    fn connections_side_by_side_could_not_have_shared_one() {
        let mut talk = Talk::default();
        for number in 0..5 {
            call(&mut talk, number * MS, 40_000 + number as u16, true);
        }
        assert!(findings("handshake-per-request", &talk.text()).is_empty());
    }

    #[test]
    fn a_single_call_is_a_guess() {
        let mut talk = Talk::default();
        call(&mut talk, 0, 40_000, true);
        let found = findings("handshake-per-request", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.connection, found.count, found.severity), (Some(0), 1, Severity::Note));
        assert!(found.confidence < 0.5);
        // 10.01 of 22.12 ms.
        assert!(
            found.summary.contains("10.0 ms of the 22.1 ms") && found.summary.contains("45 %"),
            "{}",
            found.summary
        );
    }

    #[test]
    fn a_connection_that_goes_on_is_not_wasted() {
        let mut talk = Talk::default();
        call(&mut talk, 0, 40_000, false);
        assert!(findings("handshake-per-request", &talk.text()).is_empty());
        talk.data(40 * MS, true, 64);
        talk.data(52 * MS, false, 64);
        talk.close(53 * MS);
        assert!(findings("handshake-per-request", &talk.text()).is_empty());
    }
}
