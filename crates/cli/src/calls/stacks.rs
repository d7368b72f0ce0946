//! Call stacks to the line that somebody can be sent to.

use tcpwhy_wire::calls::{Kind, Place};

use super::scripts::{self, Origin, origin};
use super::sockets::{Nodelay, Watched};
use super::{NODELAY, Recorded};

/// Sources of libraries whose code is generated into a program: the line to change is further out.
const FOREIGN: [&str; 3] = ["/rustc/", "/usr/include/", "/usr/lib/"];

/// Packages of Go's own library of which one is on every stack that ends in the kernel.
const GO_INNERMOST: [&str; 3] = ["internal/poll", "syscall", "runtime"];

/// Folders of Go's own library that write for programs, as a program built with `-trimpath` names them.
const GO_TRIMMED: [&str; 14] = [
    "bufio/",
    "bytes/",
    "compress/",
    "crypto/",
    "encoding/",
    "fmt/",
    "internal/",
    "io/",
    "log/",
    "net/",
    "os/",
    "runtime/",
    "syscall/",
    "vendor/",
];

/// Characters told of a function's name.
const LONGEST_NAME: usize = 60;

/// Where a call was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Site {
    /// The line to change: `server.c:118 in flush_chain()`.
    pub(super) text: String,
    /// What it called and that called on, to the interpreter's own call, where it is a script's; the text names the first in
    /// a library.
    pub(super) through: Vec<String>,
    /// Functions that it was called by, innermost first.
    pub(super) callers: Vec<String>,
}

impl Recorded {
    /// Where to send somebody who wants to change a call; a script's line, where a script was run.
    pub(super) fn site(&self, stack: u32) -> Option<Site> {
        let places: Vec<&Place> = self.reader.stack(stack).collect();
        let script = places.iter().position(|place| place.script).unwrap_or(places.len());
        let (native, lines) = places.split_at(script);
        if lines.is_empty() { native_site(native) } else { Some(script_site(native, lines)) }
    }

    /// Where a socket is written to, `in_pieces` or not as its packets show it, and what became of its `TCP_NODELAY`.
    pub(super) fn place(&self, socket: &Watched, in_pieces: bool) -> String {
        let nodelay = self.nodelay_text(socket);
        match socket.groups().first() {
            Some((pattern, _)) => {
                let calls = pattern.iter().map(|(stack, kind, calls)| self.calls_at(*stack, *kind, *calls));
                format!("{}. {nodelay}", calls.collect::<Vec<_>>().join("; "))
            }
            // Further apart than the pieces of a message that was meant to be one.
            None if in_pieces => {
                format!("each piece is a call of its own, some time after the one before. {nodelay}")
            }
            None => format!("each message is one call. {nodelay}"),
        }
    }

    /// `server.c:118 in flush_chain(), 6 send() calls a message`.
    pub(super) fn calls_at(&self, stack: u32, kind: Kind, calls: usize) -> String {
        let name = kind.name();
        let calls = if calls == 1 {
            format!("a {name}() call a message")
        } else {
            format!("{calls} {name}() calls a message")
        };
        match self.site(stack) {
            Some(site) => format!("{}, {calls}", site.text),
            None => format!("{calls}, whose stack was not kept"),
        }
    }

    /// What became of a socket's `TCP_NODELAY`, in words.
    pub(super) fn nodelay_text(&self, socket: &Watched) -> String {
        let at = |stack| {
            self.site(stack).map_or_else(|| "a call whose stack was not kept".to_owned(), |site| site.text)
        };
        match socket.nodelay() {
            Nodelay::Off { stack } => format!("TCP_NODELAY switched off at {}", at(stack)),
            _ if self.about().fix == NODELAY => "TCP_NODELAY set by --fix".to_owned(),
            Nodelay::Never => "TCP_NODELAY never set on this socket".to_owned(),
            Nodelay::OtherSide => "TCP_NODELAY never set on this socket, only on the other side's".to_owned(),
            Nodelay::Beginning => "TCP_NODELAY on from the beginning".to_owned(),
            Nodelay::Set { stack, writes_before: 0 } => {
                format!("TCP_NODELAY set at {}, before the first write", at(stack))
            }
            Nodelay::Set { stack, writes_before: 1 } => {
                format!("TCP_NODELAY set at {}, but only after 1 write", at(stack))
            }
            Nodelay::Set { stack, writes_before } => {
                format!("TCP_NODELAY set at {}, but only after {writes_before} writes", at(stack))
            }
        }
    }
}

