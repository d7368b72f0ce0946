//! Traffic in one line as the steps of two programs.

use std::time::Duration;

use super::ScenarioError;
use super::file::{Requests, Traffic, Updates};
use crate::world::{Act, Step, When};

/// Writes of one run: more take memory and hours.
const MOST_WRITES: u64 = 100_000;
/// Bytes of one run, as for a single write.
const MOST_BYTES: u64 = 100_000_000;

/// The client's and the server's steps.
pub(super) fn steps(traffic: &Traffic) -> Result<[Vec<Step>; 2], ScenarioError> {
    let once = |bytes: u64| (vec![now(Act::Write(bytes)), now(Act::Close)], vec![close_at_end()]);
    match traffic {
        Traffic { download: Some(bytes), upload: None, updates: None, requests: None } => {
            let (writer, reader) = once(bytes.0);
            Ok([reader, writer])
        }
        Traffic { download: None, upload: Some(bytes), updates: None, requests: None } => {
            let (writer, reader) = once(bytes.0);
            Ok([writer, reader])
        }
        Traffic { download: None, upload: None, updates: Some(updates), requests: None } => {
            updates_of(*updates)
        }
        Traffic { download: None, upload: None, updates: None, requests: Some(requests) } => {
            requests_of(*requests)
        }
        _ => Err(ScenarioError::about("[traffic] has one of download, upload, updates and requests")),
    }
}

fn now(act: Act) -> Step {
    Step { when: When::Next, delay: Duration::ZERO, act }
}

fn close_at_end() -> Step {
    Step { when: When::EndOfFile, ..now(Act::Close) }
}

fn updates_of(updates: Updates) -> Result<[Vec<Step>; 2], ScenarioError> {
    check(updates.count, 1, updates.count.saturating_mul(updates.bytes.0))?;
    let mut server = Vec::new();
    let mut at = Duration::ZERO;
    for _ in 0..updates.count {
        server.push(Step { when: When::At(at), ..now(Act::Write(updates.bytes.0)) });
        at = at.saturating_add(updates.every.0);
    }
    server.push(Step { when: When::At(at), ..now(Act::Close) });
    Ok([vec![close_at_end()], server])
}

fn requests_of(requests: Requests) -> Result<[Vec<Step>; 2], ScenarioError> {
    let Requests { request, answer, count, .. } = requests;
    let (request, answer) = (request.0, answer.0);
    let pieces = (requests.request_pieces.unwrap_or(1), requests.pieces.unwrap_or(1));
    check(count.min(pieces.0).min(pieces.1), 1, 0)?;
    check(count, pieces.0.max(pieces.1), count.saturating_mul(request.max(answer)))?;
    if pieces.0 > request || pieces.1 > answer {
        return Err(ScenarioError::about("traffic.requests: a piece is at least a byte"));
    }
    let think = requests.think.map_or(Duration::ZERO, |think| think.0);
    let pause = requests.pause.map_or(Duration::ZERO, |pause| pause.0);
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for round in 0..count {
        let first =
            if round == 0 { (When::Next, Duration::ZERO) } else { (When::Read(round * answer), pause) };
        client.extend(message(request, pieces.0, first));
        server.extend(message(answer, pieces.1, (When::Read((round + 1) * request), think)));
    }
    client.push(Step { when: When::Read(count * answer), ..now(Act::Close) });
    server.push(close_at_end());
    Ok([client, server])
}

/// A message in as many writes as it has pieces, the last one with what is left.
fn message(bytes: u64, pieces: u64, (when, delay): (When, Duration)) -> impl Iterator<Item = Step> {
    let pieces = pieces.max(1);
    let each = bytes / pieces;
    (0..pieces).map(move |piece| {
        let act = Act::Write(if piece + 1 == pieces { bytes - each * (pieces - 1) } else { each });
        if piece == 0 { Step { when, delay, act } } else { now(act) }
    })
}

fn check(count: u64, writes_each: u64, bytes: u64) -> Result<(), ScenarioError> {
    let error = |what: &str| Err(ScenarioError::about(format!("traffic: {what}")));
    match count.saturating_mul(writes_each) {
        0 => error("count and pieces are at least 1"),
        writes if writes > MOST_WRITES => error("more than 100,000 writes"),
        _ if bytes > MOST_BYTES => error("more than 100 MB"),
        _ => Ok(()),
    }
}
