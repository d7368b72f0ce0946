//! A long upload, counted packet by packet.

use std::time::Duration;

use anyhow::{Result, ensure};
use tcpwhy_simulate::link::{Ends, Settings};
use tcpwhy_wire::{Packet, Socket};

use super::{Claim, Outcome, Table, Verdict};
use crate::capture::{Capture, Vantage};
use crate::lab::Lab;
use crate::place::{Path, Wire};
use crate::programs::upload;

/// One line about it.
pub const ABOUT: &str = "An upload of 100 MB: packets above the MTU, and how many ACKs come back";
/// Where the story is from.
pub const SOURCE: &str = "A Java developer's blog, February 2014: \"TCP Chatter\"";
/// Roughly how long a run with the defaults takes.
pub const SECONDS: u64 = 20;

/// Largest packets in bytes.
const LOOPBACK: u32 = 65_536;
const ETHERNET: u32 = 1_500;
/// Megabytes of a quick run.
const QUICK: u64 = 8;
/// RFC 1122 4.2.3.2 asks for an ACK for every second full-sized segment at least. A receiver that sends one for
/// every third still follows it; one that sends far fewer does not (stretch ACKs, GRO).
const CHATTY: f64 = 1.0 / 3.0;
/// The ACKs' share of all bytes from which on one may call it a lot.
const LOT: f64 = 0.1;
/// Nearly all, of the server's packets.
const NEARLY_ALL: f64 = 0.95;
/// Width of a bar of the histogram.
const BAR: usize = 30;

/// `tcpwhy lab upload`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Megabytes to upload.
    #[arg(long, default_value_t = 100)]
    pub megabytes: u64,
    /// Mbit/s of the emulated link.
    #[arg(long, default_value_t = 200)]
    pub rate: u64,
    /// Round trip of the emulated link in ms.
    #[arg(long, default_value_t = 1.0)]
    pub round_trip: f64,
    /// Intervals of the histogram.
    #[arg(long, default_value_t = 20)]
    pub breaks: usize,
}

/// One run: where, and what its capture counted.
struct Run {
    name: &'static str,
    mtu: u32,
    wall: Duration,
    bytes: u64,
    tally: Tally,
    intervals: Vec<Interval>,
}

/// Packets of one upload.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tally {
    /// Segments with data from the client.
    data: u64,
    /// Bytes of IP packets that the client sent.
    bytes_up: u64,
    /// The largest IP packet, in bytes.
    largest: u32,
    /// IP packets above the MTU.
    above: u64,
    /// Packets from the server.
    down: u64,
    /// Pure ACKs among them.
    acks: u64,
    /// Bytes of IP packets that the server sent.
    bytes_down: u64,
}

/// Packets of one interval, each way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Interval {
    /// When it begins, in s after the first packet.
    start: f64,
    up: u64,
    down: u64,
}

/// The runs' places.
const OFF: usize = 0;
const ON: usize = 1;

/// Uploads over a link and over loopback.
pub fn run(lab: &Lab<'_>, options: &Options) -> Result<Outcome> {
    ensure!(options.breaks > 0 && options.megabytes > 0, "--breaks and --megabytes must not be 0");
    lab.progress.runs(4);
    let one_way = Duration::try_from_secs_f64(options.round_trip / 2e3)?;
    let settings = Settings { delay: one_way, rate: Some(options.rate * 1_000_000), ..Settings::default() };
    let wire = Wire::new(Ends { up: settings.clone(), down: settings });
    let paths = [
        ("link, offload off", Path::Link(wire.clone())),
        ("link, offload on", Path::Link(Wire { offload: true, ..wire })),
        ("loopback", Path::Loopback { mtu: LOOPBACK }),
        ("loopback, MTU 1500", Path::Loopback { mtu: ETHERNET }),
    ];
    let runs =
        paths.iter().map(|(name, path)| upload_over(lab, options, name, path)).collect::<Result<Vec<_>>>()?;
    Ok(Outcome {
        claims: claims(&runs[OFF], &runs[ON]),
        tables: vec![counted(&runs), histogram(&runs[OFF]), histogram(&runs[ON])],
        notes: vec![
            "Counted at the client. On loopback a slow capture may miss packets of a fast upload; shares are \
             right all the same."
                .to_owned(),
        ],
        ..Outcome::new("upload", SOURCE)
    })
}

