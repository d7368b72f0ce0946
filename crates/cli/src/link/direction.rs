//! The options that say what the link does, for both directions and for one.

use std::time::Duration;

use anyhow::{Result, ensure};
use tcpwhy_simulate::link::{AckHold, Drop, Ends, Queue, Settings};

use super::quantity::{
    bytes, hold, ordinal, rate, rate_in_words, share, share_in_words, time, time_in_words,
};

/// The same options thrice: `--rate`, `--up-rate`, `--down-rate`. The last two are not listed in the help, which
/// says once that they are there.
macro_rules! options {
    ($(#[$about:meta])* $name:ident, $prefix:literal, hidden: $hidden:literal) => {
        $(#[$about])*
        #[derive(Debug, clap::Args)]
        #[command(next_help_heading = "The link, the same in each direction (also --up-…, towards the peer, and --down-…)")]
        pub(super) struct $name {
            /// Time that a packet travels, one way; the base round trip is twice that
            #[arg(long = concat!($prefix, "delay"), id = concat!($prefix, "delay"), hide = $hidden, value_name = "TIME", value_parser = time)]
            delay: Option<Duration>,
            /// Up to so much more, by chance; packets stay in order
            #[arg(long = concat!($prefix, "jitter"), id = concat!($prefix, "jitter"), hide = $hidden, value_name = "TIME", value_parser = time)]
            jitter: Option<Duration>,
            /// Bits a second, of IP packets: 440kbit, 100mbit
            #[arg(long = concat!($prefix, "rate"), id = concat!($prefix, "rate"), hide = $hidden, value_name = "RATE", value_parser = rate)]
            rate: Option<u64>,
            /// Packets that may wait for the rate; the next is dropped. Without it: any number
            #[arg(long = concat!($prefix, "queue"), id = concat!($prefix, "queue"), hide = $hidden, value_name = "PACKETS", conflicts_with = concat!($prefix, "queue-bytes"))]
            queue: Option<usize>,
            /// The same, in bytes
            #[arg(long = concat!($prefix, "queue-bytes"), id = concat!($prefix, "queue-bytes"), hide = $hidden, value_name = "BYTES", value_parser = bytes)]
            queue_bytes: Option<usize>,
            /// Mark ECN-capable packets that find so many packets waiting
            #[arg(long = concat!($prefix, "mark-above"), id = concat!($prefix, "mark-above"), hide = $hidden, value_name = "PACKETS")]
            mark_above: Option<usize>,
            /// Share of packets lost by chance: 1%
            #[arg(long = concat!($prefix, "loss"), id = concat!($prefix, "loss"), hide = $hidden, value_name = "SHARE", value_parser = share)]
            loss: Option<f64>,
            /// Lose the N-th packet; again for more
            #[arg(long = concat!($prefix, "drop-packet"), id = concat!($prefix, "drop-packet"), hide = $hidden, value_name = "N", value_parser = ordinal)]
            drop_packet: Vec<u64>,
            /// Lose the N-th TCP segment with data; again for more
            #[arg(long = concat!($prefix, "drop-data"), id = concat!($prefix, "drop-data"), hide = $hidden, value_name = "N", value_parser = ordinal)]
            drop_data: Vec<u64>,
            /// Lose the last segment of the N-th burst; again for more
            #[arg(long = concat!($prefix, "drop-tail"), id = concat!($prefix, "drop-tail"), hide = $hidden, value_name = "N", value_parser = ordinal)]
            drop_tail: Vec<u64>,
            /// Lose the N-th SYN; again for more
            #[arg(long = concat!($prefix, "drop-syn"), id = concat!($prefix, "drop-syn"), hide = $hidden, value_name = "N", value_parser = ordinal)]
            drop_syn: Vec<u64>,
            /// Share of packets that are overtaken, by those of the next --reorder-by
            #[arg(long = concat!($prefix, "reorder"), id = concat!($prefix, "reorder"), hide = $hidden, value_name = "SHARE", value_parser = share)]
            reorder: Option<f64>,
            /// How much later an overtaken packet arrives
            #[arg(long = concat!($prefix, "reorder-by"), id = concat!($prefix, "reorder-by"), hide = $hidden, value_name = "TIME", value_parser = time)]
            reorder_by: Option<Duration>,
            /// Share of packets that arrive twice
            #[arg(long = concat!($prefix, "duplicate"), id = concat!($prefix, "duplicate"), hide = $hidden, value_name = "SHARE", value_parser = share)]
            duplicate: Option<f64>,
            /// Hold pure ACKs as an old receiver: 200ms, heartbeat:200ms or hole-filling:200ms
            ///
            /// 200ms: until there is data to ride on or a second full-sized segment, at most 200 ms.
            /// heartbeat:200ms: the same, until the next tick of a 200 ms timer, as BSD of the 1990s.
            /// hole-filling:200ms: only the ACKs of retransmissions that fill a hole, as receivers of 1998.
            #[arg(long = concat!($prefix, "hold-acks"), id = concat!($prefix, "hold-acks"), hide = $hidden, value_name = "HOLD", value_parser = hold)]
            hold_acks: Option<AckHold>,
        }

        impl $name {
            /// Changes what was given.
            fn apply(&self, to: &mut Settings) {
                to.delay = self.delay.unwrap_or(to.delay);
                to.jitter = self.jitter.unwrap_or(to.jitter);
                to.rate = self.rate.or(to.rate);
                let queue = self.queue.map(Queue::Packets).or(self.queue_bytes.map(Queue::Bytes));
                to.queue = queue.unwrap_or(to.queue);
                to.mark_above = self.mark_above.or(to.mark_above);
                to.loss = self.loss.unwrap_or(to.loss);
                to.drops.extend(self.drop_packet.iter().copied().map(Drop::Packet));
                to.drops.extend(self.drop_data.iter().copied().map(Drop::Data));
                to.drops.extend(self.drop_tail.iter().copied().map(Drop::Tail));
                to.drops.extend(self.drop_syn.iter().copied().map(Drop::Syn));
                to.reorder = self.reorder.unwrap_or(to.reorder);
                to.reorder_by = self.reorder_by.unwrap_or(to.reorder_by);
                to.duplicate = self.duplicate.unwrap_or(to.duplicate);
                to.hold_acks = self.hold_acks.or(to.hold_acks);
            }
        }
    };
}

options!(
    /// Both directions.
    Both, "", hidden: false
);
options!(
    /// From the client to its peer.
    Up, "up-", hidden: true
);
options!(
    /// From the peer to the client.
    Down, "down-", hidden: true
);

/// What the link does.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    both: Both,
    #[command(flatten)]
    up: Up,
    #[command(flatten)]
    down: Down,
}

impl Options {
    /// The settings of both directions, if they make sense.
    pub(super) fn ends(&self) -> Result<Ends> {
        let mut ends = Ends::default();
        self.both.apply(&mut ends.up);
        self.both.apply(&mut ends.down);
        self.up.apply(&mut ends.up);
        self.down.apply(&mut ends.down);
        check(&ends.up)?;
        check(&ends.down)?;
        Ok(ends)
    }
}

/// Refuses what would do nothing: somebody expects it to.
fn check(settings: &Settings) -> Result<()> {
    let waits = settings.rate.is_some();
    ensure!(waits || settings.queue == Queue::Unlimited, "--queue needs --rate: without one no packet waits");
    ensure!(waits || settings.mark_above.is_none(), "--mark-above needs --rate: without one no packet waits");
    ensure!(settings.reorder == 0.0 || !settings.reorder_by.is_zero(), "--reorder needs --reorder-by TIME");
    ensure!(settings.reorder > 0.0 || settings.reorder_by.is_zero(), "--reorder-by needs --reorder SHARE");
    Ok(())
}

/// One direction in words, item by item.
pub(super) fn in_words(settings: &Settings) -> Vec<String> {
    let Settings {
        delay,
        jitter,
        rate,
        queue,
        loss,
        drops,
        reorder,
        reorder_by,
        duplicate,
        mark_above,
        hold_acks,
    } = settings;
    let mut words = vec![match delay.is_zero() {
        true => "no delay".to_owned(),
        false => format!("{} one way", time_in_words(*delay)),
    }];
    if !jitter.is_zero() {
        words.push(format!("jitter {}", time_in_words(*jitter)));
    }
    words.push(rate.map_or("any rate".to_owned(), rate_in_words));
    match queue {
        Queue::Unlimited => {}
        Queue::Packets(packets) => words.push(format!("queue of {packets} packets")),
        Queue::Bytes(bytes) => words.push(format!("queue of {bytes} bytes")),
    }
    words.extend(mark_above.map(|packets| format!("marks above {packets} packets")));
    if *loss > 0.0 {
        words.push(format!("{} lost", share_in_words(*loss)));
    }
    words.extend(drops.iter().map(|drop| format!("{drop} lost")));
    if *reorder > 0.0 {
        words.push(format!("{} overtaken by {}", share_in_words(*reorder), time_in_words(*reorder_by)));
    }
    if *duplicate > 0.0 {
        words.push(format!("{} duplicated", share_in_words(*duplicate)));
    }
    words.extend(hold_acks.map(|hold| match hold {
        AckHold::Delay(time) => format!("ACKs held up to {}", time_in_words(time)),
        AckHold::Heartbeat(time) => format!("ACKs held until a tick each {}", time_in_words(time)),
        AckHold::HoleFilling(time) => format!("hole-filling ACKs held {}", time_in_words(time)),
    }));
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn ends(line: &str) -> Result<Ends> {
        Line::try_parse_from(["link"].into_iter().chain(line.split_whitespace()))?.options.ends()
    }

    #[test]
    fn one_direction_wins_over_both() {
        let line = "--delay 20ms --rate 8mbit --up-rate 440kbit --up-queue 20 --down-queue-bytes 64kB --drop-data 3 --down-drop-syn 1";
        let ends = ends(line).expect("good options");
        assert_eq!((ends.up.delay, ends.down.delay), (Duration::from_millis(20), Duration::from_millis(20)));
        assert_eq!((ends.up.rate, ends.down.rate), (Some(440_000), Some(8_000_000)));
        assert_eq!((ends.up.queue, ends.down.queue), (Queue::Packets(20), Queue::Bytes(64_000)));
        assert_eq!(ends.up.drops, [Drop::Data(3)]);
        assert_eq!(ends.down.drops, [Drop::Data(3), Drop::Syn(1)]);
    }

    #[test]
    fn what_would_do_nothing_is_refused() {
        for (line, said) in [
            ("--queue 20", "--queue needs --rate"),
            ("--down-mark-above 5", "--mark-above needs --rate"),
            ("--reorder 1%", "--reorder needs --reorder-by"),
            ("--reorder-by 5ms", "--reorder-by needs --reorder"),
            ("--rate 1mbit --queue 5 --queue-bytes 5000", "cannot be used with"),
        ] {
            let error = ends(line).expect_err(line);
            assert!(error.to_string().contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn settings_are_told_in_words() {
        let line =
            "--delay 20ms --rate 440kbit --queue 20 --loss 1% --drop-tail 2 --hold-acks heartbeat:200ms";
        let words = in_words(&ends(line).expect("good options").up).join(", ");
        assert_eq!(
            words,
            "20 ms one way, 440 kbit/s, queue of 20 packets, 1 % lost, tail of burst 2 lost, \
             ACKs held until a tick each 200 ms"
        );
        assert_eq!(in_words(&Settings::default()).join(", "), "no delay, any rate");
    }
}
