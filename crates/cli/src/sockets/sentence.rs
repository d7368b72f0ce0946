//! Suspicions in words, one plain sentence each.

use tcpwhy_diagnose::sockets::{Kind, Suspicion};
use tcpwhy_report::number::{count, duration};
use tcpwhy_wire::sockets::{State, TcpSocket};

use super::row::{Row, Unknown};

/// From this many ms on it is worth saying that nothing has moved.
const STILL_MS: u64 = 100;

/// A cork lets go when the timer for probes ends, which is the retransmission timeout, and 200 ms at least
/// (`tcp_probe0_base`, `TCP_RTO_MIN`).
const LEAST_CORK_US: u64 = 200_000;

/// What `suspicion` means for this socket.
pub(super) fn of(row: &Row, suspicion: &Suspicion) -> String {
    let socket = &row.socket;
    let bytes = plural(suspicion.amount, "byte", "bytes");
    match suspicion.kind {
        Kind::Nagle => {
            let flight = plural(socket.info.unacked.unwrap_or(0), "segment is", "segments are");
            format!(
                "Nagle's algorithm holds {bytes} back{}: both windows have room, but {flight} not acknowledged yet, \
                 and TCP_NODELAY is off.",
                still(suspicion, "since data last left")
            )
        }
        Kind::Cork => format!(
            "{} holds {bytes} back{}: both windows have room. It lets go by itself after {}.",
            cork(socket),
            still(suspicion, "since data last left"),
            duration(socket.info.rto_us.unwrap_or(0).max(LEAST_CORK_US) as f64 / 1e3)
        ),
        Kind::NagleOrCork => format!(
            "Nagle's algorithm or a cork holds {bytes} back{}: both windows have room. {} which of the two.",
            still(suspicion, "since data last left"),
            match row.options_unknown {
                Some(Unknown::NotTold) | None => "The text does not tell",
                _ => "Only the socket's options would tell",
            }
        ),
        Kind::PeerWindow => window(socket, &bytes),
        Kind::PeerWindowOrCork => format!(
            "{bytes} {} and nothing is in flight: the peer's window is closed, or a cork holds them.",
            if suspicion.amount == 1 { "waits" } else { "wait" }
        ),
        Kind::Retransmission => again(socket, suspicion),
        Kind::Unread => format!(
            "{bytes} {} {}{}.",
            if suspicion.amount == 1 { "waits" } else { "wait" },
            match row.program_unknown {
                Some(Unknown::Unaccepted) => "in a connection that the program has not accepted yet",
                _ => "for the program to read",
            },
            came(suspicion)
        ),
        Kind::Unaccepted => unaccepted(socket, suspicion),
    }
}

fn cork(socket: &TcpSocket) -> &'static str {
    match socket.options.cork {
        Some(true) => "TCP_CORK",
        Some(false) => "MSG_MORE",
        None => "A cork (TCP_CORK or MSG_MORE)",
    }
}

fn window(socket: &TcpSocket, bytes: &str) -> String {
    match socket.info.peer_window {
        Some(0) | None => format!("The peer's window is closed: {bytes} wait here until its program reads."),
        Some(window) => format!(
            "The peer's window of {} is full: {bytes} wait here until its program reads.",
            plural(window, "byte", "bytes")
        ),
    }
}

fn again(socket: &TcpSocket, suspicion: &Suspicion) -> String {
    let times = plural(suspicion.amount, "time", "times");
    let next = socket.timer.map_or(String::new(), |timer| {
        format!(" The next try is due in {}.", duration(timer.ends_in_ms as f64))
    });
    match socket.state {
        State::SynSent => format!("The SYN was sent again {times} and is not answered.{next}"),
        State::SynReceived => format!("The SYN-ACK was sent again {times} and is not answered.{next}"),
        _ if suspicion.amount > 0 => format!("Sent again {times} without an ACK.{next}"),
        _ => {
            let (lost, flight) = (socket.info.lost.unwrap_or(0), socket.info.unacked.unwrap_or(0));
            match lost {
                0 => "A loss is being repaired.".to_owned(),
                lost => format!(
                    "Of {} in flight {} taken to be lost.",
                    plural(flight, "segment", "segments"),
                    is_are(lost)
                ),
            }
        }
    }
}

fn unaccepted(socket: &TcpSocket, suspicion: &Suspicion) -> String {
    let waiting = plural(suspicion.amount, "connection waits", "connections wait");
    match socket.send_queue {
        0 => format!("{waiting} for the program to accept."),
        // `sk_acceptq_is_full` of include/net/sock.h: full is above the limit.
        limit if suspicion.amount > limit => {
            format!("{waiting} for the program to accept; more find no room, and try again after a second.")
        }
        limit => format!("{waiting} for the program to accept, of {} that have room.", count(limit + 1)),
    }
}

fn still(suspicion: &Suspicion, since: &str) -> String {
    match suspicion.still_ms.filter(|&ms| ms >= STILL_MS) {
        Some(ms) => format!(", {} {since}", duration(ms as f64)),
        None => String::new(),
    }
}

fn came(suspicion: &Suspicion) -> String {
    suspicion.still_ms.map_or(String::new(), |ms| format!("; the last came {} ago", duration(ms as f64)))
}

fn is_are(n: u64) -> String {
    if n == 1 { "1 is".to_owned() } else { format!("{} are", count(n)) }
}

/// `1 byte`, `10,010 bytes`.
pub(super) fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// How a verdict counts sockets of a kind.
pub(super) fn counted(kind: Kind, n: usize) -> String {
    let what = match kind {
        Kind::Nagle => "held by Nagle's algorithm",
        Kind::Cork => "held by a cork",
        Kind::NagleOrCork => "held by Nagle's algorithm or a cork",
        Kind::PeerWindow => "waiting for the peer's window",
        Kind::PeerWindowOrCork => "waiting for the peer's window or held by a cork",
        Kind::Retransmission => "sending again",
        Kind::Unread => "not read by the program",
        Kind::Unaccepted => "not accepting",
    };
    format!("{} {what}", count(n as u64))
}

/// The rule whose text tells more, and what to do; a program that does not take what came needs no explanation.
pub(super) fn rule(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Nagle | Kind::NagleOrCork => Some("nagle-delayed-ack"),
        Kind::Cork => Some("cork-timeout"),
        Kind::PeerWindow | Kind::PeerWindowOrCork => Some("zero-window"),
        Kind::Retransmission => Some("rto-stall"),
        Kind::Unread | Kind::Unaccepted => None,
    }
}
