//! `tcpwhy-prove/1`: the outcome for programs. docs/prove.md describes it.

use serde_json::{Value, json};
use tcpwhy_diagnose::trial::{Block, Comparison, Measure};

use super::outcome::{Account, End, Outcome};

/// Name and version.
const FORMAT: &str = "tcpwhy-prove/1";

pub(super) fn of(outcome: &Outcome) -> Value {
    let measures: Vec<_> = Measure::ALL
        .into_iter()
        .filter_map(|measure| {
            measure.compare(&outcome.pairs).map(|comparison| compared(measure, &comparison))
        })
        .collect();
    let end = match outcome.end {
        End::Whole => "whole",
        End::BrokenOff => "broken-off",
        End::Gone => "closed",
    };
    json!({
        "format": FORMAT,
        "version": env!("CARGO_PKG_VERSION"),
        "verdict": outcome.verdict().name(),
        "measure": outcome.measure().name(),
        "measures": measures,
        "option": outcome.option.name(),
        "pid": outcome.pid,
        "program": outcome.program,
        "sockets": outcome.accounts.iter().map(account).collect::<Vec<_>>(),
        "kept": outcome.keep,
        "end": end,
        "seed": outcome.seed,
        "block_ms": outcome.block.as_secs_f64() * 1e3,
        "interface": outcome.interface,
        "blocks": outcome.blocks().map(block).collect::<Vec<_>>(),
        "notes": outcome.notes,
    })
}

fn compared(measure: Measure, comparison: &Comparison) -> Value {
    json!({
        "measure": measure.name(),
        "off_ms": comparison.off,
        "on_ms": comparison.on,
        "less_ms": comparison.less,
        "low_ms": comparison.low,
        "high_ms": comparison.high,
        "pairs": comparison.pairs,
    })
}

fn account(account: &Account) -> Value {
    json!({
        "fd": account.fd,
        "local": account.local.to_string(),
        "peer": account.peer.map(|peer| peer.to_string()),
        "before": account.before,
        "after": account.after.as_ref().ok(),
        "set_by_program": account.overruled,
    })
}

fn block(block: &Block) -> Value {
    json!({
        "on": block.is_on,
        "seconds": block.seconds,
        "exchanges": block.exchanges,
        "exchange_ms": block.latency_ms,
        "wait_ms": block.wait_ms,
        "gap_ms": block.gap_ms,
        "segments_sent": block.segments,
        "sends": block.sends,
        "bytes_sent": block.bytes,
        "delayed_acks": block.delayed_acks,
    })
}
