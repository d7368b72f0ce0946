//! The answer in the report's terms.

use tcpwhy_diagnose::report::{self, Awaited, Ms, Played, WhatIf};
use tcpwhy_simulate::whatif::{Answer, Figures, Gain, Likeness};
use tcpwhy_simulate::world::Side;

/// What one fix would have done, as the report says it.
pub(crate) fn of(answer: &Answer, gain: &Gain) -> WhatIf {
    let has_price = answer.likeness.has_price();
    let (before, after) = (&answer.unchanged, &gain.figures);
    let more = |after: u64, before: u64| has_price.then(|| after.cast_signed() - before.cast_signed());
    WhatIf {
        fix: gain.fix.to_string(),
        title: gain.fix.title(),
        side: gain.side.map(side),
        awaited: if answer.has_exchanges { Awaited::Exchanges } else { Awaited::Updates },
        saved_ms: Ms(gain.saved_ms),
        saved_ms_bounds: gain.bounds_ms.map(|(least, most)| (Ms(least), Ms(most))),
        unchanged: played(before, has_price),
        with_it: played(after, has_price),
        more_packets: more(after.packets, before.packets),
        more_bytes: more(after.bytes, before.bytes),
        likeness: likeness(&answer.likeness),
    }
}

fn side(side: Side) -> report::Side {
    match side {
        Side::Client => report::Side::Client,
        Side::Server => report::Side::Server,
    }
}

fn played(figures: &Figures, has_price: bool) -> Played {
    Played {
        total_ms: Ms(figures.total_ms),
        p50_ms: Ms(figures.p50_ms),
        p99_ms: Ms(figures.p99_ms),
        packets: has_price.then_some(figures.packets),
        bytes: has_price.then_some(figures.bytes),
    }
}

fn likeness(likeness: &Likeness) -> report::Likeness {
    report::Likeness {
        compared: likeness.compared as u64,
        latency_p50: likeness.latency_p50,
        latency_p90: likeness.latency_p90,
        total: likeness.total,
        segments: likeness.segments,
        packets: likeness.packets,
    }
}
