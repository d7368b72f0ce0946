//! What came of a script.

use std::fmt;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the stack did what the script says.
    pub verdict: Verdict,
    /// Settings, commands and socket options that have no effect here.
    pub ignored: Vec<Note>,
    /// Asserts and results that could not be looked at. Whoever counts passes should count these too.
    pub unchecked: Vec<Note>,
    /// Segments that were sent after the last one the script waits for, as lines of text. packetdrill does not
    /// look at them, so they are no failure.
    pub unread: Vec<String>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything was as the script says.
    Passed,
    /// Something was not; the run ended there.
    Failed(Failure),
    /// The script needs something that the host does not have (ICMP, Fast Open, `epoll`); the run ended there.
    Unsupported(Note),
}

/// A remark on a line of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line, from 1.
    pub line: u32,
    /// The remark.
    pub text: String,
}

/// Where the stack under test left the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The line of the script, from 1.
    pub line: u32,
    /// What differs; never empty.
    pub differences: Vec<Difference>,
    /// The script's step, in the script's numbers.
    pub script: String,
    /// What happened instead, in the script's numbers.
    pub actual: String,
}

/// One value that is not as the script says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it is: `seq`, `window`, `time`, `result`.
    pub field: &'static str,
    /// What the script says.
    pub expected: String,
    /// What it was.
    pub actual: String,
}

impl Difference {
    /// The difference between two values, if they differ.
    pub(super) fn between<T: PartialEq + fmt::Display>(
        field: &'static str,
        expected: &T,
        actual: &T,
    ) -> Option<Self> {
        let differ = expected != actual;
        differ.then(|| Self { field, expected: expected.to_string(), actual: actual.to_string() })
    }
}

impl Outcome {
    /// Whether the stack did what the script says.
    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Passed
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Passed => f.write_str("passed")?,
            Verdict::Failed(failure) => write!(f, "failed: {failure}")?,
            Verdict::Unsupported(note) => write!(f, "not run to its end: {note}")?,
        }
        for (what, notes) in [("ignored", &self.ignored), ("not checked", &self.unchecked)] {
            for note in notes {
                write!(f, "\n  {what}: {note}")?;
            }
        }
        for line in &self.unread {
            write!(f, "\n  not in the script: {line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        for difference in &self.differences {
            let Difference { field, expected, actual } = difference;
            write!(f, "\n  {field}: expected {expected}, actual {actual}")?;
        }
        write!(f, "\n  script: {}\n  actual: {}", self.script, self.actual)
    }
}
