//! Programs that write each answer in two pieces: found in packets, at the socket, at the call, and proved.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::attempts::one_succeeds;
use crate::client::Client;
use crate::program::{PYTHON, Program, source};
use crate::run::Desk;
use crate::watched::{Capture, Report, looks_held, proved};
use crate::{has_rights, holds, skipped};

/// What Linux holds an ACK for, in ms, with what a busy machine adds.
const HELD: std::ops::Range<f64> = 36.0..60.0;
/// An exchange in which nothing is held, in ms, on a busy machine.
const FAST: f64 = 5.0;
/// Exchanges whose median is taken.
const SEVERAL: usize = 9;

fn python(script_in: &Path) -> Command {
    let mut python = Command::new("python3");
    python.args(["-u", "-c", PYTHON]).current_dir(script_in);
    python
}

/// How a runtime's program is started, or why it cannot be.
fn command_of(runtime: &str, desk: &Desk) -> Result<Command, String> {
    let [program, source] = match runtime {
        "java" => ["java".to_owned(), source("Split.java").display().to_string()],
        "node" => ["node".to_owned(), source("split.js").display().to_string()],
        _ => [go(desk)?, String::new()],
    };
    let mut command = Command::new(&program);
    command.args((!source.is_empty()).then_some(source)).current_dir(desk.path());
    let is_there = runtime == "go" || Command::new(&program).arg("--version").output().is_ok();
    if is_there { Ok(command) } else { Err(format!("there is no {program}")) }
}

/// Builds the program in Go.
fn go(desk: &Desk) -> Result<String, String> {
    let program = desk.path().join("split").display().to_string();
    let mut build = Command::new("go");
    build.args(["build", "-o", &program]).arg(source("split.go")).env("CGO_ENABLED", "0");
    let built = build.output().map_err(|_| "there is no go".to_owned())?;
    assert!(built.status.success(), "{built:?}");
    Ok(program)
}

/// Everything that is to be said of a program that splits its answers, beside what its client's clock says.
fn is_held_and_cured(program: &Program, start: impl Fn() -> Client) -> Result<(), String> {
    let capture = Capture::of(program);
    let client = start();
    let felt = client.clock.median_of_next(SEVERAL);
    holds!(HELD.contains(&felt), "the client itself waits {felt} ms");
    let report = capture.analysed();
    is_blamed(program, &report, felt)?;

    let (held, looks) = looks_held(program).ok_or("its socket is not there")?;
    // 36 of 44 ms, where the machine has time for its programs.
    holds!(held * 4 > looks, "held in {held} of {looks} looks");

    let before = client.clock.told().len();
    let proof = proved(program);
    is_proved(&proof)?;
    let (on, fast) =
        (exchanges_on(&proof), client.clock.told()[before..].iter().filter(|ms| **ms < FAST).count());
    holds!(fast * 2 > on, "the client felt {fast} fast exchanges where {on} were claimed");

    holds!(program.nodelay() == [false], "left changed: {:?}", program.nodelay());
    let felt = client.clock.median_of_next(SEVERAL);
    holds!(HELD.contains(&felt), "afterwards the client waits {felt} ms");
    Ok(())
}

fn is_blamed(program: &Program, report: &Report, felt: f64) -> Result<(), String> {
    let problems = report.problems();
    let found = problems.iter().find(|finding| finding["rule"] == "split-write");
    let blamed = found.map(|finding| &finding["blame"]["address"]);
    holds!(blamed == Some(&program.address().into()), "{problems:#?}");
    let median = report.median_exchange();
    let as_felt = median.is_some_and(|median| (median / felt - 1.0).abs() < 0.15);
    holds!(as_felt, "packets show {median:?} ms, the client felt {felt}");
    Ok(())
}

fn is_proved(proof: &Value) -> Result<(), String> {
    let exchange =
        proof["measures"].as_array().into_iter().flatten().find(|one| one["measure"] == "exchange");
    let ms = |field: &str| exchange.and_then(|one| one[field].as_f64()).unwrap_or(f64::NAN);
    let is_right = HELD.contains(&ms("off_ms")) && ms("on_ms") < FAST && ms("low_ms") > HELD.start - FAST;
    holds!(proof["verdict"] == "proved" && proof["measure"] == "exchange" && is_right, "{proof:#}");
    let all = proof["sockets"].as_array().into_iter().flatten();
    let put_back = all.filter(|one| one["before"] == false && one["after"] == false).count();
    holds!(put_back == 1, "{proof:#}");
    Ok(())
}

/// Exchanges that a proof measured with the option on.
fn exchanges_on(proof: &Value) -> usize {
    let blocks = proof["blocks"].as_array().into_iter().flatten();
    let on = blocks.filter(|block| block["on"] == true).filter_map(|block| block["exchanges"].as_u64());
    on.sum::<u64>() as usize
}

