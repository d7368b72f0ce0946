//! Capture files to frames: pcap, pcapng, and either compressed.
