//! Packets to named facts: connections, their sequence space, round trips, windows, waits.

pub(crate) mod connection;
pub(crate) mod exchange;
pub mod fact;
pub(crate) mod half;
mod handshake;
pub(crate) mod held;
mod holes;
mod idents;
mod mending;
pub(crate) mod quantiles;
pub(crate) mod release;
mod repair;
pub(crate) mod rhythm;
mod sequence;
pub(crate) mod table;
pub(crate) mod trouble;
pub(crate) mod udp;

pub use connection::Connection;
