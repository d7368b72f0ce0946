//! The labelled corpus: connections whose causes are known because the lab made them, and the score of an
//! analyser against them.
//!
//! ```text
//! run.rs      one run of a pair of programs over a path; equal runs are recorded once
//! case.rs     a run, its causes, and each cause's cure: the same run without it
//! matrix/     all cases: cause × path × sizes, look-alikes, compounds, clean connections
//! measure.rs  what a cause cost: by how much messages were later than in the run without it
//! steady.rs   whether the machine itself stood still during a run, which is then repeated
//! label.rs    what is stored of a case: tests/corpus/cases.json, one line each
//! build.rs    records cases and writes the corpus
//! score/      runs the analyser over it: precision, recall, confusion, errors of costs
//! ```
//!
//! The truth never comes from the analyser. Programs log when each message was written and read; causes are
//! what the matrix puts in; their cost is what their removal saves.

mod build;
mod case;
mod label;
mod matrix;
mod measure;
mod run;
pub mod score;
mod steady;

pub use build::build;
pub use case::{Case, Cause, Group, Party};
pub use label::{Label, LabelledCause, load, merge};
pub use matrix::cases;
pub use run::{Run, Traffic};
