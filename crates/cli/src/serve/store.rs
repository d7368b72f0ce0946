//! Reports that were made, in one database file: it survives whatever ends the server, and several servers may share it.

use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::http::StatusCode;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tcpwhy_report::plain::plain;

use super::answer::{Outcome, Problem};
use crate::create;

/// Says in the file's head that it is ours: "tcpw".
const APPLICATION: i32 = 0x7463_7077;
/// Which form of the tables below it has.
const VERSION: i32 = 1;
/// How long to wait for another server that writes: a report takes some hundredths of a second.
const PATIENCE: Duration = Duration::from_secs(5);
/// Reports that are listed, the latest first.
const MOST_LISTED: usize = 500;

const TABLES: &str = "
    CREATE TABLE reports (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        -- The capture's name in its folder, its size in bytes, and when it was last written to, in ms since 1970.
        capture TEXT NOT NULL,
        size INTEGER NOT NULL,
        modified_ms INTEGER NOT NULL,
        -- When the report was made, in ms since 1970, and by which version of tcpwhy.
        made_ms INTEGER NOT NULL,
        version TEXT NOT NULL,
        -- JSON for the list, and for comparisons.
        summary TEXT NOT NULL,
        digest TEXT NOT NULL,
        -- The page, gzip.
        page BLOB NOT NULL
    ) STRICT;
";

/// The file of reports, open.
#[derive(Debug)]
pub(super) struct Store {
    connection: Connection,
}

/// A report to be kept.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) capture: String,
    pub(super) size: u64,
    pub(super) modified_ms: u64,
    pub(super) made_ms: u64,
    pub(super) summary: String,
    pub(super) digest: String,
    /// The page, gzip.
    #[serde(skip)]
    pub(super) page: Vec<u8>,
}

/// A report that is kept, as the list shows it.
#[derive(Debug, Serialize)]
pub(super) struct Kept {
    pub(super) id: i64,
    pub(super) capture: String,
    size: u64,
    modified_ms: u64,
    made_ms: u64,
    version: String,
    summary: Value,
}

/// The reports that are kept.
#[derive(Debug, Serialize)]
pub(super) struct Listing {
    reports: Vec<Kept>,
    /// Reports beyond those.
    more: usize,
}

