//! The lines between packets: which of them name a capture, and which only surround one.

/// Longest name given to a capture, in characters: it stands in headings of an 80-column terminal.
pub(super) const MAX_NAME: usize = 76;

/// What a line that is no packet is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Blank, an ellipsis, a rule, markup, or what tcpdump says at its end.
    Nothing,
    /// What tcpdump says when it starts: another run.
    RunStart,
    /// A command typed at a shell: names a capture if nothing better does.
    Command(String),
    /// Somebody wrote this; the name it gives.
    Prose(String),
}

/// What tcpdump says when it starts, after the name it may put in front.
const STARTS: [&str; 2] = ["listening on ", "reading from file "];

/// What else tcpdump and the shell say around a capture, where the line begins so.
const NOISE: [&str; 6] =
    ["verbose output suppressed", "tcpdump: ", "dropped privs to ", "data link type ", "^C", "Warning: "];

/// The ends of tcpdump's closing counts: `19 packets captured`.
const COUNTS: [&str; 8] = [
    "packets captured",
    "packet captured",
    "packets received by filter",
    "packet received by filter",
    "packets dropped by kernel",
    "packet dropped by kernel",
    "packets dropped by interface",
    "packet dropped by interface",
];

/// Words people put in place of lines they left out.
const ELLIPSES: [&str; 9] =
    ["snip", "snipped", "cut", "etc", "omitted", "deleted", "skipped", "and so on", "pre"];

/// Classifies a line that is no part of a packet; it comes without indentation and quote marks.
pub(super) fn classify(line: &str) -> Kind {
    let line = line.trim();
    let core = line.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
    if core.is_empty() || ELLIPSES.contains(&core.as_str()) || is_hex_dump(line) {
        return Kind::Nothing;
    }
    let said = line.strip_prefix("tcpdump: ").unwrap_or(line);
    if STARTS.iter().any(|start| said.starts_with(start)) {
        return Kind::RunStart;
    }
    let is_count = line.starts_with(|first: char| first.is_ascii_digit())
        && COUNTS.iter().any(|end| line.ends_with(end));
    if is_count || NOISE.iter().any(|start| line.starts_with(start)) {
        return Kind::Nothing;
    }
    let command = command(line);
    match (name(command.unwrap_or(line)), command) {
        (name, _) if name.is_empty() => Kind::Nothing,
        (name, Some(_)) => Kind::Command(name),
        (name, None) => Kind::Prose(name),
    }
}

/// `0x0010:  4500 0034` or bare groups of hexadecimal digits: `-x` and `-X`.
pub(super) fn is_hex_dump(line: &str) -> bool {
    let has_offset = line.starts_with("0x") && line.get(6..7) == Some(":");
    let is_group =
        |word: &str| matches!(word.len(), 2 | 4) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    has_offset || line.contains(' ') && line.split_whitespace().all(is_group)
}

/// The command behind a prompt (`$`, `%`, `#`, `[user@host dir]$`, `host:~ user$`), or one that starts with
/// tcpdump's name.
fn command(line: &str) -> Option<&str> {
    let bare = line.strip_prefix("sudo ").unwrap_or(line);
    if bare.starts_with("tcpdump ") || bare.starts_with("tshark ") {
        return Some(line);
    }
    let (prompt, command) = line.split_once(['$', '%', '#'])?;
    let is_prompt =
        prompt.is_empty() || prompt.contains('@') || prompt.contains(":~") || prompt.ends_with(']');
    let command = command.strip_prefix(' ')?.trim_start();
    // `# Heading` is Markdown more often than root's prompt.
    let is_heading = prompt.is_empty() && line.starts_with('#') && !command.contains("tcpdump");
    (is_prompt && !is_heading && !command.is_empty()).then_some(command)
}

/// The name a line gives: without markup and list marks, and of a long line only its last sentence.
fn name(line: &str) -> String {
    let text = without_tags(line);
    let text = without_list_mark(
        text.trim_matches(|letter: char| letter.is_whitespace() || "#*=_`|~".contains(letter)),
    );
    let text = text.trim().trim_end_matches(':').trim_end();
    let text = if text.chars().count() > MAX_NAME { last_sentence(text) } else { text };
    cut(text)
}

