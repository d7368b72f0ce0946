//! Test conversations in tcpdump's own notation, so that a firing case and its near miss read as what they are.

use tcpwhy_wire::text::{Item, Reader};

use crate::report::{Connection, Finding, Source};
use crate::{Analyzer, CaptureInfo, Diagnosis};

/// Analyses one capture written as tcpdump prints it.
pub(crate) fn diagnose(text: &str) -> Diagnosis {
    let mut reader = Reader::new(text.as_bytes());
    let mut analyzer = Analyzer::new();
    let mut info = CaptureInfo { has_date: false, ..CaptureInfo::default() };
    while let Some(item) = reader.next() {
        match item {
            Item::Packet(packet) => {
                info.frames += 1;
                let first = info.span.map_or(packet.time, |span| span.0);
                info.span = Some((first, packet.time));
                analyzer.push(&[packet]);
            }
            Item::End(end) => info.names = end.names,
            Item::Start(_) => {}
        }
    }
    analyzer.finish(info)
}

/// The findings of one rule in a conversation.
pub(crate) fn findings(rule: &str, text: &str) -> Vec<Finding> {
    diagnose(text).findings().filter(|finding| finding.rule == rule).collect()
}

/// The conversation's only connection.
pub(crate) fn connection(text: &str) -> Connection {
    let diagnosis = diagnose(text);
    let mut connections = diagnosis.connections();
    let first = connections.next().expect("one connection");
    assert!(connections.next().is_none(), "only one connection");
    first
}
