//! How often each socket was in which suspicion.

use std::cmp::Reverse;
use std::collections::HashMap;

use tcpwhy_diagnose::sockets::Kind;
use tcpwhy_report::number::{count, duration};
use tcpwhy_report::page::GLUE;
use tcpwhy_wire::sockets::Info;

use super::super::row::Row;

/// Sockets that are counted at once, some 20 MB of them; others are only counted themselves.
const MOST_SOCKETS: usize = 20_000;

const KINDS: usize = Kind::ALL.len();

/// Of all sockets.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Looks taken.
    pub(super) looks: u64,
    /// The most sockets in one look.
    pub(super) most: usize,
    /// Looks at sockets for which there was no room.
    pub(super) left_out: u64,
    by_cookie: HashMap<u64, Count>,
}

/// Of one socket.
#[derive(Debug, Default)]
pub(super) struct Count {
    /// Looks in which it was there.
    pub(super) looks: u64,
    /// As it was when it last waited.
    pub(super) last: Option<Row>,
    seen: [u64; KINDS],
    in_a_row: [u64; KINDS],
    longest: [u64; KINDS],
    first_info: Info,
    last_info: Info,
}

impl Counts {
    /// Takes a look.
    pub(super) fn add(&mut self, rows: &[Row]) {
        self.looks += 1;
        self.most = self.most.max(rows.len());
        for row in rows {
            if self.by_cookie.len() < MOST_SOCKETS || self.by_cookie.contains_key(&row.cookie) {
                self.by_cookie.entry(row.cookie).or_default().add(row);
            } else {
                self.left_out += 1;
            }
        }
    }

    /// Drops sockets that are not in the latest `interval` any more and never waited.
    pub(super) fn forget_what_is_gone(&mut self, interval: &Self) {
        self.by_cookie
            .retain(|cookie, count| count.last.is_some() || interval.by_cookie.contains_key(cookie));
    }

    /// Sockets that waited: the gravest kind first, and of a kind those seen most often.
    pub(super) fn suspects(&self) -> Vec<&Count> {
        let mut suspects: Vec<_> = self.by_cookie.values().filter(|count| count.last.is_some()).collect();
        suspects.sort_by_cached_key(|count| {
            let gravest = count.kinds().next().map(|(kind, seen)| (kind, Reverse(seen)));
            (gravest, count.last.as_ref().map(Row::ends))
        });
        suspects
    }
}

impl Count {
    fn add(&mut self, row: &Row) {
        if self.looks == 0 {
            self.first_info = row.socket.info;
        }
        self.looks += 1;
        self.last_info = row.socket.info;
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            let has = row.suspicions.iter().any(|suspicion| suspicion.kind == kind);
            self.seen[at] += u64::from(has);
            self.in_a_row[at] = if has { self.in_a_row[at] + 1 } else { 0 };
            self.longest[at] = self.longest[at].max(self.in_a_row[at]);
        }
        if !row.suspicions.is_empty() {
            self.last = Some(row.clone());
        }
    }

    /// The kinds that were seen, and in how many looks.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (Kind, u64)> + '_ {
        Kind::ALL.into_iter().zip(self.seen).filter(|(_, seen)| *seen > 0)
    }

    /// Looks in a row that showed `kind`, at most.
    pub(super) fn longest(&self, kind: Kind) -> u64 {
        let all = Kind::ALL.into_iter().zip(self.longest);
        all.filter(|(one, _)| *one == kind).map(|(_, longest)| longest).sum()
    }

    /// What the kernel counted between the first and the last look.
    pub(super) fn meanwhile(&self) -> Vec<String> {
        let (first, last) = (&self.first_info, &self.last_info);
        let grown = |first: Option<u64>, last: Option<u64>| Some(last?.saturating_sub(first?));
        let times = [
            ("busy", grown(first.busy_us, last.busy_us)),
            ("rwnd-limited", grown(first.peer_window_limited_us, last.peer_window_limited_us)),
            ("sndbuf-limited", grown(first.send_buffer_limited_us, last.send_buffer_limited_us)),
        ];
        let times = times
            .into_iter()
            .filter_map(|(name, us)| us.map(|us| format!("{name} {}", duration(us as f64 / 1e3))));
        let again = grown(first.retransmissions, last.retransmissions)
            .map(|again| format!("retransmissions {}", count(again)));
        let mut all: Vec<String> =
            times.chain(again).map(|item| item.replace(' ', &GLUE.to_string())).collect();
        if let Some(first) = all.first_mut() {
            *first = format!("meanwhile: {first}");
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::sockets::{State, TcpSocket};

    use super::*;

    fn row(cookie: u64, unread: u64) -> Row {
        let mut socket = TcpSocket::new("10.0.0.1:1".to_owned(), "10.0.0.2:2".to_owned(), State::Established);
        socket.recv_queue = unread;
        Row { cookie, ..Row::new(socket) }
    }

    #[test]
    fn looks_are_counted_by_socket() {
        let mut counts = Counts::default();
        // Socket 1 waits in three looks of four, two in a row; socket 2 comes late and never waits.
        counts.add(&[row(1, 5)]);
        counts.add(&[row(1, 0), row(2, 0)]);
        counts.add(&[row(1, 7), row(2, 0)]);
        counts.add(&[row(1, 9), row(2, 0)]);
        assert_eq!((counts.looks, counts.most), (4, 2));
        let [count] = counts.suspects()[..] else { panic!("{counts:?}") };
        assert_eq!(count.kinds().collect::<Vec<_>>(), [(Kind::Unread, 3)]);
        assert_eq!((count.looks, count.longest(Kind::Unread), count.longest(Kind::Nagle)), (4, 2, 0));
        assert_eq!(count.last.as_ref().map(|row| row.socket.recv_queue), Some(9));
    }

    #[test]
    fn sockets_that_are_gone_and_never_waited_are_forgotten() {
        let (mut in_all, mut interval) = (Counts::default(), Counts::default());
        in_all.add(&[row(1, 5), row(2, 0), row(3, 0)]);
        interval.add(&[row(3, 0)]);
        in_all.forget_what_is_gone(&interval);
        let mut left: Vec<_> = in_all.by_cookie.keys().copied().collect();
        left.sort_unstable();
        assert_eq!(left, [1, 3]);
    }

    #[test]
    fn memory_has_a_bound() {
        let mut counts = Counts::default();
        let rows: Vec<_> = (1..=MOST_SOCKETS as u64 + 3).map(|cookie| row(cookie, 1)).collect();
        counts.add(&rows);
        assert_eq!((counts.by_cookie.len(), counts.left_out), (MOST_SOCKETS, 3));
    }
}
