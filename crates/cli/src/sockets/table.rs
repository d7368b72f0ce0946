//! Sockets in a table: as many columns as the page has room for, and no fewer than the essential ones.

use std::io;

use tcpwhy_report::number::{bytes, count, duration};
use tcpwhy_report::page::Page;
use tcpwhy_report::plain::plain;
use tcpwhy_wire::sockets::State;

use super::row::Row;

const INDENT: &str = "  ";
/// Blank columns between two cells.
const GAP: usize = 2;
/// Columns that are always there.
const ESSENTIAL: usize = 5;
/// What a cell has where nothing is known and there is nothing to say why.
const UNKNOWN: &str = "?";

/// A column: its name, and a row's cell in it.
type Column = (&'static str, fn(&Row) -> String);

/// In order of importance.
const COLUMNS: [Column; 24] = [
    ("state", |row| state(row.socket.state).to_owned()),
    ("unread", unread),
    ("send-q", |row| if listens(row) { String::new() } else { bytes(row.socket.send_queue) }),
    ("unsent", |row| of_connection(row, row.socket.info.not_sent, bytes)),
    ("nodelay", |row| option(row, row.socket.options.nodelay)),
    ("RTT", |row| of_connection(row, row.socket.info.rtt_us, us)),
    ("retrans", |row| of_connection(row, row.socket.info.retransmissions, count)),
    ("min RTT", |row| of_connection(row, row.socket.info.min_rtt_us, us)),
    ("cwnd", |row| of_connection(row, row.socket.info.cwnd, count)),
    ("peer's window", |row| of_connection(row, row.socket.info.peer_window, bytes)),
    ("own window", |row| of_connection(row, row.socket.info.own_window, bytes)),
    ("in flight", |row| of_connection(row, row.socket.info.unacked, count)),
    ("MSS", |row| of_connection(row, row.socket.info.mss, count)),
    ("ssthresh", |row| row.socket.info.ssthresh.map_or(String::new(), count)),
    ("busy", |row| of_connection(row, row.socket.info.busy_us, us)),
    ("rwnd-limited", |row| of_connection(row, row.socket.info.peer_window_limited_us, us)),
    ("sndbuf-limited", |row| of_connection(row, row.socket.info.send_buffer_limited_us, us)),
    ("cork", |row| option(row, row.socket.options.cork)),
    ("quickack", |row| option(row, row.socket.options.quickack)),
    ("SO_SNDBUF", |row| known(row.socket.buffers.send, bytes)),
    ("SO_RCVBUF", |row| known(row.socket.buffers.recv, bytes)),
    ("delivery/s", |row| row.socket.info.delivery_rate.map_or(String::new(), bytes)),
    ("control", |row| row.socket.congestion_control.clone().unwrap_or_default()),
    ("fd", |row| {
        row.socket.holders.first().and_then(|holder| holder.fd).map_or(String::new(), |fd| fd.to_string())
    }),
];

/// Short enough for a column: as ss has them.
pub(super) fn state(state: State) -> &'static str {
    match state {
        State::Established => "ESTAB",
        State::SynReceived => "SYN-RECV",
        state => state.name(),
    }
}

fn listens(row: &Row) -> bool {
    row.socket.state == State::Listen
}

fn us(us: u64) -> String {
    duration(us as f64 / 1e3)
}

fn unread(row: &Row) -> String {
    match (listens(row), row.socket.send_queue) {
        (false, _) => bytes(row.socket.recv_queue),
        (true, 0) => row.socket.recv_queue.to_string(),
        (true, limit) => format!("{}/{limit}", row.socket.recv_queue),
    }
}

fn known(value: Option<u64>, written: fn(u64) -> String) -> String {
    value.map_or(UNKNOWN.to_owned(), written)
}

/// What only connections have.
fn of_connection(row: &Row, value: Option<u64>, written: fn(u64) -> String) -> String {
    match value {
        Some(value) if row.socket.state.may_send() => written(value),
        None if row.socket.state.may_send() => UNKNOWN.to_owned(),
        _ => String::new(),
    }
}

fn option(row: &Row, value: Option<bool>) -> String {
    match (value, &row.options_unknown) {
        (Some(value), _) => if value { "on" } else { "off" }.to_owned(),
        (None, _) if row.socket.state == State::TimeWait => String::new(),
        (None, Some(why)) => why.short().to_owned(),
        (None, None) => UNKNOWN.to_owned(),
    }
}

