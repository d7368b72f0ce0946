//! The verdict: one or two sentences that somebody tired understands at three in the morning.

use std::io;

use owo_colors::Style;
use tcpwhy_diagnose::report::{Blame, Blamed, Finding, LedgerMs, Line, Severity};

use super::connection::{name, rhythm, side};
use super::finding::sentence;
use super::ledger;
use super::survey::{RuleTotal, Survey};
use crate::number;
use crate::page::Page;
use crate::plain::plain;

/// Rules that find the time in a program: TCP only carried the silence.
const PROGRAMS: [&str; 2] = ["slow-server", "slow-client"];
/// Fewer packets than this without a fault show nothing: two exchanges and their ACKs, or one and the handshake.
const TOO_FEW_PACKETS: u64 = 8;
/// Below this confidence the verdict says that it is not sure.
const DOUBT: f64 = 0.7;
/// Another fault that costs this share of the first one's is worth a word in the verdict.
const WORTH_A_WORD: f64 = 0.1;
/// Lost time without a rule to explain it is worth the verdict from this share of all time.
const WORTH_A_VERDICT: f64 = 0.2;
/// …and from so much on, however long the rest took: a person feels it. ms.
const WORTH_A_VERDICT_MS: f64 = 500.0;
/// From this share on something is said of time that is idle or that packets do not explain.
const MOSTLY: f64 = 0.5;
/// A finding that has this share of the longest wait's line has told of it.
const TOLD: f64 = 0.5;

/// What a verdict says at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sign {
    /// Time is being lost.
    Problem,
    /// Nothing is broken, and something could be better.
    Advice,
    /// Something is worth knowing.
    Note,
    /// Nothing is wrong.
    Good,
    /// Too little to judge.
    Unclear,
}

impl From<Severity> for Sign {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Problem => Self::Problem,
            Severity::Advice => Self::Advice,
            Severity::Note => Self::Note,
        }
    }
}

impl Sign {
    /// Its glyph, and the style it is painted in.
    pub(crate) fn look(self) -> (&'static str, Style) {
        let style = Style::new().bold();
        match self {
            Self::Problem => ("✖", style.red()),
            Self::Advice => ("▲", style.yellow()),
            Self::Note => ("○", style.blue()),
            Self::Good => ("✔", style.green()),
            Self::Unclear => ("?", style.yellow()),
        }
    }
}

/// What to say first.
pub(super) struct Verdict {
    sign: Sign,
    /// In bold.
    head: String,
    /// After it.
    detail: String,
    /// The finding it is about: rule and connection, and whether `detail` has its sentence.
    about: Option<(&'static str, Option<u64>, bool)>,
}

impl Verdict {
    pub(super) fn of(survey: &Survey) -> Self {
        let mut verdict = Self::of_findings(survey);
        if let Some(longest) = longest_wait(survey, &verdict) {
            verdict.detail = format!("{} {longest}", verdict.detail).trim_start().to_owned();
        }
        verdict
    }

    /// What findings say, the longest wait apart.
    fn of_findings(survey: &Survey) -> Self {
        let worst = survey.rules.first().filter(|total| total.severity == Severity::Problem);
        let program = survey.rules.iter().find(|total| PROGRAMS.contains(&total.rule) && total.cost_ms > 0.0);
        match (worst, program) {
            (Some(worst), _) if PROGRAMS.contains(&worst.rule) => program_verdict(survey, worst),
            (Some(worst), _) => problem_verdict(survey, worst),
            (None, Some(program)) => program_verdict(survey, program),
            (None, None) => quiet_verdict(survey),
        }
    }

    pub(super) fn write(&self, page: &mut Page<'_>) -> io::Result<()> {
        let (glyph, style) = self.sign.look();
        let sign = page.ink.paint(style, glyph);
        page.hanging(&format!("{sign} "), format!("{} {}", page.ink.bold(&self.head), self.detail).trim_end())
    }

