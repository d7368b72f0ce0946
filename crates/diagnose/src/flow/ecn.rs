//! Explicit congestion notification: marks that the receiver echoed, and reductions that the sender told of.

use tcpwhy_wire::{Tcp, TcpFlags};

use super::connection::Connection;
use super::fact::End;

/// The marks of one direction's data (RFC 3168 section 6.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// Segments of the receiver that echo a mark (ECE). It repeats the echo until the sender has told that it has
    /// reduced its window, so there are more of them than marks.
    pub(crate) echoes: u32,
    /// Times the receiver began to echo.
    pub(crate) begun: u32,
    /// Data segments by which the sender told that it has reduced its window (CWR).
    pub(crate) reductions: u32,
    /// The last of the receiver's segments was an echo.
    is_echoing: bool,
    /// The first echo and the first CWR: which packet, and when; 0 where there was none.
    pub(crate) echo: (u64, i64),
    pub(crate) reduction: (u64, i64),
    /// Time for which the sender then waited for its congestion window, ns; how often, and how long at most.
    pub(crate) waited: i64,
    pub(crate) waits: u32,
    pub(crate) longest: i64,
}

impl Connection {
    /// Takes the ECN flags of packet `number`, a segment of `from` that is no SYN and has at least one of them.
    #[cold]
    pub(crate) fn note_ecn(&mut self, number: u64, tcp: &Tcp, from: End, now: i64) {
        if tcp.flags.has(TcpFlags::ECE) {
            let marks = &mut self.sending_mut(1 - from).marks;
            marks.echoes = marks.echoes.saturating_add(1);
            if marks.echo.0 == 0 {
                marks.echo = (number, now);
            }
            if !marks.is_echoing {
                marks.begun = marks.begun.saturating_add(1);
            }
            marks.is_echoing = true;
        }
        if tcp.flags.has(TcpFlags::CWR) && tcp.payload_len > 0 {
            let sending = self.sending_mut(from);
            let marks = &mut sending.marks;
            marks.reductions = marks.reductions.saturating_add(1);
            marks.is_echoing = false;
            if marks.reduction.0 == 0 {
                marks.reduction = (number, now);
            }
            sending.flights.reduced();
        }
    }
}
