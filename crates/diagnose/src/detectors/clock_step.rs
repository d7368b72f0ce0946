//! A capture whose clock ran backwards.

use super::rule::{Check, rule};
use super::subject::{human, times};
use crate::diagnosis::{Diagnosis, ms};
use crate::report::{Blame, Blamed, Evidence, Finding, Fix, Ms, Severity};

rule! {
    /// The capture's clock ran backwards, so waits around that moment are too short or too long.
    ///
    /// ## What it means
    /// Packets are stamped by the clock of the capturing machine. When that clock is set (NTP after a start, a
    /// virtual machine that was moved, captures merged from machines whose clocks differ), a wait that spans the
    /// moment is wrong by that much. Time that ran backwards is counted as none.
    ///
    /// ## How it is detected
    /// A packet is stamped more than 1 ms earlier than the one before it in the file. The processors of one
    /// machine differ by microseconds, which is no step.
    ///
    /// ## What to do
    /// Judge the time before and after the step apart, or capture again with a settled clock (`chronyc tracking`).
    /// Do not merge captures of several machines for timing; captures written by several threads can be put in
    /// order with `reordercap`.
    ///
    /// ## References
    /// pcap(3PCAP), time stamps; reordercap(1); adjtimex(2) (slewing instead of stepping).
    CLOCK_STEP = "clock-step", Severity::Note, Check::Capture(check)
}

fn check(diagnosis: &Diagnosis, findings: &mut Vec<Finding>) {
    let steps = diagnosis.steps();
    if steps.count == 0 {
        return;
    }
    let at = steps.at.saturating_sub(diagnosis.origin()).max(0);
    findings.push(Finding {
        rule: CLOCK_STEP.name,
        severity: CLOCK_STEP.severity,
        connection: None,
        blame: Blame { side: Blamed::Capture, address: None },
        count: steps.count,
        cost_ms: Ms(0.0),
        worst_ms: ms(steps.worst),
        confidence: 1.0,
        summary: format!(
            "The capture's clock ran backwards {}, by up to {} (packet {}): waits around there are wrong by that much.",
            times(steps.count),
            human(steps.worst),
            steps.packet,
        ),
        evidence: vec![Evidence {
            packet: steps.packet,
            time_ms: ms(at),
            note: format!("stamped {} earlier than the packet before it", human(steps.worst)),
            capture: None,
        }],
        fixes: vec![Fix {
            title: "Judge the time before and after apart, or capture again".to_owned(),
            how: "Let the clock settle first (`chronyc tracking`); do not merge captures of several machines; put a \
                  capture written out of order in order with `reordercap`."
                .to_owned(),
        }],
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::findings;
    use crate::report::Blamed;

    fn three(second: &str) -> String {
        format!(
            "10:00:00.500000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], seq 1:101, ack 1, win 500, length 100\n\
             10:00:00.{second} IP 10.0.0.2.80 > 10.0.0.1.40000: Flags [P.], seq 1:301, ack 101, win 500, length 300\n\
             10:00:00.600000 IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 301, win 500, length 0\n"
        )
    }

    #[test]
    fn a_packet_stamped_before_its_predecessor() {
        let found = findings("clock-step", &three("380000"));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].blame.side, found[0].count), (Blamed::Capture, 1));
        assert!((found[0].worst_ms.0 - 120.0).abs() < 0.001, "{:?}", found[0].worst_ms);
        assert_eq!((found[0].evidence[0].packet, found[0].evidence[0].time_ms.0), (2, 0.0));
    }

    #[test]
    fn the_clocks_of_two_processors_are_no_step() {
        assert!(findings("clock-step", &three("499500")).is_empty());
    }
}
