//! The diagnosis as people and programs read it: one file a format.
