//! Packets to causes, in three layers: `flow` (packets to named facts), `ledger` (facts to booked time),
//! `detectors` (ledger and facts to findings); `report` is the versioned shape in which the result leaves. Apart
//! from these, `hops` joins the two connections that a proxy makes of one conversation, `sockets` judges one look at a
//! socket, and `trial` what an option changed that was switched off and on.
//!
//! Pure: no clock, no file, no thread, no printing. One pass over the packets, nothing kept per packet.

mod analyzer;
mod calendar;
pub mod detectors;
mod diagnosis;
pub mod flow;
pub mod hops;
pub mod ledger;
pub mod report;
pub mod sockets;
pub mod trial;

pub use analyzer::{Analyzer, CaptureInfo};
pub use diagnosis::Diagnosis;
