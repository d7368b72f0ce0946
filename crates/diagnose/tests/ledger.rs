//! Every instant is booked once, whatever the packets are: random ones, and plausible conversations.

use proptest::prelude::*;
use tcpwhy_diagnose::detectors::Rule;
use tcpwhy_diagnose::report::{Line, Source};
use tcpwhy_diagnose::{Analyzer, CaptureInfo, Diagnosis};
use tcpwhy_wire::calls::Write;
use tcpwhy_wire::{Address, Packet, SackBlocks, Socket, Tcp, TcpFlags, TcpOptions, Transport, Udp};

/// The lines are whole ns turned into ms: their sum may be off by their rounding alone, here 1 µs.
const TOLERANCE_MS: f64 = 1e-3;
/// For durations of years a millisecond as a floating point number is no finer than this share of it.
const TOLERANCE_SHARE: f64 = 1e-12;

/// The first connections of a capture are kept interval by interval; random packets make only some more.
const RECORDED: u64 = 20;

fn analysed(packets: &[Packet], batch: usize) -> Diagnosis {
    let mut analyzer = Analyzer::recording(0..RECORDED);
    packets.chunks(batch).for_each(|batch| analyzer.push(batch));
    let span = packets.first().zip(packets.last()).map(|(first, last)| (first.time, last.time));
    analyzer.finish(CaptureInfo { frames: packets.len() as u64, span, ..CaptureInfo::default() })
}

fn tolerance(duration: f64) -> f64 {
    TOLERANCE_MS + duration * TOLERANCE_SHARE
}

/// Each connection's lines are none negative and sum to its duration; the capture's are their sum.
fn check_ledgers(diagnosis: &Diagnosis) -> Result<(), TestCaseError> {
    let mut sums = [0.0; Line::ALL.len()];
    let mut lived = 0.0;
    for (index, connection) in diagnosis.connections().enumerate() {
        let (duration, ledger) = (connection.duration_ms.0, connection.ledger_ms);
        prop_assert_eq!(connection.id, index as u64);
        prop_assert!(duration.is_finite() && duration >= 0.0, "{}", duration);
        for line in Line::ALL {
            prop_assert!(ledger.get(line) >= 0.0, "{}: {}", line.name(), ledger.get(line));
            sums[line as usize] += ledger.get(line);
        }
        let off = (ledger.total() - duration).abs();
        prop_assert!(off <= tolerance(duration), "{} of {duration} ms: {ledger:?}", ledger.total());
        lived += duration;
    }
    let capture = diagnosis.capture().ledger_ms;
    for line in Line::ALL {
        prop_assert!((capture.get(line) - sums[line as usize]).abs() <= tolerance(lived), "{}", line.name());
    }
    Ok(())
}

/// The kept intervals follow each other without a gap, none of them is empty, and each line's sum to the ledger's.
fn check_bookings(diagnosis: &Diagnosis) -> Result<(), TestCaseError> {
    for connection in diagnosis.connections() {
        let Some(bookings) = diagnosis.bookings(connection.id) else {
            prop_assert!(connection.id >= RECORDED);
            continue;
        };
        prop_assert!(!bookings.is_coarse);
        let mut sums = [0_i64; Line::ALL.len()];
        for (number, booking) in bookings.intervals.iter().enumerate() {
            prop_assert!(booking.from < booking.until, "{:?}", booking);
            let next = bookings.intervals.get(number + 1).map(|next| next.from);
            prop_assert!(next.is_none_or(|next| next == booking.until), "{:?}, then {:?}", booking, next);
            sums[booking.line as usize] += booking.until - booking.from;
        }
        for line in Line::ALL {
            let (kept, booked) = (sums[line as usize] as f64 / 1e6, connection.ledger_ms.get(line));
            let off = (kept - booked).abs();
            prop_assert!(off <= tolerance(booked), "{}: {kept} of {booked} ms", line.name());
        }
    }
    Ok(())
}