fn upload_over(lab: &Lab<'_>, options: &Options, name: &'static str, path: &Path) -> Result<Run> {
    let megabytes = if lab.quick { options.megabytes.min(QUICK) } else { options.megabytes };
    let file = format!("upload-{}", name.replace(", ", "-").replace(' ', "-").to_lowercase());
    let recording = lab.record(&file, path, |place| upload::play(place, megabytes * 1_000_000))?;
    lab.keep_log(&file, &recording.value)?;
    let packets = recording
        .capture(Vantage::Client)
        .or_else(|| recording.capture(Vantage::Both))
        .map(Capture::packets)
        .unwrap_or_default();
    let mtu = match path {
        Path::Loopback { mtu } => *mtu,
        Path::Link(wire) | Path::TwoHops { near: wire, .. } => wire.mtu,
    };
    Ok(Run {
        name,
        mtu,
        wall: recording.value.wall,
        bytes: recording.value.bytes,
        tally: tally(&packets, mtu),
        intervals: intervals(&packets, options.breaks),
    })
}

/// The server: who the first SYN went to.
fn server_of(packets: &[Packet]) -> Option<Socket> {
    let is_syn = |packet: &&Packet| packet.tcp().is_some_and(|tcp| tcp.flags.are_opening());
    packets.iter().find(is_syn).map(|packet| packet.destination)
}

/// Bytes of the IP packet: header without options, TCP header with timestamps, payload. Frames differ in
/// their link layers, which an MTU does not count.
fn ip_bytes(payload: u32) -> u32 {
    const HEADERS: u32 = 20 + 20 + 12;
    HEADERS + payload
}

fn tally(packets: &[Packet], mtu: u32) -> Tally {
    let mut tally = Tally::default();
    let Some(server) = server_of(packets) else { return tally };
    for packet in packets {
        let Some(tcp) = packet.tcp() else { continue };
        let bytes = ip_bytes(tcp.payload_len);
        tally.largest = tally.largest.max(bytes);
        tally.above += u64::from(bytes > mtu);
        if packet.destination == server {
            tally.data += u64::from(tcp.payload_len > 0);
            tally.bytes_up += u64::from(bytes);
        } else if packet.source == server {
            tally.down += 1;
            tally.acks += u64::from(tcp.is_pure_ack());
            tally.bytes_down += u64::from(bytes);
        }
    }
    tally
}

/// The packets' times in so many equal intervals.
fn intervals(packets: &[Packet], breaks: usize) -> Vec<Interval> {
    let (Some(first), Some(last), Some(server)) = (packets.first(), packets.last(), server_of(packets))
    else {
        return Vec::new();
    };
    let width = ((last.time - first.time).max(1)) as f64 / breaks as f64;
    let begin = |index| Interval { start: index as f64 * width / 1e9, ..Interval::default() };
    let mut intervals: Vec<_> = (0..breaks).map(begin).collect();
    for packet in packets {
        let index = ((packet.time - first.time).max(0) as f64 / width) as usize;
        let interval = &mut intervals[index.min(breaks - 1)];
        if packet.destination == server {
            interval.up += 1;
        } else if packet.source == server {
            interval.down += 1;
        }
    }
    intervals
}

/// ACKs for each segment with data.
fn acks_per_data(tally: &Tally) -> f64 {
    tally.acks as f64 / tally.data.max(1) as f64
}

/// The server's share of all bytes.
fn share_of_acks(tally: &Tally) -> f64 {
    tally.bytes_down as f64 / (tally.bytes_up + tally.bytes_down).max(1) as f64
}

