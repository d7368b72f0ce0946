//! Requests and their answers: how long each exchange took.

use tcpwhy_wire::messages::{Kind, Message, Name};
use tcpwhy_wire::prefetch;

use super::awaited::{DIALOGUE, Late};
use super::quantiles::Quantiles;
use super::rhythm::MESSAGE_GAP;

/// An answer that is resumed more often than this is a stream of messages; an answer flushed in parts, or a
/// bulk one that TCP stops now and then, is resumed a few times. Per exchange.
const RESUMED_MOST: u64 = 8;
/// A server that works between the parts of its answers flushes each this often at most; from then on the "answer"
/// may as well be a stream that a word from the client interrupts now and then. Per exchange.
const FLUSHES_MOST: u64 = 3;
/// Fewer exchanges show no habit of flushing, and no beat.
const FEWEST: u64 = 5;

/// Where request and answer stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchanges {
    /// Latency from a request's first segment to its answer's last; nothing where nobody answers.
    pub(crate) latency: Option<Box<Quantiles>>,
    /// What the server's messages are apart; nothing where it spoke once.
    pace: Option<Box<Pace>>,
    /// How often an answer went on after a pause that TCP alone did not make.
    pub(crate) resumed: u32,
    /// When the last answer ended; 0 before there was one.
    pub(crate) answered: i64,
    asked: i64,
    state: State,
}

/// The names of requests.
#[derive(Clone, Copy, Debug)]
struct Named {
    /// What the client said last, and what began the present request.
    said: Message,
    asked: Option<Message>,
    /// The one's that took longest, and how long it took, ns.
    slowest: Name,
    latency: i64,
}

/// Where the present exchange stands, and how many there were: for who keeps each of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) number: u64,
    /// When the present request began, and when its answer ended so far.
    pub(crate) asked: i64,
    pub(crate) answered: i64,
    state: State,
}

impl Exchanges {
    /// Bytes on the heap.
    pub(crate) fn heap(&self) -> usize {
        let latency = self.latency.as_ref().map_or(0, |latency| size_of::<Quantiles>() + latency.heap());
        let named = |pace: &Pace| pace.named.as_ref().map_or(0, |_| size_of::<Named>());
        latency + self.pace.as_ref().map_or(0, |pace| size_of::<Pace>() + named(pace))
    }
}

impl Standing {
    /// Whether the server is answering.
    pub(crate) fn is_answering(self) -> bool {
        self.state == State::Answering
    }

    /// Whether a request began since it stood as `before`.
    pub(crate) fn is_new_request(self, before: Self) -> bool {
        self.state == State::Asked && (before.state != State::Asked || self.number > before.number)
    }
}

/// Why a side was silent before it spoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// Its program had nothing to say.
    Free,
    /// TCP had been holding back what may be a message of its own.
    Held,
    /// TCP had stopped it behind a full segment, in the middle of more: a full window, say.
    Stopped,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The client has not spoken yet.
    #[default]
    Quiet,
    /// The client has asked.
    Asked,
    /// The server is answering.
    Answering,
}

impl Exchanges {
    /// A side spoke.
    pub(crate) fn spoke(&mut self, is_client: bool, now: i64, spoken: Spoken) {
        match (self.state, is_client) {
            (State::Quiet, true) => self.ask(now),
            (State::Asked, false) => {
                if self.number() > 0 {
                    self.keep_pace(now, Some(now - self.asked));
                }
                (self.state, self.answered) = (State::Answering, now);
            }
            (State::Answering, false) => {
                // Segments closer together are one message, however the path or a window spread them.
                let is_message = spoken != Spoken::Stopped && now - self.answered >= MESSAGE_GAP;
                self.resumed = self.resumed.saturating_add(u32::from(is_message));
                let pause = if spoken == Spoken::Free { now - self.answered } else { 0 };
                self.keep_pace(now, None).pauses += pause;
                self.answered = now;
            }
            (State::Answering, true) => {
                self.count();
                self.ask(now);
            }
            (State::Quiet, false) | (State::Asked, true) => {}
        }
    }

    /// The client says this.
    pub(crate) fn name(&mut self, message: &Message) {
        let pace = self.pace.get_or_insert_default();
        match &mut pace.named {
            Some(named) => named.said = *message,
            None => {
                let slowest = Name::default();
                pace.named = Some(Box::new(Named { said: *message, asked: None, slowest, latency: -1 }));
            }
        }
    }

