//! Servers that take long to answer.

use super::loss::CONFIDENCE_GAPS;
use super::rule::{Check, rule};
use super::subject::{Subject, human, percent};
use super::weight::{FELT_AT_ONCE, REPEATED, SMALLEST_COST, TRIVIAL, Waits};
use crate::diagnosis::ms;
use crate::flow::fact::Cause;
use crate::flow::half::NEVER;
use crate::ledger::Tally;
use crate::report::{Evidence, Finding, Fix, Line, Severity, Vantage};

rule! {
    /// The server's program takes long to answer; TCP has nothing to send meanwhile.
    ///
    /// ## What it means
    /// The request has arrived, nothing is on its way and nothing is held back: the time passes in the
    /// server's program, or in what that program waits for (a database, a lock, another server). TCP is
    /// innocent of it, and no socket option helps.
    ///
    /// ## How it is detected
    /// The server's answer leaves 5 ms or more after the request could have reached it (far from the server also
    /// half a round trip, which may vary), and no ACK freed it. A request that took longer than 40 ms to answer
    /// draws a pure ACK on the way, just as a stall by Nagle's algorithm does, but then the *other* side speaks:
    /// that ACK released nothing. Work between two parts of an answer counts as well, if all before it was ACKed or
    /// `TCP_NODELAY` is seen to be set.
    ///
    /// A note, half sure, is what the packets leave open: an answer whose request was ACKed only with it, after 200 ms or
    /// more (the first answer was perhaps lost); a late answer in a protocol that is not known, or one in few or very
    /// many parts (a notice, a stream of the server's own); what was never answered; and answers no later than the
    /// SYN-ACK was, for which a kernel and no program is the reason.
    ///
    /// Reported where such times make up at least a quarter of the time spent in exchanges (half, where they are
    /// below 20 ms on average), and 10 ms. A note where it is rare (one answer in twenty) and below 100 ms: a busy
    /// machine does that. (A receiver that reads an upload slowly is late with its answer, too; the windows' rules
    /// speak of that.) A server that keeps a beat of its own answers nothing: its messages are evenly apart,
    /// wherever the client's fall between them. Captured far from the server, a queue on the path looks the same;
    /// the confidence says so, and a capture at the server would settle it. It is low, too, where half of the time may lie
    /// beside what the capture lacks: an answer that began earlier than it shows, an ACK for which the server waited.
    ///
    /// ## What to do
    /// Profile the server's program, not the network. Its log with times, or `strace -f -r -e trace=network`,
    /// shows what it does between its read and its write. Where the client need not wait, send several requests
    /// before the first answer.
    ///
    /// ## References
    /// RFC 1122 section 4.2.3.2 (why the pure ACK is there).
    SLOW_SERVER = "slow-server", Severity::Advice, Check::Connection(check)
}

/// The program's part in the time in which somebody waited, one in so many, from which on it is noted.
const SHARE_OF_WAITING: i64 = 5;
/// The program's part in exchanges, one in so many, from which on it is worth a word…
const SHARE_OF_EXCHANGES: i64 = 4;
/// …and where answers take less than [`SHORT`] on average: ordinary work, unless hardly anything else takes time.
const SHARE_IF_SHORT: i64 = 2;
/// ns.
const SHORT: i64 = 20_000_000;
/// Fewer slow answers than one in so many are accidents, if none of them is felt: a busy machine's hiccups.
const RARE: u64 = 20;

/// A program that answers in parts does so again and again. Fewer than one answer in so many is as well a chance…
const FEW_IN_PARTS: u64 = 4;
/// …and more pauses for an answer are as well a stream of the server's own: screens, quotes, measurements.
const MOST_PARTS: u64 = 4;

/// What the server's program took.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// Answers that it took time for, and all of them.
    count: u64,
    answers: u64,
    /// What exchanges took as the client saw them, ns.
    exchanges: i64,
    /// In all, on average for an answer, and the longest at a time, ns.
    total: i64,
    mean: i64,
    worst: i64,
    /// The time in which somebody waited for something, ns.
    waiting: i64,
    /// Of the total, what may have been notices that nobody had asked for, ns.
    unsure: i64,
    /// Of that, answers that may have been lost before, ns.
    silent: i64,
    /// It is known which end asks.
    knows_client: bool,
}

