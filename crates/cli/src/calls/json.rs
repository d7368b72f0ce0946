//! What the calls tell, for programs: `calls` in a capture of `tcpwhy-report/2`.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use tcpwhy_wire::calls::Place;

use super::sockets::{Group, Nodelay, Pattern};
use super::{NODELAY, Recorded, Watched};

impl Serialize for Recorded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.first(usize::MAX).serialize(serializer)
    }
}

impl Serialize for First<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(recorded, most) = *self;
        let about = recorded.about();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("recorder", &about.recorder)?;
        map.serialize_entry("programs", &about.programs)?;
        map.serialize_entry("calls", &recorded.sockets.iter().map(|socket| socket.calls).sum::<u64>())?;
        map.serialize_entry("lost", &about.lost)?;
        map.serialize_entry("interrupted", &about.interrupted)?;
        map.serialize_entry("fix", &text(&about.fix))?;
        map.serialize_entry("unseen", &text(&about.unseen))?;
        map.serialize_entry("no_packets", &text(&about.no_packets))?;
        map.serialize_entry("sockets", &Sockets(recorded, most))?;
        map.end()
    }
}

/// A recording, and how many of its sockets are told.
pub(crate) struct First<'a>(&'a Recorded, usize);

/// One by one: a recording may have a hundred thousand.
struct Sockets<'a>(&'a Recorded, usize);

impl Serialize for Sockets<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.sockets.iter().take(self.1).map(|socket| self.0.socket_json(socket)))
    }
}

impl Recorded {
    /// The same with no more than so many of its sockets.
    pub(crate) fn first(&self, most: usize) -> First<'_> {
        First(self, most)
    }

    fn socket_json(&self, socket: &Watched) -> Value {
        let patterns: Vec<_> =
            socket.groups().into_iter().map(|(pattern, group)| self.pattern_json(pattern, group)).collect();
        json!({
            "local": socket.local.map(|address| address.to_string()),
            "peer": socket.peer.map(|address| address.to_string()),
            "accepted": socket.accepted,
            "processes": socket.processes,
            "calls": socket.calls,
            "messages": socket.messages,
            "split": socket.split,
            "wait_after_split_ms": socket.wait_after_split().map(milliseconds),
            "wait_after_others_ms": socket.wait_after_others().map(milliseconds),
            "unseen_bytes": socket.unseen(),
            "nodelay": self.nodelay_json(socket),
            "patterns": patterns,
        })
    }

    fn pattern_json(&self, pattern: &Pattern, group: &Group) -> Value {
        let writes: Vec<_> = pattern
            .iter()
            .map(|(stack, kind, count)| {
                json!({ "call": kind.name(), "count": count, "stack": self.stack_json(*stack) })
            })
            .collect();
        json!({ "messages": group.messages, "pieces": group.pieces, "sizes": group.sizes, "writes": writes })
    }

    fn nodelay_json(&self, socket: &Watched) -> Value {
        let (state, stack, writes_before) = match socket.nodelay() {
            Nodelay::Off { stack } => ("off", stack, None),
            _ if self.about().fix == NODELAY => ("fix", 0, None),
            Nodelay::Never => ("never", 0, None),
            Nodelay::OtherSide => ("other-side", 0, None),
            Nodelay::Beginning => ("beginning", 0, None),
            Nodelay::Set { stack, writes_before } => ("set", stack, Some(writes_before)),
        };
        json!({ "state": state, "writes_before": writes_before, "stack": self.stack_json(stack) })
    }

    fn stack_json(&self, stack: u32) -> Vec<Value> {
        self.reader.stack(stack).map(place_json).collect()
    }
}

fn place_json(place: &Place) -> Value {
    json!({
        "function": text(&place.function),
        "file": text(&place.file),
        "line": (place.line > 0).then_some(place.line),
        "module": place.module,
        "script": place.script,
    })
}

fn text(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Rounded to the microsecond, as all times of the report.
fn milliseconds(ns: i64) -> f64 {
    (ns as f64 / 1e3).round() / 1e3
}
