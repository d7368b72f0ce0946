//! The causes, what the rules call them, and how each is taken out of a run.

use std::time::Duration;

use super::super::case::{Cause, OFFLOAD, Party};
use crate::capture::Vantage;

/// A write in pieces shows as a split write, as the wait of Nagle's algorithm, or as both.
const SPLIT: &[&str] = &["split-write", "nagle-delayed-ack", "nagle-hold"];

const fn costly(
    name: &'static str,
    rules: &'static [&'static str],
    side: Party,
    cure: fn(&mut super::Run),
) -> Cause {
    Cause { name, rules, side, costs: true, unseen_at: None, cure }
}

/// The client writes its requests in pieces under Nagle's algorithm.
pub(super) fn split_request() -> Cause {
    costly("split-request", SPLIT, Party::Client, |run| {
        run.chat(|chat| chat.request = vec![chat.request.iter().sum()]);
    })
}

/// The server writes its answers in pieces under Nagle's algorithm.
pub(super) fn split_response() -> Cause {
    costly("split-response", SPLIT, Party::Server, |run| {
        run.chat(|chat| chat.response = vec![chat.response.iter().sum()]);
    })
}

/// The server's program works before it answers.
pub(super) fn slow_server() -> Cause {
    costly("slow-server", &["slow-server"], Party::Server, |run| {
        run.chat(|chat| chat.server_think = Duration::ZERO);
    })
}

/// The server's program works between the two halves of its answer. Without that work it would write once.
pub(super) fn two_flushes() -> Cause {
    costly("slow-server", &["slow-server"], Party::Server, |run| {
        run.chat(|chat| {
            (chat.server_pauses, chat.response) = (Duration::ZERO, vec![chat.response.iter().sum()]);
        });
    })
}

/// The client's program works before it asks.
pub(super) fn slow_client() -> Cause {
    costly("slow-client", &["slow-client"], Party::Client, |run| {
        run.chat(|chat| chat.client_think = Duration::ZERO);
    })
}

/// The client makes a new connection for each request.
pub(super) fn handshakes() -> Cause {
    costly("handshake-per-request", &["handshake-per-request"], Party::Client, |run| {
        run.chat(|chat| chat.connect_each = false);
    })
}

/// The client corks its socket, or says that more follows, and leaves it at that.
pub(super) fn client_cork() -> Cause {
    costly("cork", &["cork-timeout"], Party::Client, |run| {
        run.chat(|chat| (chat.client.cork, chat.client.more) = (false, false));
    })
}

/// The server does.
pub(super) fn server_cork() -> Cause {
    costly("cork", &["cork-timeout"], Party::Server, |run| {
        run.chat(|chat| (chat.server.cork, chat.server.more) = (false, false));
    })
}

const MERGED: &[&str] = &["merged-updates", "nagle-delayed-ack", "nagle-hold"];

/// Nagle's algorithm merges the server's updates.
pub(super) fn merged_down() -> Cause {
    costly("merged-updates", MERGED, Party::Server, |run| run.stream(|stream| stream.server.nodelay = true))
}

/// Nagle's algorithm merges the client's updates.
pub(super) fn merged_up() -> Cause {
    costly("merged-updates", MERGED, Party::Client, |run| run.stream(|stream| stream.client.nodelay = true))
}

const BURST: &[&str] = &["nagle-hold", "split-write", "nagle-delayed-ack"];

/// The client writes several messages at once, and each waits for the one before.
pub(super) fn burst_up() -> Cause {
    costly("nagle-burst", BURST, Party::Client, |run| run.stream(|stream| stream.client.nodelay = true))
}

/// The server does.
pub(super) fn burst_down() -> Cause {
    costly("nagle-burst", BURST, Party::Server, |run| run.stream(|stream| stream.server.nodelay = true))
}

const SMALL: &[&str] = &["small-receive-window"];

/// Without a fixed buffer Linux sizes the window itself, and lags behind a sender on a path without a rate: the
/// same transfer takes from one run to the next up to five times as long. A window that begins large does not.
fn widen(run: &mut super::Run) {
    run.wide_windows = true;
}

/// The server's receive buffer is smaller than the path.
pub(super) fn small_window_up() -> Cause {
    costly("small-receive-window", SMALL, Party::Server, |run| {
        run.transfer(|transfer| transfer.server.receive_buffer = None);
        widen(run);
    })
}

/// The client's is.
pub(super) fn small_window_down() -> Cause {
    costly("small-receive-window", SMALL, Party::Client, |run| {
        run.transfer(|transfer| transfer.client.receive_buffer = None);
        widen(run);
    })
}

/// The reading program works while data waits; the reader is the server.
pub(super) fn slow_reader_up() -> Cause {
    costly("slow-reader", &["zero-window"], Party::Server, |run| {
        run.transfer(|transfer| transfer.reader.works_every = 0);
    })
}

/// The reader is the client.
pub(super) fn slow_reader_down() -> Cause {
    costly("slow-reader", &["zero-window"], Party::Client, |run| {
        run.transfer(|transfer| transfer.reader.works_every = 0);
    })
}

