//! What is told of files that were read as one capture.

use std::path::{Path, PathBuf};

use crate::complaint;

/// Files that are named with their packets; of more, the first and the last ones say enough.
const NAMED: usize = 12;

/// That files were read as one capture, and which packets are whose; `ends` are the numbers of their last packets.
pub(crate) fn notes(paths: &[PathBuf], ends: &[u64]) -> Option<String> {
    if paths.len() < 2 {
        return None;
    }
    let begins = std::iter::once(&0).chain(ends);
    let mut said: Vec<String> = paths
        .iter()
        .zip(begins.zip(ends))
        .map(|(path, (before, end))| {
            let name = short(path);
            match end - before {
                0 => format!("{name} none"),
                1 => format!("{name} {end}"),
                _ => format!("{name} {} to {end}", before + 1),
            }
        })
        .collect();
    if said.len() > NAMED {
        let left_out = said.len() - NAMED;
        said.splice(NAMED / 2..NAMED / 2 + left_out, [format!("{left_out} more files")]);
    }
    Some(format!(
        "{} files were read as one capture (--separate keeps them apart). Packets are numbered through all of them: {}.",
        paths.len(),
        said.join(", ")
    ))
}

/// What there is to say of single files; with their names, if there are several.
pub(crate) fn of_files(paths: &[PathBuf], notes: Vec<Vec<String>>) -> Vec<String> {
    if let [_] = paths {
        return notes.into_iter().flatten().collect();
    }
    let named = |(path, notes): (&PathBuf, Vec<String>)| {
        notes.into_iter().map(|note| format!("{}: {note}", short(path))).collect::<Vec<_>>()
    };
    paths.iter().zip(notes).flat_map(named).collect()
}

/// All of a set are in one folder.
fn short(path: &Path) -> String {
    path.file_name().map_or_else(|| complaint::name(path), |name| name.to_string_lossy().into_owned())
}
