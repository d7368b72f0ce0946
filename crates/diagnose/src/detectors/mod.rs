//! Findings from facts and ledger: one file a rule.

mod ack_chatter;
mod affected;
mod bufferbloat;
mod capture_gap;
mod clock_step;
mod cork_timeout;
mod delayed_ack;
mod duplicated_frames;
mod ecn_backoff;
mod fast_recovery;
mod handshake_per_request;
mod harmless_delayed_ack;
mod holds;
mod idle_restart;
mod late_hole_ack;
mod loss;
mod merged_updates;
mod nagle_delayed_ack;
mod nagle_hold;
mod offloaded_segments;
mod one_hole_per_rtt;
mod one_sided_capture;
mod recipe;
mod recipes;
mod relay_merge;
mod rto_stall;
mod rule;
pub(crate) mod shares;
mod silly_window;
mod slow_client;
mod slow_server;
mod slow_start;
mod small_receive_window;
mod small_send_buffer;
mod split_write;
mod spurious_retransmit;
mod subject;
mod syn_retry;
mod tail_loss;
#[cfg(test)]
pub(crate) mod testing;
mod uneven_cadence;
mod weight;
mod windows;
mod zero_window;

pub use recipe::{Language, Recipe};
pub use rule::{Check, Rule};
pub use shares::tells;
pub use subject::{Subject, counted, grouped};

use crate::diagnosis::Diagnosis;
use crate::hops::Passage;
use crate::report::Finding;

/// Every rule, by name.
pub static RULES: &[&Rule] = &[
    &ack_chatter::ACK_CHATTER,
    &bufferbloat::BUFFERBLOAT,
    &capture_gap::CAPTURE_GAP,
    &clock_step::CLOCK_STEP,
    &cork_timeout::CORK_TIMEOUT,
    &delayed_ack::DELAYED_ACK,
    &duplicated_frames::DUPLICATED_FRAMES,
    &ecn_backoff::ECN_BACKOFF,
    &fast_recovery::FAST_RECOVERY,
    &handshake_per_request::HANDSHAKE_PER_REQUEST,
    &harmless_delayed_ack::HARMLESS_DELAYED_ACK,
    &idle_restart::IDLE_RESTART,
    &late_hole_ack::LATE_HOLE_ACK,
    &merged_updates::MERGED_UPDATES,
    &nagle_delayed_ack::NAGLE_DELAYED_ACK,
    &nagle_hold::NAGLE_HOLD,
    &offloaded_segments::OFFLOADED_SEGMENTS,
    &one_hole_per_rtt::ONE_HOLE_PER_RTT,
    &one_sided_capture::ONE_SIDED_CAPTURE,
    &relay_merge::RELAY_MERGE,
    &rto_stall::RTO_STALL,
    &silly_window::SILLY_WINDOW,
    &slow_client::SLOW_CLIENT,
    &slow_server::SLOW_SERVER,
    &slow_start::SLOW_START,
    &small_receive_window::SMALL_RECEIVE_WINDOW,
    &small_send_buffer::SMALL_SEND_BUFFER,
    &split_write::SPLIT_WRITE,
    &spurious_retransmit::SPURIOUS_RETRANSMIT,
    &syn_retry::SYN_RETRY,
    &tail_loss::TAIL_LOSS,
    &uneven_cadence::UNEVEN_CADENCE,
    &zero_window::ZERO_WINDOW,
];

/// What the rules find on one connection: each wait once.
pub(crate) fn of(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = each(subject);
    shares::share_out(subject, &mut findings);
    findings
}

/// What each rule finds on one connection, by itself.
pub(crate) fn each(subject: &Subject<'_>) -> Vec<Finding> {
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

/// What the rules find in one direction through a proxy; its hops are connections of these captures.
pub(crate) fn of_passage(passage: &Passage<'_>, captures: [usize; 2], findings: &mut Vec<Finding>) {
    for rule in RULES {
        if let Check::Passage(check) = rule.check {
            check(passage, captures, findings);
        }
    }
}
