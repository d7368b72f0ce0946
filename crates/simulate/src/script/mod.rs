//! packetdrill's script language, run on a TCP in virtual time.
mod commands;
mod compare;
mod cursor;
mod fields;
mod host;
mod outcome;
mod parse;
mod parse_call;
mod parse_segment;
mod python;
mod request;
mod run;
mod run_call;
mod settings;
mod show;
mod simulated;
mod syntax;

pub use cursor::Error;
pub use host::{Host, OnWire, Reply, Step};
pub use outcome::{Difference, Failure, Note, Outcome, Verdict};
pub use parse::parse;
pub use request::{OptionValue, Request};
pub use run::run_on;
pub use simulated::run;
pub use syntax::{Action, Call, Command, EcnBits, Event, Options, Script, Segment, Value, When};
