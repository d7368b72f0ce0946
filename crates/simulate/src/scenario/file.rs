//! A scenario as it stands in its file: every key there is. What is left out is `None`, so that a variant can be laid
//! over the base.

use serde::Deserialize;

use super::quantity::{Bytes, Rate, Share, Time, Written, from_text};
use super::step::Line;
use crate::link::{self, Queue};
use crate::tcp::{Congestion, DelayedAck, HoleFilled, IdleRestart, Nagle, Repair};

/// A table of optional keys, and how one is laid over another.
macro_rules! table {
    ($(#[$about:meta])* $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        pub(super) struct $name {
            $(pub(super) $field: Option<$type>,)*
        }

        impl $name {
            /// These keys, and those of `base` where there is none.
            pub(super) fn over(&self, base: &Self) -> Self {
                Self { $($field: self.$field.clone().or_else(|| base.$field.clone()),)* }
            }
        }
    };
}

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) about: String,
    /// Where the story or its numbers come from.
    pub(super) source: String,
    pub(super) seed: Option<u64>,
    /// Runs of each cell of a table.
    pub(super) seeds: Option<u32>,
    /// When a run ends that does not end by itself.
    pub(super) until: Option<Time>,
    pub(super) client: Host,
    pub(super) server: Host,
    pub(super) link: Link,
    pub(super) traffic: Option<Traffic>,
    pub(super) variant: Vec<Part>,
    pub(super) row: Vec<Part>,
    pub(super) column: Vec<Part>,
}

/// What a variant, a row or a column changes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) client: Host,
    pub(super) server: Host,
    pub(super) link: Link,
    pub(super) traffic: Option<Traffic>,
}

impl Part {
    /// What this part changes, over what `base` says.
    pub(super) fn over(&self, base: &Self) -> Self {
        let mut link = self.link.over(&base.link);
        link.up = one_over(self.link.up.as_ref(), base.link.up.as_ref());
        link.down = one_over(self.link.down.as_ref(), base.link.down.as_ref());
        Self {
            name: self.name.clone(),
            about: self.about.clone(),
            client: self.client.over(&base.client),
            server: self.server.over(&base.server),
            link,
            traffic: self.traffic.or(base.traffic),
        }
    }
}

/// One direction's keys over those of the base's same direction.
fn one_over(own: Option<&Lane>, base: Option<&Lane>) -> Option<Lane> {
    match (own, base) {
        (Some(own), Some(base)) => Some(own.over(base)),
        (own, base) => own.or(base).cloned(),
    }
}

table! {
    /// `[client]`, `[server]`: a stack by name, single settings of it, socket options, and how its program reads.
    Host {
        stack: String,
        mss: u16,
        timestamps: bool,
        window_scale: u8,
        sack: bool,
        ecn: Ecn,
        congestion: CongestionName,
        repair: Repair,
        proportional_rate_reduction: bool,
        new_data_in_recovery: bool,
        limited_transmit: bool,
        rack: bool,
        tail_loss_probe: bool,
        undo: bool,
        initial_window: u32,
        idle_restart: IdleRestart,
        nagle: Nagle,
        shortest_timeout: Time,
        send_buffer: Bytes,
        receive_buffer: Bytes,
        delayed_ack: Delay,
        hole_filled: HoleFilled,
        nodelay: bool,
        cork: bool,
        quickack: bool,
        reads_after: Time,
        reads_at_most: Bytes,
        read_pause: Time,
        reads_not_before: Time,
        steps: Vec<Line>,
    }
}

/// Who begins with ECN.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ecn {
    Off,
    Accepts,
    Asks,
}

/// Congestion control by its name.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CongestionName {
    Reno,
    Cubic,
    None,
}

impl From<CongestionName> for Congestion {
    fn from(name: CongestionName) -> Self {
        match name {
            CongestionName::Reno => Self::Reno,
            CongestionName::Cubic => Self::Cubic { hystart: true },
            CongestionName::None => Self::None,
        }
    }
}

/// `off`, `40 ms`, `heartbeat 200 ms`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay(pub(super) DelayedAck);

impl Written for Delay {
    fn read(text: &str) -> Result<Self, String> {
        Ok(Self(match text.split_once(' ') {
            _ if text == "off" => DelayedAck::Off,
            Some(("heartbeat", period)) => DelayedAck::Heartbeat { period: Time::read(period)?.0 },
            _ => DelayedAck::Delay { delay: Time::read(text)?.0 },
        }))
    }
}

/// `8 packets`, `12 kB`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room(pub(super) Queue);

impl Written for Room {
    fn read(text: &str) -> Result<Self, String> {
        if let Some(packets) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
            let packets = packets.trim().parse().map_err(|_| format!("`{text}`: try 8 packets"))?;
            return Ok(Self(Queue::Packets(packets)));
        }
        let bytes = Bytes::read(text).map_err(|_| format!("`{text}`: try 8 packets or 12 kB"))?;
        Ok(Self(Queue::Bytes(bytes.0 as usize)))
    }
}

/// `data 5`, `tail 1`, `packet 7`, `syn 1`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drop(pub(super) link::Drop);

impl Written for Drop {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}`: try data 5, tail 1, packet 7 or syn 1, counted from 1");
        let (what, number) = text.split_once(' ').ok_or_else(wrong)?;
        let number = number.trim().parse().ok().filter(|number| *number > 0).ok_or_else(wrong)?;
        let drop = match what {
            "data" => link::Drop::Data,
            "tail" => link::Drop::Tail,
            "packet" => link::Drop::Packet,
            "syn" => link::Drop::Syn,
            _ => return Err(wrong()),
        };
        Ok(Self(drop(number)))
    }
}

from_text!(Delay: "\"40 ms\"", Room: "\"8 packets\"", Drop: "\"data 5\"");

table! {
    /// `[link]`: both directions, and what is different in one.
    Link {
        round_trip: Time,
        rate: Rate,
        queue: Room,
        mark_above: usize,
        jitter: Time,
        loss: Share,
        reorder: Share,
        reorder_by: Time,
        duplicate: Share,
        drop: Vec<Drop>,
        up: Lane,
        down: Lane,
    }
}

table! {
    /// `[link.up]`, from the client to the server, and `[link.down]`.
    Lane {
        delay: Time,
        rate: Rate,
        queue: Room,
        mark_above: usize,
        jitter: Time,
        loss: Share,
        reorder: Share,
        reorder_by: Time,
        duplicate: Share,
        drop: Vec<Drop>,
    }
}

/// `[traffic]`: what the programs do, in one line: one of these. A variant's replaces the base's.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Traffic {
    pub(super) download: Option<Bytes>,
    pub(super) upload: Option<Bytes>,
    pub(super) updates: Option<Updates>,
    pub(super) requests: Option<Requests>,
}

/// Small messages in a rhythm.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Updates {
    pub(super) bytes: Bytes,
    pub(super) every: Time,
    pub(super) count: u64,
}

/// Requests and answers.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Requests {
    pub(super) request: Bytes,
    pub(super) answer: Bytes,
    pub(super) count: u64,
    /// Writes that a request, or an answer, is made of.
    pub(super) request_pieces: Option<u64>,
    pub(super) pieces: Option<u64>,
    /// How long the server thinks.
    pub(super) think: Option<Time>,
    /// How long the client waits between an answer and its next request.
    pub(super) pause: Option<Time>,
}
