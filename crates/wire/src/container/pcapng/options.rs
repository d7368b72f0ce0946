//! The options at the end of a block's body, and the comments among them.

use crate::container::bytes::Order;
use crate::container::frame::Comment;

/// `opt_comment`, which any block may have.
pub(in crate::container) const COMMENT: u16 = 1;

/// Comments kept; a person reads no more.
const MAX_COMMENTS: usize = 1_000;

/// Bytes kept of one comment.
const MAX_COMMENT_LEN: usize = 1_024;

/// The options by code, up to the end or to the first one that does not fit.
pub(crate) fn options(order: Order, bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (head, tail) = rest.split_first_chunk::<4>()?;
        let (code, length) = (order.u16(head, 0), usize::from(order.u16(head, 2)));
        if code == 0 {
            return None;
        }
        let value = tail.get(..length)?;
        rest = tail.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}

/// A file's comments, so many as are kept.
#[derive(Debug, Default)]
pub(super) struct Comments {
    kept: Vec<Comment>,
    left_out: u64,
}

impl Comments {
    /// Takes the comments among the options of a block: of frame `frame`, or of a section or an interface.
    #[cold]
    pub(super) fn read(&mut self, order: Order, bytes: &[u8], frame: Option<u64>) {
        for (_, value) in options(order, bytes).filter(|(code, _)| *code == COMMENT) {
            if self.kept.len() == MAX_COMMENTS {
                self.left_out += 1;
            } else {
                // Written as UTF-8 by decree; the cut may split a character, which then reads as U+FFFD.
                let text = String::from_utf8_lossy(&value[..value.len().min(MAX_COMMENT_LEN)]).into_owned();
                self.kept.push(Comment { frame, text });
            }
        }
    }

    pub(super) fn kept(&self) -> &[Comment] {
        &self.kept
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }
}