/// Writes rows under the names of their programs; rows of a program must be neighbours.
pub(super) fn write(page: &mut Page<'_>, rows: &[&Row]) -> io::Result<()> {
    let table = Table::fitting(rows, page.width);
    let heading = table.line("", table.columns.iter().map(|(name, _)| (*name).to_owned()));
    page.line(&page.ink.faint(&heading))?;
    let mut program = None;
    for row in rows {
        let next = plain(&row.program()).into_owned();
        if program.as_ref() != Some(&next) {
            page.line(&page.ink.bold(&next))?;
            program = Some(next);
        }
        table.row(page, row)?;
    }
    Ok(())
}

/// What fits.
struct Table {
    columns: &'static [Column],
    /// Of the ends, then of each column.
    widths: Vec<usize>,
}

impl Table {
    fn fitting(rows: &[&Row], room: usize) -> Self {
        let ends = rows.iter().map(|row| width(&ends(row))).max().unwrap_or(0);
        let widths: Vec<usize> = COLUMNS
            .iter()
            .map(|(name, cell)| rows.iter().map(|row| width(&cell(row))).fold(width(name), usize::max))
            .collect();
        let taken = |columns: usize| {
            INDENT.len() + ends + widths[..columns].iter().map(|width| GAP + width).sum::<usize>()
        };
        let columns = (ESSENTIAL..=COLUMNS.len()).rev().find(|&columns| taken(columns) <= room);
        let count = columns.unwrap_or(ESSENTIAL);
        // Where the essential columns leave too little, ends that do not fit get a line of their own.
        let over = taken(count).saturating_sub(room);
        let ends = ends.saturating_sub(over);
        let widths = std::iter::once(ends).chain(widths[..count].iter().copied()).collect();
        Self { columns: &COLUMNS[..count], widths }
    }

    fn row(&self, page: &mut Page<'_>, row: &Row) -> io::Result<()> {
        let mut ends = ends(row);
        if width(&ends) > self.widths[0] {
            page.line(&format!("{INDENT}{ends}"))?;
            ends.clear();
        }
        let line = self.line(&ends, self.columns.iter().map(|(_, cell)| cell(row)));
        page.line(&line)
    }

    fn line(&self, first: &str, cells: impl Iterator<Item = String>) -> String {
        let mut line = format!("{INDENT}{first}{}", blank(self.widths[0].saturating_sub(width(first))));
        for ((cell, columns), i) in cells.zip(&self.widths[1..]).zip(0..) {
            let space = blank(columns.saturating_sub(width(&cell)));
            // The state is a word, all others are numbers.
            let (before, after) = if i == 0 { ("", space.as_str()) } else { (space.as_str(), "") };
            line.push_str(&format!("{}{before}{cell}{after}", blank(GAP)));
        }
        line
    }
}

fn ends(row: &Row) -> String {
    plain(&row.ends()).into_owned()
}

fn blank(columns: usize) -> String {
    " ".repeat(columns)
}

/// Columns of text that has one column a letter: numbers, names of states, and cleaned addresses.
fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::sockets::TcpSocket;

    use super::*;

    fn printed(columns: usize, rows: &[&Row]) -> String {
        let mut out = Vec::new();
        write(&mut Page::new(&mut out, columns, false), rows).expect("memory");
        String::from_utf8(out).expect("text")
    }

    fn row(local: &str, peer: &str) -> Row {
        Row::new(TcpSocket::new(local.to_owned(), peer.to_owned(), State::Established))
    }

    #[test]
    fn it_uses_the_room_it_has() {
        let row = row("10.0.0.1:80", "10.0.0.2:50000");
        let narrow = printed(80, &[&row]);
        assert!(
            narrow.contains("nodelay") && narrow.lines().all(|line| line.chars().count() <= 80),
            "{narrow}"
        );
        let wide = printed(240, &[&row]);
        assert!(
            wide.contains("sndbuf-limited") && wide.lines().all(|line| line.chars().count() <= 240),
            "{wide}"
        );
        assert!(!narrow.contains("sndbuf-limited"));
    }

    #[test]
    fn long_addresses_get_a_line_of_their_own() {
        let address = "[2001:db8:1234:5678:9abc:def0:1234:5678]:50000";
        let (long, short) = (row(address, address), row("10.0.0.1:80", "10.0.0.2:50000"));
        let text = printed(80, &[&long, &short]);
        assert!(text.contains(&format!("  {address} → {address}\n")), "{text}");
        let short = text.lines().find(|line| line.contains("10.0.0.1:80")).expect("its line");
        assert!(short.contains("ESTAB"), "{text}");
    }

    #[test]
    fn a_name_cannot_act_on_the_terminal() {
        let mut row = row("10.0.0.1:80", "10.0.0.2:50000");
        row.socket.holders.push(tcpwhy_wire::sockets::Holder {
            name: "\x1b[2J".to_owned(),
            pid: 7,
            fd: None,
        });
        assert!(!printed(80, &[&row]).contains('\x1b'));
    }
}
