//! `tcpwhy-whatif/1`: the answer for programs.

use serde_json::{Value, json};
use tcpwhy_simulate::whatif::{Answer, Figures, Fix, Gain, Unfit};
use tcpwhy_simulate::world::Side;

use super::Asked;
use crate::output;

/// Name and version.
const FORMAT: &str = "tcpwhy-whatif/1";

pub(super) fn print(asked: &Asked<'_>, answer: &Result<Answer, Unfit>) -> anyhow::Result<()> {
    let mut whole = heading(asked);
    match answer {
        Ok(answer) => add(&mut whole, answer),
        Err(why) => whole["refused"] = json!(why.to_string()),
    }
    output::print_json(&whole)
}

fn heading(asked: &Asked<'_>) -> Value {
    let connection = &asked.chosen.connection;
    json!({
        "format": FORMAT,
        "version": env!("CARGO_PKG_VERSION"),
        "file": asked.file,
        "connection": {
            "id": connection.id,
            "client": connection.client,
            "server": connection.server,
            "played": asked.connections,
        },
        "refused": null,
        "fixes": [],
        "no_difference": [],
    })
}

fn add(whole: &mut Value, answer: &Answer) {
    if !answer.likeness.is_good() {
        whole["refused"] = json!("the unchanged replay is not like the capture");
    } else {
        whole["unchanged"] = figures(&answer.unchanged);
    }
    whole["kind"] = json!(if answer.has_exchanges { "exchanges" } else { "updates" });
    whole["base_rtt_ms"] = ms(answer.parts.round_trip() as f64 / 1e6);
    whole["likeness"] = json!(answer.likeness);
    whole["has_price"] = json!(answer.likeness.has_price());
    whole["fixes"] = answer.gains.iter().map(|gain| of(gain, &answer.unchanged)).collect();
    whole["no_difference"] = answer.idle.iter().map(|(fix, side)| named(*fix, *side)).collect();
}

fn of(gain: &Gain, unchanged: &Figures) -> Value {
    let mut value = named(gain.fix, gain.side);
    value["saved_ms"] = ms(gain.saved_ms);
    value["saved_ms_bounds"] =
        gain.bounds_ms.map_or(Value::Null, |(least, most)| json!([ms(least), ms(most)]));
    value["with_it"] = figures(&gain.figures);
    value["more_packets"] = json!(gain.figures.packets.cast_signed() - unchanged.packets.cast_signed());
    value["more_bytes"] = json!(gain.figures.bytes.cast_signed() - unchanged.bytes.cast_signed());
    value
}

fn named(fix: Fix, side: Option<Side>) -> Value {
    let side = side.map(|side| match side {
        Side::Client => "client",
        Side::Server => "server",
    });
    json!({ "fix": fix.to_string(), "side": side })
}

fn figures(figures: &Figures) -> Value {
    json!({
        "total_ms": ms(figures.total_ms),
        "p50_ms": ms(figures.p50_ms),
        "p99_ms": ms(figures.p99_ms),
        "packets": figures.packets,
        "bytes": figures.bytes,
    })
}

/// To the microsecond.
fn ms(ms: f64) -> Value {
    json!((ms * 1e3).round() / 1e3)
}
