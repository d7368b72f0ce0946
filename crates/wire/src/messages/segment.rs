//! The payload of one segment as readers of protocols see it.

/// What was stored of a segment's payload, and how long it was on the wire.
#[derive(Clone, Copy)]
pub(super) struct Segment<'a> {
    /// The first bytes; as few as the snapshot length left.
    pub(super) bytes: &'a [u8],
    /// Bytes on the wire: at least as many as stored.
    pub(super) len: u32,
}

impl<'a> Segment<'a> {
    /// The byte at `at`, if it was stored.
    #[inline]
    pub(super) fn byte(self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// `N` bytes from `at` on, if they were stored.
    #[inline]
    pub(super) fn array<const N: usize>(self, at: usize) -> Option<&'a [u8; N]> {
        self.bytes.get(at..)?.first_chunk()
    }

    /// The big-endian number in two bytes at `at`.
    #[inline]
    pub(super) fn u16(self, at: usize) -> Option<u16> {
        self.array(at).copied().map(u16::from_be_bytes)
    }

    /// The big-endian number in three bytes at `at`.
    #[inline]
    pub(super) fn u24(self, at: usize) -> Option<u32> {
        self.array(at).map(|&[high, mid, low]| u32::from_be_bytes([0, high, mid, low]))
    }

    /// The big-endian number in four bytes at `at`.
    #[inline]
    pub(super) fn u32(self, at: usize) -> Option<u32> {
        self.array(at).copied().map(u32::from_be_bytes)
    }

    /// What is left from `at` on; nothing where the segment is shorter.
    #[inline]
    pub(super) fn skip(self, at: usize) -> Self {
        let gone = u32::try_from(at).unwrap_or(u32::MAX);
        Segment { bytes: self.bytes.get(at..).unwrap_or_default(), len: self.len.saturating_sub(gone) }
    }

    /// Whether all of it was stored.
    #[inline]
    pub(super) fn is_whole(self) -> bool {
        self.bytes.len() as u64 >= u64::from(self.len)
    }
}
