//! The link, in virtual time.

mod build;
mod hold;
mod lane;
mod laws;
mod segment;