fn counted(runs: &[Run]) -> Table {
    let columns = [
        "path",
        "Mbit/s",
        "data segments",
        "largest, B",
        "above MTU",
        "ACKs",
        "ACKs/segment",
        "KB/ACK",
        "ACKs' bytes",
    ];
    let mut table = Table::new("What the client's capture counted; sizes of IP packets", &columns);
    for Run { name, wall, bytes, tally, .. } in runs {
        table.row([
            (*name).to_owned(),
            format!("{:.0}", *bytes as f64 * 8e-6 / wall.as_secs_f64().max(f64::MIN_POSITIVE)),
            tally.data.to_string(),
            tally.largest.to_string(),
            tally.above.to_string(),
            tally.acks.to_string(),
            format!("{:.2}", acks_per_data(tally)),
            format!("{:.1}", *bytes as f64 / 1e3 / tally.acks.max(1) as f64),
            format!("{:.1} %", share_of_acks(tally) * 100.0),
        ]);
    }
    table
}

/// Two bars a line: what goes up, and what comes down.
fn histogram(run: &Run) -> Table {
    let most = run.intervals.iter().map(|interval| interval.up.max(interval.down)).max().unwrap_or(0);
    let bar = |count: u64, mark: &str| {
        let cells = (count * BAR as u64).div_ceil(most.max(1)) as usize;
        // Padded to one width: columns are right-aligned.
        format!("{}{}", mark.repeat(cells), " ".repeat(BAR - cells.min(BAR)))
    };
    let title = format!("Packets over time, {}: up ▇, down ░", run.name);
    let mut table = Table::new(title, &["from, s", "up", "down", "", " "]);
    for Interval { start, up, down } in &run.intervals {
        table.row([format!("{start:.2}"), up.to_string(), down.to_string(), bar(*up, "▇"), bar(*down, "░")]);
    }
    table
}

fn claims(off: &Run, on: &Run) -> Vec<Claim> {
    if off.tally.data == 0 || on.tally.data == 0 {
        return Vec::new();
    }
    let exceeded = on.intervals.iter().filter(|interval| interval.down > interval.up).count();
    vec![
        above_the_mtu(off, on),
        Claim {
            claim: "The server's packets are almost entirely ACKs",
            seed: "almost all",
            measured: format!("{} of {}", on.tally.acks, on.tally.down),
            verdict: Verdict::from(
                on.tally.acks as f64 >= NEARLY_ALL * on.tally.down as f64,
                "the server sends something else",
            ),
        },
        Claim {
            claim: "In one interval only do the ACKs outnumber the client's (offloaded) packets",
            seed: "1",
            measured: format!("{exceeded} of {}", on.intervals.len()),
            verdict: Verdict::from(
                exceeded <= 1,
                "segments are larger where they are counted, so ACKs of what the wire carries outnumber them",
            ),
        },
        chatty(off),
        Claim {
            claim: "The ACKs are a lot of redundant bandwidth",
            seed: "a lot",
            measured: format!("{:.1} % of all bytes", share_of_acks(&off.tally) * 100.0),
            verdict: Verdict::from(
                share_of_acks(&off.tally) >= LOT,
                "an ACK is 52 bytes against the segments of 1500 that it acknowledges: many packets, few bytes",
            ),
        },
    ]
}

fn above_the_mtu(off: &Run, on: &Run) -> Claim {
    Claim {
        claim: "A capture shows packets above the MTU: the adapter cuts them later (TSO); ethtool turns it off",
        seed: "> MTU",
        measured: format!(
            "on: {} packets, up to {} B at an MTU of {}; off: {}",
            on.tally.above, on.tally.largest, on.mtu, off.tally.above
        ),
        verdict: Verdict::from(
            on.tally.above > 0 && off.tally.above == 0,
            "offload makes no difference here",
        ),
    }
}

