//! Packets to named facts: connections, their sequence space, round trips, windows, waits.

pub(crate) mod awaited;
pub(crate) mod beliefs;
pub(crate) mod collector;
pub(crate) mod connection;
pub(crate) mod copies;
mod cork;
pub(crate) mod ecn;
pub(crate) mod exchange;
pub mod fact;
pub(crate) mod flight;
pub(crate) mod half;
mod handshake;
pub(crate) mod held;
mod holes;
mod idents;
mod mending;
pub(crate) mod nagle;
mod program;
pub mod quantiles;
pub(crate) mod queue;
pub(crate) mod release;
mod repair;
pub(crate) mod rhythm;
pub(crate) mod sending;
mod sequence;
pub mod series;
pub(crate) mod shut;
mod spacing;
mod stop;
pub(crate) mod table;
pub(crate) mod tail;
pub(crate) mod trouble;
mod turn;
pub(crate) mod udp;
mod written;

pub use connection::Connection;
