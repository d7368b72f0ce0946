//! Nagle's algorithm against the receiver's delayed ACK.

use super::holds::{Holds, fixes};
use super::rule::{Check, rule};
use super::subject::{Subject, human, percent};
use crate::diagnosis::ms;
use crate::report::{Finding, Severity};

rule! {
    /// A small segment waits for an ACK that the receiver delays.
    ///
    /// ## What it means
    /// The sender has a small piece of data ready and does not send it: Nagle's algorithm lets only one small
    /// segment be on its way, and the next has to wait until the first is ACKed. The receiver, in turn, delays
    /// that ACK in the hope of sending it together with data: 40 ms on Linux, up to 200 ms elsewhere. Both
    /// wait for each other until the receiver's timer runs out. The network has nothing to do with it.
    ///
    /// ## How it is detected
    /// A segment smaller than the MSS leaves its sender the moment a pure ACK arrives that leaves nothing in
    /// flight, the receiver's program has not spoken in between, and the ACK came at least 20 ms later (and
    /// half a round trip, on long paths) than the path's base round trip explains. A slow program on the other
    /// side shows the same late ACK, but then the *other* side speaks next. A sender that was seen to send a
    /// small segment while another was in flight has switched the algorithm off and is not suspected.
    ///
    /// ## What to do
    /// Best, hand the whole message to TCP at once: one `write`, or one `writev`/`sendmsg` with several
    /// buffers, or `MSG_MORE` on all pieces but the last. Where messages really are written one after the
    /// other (updates of a game, keystrokes), set `TCP_NODELAY` on the socket that *sends*; on the other side
    /// it changes nothing. Where only the receiver can be changed, `TCP_QUICKACK` after each `recv` on Linux.
    ///
    /// ## References
    /// RFC 896; RFC 1122 sections 4.2.3.2 (delayed ACK) and 4.2.3.4 (Nagle); RFC 9293 section 3.7.4.
    NAGLE_DELAYED_ACK = "nagle-delayed-ack", Severity::Problem, Check::Connection(check)
}

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for end in 0..2 {
        let Some(holds) = Holds::of(subject, end) else { continue };
        if holds.delayed == 0 {
            continue;
        }
        let waited = human(holds.typical);
        let evidence = subject.evidence(holds.tally, |_| {
            [
                "a small segment leaves; the next has to wait for its ACK".to_owned(),
                "the pure ACK that was waited for".to_owned(),
                "the held segment leaves at once".to_owned(),
            ]
        });
        findings.push(Finding {
            rule: NAGLE_DELAYED_ACK.name,
            severity: NAGLE_DELAYED_ACK.severity,
            connection: Some(subject.id),
            blame: subject.blame(end),
            count: holds.delayed,
            cost_ms: ms(holds.delayed_cost),
            worst_ms: ms(holds.tally.worst()[0].length),
            confidence: holds.confidence(),
            summary: format!(
                "Nagle's algorithm on {} held a small segment {} until {} sent its delayed ACK, typically \
                 {waited} later: {} in all, {} of the connection's life.",
                subject.who(end),
                super::subject::times(holds.delayed),
                subject.who(1 - end),
                human(holds.delayed_cost),
                percent(holds.delayed_cost, subject.duration()),
            ),
            evidence,
            fixes: fixes(subject, end, &holds),
        });
    }
}
