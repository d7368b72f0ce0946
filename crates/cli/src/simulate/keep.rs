//! Simulated packets as captures that other tools open.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tcpwhy_simulate::world::{Seen, Side, World, frame};
use tcpwhy_wire::container::{Frame, Interface, LinkType, Origin, Writer};

use super::account::side;
use crate::create;

/// File systems take names of 255 bytes; a letter has four at most.
const LONGEST_STEM: usize = 50;

/// Writes what passed each end; the files' names begin with `stem`.
pub(super) fn save(world: &World, stem: &str, folder: &Path) -> Result<Vec<PathBuf>> {
    [Side::Client, Side::Server]
        .into_iter()
        .map(|vantage| {
            let path = folder.join(format!("{stem}-{}.pcapng", side(vantage)));
            let file = create::report(&path)
                .and_then(create::emptied)
                .with_context(|| format!("cannot write {}", path.display()))?;
            if let Err(error) = write(BufWriter::new(file), side(vantage), world.seen(vantage)) {
                // Half a capture would pass for a whole one.
                let _ = std::fs::remove_file(&path);
                return Err(error).with_context(|| format!("cannot write {}", path.display()));
            }
            Ok(path)
        })
        .collect()
}

/// A variant's name without what file systems and shells dislike, and other than those in `taken`.
pub(super) fn stem(variant: &str, taken: &mut BTreeSet<String>) -> String {
    let kept = variant.chars().map(|c| if c.is_alphanumeric() || c == '.' { c } else { '-' });
    let name: String = kept.take(LONGEST_STEM).collect();
    let stem = name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    let numbered = (2..).map(|n| format!("{stem}-{n}"));
    let free = std::iter::once(stem.clone()).chain(numbered).find(|stem| taken.insert(stem.clone()));
    free.unwrap_or(stem)
}

/// Virtual time zero is the epoch.
fn write(output: impl Write, vantage: &str, seen: &[Seen]) -> std::io::Result<()> {
    let origin = Origin { application: "tcpwhy simulate", ..Origin::default() };
    let mut writer = Writer::new(output, &origin)?;
    let interface = writer.interface(&Interface { name: vantage, link: LinkType::RAW, snaplen: 0 })?;
    for seen in seen {
        let data = frame(seen);
        let original_len = data.len() as u32;
        let time = i64::try_from(seen.time).unwrap_or(i64::MAX);
        writer.frame(&Frame { time, data: &data, original_len, link: LinkType::RAW, interface }, "")?;
    }
    writer.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variants_become_names_of_files() {
        let mut taken = BTreeSet::new();
        let mut stem = |variant| stem(variant, &mut taken);
        assert_eq!(stem("both chained, TCP_NODELAY"), "both-chained-TCP-NODELAY");
        assert_eq!(stem("../../etc/passwd"), "..-..-etc-passwd");
        assert_eq!((stem("a b"), stem("a/b"), stem("a-b")), ("a-b".into(), "a-b-2".into(), "a-b-3".into()));
    }
}
