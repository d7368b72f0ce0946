//! One connection in full, for who wants to know why truth and bookings differ.

use tcpwhy_simulate::world::{CLIENT, Side};
use tcpwhy_wire::Packet;

use crate::captures::passed;
use crate::kept::{Kept, while_captured};
use crate::{Run, analyzed, booked, number_from, setups};

/// `TRUTH_FIRST` says which connection, `TRUTH_SIDE=server` that the capture is made there, `TRUTH_KEPT=lacking` (or `twice`,
/// or `middle`) what it keeps.
#[test]
#[ignore = "asserts nothing: prints packets, truth and bookings of one connection"]
fn one_connection() {
    let number = number_from("TRUTH_FIRST").unwrap_or(0);
    let (kind, setup) = setups::setup(number);
    println!("{kind}\n{:#?}\n{:?}", setup.ends, setup.server_program.options);
    let run = Run::of(&setup);
    let at_server = std::env::var("TRUTH_SIDE").as_deref() == Ok("server");
    let side = if at_server { Side::Server } else { Side::Client };
    let ms = |from: u64, until: u64| (until - from) as f64 / 1e6;
    let kept = std::env::var("TRUTH_KEPT").ok();
    let kept = kept.and_then(|name| Kept::ALL.into_iter().find(|kept| kept.name() == name));
    let packets =
        kept.map_or_else(|| run.packets(side), |kept| kept.packets(&passed(&run, side, number), number));
    let mut lines: Vec<_> =
        packets.iter().map(|packet| (packet.time.cast_unsigned(), 0, described(&run, packet))).collect();
    for span in while_captured(&run.truth(side), &packets) {
        let text = format!("TRUTH {} for {:.3}", span.line.name(), ms(span.from, span.until));
        lines.push((span.from, 1, text));
    }
    for write in run.writes(side) {
        let (at, done) = (write.at.cast_unsigned(), write.done.cast_unsigned());
        let corked = if write.is_corked { ", corked" } else { "" };
        lines.push((
            at,
            0,
            format!("writes {} to {} in {:.3}{corked}", write.start, write.end, ms(at, done)),
        ));
    }
    let is_recorded = std::env::var_os("TRUTH_WRITES").is_some() && kept.is_none();
    let writes = if is_recorded { run.writes(side) } else { Vec::new() };
    for booking in booked(&analyzed(&packets, &writes)) {
        let (from, until) = (booking.from.cast_unsigned(), booking.until.cast_unsigned());
        lines.push((
            from,
            2,
            format!("                        BOOKED {} for {:.3}", booking.line.name(), ms(from, until)),
        ));
    }
    lines.sort_by_key(|line| (line.0, line.1));
    for (time, _, text) in lines {
        println!("{:10.3} {text}", time as f64 / 1e6);
    }
}

fn described(run: &Run, packet: &Packet) -> String {
    let Some(tcp) = packet.tcp() else { return String::new() };
    let from = if packet.source.port == CLIENT.1 { Side::Client } else { Side::Server };
    let initial = |side| run.world.endpoint(side).initial_sequence();
    format!(
        "#{} {from:?} seq {} len {} ack {} win {} flags {:x} {} sack blocks",
        packet.number,
        tcp.seq.wrapping_sub(initial(from)),
        tcp.payload_len,
        tcp.ack.wrapping_sub(initial(from.other())),
        tcp.window,
        tcp.flags.0,
        tcp.options.sack.as_slice().len()
    )
}
