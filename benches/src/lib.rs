//! Large captures with known contents to measure speed with, and what the emulated link and the recorder of calls are measured by.

pub mod calls;
pub mod compare;
pub mod generate;
pub mod link;
pub mod live;
pub mod manifest;
mod random;
mod recorder;
pub mod relay;
