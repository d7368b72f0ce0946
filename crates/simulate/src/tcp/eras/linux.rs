//! Linux. File names are those of `net/ipv4/` unless said otherwise.

use std::time::Duration;

use super::super::stack::{
    Buffer, Congestion, Counting, DelayedAck, EcnUse, Estimator, HoleFilled, IdleRestart, Nagle, Receiving,
    Repair, Sending, Stack, Ticks, Timeout, WindowProbe,
};

const MS: Duration = Duration::from_millis(1);
/// i386 had `HZ` = 100 until 2.6 (`include/asm-i386/param.h`).
const JIFFY: Duration = Duration::from_millis(10);

/// Linux 6: what a kernel of 2022 and later does with its defaults, CUBIC as congestion control.
///
/// Not modelled: F-RTO, pacing, ACK compression, receive offload, PAWS.
pub fn linux_6() -> Stack {
    Stack {
        // Ethernet's 1500 less 40.
        mss: 1460,
        // include/net/tcp.h: TCP_TS_HZ 1000.
        timestamps: Some(MS),
        // tcp_select_initial_window, for tcp_rmem[2] = 6 MiB: 128 x 65,535 is the first that covers it.
        window_scale: Some(7),
        sack: true,
        // tcp_ecn = 2.
        ecn: Some(EcnUse::Accepts),
        // CONFIG_HZ_250, the default of kernel/Kconfig.hz.
        ticks: Ticks::Wheel { jiffy: Duration::from_millis(4) },
        sender: Sending {
            // The default of Kconfig, with hystart = 1 (tcp_cubic.c).
            congestion: Congestion::Cubic { hystart: true },
            counting: Counting::Segments,
            repair: Repair::Sack,
            // tcp_cwnd_reduction.
            proportional_rate_reduction: true,
            new_data_in_recovery: true,
            limited_transmit: true,
            // tcp_recovery = 1, tcp_early_retrans = 3.
            rack: true,
            tail_loss_probe: true,
            undo: true,
            // tcp_slow_start: cwnd grows by what was acknowledged.
            byte_counting: true,
            window_validation: true,
            // include/net/tcp.h: TCP_INIT_CWND.
            initial_window: 10,
            // tcp_slow_start_after_idle = 1: tcp_cwnd_restart.
            idle_restart: IdleRestart::Halving,
            nagle: Nagle::Minshall,
            probe: WindowProbe::OldNumber,
            offload: Some(2),
            // tcp_autocorking = 1, but a network card is done sooner than a program writes again.
            autocork: None,
            timeout: Timeout {
                // TCP_TIMEOUT_INIT, TCP_RTO_MIN, TCP_RTO_MAX.
                initial: 1000 * MS,
                min: 200 * MS,
                max: 120_000 * MS,
                estimator: Estimator::Linux,
                // tcp_syn_retries, tcp_retries2.
                syn_retries: 6,
                retries: 15,
            },
            // tcp_wmem grows with the window (tcp_sndbuf_expand): no limit that a path of today meets.
            send_buffer: None,
        },
        receiver: Receiving {
            // TCP_DELACK_MIN = TCP_ATO_MIN = HZ/25, TCP_DELACK_MAX = HZ/5.
            delayed_ack: DelayedAck::Linux { min: 40 * MS, max: 200 * MS },
            // tcp_data_queue: RFC5681 4.2 (since 4.11).
            hole_filled: HoleFilled::AtOnce,
            // The first SYN offers 44 segments; tcp_rmem[1] and [2] are 128 KiB and 6 MiB. 160 of 256 bytes of it are
            // window, since 1,448 bytes take 2,304 of memory (scaling_ratio, 6.6; half of it before).
            buffer: Buffer::Tuned { initial: 64_240, buffer: 81_920, max: 3_932_160 },
            // tcp_dsack = 1.
            dsack: true,
            silly_window_avoidance: true,
        },
    }
}

