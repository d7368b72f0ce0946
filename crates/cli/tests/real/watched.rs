//! What each verb says of a program.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::program::Program;
use crate::run::{Desk, Ran};

/// A capture of loopback that runs.
pub(crate) struct Capture {
    desk: Desk,
    child: Child,
}

impl Capture {
    /// Begins; returns when packets are seen.
    pub(crate) fn of(program: &Program) -> Self {
        let desk = Desk::new();
        let port = program.port.to_string();
        let mut command = desk.command();
        command.args(["live", "-i", "lo", "--format", "json", "--write", "packets", "tcp", "port", &port]);
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        assert!(line.contains("listening on lo"), "{line}");
        Self { desk, child }
    }

    /// Ends, and what the analysis of the file says.
    pub(crate) fn analysed(mut self) -> Report {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal sent");
        assert!(self.child.wait().expect("its end").success());
        Report(succeeded(self.desk.run(&["packets", "--format", "json", "--top", "1000"])).json())
    }
}

/// `tcpwhy-report/2` of one capture.
pub(crate) struct Report(Value);

impl Report {
    fn list(&self, field: &str) -> impl Iterator<Item = &Value> {
        self.0["captures"][0][field].as_array().expect("a list").iter()
    }

    /// The findings that are problems.
    pub(crate) fn problems(&self) -> Vec<&Value> {
        self.list("findings").filter(|finding| finding["severity"] == "problem").collect()
    }

    /// Exchanges of all connections.
    pub(crate) fn exchanges(&self) -> u64 {
        self.list("connections").filter_map(|one| one["exchanges"]["count"].as_u64()).sum()
    }

    /// Bytes to clients, of all connections.
    pub(crate) fn bytes_to_clients(&self) -> u64 {
        self.list("connections").filter_map(|one| one["bytes"]["to_client"].as_u64()).sum()
    }

    /// The median exchange of the only connection, in ms.
    pub(crate) fn median_exchange(&self) -> Option<f64> {
        self.list("connections").next()?["exchanges"]["p50_ms"].as_f64()
    }
}

fn succeeded(ran: Ran) -> Ran {
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    ran
}

/// Looks at a program's connection in which it was held by Nagle's algorithm, and all looks.
pub(crate) fn looks_held(program: &Program) -> Option<(u64, u64)> {
    let pid = program.pid().to_string();
    let args = ["sockets", "-p", &pid, "--watch", "--duration", "600ms", "--format", "json"];
    let lines = succeeded(Desk::new().run(&args)).stdout;
    let sum: Value = serde_json::from_str(lines.lines().last()?).expect("an object");
    let mut sockets = sum["sockets"].as_array().expect("a list").iter();
    let socket =
        sockets.find(|socket| socket["state"] == "ESTABLISHED" && is_at(&socket["local"], program.port))?;
    Some((socket["seen"]["nagle"].as_u64()?, socket["looks"].as_u64()?))
}

/// Whether an address has this port: the JVM's IPv4 addresses are those of IPv6 sockets.
fn is_at(address: &Value, port: u16) -> bool {
    address.as_str().is_some_and(|address| address.ends_with(&format!(":{port}")))
}

/// `tcpwhy-prove/1` of its connection.
pub(crate) fn proved(program: &Program) -> Value {
    let pid = program.pid().to_string();
    // Six exchanges of 44 ms at the least fit into what is measured of a block.
    succeeded(Desk::new().run(&["prove", "-p", &pid, "--block", "600ms", "--format", "json"])).json()
}
