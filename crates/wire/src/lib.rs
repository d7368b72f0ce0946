//! Bytes to packets.
//!
//! `container` takes capture files apart into frames, `text` reads what tcpdump printed, `decode` turns one
//! frame into one [`Packet`], `messages` what its payload says to the other end; `sockets` reads what kernels and their tools tell about sockets, `calls` is what programs did with them.
//! The crate reads from any [`std::io::Read`]; it opens no file and knows no clock.
//! Every byte it sees is hostile: nothing here panics, and memory is bounded by named constants.

pub mod calls;
pub mod container;
pub mod decode;
pub mod messages;
mod packet;
pub mod prefetch;
pub mod sockets;
pub mod text;

pub use packet::{Address, Names, Packet, SackBlocks, Socket, Tcp, TcpFlags, TcpOptions, Transport, Udp};
