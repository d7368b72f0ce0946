//! Recordings to files and back.

mod build;
mod damage;
mod round_trip;
