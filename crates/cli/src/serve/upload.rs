//! A capture from the browser, streamed into the folder: it appears there whole, under a name of its own, or not at all.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body::Body as _;
use http_body_util::BodyExt;
use tcpwhy_report::number;
use tempfile::{Builder, NamedTempFile};
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use super::answer::{Outcome, Problem};
use super::{Shared, folder};

/// Uploads at once.
pub(super) const MOST_AT_ONCE: usize = 4;
/// How long nothing may come.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long it may take in all: 2 GB at 5 Mbit/s take an hour. A trickle would keep a place for ever.
const LONGEST: Duration = Duration::from_secs(3_600);
/// Pieces that wait for the disk; each is at most what a connection buffers, 64 KiB.
const AHEAD: usize = 16;
/// How a file is called until it is whole: hidden, so that nobody takes it for a capture.
const UNFINISHED: &str = ".tcpwhy-upload-";
/// Names that are tried where the first is taken.
const MOST_NAMES: u32 = 1_000;

/// Takes the body as the capture `name`; what it came to be called.
pub(super) async fn take(shared: &Arc<Shared>, name: String, body: Body) -> Outcome<String> {
    let name = folder::name_of_upload(&name)?;
    if body.size_hint().lower() > shared.upload_limit {
        return Err(too_large(shared.upload_limit));
    }
    let _place = shared.uploads.try_acquire().map_err(|_| {
        let why = format!("{MOST_AT_ONCE} captures are being uploaded: try again when one is done.");
        Problem::new(StatusCode::TOO_MANY_REQUESTS, why)
    })?;
    let (pieces, coming) = mpsc::channel(AHEAD);
    let mode = shared.mode;
    let writing = spawn_blocking(move || write(&name, mode, coming));
    let sent = send(body, shared.upload_limit, &pieces).await;
    if let Err(problem) = sent {
        // The writer gives up, and what it wrote goes away.
        let _ = pieces.send(Err(())).await;
        drop(pieces);
        let written = writing.await;
        // Where the disk was full, that is why nobody took the rest.
        return Err(match written {
            Ok(Err(Some(refused))) => refused,
            _ => problem,
        });
    }
    drop(pieces);
    let unknown = || Problem::here("the upload was not finished");
    writing.await.map_err(|_| unknown())?.map_err(|refused| refused.unwrap_or_else(unknown))
}

/// A piece of the capture; an error says that there will be no more, and that it is not whole.
type Piece = Result<Bytes, ()>;

/// Hands the body on, piece by piece, as long as it is neither too large nor too slow.
async fn send(mut body: Body, limit: u64, pieces: &mpsc::Sender<Piece>) -> Outcome<()> {
    let slow = |why: &str| Problem::new(StatusCode::REQUEST_TIMEOUT, why);
    let end = Instant::now() + LONGEST;
    let mut taken = 0;
    loop {
        if Instant::now() >= end {
            return Err(slow("The upload took longer than an hour."));
        }
        let frame = timeout(PATIENCE, body.frame()).await;
        let frame = frame.map_err(|_| slow("Nothing came for 20 seconds: the upload was given up."))?;
        let Some(frame) = frame else { return Ok(()) };
        let frame = frame.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "The upload broke off."))?;
        let Ok(bytes) = frame.into_data() else { continue };
        taken += bytes.len() as u64;
        if taken > limit {
            return Err(too_large(limit));
        }
        let refused = || Problem::here("the capture could not be written");
        pieces.send(Ok(bytes)).await.map_err(|_| refused())?;
    }
}

/// Writes what comes into a file; `None` as an error where the sender knows why.
fn write(name: &str, mode: u32, mut coming: Receiver<Piece>) -> Result<String, Option<Problem>> {
    let file = Builder::new().prefix(UNFINISHED).tempfile_in(".");
    let mut file = file.map_err(|error| Some(unwritten(&error)))?;
    let mut start = Vec::new();
    let mut is_known = folder::is_called_so(name);
    let mut size = 0;
    while let Some(piece) = coming.blocking_recv() {
        let piece = piece.map_err(|()| None)?;
        if !is_known {
            let missing = folder::START as usize - start.len();
            start.extend_from_slice(&piece[..missing.min(piece.len())]);
            is_known = folder::begins_so(name, &start);
            if !is_known && start.len() == folder::START as usize {
                return Err(Some(no_capture()));
            }
        }
        size += piece.len() as u64;
        file.write_all(&piece).map_err(|error| Some(unwritten(&error)))?;
    }
    match (size, is_known) {
        (0, _) => Err(Some(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "That file is empty."))),
        (_, false) => Err(Some(no_capture())),
        _ => file
            .as_file()
            .set_permissions(Permissions::from_mode(mode))
            .and_then(|()| named(name, file))
            .map_err(|error| Some(unwritten(&error))),
    }
}

/// Gives the file its name, or, where that is taken, one with a number.
fn named(name: &str, mut file: NamedTempFile) -> io::Result<String> {
    file.as_file().sync_all()?;
    let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
    for number in 1..=MOST_NAMES {
        let tried = match (number, ending) {
            (1, _) => name.to_owned(),
            (_, "") => format!("{stem}-{number}"),
            _ => format!("{stem}-{number}.{ending}"),
        };
        match file.persist_noclobber(Path::new(".").join(&tried)) {
            Ok(_) => return Ok(tried),
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => file = error.file,
            Err(error) => return Err(error.error),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, format!("{MOST_NAMES} files are called {name} already")))
}

fn no_capture() -> Problem {
    let why = "Neither a capture (pcap, pcapng, .gz, .zst) nor lines that tcpdump printed (.txt).";
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why)
}

fn too_large(limit: u64) -> Problem {
    let why =
        format!("Larger than {}, the most this server takes: see --upload-limit.", number::bytes(limit));
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, why)
}

fn unwritten(error: &io::Error) -> Problem {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Problem::new(StatusCode::INSUFFICIENT_STORAGE, "The disk with the folder of captures is full.")
        }
        ErrorKind::FileTooLarge => {
            Problem::new(StatusCode::INSUFFICIENT_STORAGE, "Files may not become that large there.")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Problem::new(StatusCode::FORBIDDEN, "tcpwhy may not write into the folder of captures.")
        }
        _ => Problem::here(format!("The capture cannot be written: {error}")),
    }
}

/// Removes what servers left that were killed in the middle of an upload: no upload that goes on is so old.
pub(super) fn tidy() {
    for entry in fs::read_dir(".").into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
        if is_ours && age.is_some_and(|age| age > LONGEST) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
