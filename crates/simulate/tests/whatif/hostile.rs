//! Captures are hostile: whatever stands in them, there is an answer or a refusal, and soon.

use proptest::prelude::*;
use tcpwhy_simulate::tcp::eras;
use tcpwhy_simulate::whatif::{Fix, ask, connections};
use tcpwhy_simulate::world::Side;
use tcpwhy_wire::{Packet, TcpFlags, Transport};

use crate::build::{MS, capture, chat, setup};

/// One thing done to one packet.
#[derive(Clone, Debug)]
enum Harm {
    Time(i64),
    Seq(u32),
    Ack(u32),
    Window(u16),
    Flags(u16),
    Length(u32),
    Gone,
}

fn harm() -> impl Strategy<Value = (usize, Harm)> {
    let what = prop_oneof![
        any::<i64>().prop_map(Harm::Time),
        any::<u32>().prop_map(Harm::Seq),
        any::<u32>().prop_map(Harm::Ack),
        any::<u16>().prop_map(Harm::Window),
        (0_u16..0x200).prop_map(Harm::Flags),
        (0_u32..70_000).prop_map(Harm::Length),
        Just(Harm::Gone),
    ];
    (0_usize..200, what)
}

fn harmed(mut packets: Vec<Packet>, harms: &[(usize, Harm)]) -> Vec<Packet> {
    for (at, harm) in harms {
        let at = at % packets.len().max(1);
        let Some(packet) = packets.get_mut(at) else { break };
        let Transport::Tcp(tcp) = &mut packet.transport else { continue };
        match harm {
            Harm::Time(time) => packet.time = *time,
            Harm::Seq(seq) => tcp.seq = *seq,
            Harm::Ack(ack) => tcp.ack = *ack,
            Harm::Window(window) => tcp.window = *window,
            Harm::Flags(flags) => tcp.flags = TcpFlags(*flags),
            Harm::Length(length) => tcp.payload_len = *length,
            Harm::Gone => drop(packets.remove(at)),
        }
    }
    packets
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn nothing_in_a_capture_makes_it_fall(harms in prop::collection::vec(harm(), 1..6), far in any::<bool>()) {
        let (client, server) = chat(8, &[16, 48], 3_000);
        let setup = setup(&eras::linux_6(), 20 * MS, client, server);
        let at = if far { Side::Server } else { Side::Client };
        let packets = harmed(capture(&setup, at).0, &harms);
        for connection in connections(&packets) {
            if let Ok(answer) = ask(&[connection], [true, false], &[Fix::NoDelay, Fix::NoCork, Fix::NoLoss]) {
                prop_assert!(answer.likeness.is_good() || answer.gains.is_empty());
                prop_assert!(answer.gains.iter().all(|gain| gain.saved_ms.is_finite()));
            }
        }
        let _ = ask(&connections(&packets), [false; 2], &[Fix::KeepAlive]);
    }
}
