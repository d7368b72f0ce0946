//! Embeds the pages that `viewer/` builds. Without them the crate is built all the same: cargo alone is enough.

use std::path::Path;
use std::{env, fs};

fn main() {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../viewer/dist");
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    // The folder is always there; cargo looks at the files in it too.
    println!("cargo::rerun-if-changed={}", built.display());
    for page in ["report.html", "serve.html"] {
        let html = fs::read(built.join(page)).unwrap_or_default();
        fs::write(Path::new(&out).join(page), html).expect("OUT_DIR can be written to");
    }
}
