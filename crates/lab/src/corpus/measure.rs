//! What a cause cost, from the programs' logs of runs with and without it.

use std::collections::BTreeMap;

use crate::programs::message::Message;

/// How long each kind of message takes where nothing is in its way: its median in the run without causes, ns.
#[derive(Clone, Debug)]
pub(super) struct Base(BTreeMap<&'static str, i64>);

impl Base {
    /// From the run without causes.
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut times: BTreeMap<&'static str, Vec<i64>> = BTreeMap::new();
        for message in messages {
            times.entry(message.kind).or_default().push(message.read - message.written);
        }
        Self(times.into_iter().map(|(kind, times)| (kind, median(times))).collect())
    }

    /// For how long some message was later than it takes, in ns: the measure of the union of the times from
    /// when each should have been read to when it was.
    pub(super) fn lateness(&self, messages: &[Message]) -> i64 {
        let base = |message: &Message| self.0.get(message.kind).copied().unwrap_or(0);
        let mut late: Vec<(i64, i64)> =
            messages.iter().map(|message| (message.written + base(message), message.read)).collect();
        late.sort_unstable();
        let (mut sum, mut until) = (0, i64::MIN);
        for (due, read) in late {
            sum += (read - due.max(until)).max(0);
            until = until.max(read);
        }
        sum
    }
}

fn median(mut times: Vec<i64>) -> i64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(written: i64, read: i64) -> Message {
        Message { kind: "round", written, read }
    }

    #[test]
    fn messages_that_are_late_at_the_same_time_count_once() {
        let base = Base::of(&[message(0, 10), message(100, 110), message(200, 230)]);
        // 10 is what a message takes. Due at 10 and 30, both read at 50: some message is late from 10 to 50.
        assert_eq!(base.lateness(&[message(0, 50), message(20, 50)]), 40);
        // Apart, each counts.
        assert_eq!(base.lateness(&[message(0, 50), message(100, 120)]), 40 + 10);
    }

    #[test]
    fn messages_in_time_cost_nothing() {
        let base = Base::of(&[message(0, 10)]);
        assert_eq!(base.lateness(&[message(0, 10), message(20, 25)]), 0);
    }
}
