//! What a recipe is: a fix that a program makes in its own code, as each language writes it.

use serde::{Serialize, Serializer};

/// A language that recipes are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C; the same lines are C++.
    C,
    /// Python 3.
    Python,
    /// Java, from 17 on.
    Java,
    /// Go, the standard library.
    Go,
    /// JavaScript as Node.js runs it.
    NodeJs,
    /// Rust, from 1.89 on.
    Rust,
    /// C#, from .NET 5 on.
    CSharp,
}

impl Language {
    /// Every language, in the order in which they are shown.
    pub const ALL: [Self; 7] =
        [Self::C, Self::Python, Self::Java, Self::Go, Self::NodeJs, Self::Rust, Self::CSharp];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "C",
            Self::Python => "Python",
            Self::Java => "Java",
            Self::Go => "Go",
            Self::NodeJs => "Node.js",
            Self::Rust => "Rust",
            Self::CSharp => "C#",
        }
    }

    /// One word in lower case: on command lines, and behind the fence of a Markdown block.
    pub fn key(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Python => "python",
            Self::Java => "java",
            Self::Go => "go",
            Self::NodeJs => "javascript",
            Self::Rust => "rust",
            Self::CSharp => "csharp",
        }
    }
}

impl Serialize for Language {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One fix in every language that has it.
#[derive(Debug, Serialize)]
pub struct Recipe {
    /// What to do, without a full stop.
    pub title: &'static str,
    /// A few lines of each language; a language that has no call for it is not there.
    #[serde(serialize_with = "as_map")]
    pub code: &'static [(Language, &'static str)],
}

impl Recipe {
    /// The lines in `language`.
    pub fn code_in(&self, language: Language) -> Option<&'static str> {
        self.code.iter().find(|(of, _)| *of == language).map(|(_, code)| *code)
    }
}

fn as_map<S: Serializer>(code: &&[(Language, &str)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(code.iter().copied())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::RULES;
    use super::*;

    /// The page of `tcpwhy explain` is 80 columns wide and sets code in by four.
    #[test]
    fn code_fits_the_page_and_ends_without_an_empty_line() {
        for recipe in RULES.iter().flat_map(|rule| rule.recipes) {
            assert!(!recipe.title.ends_with('.'), "{}", recipe.title);
            for (language, code) in recipe.code {
                let widest = code.lines().map(|line| line.chars().count()).max().unwrap_or(0);
                assert!((1..=76).contains(&widest), "{language:?}: {widest} columns: {code}");
                assert_eq!(*code, code.trim(), "{language:?}");
                assert!(!code.contains(['\t', '`']), "{language:?}: {code}");
            }
        }
    }

    #[test]
    fn languages_stand_in_their_order_and_once() {
        for recipe in RULES.iter().flat_map(|rule| rule.recipes) {
            let place = |of: &Language| Language::ALL.iter().position(|language| language == of);
            let places: Vec<_> = recipe.code.iter().map(|(language, _)| place(language)).collect();
            assert!(places.is_sorted_by(|a, b| a < b), "{}", recipe.title);
        }
        let words = Language::ALL.map(|language| (language.name(), language.key()));
        assert_eq!(words.iter().map(|(_, key)| key).collect::<BTreeSet<_>>().len(), words.len());
    }

    /// What a language cannot do is known, and no more than that is left out.
    #[test]
    fn each_rule_with_recipes_has_one_in_each_language_that_can() {
        let without: Vec<_> = RULES
            .iter()
            .filter(|rule| !rule.recipes.is_empty())
            .flat_map(|rule| {
                let lacks = |of: &Language| rule.recipes.iter().all(|recipe| recipe.code_in(*of).is_none());
                Language::ALL.into_iter().filter(lacks).map(|language| (rule.name, language))
            })
            .collect();
        let expected = [
            ("bufferbloat", Language::Java),
            ("bufferbloat", Language::NodeJs),
            ("delayed-ack", Language::NodeJs),
            ("small-receive-window", Language::NodeJs),
            ("small-send-buffer", Language::NodeJs),
        ];
        assert_eq!(without, expected);
    }
}
