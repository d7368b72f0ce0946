//! Simulated packets as captures that other tools open.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tcpwhy_simulate::world::{Seen, Side, World, frame};
use tcpwhy_wire::container::{Frame, Interface, LinkType, Origin, Writer};

use super::account::side;

/// Writes what passed each end; the files' names.
pub(super) fn save(world: &World, variant: &str, folder: &Path) -> Result<Vec<PathBuf>> {
    [Side::Client, Side::Server]
        .into_iter()
        .map(|vantage| {
            let path = folder.join(format!("{}-{}.pcapng", file_name(variant), side(vantage)));
            let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            if let Err(error) = write(BufWriter::new(file), side(vantage), world.seen(vantage)) {
                // Half a capture would pass for a whole one.
                let _ = std::fs::remove_file(&path);
                return Err(error).with_context(|| format!("cannot write {}", path.display()));
            }
            Ok(path)
        })
        .collect()
}

/// A variant's name without what file systems and shells dislike.
fn file_name(variant: &str) -> String {
    let kept = variant.chars().map(|c| if c.is_alphanumeric() || c == '.' { c } else { '-' });
    let name: String = kept.collect();
    name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Virtual time zero is the epoch.
fn write(output: impl Write, vantage: &str, seen: &[Seen]) -> std::io::Result<()> {
    let origin = Origin { application: "tcpwhy simulate", ..Origin::default() };
    let mut writer = Writer::new(output, &origin)?;
    let interface = writer.interface(&Interface { name: vantage, link: LinkType::RAW, snaplen: 0 })?;
    for (number, seen) in (1..).zip(seen) {
        let data = frame(number, seen);
        let original_len = data.len() as u32;
        let time = i64::try_from(seen.time).unwrap_or(i64::MAX);
        writer.frame(&Frame { time, data: &data, original_len, link: LinkType::RAW, interface }, "")?;
    }
    writer.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn names_of_variants_become_names_of_files() {
        assert_eq!(file_name("both chained, TCP_NODELAY"), "both-chained-TCP-NODELAY");
        assert_eq!(file_name("../../etc/passwd"), "..-..-etc-passwd");
    }
}
