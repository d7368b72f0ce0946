//! A capture's report as Markdown, to paste into an issue, a merge request or a chat: GitHub's dialect, of which GitLab,
//! Gitea and most chats read headings, tables, lists and code.
//!
//! Texts have names in them that strangers chose. A page would make links, mentions, references to issues and HTML of them,
//! and backslashes do not stop all of that. So whatever is not a plain word or number stands in a code span, where no reader
//! looks for anything: `10.0.0.2:80`, `@everyone`, `<img`, `#12`.

use std::io::{self, Write};

use tcpwhy_diagnose::hops::Hops;
use tcpwhy_diagnose::report::{Capture, Connection, Finding, LedgerMs, Severity, Source};

use crate::number;
use crate::page::GLUE;
use crate::plain::plain;
use crate::terminal::{self, EVIDENCE_SHOWN, blamed, sentence};
use crate::what_if;

/// Findings about several connections that are shown.
const MOST_ABOUT_ALL: usize = 10;
/// Lines below this share of the time are left out of a table, and summed up.
const SMALL: f64 = 0.01;

/// Writes captures one after the other, of each the `top` worst connections in full.
pub struct Writer<W: Write> {
    out: W,
    top: usize,
    follows: bool,
}

impl<W: Write> Writer<W> {
    /// Begins a report.
    pub fn begin(out: W, top: usize) -> Self {
        Self { out, top, follows: false }
    }

    /// Writes the next capture's report.
    pub fn capture(&mut self, source: &dyn Source) -> io::Result<()> {
        if std::mem::replace(&mut self.follows, true) {
            writeln!(self.out, "---\n")?;
        }
        let (head, detail) = terminal::verdict_parts(source);
        writeln!(self.out, "**{}** {}\n", text(&head), text(&detail))?;
        let capture = source.capture();
        let shown = terminal::shown(source, self.top);
        let mut count = 0_u64;
        let mut connections = Vec::new();
        for connection in source.connections() {
            count += 1;
            connections.extend(shown.contains(&connection.id).then_some(connection));
        }
        connections.sort_by_key(|connection| shown.iter().position(|id| *id == connection.id));
        self.head(&capture, count)?;
        if count > connections.len() as u64 {
            writeln!(self.out, "### All {} together\n", number::plural(count, "connection"))?;
            self.ledger(&capture.ledger_ms)?;
        }
        self.about_all(source)?;
        for connection in &connections {
            self.connection(source, connection)?;
        }
        match count - connections.len() as u64 {
            0 => Ok(()),
            more => writeln!(self.out, "And {}.\n", number::plural(more, "more connection")),
        }
    }

    /// Writes lines as they are, in a block of code.
    pub fn block(&mut self, lines: &str) -> io::Result<()> {
        let fence = "`".repeat(longest_run(lines).max(2) + 1);
        writeln!(self.out, "{fence}text\n{}\n{fence}\n", lines.trim_end())
    }

    /// A heading of its own above what comes next.
    pub fn heading(&mut self, heading: &str) -> io::Result<()> {
        if std::mem::take(&mut self.follows) {
            writeln!(self.out, "---\n")?;
        }
        writeln!(self.out, "## {}\n", text(heading))
    }

