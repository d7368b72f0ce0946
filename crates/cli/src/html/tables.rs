//! The packets of some connections, from a second look at their files.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::flow::series::Wanted;
use tcpwhy_diagnose::report::{Connection, Source};
use tcpwhy_report::html::{EvidencePlace, Share, Table, TableEntry, shares};

use super::gathered::{Gathered, Place, Wanting};
use crate::drive::{self, Analyzed, Trouble};
use crate::filter::Filter;
use crate::parts::Parts;
use crate::stop::Stop;

pub(super) const UNREADABLE: &str =
    "The packets came through a pipe, which cannot be read a second time: save them in a file first.";
const NONE_WANTED: &str = "No packets were asked for (--html-packets 0).";
const NO_ROOM: &str = "The packets of other captures took all the room there is: --html-packets gives more.";
const STOPPED: &str =
    "Reading was stopped with Ctrl-C, and a second look at the file would have shown more than the report.";
const OTHERS: &str = "Read a second time, the file shows other connections than at first: it has changed since, or a live \
                      capture had forgotten some. Make a page of the file itself: tcpwhy FILE --html PAGE.";

/// Room for what is kept in any case, beyond the share: SYN, FIN and RST, and packets near evidence.
const ALWAYS: usize = 1 << 12;

/// What is wanted of a capture: its connections by number, each with its share.
type Shares = BTreeMap<u64, (usize, Share)>;

/// Reads files again, and makes the tables of the connections that are worth most; notes in each capture which they are.
pub(super) fn look_again(
    captures: &mut [Gathered],
    budget: u64,
    filter: Option<&Filter>,
    stop: &Stop,
) -> Vec<String> {
    let shares = shared_out(captures, budget);
    let (mut tables, mut unread) = (Vec::new(), BTreeMap::new());
    for file in files(captures) {
        if !stop.requested()
            && let Err(Trouble::Input(why)) = read(&file, captures, &shares, filter, stop, &mut tables)
        {
            unread.insert(file, why);
        }
    }
    for (gathered, shares) in captures.iter_mut().zip(&shares) {
        gathered.page.shared_evidence.sort_unstable();
        if gathered.page.tables.is_empty() && !gathered.candidates.is_empty() {
            let unread = match &gathered.place {
                Place::In { file, .. } => unread.get(file),
                Place::Nowhere(_) => None,
            };
            let unread = unread.map(|why| format!("The file could not be read a second time: {why}."));
            let reason = unread.unwrap_or_else(|| reason(gathered, shares, budget, stop).to_owned());
            gathered.page.no_packets = Some(reason);
        }
    }
    tables
}

/// Why a capture with connections has no table.
fn reason(gathered: &Gathered, shares: &Shares, budget: u64, stop: &Stop) -> &'static str {
    match &gathered.place {
        Place::Nowhere(why) => why,
        Place::In { .. } if budget == 0 => NONE_WANTED,
        Place::In { .. } if shares.is_empty() => NO_ROOM,
        Place::In { .. } if stop.requested() => STOPPED,
        Place::In { .. } => OTHERS,
    }
}

/// Divides the budget among the connections of all captures: those with findings first, then the busiest.
fn shared_out(captures: &[Gathered], budget: u64) -> Vec<Shares> {
    let mut all: Vec<(usize, usize, &Wanting)> = Vec::new();
    for (capture, gathered) in captures.iter().enumerate() {
        if matches!(gathered.place, Place::In { .. }) {
            let numbered = gathered.candidates.iter().enumerate();
            all.extend(numbered.map(|(number, wanting)| (capture, number, wanting)));
        }
    }
    all.sort_by_key(|(.., wanting)| Reverse(wanting.candidate.worth()));
    let packets: Vec<u64> = all.iter().map(|(.., wanting)| wanting.candidate.packets()).collect();
    let mut shared = vec![Shares::new(); captures.len()];
    for ((capture, number, wanting), share) in all.iter().zip(shares(&packets, budget)) {
        if let Some(share) = share {
            shared[*capture].insert(wanting.candidate.connection.id, (*number, share));
        }
    }
    shared
}

