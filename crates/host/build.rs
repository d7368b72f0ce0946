//! Compiles the recorder (crates/preload) to the shared library that `calls` embeds. It is one crate without
//! dependencies, so the compiler alone does it: no second cargo, no download, nothing but what cargo itself uses.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../preload/src");
    println!("cargo::rerun-if-changed=../wire/src/calls/kind.rs");
    if env::var("CARGO_CFG_TARGET_OS")? != "linux" {
        return Ok(());
    }
    let library = PathBuf::from(env::var("OUT_DIR")?).join("libtcpwhy_preload.so");
    let mut rustc = Command::new(env::var("RUSTC")?);
    rustc
        .args(["--edition", "2024", "--crate-name", "tcpwhy_preload", "--crate-type", "cdylib"])
        .args(["--target", &env::var("TARGET")?, "../preload/src/lib.rs", "-o"])
        .arg(&library)
        // Frame pointers: by them a function finds its own return address.
        // Unwinding: the C library cancels threads by it, through the recorder too.
        .args(["-C", "opt-level=3", "-C", "panic=unwind", "-C", "force-frame-pointers=yes"])
        .args(["-C", "strip=symbols"]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    let status = rustc.status()?;
    if status.success() { Ok(()) } else { Err(format!("the recorder does not compile: {status}").into()) }
}