/// Findings name a known rule and a known connection, and their figures are figures: no cost is above the life of
/// the connection, or of all where it is about all.
fn check_findings(diagnosis: &Diagnosis) -> Result<(), TestCaseError> {
    let places: Vec<_> = diagnosis.findings().map(|finding| finding.connection).collect();
    prop_assert!(places.is_sorted(), "about all first, then by connection: {:?}", places);
    let skimmed: Vec<_> = diagnosis.skim().map(|finding| finding.connection).collect();
    prop_assert_eq!(skimmed, places);
    let lived: Vec<f64> = diagnosis.connections().map(|connection| connection.duration_ms.0).collect();
    for finding in diagnosis.findings() {
        let rule = finding.rule;
        prop_assert!(Rule::named(rule).is_some(), "{}", rule);
        prop_assert!(finding.connection.is_none_or(|id| id < diagnosis.len() as u64), "{}", rule);
        for cost in [finding.cost_ms.0, finding.worst_ms.0] {
            prop_assert!(cost.is_finite() && cost >= 0.0, "{}: {}", rule, cost);
        }
        let most = finding.connection.map_or(lived.iter().sum(), |id| lived[id as usize]);
        prop_assert!(
            finding.cost_ms.0 <= most + tolerance(most),
            "{}: {:?} of {}",
            rule,
            finding.cost_ms,
            most
        );
        prop_assert!((0.0..=1.0).contains(&finding.confidence), "{}: {}", rule, finding.confidence);
        prop_assert!(!finding.summary.is_empty(), "{}", rule);
        for evidence in &finding.evidence {
            prop_assert!(evidence.packet > 0, "{}", rule);
            prop_assert!(evidence.time_ms.0.is_finite() && evidence.time_ms.0 >= 0.0, "{}", rule);
        }
    }
    Ok(())
}

fn check(packets: &[Packet], batch: usize) -> Result<(), TestCaseError> {
    let diagnosis = analysed(packets, batch);
    check_ledgers(&diagnosis)?;
    check_bookings(&diagnosis)?;
    check_findings(&diagnosis)
}

fn socket(host: u8, port: u16) -> Socket {
    Socket { address: Address::v4([10, 0, 0, host]), port }
}

/// One of few connections, so that packets meet.
fn any_ends() -> impl Strategy<Value = (Socket, Socket)> {
    (0..3_u16, any::<bool>()).prop_map(|(connection, swap)| {
        let (client, server) = (socket(1, 40_000 + connection), socket(2, 80));
        if swap { (server, client) } else { (client, server) }
    })
}

/// Sequence numbers near each other, also over the 32-bit edge.
fn any_seq() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => (0..20_000_u32).prop_map(|offset| 0xffff_f000_u32.wrapping_add(offset)),
        1 => any::<u32>(),
    ]
}

fn any_payload() -> impl Strategy<Value = u32> {
    // A text may claim any length.
    let claimed = u32::MAX - 3_000..=u32::MAX;
    prop_oneof![8 => Just(0), 2 => Just(1), 6 => 2..200_u32, 6 => Just(1_448), 2 => 1_449..65_000_u32, 1 => claimed]
}

/// Mostly what a connection carries, sometimes any bits.
fn any_flags() -> impl Strategy<Value = TcpFlags> {
    use TcpFlags as F;
    let common =
        prop::sample::select(vec![F::ACK, F::ACK | F::PSH, F::SYN, F::SYN | F::ACK, F::FIN | F::ACK]);
    prop_oneof![12 => common, 1 => Just(F::RST), 1 => 0..256_u16].prop_map(TcpFlags)
}

fn any_options() -> impl Strategy<Value = TcpOptions> {
    let blocks = prop::collection::vec((any_seq(), any_seq()), 0..3);
    let mss = prop::option::of(prop_oneof![Just(1_460), any::<u16>()]);
    (mss, prop::option::of(0..16_u8), any::<bool>(), blocks).prop_map(
        |(mss, window_scale, stamped, blocks)| {
            let mut sack = SackBlocks::default();
            blocks.into_iter().for_each(|(left, right)| sack.push(left, right));
            let timestamps = stamped.then_some((1, 1));
            TcpOptions { mss, window_scale, sack_permitted: stamped, timestamps, sack }
        },
    )
}

fn any_transport() -> impl Strategy<Value = Transport> {
    let window = prop_oneof![1 => Just(0_u16), 3 => 1..4_000_u16, 2 => any::<u16>()];
    let tcp = (any_seq(), any_seq(), any_payload(), window, any_flags(), any_options()).prop_map(
        |(seq, ack, payload_len, window, flags, options)| {
            Transport::Tcp(Tcp { seq, ack, payload_len, window, flags, options, message: None })
        },
    );
    let udp = any_payload().prop_map(|payload_len| Transport::Udp(Udp { payload_len }));
    prop_oneof![6 => tcp, 1 => udp]
}

