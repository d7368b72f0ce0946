//! One frame to one packet: link layers, tunnels, IP, TCP and UDP.
