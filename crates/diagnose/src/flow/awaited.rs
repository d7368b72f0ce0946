//! Whether somebody waits for what a program says next: a program is slow only where the other end waits for it.
//!
//! Content tells it best. Where it cannot be read, the direction does: a client asks, a server answers. What comes long
//! after the last word may be a late answer or a notice; the whole connection tells which (`Late`).

use tcpwhy_wire::messages::{Kind, Message};

use super::connection::Connection;
use super::fact::{Awaited, End};
use super::half::NEVER;

/// Pauses up to this length are part of a dialogue under way. People lose the thread of what they do with a machine after
/// about 2 s (R. B. Miller 1968, "Response time in man-computer conversational transactions"); programs that work for
/// each other are faster. ns.
pub(crate) const DIALOGUE: i64 = 2_000_000_000;
/// Longer pauses between two messages of a server that nobody asked again are taken for notices, unless content tells that
/// they belong together: screens, games and chats say something every second or so. ns.
const WITHIN_ANSWER: i64 = 500_000_000;
/// HTTP/2's settings are acknowledged before more exchanges than these are over: two of TLS's handshake and the first.
const FIRST_EXCHANGES: u64 = 3;
/// A client that has sent no more segments than this, and had no answer ever, has asked one thing.
const ONE_QUESTION: u32 = 3;
/// So few late answers say nothing about a habit.
const FEW_LATE: u16 = 2;

/// Answers that came so late that they may be notices, and what speaks for either.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Late {
    /// How many came.
    count: u16,
    /// After so many of them the client went on within a dialogue's pause, or they were long: it had waited.
    confirmed: u16,
    /// The last one is not confirmed yet.
    is_open: bool,
}

impl Late {
    /// A late answer begins.
    pub(crate) fn begin(&mut self) {
        self.count = self.count.saturating_add(1);
        self.is_open = true;
    }

    /// The last late answer was waited for.
    pub(crate) fn confirm(&mut self) {
        self.confirmed += u16::from(self.is_open);
        self.is_open = false;
    }

    /// The client was silent for too long after it to have waited.
    pub(crate) fn leave_open(&mut self) {
        self.is_open = false;
    }

    /// Whether late answers were answers, on a connection of so many exchanges. Notices come among quick answers, and
    /// there are several of them.
    fn are_answers(self, exchanges: u64) -> bool {
        let is_habit = 2 * u64::from(self.count) >= exchanges;
        2 * self.confirmed >= self.count && (self.count <= FEW_LATE || is_habit)
    }
}

impl Connection {
    /// Whether the other end waited for what `end` says at `now`.
    pub(crate) fn awaited(&self, end: End, now: i64) -> Awaited {
        let is_server = self.client() == Some(1 - end);
        let exchanges = &self.exchanges;
        match () {
            () if matches!(self.said, Some(Kind::Greets | Kind::Continues)) => Awaited::Yes,
            () if self.said == Some(Kind::Answers) && !is_server => Awaited::Yes,
            () if is_server && exchanges.is_asked() && self.is_known_answer() => Awaited::Yes,
            () if is_server && exchanges.is_within_answer() && now - self.last_word() > WITHIN_ANSWER => {
                Awaited::No
            }
            () if now - self.last_word() <= DIALOGUE => Awaited::Yes,
            // What asks and answers nothing was not waited for, but an answer may be.
            () if self.said == Some(Kind::Neither) && !exchanges.is_asked() => Awaited::No,
            // Who connects to a server that speaks first waits for its greeting.
            () if is_server && exchanges.is_quiet() && self.established != NEVER => Awaited::Yes,
            () if is_server && exchanges.is_asked() => Awaited::Perhaps,
            () => Awaited::No,
        }
    }

    /// Whether content tells that what a server says now answers what its client asked.
    fn is_known_answer(&self) -> bool {
        self.said == Some(Kind::Answers) || self.exchanges.has_asked_plainly()
    }

    /// Takes note of what a segment of `from` says. Who asks is the client, where no handshake told.
    pub(crate) fn hear(&mut self, message: Option<&Message>, from: End) {
        self.said = message.map(|message| match message.kind {
            // Encrypted, HTTP/2's answer to the client's settings looks like any short answer.
            Kind::Either if self.may_be_settings(message, from) => Kind::Neither,
            kind => kind,
        });
        let asks = self.said == Some(Kind::Asks);
        if asks && self.syn.is_none() && self.established == NEVER && self.exchanges.number() == 0 {
            self.take_client(from);
        }
        if let Some(message) = message.filter(|_| self.client() == Some(from)) {
            self.exchanges.name(message);
        }
    }

    fn may_be_settings(&self, message: &Message, from: End) -> bool {
        let is_server = self.client() == Some(1 - from);
        is_server && message.may_be_http2_control() && self.exchanges.number() <= FIRST_EXCHANGES
    }

    /// Whether what `from` says now begins or ends an exchange, as far as content tells.
    pub(crate) fn takes_part(&self, from: End) -> bool {
        let is_client = self.client() == Some(from);
        match self.said {
            Some(Kind::Neither) => false,
            // A client's part in a handshake of the protocol asks for nothing.
            Some(Kind::Answers) => !is_client,
            _ => true,
        }
    }

    /// Whether somebody waited when `end` closes, resets, or the capture ends: only for an answer that never came.
    pub(crate) fn awaited_to_the_end(&self) -> Option<End> {
        let client = self.client()?;
        let has_answered = self.exchanges.number() > 0;
        let asked_once = self.halves[client].segments <= ONE_QUESTION && self.established != NEVER;
        (self.exchanges.is_asked() && (has_answered || asked_once)).then_some(1 - client)
    }

    /// When the last data passed, or the handshake was over, ns.
    fn last_word(&self) -> i64 {
        let said = self.halves[0].sent_at.max(self.halves[1].sent_at);
        said.max(self.established).max(self.first)
    }

    /// Whether what a server said long after it was spoken to were answers.
    pub(crate) fn answers_late(&self) -> bool {
        self.exchanges.late().are_answers(self.exchanges.number())
    }
}
