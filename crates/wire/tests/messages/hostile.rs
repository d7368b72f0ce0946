//! Bytes that nobody meant as a message.

use super::recognise;
use proptest::prelude::*;

/// A stream of numbers that is the same in each run (Marsaglia's xorshift).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = (self.next() >> 32) as u8);
    }
}

/// Payloads of random bytes that are read.
const PAYLOADS: u32 = 1_000_000;

/// Encrypted or compressed bytes are misread in less than 1 of 10,000 segments.
#[test]
fn random_bytes_are_unknown() {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let mut payload = [0; 96];
    let mut known = 0;
    for round in 0..PAYLOADS {
        noise.fill(&mut payload);
        let stored = 1 + round as usize % payload.len();
        // Half were stored whole, the rest cut.
        let len = if round % 2 == 0 { stored as u32 } else { 1_448 };
        known += u32::from(recognise(&payload[..stored], len).is_some());
    }
    assert!(known < PAYLOADS / 10_000, "{known} of {PAYLOADS}");
}

#[test]
fn nothing_and_one_byte_say_nothing() {
    assert_eq!(recognise(&[], 0), None);
    assert_eq!(recognise(&[], 1_448), None);
    for byte in 0..=255 {
        assert_eq!(recognise(&[byte], 1), None, "{byte}");
        assert_eq!(recognise(&[byte], u32::MAX), None, "{byte}");
    }
}

proptest! {
    /// Whatever is read, its name is plain and short, and it goes no less far than its segment.
    #[test]
    fn names_are_plain(
        start in prop::sample::select(super::STARTS.to_vec()),
        rest in prop::collection::vec(any::<u8>(), 0..120),
        more in 0_u32..100_000,
    ) {
        let payload = [start, &rest].concat();
        let len = payload.len() as u32 + more;
        if let Some(message) = recognise(&payload, len) {
            let name = message.name.as_str();
            prop_assert!(!name.is_empty() && name.len() <= 31, "{name:?}");
            prop_assert!(name.chars().all(|c| matches!(c, ' '..='~' | '…')), "{name:?}");
            prop_assert!(message.expected_len().is_none_or(|bytes| bytes >= len));
        }
    }
}
