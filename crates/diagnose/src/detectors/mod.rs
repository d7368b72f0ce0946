//! Findings from facts and ledger: one file a rule.

mod ack_chatter;
mod affected;
mod capture_gap;
mod clock_step;
mod fast_recovery;
mod holds;
mod loss;
mod nagle_delayed_ack;
mod offloaded_segments;
mod one_sided_capture;
mod rto_stall;
mod rule;
mod small_receive_window;
mod subject;
mod uneven_cadence;
mod windows;
mod zero_window;
#[cfg(test)]
mod testing;

pub use rule::Rule;
pub use subject::Subject;

use rule::Check;

use crate::diagnosis::Diagnosis;
use crate::report::Finding;

/// Every rule, by name.
pub static RULES: &[&Rule] = &[
    &ack_chatter::ACK_CHATTER,
    &capture_gap::CAPTURE_GAP,
    &clock_step::CLOCK_STEP,
    &fast_recovery::FAST_RECOVERY,
    &nagle_delayed_ack::NAGLE_DELAYED_ACK,
    &offloaded_segments::OFFLOADED_SEGMENTS,
    &one_sided_capture::ONE_SIDED_CAPTURE,
    &rto_stall::RTO_STALL,
    &small_receive_window::SMALL_RECEIVE_WINDOW,
    &uneven_cadence::UNEVEN_CADENCE,
    &zero_window::ZERO_WINDOW,
];

/// What the rules find on one connection.
pub(crate) fn of(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        if let Check::Connection(check) = rule.check {
            check(subject, &mut findings);
        }
    }
    findings
}

/// What the rules find in the capture as a whole.
pub(crate) fn of_capture(diagnosis: &Diagnosis) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        if let Check::Capture(check) = rule.check {
            check(diagnosis, &mut findings);
        }
    }
    findings
}
