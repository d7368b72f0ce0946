//! `tcpwhy-sockets/1`: sockets for programs. docs/sockets.md describes it.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use tcpwhy_report::json::compact;
use tcpwhy_wire::sockets::{CongestionState, State, TcpSocket, Timer, TimerKind};

use super::row::Row;
use super::{Look, sentence};

/// Name and version.
const FORMAT: &str = "tcpwhy-sockets/1";

/// One object: what it is, then each socket on a line of its own.
pub(super) fn write(out: &mut impl Write, look: &Look) -> io::Result<()> {
    write!(
        out,
        "{{\"format\":\"{FORMAT}\",\"version\":\"{}\",\"source\":\"{}\",\"notes\":{},\"sockets\":[",
        env!("CARGO_PKG_VERSION"),
        look.source,
        on_one_line(&json!(look.notes))?
    )?;
    for (i, row) in look.rows.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        write!(out, "{comma}\n{}", on_one_line(&Value::Object(socket(row)))?)?;
    }
    writeln!(out, "]}}")
}

/// One line of `--watch`.
pub(super) fn write_watched(
    out: &mut impl Write,
    figures: Value,
    sockets: impl Iterator<Item = Map<String, Value>>,
) -> io::Result<()> {
    let mut whole = json!({ "format": FORMAT, "version": env!("CARGO_PKG_VERSION"), "source": "kernel" });
    if let (Value::Object(whole), Value::Object(figures)) = (&mut whole, figures) {
        whole.extend(figures);
    }
    whole["sockets"] = sockets.map(Value::Object).collect();
    writeln!(out, "{}", on_one_line(&whole)?)
}

/// As reports are written, but with all on one line: a program's name may hold anything.
fn on_one_line(value: &Value) -> io::Result<String> {
    let mut text = Vec::new();
    compact(&mut text, value)?;
    // In strings it is escaped.
    text.retain(|&byte| byte != b'\n');
    String::from_utf8(text).map_err(io::Error::other)
}

/// All that is known of a socket.
pub(super) fn socket(row: &Row) -> Map<String, Value> {
    let TcpSocket { local, peer, state, recv_queue, send_queue, uid, inode, .. } = &row.socket;
    let suspicions: Vec<_> = row
        .suspicions
        .iter()
        .map(|suspicion| {
            json!({
                "kind": suspicion.kind.name(),
                "amount": suspicion.amount,
                "still_ms": suspicion.still_ms,
                "text": sentence::of(row, suspicion).replace('\u{a0}', " "),
            })
        })
        .collect();
    let why = |unknown: &Option<super::row::Unknown>| unknown.as_ref().map(super::row::Unknown::footnote);
    let whole = json!({
        "local": local,
        "peer": Some(peer).filter(|_| !matches!(state, State::Listen | State::Closed)),
        "state": state.name(),
        "programs": programs(&row.socket),
        "programs_unknown": why(&row.program_unknown),
        "uid": uid,
        "inode": inode,
        "cookie": Some(row.cookie).filter(|cookie| *cookie != 0),
        "other_network": row.is_elsewhere,
        "recv_queue": recv_queue,
        "send_queue": send_queue,
        "timer": row.socket.timer.map(timer),
        "congestion_control": row.socket.congestion_control,
        "options": options(row),
        "options_unknown": why(&row.options_unknown),
        "buffers": buffers(&row.socket),
        "info": info(&row.socket),
        "suspicions": suspicions,
    });
    match whole {
        Value::Object(whole) => whole,
        _ => Map::new(),
    }
}

fn programs(socket: &TcpSocket) -> Vec<Value> {
    let holders = socket.holders.iter();
    holders.map(|holder| json!({ "name": holder.name, "pid": holder.pid, "fd": holder.fd })).collect()
}

fn timer(timer: Timer) -> Value {
    let kind = match timer.kind {
        TimerKind::Retransmit => "retransmit",
        TimerKind::KeepAlive => "keep-alive",
        TimerKind::TimeWait => "time-wait",
        TimerKind::Probe => "probe",
    };
    json!({ "kind": kind, "ends_in_ms": timer.ends_in_ms, "retries": timer.retries })
}

fn options(row: &Row) -> Value {
    let options = row.socket.options;
    json!({ "nodelay": options.nodelay, "cork": options.cork, "quickack": options.quickack })
}

fn buffers(socket: &TcpSocket) -> Value {
    let buffers = socket.buffers;
    json!({
        "recv": buffers.recv,
        "send": buffers.send,
        "recv_is_set": buffers.recv_is_fixed,
        "send_is_set": buffers.send_is_fixed,
        "drops": buffers.drops,
    })
}

fn info(socket: &TcpSocket) -> Value {
    let info = &socket.info;
    let ms = |us: Option<u64>| us.map(|us| us as f64 / 1e3);
    let congestion_state = info.congestion_state.map(|state| match state {
        CongestionState::Open => "open",
        CongestionState::Disorder => "disorder",
        CongestionState::Reduced => "reduced",
        CongestionState::Recovery => "recovery",
        CongestionState::Loss => "loss",
    });
    let mut whole = json!({
        "unsent": info.not_sent,
        "in_flight": socket.bytes_in_flight(),
        "segments_in_flight": info.unacked,
        "segments_sacked": info.sacked,
        "segments_lost": info.lost,
        "segments_sent_again": info.retransmitted,
        "timeouts": info.timeouts,
        "retransmissions": info.retransmissions,
        "cwnd": info.cwnd,
        "ssthresh": info.ssthresh,
        "congestion_state": congestion_state,
        "mss": info.mss,
        "peer_mss": info.recv_mss,
        "path_mtu": info.path_mtu,
        "peer_window": info.peer_window,
        "own_window": info.own_window,
    });
    let times = json!({
        "rtt_ms": ms(info.rtt_us),
        "rtt_deviation_ms": ms(info.rtt_deviation_us),
        "min_rtt_ms": ms(info.min_rtt_us),
        "rto_ms": ms(info.rto_us),
        "ack_delay_ms": ms(info.ato_us),
        "last_sent_ms": info.last_sent_ms,
        "last_received_ms": info.last_received_ms,
        "last_ack_ms": info.last_ack_ms,
        "busy_ms": ms(info.busy_us),
        "rwnd_limited_ms": ms(info.peer_window_limited_us),
        "sndbuf_limited_ms": ms(info.send_buffer_limited_us),
        "pacing_rate": info.pacing_rate,
        "delivery_rate": info.delivery_rate,
        "app_limited": info.is_app_limited,
        "bytes_sent": info.bytes_sent,
        "bytes_retransmitted": info.bytes_retransmitted,
        "bytes_acked": info.bytes_acked,
        "bytes_received": info.bytes_received,
        "out_of_order": info.out_of_order,
    });
    if let (Value::Object(whole), Value::Object(times)) = (&mut whole, times) {
        whole.extend(times);
    }
    whole
}