    /// Ends the report and hands the output back; `hops` are the conversations that captures show on both sides of a proxy.
    pub fn end(mut self, hops: Option<&Hops>) -> io::Result<W> {
        if let Some(hops) = hops {
            let mut lines = Vec::new();
            let options = terminal::Options { width: 100, ..terminal::Options::default() };
            terminal::write_hops(&mut lines, hops, &options)?;
            writeln!(self.out, "---\n")?;
            let lines = String::from_utf8_lossy(&lines).into_owned();
            self.block(lines.trim_start_matches(['\n', '═']))?;
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn head(&mut self, capture: &Capture, connections: u64) -> io::Result<()> {
        let Capture { name, kind, packets, bytes, start, duration_ms, notes, .. } = capture;
        let mut items = vec![code(&plain(name)), code(&plain(kind)), number::plural(*packets, "packet")];
        items.extend([number::bytes(*bytes), number::duration(duration_ms.0)]);
        items.push(number::plural(connections, "connection"));
        items.extend(
            start.as_deref().map(|start| format!("from {}", code(&plain(&terminal::readable(start))))),
        );
        writeln!(self.out, "{}\n", items.join(" · ").replace(GLUE, " "))?;
        for note in notes {
            writeln!(self.out, "- Note: {}", text(note))?;
        }
        if notes.is_empty() { Ok(()) } else { writeln!(self.out) }
    }

    fn ledger(&mut self, ledger: &LedgerMs) -> io::Result<()> {
        let (booked, total) = (terminal::booked(ledger), ledger.total());
        if booked.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "| waiting for | time | share | |\n| --- | ---: | ---: | --- |")?;
        let (large, small): (Vec<_>, Vec<_>) = booked.into_iter().partition(|(_, ms)| ms / total >= SMALL);
        let row = |name: &str, ms: f64, meaning: &str| {
            let (time, share) = (number::duration(ms), number::percent(ms, total));
            format!("| {name} | {time} | {share} | {meaning} |").replace(GLUE, " ")
        };
        for (line, ms) in large {
            writeln!(self.out, "{}", row(line.name(), ms, terminal::meaning(line)))?;
        }
        if !small.is_empty() {
            let names: Vec<_> = small.iter().map(|(line, _)| line.name()).collect();
            writeln!(self.out, "{}", row(&names.join(", "), small.iter().map(|(_, ms)| ms).sum(), ""))?;
        }
        writeln!(self.out)
    }

    fn about_all(&mut self, source: &dyn Source) -> io::Result<()> {
        let mut findings = source.findings().take_while(|finding| finding.connection.is_none());
        let mut shown = findings.by_ref().take(MOST_ABOUT_ALL).peekable();
        if shown.peek().is_none() {
            return Ok(());
        }
        writeln!(self.out, "### The capture as a whole\n")?;
        for finding in shown {
            self.finding(source, &finding)?;
        }
        match findings.count() as u64 {
            0 => Ok(()),
            more => writeln!(self.out, "And {} of these kinds.\n", number::plural(more, "more finding")),
        }
    }

    fn connection(&mut self, source: &dyn Source, connection: &Connection) -> io::Result<()> {
        let Connection { id, client, server, duration_ms, .. } = connection;
        let duration = number::duration(duration_ms.0).replace(GLUE, " ");
        let [client, server] = [client, server].map(|end| code(&plain(end)));
        writeln!(self.out, "### Connection {id}: {client} → {server}, {duration}\n")?;
        let programs = terminal::programs_of(connection).map(|programs| code(&programs));
        let mut items: Vec<_> =
            programs.into_iter().chain(terminal::connection_figures(connection)).collect();
        items.extend(connection.exchanges.iter().flat_map(terminal::exchange_figures));
        writeln!(self.out, "{}\n", items.join(" · ").replace(GLUE, " "))?;
        self.ledger(&connection.ledger_ms)?;
        let mut findings = source.findings_of(*id);
        findings.sort_by(|a, b| b.severity.cmp(&a.severity).then(b.cost_ms.0.total_cmp(&a.cost_ms.0)));
        findings.iter().try_for_each(|finding| self.finding(source, finding))
    }

    fn finding(&mut self, source: &dyn Source, finding: &Finding) -> io::Result<()> {
        let (sign, _) = terminal::mark(finding.severity);
        let kind = match finding.severity {
            Severity::Problem => "",
            Severity::Advice => "advice · ",
            Severity::Note => "note · ",
        };
        let mut items = vec![format!("{kind}{}", text(&blamed(&finding.blame)))];
        items.extend(terminal::figures(finding));
        let items = items.join(" · ").replace(GLUE, " ");
        writeln!(self.out, "#### {sign} {}\n\n{items}\n\n{}\n", finding.rule, text(&finding.summary))?;
        self.evidence(finding)?;
        for (number, fix) in finding.fixes.iter().enumerate() {
            let title = text(&sentence(&fix.title));
            writeln!(self.out, "{}. **{title}** {}", number + 1, text(&fix.how))?;
        }
        if !finding.fixes.is_empty() {
            writeln!(self.out)?;
        }
        let Some(found) = source.what_if(finding) else { return Ok(()) };
        let (fix, rest) = what_if::sentence(&found);
        writeln!(
            self.out,
            "What if: **{}** {} {}\n",
            text(&fix),
            text(&rest),
            text(&what_if::likeness(&found))
        )
    }

    fn evidence(&mut self, finding: &Finding) -> io::Result<()> {
        let Some(left) = finding.evidence.len().checked_sub(1) else { return Ok(()) };
        writeln!(self.out, "| packet | time | |\n| ---: | ---: | --- |")?;
        for shown in finding.evidence.iter().take(EVIDENCE_SHOWN) {
            let time = number::moment(shown.time_ms.0).replace(GLUE, " ");
            let note = text(&shown.note).replace('|', "\\|");
            writeln!(self.out, "| {} | {time} | {note} |", shown.packet)?;
        }
        match (left + 1).saturating_sub(EVIDENCE_SHOWN) {
            0 => writeln!(self.out),
            more => writeln!(self.out, "\nAnd {more} more packets.\n"),
        }
    }
}

/// A text in which nothing but words stands outside of code spans.
fn text(raw: &str) -> String {
    let raw = plain(&raw.replace(GLUE, " ")).into_owned();
    // Rules' own texts mark code with backticks; one that stands alone marks nothing.
    let parts: Vec<_> =
        if raw.matches('`').count().is_multiple_of(2) { raw.split('`').collect() } else { vec![&raw] };
    let parts = parts.iter().enumerate().map(|(at, part)| match at % 2 {
        0 => words(part),
        _ => code(part),
    });
    parts.collect()
}

/// Prose, word by word.
fn words(prose: &str) -> String {
    let mut written: Vec<String> = Vec::new();
    let mut words = prose.split(' ').peekable();
    while let Some(word) = words.next() {
        let mut word = word.to_owned();
        // A call with its arguments is one piece of code.
        while is_open_call(&word) && word.len() < 200 {
            let Some(next) = words.next() else { break };
            word = format!("{word} {next}");
        }
        written.push(if is_lone_sign(&word) && !written.is_empty() { word } else { in_words(&word) });
    }
    written.join(" ")
}

/// `setsockopt(fd,`: a bracket behind a letter that nothing closes yet.
fn is_open_call(word: &str) -> bool {
    let opens = word
        .match_indices('(')
        .any(|(at, _)| word[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    opens && word.matches('(').count() > word.matches(')').count()
}

/// A sign between two words.
fn is_lone_sign(word: &str) -> bool {
    matches!(word, "+" | "-" | "–" | "—" | "→" | "←" | "·" | "=" | "×" | "…" | "%" | "/")
}

/// A word, in code where it is more than letters and digits between a sentence's signs.
fn in_words(word: &str) -> String {
    let core = word.trim_start_matches(['(', '"']);
    let lead = &word[..word.len() - core.len()];
    let bare = core.trim_end_matches(['.', ',', ';', ':', '!', '?', '"', '…']);
    // A bracket is the sentence's if it was opened before.
    let bare = if bare.contains('(') { bare } else { bare.trim_end_matches([')', '.', ',']) };
    let bare = bare.strip_suffix("'s").unwrap_or(bare);
    let trail = &core[bare.len()..];
    if is_plain(bare) || bare == "%" { word.to_owned() } else { format!("{lead}{}{trail}", code(bare)) }
}

/// Letters, digits, and signs within words and numbers: nothing that means anything to Markdown, nothing that becomes a link.
fn is_plain(word: &str) -> bool {
    let is_reference = word.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("gh-"));
    let mut before = ' ';
    let mut all = word.chars().peekable();
    let mut is_plain = !is_reference;
    while let Some(c) = all.next() {
        let is_between_digits = before.is_ascii_digit() && all.peek().is_some_and(char::is_ascii_digit);
        is_plain &= match c {
            '.' | ',' => is_between_digits,
            '/' => before.is_alphanumeric() && all.peek().is_some_and(|next| next.is_alphanumeric()),
            '-' | '\'' | '’' | '–' | '—' | '→' | '%' => true,
            c => c.is_alphanumeric(),
        };
        before = c;
    }
    // A rule below a line makes a heading of it.
    is_plain && (word.is_empty() || word.chars().any(char::is_alphanumeric))
}

/// A code span.
fn code(text: &str) -> String {
    let text = text.replace(GLUE, " ");
    if text.trim().is_empty() {
        return text;
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// The most backticks in a row.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_stays_and_what_is_none_is_code() {
        for (raw, written) in [
            (
                "The server 10.0.0.2:80 waits 1.58 s of 1.99 s (79 %).",
                "The server `10.0.0.2:80` waits 1.58 s of 1.99 s (79 %).",
            ),
            ("Set TCP_NODELAY on idda:1033's socket.", "Set `TCP_NODELAY` on `idda:1033`'s socket."),
            ("option `quickack 1`.", "option `quickack 1`."),
            (
                "Call setsockopt(fd, IPPROTO_TCP, &one) on it, or write() less (twice).",
                "Call `setsockopt(fd, IPPROTO_TCP, &one)` on it, or `write()` less (twice).",
            ),
            (
                "12-byte updates, 4,566 in all: 5.0/s – don't!",
                "12-byte updates, 4,566 in all: 5.0/s – don't!",
            ),
            ("- a list (79 %)?", "`-` a list (79 %)?"),
            ("", ""),
        ] {
            assert_eq!(text(raw), written);
        }
    }

    #[test]
    fn strangers_words_stay_words() {
        for (raw, written) in [
            ("@everyone", "`@everyone`"),
            ("(#12), !34 GH-5", "(`#12`), `!34` `GH-5`"),
            ("<img/onerror=x> [a](//b.c)", "`<img/onerror=x>` `[a](//b.c)`"),
            ("http://a.b www.a.b a@b.c a.b", "`http://a.b` `www.a.b` `a@b.c` `a.b`"),
            ("*a* _b_ ~c~ &lt; \\d |e|", "`*a*` `_b_` `~c~` `&lt`; `\\d` `|e|`"),
            ("one ` alone", "one `` ` `` alone"),
            ("=== ---", "`===` `---`"),
            ("a\n# b\u{202e}", "a `#` `b\\u{202e}`"),
        ] {
            assert_eq!(text(raw), written);
        }
    }
}
