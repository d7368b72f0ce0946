//! Capture files to frames, from bytes built by hand.

mod annotate;
mod build;
mod compressed;
mod damage;
mod oracle;
mod pcap;
mod pcapng;
mod stream;
mod write;
