//! Bytes to the packets of a few connections.
//!
//! Random headers alone would never make a connection: a script says what the ends do, most of it what TCP might
//! do (send, resend, skip, acknowledge, wait a typical time), some of it nonsense.

use arbitrary::{Arbitrary, Result, Unstructured};
use tcpwhy_wire::container::MAX_TIME;
use tcpwhy_wire::{Address, Packet, SackBlocks, Socket, Tcp, TcpFlags, TcpOptions, Transport, Udp};

/// Connections there are; enough for their packets to interleave.
const CONNECTIONS: usize = 4;

/// Packets of one script.
const MOST_PACKETS: usize = 4_000;

const MICROSECOND: i64 = 1_000;
const MILLISECOND: i64 = 1_000_000;

/// How long before the next packet.
#[derive(Arbitrary, Debug)]
enum Gap {
    Nothing,
    Micros(u8),
    Millis(u8),
    /// What Linux delays an ACK by.
    DelayedAck,
    /// What everybody else does, and the shortest retransmission timer.
    Timer,
    Seconds(u8),
    /// The clock was set.
    Jump(i32),
    /// A hostile clock.
    Anything(i64),
}

/// What one end does.
#[derive(Arbitrary, Debug)]
enum Step {
    Syn(TcpOption),
    SynAck(TcpOption),
    Send(u16),
    SendSegments(u8),
    Resend(u8),
    Skip(u16),
    Ack,
    AckPart(u16),
    AckAhead(u16),
    Sack(u16, u16),
    Window(u16),
    KeepAlive,
    Fin,
    Reset,
    Datagram(u16),
    Nonsense(Nonsense),
}

/// A header of any content.
#[derive(Arbitrary, Debug)]
struct Nonsense {
    seq: u32,
    ack: u32,
    payload_len: u32,
    window: u16,
    flags: u16,
    option: TcpOption,
    sack: [(u32, u32); 4],
    frame_len: u32,
    number: u64,
}

#[derive(Arbitrary, Debug)]
struct TcpOption {
    mss: Option<u16>,
    window_scale: Option<u8>,
    sack_permitted: bool,
    timestamps: Option<(u32, u32)>,
}

impl TcpOption {
    fn to_options(&self) -> TcpOptions {
        TcpOptions {
            mss: self.mss,
            // The parsers hand on no more than RFC 7323 allows.
            window_scale: self.window_scale.map(|shift| shift.min(14)),
            sack_permitted: self.sack_permitted,
            timestamps: self.timestamps,
            sack: SackBlocks::default(),
        }
    }
}

/// One end of a connection: what it has sent and received.
#[derive(Clone, Copy, Default)]
struct End {
    next: u32,
    window: u16,
    last_len: u32,
}

/// Runs the script that `bytes` stand for, to the end of the bytes.
pub(crate) fn packets(bytes: &mut Unstructured<'_>) -> Vec<Packet> {
    let mut world = World::default();
    world.ends.iter_mut().flatten().for_each(|end| end.window = 512);
    while !bytes.is_empty() && world.packets.len() < MOST_PACKETS {
        if world.step(bytes).is_err() {
            break;
        }
    }
    world.packets
}

#[derive(Default)]
struct World {
    packets: Vec<Packet>,
    ends: [[End; 2]; CONNECTIONS],
    now: i64,
}

impl World {
    fn step(&mut self, bytes: &mut Unstructured<'_>) -> Result<()> {
        let who = u8::arbitrary(bytes)?;
        let (connection, side) = (usize::from(who >> 1) % CONNECTIONS, usize::from(who & 1));
        self.now = match Gap::arbitrary(bytes)? {
            Gap::Nothing => self.now,
            Gap::Micros(n) => self.now.saturating_add(i64::from(n) * MICROSECOND),
            Gap::Millis(n) => self.now.saturating_add(i64::from(n) * MILLISECOND),
            Gap::DelayedAck => self.now.saturating_add(40 * MILLISECOND),
            Gap::Timer => self.now.saturating_add(200 * MILLISECOND),
            Gap::Seconds(n) => self.now.saturating_add(i64::from(n) * 1_000 * MILLISECOND),
            Gap::Jump(micros) => self.now.saturating_add(i64::from(micros) * MICROSECOND),
            Gap::Anything(time) => time,
        };
        // What the container reader warrants.
        self.now = self.now.clamp(0, MAX_TIME);
        self.act(connection, side, &Step::arbitrary(bytes)?);
        Ok(())
    }