    /// All of it as plain text.
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.head, self.detail).trim_end().to_owned()
    }

    /// What is in bold, and what comes after it.
    pub(super) fn parts(self) -> (String, String) {
        (self.head, self.detail)
    }

    pub(super) fn sign(&self) -> Sign {
        self.sign
    }

    /// The connection it is about.
    pub(super) fn connection(&self) -> Option<u64> {
        self.about.and_then(|(_, connection, _)| connection)
    }

    /// The rule it is about.
    pub(super) fn rule(&self) -> Option<&'static str> {
        self.about.map(|(rule, ..)| rule)
    }

    /// Whether it is about several connections or the whole capture.
    pub(super) fn is_about_all(&self) -> bool {
        matches!(self.about, Some((_, None, _)))
    }

    /// Whether it has the finding's own sentence in it.
    pub(super) fn has_said(&self, finding: &Finding) -> bool {
        self.about == Some((finding.rule, finding.connection, true))
    }

    fn plain(sign: Sign, head: String) -> Self {
        Self { sign, head, detail: String::new(), about: None }
    }
}

/// Time is being lost to TCP or the network: who, how much, how.
fn problem_verdict(survey: &Survey, total: &RuleTotal) -> Verdict {
    let worst = &total.worst;
    let told = sentence(&plain(&worst.summary));
    let (head, detail) = if total.cost_ms <= 0.0 {
        (told, String::new())
    } else if total.connections > 1 {
        let wait = format!(
            "{} of {} lose {} to {}.",
            number::count(total.connections),
            number::plural(survey.connections, "connection"),
            number::duration(total.cost_ms),
            total.rule
        );
        let which = worst.connection.map_or(String::new(), |id| format!("Worst is #{id}. "));
        (wait, format!("{which}{told}"))
    } else {
        (loss(survey, total), told)
    };
    let detail = format!("{detail} {} {}", also(survey, total), first_fix(worst));
    let detail = detail.replace("  ", " ");
    let about = Some((total.rule, worst.connection, true));
    Verdict { sign: Sign::Problem, head, detail: detail.trim().to_owned(), about }
}

/// `The server 10.0.0.2:80 makes this connection wait 1.90 s of 3.00 s (63 %).`
fn loss(survey: &Survey, total: &RuleTotal) -> String {
    let worst = &total.worst;
    let whom = match worst.connection {
        None => "the connections".to_owned(),
        Some(_) if survey.connections == 1 => "this connection".to_owned(),
        Some(id) => format!("connection #{id}"),
    };
    let verb = if worst.blame.side == Blamed::Both { "make" } else { "makes" };
    let of = share_of(worst.cost_ms.0, total.worst_of_ms);
    let doubt = if worst.confidence < DOUBT { "Probably: " } else { "" };
    format!("{doubt}{} {verb} {whom} wait {}{of}.", culprit(&worst.blame), number::duration(worst.cost_ms.0))
}

/// `Fix: write each message at once.`
fn first_fix(finding: &Finding) -> String {
    let Some(fix) = finding.fixes.first() else { return String::new() };
    let title = plain(&fix.title);
    let mut letters = title.chars();
    // A name keeps its capital letters.
    let is_name = letters.clone().nth(1).is_some_and(char::is_uppercase);
    let first = letters.next().map_or(String::new(), |first| match is_name {
        true => first.to_string(),
        false => first.to_lowercase().to_string(),
    });
    sentence(&format!("Fix: {first}{}", letters.as_str()))
}

/// The time in which somebody waited for something, ms.
fn waiting(ledger: &LedgerMs) -> f64 {
    ledger.total() - ledger.get(Line::Idle)
}

/// The line on which most of the waiting was, if the verdict has not told of it.
fn longest_wait(survey: &Survey, verdict: &Verdict) -> Option<String> {
    let ledger = &survey.capture.ledger_ms;
    let (line, ms) = ledger::booked(ledger).into_iter().find(|(line, _)| *line != Line::Idle)?;
    let told = survey.rules.iter().find(|total| verdict.rule() == Some(total.rule))?;
    let owns = match told.rule {
        "slow-server" => line == Line::ServerApp,
        "slow-client" => line == Line::ClientApp,
        _ => line.is_lost() && told.cost_ms >= TOLD * ms,
    };
    let of = format!("{} of {}", number::duration(ms), number::duration(waiting(ledger)));
    let share = number::percent(ms, waiting(ledger));
    let says = match line {
        // What costs more than the longest line has is what matters.
        _ if owns || told.cost_ms > ms => return None,
        Line::ClientApp => format!("For {of} the client had not asked yet."),
        Line::ServerApp => format!("For {of} the server had not answered yet."),
        Line::Network => format!("The longest wait, {share}, is the path{}.", round_trip(survey)),
        Line::Transfer => format!("For {share} of the time bytes flow at the path's rate."),
        Line::Handshake => format!("The longest wait, {of}, is for handshakes."),
        Line::Unexplained => format!("For {share} of the time packets do not tell what it waited for."),
        line => format!("The longest wait, {of}, is on the line {}.", line.name()),
    };
    Some(says)
}

