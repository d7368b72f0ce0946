//! [`tcpwhy_fuzz::frames`] under libFuzzer; without it, over the files that are named.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tcpwhy_fuzz::frames(data));

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    tcpwhy_fuzz::replay(tcpwhy_fuzz::frames)
}
