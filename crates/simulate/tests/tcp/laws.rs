//! What holds for every pair of stacks over every link.

use std::time::Duration;

use proptest::prelude::*;
use tcpwhy_simulate::link::{Ends, Queue, Settings};
use tcpwhy_simulate::tcp::{Buffer, Nagle, Repair, Stack, State, eras};
use tcpwhy_wire::TcpFlags;

use crate::pair::{MS, Pair, Side};

fn stacks() -> impl Strategy<Value = Stack> {
    let repair = [Repair::TimerOnly, Repair::Tahoe, Repair::Reno, Repair::NewReno, Repair::Sack];
    let nagle = [Nagle::Rfc896, Nagle::Bsd, Nagle::HalfSegment, Nagle::Minshall, Nagle::Off];
    let era = prop::sample::select(eras::ERAS).prop_map(|era| (era.stack)());
    let changes = (
        prop::option::of(prop::sample::select(repair.to_vec())),
        prop::option::of(prop::sample::select(nagle.to_vec())),
        prop::option::of(100_u64..200_000),
        prop::option::of(500_u64..100_000),
        88_u16..1460,
        any::<bool>(),
    );
    (era, changes).prop_map(|(mut stack, (repair, nagle, buffer, send_buffer, mss, odd_mss))| {
        stack.sender.repair = repair.unwrap_or(stack.sender.repair);
        stack.sender.nagle = nagle.unwrap_or(stack.sender.nagle);
        stack.receiver.buffer = buffer.map_or(stack.receiver.buffer, Buffer::Fixed);
        stack.sender.send_buffer = send_buffer.or(stack.sender.send_buffer);
        stack.mss = if odd_mss { mss } else { stack.mss };
        // The peer comes back in the end.
        stack.sender.timeout.retries = 1000;
        stack.sender.timeout.syn_retries = 1000;
        stack.sender.timeout.max = Duration::from_secs(5);
        stack
    })
}

fn lanes() -> impl Strategy<Value = Settings> {
    let bad = prop_oneof![Just(0.0), 0.0..0.3];
    let rate = prop::option::of(50_000_u64..50_000_000);
    (0_u64..100, 0_u64..20, rate, 1_usize..50, bad.clone(), bad.clone(), bad.clone(), 1_u64..50).prop_map(
        |(delay, jitter, rate, queue, loss, reorder, duplicate, by)| Settings {
            delay: Duration::from_millis(delay),
            jitter: Duration::from_millis(jitter),
            rate,
            queue: Queue::Packets(queue),
            loss,
            reorder,
            reorder_by: Duration::from_millis(by),
            duplicate,
            mark_above: Some(queue / 2),
            ..Settings::default()
        },
    )
}

/// A program that writes so much in pieces of so much, and then closes its side.
#[derive(Clone, Copy, Debug)]
struct Writes {
    total: u64,
    piece: u64,
    pause: u64,
}

fn writes() -> impl Strategy<Value = Writes> {
    (0_u64..60_000, 1_u64..20_000, 0_u64..20).prop_map(|(total, piece, pause)| {
        // No more than some hundred writes.
        Writes { total, piece: piece.max(total / 200 + 1), pause }
    })
}

