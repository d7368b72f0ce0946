//! packetdrill's script language, run on a TCP in virtual time.
//!
//! packetdrill (Cardwell et al., USENIX ATC 2013) tests a TCP by a script of what its program calls, what it
//! receives, and what it then must send and when. [`parse()`] reads such a script, the public ones as they are;
//! [`run()`] follows it on a simulated [`Endpoint`](crate::tcp::Endpoint). [`run_on`] does so on anything else that is a
//! [`Host`]: the lab has one for the kernel. What packetdrill compares is compared, and what cannot be is told in the
//! [`Outcome`]: nothing that was not looked at counts as a pass without being named.
//!
//! ```text
//! syntax.rs                 a script as it was written
//! cursor.rs, parse*.rs      text to that
//! commands.rs               sysctls and routes in its shell commands
//! request.rs                its socket calls without C's argument lists
//! run.rs, run_call.rs       one step after the other
//! compare.rs                the script's sequence numbers and timestamps against those on the wire
//! python.rs                 the asserts on tcp_info
//! outcome.rs, show.rs       what came of it, as packetdrill prints it
//! host.rs                   what a TCP under test can do
//! simulated.rs              sockets on endpoints, connection.rs one of them; settings.rs and fields.rs are the sysctls
//!                           and tcp_info
//! ```

mod commands;
mod compare;
mod connection;
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
