//! One connection in full, for who wants to know why truth and bookings differ.

use tcpwhy_simulate::world::{Seen, Side};

use crate::{Run, number_from, setups};

/// `TRUTH_FIRST` says which connection, `TRUTH_SIDE=server` that the capture is made there.
#[test]
#[ignore = "asserts nothing: prints packets, truth and bookings of one connection"]
fn one_connection() {
    let (kind, setup) = setups::setup(number_from("TRUTH_FIRST").unwrap_or(0));
    println!("{kind}\n{:#?}\n{:?}", setup.ends, setup.server_program.options);
    let run = Run::of(&setup);
    let at_server = std::env::var("TRUTH_SIDE").as_deref() == Ok("server");
    let side = if at_server { Side::Server } else { Side::Client };
    let ms = |from: u64, until: u64| (until - from) as f64 / 1e6;
    let mut lines: Vec<_> = (1..)
        .zip(run.world.seen(side))
        .map(|(number, seen)| (seen.time, 0, format!("#{number} {}", described(&run, seen))))
        .collect();
    for span in run.truth(side) {
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
    for booking in run.booked(side, std::env::var_os("TRUTH_WRITES").is_some()) {
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

fn described(run: &Run, seen: &Seen) -> String {
    let tcp = &seen.segment.tcp;
    let initial = |side| run.world.endpoint(side).initial_sequence();
    format!(
        "{:?} seq {} len {} ack {} win {} flags {:x} {} sack blocks",
        seen.from,
        tcp.seq.wrapping_sub(initial(seen.from)),
        tcp.payload_len,
        tcp.ack.wrapping_sub(initial(seen.from.other())),
        tcp.window,
        tcp.flags.0,
        tcp.options.sack.as_slice().len()
    )
}
