//! What must and what must not be found in each labelled case. Derived from what the programs do, see
//! `benches/src/labelled/cases.rs`; never from what an analysis printed.

use crate::cost::Cost;

/// A finding that must be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Must {
    /// One of these rules.
    pub(crate) rule: &'static [&'static str],
    /// The side it blames.
    pub(crate) side: &'static str,
    /// What it must cost, to within [`crate::verdict::COST_TOLERANCE`].
    pub(crate) cost: Option<Cost>,
}

/// Time that ledger lines must carry between them, to within [`crate::verdict::COST_TOLERANCE`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Booked {
    /// The lines.
    pub(crate) lines: &'static [&'static str],
    /// What they add up to.
    pub(crate) costs: &'static [Cost],
}

/// What is expected of one case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expectation {
    /// The case.
    pub(crate) case: &'static str,
    /// Where its time went, as far as the log knows.
    pub(crate) booked: &'static [Booked],
    /// The line that most of its time is on.
    pub(crate) mostly: Option<&'static str>,
    /// All of these.
    pub(crate) must: &'static [Must],
    /// None of these rules.
    pub(crate) must_not: &'static [&'static str],
    /// Nothing of severity `problem`, and next to no time lost to TCP.
    pub(crate) no_problem: bool,
    /// Whether the packets show how long the program waited: not where its data left the host late.
    pub(crate) latency_shows: bool,
}

/// Either name for a wait that a split write caused.
const SPLIT: &[&str] = &["nagle-delayed-ack", "split-write"];

/// Rules that accuse Nagle's algorithm, or the delayed ACK that it waits for.
const NAGLE: &[&str] =
    &["nagle-delayed-ack", "nagle-hold", "merged-updates", "split-write", "cork-timeout", "delayed-ack"];

/// Either name for a window that a reader keeps shut: it need not fall to zero for that.
const CLOSED: &[&str] = &["zero-window", "small-receive-window"];

/// Rules about loss and windows, of which there is none in exchanges of small messages over a perfect path.
const LOSS_AND_WINDOWS: &[&str] = &[
    "rto-stall",
    "fast-recovery",
    "zero-window",
    "small-receive-window",
    "capture-gap",
    "one-sided-capture",
];

/// What must not be found where writes were split: not the programs, no timer, not a lone delayed ACK.
const NOT_SPLIT: &[&str] = &[
    "slow-server",
    "slow-client",
    "cork-timeout",
    "merged-updates",
    "handshake-per-request",
    "uneven-cadence",
    "rto-stall",
    "fast-recovery",
    "zero-window",
    "small-receive-window",
    "capture-gap",
    "one-sided-capture",
    "clock-step",
];

const PLAIN: Expectation = Expectation {
    case: "",
    booked: &[],
    mostly: None,
    must: &[],
    must_not: &[],
    no_problem: false,
    latency_shows: true,
};

/// The lines that a wait for the ACK of a split message's head may stand on.
const HELD: &[&str] = &["nagle", "delayed-ack"];
const REQUEST_HELD: Booked = Booked { lines: HELD, costs: &[Cost::RequestHeld] };
const RESPONSE_HELD: Booked = Booked { lines: HELD, costs: &[Cost::ResponseHeld] };
const BOTH_HELD: Booked = Booked { lines: HELD, costs: &[Cost::RequestHeld, Cost::ResponseHeld] };
const SERVER_THOUGHT: Booked = Booked { lines: &["server-app"], costs: &[Cost::ServerThought] };
const CLIENT_THOUGHT: Booked = Booked { lines: &["client-app"], costs: &[Cost::ClientThought] };

