//! The running system: packets off an interface, its sockets and their options, the processes that hold them, the calls
//! of programs on them, and a relay.
//!
//! Unsafe code lives here alone: in [`ring`], which maps memory that the kernel writes, where [`filter`] asks libpcap,
//! and in `sockets::raw` and `calls::tracepoints::events`, which ask the kernel for what no crate has a call for.

#[cfg(target_os = "linux")]
pub mod calls;
#[cfg(target_os = "linux")]
pub mod counters;
pub mod filter;
#[cfg(target_os = "linux")]
pub mod interface;
#[cfg(target_os = "linux")]
pub mod privileges;
#[cfg(target_os = "linux")]
pub mod process;
pub mod relay;
#[cfg(target_os = "linux")]
pub mod ring;
#[cfg(target_os = "linux")]
pub mod sockets;
#[cfg(target_os = "linux")]
pub mod switch;
