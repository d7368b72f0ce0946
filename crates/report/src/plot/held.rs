//! ACKs that a receiver held, where the capture is near enough to it to see that.

use tcpwhy_diagnose::flow::series::{Kind, Mark, Series, TcpFlags};
use tcpwhy_diagnose::report::{Side, Vantage};

/// An ACK that comes so long after the last segment was held by a timer: the shortest, Linux 2.0's, is 20 ms, and no
/// stack takes a part of that to work on a segment. ns.
const HELD: i64 = 15_000_000;

/// An ACK that its receiver held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldAck {
    /// When the last segment before it passed, ns on the capture's clock.
    pub from: i64,
    /// When the ACK passed.
    pub until: i64,
    /// Which byte was expected next until then, relative.
    pub acked: i64,
}

/// The ACKs that the receiver of `sender`'s data held; none where the capture, made at `vantage`, is not near it: the
/// way there and back cannot be told from a hold then.
pub(crate) fn held_acks(series: &Series, sender: Side, vantage: Vantage) -> Vec<HeldAck> {
    let is_near = match sender {
        Side::Client => vantage == Vantage::Server,
        Side::Server => vantage == Vantage::Client,
    };
    let (mut arrived, mut acked, mut held) = (None, None, Vec::new());
    for mark in series.marks.iter().filter(|_| is_near) {
        if mark.from == sender {
            // A SYN or a FIN is ACKed as data is.
            if mark.kind != Kind::Bare || mark.flags.has(TcpFlags::SYN | TcpFlags::FIN) {
                arrived = Some(mark.time);
            }
        } else if let Some(ack) = mark.ack {
            let before = acked.unwrap_or(ack);
            if let Some(from) = arrived
                && ack > before
                && is_pure(mark)
                && mark.time - from >= HELD
            {
                held.push(HeldAck { from, until: mark.time, acked: before });
            }
            acked = Some(before.max(ack));
        }
    }
    held
}

/// An ACK with data may have waited for its program.
fn is_pure(mark: &Mark) -> bool {
    mark.len == 0 && !mark.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(ms: i64, from: Side, len: u32, ack: i64) -> Mark {
        let kind = if len > 0 { Kind::Data } else { Kind::Bare };
        let flags = TcpFlags(TcpFlags::ACK);
        Mark { number: 1, time: ms * 1_000_000, from, kind, flags, seq: 1, len, ack: Some(ack), window: None }
    }

    #[test]
    fn late_pure_acks_near_their_receiver_were_held() {
        let (client, server) = (Side::Client, Side::Server);
        let marks = vec![
            mark(0, client, 100, 1),
            mark(0, server, 0, 101),
            mark(100, client, 100, 1),
            mark(140, server, 0, 201),
            // The program answers after 50 ms: no ACK was held for its own sake.
            mark(200, client, 100, 1),
            mark(250, server, 10, 301),
            // Nothing new is ACKed.
            mark(300, server, 0, 301),
            // A FIN is ACKed at once.
            Mark { flags: TcpFlags(TcpFlags::ACK | TcpFlags::FIN), ..mark(400, client, 0, 11) },
            mark(400, server, 0, 302),
        ];
        let series = Series { marks, ..Series::default() };
        let held = [HeldAck { from: 100_000_000, until: 140_000_000, acked: 101 }];
        assert_eq!(held_acks(&series, client, Vantage::Server), held);
        assert_eq!(held_acks(&series, client, Vantage::Client), []);
    }
}
