//! The one buffer between the input and the frames lent out of it.

use std::io::{self, ErrorKind, Read};

use super::end::End;

/// Bytes the buffer begins with: large enough that the cost of system calls does not show, small enough to stay
/// in a second-level cache, where what `read` copied is found again.
pub(super) const CAPACITY: usize = 256 * 1024;

/// The part of the input that is in memory.
///
/// Its one rule: [`Window::has`] `(n)` first, then [`Window::head`] and [`Window::take`] of up to `n` bytes.
#[derive(Debug)]
pub(super) struct Window<R> {
    input: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the input of `bytes[0]`.
    base: u64,
    ended: bool,
    failure: Option<io::Error>,
}

impl<R: Read> Window<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, bytes: vec![0; CAPACITY], start: 0, end: 0, base: 0, ended: false, failure: None }
    }

    /// Offset in the input of the next byte to take.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// How many bytes have come in so far.
    pub(super) fn received(&self) -> u64 {
        self.base + self.end as u64
    }

    /// Whether the next `n` bytes are there, reading only as much as that takes. The buffer grows to `n`:
    /// callers bound it.
    #[inline]
    pub(super) fn has(&mut self, n: usize) -> bool {
        n <= self.end - self.start || self.refill(n)
    }

    #[cold]
    fn refill(&mut self, n: usize) -> bool {
        self.bytes.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        if self.bytes.len() < n {
            self.bytes.resize(n, 0);
        }
        while self.end < n && !self.ended {
            match self.input.read(&mut self.bytes[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count.min(self.bytes.len() - self.end),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.failure = Some(error);
                }
            }
        }
        n <= self.end
    }

    /// The next `N` bytes, which stay.
    #[inline]
    pub(super) fn head<const N: usize>(&self) -> [u8; N] {
        self.peek(N).first_chunk().copied().unwrap_or([0; N])
    }

    /// The next `n` bytes, which stay.
    #[inline]
    pub(super) fn peek(&self, n: usize) -> &[u8] {
        self.bytes[..self.end].get(self.start..self.start + n).unwrap_or_default()
    }

    /// Takes the next `n` bytes.
    #[inline]
    pub(super) fn take(&mut self, n: usize) -> &[u8] {
        let from = self.start;
        self.start = (from + n).min(self.end);
        &self.bytes[from..self.start]
    }

    /// The last `n` bytes that were taken; gone once more are asked for.
    pub(super) fn taken(&self, n: usize) -> &[u8] {
        &self.bytes[self.start.saturating_sub(n)..self.start]
    }

    /// Passes over `n` bytes, however many; false if the input ends before.
    pub(super) fn skip(&mut self, n: u64) -> bool {
        let mut left = n;
        loop {
            let here = left.min((self.end - self.start) as u64);
            self.start += here as usize;
            left -= here;
            if left == 0 {
                return true;
            }
            if !self.has(1) {
                return false;
            }
        }
    }

    /// Why [`Window::has`] `(needs)` said no, where `what` begins at the next byte.
    #[cold]
    pub(super) fn short(&mut self, what: &'static str, needs: usize) -> End {
        let has = (self.end - self.start) as u64;
        self.ending(self.offset(), what, needs as u64, has)
    }

    /// Why the input ended after `has` of the `needs` bytes of `what`, which begins at offset `at`.
    #[cold]
    pub(super) fn ending(&mut self, at: u64, what: &'static str, needs: u64, has: u64) -> End {
        match self.failure.take() {
            Some(error) => End::Failed { at: at + has, error },
            None if has == 0 => End::Complete,
            None => End::Cut { at, what, needs, has },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_does_not_grow_with_what_is_skipped_or_streamed() {
        let long = 64 * 1024 * 1024;
        let mut window = Window::new(io::repeat(7).take(long));
        assert!(window.skip(long / 2));
        while window.has(1_000) {
            assert_eq!(window.take(1_000), [7; 1_000]);
        }
        assert_eq!((window.received(), window.bytes.len()), (long, CAPACITY));
        assert!(!window.skip(long));
        assert_eq!(window.offset(), long);
    }

    #[test]
    fn memory_grows_to_what_is_asked_for_and_no_further() {
        let mut window = Window::new(io::repeat(7));
        assert!(window.has(CAPACITY + 1));
        assert_eq!(window.bytes.len(), CAPACITY + 1);
        assert_eq!(window.peek(CAPACITY + 2), []);
    }
}
