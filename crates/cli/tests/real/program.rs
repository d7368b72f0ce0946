//! A program in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tcpwhy_host::process::sockets_of;
use tcpwhy_host::sockets::{describe, options};
use tcpwhy_wire::sockets::State;

use crate::PATIENCE;

/// Python's own server, with HTTP/1.1, on any port: it tells which.
pub(crate) const PYTHON: &str = "import http.server as h; \
                                 h.test(h.SimpleHTTPRequestHandler, h.ThreadingHTTPServer, 'HTTP/1.1', 0, '127.0.0.1')";

/// A program that serves; ended when dropped.
pub(crate) struct Program {
    child: Child,
    pub(crate) port: u16,
}

impl Program {
    /// Starts it and waits for a line with its port. `None`: there is no such program here.
    pub(crate) fn that_tells_its_port(command: &mut Command) -> Option<Self> {
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null()).spawn();
        let mut child = spawned.ok()?;
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let port = lines.find_map(|line| port_in(&line.ok()?));
        // What it says later goes nowhere, and does not end it.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let Some(port) = port else {
            let _ = child.wait();
            return None;
        };
        Some(Self { child, port })
    }

    /// Starts one that was told its port, and waits until it accepts. `None`: there is no such program here.
    pub(crate) fn on_port(port: u16, command: &mut Command) -> Option<Self> {
        let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).spawn();
        let mut program = Self { child: spawned.ok()?, port };
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "{command:?} does not accept");
            assert_eq!(program.child.try_wait().expect("a child"), None, "{command:?} has ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(program)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `127.0.0.1:PORT`
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// TCP_NODELAY of its connections, read from the sockets themselves.
    pub(crate) fn nodelay(&self) -> Vec<bool> {
        let established = |twin: &_| {
            let found = describe(twin).ok().flatten();
            found.is_some_and(|found| found.socket.state == State::Established)
        };
        let descriptors = sockets_of(self.pid()).expect("root may look");
        let twins = descriptors.iter().filter_map(|descriptor| descriptor.duplicate().ok());
        twins.filter(established).filter_map(|twin| options(&twin).ok()?.nodelay).collect()
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(mut self) {
        let begun = Instant::now();
        while self.child.try_wait().expect("a child").is_none() {
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks it to end as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal sent");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `… port 8000 …`
fn port_in(line: &str) -> Option<u16> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "port");
    words.nth(1)?.parse().ok()
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    listener.local_addr().expect("an address").port()
}

/// The programs of these tests.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/programs").join(name)
}
