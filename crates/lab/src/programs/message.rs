//! What a program knows of one message: when it was given to TCP, and when the other program had all of it.

use serde::Serialize;

/// One message; times in ns by [`crate::clock::now`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Messages of one kind take the same time where nothing is in their way.
    pub kind: &'static str,
    /// When it was, or should have been, written.
    pub written: i64,
    /// When the program that waits for it had read it all.
    pub read: i64,
}

/// What one side wrote: when each message was due, and the stream's length up to its end.
pub(crate) type Writes = Vec<(i64, usize)>;

/// What one side read: when each read returned, and the stream's length up to there.
pub(crate) type Reads = Vec<(i64, usize)>;

/// The messages of one direction.
pub(crate) fn matched(kind: &'static str, writes: &Writes, reads: &Reads) -> Vec<Message> {
    let mut reads = reads.iter().peekable();
    let mut messages = Vec::with_capacity(writes.len());
    for &(written, end) in writes {
        while reads.next_if(|&&(_, length)| length < end).is_some() {}
        if let Some(&&(read, _)) = reads.peek() {
            messages.push(Message { kind, written, read });
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_when_its_last_byte_is() {
        let writes = vec![(10, 100), (20, 200), (30, 300)];
        let reads = vec![(15, 60), (25, 200), (40, 300)];
        let read: Vec<i64> = matched("up", &writes, &reads).iter().map(|message| message.read).collect();
        assert_eq!(read, [25, 25, 40]);
    }

    #[test]
    fn what_never_arrived_is_no_message() {
        assert_eq!(matched("up", &vec![(10, 100), (20, 200)], &vec![(15, 150)]).len(), 1);
    }
}