/// The waits that were the server's program's: before answers, and within them.
fn tallies(subject: &Subject<'_>) -> Vec<Tally> {
    let server = 1 - subject.client();
    // A single wait as long as a cork's may as well be a lost answer's timer.
    let answers = subject.program(server).filter(|tally| tally.cause == Cause::Program || tally.count > 1);
    let late = subject.tally(Cause::LateAnswer, server).filter(|_| subject.connection.answers_late());
    answers
        .into_iter()
        .chain(late.cloned())
        .chain(subject.tally(Cause::NoAnswer, server).cloned())
        .chain(subject.tally(Cause::SilentAnswer, server).cloned())
        .chain(subject.tally(Cause::ProgramPause, server).cloned())
        .collect()
}

/// How much longer than its shortest round trip the path has been shown to take with no program in it: the server's kernel
/// answers a SYN. ns; 0 at the server.
fn jitter(subject: &Subject<'_>) -> i64 {
    let connection = subject.connection;
    let was_seen = connection.syn_at != NEVER && connection.syn_ack_at != NEVER;
    let took = if was_seen { connection.syn_ack_at - connection.syn_at } else { 0 };
    took - connection.path_part(subject.client()).min(took)
}

/// Whether nobody may have waited for these, or only for the path.
///
/// Late messages may be the server's own. So may, in a protocol that is not known, a second message behind an answer: where
/// few answers have one, or most have many. The path may account for what is no longer than it has been seen to take
/// beyond its shortest time.
fn is_unsure(subject: &Subject<'_>, tally: &Tally, answers: u64) -> bool {
    let is_known = subject.connection.exchanges.has_asked_plainly();
    match tally.cause {
        Cause::LateAnswer | Cause::SilentAnswer => true,
        // What wants no answer looks the same.
        Cause::NoAnswer => !is_known,
        Cause::Program => tally.total <= tally.count as i64 * jitter(subject),
        Cause::ProgramPause => {
            let are_usual = answers.div_ceil(FEW_IN_PARTS)..=answers * MOST_PARTS;
            !is_known && !are_usual.contains(&tally.count)
        }
        _ => false,
    }
}

impl Work {
    fn of(subject: &Subject<'_>, tallies: &[Tally]) -> Self {
        // What was on its way meanwhile has its own line.
        let total = tallies.iter().map(|tally| tally.total).sum::<i64>();
        let total = total.min(subject.booked(Line::ServerApp));
        let worst = tallies.iter().filter_map(|tally| Some(tally.worst().first()?.length)).max();
        let answers = subject.connection.exchanges.number();
        let unsure = tallies.iter().filter(|tally| is_unsure(subject, tally, answers));
        let unsure: i64 = unsure.map(|tally| tally.total).sum();
        // Near the server an exchange is seen without its way from and to the client.
        let unseen = subject.half(1 - subject.client()).part_or_zero().saturating_mul(answers as i64);
        let exchanges = subject.connection.exchanges.total().saturating_add(unseen);
        // An answer may have several pauses.
        let count = tallies.iter().map(|tally| tally.count).sum::<u64>().min(answers.max(1));
        let mean = total / count.max(1) as i64;
        // Waits that are longer in all than the exchanges lie outside of them: nobody had asked.
        let outside = if answers > 0 { total - exchanges } else { 0 };
        Self {
            count,
            answers,
            exchanges,
            total,
            mean,
            worst: worst.unwrap_or(0).min(total),
            waiting: subject.waiting(),
            unsure: unsure.max(outside),
            silent: subject.tally(Cause::SilentAnswer, 1 - subject.client()).map_or(0, |tally| tally.total),
            knows_client: subject.connection.knows_client(),
        }
    }

    fn is_worth_a_word(&self) -> bool {
        self.waits().is_felt()
            || self.total >= SMALLEST_COST.max(self.waiting / SHARE_OF_WAITING)
            || self.is_much()
    }

    /// Whether it takes much of what exchanges take.
    fn is_much(&self) -> bool {
        let share = if self.mean < SHORT { SHARE_IF_SHORT } else { SHARE_OF_EXCHANGES };
        self.total >= SMALLEST_COST.max(self.exchanges.min(self.waiting) / share)
    }

    /// Whether more than the direction of late messages, or of ports, tells that somebody waited.
    fn is_sure(&self) -> bool {
        self.knows_client && self.unsure <= self.total / 2
    }

    fn waits(&self) -> Waits {
        Waits { cost: self.total, worst: self.worst, count: self.count }
    }

