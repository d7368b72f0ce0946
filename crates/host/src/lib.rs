//! The running system: packets off an interface, its sockets and the processes that hold them, and a relay.
//!
//! Unsafe code lives here alone: in [`ring`], which maps memory that the kernel writes, and in `sockets::raw`, which
//! asks the kernel for what no crate has a call for.

#[cfg(target_os = "linux")]
pub mod process;
pub mod relay;
#[cfg(target_os = "linux")]
pub mod ring;
#[cfg(target_os = "linux")]
pub mod sockets;
