//! The endpoint: two of them over a link, with times worked out by hand.

mod acks;
mod closing;
mod handshake;
mod laws;
mod pair;
mod recovery;
mod small;
mod transfer;
mod window;
