//! Frames of scripts as text.

use tcpwhy_wire::calls::Place;

use super::stacks::short;

/// What Python calls the code outside all functions.
const OUTSIDE: &str = "<module>";
/// Stands between a function's name and those of what is defined in it.
const LOCALS: &str = "<locals>.";
/// Modules that are built into the interpreter.
const FROZEN: &str = "<frozen ";
/// Folders of other people's packages, in the standard library's.
const PACKAGES: [&str; 2] = ["site-packages/", "dist-packages/"];

/// Whose a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The standard library's: nobody is sent there who can be sent elsewhere.
    Standard,
    /// An installed package's.
    Package,
    /// The program's own.
    Program,
}

/// Whose a line is.
pub(super) fn origin(line: &Place) -> Origin {
    match in_standard_library(&line.file) {
        Some(path) if PACKAGES.iter().any(|packages| path.starts_with(packages)) => Origin::Package,
        Some(_) => Origin::Standard,
        None if line.file.starts_with(FROZEN) => Origin::Standard,
        None => Origin::Program,
    }
}

/// `server.py:37 in Handler.do_GET()`
pub(super) fn text(place: &Place) -> String {
    let (file, line) = (file(place), place.line);
    let at = if line == 0 { file.to_owned() } else { format!("{file}:{line}") };
    if place.function == OUTSIDE { at } else { format!("{at} in {}()", function(place)) }
}

/// What a line is called by those that it calls.
pub(super) fn name(place: &Place) -> String {
    if place.function == OUTSIDE { text(place) } else { function(place).to_owned() }
}

fn function(place: &Place) -> &str {
    short(place.function.rsplit(LOCALS).next().unwrap_or_default())
}

/// The name of its file, and in libraries that of the package too.
fn file(place: &Place) -> &str {
    let path = place.file.as_str();
    match in_standard_library(path) {
        Some(path) => PACKAGES.iter().find_map(|packages| path.strip_prefix(packages)).unwrap_or(path),
        None => path.rsplit('/').next().unwrap_or(path),
    }
}

/// What follows `lib/python3.11/` in a path, or `/lib/python3/` as Debian has it.
fn in_standard_library(path: &str) -> Option<&str> {
    let mut rest = path;
    while let Some((_, behind)) = rest.split_once("/lib/python3") {
        let (version, path) = behind.split_once('/')?;
        if version.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b't')) {
            return Some(path);
        }
        rest = behind;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(file: &str, function: &str) -> (String, Origin) {
        let (file, function) = (file.to_owned(), function.to_owned());
        let line = Place { file, function, line: 7, script: true, ..Place::default() };
        (text(&line), origin(&line))
    }

    #[test]
    fn libraries_are_told_from_programs() {
        for (file, name, origin) in [
            ("/usr/lib/python3.11/http/server.py", "http/server.py", Origin::Standard),
            ("/opt/py/lib/python3.13t/ssl.py", "ssl.py", Origin::Standard),
            ("<frozen runpy>", "<frozen runpy>", Origin::Standard),
            (
                "/v/lib/python3.12/site-packages/urllib3/connection.py",
                "urllib3/connection.py",
                Origin::Package,
            ),
            ("/usr/lib/python3/dist-packages/redis/client.py", "redis/client.py", Origin::Package),
            ("/home/me/server.py", "server.py", Origin::Program),
            ("server.py", "server.py", Origin::Program),
            ("<string>", "<string>", Origin::Program),
            ("/home/lib/python3stuff/server.py", "server.py", Origin::Program),
        ] {
            assert_eq!(told(file, "f"), (format!("{name}:7 in f()"), origin));
        }
    }

    #[test]
    fn names_are_those_that_people_write() {
        assert_eq!(told("a.py", "main.<locals>.Handler.do_GET").0, "a.py:7 in Handler.do_GET()");
        assert_eq!(told("a.py", "<module>").0, "a.py:7");
    }
}
