//! The fields of Linux's `struct tcp_info` from an endpoint's numbers.

use std::time::Duration;

use crate::tcp::{CongestionState, Info, State};

/// `TCP_INFINITE_SSTHRESH`
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// The field of that name; `None` where the endpoint does not count it.
pub(super) fn of(info: &Info, name: &str) -> Option<f64> {
    Some(match name {
        "tcpi_state" => state(info.state),
        "tcpi_ca_state" => match info.congestion_state {
            CongestionState::Open => 0.0,
            CongestionState::Disorder => 1.0,
            CongestionState::Reduced => 2.0,
            CongestionState::Recovery => 3.0,
            CongestionState::Loss => 4.0,
        },
        "tcpi_snd_cwnd" => info.congestion_window.into(),
        "tcpi_snd_ssthresh" => info.slow_start_threshold.min(NO_THRESHOLD).into(),
        "tcpi_unacked" => info.unacknowledged.into(),
        "tcpi_sacked" => info.sacked.into(),
        "tcpi_lost" => info.lost.into(),
        "tcpi_retrans" => info.retransmitting.into(),
        "tcpi_total_retrans" => info.retransmitted.into(),
        "tcpi_backoff" | "tcpi_retransmits" => info.backoff.into(),
        "tcpi_snd_mss" => info.mss.into(),
        "tcpi_rtt" => micros(info.smoothed_round_trip),
        "tcpi_rttvar" => micros(info.round_trip_variation),
        "tcpi_rto" => micros(info.timeout),
        "tcpi_snd_wnd" => info.peer_window as f64,
        "tcpi_bytes_acked" => info.acknowledged as f64,
        "tcpi_bytes_received" => info.received as f64,
        "tcpi_notsent_bytes" => info.unsent as f64,
        _ => return None,
    })
}

fn micros(time: Duration) -> f64 {
    time.as_micros() as f64
}

/// Linux's numbers (`enum` in `net/tcp_states.h`).
fn state(state: State) -> f64 {
    f64::from(match state {
        State::Established => 1_u8,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    })
}