    /// Whether half of the time may have another cause that the capture lacks, at so many places: an answer that began
    /// earlier than it shows, or an ACK for which the server waited. Each may be the longest wait.
    fn may_be_gaps(&self, gaps: u64) -> bool {
        self.worst.saturating_mul(i64::try_from(gaps).unwrap_or(i64::MAX)) > self.total / 2
    }

    fn severity(&self) -> Severity {
        let is_hiccup = self.count * RARE < self.answers && self.worst < FELT_AT_ONCE;
        let is_sure = self.is_sure();
        let is_habit = self.is_much() && (self.count >= REPEATED || self.total >= TRIVIAL);
        if is_sure && !is_hiccup && (self.waits().is_felt() || is_habit) {
            SLOW_SERVER.severity
        } else {
            Severity::Note
        }
    }
}

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let (connection, server) = (subject.connection, 1 - subject.client());
    // A flow over UDP shows no round trip, so the path's part in an answer's delay is not known.
    if connection.is_udp || connection.exchanges.is_stream() {
        return;
    }
    let tallies = tallies(subject);
    let work = Work::of(subject, &tallies);
    let Some(most) = tallies.iter().max_by_key(|tally| tally.total) else { return };
    if !work.is_worth_a_word() {
        return;
    }
    findings.push(Finding {
        rule: SLOW_SERVER.name,
        severity: work.severity(),
        connection: Some(subject.id),
        blame: subject.blame(server),
        count: work.count,
        cost_ms: ms(work.total),
        worst_ms: ms(work.worst),
        confidence: confidence(subject, work),
        summary: subject.text(|| summary(subject, work, &tallies)),
        evidence: evidence(subject, most),
        fixes: subject.fixes(|| fixes(subject)),
    });
}

/// Near the server nothing but its program can have taken the time; far from it, a queue could have, the more
/// likely the shorter the answer took against the round trip.
fn confidence(subject: &Subject<'_>, work: Work) -> f64 {
    match (subject.vantage(), subject.connection.base_round_trip()) {
        _ if !work.is_sure() => 0.5,
        _ if work.may_be_gaps(subject.gaps()) => CONFIDENCE_GAPS,
        (Vantage::Server, _) => 0.95,
        (_, Some(base)) if work.mean >= base.saturating_mul(10) => 0.95,
        (_, Some(base)) if work.mean >= base => 0.8,
        _ => 0.6,
    }
}

fn summary(subject: &Subject<'_>, work: Work, tallies: &[Tally]) -> String {
    let who = subject.who(1 - subject.client());
    let longest = tallies.iter().max_by_key(|tally| tally.total);
    let took = match longest.map(|tally| tally.cause) {
        Some(Cause::NoAnswer) if tallies.len() == 1 => {
            return format!(
                "{} had not answered for {} when the client closed or the capture ended.{}",
                subject.capital(1 - subject.client()),
                human(work.total),
                doubt(work)
            );
        }
        Some(Cause::ProgramPause) => of_parts(tallies),
        _ => of_answers(work, tallies.len() > 1),
    };
    let share = if work.total <= work.exchanges {
        let of = percent(work.total, work.exchanges);
        format!("of the {} that exchanges took ({of})", human(work.exchanges))
    } else {
        format!("in all, {} of the time in which somebody waited", percent(work.total, work.waiting))
    };
    format!(
        "The program of {who} took {took}: {} {share}. TCP is innocent of that time: nothing was on its way and nothing \
         was held back.{}",
        human(work.total),
        doubt(work),
    )
}

/// `42 ms on average for each of 6 answers (50 ms at most)`.
fn of_answers(work: Work, is_mixed: bool) -> String {
    let mean = human(work.mean);
    match (work.count, work.answers) {
        (1, 1) => return format!("{mean} for its only answer"),
        (1, all) => return format!("{mean} for one of its {all} answers"),
        _ => {}
    }
    let answers = match (work.count, work.answers) {
        (count, all) if count >= all => format!("{all} answers"),
        (count, all) => format!("{count} of its {all} answers"),
    };
    // An answer with pauses may have taken longer than any of its waits.
    let at_a_time = if is_mixed { " at a time" } else { "" };
    format!("{mean} on average for each of {answers} ({}{at_a_time} at most)", human(work.worst))
}

