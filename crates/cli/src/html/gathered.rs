//! What is kept of a capture until it is known whose packets the page has.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tcpwhy_diagnose::report::Source;
use tcpwhy_report::html::{ABOUT_ALL, Candidate, CapturePage, Chosen};
use tcpwhy_report::terminal;

/// A capture of the page.
pub(super) struct Gathered {
    pub(super) page: CapturePage,
    pub(super) candidates: Vec<Wanting>,
    pub(super) place: Place,
    /// Packets that show findings about several connections or the whole capture.
    pub(super) shared_evidence: BTreeSet<u64>,
}

/// Where a capture's packets are.
pub(super) enum Place {
    /// In this file, which has so many captures before it; or in the files of a set, one after the other.
    In { file: Vec<PathBuf>, capture: usize },
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
        let (sign, verdict) = terminal::signed_verdict(source);
        let candidates = listed.into_values().map(|candidate| {
            let findings = match candidate.findings {
                0 => Vec::new(),
                _ => source.findings_of(candidate.connection.id),
            };
            let evidence = findings.iter().flat_map(|finding| &finding.evidence);
            Wanting { evidence: evidence.map(|evidence| evidence.packet).collect(), candidate }
        });
        let about_all = source.findings().take_while(|finding| finding.connection.is_none()).take(ABOUT_ALL);
        let shared = about_all.flat_map(|finding| finding.evidence).map(|evidence| evidence.packet);
        Self {
            candidates: candidates.collect(),
            shared_evidence: shared.collect(),
            page: CapturePage {
                verdict,
                sign: Some(sign),
                connections,
                findings,
                others_ledger_ms,
                ..CapturePage::default()
            },
            place,
        }
    }
}