/// ns from one packet to the next: at once, a path's or a timer's time, and now and then backwards.
fn any_step() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0..200_000_i64,
        4 => 200_000..60_000_000_i64,
        2 => 60_000_000..3_000_000_000_i64,
        1 => -500_000_000..0_i64,
    ]
}

fn numbered(steps: Vec<(i64, (Socket, Socket), Transport)>, start: i64) -> Vec<Packet> {
    let mut time = start;
    let numbers = 1..;
    steps
        .into_iter()
        .zip(numbers)
        .map(|((step, (source, destination), transport), number)| {
            time = time.saturating_add(step);
            Packet { number, time, frame_len: 60, source, destination, transport, ..Packet::default() }
        })
        .collect()
}

/// How long before its first segment something was written, ns.
fn any_early() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 0..200_000_i64, 4 => 0..300_000_000_i64, 1 => any::<i64>()]
}

/// What one side of a plausible conversation does next.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Sends so many bytes, as far as the window allows, in segments of the MSS.
    Say(u32),
    /// ACKs all that the other side has sent; so many bytes are free in its window.
    Hear(u16),
    /// Sends its last segment again.
    Repeat,
    /// Probes with the byte before what it would send next.
    Probe,
}

fn any_act() -> impl Strategy<Value = Act> {
    let window = prop_oneof![1 => Just(0), 1 => 1_000..6_000_u16, 3 => Just(64_000)];
    prop_oneof![
        5 => (1..6_000_u32).prop_map(Act::Say),
        5 => window.prop_map(Act::Hear),
        1 => Just(Act::Repeat),
        1 => Just(Act::Probe),
    ]
}

/// A conversation that keeps its sequence numbers right.
struct Talk {
    packets: Vec<Packet>,
    time: i64,
    /// Of client and server: the next sequence number, the last segment's and its length, the window.
    next: [u32; 2],
    last: [(u32, u32); 2],
    window: [u16; 2],
    /// Bytes that each may send before it hears from the other again.
    room: [u32; 2],
    /// Bytes said, each counted once.
    said: [u64; 2],
}

/// Largest payload of a segment.
const MSS: u32 = 1_460;
/// Between two segments of one message, ns.
const BACK_TO_BACK: i64 = 12_000;

impl Talk {
    /// A conversation whose client begins at `first` and whose path has the given parts (ns) on both sides of
    /// the capture.
    fn opened(first: [u32; 2], parts: [i64; 2]) -> Self {
        let mut talk = Self {
            packets: Vec::new(),
            time: 1_000_000_000,
            next: first,
            last: [(0, 0); 2],
            window: [64_000; 2],
            room: [0; 2],
            said: [0; 2],
        };
        let options = TcpOptions { mss: Some(MSS as u16), ..TcpOptions::default() };
        talk.send(0, TcpFlags::SYN, 0, options);
        talk.next[0] = talk.next[0].wrapping_add(1);
        talk.time += parts[1];
        talk.send(1, TcpFlags::SYN | TcpFlags::ACK, 0, options);
        talk.next[1] = talk.next[1].wrapping_add(1);
        talk.time += parts[0];
        talk.send(0, TcpFlags::ACK, 0, TcpOptions::default());
        talk
    }

    fn send(&mut self, side: usize, flags: u16, payload_len: u32, options: TcpOptions) {
        let ends = [socket(1, 40_000), socket(2, 80)];
        let (seq, ack) = (self.next[side], self.next[1 - side]);
        self.room[1 - side] = u32::from(self.window[side]);
        let tcp = Tcp {
            seq,
            ack,
            payload_len,
            window: self.window[side],
            flags: TcpFlags(flags),
            options,
            message: None,
        };
        self.packets.push(Packet {
            number: self.packets.len() as u64 + 1,
            time: self.time,
            frame_len: payload_len + 54,
            source: ends[side],
            destination: ends[1 - side],
            transport: Transport::Tcp(tcp),
            ..Packet::default()
        });
    }

