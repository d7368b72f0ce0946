//! Windows.

use std::time::Duration;

use super::super::stack::{
    Buffer, Congestion, Counting, DelayedAck, Estimator, HoleFilled, IdleRestart, Nagle, Receiving, Repair,
    Sending, Stack, Ticks, Timeout, WindowProbe,
};

const MS: Duration = Duration::from_millis(1);

/// Windows 10 since the Fall Creators Update (1709).
///
/// From `Get-NetTCPSetting Internet`, the template of all client editions: `InitialCongestionWindow` 10,
/// `CongestionProvider` CUBIC, `CwndRestart` False, `DelayedAckTimeout` 40 ms, `DelayedAckFrequency` 2, `MinRto` 300
/// ms, `InitialRto` 1000 ms, `MaxSynRetransmissions` 4, `EcnCapability` and `Timestamps` Disabled. (200 ms, as older
/// Windows had, is the documentation of `TcpDelAckTicks`.) RACK and the tail-loss probe: Microsoft's announcement of
/// the Anniversary Update (1607).
pub fn windows_10() -> Stack {
    Stack {
        mss: 1460,
        timestamps: None,
        // The SYN of Windows 10: 64,240 and a scale of 8.
        window_scale: Some(8),
        sack: true,
        ecn: None,
        // Assumed: its timers are not known to be coarse.
        ticks: Ticks::Exact,
        sender: Sending {
            // HyStart++ is on since 1903 (RFC 9406); Linux's HyStart stands for it.
            congestion: Congestion::Cubic { hystart: true },
            // Assumed, as RFC 5681 has it.
            counting: Counting::Bytes,
            repair: Repair::Sack,
            // Assumed.
            proportional_rate_reduction: true,
            new_data_in_recovery: true,
            limited_transmit: true,
            rack: true,
            tail_loss_probe: true,
            // Assumed: without timestamps only DSACK could tell.
            undo: false,
            // Assumed, as RFC 9438 5.1 wants it.
            byte_counting: true,
            window_validation: true,
            initial_window: 10,
            idle_restart: IdleRestart::Never,
            // "Design issues: sending small data segments over TCP with Winsock" (KB 214397).
            nagle: Nagle::Rfc896,
            // Assumed, in the bounds of its retransmission timer.
            probe: WindowProbe::NewByte { min: 300 * MS, max: 60_000 * MS },
            offload: None,
            autocork: None,
            timeout: Timeout {
                initial: 1000 * MS,
                min: 300 * MS,
                // Assumed (RFC 6298 2.5: at least 60 s).
                max: 60_000 * MS,
                estimator: Estimator::Standard,
                syn_retries: 4,
                // TcpMaxDataRetransmissions.
                retries: 5,
            },
            // Dynamic send buffering: the buffer follows the path (ideal send backlog).
            send_buffer: None,
        },
        receiver: Receiving {
            delayed_ack: DelayedAck::Delay { delay: 40 * MS },
            // Assumed: RFC 5681 4.2.
            hole_filled: HoleFilled::AtOnce,
            // AutoTuningLevel Normal: up to 16 MiB, the most that the scale can say.
            buffer: Buffer::Tuned { initial: 64_240, buffer: 64_240, max: 16 << 20 },
            // Assumed.
            dsack: false,
            silly_window_avoidance: true,
        },
    }
}
