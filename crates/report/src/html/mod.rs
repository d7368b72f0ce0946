//! The interactive report: one file that opens from disk.
//!
//! It is the page that `viewer/` builds with a report's data in it: the report itself (`tcpwhy-report/2`), what only the page
//! needs (`tcpwhy-page/1`, [`Page`]) and packets of some connections ([`Table`]). docs/page.md describes all three.

mod choice;
mod escape;
mod page;
mod rules;
mod share;
mod table;
pub mod template;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

pub use choice::{ABOUT_ALL, Candidate, Chosen, Limits, Listed};
pub use page::{CapturePage, EvidencePlace, FORMAT, Page, TableEntry};
pub use rules::{RuleText, texts};
pub use share::{Share, shares};
pub use table::Table;

/// Packets that all tables of a page have together, where nobody asks for another number. With what else a table has, a packet
/// takes 7 bytes of the page in a download and 24 to 28 among small requests, so this is 14 MB at most; lists and texts take 3 MB
/// at most beside it. A page of some GB of packets stays below 20 MB, which mail and chat still take.
pub const PACKETS: u64 = 500_000;

/// What is put into the page.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// `tcpwhy-report/2`, with the connections that are listed.
    pub report: &'a [u8],
    /// `tcpwhy-page/1`.
    pub page: &'a Page<'a>,
    /// Packed tables, by the numbers that the page gives them.
    pub tables: &'a [String],
}

/// Writes the page: `template` with the data at its place ([`template::DATA`]).
///
/// Nothing of the data can end the element that it is in: JSON has its angle brackets escaped, tables are base64.
pub fn write(out: &mut (impl Write + ?Sized), template: &str, data: &Data<'_>) -> io::Result<()> {
    let (before, after) = template.split_once(template::DATA).unwrap_or((template, ""));
    out.write_all(before.as_bytes())?;
    out.write_all(b"<script type=\"application/json\" id=\"tcpwhy-report\">")?;
    escape::write(out, data.report)?;
    out.write_all(b"</script>\n<script type=\"application/json\" id=\"tcpwhy-page\">")?;
    let mut page = Vec::new();
    crate::json::compact(&mut page, data.page)?;
    escape::write(out, &page)?;
    out.write_all(b"</script>\n")?;
    for (number, table) in data.tables.iter().enumerate() {
        write!(out, "<script type=\"text/plain\" id=\"tcpwhy-packets-{number}\">")?;
        out.write_all(table.as_bytes())?;
        out.write_all(b"</script>\n")?;
    }
    out.write_all(after.as_bytes())
}
