//! Frames, built by hand or by etherparse, against the packets they must become.

mod frames;
mod layers;
mod left_out;
mod lengths;
mod messages;
mod options;
mod oracle;
