//! Generates the captures that the benchmark measures.

mod connection;
mod loopback;
mod mix;
mod pcap;
mod script;
mod segment;

use std::path::Path;

use anyhow::{Context, Result};

use crate::manifest::{Capture, Manifest};

/// A capture of a few connections, whose analysis shows how much memory a tool takes before any traffic does.
const TINY_SCALE: f64 = 0.000_01;

/// Writes all captures and their manifest into `dir`; `scale` is the share of the full size.
pub fn generate(dir: &Path, scale: f64, only: &[String]) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let mut manifest = Manifest::load_or_empty(dir);
    for mix in &mix::MIXES {
        if wanted(mix.name, only) {
            manifest.put(write_mix(dir, mix.name, mix, scale)?);
        }
    }
    if wanted("tiny", only) {
        manifest.put(write_mix(dir, "tiny", &mix::MIXES[3], TINY_SCALE)?);
    }
    if wanted("e-loopback", only) {
        match loopback::record(dir, "e-loopback", scale) {
            Ok(capture) => manifest.put(capture),
            Err(why) => anstream::eprintln!("e-loopback SKIPPED: {why:#}"),
        }
    }
    manifest.save(dir)
}

fn wanted(name: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|prefix| name.starts_with(prefix.as_str()))
}

fn write_mix(dir: &Path, name: &str, mix: &mix::Mix, scale: f64) -> Result<Capture> {
    let file = format!("{name}.pcap");
    let path = dir.join(&file);
    let mut writer = pcap::PcapWriter::create(&path, mix.snaplen)
        .with_context(|| format!("cannot create {}", path.display()))?;
    let connections = mix::write(mix, scale, &mut writer)?;
    let packets = writer.finish()?;
    let bytes = std::fs::metadata(&path)?.len();
    let what = if name == "tiny" { "ten short connections" } else { mix.what };
    anstream::println!("{file}: {packets} packets, {connections} connections, {bytes} bytes: {what}");
    Ok(Capture { name: name.into(), file, what: what.into(), packets, connections, bytes })
}