/// A line of a web page's source that begins with a tag loses all its tags.
fn without_tags(line: &str) -> String {
    if !line.starts_with('<') {
        return line.to_owned();
    }
    let mut depth = 0_u32;
    let mut text = String::new();
    for letter in line.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => text.push(letter),
            _ => {}
        }
    }
    text
}

/// Drops `1)`, `2.`, `a)`, `-` and `+` in front.
fn without_list_mark(text: &str) -> &str {
    let Some((mark, rest)) = text.split_once(' ') else { return text };
    let label = mark.trim_start_matches('(').strip_suffix([')', '.']);
    let is_label = label.is_some_and(|label| {
        let is_number =
            !label.is_empty() && label.len() <= 3 && label.bytes().all(|byte| byte.is_ascii_digit());
        is_number || label.len() == 1 && label.bytes().all(|byte| byte.is_ascii_alphabetic())
    });
    if is_label || ["-", "+", "•"].contains(&mark) { rest } else { text }
}

fn last_sentence(text: &str) -> &str {
    let body = text.trim_end_matches(['.', '!', '?', ' ']);
    let start = [". ", "! ", "? "].iter().filter_map(|end| body.rfind(end)).max();
    let sentence = start.map_or(text, |start| text[start + 2..].trim());
    // `… (see Fig. 2)` ends in no sentence worth the name.
    if sentence.split_whitespace().count() < 3 { text } else { sentence }
}

/// At most [`MAX_NAME`] characters, cut at a blank where there is one.
fn cut(text: &str) -> String {
    let Some((limit, _)) = text.char_indices().nth(MAX_NAME) else { return text.to_owned() };
    let kept = &text[..limit];
    let kept = kept.rfind(' ').map_or(kept, |blank| &kept[..blank]);
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(name: &str) -> Kind {
        Kind::Prose(name.to_owned())
    }

    #[test]
    fn names_lose_their_marks() {
        assert_eq!(classify("## 2) With the option set:"), prose("With the option set"));
        assert_eq!(classify("a) mode = tcp"), prose("mode = tcp"));
        assert_eq!(classify("=== run 3 ==="), prose("run 3"));
        assert_eq!(classify("<h3>normal server</h3>"), prose("normal server"));
        assert_eq!(classify("# The relay"), prose("The relay"));
    }

    #[test]
    fn a_paragraph_on_one_line_gives_its_last_sentence() {
        let text =
            "Why is it slow? Many words come first, so many that nobody reads them. This is what I saw:";
        assert_eq!(classify(text), prose("This is what I saw"));
        let Kind::Prose(long) = classify(&"word ".repeat(100)) else { panic!("prose") };
        assert!(long.ends_with("word…") && long.chars().count() <= MAX_NAME + 1, "{long}");
    }

    #[test]
    fn commands() {
        for text in [
            "sudo tcpdump -i eth0",
            "$ sudo tcpdump -i eth0",
            "[me@box dir]$ sudo tcpdump -i eth0",
            "# sudo tcpdump -i eth0",
        ] {
            assert_eq!(classify(text), Kind::Command("sudo tcpdump -i eth0".to_owned()), "{text}");
        }
        assert_eq!(classify("It cost $ 5 a month"), prose("It cost $ 5 a month"));
    }

    #[test]
    fn what_tcpdump_says_is_no_prose() {
        let start = "tcpdump: listening on eth0, link-type EN10MB (Ethernet), snapshot length 262144 bytes";
        assert_eq!(classify(start), Kind::RunStart);
        for text in [
            "tcpdump: verbose output suppressed, use -v[v]... for full protocol decode",
            "19 packets captured",
            "0 packets dropped by kernel",
            "^C",
            ".",
            "...",
            "[snip]",
            "<pre>",
            "```",
            "-----",
            "0x0010:  7f00 0001 e416  ....",
            "4500 003c 560c 4000",
        ] {
            assert_eq!(classify(text), Kind::Nothing, "{text}");
        }
    }
}