/// `: 895 ms a round trip`, where there is one connection and it is known.
fn round_trip(survey: &Survey) -> String {
    let [entry] = survey.shown.as_slice() else { return String::new() };
    let base = entry.connection.base_rtt_ms.filter(|_| survey.connections == 1);
    base.map_or(String::new(), |base| format!(": {} a round trip", number::duration(base.0)))
}

/// ` of 3.00 s (63 %)`, where the part is one.
fn share_of(part_ms: f64, whole_ms: f64) -> String {
    if part_ms > whole_ms {
        return String::new();
    }
    format!(" of {} ({})", number::duration(whole_ms), number::percent(part_ms, whole_ms))
}

fn culprit(blame: &Blame) -> String {
    let who = match blame.side {
        Blamed::Client => "The client",
        Blamed::Server => "The server",
        Blamed::Both => "Client and server together",
        Blamed::Network => "The network",
        Blamed::Capture => "The capture",
    };
    match &blame.address {
        Some(address) => format!("{who} {}", name(address)),
        None => who.to_owned(),
    }
}

/// The other problems, so that one does not mask another.
fn also(survey: &Survey, first: &RuleTotal) -> String {
    const AT_MOST: usize = 3;
    let others: Vec<String> = survey
        .rules
        .iter()
        .filter(|total| total.severity == Severity::Problem && total.rule != first.rule)
        .filter(|total| total.cost_ms > WORTH_A_WORD * first.cost_ms)
        .take(AT_MOST)
        .map(|total| format!("{} ({})", total.rule, number::duration(total.cost_ms)))
        .collect();
    let others: Vec<String> = again(first).into_iter().chain(others).collect();
    if others.is_empty() { String::new() } else { format!("Also: {}.", others.join(", ")) }
}

/// The other findings of the rule, where the verdict speaks of one: those of a connection's other side, say.
fn again(total: &RuleTotal) -> Option<String> {
    let rest = total.cost_ms - total.worst.cost_ms.0;
    let is_told_of_one = total.connections < 2 && total.findings > 1;
    let is_much = rest > WORTH_A_WORD * total.worst.cost_ms.0;
    (is_told_of_one && is_much).then(|| format!("{} again ({})", total.rule, number::duration(rest)))
}

/// A program takes the time. TCP is innocent only if nothing else costs much.
fn program_verdict(survey: &Survey, total: &RuleTotal) -> Verdict {
    let worst = &total.worst;
    let (side, spoken) = match worst.blame.side {
        Blamed::Client => ("client", "had nothing to say yet"),
        _ => ("server", "had not answered yet"),
    };
    let address = worst.blame.address.as_deref().map_or(String::new(), |a| format!(" ({})", name(a)));
    let others = also(survey, total);
    let lead = match (others.is_empty(), worst.confidence < DOUBT) {
        (true, false) => "TCP is innocent here",
        (true, true) => "TCP is probably innocent here",
        (false, _) => "The longest wait is for a program",
    };
    let time = number::duration(total.cost_ms);
    let head = if total.connections > 1 {
        let over = format!("{spoken} for {time}, over {} connections", number::count(total.connections));
        if total.blames_one {
            format!("{lead}: the {side}'s program{address} {over}.")
        } else {
            let longest = number::duration(worst.cost_ms.0);
            let which = worst.connection.map_or(String::new(), |id| format!(" on #{id}"));
            format!("{lead}: programs of several {side}s {over}; the longest{address}{which}, for {longest}.")
        }
    } else {
        let on = worst
            .connection
            .filter(|_| survey.connections > 1)
            .map_or(String::new(), |id| format!(" on #{id}"));
        let of = share_of(total.cost_ms, total.worst_of_ms);
        format!("{lead}: for {time}{of} the {side}'s program{address} {spoken}{on}.")
    };
    Verdict {
        sign: Sign::from(total.severity),
        head,
        detail: others,
        about: Some((total.rule, worst.connection, false)),
    }
}

