//! Conversations that captures show on both sides of a proxy.
//!
//! What passed on both sides is told from a second look at the files, for the few connections that carried as many bytes each
//! way; most reports take none.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::hops::{Candidates, Hop, Hops, MOST_CONNECTIONS, Place, Spoken};

use crate::complaint;
use crate::drive;
use crate::filter::Filter;
use crate::stop::Stop;

/// What the captures of a report tell of their connections, while they pass.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// The file of each capture, and which capture of that file it is; `None` where it cannot be read again.
    captures: Vec<Option<(PathBuf, usize)>>,
    /// Files read, those without a capture in them too.
    files: usize,
    hops: Vec<Hop>,
    notes: Vec<String>,
}

impl Gathering {
    /// The next file begins.
    pub(crate) fn next_file(&mut self) {
        self.files += 1;
    }

    /// The next capture of `file`.
    pub(crate) fn take(&mut self, file: &Path, diagnosis: &Diagnosis) {
        // A pipe can be read once only.
        let can_be_read_again = file != Path::new("-") && file.is_file();
        let number = self.captures.len();
        let before = self.captures.iter().flatten().filter(|(other, _)| other == file).count();
        self.captures.push(can_be_read_again.then(|| (file.to_owned(), before)));
        if !can_be_read_again {
            self.notes.push(format!(
                "{} cannot be read a second time, so its connections were not compared with others.",
                complaint::name(file)
            ));
        } else if diagnosis.len() > MOST_CONNECTIONS {
            self.notes.push(format!(
                "{} has more than {MOST_CONNECTIONS} connections, too many to be compared with others: --host and --port narrow \
                 it down.",
                complaint::name(file)
            ));
        } else {
            self.hops.extend(diagnosis.hops(number));
        }
    }

    /// Looks again, and joins what belongs together. `only` the pairs with a connection of that number; `None` where there is
    /// nothing to say.
    pub(crate) fn finish(mut self, filter: Option<&Filter>, only: Option<u64>, stop: &Stop) -> Option<Hops> {
        let are_several = self.files > 1 && self.captures.len() > 1;
        let candidates = Candidates::of(std::mem::take(&mut self.hops), only);
        let spoken = self.look_again(&candidates, filter, stop);
        let mut hops = Hops::of(candidates, &spoken);
        if are_several {
            hops.notes.append(&mut self.notes);
        }
        if are_several && hops.pairs.is_empty() && hops.notes.is_empty() && !stop.requested() {
            hops.notes.push(NONE.to_owned());
        }
        // Who gave one capture has not asked which of its connections are alike.
        let is_worth_a_word = !hops.pairs.is_empty() || are_several && !hops.notes.is_empty();
        is_worth_a_word.then_some(hops)
    }

    fn look_again(
        &self,
        candidates: &Candidates,
        filter: Option<&Filter>,
        stop: &Stop,
    ) -> HashMap<Place, Spoken> {
        let mut all = HashMap::new();
        let mut done: Vec<&Path> = Vec::new();
        for (file, _) in self.captures.iter().flatten() {
            // After Ctrl-C somebody waits for the report.
            if done.contains(&file.as_path()) || stop.requested() {
                continue;
            }
            done.push(file);
            let of_file = |(number, capture): (usize, &Option<(PathBuf, usize)>)| {
                capture.as_ref().filter(|(other, _)| other == file).map(|(_, place)| (*place, number))
            };
            let numbers: HashMap<usize, usize> =
                self.captures.iter().enumerate().filter_map(of_file).collect();
            all.extend(spoken(file, &numbers, candidates, filter, stop));
        }
        all
    }
}

const NONE: &str = "No connection goes on in another capture. Only a proxy that passes bytes on unchanged can be seen so, and both \
                    of its connections have to be captured from their SYN on.";

/// What is wanted of the captures in one file; `numbers` are theirs in the report, by their place in the file.
fn spoken(
    file: &Path,
    numbers: &HashMap<usize, usize>,
    candidates: &Candidates,
    filter: Option<&Filter>,
    stop: &Stop,
) -> Vec<(Place, Spoken)> {
    let mut wanted: Vec<u64> = numbers.values().flat_map(|number| candidates.wanted(*number)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let (mut spoken, mut place) = (Vec::new(), 0);
    if wanted.is_empty() {
        return spoken;
    }
    // What cannot be read any more is not compared.
    let _ = drive::recording(file, filter, &wanted, stop, &mut |diagnosis| {
        if let Some(&capture) = numbers.get(&place) {
            let of = |connection| Some((Place { capture, connection }, diagnosis.spoken(connection)?));
            spoken.extend(candidates.wanted(capture).into_iter().filter_map(of));
        }
        place += 1;
        Ok(())
    });
    spoken
}
