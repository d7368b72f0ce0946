//! The running system: packets off an interface.
//!
//! Unsafe code lives here alone, in [`ring`], which maps memory that the kernel writes.

#[cfg(target_os = "linux")]
pub mod ring;
