//! What tcpdump printed, back to packets.
