//! What a program knows of its own traffic: the answer that an analyser of the capture has to find.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// One labelled run of a program. Written from the program's own log, never from an analysis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// The case's name.
    pub case: String,
    /// What the program does.
    pub story: String,
    /// `loopback` or `veth`.
    pub place: String,
    /// The captures of this run, in the truth's own folder.
    pub captures: Vec<CaptureFile>,
    /// `ip:port` of the server.
    pub server: String,
    /// Options set on the client's sockets.
    pub client_options: Vec<String>,
    /// Options set on the server's sockets.
    pub server_options: Vec<String>,
    /// TCP connections made.
    pub connections: u64,
    /// The start that all times below count from, in µs since the epoch.
    pub start_unix_us: u64,
    /// Requests with their answers; empty for traffic that is not of this kind.
    pub exchanges: Vec<Exchange>,
    /// Latency of these exchanges as the client's program saw it; null without exchanges.
    pub latency: Option<Latency>,
    /// One-way traffic; null for exchanges.
    pub stream: Option<Stream>,
}

/// One capture of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureFile {
    /// File name.
    pub file: String,
    /// Where it was recorded: `client`, `server`, or `both` where they are one host.
    pub vantage: String,
}

/// One request with its answer; times in µs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// When the client wrote each piece of its request.
    pub client_wrote: Vec<u64>,
    /// When the server had read the whole request.
    pub server_read: u64,
    /// When the server wrote each piece of its answer.
    pub server_wrote: Vec<u64>,
    /// When the client had read the whole answer.
    pub client_read: u64,
}

/// One-way traffic; times in µs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Who sends: `client` or `server`.
    pub from: String,
    /// Bytes sent in all.
    pub bytes: u64,
    /// When each write began.
    pub wrote: Vec<u64>,
    /// When each read returned, and how many bytes it brought.
    pub read: Vec<(u64, u64)>,
}

/// Latency of exchanges, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    pub p50_ms: f64,
    /// Slowest.
    pub max_ms: f64,
    /// All of them together.
    pub sum_ms: f64,
}

impl Latency {
    /// Of these exchanges, from the first write to the read of the answer's end.
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let mut each: Vec<f64> = exchanges.iter().map(Exchange::latency_ms).collect();
        each.sort_by(f64::total_cmp);
        let max_ms = *each.last()?;
        Some(Self { p50_ms: each[each.len() / 2], max_ms, sum_ms: each.iter().sum() })
    }
}

impl Exchange {
    /// From the first write of the request to the read of the answer's end, in ms.
    pub fn latency_ms(&self) -> f64 {
        let first = self.client_wrote.first().copied().unwrap_or(self.client_read);
        (self.client_read - first) as f64 / 1e3
    }
}

impl Truth {
    /// Reads a truth file.
    pub fn load(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    /// Writes it: the list of exchanges one a line, the rest by field.
    pub fn save(&self, path: &Path) -> Result<()> {
        let whole = serde_json::to_value(self)?;
        let fields = whole.as_object().context("a truth is an object")?;
        let lines: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name:?}: {}", lines_of(value))).collect();
        std::fs::write(path, format!("{{\n{}\n}}\n", lines.join(",\n")))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// JSON with one element of a list of objects a line, so that a person can read it and a diff is short.
fn lines_of(value: &serde_json::Value) -> String {
    match value.as_array() {
        Some(items) if items.iter().any(serde_json::Value::is_object) => {
            let lines: Vec<String> = items.iter().map(|item| format!("  {item}")).collect();
            format!("[\n{}\n]", lines.join(",\n"))
        }
        _ => value.to_string(),
    }
}

/// The clock of a run: the one that capture timestamps come from.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Duration,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { start: since_epoch() }
    }

    /// µs since the start.
    pub fn now(self) -> u64 {
        since_epoch().saturating_sub(self.start).as_micros() as u64
    }

    /// The start, in µs since the epoch.
    pub fn start_unix_us(self) -> u64 {
        self.start.as_micros() as u64
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
