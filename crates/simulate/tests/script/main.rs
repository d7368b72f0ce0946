//! The reader and the runner of scripts.

mod hostile;
mod syntax;
mod verdicts;
