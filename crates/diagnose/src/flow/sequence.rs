//! 32-bit sequence numbers made 64-bit, so that a connection may carry more than 4 GiB.

/// Where unwrapped sequence numbers start: far enough from 0 that a segment from before the capture's first
/// one (a retransmission, a keep-alive at SND.NXT-1) stays positive.
const ORIGIN: u64 = 1 << 33;

/// The first sequence number seen in a direction, unwrapped.
#[inline]
pub(crate) fn first(seq: u32) -> u64 {
    ORIGIN + u64::from(seq)
}

/// The 64-bit number whose low 32 bits are `seq` and which lies nearest to `near`, which is how RFC 9293
/// section 3.4 compares sequence numbers.
#[inline]
pub(crate) fn unwrap(seq: u32, near: u64) -> u64 {
    let ahead = seq.wrapping_sub(near as u32) as i32;
    near.wrapping_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwraps_forward_and_backward_over_the_32_bit_edge() {
        let near = first(u32::MAX - 9);
        assert_eq!(unwrap(10, near) - near, 20);
        assert_eq!(near - unwrap(u32::MAX - 29, near), 20);
        assert_eq!(unwrap(u32::MAX - 9, near), near);
    }

    #[test]
    fn many_wraps_add_up() {
        let mut near = first(7);
        let mut seq = 7_u32;
        for _ in 0..20 {
            seq = seq.wrapping_add(1 << 30);
            near = unwrap(seq, near);
        }
        assert_eq!(near - first(7), 20 << 30);
    }
}
