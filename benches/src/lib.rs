//! Large captures with known contents to measure speed with, and what the lab's emulated link is measured by.

pub mod compare;
pub mod generate;
pub mod link;
pub mod live;
pub mod manifest;
mod random;
mod recorder;
pub mod relay;