/// All of them.
pub(crate) const EXPECTATIONS: &[Expectation] = &[
    Expectation {
        case: "split-request",
        booked: &[REQUEST_HELD],
        must: &[Must { rule: SPLIT, side: "client", cost: Some(Cost::RequestHeld) }],
        must_not: NOT_SPLIT,
        ..PLAIN
    },
    Expectation { case: "split-request-nodelay", must_not: NAGLE, no_problem: true, ..PLAIN },
    Expectation { case: "single-request", must_not: NAGLE, no_problem: true, ..PLAIN },
    Expectation {
        case: "thinking-server",
        booked: &[SERVER_THOUGHT],
        must: &[Must { rule: &["slow-server"], side: "server", cost: Some(Cost::ServerThought) }],
        must_not: NAGLE,
        ..PLAIN
    },
    Expectation {
        case: "sometimes-thinking-server",
        booked: &[SERVER_THOUGHT],
        must: &[Must { rule: &["slow-server"], side: "server", cost: Some(Cost::ServerThought) }],
        must_not: NAGLE,
        ..PLAIN
    },
    Expectation {
        case: "split-response",
        booked: &[RESPONSE_HELD],
        must: &[Must { rule: SPLIT, side: "server", cost: Some(Cost::ResponseHeld) }],
        must_not: NOT_SPLIT,
        ..PLAIN
    },
    Expectation {
        case: "split-both",
        booked: &[BOTH_HELD],
        must: &[
            Must { rule: SPLIT, side: "client", cost: Some(Cost::RequestHeld) },
            Must { rule: SPLIT, side: "server", cost: Some(Cost::ResponseHeld) },
        ],
        must_not: NOT_SPLIT,
        ..PLAIN
    },
    Expectation {
        case: "cork-kept",
        booked: &[REQUEST_HELD],
        must: &[Must { rule: &["cork-timeout"], side: "client", cost: Some(Cost::RequestHeld) }],
        must_not: &["nagle-delayed-ack", "nagle-hold", "split-write", "delayed-ack", "slow-server"],
        latency_shows: false,
        ..PLAIN
    },
    Expectation {
        case: "slow-reader",
        // Between two of the server's reads the client has sent to the edge of the window, to within a segment:
        // for 285 ms of 405 ms over veth, where no window of zero is ever seen. Lone retransmissions in these
        // waits are probes of the tail (RFC 8985 section 7); nothing was lost.
        mostly: Some("rwnd"),
        must: &[Must { rule: CLOSED, side: "server", cost: None }],
        must_not: &["nagle-delayed-ack", "nagle-hold", "split-write", "fast-recovery", "slow-client"],
        ..PLAIN
    },
    Expectation {
        case: "small-receive-buffer",
        // The same upload without the small buffer (`plain-upload`) took 1.3 ms instead of 5.0 ms.
        mostly: Some("rwnd"),
        must: &[Must { rule: &["small-receive-window"], side: "server", cost: None }],
        must_not: &["nagle-delayed-ack", "nagle-hold", "split-write", "fast-recovery", "rto-stall"],
        ..PLAIN
    },
    Expectation {
        case: "plain-upload",
        must_not: &["zero-window", "small-receive-window", "nagle-delayed-ack", "nagle-hold", "split-write"],
        ..PLAIN
    },
    Expectation {
        case: "connection-per-request",
        must: &[Must { rule: &["handshake-per-request"], side: "client", cost: None }],
        must_not: NAGLE,
        ..PLAIN
    },
    Expectation {
        case: "thinking-client",
        booked: &[CLIENT_THOUGHT],
        must: &[Must { rule: &["slow-client"], side: "client", cost: Some(Cost::ClientThought) }],
        must_not: NAGLE,
        ..PLAIN
    },
    Expectation {
        case: "steady-updates",
        must_not: &["nagle-delayed-ack", "nagle-hold", "merged-updates", "split-write", "uneven-cadence"],
        no_problem: true,
        ..PLAIN
    },
    Expectation {
        case: "split-request-thinking-server",
        booked: &[REQUEST_HELD, SERVER_THOUGHT],
        must: &[
            Must { rule: SPLIT, side: "client", cost: Some(Cost::RequestHeld) },
            Must { rule: &["slow-server"], side: "server", cost: Some(Cost::ServerThought) },
        ],
        must_not: LOSS_AND_WINDOWS,
        ..PLAIN
    },
    Expectation { case: "single-upload", must_not: NAGLE, no_problem: true, ..PLAIN },
];