    fn named(&self) -> Option<&Named> {
        self.pace.as_deref()?.named.as_deref()
    }

    /// What the request is called that took longest, where its protocol is known.
    pub(crate) fn slowest(&self) -> Option<Name> {
        self.named().filter(|named| named.latency >= 0).map(|named| named.slowest)
    }

    /// Whether content tells that the client wants an answer.
    pub(crate) fn has_asked_plainly(&self) -> bool {
        self.named().is_some_and(|named| named.asked.is_some_and(|asked| asked.kind == Kind::Asks))
    }

    /// The client has not spoken yet.
    pub(crate) fn is_quiet(&self) -> bool {
        self.state == State::Quiet
    }

    /// The server has begun to answer, and the client has said nothing since.
    pub(crate) fn is_within_answer(&self) -> bool {
        self.state == State::Answering
    }

    /// The client has asked, and the server has not answered.
    pub(crate) fn is_asked(&self) -> bool {
        self.state == State::Asked
    }

    /// Answers that may be notices.
    pub(crate) fn late(&self) -> Late {
        self.pace.as_deref().map_or(Late::default(), |pace| pace.late)
    }

    /// What the server says now came so late that it may be a notice.
    pub(crate) fn begin_late(&mut self) {
        self.pace.get_or_insert_default().late.begin();
    }

    /// The client goes on at `now`, by asking or by closing: it waited for the last answer if it does so soon.
    pub(crate) fn note_reaction(&mut self, now: i64) {
        let is_soon = now - self.answered <= DIALOGUE;
        if let Some(pace) = &mut self.pace {
            if is_soon { pace.late.confirm() } else { pace.late.leave_open() }
        }
    }

    /// A request begins.
    fn ask(&mut self, now: i64) {
        (self.state, self.asked) = (State::Asked, now);
        if let Some(named) = self.pace.as_mut().and_then(|pace| pace.named.as_mut()) {
            named.asked = Some(named.said);
        }
    }

    /// The server spoke, `delay` ns after it was asked if that began an answer.
    fn keep_pace(&mut self, now: i64, delay: Option<i64>) -> &mut Pace {
        // The first delay that counts has a gap before it, too, which begins where the first answer ended.
        let answered = self.answered;
        let pace = self.pace.get_or_insert_default();
        if pace.spoke == 0 {
            pace.spoke = answered;
        }
        if let Some(delay) = delay {
            pace.delayed(delay);
        }
        pace.spoke(now);
        pace
    }

    /// Asks the processor for what an exchange counts on.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Some(latency) = self.latency.as_deref() {
            prefetch::lines_of(latency);
        }
        if let Some(pace) = self.pace.as_deref() {
            prefetch::lines_of(pace);
        }
    }

    /// More of the same message.
    #[inline]
    pub(crate) fn continued(&mut self, now: i64) {
        if self.state == State::Answering {
            self.answered = now;
            if let Some(pace) = &mut self.pace {
                // A notice is short.
                pace.late.confirm();
            }
        }
    }

    /// The request will not be answered any more.
    pub(crate) fn give_up(&mut self) {
        self.state = State::Quiet;
    }

    /// Counts an exchange that the capture's end closes.
    pub(crate) fn finish(&mut self) {
        if self.state == State::Answering {
            self.count();
            self.state = State::Quiet;
        }
    }

    fn count(&mut self) {
        let latency = self.answered - self.asked;
        self.latency.get_or_insert_default().add(latency);
        if let Some(named) = self.pace.as_mut().and_then(|pace| pace.named.as_mut())
            && let Some(asked) = named.asked
            && latency > named.latency
        {
            (named.slowest, named.latency) = (asked.name, latency);
        }
    }

    /// Where the present one stands.
    pub(crate) fn standing(&self) -> Standing {
        let Self { asked, answered, state, .. } = *self;
        Standing { number: self.number(), asked, answered, state }
    }

    /// Sum of the latencies, ns.
    pub(crate) fn total(&self) -> i64 {
        self.latency.as_ref().map_or(0, |latency| latency.sum())
    }

    /// How many exchanges there were.
    pub(crate) fn number(&self) -> u64 {
        self.latency.as_ref().map_or(0, |latency| latency.count())
    }

    /// Whether the server is in the middle of an answer, and answers are no stream so far.
    #[inline]
    pub(crate) fn is_answering(&self) -> bool {
        self.state == State::Answering && u64::from(self.resumed) <= RESUMED_MOST * (self.number() + 1)
    }

    /// Whether the traffic is request and response at all, rather than a stream with an occasional word back, or
    /// two beats that cross.
    pub(crate) fn is_request_response(&self) -> bool {
        let count = self.number();
        let Some(pace) = self.pace.as_deref() else { return count > 0 };
        count > 0
            && (pace.pauses.saturating_mul(2) <= self.total() || self.is_flushed(pace))
            && u64::from(self.resumed) <= RESUMED_MOST * count
            && !(count >= FEWEST && pace.is_own())
    }

    /// Whether the server sends what nobody asks for: it speaks too often for each request, or keeps a beat of its own.
    pub(crate) fn is_stream(&self) -> bool {
        let count = self.number().max(1);
        let Some(pace) = self.pace.as_deref() else { return false };
        u64::from(self.resumed) > RESUMED_MOST * count || count >= FEWEST && pace.is_own()
    }

    /// Whether pauses inside answers are work between their parts, and not a beat that goes on meanwhile.
    fn is_flushed(&self, pace: &Pace) -> bool {
        let count = self.number();
        count >= FEWEST && u64::from(self.resumed) <= FLUSHES_MOST * count && !pace.is_even()
    }
}

