//! Captures whose waits have a known cause: small programs, recorded together with their own log.

mod cases;
mod chat;
mod place;
mod record;
mod stream;
mod truth;

pub use cases::{CASES, Case, Places, Program};
pub use place::Place;
pub use record::record;
pub use truth::{CaptureFile, Exchange, Latency, Stream, Truth};
