//! BSD and what came of it. File names are those of 4.4BSD-Lite2's `sys/netinet/`; figures are those of Wright and
//! Stevens, TCP/IP Illustrated vol. 2.

use std::time::Duration;

use super::super::stack::{
    Buffer, Congestion, Counting, DelayedAck, Estimator, HoleFilled, IdleRestart, Nagle, Receiving, Repair,
    Sending, Stack, Ticks, Timeout, WindowProbe,
};

const MS: Duration = Duration::from_millis(1);
/// `PR_SLOWHZ` is 2 (`sys/protosw.h`).
const SLOW_TICK: Duration = Duration::from_millis(500);
/// `PR_FASTHZ` is 5: `tcp_fasttimo` sends the ACKs that wait.
const FAST_TICK: Duration = Duration::from_millis(200);
/// 8 KiB (`tcp_usrreq.c`: `tcp_recvspace`), rounded up to whole segments (`tcp_mss`).
const NET3_BUFFER: u64 = 6 * 1460;

/// 4.4BSD-Lite2 of 1995, whose TCP is Net/3's: what FreeBSD, NetBSD and many others began with.
///
/// Cardwell says that FreeBSD 3.0 delays the ACK of what fills a hole. Its source does not: the macro `TCP_REASS`
/// (figure 27.15) delays only what fits at the edge *while nothing waits above it* (`seg_next == tp`), and else sets
/// `TF_ACKNOW`. That is what is modelled.
///
/// Not modelled: round trips are measured in slow ticks there, one segment at a time; after a SYN's first timeout of
/// 6 s the second is 24 s; a host off the local net gets segments of 512 bytes (`tcp_mssdflt`); the ACK of a passive
/// opener's SYN already opens its window to two (Linux 2.0 has that as well); the window that is halved is rounded down
/// in bytes.
pub fn bsd_4_4() -> Stack {
    Stack {
        // Ethernet, and a peer on the local net.
        mss: 1460,
        // tcp_subr.c: tcp_do_rfc1323 = 1; tcp_now counts slow ticks.
        timestamps: Some(SLOW_TICK),
        window_scale: Some(0),
        sack: false,
        ecn: None,
        ticks: Ticks::Every(SLOW_TICK),
        sender: Sending {
            congestion: Congestion::Reno,
            counting: Counting::Bytes,
            // tcp_input.c, tcprexmtthresh: fast retransmit and recovery, left at the first new ACK.
            repair: Repair::Reno,
            proportional_rate_reduction: false,
            new_data_in_recovery: true,
            limited_transmit: false,
            rack: false,
            tail_loss_probe: false,
            undo: false,
            // tcp_input.c: cwnd grows once an ACK, used or not.
            byte_counting: false,
            window_validation: false,
            // tcp_mss: snd_cwnd = mss.
            initial_window: 1,
            // tcp_output: idle && t_idle >= t_rxtcur, where t_idle begins with each arrival.
            idle_restart: IdleRestart::UnlessHeard,
            nagle: Nagle::Bsd,
            // TCPTV_PERSMIN, TCPTV_PERSMAX.
            probe: WindowProbe::NewByte { min: 5000 * MS, max: 60_000 * MS },
            offload: None,
            autocork: None,
            timeout: Timeout {
                // tcp_newtcpcb: 12 slow ticks; TCPTV_MIN, TCPTV_REXMTMAX.
                initial: 6000 * MS,
                min: 1000 * MS,
                max: 64_000 * MS,
                estimator: Estimator::Standard,
                // TCPTV_KEEP_INIT: 75 s in all, which is two.
                syn_retries: 2,
                // TCP_MAXRXTSHIFT.
                retries: 12,
            },
            // tcp_sendspace, rounded up like the other.
            send_buffer: Some(NET3_BUFFER),
        },
        receiver: Receiving {
            delayed_ack: DelayedAck::Heartbeat { period: FAST_TICK },
            hole_filled: HoleFilled::AtOnce,
            buffer: Buffer::Fixed(NET3_BUFFER),
            dsack: false,
            silly_window_avoidance: true,
        },
    }
}

/// Digital UNIX 4 of 1997, the client of the Netrek trace; a descendant of BSD.
///
/// From the trace: a window of 33,580 bytes, 23 segments, which is 32 KiB rounded up; no timestamps (its peer was
/// Linux, which may have offered none); ACKs that leave every 200 ms whenever the data came, and one ACK for two small
/// segments. All else is assumed to be as in [`bsd_4_4`].
pub fn digital_unix() -> Stack {
    let mut stack = bsd_4_4();
    stack.timestamps = None;
    stack.window_scale = None;
    stack.receiver.buffer = Buffer::Fixed(23 * 1460);
    stack.sender.send_buffer = Some(23 * 1460);
    stack
}