/// The most that the peer has offered beyond its stream's beginning, as its segments said when they left: the sender
/// cannot know of more. Without a scale before both SYNs are seen.
fn check_windows(pair: &Pair, side: Side, stacks: [&Stack; 2]) -> Result<(), TestCaseError> {
    let (own, peer) = if side == Side::A { (&pair.a, stacks[1]) } else { (&pair.b, stacks[0]) };
    let both_scale = stacks.iter().all(|stack| stack.window_scale.is_some());
    let scale = peer.window_scale.filter(|_| both_scale).unwrap_or(0);
    let initial = own.initial_sequence();
    let mut edge = 0_i64;
    for sent in &pair.sent {
        let tcp = &sent.segment.tcp;
        if sent.has(TcpFlags::RST) {
            continue;
        }
        if sent.from != side {
            let scale = if sent.has(TcpFlags::SYN) { 0 } else { scale };
            let offered = i64::from(tcp.ack.wrapping_sub(initial)) + (i64::from(tcp.window) << scale);
            edge = if sent.has(TcpFlags::ACK) { edge.max(offered) } else { edge };
            continue;
        }
        let end = i64::from(tcp.seq.wrapping_sub(initial).cast_signed()) + sent.segment.sequence_len() as i64;
        // A probe may carry one byte beyond.
        let is_probe = tcp.payload_len <= 1;
        let allowed = edge + i64::from(is_probe);
        prop_assert!(
            sent.has(TcpFlags::SYN) || tcp.payload_len == 0 && !sent.has(TcpFlags::FIN) || end <= allowed,
            "{end} > {edge} at {} ms: {:?}",
            sent.time / MS,
            tcp
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn all_bytes_arrive_once_and_both_sides_close(
        a in stacks(), b in stacks(), up in lanes(), down in lanes(),
        of_a in writes(), of_b in writes(), seed in any::<u64>(),
    ) {
        let mut pair = Pair::new(&a, &b, &Ends { up, down }, seed >> 1);
        pair.a.connect(0);
        let writes = [of_a, of_b];
        let mut done = [0_u64; 2];
        let mut next = [0_u64; 2];
        let mut shut = [false; 2];
        let mut instants = 0;
        for now in (0..).map(|step| step * 5 * MS) {
            instants += pair.run(now);
            for side in 0..2 {
                let endpoint = if side == 0 { &mut pair.a } else { &mut pair.b };
                let is_open = matches!(endpoint.state(), State::Established | State::CloseWait);
                let writes = writes[side];
                if is_open && done[side] < writes.total && now >= next[side] {
                    let piece = writes.piece.min(writes.total - done[side]).min(endpoint.writable());
                    done[side] += endpoint.handle_write(now, piece, false);
                    next[side] = now + writes.pause * MS;
                }
                if is_open && done[side] == writes.total && !shut[side] {
                    shut[side] = true;
                    endpoint.handle_shutdown(now);
                }
            }
            let is_over = |state| matches!(state, State::Closed | State::TimeWait);
            if is_over(pair.a.state()) && is_over(pair.b.state()) {
                break;
            }
            prop_assert!(
                now < 3_000_000 * MS && instants < 200_000,
                "{instants} instants, {} s: {:?} {:?} {:?} {:?}",
                now / 1000 / MS, pair.read, done, pair.a.info(), pair.b.info()
            );
        }
        // The last ACK may be lost, and the one that waits for it is reset then; but all that was written has arrived.
        prop_assert_eq!(pair.read, [of_b.total, of_a.total]);
        check_windows(&pair, Side::A, [&a, &b])?;
        check_windows(&pair, Side::B, [&a, &b])?;
    }

    #[test]
    fn nothing_that_arrives_makes_it_panic(
        stack in stacks(), seed in any::<u64>(), opens in any::<bool>(),
        segments in prop::collection::vec(
            (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), 0_u32..70_000, any::<[bool; 3]>(), 0_u64..500),
            0..60,
        ),
    ) {
        let mut endpoint = tcpwhy_simulate::tcp::Endpoint::new(&stack, seed);
        if opens { endpoint.connect(0) } else { endpoint.listen() }
        let mut now = 0;
        let mut peer = 0_u32;
        for (seq, ack, window, flags, len, [near_seq, near_ack, has_sack], pause) in segments {
            now += pause * MS;
            let own = endpoint.initial_sequence();
            // Half of them are near to what is expected, lest all be refused.
            let seq = if near_seq { peer.wrapping_add(seq % 5000) } else { seq };
            let ack = if near_ack { own.wrapping_add(ack % 5000) } else { ack };
            let mut tcp = tcpwhy_wire::Tcp {
                seq, ack, window, payload_len: len, flags: TcpFlags(flags & 0xff), ..Default::default()
            };
            tcp.options.mss = has_sack.then_some((len % 2000) as u16);
            tcp.options.sack_permitted = has_sack;
            tcp.options.window_scale = has_sack.then_some((flags % 20) as u8);
            tcp.options.timestamps = near_seq.then_some((seq, ack));
            if has_sack {
                tcp.options.sack.push(ack, ack.wrapping_add(window.into()));
                tcp.options.sack.push(own.wrapping_add(1000), own.wrapping_add(3000));
            }
            if flags & TcpFlags::SYN != 0 {
                peer = seq;
            }
            let segment = tcpwhy_simulate::tcp::Segment { tcp, ..Default::default() };
            endpoint.handle_segment(now, &segment);
            endpoint.handle_write(now, u64::from(len), has_sack);
            endpoint.handle_read(now, u64::from(window));
            let mut out = 0;
            while endpoint.poll_transmit().is_some() {
                out += 1;
            }
            prop_assert!(out < 3000, "{out} segments at once");
            if endpoint.poll_at().is_some_and(|due| due <= now + 100 * MS) {
                now = now.max(endpoint.poll_at().unwrap_or(now));
                endpoint.handle_timer(now);
            }
        }
    }
}