/// The files that captures are in, each once.
fn files(captures: &[Gathered]) -> Vec<Vec<PathBuf>> {
    let mut files: Vec<Vec<PathBuf>> = Vec::new();
    for gathered in captures {
        if let Place::In { file, .. } = &gathered.place
            && !files.contains(file)
        {
            files.push(file.clone());
        }
    }
    files
}

/// Reads a file again, for the captures that are in it.
fn read(
    path: &[PathBuf],
    captures: &mut [Gathered],
    shares: &[Shares],
    filter: Option<&Filter>,
    stop: &Stop,
    tables: &mut Vec<String>,
) -> Result<(), Trouble> {
    let is_here = |gathered: &Gathered, place: usize| matches!(&gathered.place, Place::In { file, capture } if file == path && *capture == place);
    let wanted_at: BTreeMap<usize, Vec<Wanted>> = captures
        .iter()
        .zip(shares)
        .filter_map(|(gathered, shares)| match &gathered.place {
            Place::In { file, capture } if file == path && !shares.is_empty() => {
                Some((*capture, wanted(gathered, shares)))
            }
            _ => None,
        })
        .collect();
    if wanted_at.is_empty() {
        return Ok(());
    }
    let wanted = |capture: usize| wanted_at.get(&capture).cloned().unwrap_or_default();
    let mut place = 0;
    drive::recording_parts(
        &Parts::again(path),
        filter,
        &wanted,
        stop,
        &mut |Analyzed { diagnosis, .. }| {
            // A file that is named twice is two captures of the page, with the same packets.
            for (gathered, shares) in captures.iter_mut().zip(shares) {
                if is_here(gathered, place) && !stop.requested() {
                    add_tables(gathered, shares, &diagnosis, tables);
                }
            }
            place += 1;
            Ok(())
        },
    )
}

/// What is recorded of a capture's connections.
fn wanted(gathered: &Gathered, shares: &Shares) -> Vec<Wanted> {
    let one = |(&connection, &(number, Share { every, packets })): (&u64, &(usize, Share))| {
        let near = if every > 1 { gathered.candidates[number].evidence.clone() } else { Vec::new() };
        let most = usize::try_from(packets).unwrap_or(usize::MAX).saturating_add(ALWAYS + near.len());
        Wanted { every, near, most: most.min(Wanted::all(connection).most), connection }
    };
    shares.iter().map(one).collect()
}

/// Whether two looks at a file found the same, but for the programs, of which the packets do not tell.
fn is_same(chosen: &Connection, found: &Connection) -> bool {
    let Connection { client_program, server_program, .. } = found.clone();
    *found == Connection { client_program, server_program, ..chosen.clone() }
}

/// Makes the tables of connections that are what they were when they were chosen.
fn add_tables(gathered: &mut Gathered, shares: &Shares, diagnosis: &Diagnosis, tables: &mut Vec<String>) {
    for connection in diagnosis.connections() {
        let Some((number, share)) = shares.get(&connection.id) else { continue };
        let candidate = &gathered.candidates[*number].candidate;
        if !is_same(&candidate.connection, &connection) {
            continue;
        }
        let Some(table) = Table::of(diagnosis, &connection) else { continue };
        let (packets, kept) = (candidate.packets(), table.marks.len() as u64);
        let every = if table.dropped == 0 { 1 } else { share.every.max(packets / kept.max(1)).max(2) };
        gathered.page.tables.push(TableEntry {
            connection: connection.id,
            table: tables.len(),
            packets,
            every,
            without_held: table.dropped > 0,
            coarse_ledger: table.coarse_ledger,
        });
        // Thinned or not, what is there is in the packets' order.
        let has = |packet: &&u64| table.marks.binary_search_by_key(*packet, |mark| mark.number).is_ok();
        let places = gathered.shared_evidence.iter().filter(has);
        let connection = connection.id;
        let places = places.map(|&packet| EvidencePlace { packet, connection });
        gathered.page.shared_evidence.extend(places);
        tables.push(table.packed());
    }
}
