//! Conversations that captures show on both sides of a proxy.
//!
//! What passed on both sides is told from a second look at the files, for the few connections that carried as many bytes each
//! way; most reports take none.

use std::collections::HashMap;
use std::rc::Rc;

use tcpwhy_diagnose::Diagnosis;
use tcpwhy_diagnose::hops::{Candidates, Hop, Hops, MOST_CONNECTIONS, Place, Spoken};

use crate::drive::{self, Analyzed};
use crate::filter::Filter;
use crate::parts::Parts;
use crate::stop::Stop;

/// What the captures of a report tell of their connections, while they pass.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// Each once, though it may be named twice.
    files: Vec<Rc<Parts>>,
    /// Files named.
    named: usize,
    /// Whether the present file can be read a second time, and is not named for the second time.
    is_compared: bool,
    /// Captures of the present file so far.
    place: usize,
    /// Of each capture, which of `files` has it, and which capture of that file it is; `None` where it is not compared.
    captures: Vec<Option<(usize, usize)>>,
    hops: Vec<Hop>,
    notes: Vec<String>,
}

impl Gathering {
    /// The next file begins.
    pub(crate) fn next_file(&mut self, file: &Rc<Parts>) {
        self.named += 1;
        self.place = 0;
        let can_be_read_again = file.can_be_read_again();
        let is_new = !self.files.iter().any(|other| other.first() == file.first());
        self.is_compared = can_be_read_again && is_new;
        if !can_be_read_again {
            self.note(
                file,
                "cannot be read a second time, so its connections were not compared with others.",
            );
        } else if !is_new {
            self.note(file, "is named twice; its connections were compared once.");
        }
        if is_new {
            self.files.push(Rc::clone(file));
        }
    }

    fn note(&mut self, file: &Parts, what: &str) {
        self.notes.push(format!("{} {what}", file.name()));
    }

    /// The next capture of the present file.
    pub(crate) fn take(&mut self, diagnosis: &Diagnosis) {
        let number = self.captures.len();
        let here = (self.files.len().saturating_sub(1), self.place);
        self.captures.push(self.is_compared.then_some(here));
        self.place += 1;
        if !self.is_compared {
            return;
        }
        if diagnosis.len().max(self.hops.len()) > MOST_CONNECTIONS {
            let file = Rc::clone(&self.files[here.0]);
            self.note(&file, TOO_MANY);
            self.is_compared = false;
        } else {
            self.hops.extend(diagnosis.hops(number));
        }
    }

    /// Looks again, and joins what belongs together. `only` the pairs with a connection of that number; `None` where there is
    /// nothing to say.
    pub(crate) fn finish(mut self, filter: Option<&Filter>, only: Option<u64>, stop: &Stop) -> Option<Hops> {
        let are_several = self.named > 1 && self.captures.len() > 1;
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
        let mut numbers: Vec<HashMap<usize, usize>> = vec![HashMap::new(); self.files.len()];
        for (number, capture) in self.captures.iter().enumerate() {
            if let Some((file, place)) = capture {
                numbers[*file].insert(*place, number);
            }
        }
        let mut all = HashMap::new();
        for (file, numbers) in self.files.iter().zip(&numbers) {
            // After Ctrl-C somebody waits for the report.
            if !stop.requested() {
                all.extend(spoken(file, numbers, candidates, filter, stop));
            }
        }
        all
    }
}

const TOO_MANY: &str =
    "has more connections than are compared with others (65,536 in all): --host and --port narrow it down.";

const NONE: &str = "No connection goes on in another capture. Only a proxy that passes bytes on unchanged can be seen so, and both \
                    of its connections have to be captured from their SYN on.";

/// What is wanted of the captures in one file; `numbers` are theirs in the report, by their place in the file.
fn spoken(
    file: &Parts,
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
    let again = Parts::again(&file.paths());
    let _ = drive::recording(&again, filter, &wanted, stop, &mut |Analyzed { diagnosis, .. }| {
        if let Some(&capture) = numbers.get(&place) {
            let of = |connection| Some((Place { capture, connection }, diagnosis.spoken(connection)?));
            spoken.extend(candidates.wanted(capture).into_iter().filter_map(of));
        }
        place += 1;
        Ok(())
    });
    spoken
}