/// What Linux 2.0 and 2.1 have in common.
fn linux_of_the_nineties() -> Stack {
    Stack {
        mss: 1460,
        timestamps: None,
        window_scale: None,
        sack: false,
        ecn: None,
        ticks: Ticks::Every(JIFFY),
        sender: Sending {
            congestion: Congestion::Reno,
            counting: Counting::Segments,
            repair: Repair::Reno,
            proportional_rate_reduction: false,
            // Duplicate ACKs before the third do nothing (tcp_ack of 2.0, tcp_fast_retrans of 2.2).
            new_data_in_recovery: true,
            limited_transmit: false,
            rack: false,
            tail_loss_probe: false,
            undo: false,
            // tcp_ack of 2.0, tcp_cong_avoid of 2.2: one step an ACK, whether the window is used or not.
            byte_counting: false,
            window_validation: false,
            // tcp_conn_request of 2.0, tcp_v4_init_sock of 2.2.1: cong_window and snd_cwnd begin with 1.
            initial_window: 1,
            idle_restart: IdleRestart::Never,
            nagle: Nagle::Rfc896,
            // tcp_write_wakeup: sent_seq - 1, without data.
            probe: WindowProbe::OldNumber,
            offload: None,
            autocork: None,
            timeout: Timeout {
                // include/net/tcp.h of 2.0 and 2.2: TCP_TIMEOUT_INIT 3*HZ, TCP_SYN_RETRIES 10, TCP_RETR2 15;
                // tcp_rtt_estimator and tcp_bound_rto: HZ/5 to 120*HZ.
                initial: 3000 * MS,
                min: 200 * MS,
                max: 120_000 * MS,
                estimator: Estimator::LinuxOld,
                syn_retries: 10,
                retries: 15,
            },
            // SK_WMEM_MAX is 65,535 bytes of memory; assumed 230 of it a segment besides the payload: 38 segments.
            send_buffer: Some(38 * 1460),
        },
        receiver: Receiving {
            delayed_ack: DelayedAck::Off,
            hole_filled: HoleFilled::Late,
            // SK_RMEM_MAX: 65,535 in 2.2, in 2.0 with CONFIG_SKB_LARGE. Half of it in whole segments is 32,120, the
            // window of the Netrek trace's Linux. 230 a segment (struct sk_buff and headers) is assumed.
            buffer: Buffer::Memory { bytes: 65_535, per_segment: 230 },
            dsack: false,
            silly_window_avoidance: true,
        },
    }
}

/// Linux 2.0.3x of 1997: the *receiver* of Cardwell's mail.
///
/// Its delayed ACK is what made his transfer slow: the wait is half the old one and the whole gap, up to half a
/// second, and the gap between segments that fill holes is the wait before and a round trip.
///
/// Not modelled: the second ACK that it promises itself after each segment out of order, and that after a timeout
/// nothing new leaves until everything old is acknowledged.
pub fn linux_2_0() -> Stack {
    let mut stack = linux_of_the_nineties();
    // tcp_send_skb: (jiffies - sk->idletime) > sk->rto, where idletime is that of the last arrival (tcp_rcv).
    stack.sender.idle_restart = IdleRestart::UnlessHeard;
    // tcp.c, do_tcp_sendmsg: a partial segment waits while packets_out.
    stack.sender.nagle = Nagle::Rfc896;
    // tcp_input.c, tcp_delack_estimator and tcp_queue: a jiffy at least, HZ/2 at most (HZ/50 after PSH).
    stack.receiver.delayed_ack = DelayedAck::LinuxOld { min: JIFFY, max: 500 * MS };
    // tcp_queue: what fits at the edge is delayed, holes or not; Cardwell 1998.
    stack.receiver.hole_filled = HoleFilled::Late;
    stack
}

/// Linux 2.1.126 of 1998: the *sender* of Cardwell's mail. Numbers are those of 2.2.1, two months younger.
///
/// Cardwell says that it delays the ACK of what fills a hole. 2.2.1 does so only for the last hole
/// (`__tcp_ack_snd_check` looks whether anything is still out of order); that is what is modelled.
///
/// Not modelled: in recovery without SACK its window is not deflated by partial ACKs ("Don't muck with the congestion
/// window here", `tcp_fast_retrans`); FACK, where the peer has SACK, is RFC 6675 here.
pub fn linux_2_1() -> Stack {
    let mut stack = linux_of_the_nineties();
    // tcp_input.c: sysctl_tcp_timestamps, _window_scaling, _sack = 1. A window of 32 KiB needs no scale.
    stack.timestamps = Some(JIFFY);
    stack.window_scale = Some(0);
    stack.sack = true;
    // tcp_fast_retrans: "Hoe style" retransmission on a partial ACK, tcp_fack_retransmit with SACK.
    stack.sender.repair = Repair::Sack;
    // include/net/tcp.h, tcp_snd_test: len < mss >> 1 while packets_out.
    stack.sender.nagle = Nagle::HalfSegment;
    // tcp_output.c looks at no idle time.
    stack.sender.idle_restart = IdleRestart::Never;
    // tcp_delack_estimator, tcp_send_delayed_ack(tp, HZ/2).
    stack.receiver.delayed_ack = DelayedAck::Linux21 { min: JIFFY, max: 500 * MS };
    stack.receiver.hole_filled = HoleFilled::LastLate;
    stack
}
