//! The running system: packets off an interface, and the calls of programs on their sockets.
//!
//! Unsafe code lives here alone, in [`ring`], which maps memory that the kernel writes.

#[cfg(target_os = "linux")]
pub mod calls;
#[cfg(target_os = "linux")]
pub mod ring;