    fn act(&mut self, side: usize, act: Act) {
        let plain = TcpOptions::default();
        match act {
            Act::Say(bytes) => {
                let bytes = bytes.min(self.room[side]);
                for offset in (0..bytes).step_by(MSS as usize) {
                    let len = (bytes - offset).min(MSS);
                    self.send(side, TcpFlags::ACK | TcpFlags::PSH, len, plain);
                    self.last[side] = (self.next[side], len);
                    self.next[side] = self.next[side].wrapping_add(len);
                    self.said[side] += u64::from(len);
                    self.room[side] -= len;
                    self.time += BACK_TO_BACK;
                }
            }
            Act::Hear(window) => {
                self.window[side] = window;
                self.send(side, TcpFlags::ACK, 0, plain);
            }
            Act::Repeat => self.again(side, self.last[side]),
            Act::Probe if self.said[side] > 0 => self.again(side, (self.next[side].wrapping_sub(1), 1)),
            Act::Probe => {}
        }
    }

    /// Sends bytes that were sent before.
    fn again(&mut self, side: usize, (seq, len): (u32, u32)) {
        if len > 0 {
            let next = std::mem::replace(&mut self.next[side], seq);
            self.send(side, TcpFlags::ACK, len, TcpOptions::default());
            self.next[side] = next;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn random_packets_are_booked_once(
        steps in prop::collection::vec((any_step(), any_ends(), any_transport()), 0..120),
        batch in 1..50_usize,
    ) {
        check(&numbered(steps, 1_700_000_000_000_000_000), batch)?;
    }

    #[test]
    fn hostile_clocks_are_booked_once(
        steps in prop::collection::vec((any::<i64>(), any_ends(), any_transport()), 0..40),
        start in any::<i64>(),
    ) {
        check(&numbered(steps, start), 32)?;
    }

    /// Calls beside the packets, whose times and places in the stream are right or anything.
    #[test]
    fn recorded_conversations_are_booked_once(
        parts in [0..50_000_000_i64, 0..50_000_000_i64],
        acts in prop::collection::vec((0..400_000_000_i64, 0..2_usize, any_act(), any_early(), any::<bool>()), 0..80),
        shift in prop_oneof![9 => Just(0_u64), 1 => any::<u64>()],
    ) {
        let mut talk = Talk::opened([1, 1], parts);
        let mut analyzer = Analyzer::recording(0..RECORDED);
        let mut pushed = 0;
        for (pause, side, act, early, is_corked) in acts {
            let (ends, start) = ([socket(1, 40_000), socket(2, 80)], talk.said[side]);
            talk.time += pause;
            let now = talk.time;
            talk.act(side, act);
            analyzer.push(&talk.packets[pushed..pushed.max(talk.packets.len().min(pushed + 1))]);
            pushed = talk.packets.len().min(pushed + 1);
            if let Act::Say(_) = act {
                let (start, end) = (start.wrapping_add(shift), talk.said[side].wrapping_add(shift));
                let (from, to, at) = (ends[side], ends[1 - side], now.saturating_sub(early));
                analyzer.push_write(&Write { from, to, at, done: now, start, end, is_corked });
            }
        }
        analyzer.push(&talk.packets[pushed..]);
        let diagnosis = analyzer.finish(CaptureInfo::default());
        check_ledgers(&diagnosis)?;
        check_bookings(&diagnosis)?;
        check_findings(&diagnosis)?;
    }

    #[test]
    fn plausible_conversations_are_booked_once(
        first in [any_seq(), any_seq()],
        parts in [0..50_000_000_i64, 0..50_000_000_i64],
        acts in prop::collection::vec((0..400_000_000_i64, 0..2_usize, any_act()), 0..80),
        short in 1..1_000_i64,
        whole in any::<bool>(),
    ) {
        let mut talk = Talk::opened(first, parts);
        for (pause, side, act) in acts {
            // Some conversations are dense, some full of pauses.
            talk.time += pause / short;
            talk.act(side, act);
        }
        let skipped = if whole { 0 } else { 3.min(talk.packets.len()) };
        check(&talk.packets[skipped..], 32)?;
        if whole {
            let diagnosis = analysed(&talk.packets, 32);
            let connections: Vec<_> = diagnosis.connections().collect();
            prop_assert_eq!(connections.len(), 1);
            prop_assert_eq!(&connections[0].client, "10.0.0.1:40000");
            // What was sent again or as a probe counts once.
            let bytes = connections[0].bytes;
            prop_assert_eq!([bytes.to_server, bytes.to_client], talk.said);
        }
    }
}