/// `8 pauses between the parts of its answers, 60 ms on average (62 ms at most)`.
fn of_parts(tallies: &[Tally]) -> String {
    let (count, total) =
        tallies.iter().fold((0, 0), |(count, total), tally| (count + tally.count, total + tally.total));
    let worst = tallies.iter().filter_map(|tally| Some(tally.worst().first()?.length)).max().unwrap_or(0);
    match count {
        1 => format!("{} between two parts of an answer", human(total)),
        _ => format!(
            "{} on average between parts of its answers, or before them, {count} times ({} at most)",
            human(total / count.max(1) as i64),
            human(worst)
        ),
    }
}

/// What is said where nobody may have waited.
fn doubt(work: Work) -> &'static str {
    match () {
        () if work.is_sure() => "",
        () if work.silent > work.total / 2 => {
            " Its first answer may as well have been lost: no ACK of the request came before."
        }
        () => " Whether anybody waited for it, the packets do not tell.",
    }
}

fn evidence(subject: &Subject<'_>, tally: &Tally) -> Vec<Evidence> {
    let (before, what) = match tally.cause {
        Cause::ProgramPause => ("a part of the answer", "the next part leaves"),
        Cause::NoAnswer => ("the last that the client said", "no answer until"),
        _ => ("the request", "the answer leaves"),
    };
    subject.evidence(tally, |case| {
        let [asked, acked, answered] = case.packets;
        let answer = format!("{what} {} later", human(case.length));
        let answer = if acked > asked && acked < answered {
            format!("{answer}; the ACK in packet {acked} released nothing")
        } else {
            answer
        };
        [before.to_owned(), String::new(), answer]
    })
}