    fn act(&mut self, connection: usize, side: usize, step: &Step) {
        let peer = self.ends[connection][1 - side];
        let me = &mut self.ends[connection][side];
        let mut tcp = Tcp {
            seq: me.next,
            ack: peer.next,
            window: me.window,
            flags: TcpFlags(TcpFlags::ACK),
            ..Tcp::default()
        };
        match step {
            Step::Syn(option) => {
                me.next = me.next.wrapping_add(1);
                (tcp.flags, tcp.ack, tcp.options) = (TcpFlags(TcpFlags::SYN), 0, option.to_options());
            }
            Step::SynAck(option) => {
                me.next = me.next.wrapping_add(1);
                (tcp.flags, tcp.options) = (TcpFlags(TcpFlags::SYN | TcpFlags::ACK), option.to_options());
            }
            Step::Send(len) => tcp.payload_len = u32::from(*len),
            Step::SendSegments(count) => tcp.payload_len = u32::from(*count) * 1448,
            Step::Resend(segments) => {
                let back = u32::from(*segments).max(1).wrapping_mul(me.last_len.max(1));
                (tcp.seq, tcp.payload_len) = (me.next.wrapping_sub(back), me.last_len);
            }
            Step::Skip(len) => {
                me.next = me.next.wrapping_add(u32::from(*len));
                (tcp.seq, tcp.payload_len) = (me.next, 1448);
            }
            Step::Ack => {}
            Step::AckPart(back) => tcp.ack = tcp.ack.wrapping_sub(u32::from(*back)),
            Step::AckAhead(ahead) => tcp.ack = tcp.ack.wrapping_add(u32::from(*ahead)),
            Step::Sack(from, len) => {
                tcp.ack = tcp.ack.wrapping_sub(u32::from(*from));
                let left = tcp.ack.wrapping_add(u32::from(*len));
                tcp.options.sack.push(left, peer.next);
            }
            Step::Window(window) => (me.window, tcp.window) = (*window, *window),
            Step::KeepAlive => tcp.seq = me.next.wrapping_sub(1),
            Step::Fin => tcp.flags = TcpFlags(TcpFlags::FIN | TcpFlags::ACK),
            Step::Reset => tcp.flags = TcpFlags(TcpFlags::RST),
            Step::Datagram(len) => {
                let udp = Transport::Udp(Udp { payload_len: u32::from(*len) });
                return self.put(connection, side, udp, u32::from(*len) + 42);
            }
            Step::Nonsense(nonsense) => return self.nonsense(connection, side, nonsense),
        }
        let sent = tcp.payload_len + u32::from(tcp.flags.has(TcpFlags::FIN));
        let reached = tcp.seq.wrapping_add(sent);
        if (reached.wrapping_sub(me.next) as i32) > 0 {
            me.next = reached;
        }
        if tcp.payload_len > 0 {
            me.last_len = tcp.payload_len;
        }
        self.put(connection, side, Transport::Tcp(tcp), tcp.payload_len + 66);
    }

    fn nonsense(&mut self, connection: usize, side: usize, nonsense: &Nonsense) {
        let mut options = nonsense.option.to_options();
        for (left, right) in nonsense.sack {
            options.sack.push(left, right);
        }
        let tcp = Tcp {
            seq: nonsense.seq,
            ack: nonsense.ack,
            // A length field of IP has 16 bits, a jumbogram's 32; frames are no longer than container::MAX_FRAME.
            payload_len: nonsense.payload_len % 300_000,
            window: nonsense.window,
            flags: TcpFlags(nonsense.flags & 0x1ff),
            options,
            message: None,
        };
        self.put(connection, side, Transport::Tcp(tcp), nonsense.frame_len);
        if let Some(packet) = self.packets.last_mut() {
            packet.number += nonsense.number % 3;
        }
    }

    fn put(&mut self, connection: usize, side: usize, transport: Transport, frame_len: u32) {
        let socket = |side: usize| Socket {
            address: Address::v4([10, 0, connection as u8, side as u8]),
            port: if side == 0 { 40_000 + connection as u16 } else { 80 },
        };
        let number = self.packets.last().map_or(0, |packet| packet.number) + 1;
        let (source, destination) = (socket(side), socket(1 - side));
        self.packets.push(Packet {
            number,
            time: self.now,
            frame_len,
            // As if all hosts shared one counter: each connection then sees gaps of its own.
            ip_id: Some(number as u16),
            source,
            destination,
            transport,
        });
    }
}
