//! `tcpwhy link` with real programs. Needs root, or user namespaces.

use std::io::Write;
use std::process::{Command, Output};

fn link(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.arg("link").args(args).stdin(std::process::Stdio::null()).output().expect("the binary runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether links can be made here and the program is there; says so where not.
fn able(test: &str, program: &str) -> bool {
    let has =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success());
    let able = has(program) && link(&["--", "true"]).status.success();
    if !able {
        // Straight to standard error, which shows it; eprintln! is kept from a passing test.
        let _ =
            writeln!(std::io::stderr(), "SKIPPED {test}: it wants {program}, and root or user namespaces");
    }
    able
}

#[test]
fn wrong_usage_is_said_in_one_line() {
    for (args, said) in [
        (&["--delay", "20", "--", "true"][..], "try 20ms, 1.5s or 300us"),
        (&["--loss", "0.01", "--", "true"], "try 1% or 0.5%"),
        (&["--queue", "5", "--", "true"], "--queue needs --rate"),
        (&["--reorder", "1%", "--", "true"], "--reorder needs --reorder-by"),
        (&["--delay", "20ms"], "nothing to run"),
        (&["--delay", "20ms", "true"], "unexpected argument 'true'"),
    ] {
        let output = link(args);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{args:?}: {output:?}");
        let stderr = stderr(&output);
        assert_eq!(stderr.lines().filter(|line| line.contains(said)).count(), 1, "{args:?}: {stderr}");
    }
}

#[test]
fn exit_status_and_output_are_the_commands() {
    if !able("exit_status_and_output_are_the_commands", "env") {
        return;
    }
    let output = link(&["--", "sh", "-c", "echo $TCPWHY_LOCAL-$TCPWHY_PEER-{peer}; exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "10.0.1.1-10.0.1.2-10.0.1.2\n");
    assert!(stderr(&output).contains("exit status 7"), "{output:?}");
    assert_eq!(link(&["--", "sh", "-c", "kill -KILL $$"]).status.code(), Some(128 + 9));
    assert_eq!(link(&["--", "no-such-program-here"]).status.code(), Some(127));
    let output = link(&["--peer", "exit 4", "--", "echo", "ran"]);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{output:?}");
    assert!(stderr(&output).contains("with exit status 4"), "{output:?}");
}

const SERVER: &str = "import socket
s = socket.create_server(('', 8000)); c, _ = s.accept(); c.sendall(b'x' * 20000); c.close()";
const CLIENT: &str = "import socket, sys
c = socket.create_connection((sys.argv[1], 8000)); n = 0
while d := c.recv(65536): n += len(d)
print(n)";

#[test]
fn a_download_is_slowed_reported_and_kept() {
    if !able("a_download_is_slowed_reported_and_kept", "python3") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (captures, report) = (folder.path().join("kept"), folder.path().join("report.json"));
    let peer = format!("exec python3 -c \"{SERVER}\"");
    let args = ["--delay", "20ms", "--down-drop-data", "3", "--format", "json", "--peer", &peer, "--capture"];
    let (captures_arg, report_arg) = (captures.to_string_lossy(), report.to_string_lossy());
    let rest = [&captures_arg, "-o", &report_arg, "--", "python3", "-c", CLIENT, "{peer}"];
    let output = link(&[&args[..], &rest].concat());
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"20000\n"[..]), "{output:?}");
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&report).expect("a report")).expect("JSON");
    assert_eq!(report["format"], "tcpwhy-link/1");
    let down = &report["traffic"]["down"];
    assert_eq!(down["events"]["dropped: by plan (data segment 3)"], 1, "{down}");
    let count = |what: &str| down[what]["packets"].as_u64().expect("a count");
    assert_eq!(count("sent"), count("arrived") + 1, "{down}");
    // Two round trips of 40 ms at least: the handshake, then the request's answer and what was lost of it.
    assert!(report["command"]["ms"].as_f64().expect("a time") > 80.0, "{}", report["command"]);
    assert_eq!(report["report"]["captures"][0]["connections"].as_array().map(Vec::len), Some(1));
    for name in ["client.pcapng", "server.pcapng"] {
        assert!(captures.join(name).is_file(), "{name}");
    }
}
