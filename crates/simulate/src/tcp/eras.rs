//! Stacks that exist or existed, by name.

use std::time::Duration;

use super::stack::{
    Buffer, Congestion, Counting, DelayedAck, EcnUse, Estimator, HoleFilled, IdleRestart, Nagle, Receiving,
    Repair, Sending, Stack, Ticks, Timeout, WindowProbe,
};

const MS: Duration = Duration::from_millis(1);

/// Linux 6: what a kernel of 2022 and later does with its defaults, CUBIC as congestion control.
pub fn linux_6() -> Stack {
    Stack {
        mss: 1460,
        timestamps: Some(MS),
        window_scale: Some(7),
        sack: true,
        ecn: Some(EcnUse::Accepts),
        // CONFIG_HZ_250, the default of kernel/Kconfig.hz.
        ticks: Ticks::Wheel { jiffy: Duration::from_millis(4) },
        sender: Sending {
            congestion: Congestion::Cubic { hystart: true },
            counting: Counting::Segments,
            repair: Repair::Sack,
            proportional_rate_reduction: true,
            limited_transmit: true,
            rack: true,
            tail_loss_probe: true,
            undo: true,
            byte_counting: true,
            window_validation: true,
            initial_window: 10,
            idle_restart: IdleRestart::Halving,
            nagle: Nagle::Minshall,
            probe: WindowProbe::OldNumber,
            autocork: None,
            timeout: Timeout {
                initial: 1000 * MS,
                min: 200 * MS,
                max: 120_000 * MS,
                estimator: Estimator::Linux,
                syn_retries: 6,
                retries: 15,
            },
            send_buffer: None,
        },
        receiver: Receiving {
            delayed_ack: DelayedAck::Linux { min: 40 * MS, max: 200 * MS },
            hole_filled: HoleFilled::AtOnce,
            buffer: Buffer::Tuned { initial: 64_240, buffer: 65_536, max: 3 << 20 },
            dsack: true,
            silly_window_avoidance: true,
        },
    }
}
