//! `tcpwhy serve` as a program, asked as browsers and others would ask it.

mod access;
mod limits;
#[cfg(target_os = "linux")]
mod live;
mod reports;
mod store;
mod upload;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::run::Desk;

/// How long anything may take here.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs in a folder of its own.
struct Served {
    desk: Desk,
    child: Child,
    /// `127.0.0.1:PORT`.
    host: String,
    token: String,
    cookie: String,
}

/// An answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    /// Names in small letters.
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// Serves a desk's folder; `None` where tcpwhy was built without its pages, which is said.
fn serve(desk: Desk, args: &[&str]) -> Option<Served> {
    let mut command = desk.command();
    command.args(["serve", "."]).args(args);
    Served::start(desk, command)
}

impl Served {
    fn start(desk: Desk, mut command: Command) -> Option<Self> {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("standard output"));
        stdout.read_line(&mut line).expect("a line");
        let Some((host, token)) =
            line.trim().strip_prefix("http://").and_then(|url| url.split_once("/?token="))
        else {
            let said = child.wait_with_output().expect("an end").stderr;
            let said = String::from_utf8_lossy(&said);
            assert!(said.contains("built without the page"), "{line}{said}");
            // Straight to standard error, which shows it; eprintln! is kept from a passing test.
            let _ = writeln!(io::stderr(), "SKIPPED serve: tcpwhy was built without its pages");
            return None;
        };
        let (host, token) = (host.to_owned(), token.to_owned());
        let mut served = Self { desk, child, host, token, cookie: String::new() };
        let entered = served.send(&served.head("GET", &format!("/?token={}", served.token), &[], None));
        let cookie = entered.header("set-cookie").expect("a cookie");
        served.cookie = cookie.split(';').next().expect("a pair").to_owned();
        Some(served)
    }

    /// The beginning of a request.
    fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], length: Option<usize>) -> Vec<u8> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.host);
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if let Some(length) = length {
            head += &format!("Content-Length: {length}\r\n");
        }
        (head + "\r\n").into_bytes()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream
    }

    /// Sends bytes as they are, and reads the answer.
    fn send(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // Who is refused may be so before it has said all.
        let _ = stream.write_all(bytes);
        Answer::read(&mut stream)
    }

    /// Asks as the page itself does.
    fn ask(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let origin = format!("http://{}", self.host);
        let own = [("Cookie", self.cookie.as_str()), ("Origin", &origin), ("Sec-Fetch-Site", "same-origin")];
        let mut request = self.head(method, path, &own, (method != "GET").then_some(body.len()));
        request.extend(body);
        self.send(&request)
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, b"")
    }

    fn state(&self) -> Value {
        self.get("/api/state").json()
    }

    /// The names of the captures that are listed.
    fn captures(&self) -> Vec<String> {
        let state = self.state();
        let all = state["captures"]["captures"].as_array().expect("a list");
        all.iter().map(|capture| capture["name"].as_str().expect("a name").to_owned()).collect()
    }

    fn begin(&self, capture: &str) -> Answer {
        self.ask("POST", "/api/jobs", json!({ "capture": capture }).to_string().as_bytes())
    }

    /// Waits until an analysis has ended; what became of it.
    fn ended(&self, id: &Value) -> Value {
        let start = Instant::now();
        loop {
            let jobs = self.get("/api/jobs").json();
            let mut all = jobs["jobs"].as_array().expect("a list").iter();
            let job = all.find(|job| job["id"] == *id).unwrap_or_else(|| panic!("no {id} in {jobs}"));
            if job["state"] != "waiting" && job["state"] != "running" {
                return job.clone();
            }
            assert!(start.elapsed() < PATIENCE, "{job}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Analyses a capture; the report's number.
    fn report(&self, capture: &str) -> u64 {
        let begun = self.begin(capture);
        assert_eq!(begun.status, 200, "{begun:?}");
        let job = self.ended(&begun.json()["job"]);
        assert_eq!(job["state"], "done", "{job}");
        job["report"].as_u64().expect("a number")
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Asks it to end, and waits; its exit status, and its folder.
    fn end(mut self, signal: Signal) -> (Option<i32>, Desk) {
        self.signal(signal);
        let status = self.child.wait().expect("an end");
        let desk = std::mem::replace(&mut self.desk, Desk::new());
        (status.code(), desk)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    fn read(stream: &mut TcpStream) -> Self {
        let mut all = Vec::new();
        // A reset comes after the answer where the server would not read on.
        let _ = stream.read_to_end(&mut all);
        let end = all.windows(4).position(|four| four == b"\r\n\r\n");
        let Some(end) = end else { return Self { status: 0, headers: Vec::new(), body: all } };
        let head = String::from_utf8_lossy(&all[..end]).into_owned();
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let header =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let mut answer = Self {
            status: status.unwrap_or_default(),
            headers: lines.filter_map(header).collect(),
            body: all[end + 4..].to_vec(),
        };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = unchunked(&answer.body);
        }
        answer
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Why it would not.
    #[track_caller]
    fn error(&self) -> String {
        self.json()["error"].as_str().expect("a sentence").to_owned()
    }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|two| two == b"\r\n") {
        let size =
            std::str::from_utf8(&body[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else { break };
        whole.extend(&body[end + 2..end + 2 + size]);
        body = &body[end + 4 + size..];
    }
    whole
}

/// The files of a folder by name, hidden ones too.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}
