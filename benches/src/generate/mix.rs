//! The mixes of traffic that the benchmark measures, and how their connections interleave.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Result;

use super::connection::{Connection, Path};
use super::pcap::PcapWriter;
use super::script::{Chat, Download, Script};
use super::segment::End;
use crate::random::Random;

/// One generated capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    /// The file's name without its ending.
    pub(crate) name: &'static str,
    /// What is in it.
    pub(crate) what: &'static str,
    /// Bytes stored of each frame.
    pub(crate) snaplen: u32,
    /// Connections at scale 1.
    pub(crate) connections: u64,
    /// The connections' first packets are spread over this much time at scale 1, in µs.
    pub(crate) spread_us: u64,
    /// What connection number `n` does.
    script: fn(n: u64, random: &mut Random) -> Script,
}

/// Full-size snapshot length, as tcpdump has it.
const WHOLE: u32 = 262_144;

/// The four generated captures.
pub(crate) const MIXES: [Mix; 4] = [
    Mix {
        name: "a-bulk",
        what: "downloads in full segments",
        snaplen: WHOLE,
        connections: 1_000,
        spread_us: 500_000,
        script: |_, random| download(1_400, random),
    },
    Mix {
        name: "b-small",
        what: "small packets, all connections alive at a time",
        snaplen: WHOLE,
        connections: 100_000,
        spread_us: 5_000_000,
        script: |n, random| talk(n, 22, random),
    },
    Mix {
        name: "c-snaplen",
        what: "downloads and small packets, cut at 96 bytes",
        snaplen: 96,
        connections: 10_000,
        spread_us: 5_000_000,
        script: |n, random| if n % 10 == 0 { download(1_600, random) } else { talk(n, 96, random) },
    },
    Mix {
        name: "d-short",
        what: "short connections, thousands alive at a time",
        snaplen: WHOLE,
        connections: 1_000_000,
        spread_us: 100_000_000,
        script: |_, random| one_request(random),
    },
];

fn download(segments: u64, random: &mut Random) -> Script {
    Script::Download(Download { segments, flight: random.between((10, 64)), one_lost_in: 400, clock: None })
}

/// A long-lived connection with small requests, about one a second; one in fifty splits its writes.
fn talk(n: u64, exchanges: u64, _: &mut Random) -> Script {
    Script::Chat(Chat {
        exchanges,
        request: (20, 120),
        response: (40, 246),
        client_us: (300_000, 1_700_000),
        server_us: (50, 5_000),
        split: n % 50 == 7,
        one_lost_in: 1_000,
    })
}

/// One request and a response of which one in five needs a second segment.
fn one_request(random: &mut Random) -> Script {
    let long = random.one_in(5);
    Script::Chat(Chat {
        exchanges: 1,
        request: (60, 240),
        response: if long { (1_450, 2_400) } else { (100, 1_100) },
        client_us: (10, 1_000),
        server_us: (100, 200_000),
        split: false,
        one_lost_in: 500,
    })
}

/// Between 0.2 and 80 ms to the client, less than 2 ms to the server: a capture near the servers.
fn path(random: &mut Random) -> Path {
    let magnitude = random.between((0, 8));
    Path { server_us: random.between((60, 2_000)), client_us: random.between((200, 312 << magnitude)) }
}

/// Each client host opens connections from these many ports before the next host's turn.
const PORTS_A_HOST: u64 = 20;
const SERVERS: u64 = 16;

/// Both ends of connection number `n`; no two connections share them.
fn ends(n: u64) -> (End, End) {
    let host = (n / PORTS_A_HOST) as u32;
    let port = 20_000 + (n % PORTS_A_HOST) as u16;
    let client = End { ip: [10, (host >> 16) as u8, (host >> 8) as u8, host as u8], port };
    (client, End { ip: [172, 16, 0, 1 + (n % SERVERS) as u8], port: 7_777 })
}

struct Running {
    connection: Connection,
    script: Script,
    random: Random,
}

/// Writes one mix with `scale` times its connections, and returns how many those are.
pub(crate) fn write(mix: &Mix, scale: f64, writer: &mut PcapWriter) -> Result<u64> {
    let connections = ((mix.connections as f64 * scale) as u64).max(1);
    let spread = ((mix.spread_us as f64 * scale) as u64).max(1);
    let mut slots: Vec<Option<Running>> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    // When the next segment of each running connection passes, earliest first.
    let mut agenda = BinaryHeap::new();
    for n in 0..connections {
        let start = n * spread / connections;
        advance(start, &mut slots, &mut free, &mut agenda, writer)?;
        let slot = free.pop().unwrap_or_else(|| {
            slots.push(None);
            slots.len() - 1
        });
        let running = begin(mix, n, start);
        agenda.push(Reverse((running.connection.pending[0].time_us, slot)));
        slots[slot] = Some(running);
    }
    advance(u64::MAX, &mut slots, &mut free, &mut agenda, writer)?;
    Ok(connections)
}

fn begin(mix: &Mix, n: u64, start: u64) -> Running {
    let mut random = Random::new(n ^ (u64::from(mix.name.as_bytes()[0]) << 32));
    let (client, server) = ends(n);
    let mut connection = Connection::new(client, server, path(&mut random), &mut random);
    let mut script = Script::Start(Box::new((mix.script)(n, &mut random)));
    script.step(start, &mut connection, &mut random);
    Running { connection, script, random }
}

/// Writes all segments that pass before `until`, in order of time.
fn advance(
    until: u64,
    slots: &mut [Option<Running>],
    free: &mut Vec<usize>,
    agenda: &mut BinaryHeap<Reverse<(u64, usize)>>,
    writer: &mut PcapWriter,
) -> Result<()> {
    while let Some(mut next) = agenda.peek_mut() {
        let Reverse((time, slot)) = *next;
        if time >= until {
            break;
        }
        let Some(running) = &mut slots[slot] else {
            unreachable!("only running connections are on the agenda")
        };
        if let Some(segment) = running.connection.pending.pop_front() {
            writer.write(&segment)?;
        }
        if running.connection.pending.is_empty() {
            running.script.step(time, &mut running.connection, &mut running.random);
        }
        if let Some(segment) = running.connection.pending.front() {
            *next = Reverse((segment.time_us, slot));
        } else {
            std::collections::binary_heap::PeekMut::pop(next);
            slots[slot] = None;
            free.push(slot);
        }
    }
    Ok(())
}
