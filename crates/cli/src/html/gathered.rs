//! What is kept of a capture until it is known whose packets the page has.

use std::path::PathBuf;

use tcpwhy_diagnose::report::Source;
use tcpwhy_report::html::{Candidate, CapturePage, Chosen};
use tcpwhy_report::terminal;

/// A capture of the page.
pub(super) struct Gathered {
    pub(super) page: CapturePage,
    pub(super) candidates: Vec<Wanting>,
    pub(super) place: Place,
}

/// Where a capture's packets are.
pub(super) enum Place {
    /// In this file, which has so many captures before it.
    In { file: PathBuf, capture: usize },
    /// They cannot be had, for this reason.
    Nowhere(&'static str),
}

/// A connection whose packets the page may have.
pub(super) struct Wanting {
    pub(super) candidate: Candidate,
    /// Packets that show its findings.
    pub(super) evidence: Vec<u64>,
}

impl Gathered {
    pub(super) fn new(source: &dyn Source, chosen: Chosen, place: Place) -> Self {
        let Chosen { connections, findings, others_ledger_ms, listed, .. } = chosen;
        let verdict = terminal::verdict(source);
        let candidates = listed.into_values().map(|candidate| {
            let findings = match candidate.findings {
                0 => Vec::new(),
                _ => source.findings_of(candidate.connection.id),
            };
            let evidence = findings.iter().flat_map(|finding| &finding.evidence);
            Wanting { evidence: evidence.map(|evidence| evidence.packet).collect(), candidate }
        });
        Self {
            candidates: candidates.collect(),
            page: CapturePage { verdict, connections, findings, others_ledger_ms, ..CapturePage::default() },
            place,
        }
    }
}