fn fixes(subject: &Subject<'_>) -> Vec<Fix> {
    vec![
        Fix {
            title: "Look into the server's program".to_owned(),
            how: format!(
                "Profile what {} does between reading a request and writing its answer: computing, disk, a lock, a \
                 database. TCP options change nothing here.",
                subject.address(1 - subject.client())
            ),
        },
        Fix {
            title: "Do not wait for each answer".to_owned(),
            how: "Where requests do not depend on each other, send them before the first answer is back, or over \
                  several connections. Costs memory at the server."
                .to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Talk, findings};
    use crate::report::{Blamed, Severity};

    const MS: u64 = 1_000;

    /// Six requests over a round trip of `path` µs, answered after `think` ms more; a delayed ACK goes out
    /// 40 ms after a request whose answer is not there by then.
    fn exchanges(path: u64, think: u64) -> Talk {
        let mut talk = Talk::near_client(path);
        for number in 1..=6 {
            let start = number * 200 * MS;
            talk.data(start, true, 64);
            if think > 40 {
                talk.ack(start + path + 40 * MS, false);
            }
            talk.data(start + path + think * MS, false, 64);
            talk.ack(start + path + think * MS + 20, true);
        }
        talk
    }

    #[test]
    fn a_server_that_thinks_42_ms_behind_its_own_delayed_ack() {
        let text = exchanges(200, 42);
        let found = findings("slow-server", &text.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!(found.blame.side, Blamed::Server);
        assert_eq!(found.blame.address.as_deref(), Some("10.0.0.2:80"));
        assert_eq!(found.count, 6);
        // Six times 42 ms.
        assert!((found.cost_ms.0 - 252.0).abs() < 1.0, "{found:?}");
        assert!((found.worst_ms.0 - 42.0).abs() < 0.2, "{found:?}");
        assert!(found.summary.contains("each of 6 answers"), "{}", found.summary);
        assert!(
            found.evidence.iter().any(|one| one.note.contains("released nothing")),
            "{:?}",
            found.evidence
        );
        for rule in ["nagle-delayed-ack", "nagle-hold", "split-write", "delayed-ack"] {
            assert!(findings(rule, &text.text()).is_empty(), "{rule}");
        }
    }

    /// Of answers of two segments, the first is not in the capture, and may have left at once.
    #[test]
    fn answers_whose_beginning_the_capture_lacks_are_less_sure() {
        let confidence = |lacking: u64| {
            let mut talk = Talk::near_server(200);
            for number in 1..=6 {
                let start = number * 200 * MS;
                talk.data(start, true, 64);
                if number <= lacking {
                    talk.lack(false, 1_460);
                } else {
                    talk.data(start + 42 * MS, false, 1_460);
                }
                talk.data(start + 42 * MS + 10, false, 64);
                talk.ack(start + 42 * MS + 300, true);
            }
            let found = findings("slow-server", &talk.text());
            let [found] = &found[..] else { panic!("{found:?}") };
            found.confidence
        };
        assert!(confidence(0) >= 0.9 && confidence(1) >= 0.9, "one of six");
        assert!(confidence(4) < 0.7, "most of them");
    }

    #[test]
    fn a_long_path_is_not_a_slow_server() {
        assert!(findings("slow-server", &exchanges(42 * MS, 0).text()).is_empty());
    }

    #[test]
    fn a_thought_as_long_as_the_path_is_less_sure() {
        let found = findings("slow-server", &exchanges(50 * MS, 30).text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert!(found.confidence < 0.7, "{found:?}");
        assert!((found.cost_ms.0 - 180.0).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn a_split_request_does_not_hide_the_servers_part() {
        let mut talk = Talk::near_client(200);
        for number in 1..=6 {
            let start = number * 200 * MS;
            talk.data(start, true, 16);
            talk.ack(start + 40 * MS, false);
            talk.data(start + 40 * MS + 30, true, 48);
            talk.data(start + 70 * MS + 230, false, 64);
        }
        let found = findings("slow-server", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        // Six times 30 ms.
        assert!((found.cost_ms.0 - 180.0).abs() < 1.0, "{found:?}");
        assert_eq!(findings("split-write", &talk.text()).len(), 1);
    }

    /// Eight exchanges whose answer comes in two parts, `work` ms apart, over a round trip of 200 µs; the ACK of
    /// the first part passes 40 ms after it, if the second is not there by then.
    fn two_parts(work: u64) -> String {
        let mut talk = Talk::near_client(200);
        for number in 1..=8 {
            let start = number * 100 * MS;
            talk.data(start, true, 64);
            talk.data(start + 250, false, 100);
            if work > 40 {
                talk.ack(start + 40 * MS + 250, true);
            }
            talk.data(start + work * MS + 250, false, 100);
            talk.ack(start + work * MS + 300, true);
        }
        talk.text()
    }

    #[test]
    fn work_between_two_parts_of_an_answer() {
        // 60 ms: the ACK had come long before. 25 ms: the second part passes the first one in flight.
        for (work, all) in [(60, 480.0), (25, 200.0)] {
            let found = findings("slow-server", &two_parts(work));
            let [found] = &found[..] else { panic!("{found:?}") };
            assert_eq!((found.count, found.blame.side), (8, Blamed::Server));
            assert!((found.cost_ms.0 - all).abs() < 0.1, "{found:?}");
            assert!(found.summary.contains("between parts of its answers"), "{}", found.summary);
            assert_eq!(found.evidence[0].note, "a part of the answer");
        }
    }

    #[test]
    fn a_second_message_behind_few_answers_may_be_a_notice() {
        // Twelve answers of an unknown protocol; behind two of them, or behind six, comes another message 300 ms later.
        for (in_parts, severity) in [(2, Severity::Note), (6, Severity::Advice)] {
            let mut talk = Talk::near_client(200);
            for number in 1..=12 {
                let start = number * 1_000 * MS;
                talk.data(start, true, 64);
                talk.data(start + 250, false, 100);
                talk.ack(start + 40 * MS, true);
                if number <= in_parts {
                    talk.data(start + 300 * MS, false, 100);
                    talk.ack(start + 340 * MS, true);
                }
            }
            let found = findings("slow-server", &talk.text());
            let [found] = &found[..] else { panic!("{found:?}") };
            assert_eq!(found.severity, severity, "{found:?}");
        }
    }

    #[test]
    fn a_part_that_an_ack_frees_was_held_and_not_worked_on() {
        let mut talk = Talk::near_server(20 * MS);
        for number in 1..=8 {
            let start = number * 100 * MS;
            talk.data(start, true, 64);
            talk.data(start + 50, false, 100);
            talk.ack(start + 60 * MS, true);
            talk.data(start + 60 * MS + 30, false, 100);
        }
        assert!(findings("slow-server", &talk.text()).is_empty());
    }

    #[test]
    fn a_part_shortly_behind_an_ack_may_have_been_held() {
        // At the client, on a machine that is 3 ms late: the ACK leaves after 40 ms, and what it freed comes 3 ms later
        // than the path allows. 10 ms later it was the program.
        for (late, count) in [(3, 0), (10, 1)] {
            let mut talk = Talk::near_client(MS);
            for number in 1..=8 {
                let start = number * 200 * MS;
                talk.data(start, true, 64);
                talk.data(start + MS, false, 100);
                talk.ack(start + 41 * MS, true);
                talk.data(start + (42 + late) * MS, false, 100);
                talk.ack(start + (42 + late) * MS + 20, true);
            }
            assert_eq!(findings("slow-server", &talk.text()).len(), count, "{late}");
        }
    }

    #[test]
    fn an_ack_on_its_way_has_freed_nothing() {
        // Over 20 ms: the ACK leaves the client 40 ms behind the first part, 5 ms before the second one comes.
        let mut talk = Talk::near_client(20 * MS);
        for number in 1..=8 {
            let start = number * 100 * MS;
            talk.data(start, true, 64);
            talk.data(start + 20 * MS, false, 100);
            talk.ack(start + 60 * MS, true);
            talk.data(start + 65 * MS, false, 100);
            talk.ack(start + 65 * MS + 20, true);
        }
        let found = findings("slow-server", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        // Eight times 45 ms.
        assert!((found.cost_ms.0 - 360.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn an_answer_that_may_have_been_lost_once_is_a_note() {
        // One answer of twelve comes 300 ms late; whether the server ACKed the request before tells why.
        for (acked, severity) in [(true, Severity::Advice), (false, Severity::Note)] {
            let mut talk = Talk::near_client(20 * MS);
            for number in 1..=12 {
                let start = number * 400 * MS;
                let late = if number == 7 { 300 * MS } else { 0 };
                talk.data(start, true, 64);
                if late > 0 && acked {
                    talk.ack(start + 60 * MS, false);
                }
                talk.data(start + 20 * MS + late, false, 64);
                talk.ack(start + 20 * MS + late + 30, true);
            }
            let found = findings("slow-server", &talk.text());
            let [found] = &found[..] else { panic!("{found:?}") };
            assert_eq!((found.severity, found.count), (severity, 1));
            assert_eq!(found.summary.contains("may as well have been lost"), !acked, "{}", found.summary);
            assert_eq!(found.confidence > 0.5, acked, "{found:?}");
        }
    }

    #[test]
    fn what_was_never_answered_may_have_been_no_question() {
        // The client says something twice, waits for 800 ms and closes; the server ACKs, and nothing more.
        let mut talk = Talk::near_client(200);
        talk.data(100 * MS, true, 64);
        talk.ack(140 * MS, false);
        talk.close(900 * MS);
        let found = findings("slow-server", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        assert_eq!((found.severity, found.confidence), (Severity::Note, 0.5));
        assert!(found.summary.contains("had not answered for 800 ms"), "{}", found.summary);
        assert!(
            found.evidence.iter().any(|one| one.note.contains("no answer until 800 ms later")),
            "{found:?}"
        );
    }

    #[test]
    fn messages_that_take_longer_than_the_exchanges_were_not_asked_for() {
        // Two quick exchanges, and behind the second one 20 messages of the server's own, 300 ms apart.
        let mut talk = Talk::near_client(200);
        for number in 1..=2 {
            talk.data(number * 100 * MS, true, 64);
            talk.data(number * 100 * MS + 250, false, 100);
            talk.ack(number * 100 * MS + 300, true);
        }
        for number in 1..=20 {
            talk.data((200 + 300 * number) * MS, false, 80);
            talk.ack((240 + 300 * number) * MS, true);
        }
        talk.data(6_300 * MS, true, 64);
        talk.data(6_300 * MS + 250, false, 100);
        for found in findings("slow-server", &talk.text()) {
            assert_eq!((found.severity, found.confidence), (Severity::Note, 0.5), "{found:?}");
        }
    }

    #[test]
    fn a_path_that_was_once_as_late_itself_may_have_been_so_again() {
        // The SYN-ACK takes 120 ms, 100 ms more than an ACK of data. An answer that is 80 ms late may be the path's, one
        // that is 400 ms late is not.
        for (late, severity) in [(80, Severity::Note), (400, Severity::Advice)] {
            let mut talk = Talk::with_handshake([0, 120 * MS, 120 * MS + 10]);
            for number in 1..=8 {
                let start = number * 1_000 * MS;
                talk.data(start, true, 64);
                talk.ack(start + 30 * MS, false);
                talk.data(start + (30 + late) * MS, false, 64);
                talk.ack(start + (30 + late) * MS + 20, true);
            }
            let found = findings("slow-server", &talk.text());
            assert!(found.iter().all(|found| found.severity == severity), "{late}: {found:?}");
            assert!(late == 80 || found.len() == 1, "{late}: {found:?}");
        }
    }

    #[test]
    fn behind_a_relay_that_acks_an_answer_takes_a_round_trip_and_no_corks_timer() {
        // The SYN-ACK comes all the way, in 208 ms; a relay 0.1 ms away ACKs data. Answers take 220 ms.
        let mut talk = Talk::with_handshake([0, 208 * MS, 208 * MS + 10]);
        for number in 1..=8 {
            let start = number * 400 * MS;
            talk.data(start, true, 64);
            talk.ack(start + 100, false);
            talk.data(start + 220 * MS, false, 64);
            talk.ack(start + 220 * MS + 20, true);
        }
        for found in findings("slow-server", &talk.text()) {
            // Eight times the 12 ms beyond the round trip, at most.
            assert!(found.cost_ms.0 < 100.0, "{found:?}");
        }
    }

    #[test]
    fn short_answers_are_work_unless_hardly_anything_else_takes_time() {
        let found = findings("slow-server", &exchanges(MS, 15).text());
        let [found] = &found[..] else { panic!("{found:?}") };
        // Six times 15 ms.
        assert!((found.cost_ms.0 - 90.0).abs() < 0.1, "{found:?}");
        // 15 ms beside a path of 20 ms: less than half.
        assert!(findings("slow-server", &exchanges(20 * MS, 15).text()).is_empty());
    }

    #[test]
    fn a_single_hiccup_is_a_note() {
        for (late, severity) in [(60, Severity::Note), (160, Severity::Advice)] {
            let mut talk = Talk::near_client(200);
            for number in 1..=30 {
                let start = number * 200 * MS;
                let think = if number == 20 { late * MS } else { 0 };
                talk.data(start, true, 64);
                talk.data(start + 250 + think, false, 64);
            }
            let found = findings("slow-server", &talk.text());
            let [found] = &found[..] else { panic!("{found:?}") };
            assert_eq!((found.count, found.severity), (1, severity));
        }
    }

    #[test]
    fn a_server_with_a_beat_of_its_own_answers_nothing() {
        // 80 bytes every 50 ms down, 20 bytes every 33 ms up: each update seems to answer the input before it,
        // 6 to 32 ms late.
        let mut talk = Talk::near_server(20 * MS);
        let mut messages: Vec<(u64, bool)> =
            (1..40).map(|number| (number * 50 * MS + 7 * MS, false)).collect();
        messages.extend((1..60).map(|number| (number * 33 * MS, true)));
        messages.sort_unstable();
        for (time, is_client) in messages {
            talk.data(time, is_client, if is_client { 20 } else { 80 });
        }
        assert!(findings("slow-server", &talk.text()).is_empty());
    }

    #[test]
    fn a_server_that_takes_now_long_and_now_short_has_no_beat() {
        let mut talk = Talk::near_client(200);
        let mut now = MS;
        for number in 1..=30_u64 {
            let think = 20 + number * 7 % 31;
            talk.data(now, true, 64);
            now += 200 + think * MS;
            talk.data(now, false, 64);
            now += 100;
        }
        assert_eq!(findings("slow-server", &talk.text()).len(), 1);
    }

    #[test]
    fn two_200_ms_answers_are_the_programs_if_no_cork_is_seen() {
        let mut talk = Talk::near_client(20 * MS);
        for number in 1..=6 {
            let start = number * 400 * MS;
            let think = if number % 3 == 0 { 188 * MS } else { 150 * MS };
            talk.data(start, true, 64);
            talk.ack(start + 60 * MS, false);
            talk.data(start + 20 * MS + think, false, 64);
            talk.ack(start + 20 * MS + think + 30, true);
        }
        let found = findings("slow-server", &talk.text());
        let [found] = &found[..] else { panic!("{found:?}") };
        // Four times 150 ms, and twice 188 ms, 208 ms after the request passed.
        assert_eq!(found.count, 6);
        assert!((found.cost_ms.0 - 976.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn a_server_that_pushes_at_its_own_pace_answers_nothing() {
        let mut talk = Talk::near_client(200);
        talk.data(MS, true, 12);
        for number in 1..=20 {
            talk.data(number * 100 * MS, false, 12);
            talk.ack(number * 100 * MS + 40 * MS, true);
        }
        assert!(findings("slow-server", &talk.text()).is_empty());
    }
}
