//! The seeds' experiments on the real kernel over an emulated link, and the labelled corpus that scores the
//! diagnosis.
//!
//! ```text
//! place/        namespaces and what joins them: loopback, a link of two TUN devices, two links with a relay
//! emulator/     drives `tcpwhy_simulate::link` by the wall clock, captures at both ends, measures its lateness
//! recording.rs  one run: its captures, the link's log, what the programs said; late runs are void and repeated
//! programs/     the programs of the stories, one file each; they log what they write and read
//! experiments/  one file each: a seed's claim, what was measured, whether it holds
//! corpus/       the labelled matrix, its truth, and the score
//! ```

pub mod capture;
pub mod clock;
pub mod comparison;
pub mod corpus;
mod emulator;
pub mod experiments;
pub mod lab;
pub mod place;
pub mod programs;
pub mod recording;
pub mod script;