impl Store {
    /// Opens the store, or makes one where there is none.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = plain(&path.to_string_lossy()).into_owned();
        guard(path).with_context(|| cannot_be_opened(&name))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
            connection.busy_timeout(PATIENCE)?;
            Ok(Self { connection })
        });
        let mut store = opened.with_context(|| cannot_be_opened(&name))?;
        match store.prepare() {
            Ok(None) => Ok(store),
            Ok(Some(Foreign::Version(version))) => bail!(
                "{name} was written by another version of tcpwhy (its store is version {version}, this tcpwhy knows {VERSION}): \
                 name another file with --store"
            ),
            Ok(Some(Foreign::Program)) => {
                bail!("{name} is the database of another program: name another file with --store")
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
                bail!("{name} is no store of reports: name another file with --store")
            }
            Err(error) => Err(error).with_context(|| cannot_be_opened(&name)),
        }
    }

    /// Makes the tables in a new file; says whose an old one is, where it is not ours.
    fn prepare(&mut self) -> rusqlite::Result<Option<Foreign>> {
        // Deleted reports shall free their place. It has to be said before there is a table.
        self.connection.pragma_update(None, "auto_vacuum", "FULL")?;
        // Whoever comes second waits, and finds the tables.
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let number = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let (application, version) = (number("application_id")?, number("user_version")?);
        let tables: u32 =
            transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        let foreign = match (application, version, tables) {
            (APPLICATION, VERSION, _) => None,
            (APPLICATION, version, _) => Some(Foreign::Version(version)),
            (0, 0, 0) => {
                transaction.execute_batch(TABLES)?;
                transaction.pragma_update(None, "application_id", APPLICATION)?;
                transaction.pragma_update(None, "user_version", VERSION)?;
                None
            }
            _ => Some(Foreign::Program),
        };
        transaction.commit()?;
        Ok(foreign)
    }

    /// Keeps a report; its number.
    pub(super) fn insert(&self, report: &Report) -> Outcome<i64> {
        let Report { capture, size, modified_ms, made_ms, summary, digest, page } = report;
        let sql = "INSERT INTO reports (capture, size, modified_ms, made_ms, version, summary, digest, page) \
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
        let version = env!("CARGO_PKG_VERSION");
        let (size, modified_ms, made_ms) = (stored(*size), stored(*modified_ms), stored(*made_ms));
        let values = params![capture, size, modified_ms, made_ms, version, summary, digest, page];
        self.connection.execute(sql, values)?;
        Ok(self.connection.last_insert_rowid())
    }

    /// The reports, the latest first.
    pub(super) fn list(&self) -> Outcome<Listing> {
        let sql = "SELECT id, capture, size, modified_ms, made_ms, version, summary FROM reports ORDER BY id DESC LIMIT ?";
        let mut statement = self.connection.prepare(sql)?;
        let reports: Vec<Kept> =
            statement.query_map([stored(MOST_LISTED as u64)], kept)?.collect::<rusqlite::Result<_>>()?;
        let all: i64 = self.connection.query_row("SELECT count(*) FROM reports", [], |row| row.get(0))?;
        let more = usize::try_from(all).unwrap_or_default().saturating_sub(reports.len());
        Ok(Listing { reports, more })
    }

    /// A report's digest, as JSON.
    pub(super) fn digest(&self, id: i64) -> Outcome<String> {
        self.one("SELECT digest FROM reports WHERE id = ?", id, |row| row.get(0))
    }

    /// A report's page, gzip.
    pub(super) fn page(&self, id: i64) -> Outcome<Vec<u8>> {
        self.one("SELECT page FROM reports WHERE id = ?", id, |row| row.get(0))
    }

    /// Forgets a report.
    pub(super) fn delete(&self, id: i64) -> Outcome<()> {
        let gone = self.connection.execute("DELETE FROM reports WHERE id = ?", [id])?;
        if gone == 1 { Ok(()) } else { Err(missing()) }
    }

    fn one<T>(&self, sql: &str, id: i64, read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>) -> Outcome<T> {
        self.connection.query_row(sql, [id], read).optional()?.ok_or_else(missing)
    }
}

/// Makes the file where there is none, for its owner's eyes alone, as one is made that is there. The files that
/// the database makes beside it get the same rights. Fails for a link.
fn guard(path: &Path) -> io::Result<()> {
    /// Reports are made of captures.
    const OWN: u32 = 0o600;
    create::refuse_link(path)?;
    let made = OpenOptions::new().write(true).create_new(true).mode(OWN).open(path);
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        // What is somebody else's is theirs to guard: SQLite says whether it can be used.
        _ => {
            let _ = std::fs::set_permissions(path, Permissions::from_mode(OWN));
            Ok(())
        }
    }
}

/// Whose a file is that is not ours.
enum Foreign {
    Version(i32),
    Program,
}

fn cannot_be_opened(name: &str) -> String {
    format!("the reports cannot be kept in {name} (another place: --store FILE)")
}

fn missing() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "There is no such report: it was deleted.")
}

/// The database's integers have a sign.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn kept(row: &Row<'_>) -> rusqlite::Result<Kept> {
    let number = |at| row.get::<_, i64>(at).map(|number| u64::try_from(number).unwrap_or_default());
    // Only whoever writes into the file by hand can have written anything else than JSON there.
    let summary = serde_json::from_str(&row.get::<_, String>(6)?).unwrap_or_default();
    Ok(Kept {
        id: row.get(0)?,
        capture: row.get(1)?,
        size: number(2)?,
        modified_ms: number(3)?,
        made_ms: number(4)?,
        version: row.get(5)?,
        summary,
    })
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => {
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "The disk with the reports is full.")
            }
            Some(ErrorCode::DatabaseBusy) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "Another program is writing to the reports: try again.",
            ),
            Some(ErrorCode::ReadOnly) => {
                Self::new(StatusCode::FORBIDDEN, "The file with the reports may not be written to.")
            }
            _ => Self::here(format!("The file with the reports cannot be used: {error}")),
        }
    }
}
