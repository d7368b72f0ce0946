//! This crate's one place with unsafe code: a hint to the processor's cache.
//!
//! A capture with a million connections touches a cold cache line for every packet. Asking for the lines of
//! a batch of packets before working on the first one hides most of that wait (ARCHITECTURE.md has the
//! figure).

/// Bytes of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Asks the processor to load every cache line of `value`. Changes nothing, whatever the address.
#[inline(always)]
#[allow(unsafe_code)]
pub fn lines_of<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..size_of::<T>()).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address lies inside `value`; PREFETCHT0 never faults and reads nothing the program can
        // observe.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast::<i8>().add(offset)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