fn chatty(off: &Run) -> Claim {
    let ratio = acks_per_data(&off.tally);
    Claim {
        claim: "TCP is terribly chatty: the server ACKs chunk after chunk though it has nothing to say",
        seed: "",
        measured: format!("{ratio:.2} ACKs a segment of the wire"),
        verdict: Verdict::from(
            ratio >= CHATTY,
            "this receiver ACKs whole trains of segments (GRO and the softirq's batches), not every second one",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen::tests::packet;
    use super::*;
    use tcpwhy_wire::TcpFlags;

    /// A handshake, then data and ACKs over 20 µs: four segments up, one of them large, two ACKs and "OK" down.
    fn packets() -> Vec<Packet> {
        let ack = TcpFlags::ACK;
        vec![
            packet(0, 1, TcpFlags::SYN, 0),
            packet(1, 2, TcpFlags::SYN | ack, 0),
            packet(2, 1, ack, 0),
            packet(3, 1, ack, 1448),
            packet(4, 1, ack, 2896),
            packet(6, 2, ack, 0),
            packet(12, 1, ack, 1448),
            packet(13, 1, ack, 100),
            packet(14, 2, ack, 0),
            packet(20, 2, ack, 2),
        ]
    }

    #[test]
    fn packets_are_counted_each_way() {
        let expected = Tally {
            data: 4,
            bytes_up: 52 + 52 + 1500 + 2948 + 1500 + 152,
            largest: 2948,
            above: 1,
            down: 4,
            acks: 2,
            bytes_down: 52 + 52 + 52 + 54,
        };
        assert_eq!(tally(&packets(), 1500), expected);
        assert_eq!(tally(&[], 1500), Tally::default());
        assert!((acks_per_data(&expected) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn intervals_are_equal_and_hold_every_packet() {
        let intervals = intervals(&packets(), 2);
        assert_eq!(intervals.len(), 2);
        assert_eq!((intervals[0].up, intervals[0].down), (4, 2));
        assert_eq!((intervals[1].up, intervals[1].down), (2, 2));
        assert!((intervals[1].start - 10e-6).abs() < 1e-9);
        assert!(super::intervals(&[], 2).is_empty());
    }

    fn ran(name: &'static str, packets: &[Packet]) -> Run {
        Run {
            name,
            mtu: 1500,
            wall: Duration::from_millis(8),
            bytes: 1_000_000,
            tally: tally(packets, 1500),
            intervals: intervals(packets, 2),
        }
    }

    fn small_only() -> Vec<Packet> {
        packets()
            .into_iter()
            .filter(|packet| packet.tcp().is_some_and(|tcp| tcp.payload_len < 2000))
            .collect()
    }

    #[test]
    fn the_tables_have_a_row_a_run_and_a_row_an_interval() {
        let (off, on) = (ran("off", &small_only()), ran("on", &packets()));
        let table = counted(&[off, on]);
        assert_eq!(table.rows[1], ["on", "1000", "4", "2948", "1", "2", "0.50", "500.0", "3.3 %"]);
        assert_eq!(table.rows[0][4], "0");
        let bars = histogram(&ran("on", &packets()));
        assert_eq!(bars.rows.len(), 2);
        assert_eq!(bars.rows[0][3], "▇".repeat(BAR));
        assert_eq!(bars.rows[0][4].trim_end(), "░".repeat(BAR / 2));
    }

    #[test]
    fn claims_follow_the_figures() {
        let (off, on) = (ran("off", &small_only()), ran("on", &packets()));
        let holds: Vec<_> = claims(&off, &on).iter().map(|claim| claim.verdict == Verdict::Holds).collect();
        // 2 ACKs of 4 packets down are not almost all; 210 bytes of 3,466 are not a lot.
        assert_eq!(holds, [true, false, true, true, false]);
        assert!(claims(&ran("off", &[]), &on).is_empty());
        assert_ne!(claims(&on, &on)[0].verdict, Verdict::Holds);
    }
}
