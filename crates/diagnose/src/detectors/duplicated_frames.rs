//! Frames that the capture has twice.

use super::affected::Affected;
use super::rule::{Check, rule};
use super::subject::{counted, percent};
use crate::diagnosis::Diagnosis;
use crate::flow::Connection;
use crate::report::{Blame, Blamed, Evidence, Finding, Fix, Ms, Severity};

rule! {
    /// The capture has the same frames more than once; copies are left out, and nothing was sent twice.
    ///
    /// ## What it means
    /// The capture was made on several interfaces at once, on both sides of a router or firewall, or at a mirror
    /// port that copies a frame when it comes in and when it goes out. Tools that take copies for retransmissions
    /// and duplicate ACKs then speak of a lossy network. tcpwhy counts each packet once, at its first place, so
    /// waits and findings hold; times between two places mix, by what the way from one to the other takes.
    ///
    /// ## How it is detected
    /// A packet with the identification, sequence and acknowledgment number, flags, window, length, timestamps and
    /// SACK of one before it, at most 20 ms later: hosts number what they send again anew. Where the
    /// identification is zero, absent (IPv6) or the same in all packets, only what carries data, SYN or FIN
    /// counts, at most 1 ms later and before the other side has said anything; equal ACKs without data only where
    /// most else of their direction is there twice. A packet with the identification of the one before and numbers
    /// far beyond any window is the same on the other side of a device that rewrites them. The same packets with other addresses are a connection seen
    /// before and behind a translator (NAT): nothing is told of the second of the two but this.
    ///
    /// ## What to do
    /// Nothing for this report. For the next capture: one interface instead of `any`, one side of the router, or
    /// a mirror port that copies one direction of each port; `editcap -D 10 IN OUT` takes equal frames out of
    /// a file (not those that a router has changed).
    ///
    /// ## References
    /// RFC 791 section 3.2 and RFC 6864 section 4 (identification); editcap(1), `-D`; Wireshark wiki, "Duplicate packets".
    DUPLICATED_FRAMES = "duplicated-frames", Severity::Note, Check::Capture(check)
}

fn check(diagnosis: &Diagnosis, findings: &mut Vec<Finding>) {
    if let Some(affected) = Affected::of(diagnosis, copied) {
        findings.push(affected.finding(
            &DUPLICATED_FRAMES,
            summary(&affected),
            evidence(diagnosis, &affected),
            fix(),
        ));
    }
    let second: Vec<(u64, u64)> = diagnosis.twins().collect();
    if let Some(&(connection, _)) = second.first() {
        findings.push(twins(connection, &second));
    }
}

fn summary(affected: &Affected<'_>) -> String {
    let of_worst = copied(affected.worst);
    let passed: u64 = affected.worst.halves.iter().map(|half| u64::from(half.packets)).sum();
    let share = percent(signed(of_worst), signed(of_worst + passed));
    let is = if affected.total == 1 { "is a copy" } else { "are copies" };
    format!(
        "{} {is} of others in the capture, on {} ({share} of its frames): recorded at two places, not sent twice. They \
         are left out.",
        counted(affected.total, "frame"),
        affected.place(),
    )
}

fn evidence(diagnosis: &Diagnosis, affected: &Affected<'_>) -> Vec<Evidence> {
    let (packet, time) = diagnosis.first_copy();
    let first = (packet != 0).then(|| affected.packet(packet, time, "the first that is a copy of another"));
    first.into_iter().collect()
}

/// The note on connections that are copies of others with other addresses.
fn twins(connection: u64, second: &[(u64, u64)]) -> Finding {
    let count = second.len() as u64;
    let verb = if count == 1 { "is" } else { "are" };
    Finding {
        rule: DUPLICATED_FRAMES.name,
        severity: DUPLICATED_FRAMES.severity,
        connection: (count == 1).then_some(connection),
        blame: Blame { side: Blamed::Capture, address: None },
        count,
        cost_ms: Ms(0.0),
        worst_ms: Ms(0.0),
        confidence: CONFIDENCE,
        summary: format!(
            "{} {verb} the same packets as another one with other addresses: recorded before and behind a translator \
             (NAT). What is found is told on the first of the two.",
            counted(count, "connection"),
        ),
        evidence: Vec::new(),
        fixes: vec![fix()],
    }
}

/// Identifications, sequence numbers and lengths all agree, packet for packet.
const CONFIDENCE: f64 = 0.95;

fn fix() -> Fix {
    Fix {
        title: "Capture at one place".to_owned(),
        how: "One interface instead of `any`, one side of the router or firewall, one direction of each mirrored port. \
              `editcap -D 10 IN OUT` takes equal frames out of a file."
            .to_owned(),
    }
}

fn signed(frames: u64) -> i64 {
    i64::try_from(frames).unwrap_or(i64::MAX)
}

/// Copies among a connection's frames.
fn copied(connection: &Connection) -> u64 {
    connection.halves.iter().map(|half| u64::from(half.copied)).sum()
}
