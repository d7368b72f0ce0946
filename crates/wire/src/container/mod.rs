//! Capture files to frames: pcap, pcapng, and either compressed.

mod frame;

pub use frame::{Frame, LinkType};
