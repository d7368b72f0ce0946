//! An emulated path between two hosts: delay, rate, queue, loss, and receivers that hold their ACKs.

mod settings;

pub use settings::{AckHold, Direction, Drop, Ends, Queue, Settings};