/// What `tcpwhy run` says of a server, after so many exchanges with a client.
fn recorded(command: &Command, start: impl Fn(&Program) -> Client, is_interrupted: bool) -> String {
    let desk = Desk::new();
    let mut run = desk.command();
    run.args(["run", "--no-capture", "--output"]).arg(desk.path().join("report")).arg("--");
    run.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        run.current_dir(folder);
    }
    let program = Program::that_tells_its_port(&mut run).expect("it ran before");
    let client = start(&program);
    client.clock.median_of_next(SEVERAL);
    drop(client);
    if is_interrupted {
        program.interrupt();
    }
    program.wait();
    std::fs::read_to_string(desk.path().join("report")).expect("a report")
}

/// Without Nagle's algorithm the same pieces do no harm.
fn is_clean_with_nodelay(mut command: Command) -> Result<(), String> {
    let program = Program::that_tells_its_port(command.arg("nodelay")).ok_or("it does not start")?;
    let capture = Capture::of(&program);
    let client = Client::plain(program.port);
    let felt = client.clock.median_of_next(SEVERAL);
    let report = capture.analysed();
    holds!(felt < FAST && program.nodelay() == [true], "the client itself waits {felt} ms");
    holds!(report.exchanges() >= SEVERAL as u64, "{} exchanges", report.exchanges());
    holds!(report.problems().is_empty(), "{:#?}", report.problems());
    Ok(())
}

/// The story of a runtime's program, and what its recorder says, with the words that must be in it.
fn of_runtime(test: &str, runtime: &str, words: &[&str]) {
    let desk = Desk::new();
    if !has_rights(test) {
        return;
    }
    let command = || command_of(runtime, &desk);
    if let Err(why) = command() {
        return skipped(test, &why);
    }
    one_succeeds(|| {
        let program = Program::that_tells_its_port(&mut command()?).ok_or("it does not start")?;
        is_held_and_cured(&program, || Client::plain(program.port))?;
        drop(program);
        is_clean_with_nodelay(command()?)?;
        let report = recorded(&command()?, |program| Client::plain(program.port), false);
        let missing: Vec<_> = words.iter().filter(|word| !report.contains(**word)).collect();
        holds!(missing.is_empty(), "{missing:?} is not in\n{report}");
        Ok(())
    });
}

#[test]
fn cpythons_http_server_with_keep_alive() {
    const NAME: &str = "cpythons_http_server_with_keep_alive";
    if !has_rights(NAME) {
        return;
    }
    let desk = Desk::new();
    desk.file("page.txt", b"hello\n");
    let start = |program: &Program| Client::curl(&program.address(), "page.txt");
    let Some(program) = Program::that_tells_its_port(&mut python(desk.path())) else {
        return skipped(NAME, "there is no python3");
    };
    if start(&program).is_none() {
        return skipped(NAME, "there is no curl");
    }
    drop(program);
    one_succeeds(|| {
        let program = Program::that_tells_its_port(&mut python(desk.path())).ok_or("it does not start")?;
        is_held_and_cured(&program, || start(&program).expect("curl is there"))?;
        drop(program);
        let report = recorded(&python(desk.path()), |program| start(program).expect("curl is there"), true);
        // The script's line, the interpreter's, or without symbols its file.
        let place = ["socketserver.py", "sock_send", "python"].iter().any(|name| report.contains(name));
        let is_told = report.contains("split-write: ") && report.contains("send() call");
        holds!(is_told && place && report.contains("TCP_NODELAY never set on this socket"), "{report}");
        Ok(())
    });
}

#[test]
fn a_jvm_program_with_plain_sockets() {
    let words = [
        "split-write: ",
        "as 20 + 30 bytes:",
        "write0",
        "2 write() calls a message",
        "TCP_NODELAY switched off",
    ];
    of_runtime("a_jvm_program_with_plain_sockets", "java", &words);
}

#[test]
fn a_node_program_with_nagles_algorithm() {
    let words = [
        "split-write: ",
        "as 20 + 30 bytes:",
        "2 write() calls a message",
        "TCP_NODELAY never set on this socket",
    ];
    of_runtime("a_node_program_with_nagles_algorithm", "node", &words);
}

#[test]
fn a_go_program_with_nagles_algorithm() {
    // The library that others get by the loader cannot be put into it: the kernel's own events tell.
    let words = [
        "split-write: ",
        "as 20 + 30 bytes:",
        "split.go:27 in main.main(), a write() call a message",
        "split.go:28 in main.main(), a write() call a message",
        "TCP_NODELAY switched off at split.go:21 in main.main()",
    ];
    of_runtime("a_go_program_with_nagles_algorithm", "go", &words);
}