/// A server with a beat of its own does not answer what it seems to answer: its messages stay evenly apart
/// wherever the other side's fall between them, so that its "delays" change and its gaps do not. One that answers
/// cannot do that: a longer delay is a longer gap.
#[derive(Clone, Debug, Default)]
struct Pace {
    /// Longest pauses inside answers, summed: large where the "answer" is a stream of its own, ns.
    pauses: i64,
    /// When the server spoke last; 0 before it did.
    spoke: i64,
    /// The last gap between its messages and the last delay of an answer, ns; 0 before there was one.
    gap: f32,
    delay: f32,
    /// Sum of the gaps, ns.
    gaps: f32,
    /// From gap to gap, and from delay to delay: the changes, summed, ns; and how many there were.
    gap_change: f32,
    delay_change: f32,
    gap_changes: u32,
    delay_changes: u32,
    /// Answers that may be notices.
    late: Late,
    /// What requests are called, where their protocol is known.
    named: Option<Box<Named>>,
}

impl Pace {
    /// Delays change this many times as much as gaps where the beat is the server's own. Behind a request, gaps
    /// change at least as much as delays.
    const OWN: f32 = 2.0;
    /// Smaller changes are the wake-ups of a kernel. ns.
    const NOISE: f32 = 1e6;
    /// A beat's gaps change by less than one in so many: a timer of 10 ms late by a tick.
    const EVEN: f32 = 8.0;

    #[inline]
    fn spoke(&mut self, now: i64) {
        if self.spoke != 0 {
            let gap = (now - self.spoke) as f32;
            if self.gap != 0.0 {
                self.gap_change += (gap - self.gap).abs();
                self.gap_changes = self.gap_changes.saturating_add(1);
            }
            self.gap = gap;
            self.gaps += gap;
        }
        self.spoke = now;
    }

    #[inline]
    fn delayed(&mut self, delay: i64) {
        let delay = delay as f32;
        if self.delay != 0.0 {
            self.delay_change += (delay - self.delay).abs();
            self.delay_changes = self.delay_changes.saturating_add(1);
        }
        self.delay = delay;
    }

    /// Mean change from gap to gap and from delay to delay, ns.
    fn changes(&self) -> (f32, f32) {
        let mean = |sum: f32, count: u32| sum / count.max(1) as f32;
        (mean(self.gap_change, self.gap_changes), mean(self.delay_change, self.delay_changes))
    }

    /// Whether the server keeps a beat of its own.
    fn is_own(&self) -> bool {
        let (gap, delay) = self.changes();
        delay > Self::NOISE && delay > Self::OWN * gap
    }

    /// Whether the server's messages are evenly apart, those within an answer and those that begin one alike.
    fn is_even(&self) -> bool {
        self.gap_change * Self::EVEN <= self.gaps
    }
}
