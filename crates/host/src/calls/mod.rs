//! What programs do with their TCP sockets, call by call: a recorder that the loader puts into them
//! (crates/preload), and what it wrote down; and a second one, the kernel's trace events.

#[expect(
    unreachable_pub,
    dead_code,
    reason = "the recorder's own file: both sides of the memory read the same words"
)]
#[path = "../../../preload/src/format.rs"]
mod format;
mod library;
mod read;
mod recorder;
mod tracepoints;

pub use recorder::{Fix, Recorder};
pub use tracepoints::{Refused, Tracer};