/// A lost segment with nothing behind it, on its way up or down: the link loses the only segment in flight. Where it
/// should have arrived, what is sent again looks like what is sent for the first time.
pub(super) fn tail_loss(up: bool) -> Cause {
    let far = if up { Vantage::Server } else { Vantage::Client };
    Cause { unseen_at: Some(far), ..costly("tail-loss", &["tail-loss"], Party::Network, without_loss) }
}

/// Several segments are lost at the end of a message. Where a probe mends the last of them, its SACK makes the others a
/// repair as any (RFC 8985 section 7.1).
pub(super) fn long_tail_loss(up: bool) -> Cause {
    Cause { rules: &["tail-loss", "fast-recovery"], ..tail_loss(up) }
}

/// A lost SYN-ACK: the SYN had arrived.
pub(super) fn lost_syn_ack() -> Cause {
    costly("lost-syn-ack", &["syn-retry"], Party::Network, without_loss)
}

/// The server refuses SACK, so that the client mends one hole a round trip.
pub(super) fn no_sack() -> Cause {
    costly("no-sack", &["one-hole-per-rtt"], Party::Server, |run| run.no_sack = false)
}

/// The server's ACKs of what fills a hole come late; the client's uploads wait for them.
pub(super) fn late_repair_acks() -> Cause {
    costly("late-repair-acks", &["late-hole-ack"], Party::Server, |run| {
        run.wire(|wire| wire.ends.down.hold_acks = None);
    })
}

/// A lost SYN, which leaves no trace at the server.
pub(super) fn lost_syn() -> Cause {
    Cause {
        unseen_at: Some(Vantage::Server),
        ..costly("lost-syn", &["syn-retry"], Party::Network, without_loss)
    }
}

/// A lost segment with more behind it.
pub(super) fn loss() -> Cause {
    costly("loss", &["fast-recovery"], Party::Network, without_loss)
}

/// Losses of any kind.
pub(super) fn random_loss() -> Cause {
    costly("random-loss", &["fast-recovery", "rto-stall", "tail-loss"], Party::Network, without_loss)
}

fn without_loss(run: &mut super::Run) {
    run.wire(|wire| {
        for way in [&mut wire.ends.up, &mut wire.ends.down] {
            way.drops.clear();
            way.loss = 0.0;
        }
    });
}

/// The client's congestion window begins with ten segments. With one that takes all there is to send it would not wait.
pub(super) fn slow_start() -> Cause {
    costly("slow-start", &["slow-start"], Party::Client, |run| run.initial_window = Some(400))
}

/// The server's congestion window falls back while the client rests.
pub(super) fn idle_restart() -> Cause {
    costly("idle-restart", &["idle-restart"], Party::Server, |run| run.keeps_window = true)
}

/// The client's send buffer is smaller than the path. At the server its stops look like a program's.
pub(super) fn send_buffer() -> Cause {
    let cure = |run: &mut super::Run| run.transfer(|transfer| transfer.client.send_buffer = None);
    Cause {
        unseen_at: Some(Vantage::Server),
        ..costly("send-buffer", &["small-send-buffer"], Party::Client, cure)
    }
}

/// The queue on the way up is longer than the path. The transfer loses nothing by it, and its receiver sees nothing of it.
pub(super) fn bloat() -> Cause {
    Cause { unseen_at: Some(Vantage::Server), ..free("bufferbloat", &["bufferbloat"]) }
}

/// The queue on the way up marks packets.
pub(super) fn marks() -> Cause {
    free("ecn-marks", &["ecn-backoff"])
}

/// A trait of the path that costs the run no time.
fn free(name: &'static str, rules: &'static [&'static str]) -> Cause {
    Cause { name, rules, side: Party::Network, costs: false, unseen_at: None, cure: |_| {} }
}

/// The client may send one segment, and the server delays its ACK. Either could end it.
pub(super) fn delayed_ack() -> Cause {
    costly("delayed-ack", &["delayed-ack"], Party::Ends, |run| {
        run.wire(|wire| (wire.ends.up.hold_acks, wire.ends.down.hold_acks) = (None, None));
    })
}

/// Some of the server's updates are late, and the next ones catch up. Elsewhere than at the server nobody can
/// tell its program from the path, so either is a true answer there.
pub(super) fn late_down() -> Cause {
    costly("late-updates", &["uneven-cadence"], Party::Server, |run| {
        run.stream(|stream| stream.down.iter_mut().for_each(|feed| feed.late_every = 0));
    })
}

/// Some of the client's are.
pub(super) fn late_up() -> Cause {
    costly("late-updates", &["uneven-cadence"], Party::Client, |run| {
        run.stream(|stream| stream.up.iter_mut().for_each(|feed| feed.late_every = 0));
    })
}

/// The sending host's capture shows segments that its device cuts.
pub(super) fn offload(sender: Party) -> Cause {
    Cause { name: "offload", rules: OFFLOAD, side: sender, costs: false, unseen_at: None, cure: |_| {} }
}
