//! What is said on standard error when something cannot be done: one line, and what to try.

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use tcpwhy_report::plain::plain;
use tcpwhy_wire::container::OpenError;

use crate::TROUBLE;

/// What to try where rights are missing.
#[cfg(unix)]
pub(crate) fn try_sudo() -> &'static str {
    if rustix::process::geteuid().is_root() {
        "root lacks that here, as in some containers"
    } else {
        "try sudo"
    }
}

/// Says one line. That standard error cannot be written is the one thing nobody can be told.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "tcpwhy: {}", plain(line));
}

/// Says what is wrong with an input.
pub(crate) fn about(path: &Path, what: &str) {
    say(&format!("{}: {what}", name(path)));
}

/// What an input is called.
pub(crate) fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.to_string_lossy().into_owned() }
}

/// The end of a run that could not go on.
pub(crate) fn fatal(error: &anyhow::Error) -> ExitCode {
    say(&format!("{error:#}"));
    ExitCode::from(TROUBLE)
}

/// Prints clap's message: help, version, or what is wrong with the command line.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // clap repeats arguments as they came, and a shell's * makes arguments of file names.
    let text = error.render().to_string();
    if text.chars().any(|c| c.is_control() && c != '\n') {
        let lines: Vec<_> = text.lines().map(plain).collect();
        let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
    } else {
        let _ = error.print();
    }
    if error.use_stderr() { ExitCode::from(TROUBLE) } else { ExitCode::SUCCESS }
}

/// Why the system did not give us the input, and what to try.
pub(crate) fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        ErrorKind::PermissionDenied => {
            "permission denied (captures made by root are root's): try sudo, or chown the file".to_owned()
        }
        ErrorKind::IsADirectory => "is a directory: name the captures in it, such as dir/*.pcap".to_owned(),
        _ => error.to_string(),
    }
}

const EMPTY: &str = "empty: nothing was recorded. tcpdump writes when its buffer is full or at its end: \
                     stop it with Ctrl-C, or give it -U";

/// Why the content is nothing that can be analysed, and what to try.
pub(crate) fn no_capture(error: &OpenError) -> String {
    match error {
        OpenError::Empty => EMPTY.to_owned(),
        OpenError::Read(error) => unreadable(error),
        _ => error.to_string(),
    }
}

const NEITHER: &str = "neither a capture (pcap, pcapng, .gz, .zst) nor lines that tcpdump printed: \
                       try editcap -F pcapng on it, if it is a capture of another kind";

/// What an input that is neither a capture nor text is, and what to try. `start` is how it begins.
pub(crate) fn no_text(start: &[u8]) -> &'static str {
    match start {
        [0x7f, b'E', b'L', b'F', ..] => "a program, not a capture: to record one, try tcpdump -w slow.pcap",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "text in UTF-16: try iconv -f UTF-16 -t UTF-8 on it",
        _ => NEITHER,
    }
}

/// What a text without a packet lacks. `unread` are the lines that resemble packets, and the first one's number;
/// `timeless` packets have no time.
pub(crate) fn no_packets(unread: Option<(u64, u64)>, timeless: u64) -> String {
    match unread {
        _ if timeless > 0 => "its packets have no times: try tcpdump without -t".to_owned(),
        Some((count, first)) => format!(
            "{count} lines resemble packets, the first is line {first}, but none can be read: try tcpdump -n -tt"
        ),
        None => NEITHER.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named() {
        assert!(no_text(b"\x7fELF\x02\x01").starts_with("a program"));
        assert!(no_text(b"\xff\xfe2\x001\0").contains("UTF-16"));
        assert!(no_packets(None, 3).contains("-t"));
        assert!(no_packets(Some((2, 17)), 0).contains("line 17"));
        assert_eq!((no_text(b"\0"), no_packets(None, 0).as_str()), (NEITHER, NEITHER));
    }
}