/// No problem and no slow program.
fn quiet_verdict(survey: &Survey) -> Verdict {
    let ledger = &survey.capture.ledger_ms;
    let total = waiting(ledger);
    if survey.connections == 0 {
        return Verdict::plain(Sign::Unclear, "There is no TCP or UDP traffic in this capture.".to_owned());
    }
    if survey.packets < TOO_FEW_PACKETS && ledger.lost() <= 0.0 {
        let packets = number::plural(survey.packets, "packet");
        let handshake = if survey.has_tcp && !survey.has_handshake { ", no handshake" } else { "" };
        return Verdict::plain(
            Sign::Unclear,
            format!("Too little to judge: {packets}{handshake}, no stall."),
        );
    }
    let most_lost = ledger::booked(ledger).into_iter().find(|(line, _)| line.is_lost());
    if let Some((line, ms)) = most_lost
        && (ms >= WORTH_A_VERDICT * total || ms >= WORTH_A_VERDICT_MS)
    {
        return unexplained_loss(survey, line, ms);
    }
    if ledger.get(Line::Unexplained) >= MOSTLY * total && total > 0.0 {
        let share = number::percent(ledger.get(Line::Unexplained), total);
        let head = format!("The packets do not tell: {share} of the time cannot be explained from them.");
        return Verdict::plain(Sign::Unclear, head);
    }
    if let Some(advice) = survey.rules.first().filter(|total| total.severity == Severity::Advice) {
        return Verdict {
            sign: Sign::Advice,
            head: "Nothing is broken, and something could be better.".to_owned(),
            detail: sentence(&plain(&advice.worst.summary)),
            about: Some((advice.rule, advice.worst.connection, true)),
        };
    }
    if let Some(lack) = survey.rules.iter().find(|total| lacks_packets(total)) {
        let head = "No fault is found, but the capture does not show all.".to_owned();
        let about = Some((lack.rule, lack.worst.connection, true));
        return Verdict { sign: Sign::Unclear, head, detail: sentence(&plain(&lack.worst.summary)), about };
    }
    if survey.has_tcp && !survey.has_dialogue {
        let packets = number::plural(survey.packets, "packet");
        let head = format!("Too little to judge: {packets}, and none of TCP was answered.");
        return Verdict::plain(Sign::Unclear, head);
    }
    Verdict { detail: calm(survey), ..Verdict::plain(Sign::Good, "Nothing is wrong.".to_owned()) }
}

/// Whether a finding says that packets are missing, or their times: then what was not found may still be there.
fn lacks_packets(total: &RuleTotal) -> bool {
    ["capture-gap", "clock-step", "one-sided-capture"].contains(&total.rule)
}

/// A ledger line that no rule speaks for is shown as that line.
fn unexplained_loss(survey: &Survey, line: Line, ms: f64) -> Verdict {
    let share = share_of(ms, waiting(&survey.capture.ledger_ms));
    let head = format!(
        "TCP waits {}{share} on the line {}, and no rule names a fault.",
        number::duration(ms),
        line.name()
    );
    Verdict::plain(Sign::Advice, head)
}

/// What a healthy capture shows.
fn calm(survey: &Survey) -> String {
    let ledger = &survey.capture.ledger_ms;
    if let [entry] = survey.shown.as_slice()
        && survey.connections == 1
        && let Some(cadence) = entry.connection.cadence.first()
    {
        return format!("The {} {}.", side(cadence.from), rhythm(cadence));
    }
    let lost = ledger.lost();
    let waits = if lost > 0.0 {
        format!("TCP holds things up for {} only", number::duration(lost))
    } else {
        "TCP loses no time".to_owned()
    };
    let idle = ledger.get(Line::Idle);
    if idle >= MOSTLY * ledger.total() && idle > 0.0 {
        return format!("{waits}; nobody waited for {} of the time.", number::percent(idle, ledger.total()));
    }
    let longest = ledger::booked(ledger).into_iter().find(|(line, _)| *line != Line::Idle);
    let most = longest.map_or(String::new(), |(line, ms)| most_of(survey, line, ms));
    format!("{waits}{most}.")
}

/// `; 86 % of the time is the path: 895 ms a round trip`.
fn most_of(survey: &Survey, line: Line, ms: f64) -> String {
    let share = number::percent(ms, waiting(&survey.capture.ledger_ms));
    match line {
        Line::ClientApp => format!("; for {share} of the time the client had not asked yet"),
        Line::ServerApp => format!("; for {share} of the time the server had not answered yet"),
        Line::Network => format!("; {share} of the time is the path{}", round_trip(survey)),
        Line::Transfer => format!("; for {share} of the time bytes flow at the path's rate"),
        Line::Handshake => format!("; {share} of the time is the handshake"),
        _ => String::new(),
    }
}
