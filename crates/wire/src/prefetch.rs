//! The one place with unsafe code: a hint to the processor's cache.
//!
//! A capture with a million connections touches a cold cache line for every packet. Asking for the lines of
//! a batch of packets before working on the first one hides most of that wait (ARCHITECTURE.md has the
//! figure).

/// Asks the processor to load the cache line `value` starts in. Changes nothing, whatever the address.
#[inline(always)]
#[allow(unsafe_code)]
pub fn line_of<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: PREFETCHT0 never faults and reads nothing the program can observe.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
