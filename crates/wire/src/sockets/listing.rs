//! A saved text to its sockets.

use std::io::{self, Read};

use super::{TcpSocket, ss};
use crate::text::lines::Lines;

/// Sockets that are kept of one text, some 70 MB of them; the rest is counted.
const MOST_SOCKETS: usize = 100_000;

/// What a text says about sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the text's order.
    pub sockets: Vec<TcpSocket>,
    /// Sockets beyond the first 100,000.
    pub left_out: u64,
    /// What wrote the text; where it has parts of several, the last one's.
    pub source: Option<Source>,
}

/// What wrote a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The kernel: `/proc/net/tcp` or `/proc/net/tcp6`.
    Proc,
    /// `ss`.
    Ss,
    /// `netstat`.
    Netstat,
}

impl Source {
    /// The name of the file or the command.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proc => "/proc/net/tcp",
            Self::Ss => "ss",
            Self::Netstat => "netstat",
        }
    }
}

impl Listing {
    /// Reads a saved `/proc/net/tcp` or `/proc/net/tcp6`, or what `ss` or `netstat` printed, with whatever stands before,
    /// between and behind: lines that are none of these are passed over. Empty where nothing was found.
    ///
    /// # Errors
    ///
    /// Those of `text`.
    pub fn read(text: impl Read) -> io::Result<Self> {
        let mut lines = Lines::new(text);
        let mut listing = Self::default();
        // Whether the last socket may be told more by the next line, and whether ss's lines have states.
        let (mut is_open, mut has_states) = (false, true);
        while let Some(line) = lines.next_line()? {
            is_open = match socket(&line, has_states) {
                Some((socket, source)) => {
                    listing.push(socket, source);
                    source == Source::Ss && listing.left_out == 0
                }
                None => {
                    let last = listing.sockets.last_mut().filter(|_| is_open);
                    last.is_some_and(|last| ss::continuation(last, &line))
                }
            };
            if line.contains("Recv-Q") {
                has_states = !ss::is_heading_without_states(&line);
            }
        }
        listing.complete();
        Ok(listing)
    }

    fn push(&mut self, socket: TcpSocket, source: Source) {
        self.source = Some(source);
        if self.sockets.len() < MOST_SOCKETS {
            self.sockets.push(socket);
        } else {
            self.left_out += 1;
        }
    }

    /// Fills in what ss left out because it is zero, and takes FINs for what they are.
    fn complete(&mut self) {
        // ss of before 2020 knows no windows; one that shows some socket's left the others' out as zero.
        let shows_windows = self.sockets.iter().any(|socket| socket.info.peer_window.is_some());
        // Likewise times, which came with Linux 4.10.
        let shows_times = self.sockets.iter().any(|socket| socket.info.busy_us.is_some());
        for socket in &mut self.sockets {
            ss::complete(socket);
            if shows_windows && socket.state.may_send() && socket.info.mss.is_some() {
                socket.info.peer_window.get_or_insert(0);
            }
            if shows_times && socket.info.mss.is_some() {
                let info = &mut socket.info;
                for time in
                    [&mut info.busy_us, &mut info.peer_window_limited_us, &mut info.send_buffer_limited_us]
                {
                    time.get_or_insert(0);
                }
            }
            socket.leave_out_fins();
        }
    }
}

/// The socket that a line begins with, and who wrote it.
fn socket(line: &str, has_states: bool) -> Option<(TcpSocket, Source)> {
    if let Some((socket, goes_on)) = ss::line(line) {
        return Some((socket, if goes_on { Source::Ss } else { Source::Netstat }));
    }
    if !has_states && let Some(socket) = ss::line_without_state(line) {
        return Some((socket, Source::Ss));
    }
    TcpSocket::of_proc_line(line).map(|socket| (socket, Source::Proc))
}
