//! The running system: packets off an interface.
//!
//! Unsafe code lives here alone, in [`ring`], which maps memory that the kernel writes.

pub mod ring;
