//! Sysctls of Linux and metrics of its routes as settings of a simulated stack.

use std::time::Duration;

use crate::tcp::{Buffer, Congestion, EcnUse, IdleRestart, Repair, Stack};

/// `tcp_ecn = 2`, Linux's default: ECN where the peer asks.
const ECN_ACCEPTS: u64 = 2;
/// The bit of `tcp_recovery` that stands for RACK.
const RACK: u64 = 1;
/// The largest window without scaling, and so in a SYN (RFC 7323 section 2.2).
const LARGEST_UNSCALED: u64 = 65_535;
/// Half of a receive buffer is for payload, half for the kernel's own records (`tcp_adv_win_scale = 1`).
const PAYLOAD_SHARE: u64 = 2;

/// Sets `name` to `value`; `false` where the stack has no such setting or cannot have this value.
pub(super) fn set(stack: &mut Stack, name: &str, value: &str) -> bool {
    let name = name.strip_prefix("net.ipv4.").unwrap_or(name);
    match name {
        "tcp_congestion_control" => set_congestion(stack, value),
        "tcp_rmem" => set_receive_buffer(stack, value).is_some(),
        _ => value.trim().parse().is_ok_and(|number| set_number(stack, name, number)),
    }
}

fn set_number(stack: &mut Stack, name: &str, number: u64) -> bool {
    let on = number != 0;
    let sender = &mut stack.sender;
    match name {
        "tcp_sack" => {
            stack.sack = on;
            sender.repair = if on { Repair::Sack } else { Repair::NewReno };
        }
        "tcp_timestamps" => stack.timestamps = on.then_some(Duration::from_millis(1)),
        "tcp_window_scaling" => stack.window_scale = stack.window_scale.or(Some(0)).filter(|_| on),
        "tcp_ecn" => {
            stack.ecn = match number {
                0 => None,
                1 => Some(EcnUse::Asks),
                ECN_ACCEPTS => Some(EcnUse::Accepts),
                _ => return false,
            }
        }
        "tcp_slow_start_after_idle" => {
            sender.idle_restart = if on { IdleRestart::Halving } else { IdleRestart::Never };
        }
        "tcp_early_retrans" => sender.tail_loss_probe = number >= 3,
        "tcp_recovery" => sender.rack = number & RACK != 0,
        "tcp_dsack" => stack.receiver.dsack = on,
        "tcp_syn_retries" | "tcp_synack_retries" => {
            let Ok(retries) = u32::try_from(number) else { return false };
            sender.timeout.syn_retries = retries;
        }
        "tcp_min_tso_segs" => {
            let Ok(fewest) = u32::try_from(number) else { return false };
            sender.offload = sender.offload.map(|_| fewest.max(1));
        }
        "tcp_rto_min_us" => sender.timeout.min = Duration::from_micros(number),
        "tcp_rto_max_ms" => sender.timeout.max = Duration::from_millis(number),
        "tcp_autocorking" => return !on || sender.autocork.is_some(),
        "tcp_reordering" => return number == 3,
        "initcwnd" => {
            let Ok(segments) = u32::try_from(number) else { return false };
            sender.initial_window = segments.max(1);
        }
        _ => return false,
    }
    true
}

fn set_congestion(stack: &mut Stack, name: &str) -> bool {
    let known = match name.trim() {
        "reno" => Some(Congestion::Reno),
        "cubic" => Some(Congestion::Cubic { hystart: true }),
        _ => None,
    };
    stack.sender.congestion = known.unwrap_or(stack.sender.congestion);
    known.is_some()
}

/// `tcp_rmem`: smallest, first and largest buffer. The scale is chosen so that the largest fits, as in Linux's
/// `tcp_select_initial_window`.
fn set_receive_buffer(stack: &mut Stack, value: &str) -> Option<()> {
    let mut numbers = value.split_whitespace().map(str::parse::<u64>);
    let (_, first, largest) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    let mss = u64::from(stack.mss).max(1);
    let window = first / PAYLOAD_SHARE;
    let initial = (window - window % mss).min(LARGEST_UNSCALED);
    stack.receiver.buffer =
        Buffer::Tuned { initial, buffer: window, max: (largest / PAYLOAD_SHARE).max(window) };
    let shift = largest.checked_ilog2()?.saturating_sub(15).min(14);
    stack.window_scale = stack.window_scale.and(u8::try_from(shift).ok());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::eras;

    #[test]
    fn the_buffers_of_the_public_scripts_give_their_windows() {
        let mut stack = eras::linux_6();
        assert!(set(&mut stack, "net.ipv4.tcp_rmem", "4096 540000 15728640"));
        // Their SYN-ACKs offer 65535 and "wscale 8".
        assert_eq!(stack.window_scale, Some(8));
        assert!(matches!(stack.receiver.buffer, Buffer::Tuned { initial: 65_535, .. }));
        // Linux's own default: 64240 and 7.
        assert!(set(&mut stack, "net.ipv4.tcp_rmem", "4096\t131072\t6291456"));
        assert_eq!(stack.window_scale, Some(7));
        assert!(matches!(stack.receiver.buffer, Buffer::Tuned { initial: 64_240, .. }));
    }

    #[test]
    fn what_has_no_counterpart_is_refused() {
        let mut stack = eras::linux_6();
        for (name, value) in [
            ("net.ipv4.tcp_tso_win_divisor", "10"),
            ("net.ipv4.tcp_sack", "x"),
            ("net.ipv4.tcp_rmem", "1 2"),
            ("net.ipv4.tcp_rmem", "0 0 0"),
            ("net.ipv4.tcp_ecn", "5"),
            ("net.ipv4.tcp_congestion_control", "bbr"),
            ("initcwnd", "-1"),
        ] {
            assert!(!set(&mut stack, name, value), "{name}={value}");
        }
    }
}