/// The innermost line of the program's own, else its innermost function.
fn native_site(places: &[&Place]) -> Option<Site> {
    let go = places.iter().find_map(|place| go_library(place));
    let at = places.iter().position(|place| is_own(place, go)).unwrap_or(0);
    let (place, callers) = places.get(at..)?.split_first()?;
    let names = callers.iter().map(|place| short(&place.function)).filter(|name| !name.is_empty());
    Some(Site { text: text(place), through: Vec::new(), callers: names.map(str::to_owned).collect() })
}

/// The innermost line outside the standard library, and what the interpreter made of it.
fn script_site(native: &[&Place], lines: &[&Place]) -> Site {
    // In a program of the standard library alone, its innermost line says most.
    let at = lines.iter().position(|line| origin(line) != Origin::Standard).unwrap_or(0);
    let (inner, rest) = lines.split_at(at);
    let Some((line, callers)) = rest.split_first() else {
        return Site::default();
    };
    let mut text = scripts::text(line);
    if let Some(entered) = inner.last() {
        text = format!("{text}, through {}", scripts::text(entered));
    }
    let own = callers.iter().find(|line| origin(line) == Origin::Program);
    if let Some(own) = own.filter(|_| origin(line) == Origin::Package) {
        text = format!("{text}, called from {}", scripts::text(own));
    }
    let names = inner.iter().rev().skip(1).map(|line| scripts::name(line));
    Site {
        text,
        through: names.chain(native_site(native).map(|native| native.text)).collect(),
        callers: callers.iter().map(|line| scripts::name(line)).collect(),
    }
}

/// Whether somebody can be sent there; `go` is where Go's own library has its sources, in programs of Go.
fn is_own(place: &Place, go: Option<&str>) -> bool {
    let file = in_folder(place);
    let starts = |folders: &[&str]| folders.iter().any(|folder| file.starts_with(folder));
    let is_go = match go {
        Some("") => starts(&GO_TRIMMED),
        Some(library) => starts(&[library]),
        None => false,
    };
    let has_line = !place.file.is_empty() && place.line > 0;
    has_line && !is_go && !starts(&FOREIGN)
}

/// Go's linker says that it was built in `.` where that is not to be known.
fn in_folder(place: &Place) -> &str {
    place.file.strip_prefix("./").unwrap_or(&place.file)
}

/// Where Go's own library has its sources, from a function of it: `/usr/local/go/src/`.
fn go_library(place: &Place) -> Option<&str> {
    let package = GO_INNERMOST
        .into_iter()
        .find(|package| place.function.strip_prefix(package).is_some_and(|behind| behind.starts_with('.')))?;
    let (folder, _) = in_folder(place).rsplit_once('/')?;
    let library = folder.strip_suffix(package)?;
    (library.is_empty() || library.ends_with('/')).then_some(library)
}

/// `server.c:118 in flush_chain()`, or as much of it as is known.
fn text(place: &Place) -> String {
    let Place { file, line, module, .. } = place;
    let name = short(&place.function);
    // Demangled names of C++ bring their arguments along.
    let call = if name.contains('(') { name.to_owned() } else { format!("{name}()") };
    let file = file.rsplit('/').next().unwrap_or(file);
    match (file.is_empty() || *line == 0, name.is_empty()) {
        (false, false) => format!("{file}:{line} in {call}"),
        (false, true) => format!("{file}:{line}"),
        (true, false) => format!("{call} in {module}"),
        (true, true) => format!("{module}, no symbols"),
    }
}

/// C++ names can be pages long.
pub(super) fn short(name: &str) -> &str {
    let end = name.char_indices().nth(LONGEST_NAME).map_or(name.len(), |(at, _)| at);
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(function: &str, file: &str) -> Place {
        Place { function: function.into(), file: file.into(), line: 1, ..Place::default() }
    }

    #[test]
    fn the_library_of_go_is_nobodys_own() {
        let poll = place("internal/poll.(*FD).Write", "/usr/local/go/src/internal/poll/fd_unix.go");
        let library = go_library(&poll);
        assert_eq!(library, Some("/usr/local/go/src/"));
        assert!(!is_own(&poll, library));
        assert!(!is_own(&place("net.(*conn).Write", "/usr/local/go/src/net/net.go"), library));
        assert!(is_own(&place("main.flush", "/home/me/net/main.go"), library));
        let write = place("syscall.write", "./syscall/zsyscall_linux_amd64.go");
        let trimmed = go_library(&write);
        assert_eq!(trimmed, Some(""));
        assert!(!is_own(&place("net.(*conn).Write", "./net/net.go"), trimmed));
        assert!(is_own(&place("main.flush", "./example.com/server/main.go"), trimmed));
        // A C program may have such folders, and functions are not named so there.
        assert_eq!(go_library(&place("runtime", "/src/runtime/runtime.c")), None);
    }
}
