//! Packets off an interface through a ring that the kernel fills (`PACKET_RX_RING`, TPACKET_V3).
