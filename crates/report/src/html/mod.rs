//! The interactive report: one file that opens from disk.

pub mod template;
