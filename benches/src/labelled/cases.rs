//! The labelled cases: small programs whose wait, or lack of one, has a known cause.

use std::time::Duration;

use super::chat::Chat;
use super::stream::{Updates, Upload};

/// One case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Short name; the captures are named after it.
    pub name: &'static str,
    /// What the programs do.
    pub story: &'static str,
    /// The programs.
    pub program: Program,
    /// Where it is recorded.
    pub places: Places,
}

/// Where a case is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// Over loopback.
    Loopback,
    /// Over loopback, and over a veth pair at both ends.
    Both,
    /// Over a veth pair only: loopback's round trip is shorter than the programs' wake-ups.
    Veth,
}

/// The programs of a case.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    /// Requests and answers.
    Chat(Chat),
    /// One upload.
    Upload(Upload),
    /// Periodic updates.
    Updates(Updates),
}

/// A request in two writes, as programs that write header and body apart make it.
const IN_TWO: &[usize] = &[16, 48];

/// A server's work that takes as long as a delayed ACK (40 ms, expiring up to a tick of 4 ms late at HZ=250).
const LIKE_A_DELAYED_ACK: Duration = Duration::from_millis(42);

/// Just longer, so that the delayed ACK goes out before the answer.
const BEHIND_A_DELAYED_ACK: Duration = Duration::from_millis(48);

/// All cases.
pub const CASES: &[Case] = &[
    Case {
        name: "split-request",
        story: "the client writes each request in two pieces under Nagle's algorithm and waits for the answer",
        program: Program::Chat(Chat { request: IN_TWO, ..Chat::PLAIN }),
        places: Places::Both,
    },
    Case {
        name: "split-request-nodelay",
        story: "the client writes each request in two pieces with TCP_NODELAY",
        program: Program::Chat(Chat { request: IN_TWO, client_nodelay: true, ..Chat::PLAIN }),
        places: Places::Loopback,
    },
    Case {
        name: "single-request",
        story: "the client writes each request at once",
        program: Program::Chat(Chat::PLAIN),
        places: Places::Loopback,
    },
    Case {
        name: "thinking-server",
        story: "the server works 42 ms on each request, which the client writes at once",
        program: Program::Chat(Chat { server_think: LIKE_A_DELAYED_ACK, ..Chat::PLAIN }),
        places: Places::Both,
    },
    Case {
        // Only an interactive connection delays its ACKs: Linux enters that mode when answers follow requests
        // within 40 ms, and leaves it when the timer of a delayed ACK expires.
        name: "sometimes-thinking-server",
        story: "the server answers at once but for every fourth request, on which it works 48 ms; \
                its delayed ACK of that request goes out before the answer",
        program: Program::Chat(Chat {
            exchanges: 80,
            server_think: BEHIND_A_DELAYED_ACK,
            server_thinks_every: 4,
            ..Chat::PLAIN
        }),
        places: Places::Both,
    },
    Case {
        name: "split-response",
        story: "the server writes header and body of each answer apart under Nagle's algorithm",
        program: Program::Chat(Chat { response: &[120, 400], ..Chat::PLAIN }),
        places: Places::Loopback,
    },
    Case {
        name: "split-both",
        story: "client and server write each message in two pieces under Nagle's algorithm",
        program: Program::Chat(Chat { exchanges: 30, request: IN_TWO, response: &[120, 400], ..Chat::PLAIN }),
        places: Places::Loopback,
    },
    Case {
        name: "cork-kept",
        story: "the client sets TCP_CORK, writes each request at once and never takes the cork off",
        program: Program::Chat(Chat { exchanges: 15, client_cork: true, ..Chat::PLAIN }),
        places: Places::Loopback,
    },
    Case {
        name: "slow-reader",
        story: "the client uploads 600 KB; the server reads 64 KB and then does something else for 40 ms",
        program: Program::Upload(Upload {
            bytes: 600_000,
            read_at_once: 65_536,
            server_think: Duration::from_millis(40),
            receive_buffer: Some(65_536),
        }),
        places: Places::Both,
    },
    Case {
        name: "small-receive-buffer",
        story: "the client uploads 400 KB to a server that reads at once and has set SO_RCVBUF to 4 KB",
        program: Program::Upload(Upload {
            bytes: 400_000,
            read_at_once: 65_536,
            server_think: Duration::ZERO,
            receive_buffer: Some(4_096),
        }),
        places: Places::Veth,
    },
    Case {
        name: "plain-upload",
        story: "the client uploads 400 KB to a server that reads at once",
        program: Program::Upload(Upload {
            bytes: 400_000,
            read_at_once: 65_536,
            server_think: Duration::ZERO,
            receive_buffer: None,
        }),
        places: Places::Veth,
    },
    Case {
        name: "connection-per-request",
        story: "the client makes a new connection for every request",
        program: Program::Chat(Chat { connect_each: true, ..Chat::PLAIN }),
        places: Places::Both,
    },
    Case {
        name: "thinking-client",
        story: "the client pauses 30 ms before each request",
        program: Program::Chat(Chat { client_think: Duration::from_millis(30), ..Chat::PLAIN }),
        places: Places::Loopback,
    },
    Case {
        name: "steady-updates",
        story: "the server sends 12 bytes every 50 ms; the client only reads",
        program: Program::Updates(Updates { count: 60, bytes: 12, period: Duration::from_millis(50) }),
        places: Places::Loopback,
    },
    Case {
        name: "split-request-thinking-server",
        story: "the client splits its requests under Nagle's algorithm, and the server works 30 ms on each",
        program: Program::Chat(Chat {
            exchanges: 30,
            request: IN_TWO,
            server_think: Duration::from_millis(30),
            ..Chat::PLAIN
        }),
        places: Places::Loopback,
    },
    Case {
        name: "single-upload",
        story: "the client sends 10,010 bytes in one write on a kept connection and is answered 2 bytes",
        program: Program::Chat(Chat { request: &[10_010], response: &[2], ..Chat::PLAIN }),
        places: Places::Loopback,
    },
];
