//! Looks at everything a diagnosis says, and holds it against what must be true of any.

use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::report::{Blamed, Connection, Finding, LedgerMs, Line, Source};

/// What is known of the packets that went in.
pub(crate) struct Expected {
    /// How many there were.
    pub(crate) tcp_or_udp: u64,
    /// The highest number among them.
    pub(crate) highest: u64,
}

/// A ledger sums to its connection's time to the microsecond, the promise; in ms.
const MICROSECOND: f64 = 1e-3;

/// Rounding of sums of 64-bit floating point numbers, as a share: matters for spans of years.
const ROUNDING: f64 = 1e-12;

/// Rules whose cost is not time of the ledger's lines, and may overlap with others': lateness against a beat, and round trips that
/// another way of asking would have saved.
const BESIDE: [&str; 2] = ["uneven-cadence", "handshake-per-request"];

pub(crate) fn report(diagnosis: &Diagnosis, expected: Expected) {
    let capture = diagnosis.capture();
    ledger(&capture.ledger_ms, "capture");
    let connections: Vec<Connection> = diagnosis.connections().collect();
    assert_eq!(connections.len(), diagnosis.len());
    let mut packets = 0;
    for (id, connection) in connections.iter().enumerate() {
        assert_eq!(connection.id, id as u64);
        packets += connection.packets.to_server + connection.packets.to_client;
        self::connection(connection);
    }
    // Copies of frames, and segments with numbers that no receiver would take, are left out.
    let all = expected.tcp_or_udp;
    assert!(
        packets <= all && (packets > 0 || all == 0),
        "a packet belongs to one connection: {packets} of {all}"
    );
    let mut costs = vec![Vec::new(); connections.len()];
    for finding in diagnosis.findings() {
        self::finding(&finding, &connections, &expected);
        if let Some(id) = finding.connection.filter(|_| !BESIDE.contains(&finding.rule)) {
            costs[id as usize].push((finding.rule, finding.cost_ms.0));
        }
    }
    for (connection, costs) in connections.iter().zip(costs) {
        let cost = costs.iter().map(|(_, cost)| cost).sum();
        assert!(is_within(cost, connection.duration_ms.0), "{costs:?} cost {cost} ms of {connection:?}");
    }
}

fn connection(connection: &Connection) {
    let total = connection.ledger_ms.total();
    let duration = connection.duration_ms.0;
    assert!(duration >= 0.0 && duration.is_finite(), "{connection:?}");
    ledger(&connection.ledger_ms, &connection.client);
    assert!(
        (total - duration).abs() <= MICROSECOND + duration * ROUNDING,
        "booked {total} ms of {duration} ms: {connection:?}"
    );
    assert!(connection.base_rtt_ms.is_none_or(|rtt| rtt.0 >= 0.0 && rtt.0.is_finite()), "{connection:?}");
    for cadence in &connection.cadence {
        assert!(cadence.per_second >= 0.0 && cadence.per_second.is_finite(), "{cadence:?}");
        assert!((0.0..=1.0).contains(&cadence.evenness), "{cadence:?}");
    }
    if let Some(exchanges) = &connection.exchanges {
        let (p50, p99, max) = (exchanges.p50_ms.0, exchanges.p99_ms.0, exchanges.max_ms.0);
        assert!(exchanges.count > 0 && 0.0 <= p50 && p50 <= p99 && p99 <= max, "{exchanges:?}");
        ledger(&exchanges.ledger_ms, "exchanges");
    }
}

/// Whether a part is no more than the whole, both in ms.
fn is_within(part: f64, whole: f64) -> bool {
    part <= whole + MICROSECOND + whole * ROUNDING
}

fn ledger(ledger: &LedgerMs, of: &str) {
    for line in Line::ALL {
        let booked = ledger.get(line);
        assert!(booked >= 0.0 && booked.is_finite(), "{of}: {booked} ms of {}", line.name());
    }
}

fn finding(finding: &Finding, connections: &[Connection], expected: &Expected) {
    assert!((0.0..=1.0).contains(&finding.confidence), "{finding:?}");
    assert!(finding.cost_ms.0 >= 0.0 && finding.cost_ms.0.is_finite(), "{finding:?}");
    assert!(finding.worst_ms.0 >= 0.0 && finding.worst_ms.0.is_finite(), "{finding:?}");
    // The worst of a capture's faults says how wrong its times are: nobody waited.
    let is_wait = finding.blame.side != Blamed::Capture;
    assert!(!is_wait || is_within(finding.worst_ms.0, finding.cost_ms.0), "{finding:?}");
    assert!(!finding.summary.is_empty(), "{finding:?}");
    assert!(finding.connection.is_none_or(|id| (id as usize) < connections.len()), "{finding:?}");
    for evidence in &finding.evidence {
        assert!((1..=expected.highest).contains(&evidence.packet), "{finding:?}");
        assert!(evidence.time_ms.0.is_finite(), "{finding:?}");
    }
}
