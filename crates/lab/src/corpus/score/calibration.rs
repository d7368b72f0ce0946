//! Whether findings are as sure as they are right.

use serde::Serialize;

use super::judge::Verdict;

/// Tenths of confidence.
const TENTHS: usize = 10;

/// Blames of about the same confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tenth {
    /// The least confidence, 0 to 1; the last tenth has 1 in it, too.
    pub from: f64,
    /// Blames that name a cause, or name none where there is one to name. What a label allows is neither.
    pub blames: u64,
    /// Those that name a cause.
    pub right: u64,
    /// What they said of themselves: their mean confidence, 0 to 1.
    pub said: f64,
}

impl Tenth {
    /// The share that is right, 0 to 1; `None` where there are none.
    pub fn was(&self) -> Option<f64> {
        (self.blames > 0).then(|| self.right as f64 / self.blames as f64)
    }
}

/// How often blames were right, the least sure ones first; tenths without a blame are there, too.
pub(super) fn calibration(verdicts: &[Verdict]) -> Vec<Tenth> {
    let tenth = |number: usize| Tenth { from: number as f64 / TENTHS as f64, ..Tenth::default() };
    let mut tenths: Vec<Tenth> = (0..TENTHS).map(tenth).collect();
    let blames = verdicts.iter().flat_map(|verdict| &verdict.blames);
    for blame in blames.filter(|blame| blame.names.is_some() || blame.is_false()) {
        let tenth = &mut tenths[place(blame.confidence)];
        tenth.blames += 1;
        tenth.right += u64::from(blame.names.is_some());
        tenth.said += blame.confidence;
    }
    for tenth in tenths.iter_mut().filter(|tenth| tenth.blames > 0) {
        tenth.said /= tenth.blames as f64;
    }
    tenths
}

/// A confidence of 0.9 is written as the number next to it: the least bit below counts as that.
fn place(confidence: f64) -> usize {
    ((confidence * TENTHS as f64 + 1e-9) as usize).min(TENTHS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confidence_has_its_tenth() {
        assert_eq!([0.0, 0.05, 0.1, 0.3, 0.7, 0.89, 0.9, 1.0].map(place), [0, 0, 1, 3, 7, 8, 9, 9]);
        assert_eq!(Tenth { blames: 4, right: 3, ..Tenth::default() }.was(), Some(0.75));
        assert_eq!(calibration(&[]).len(), TENTHS);
    }
}
