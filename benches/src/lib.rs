//! Captures with known contents: large ones to measure speed with, and labelled ones that a diagnosis is held
//! against.

pub mod compare;
pub mod generate;
pub mod labelled;
pub mod link;
pub mod manifest;
mod random;
pub mod recorder;
