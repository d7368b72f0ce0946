//! The running system: packets off an interface.
//!
//! Unsafe code lives here alone: in [`ring`], which maps memory that the kernel writes, and where [`filter`] asks
//! libpcap.

pub mod filter;
#[cfg(target_os = "linux")]
pub mod interfaces;
#[cfg(target_os = "linux")]
pub mod privileges;
#[cfg(target_os = "linux")]
pub mod ring;
