//! Why reading ended, in words.

use std::io;

/// Why no further frame can be read. Offsets count decompressed bytes from the beginning of the file.
#[derive(Debug)]
pub(super) enum End {
    /// The file ends where a record ends.
    Complete,
    /// The file ends inside something.
    Cut {
        /// Where that something begins.
        at: u64,
        /// What it is.
        what: &'static str,
        /// Its length in bytes.
        needs: u64,
        /// How many of them are there.
        has: u64,
    },
    /// What stands at `at` cannot be right, and there is no telling where the next record begins.
    Damaged { at: u64, why: String },
    /// The input failed after `at` bytes.
    Failed { at: u64, error: io::Error },
}

impl End {
    /// The line for the report; none for a file that ends well.
    pub(super) fn note(&self, compressed: bool) -> Option<String> {
        let of = if compressed { " of the decompressed data" } else { "" };
        match self {
            Self::Complete => None,
            Self::Cut { at, what, needs, has } => Some(format!(
                "Cut short at byte {}{of}: the {what} needs {needs} bytes, {has} are there; \
                 everything before it was analysed.",
                at + has
            )),
            Self::Damaged { at, why } => {
                Some(format!("Damaged at byte {at}{of}: {why}; nothing from there on was analysed."))
            }
            Self::Failed { at, error } => {
                Some(format!("Reading ended at byte {at}{of}: {error}; everything before it was analysed."))
            }
        }
    }
}
