//! Sequence numbers without wrapping: offsets in a stream whose SYN is 0 and whose first byte is 1.

/// The offset that `wire` stands for: the one within 2^31 of `near`. `initial` is the SYN's sequence number.
pub(crate) fn from_wire(wire: u32, initial: u32, near: u64) -> u64 {
    let distance = wire.wrapping_sub(to_wire(near, initial)).cast_signed();
    near.saturating_add_signed(i64::from(distance))
}

/// The sequence number on the wire, modulo 2^32 (RFC 9293 section 3.4).
pub(super) fn to_wire(offset: u64, initial: u32) -> u32 {
    initial.wrapping_add(offset as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_the_wrap() {
        let initial = u32::MAX - 1;
        for offset in [0, 1, 2, 3, 70_000, u64::from(u32::MAX) + 5] {
            assert_eq!(from_wire(to_wire(offset, initial), initial, offset + 1000), offset);
        }
    }

    #[test]
    fn what_lies_before_the_stream_is_its_beginning() {
        assert_eq!(from_wire(100, 101, 0), 0);
    }
}
