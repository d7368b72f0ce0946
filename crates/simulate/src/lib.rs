//! TCP in virtual time: what endpoints decide and what a network does to packets. No clock, no I/O, no thread.
//!
//! Time is an argument (`now`, in ns of any monotonic clock) and chance is a seed, so that the same input gives
//! the same output. The lab drives a [`link::Link`] by the wall clock; tests drive it by numbers.

pub mod link;
pub mod scenario;
pub mod script;
pub mod tcp;
pub mod truth;
pub mod units;
pub mod whatif;
pub mod world;
