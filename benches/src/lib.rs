//! Captures with known contents: large ones to measure speed with.

pub mod generate;
pub mod manifest;
mod random;
pub mod recorder;
