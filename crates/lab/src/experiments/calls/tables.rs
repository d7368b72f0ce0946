//! Rates and calls of each case as tables, and what is to be said beside them.

use std::collections::BTreeMap;

use super::super::Table;
use super::super::figures::time;
use super::runs::{ERRORS, INTERVAL, NOISE, OverLink, Runs};
use super::{Case, ON_LINK, Options, POOLED};
use crate::programs::calls::REQUEST;

pub(super) fn rates(cases: &[Case], runs: &BTreeMap<Case, Runs>, options: &Options) -> Table {
    let title = format!(
        "Calls of {REQUEST} bytes, {} threads over loopback (MTU {}); split: {} bytes a send()",
        options.threads, options.mtu, options.write
    );
    let mut table = Table::new(title, &COLUMNS);
    for case in cases {
        if let Some(runs) = runs.get(case) {
            table.row(row(case.name(), runs));
        }
    }
    table
}

pub(super) fn rates_over_link(link: &OverLink, options: &Options) -> Table {
    let title = format!("The same over a link with a round trip of {} ms, new, split", options.round_trip);
    let mut table = Table::new(title, &COLUMNS);
    table.row(row("1 client, RCVBUF 4096".to_owned(), &link.alone));
    table.row(row(format!("{ON_LINK} clients"), &link.nagle));
    table.row(row(format!("{ON_LINK} clients, NODELAY"), &link.nodelay));
    table
}

/// The columns of both tables.
const COLUMNS: [&str; 7] =
    ["connection, sends", "calls/s", "± s.d.", "call", "connect()", "data segments", "packets/call"];

fn row(name: String, runs: &Runs) -> [String; COLUMNS.len()] {
    let (rate, connect) = (runs.rate(), runs.connect());
    [
        name,
        format!("{:.0}", rate.mean),
        format!("{:.0}", rate.deviation),
        time(runs.total().mean),
        if connect.count > 0 { time(connect.mean) } else { "–".to_owned() },
        format!("{:.1}", runs.segments.a_call(runs.segments.data)),
        format!("{:.1}", runs.segments.a_call(runs.segments.all)),
    ]
}

pub(super) fn notes(runs: &BTreeMap<Case, Runs>, options: &Options) -> Vec<String> {
    let mut notes = vec![
        format!(
            "Clients, server and network share this machine's CPUs, so a call costs what its packets cost; the \
             blog's clients were two other computers. Means are of intervals of {} ms; two differ if they are {} \
             standard errors and {:.0} % apart.",
            INTERVAL / 1_000_000,
            ERRORS,
            NOISE * 100.0
        ),
        format!(
            "The blog's trace begins with a segment of 1,024 bytes and ends with one of 298: requests were \
             written in pieces of that size. `--write {REQUEST}` writes them as one."
        ),
    ];
    if let (Some(kept), Some(cured)) = (runs.get(&POOLED), runs.get(&Case { client_nodelay: true, ..POOLED }))
    {
        let (kept, cured) = (kept.total().mean, cured.total().mean);
        notes.push(format!(
            "On kept connections a call takes {} with Nagle's algorithm and {} without, at --write {}.",
            time(kept),
            time(cured),
            options.write
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::runs::tests::runs;
    use super::super::{PLAIN, cases};
    use super::*;

    #[test]
    fn the_table_has_a_row_a_case() {
        let of_case = BTreeMap::from([(PLAIN, runs(&[4990.0, 5010.0], 13.0)), (POOLED, Runs::default())]);
        let options = Options {
            threads: 200,
            seconds: 1.0,
            rounds: 1,
            write: 1024,
            backlog: 50,
            mtu: 1500,
            round_trip: 7.0,
        };
        let table = rates(&cases(), &of_case, &options);
        assert_eq!(table.rows.len(), 2);
        assert_eq!(table.rows[0][..5], ["new, split", "5000", "14", "26.0 ms", "13.0 ms"]);
        assert_eq!(table.rows[1][4], "–");
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
    }
}
