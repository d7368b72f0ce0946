//! A rule's text and the list of rules on the terminal.

use serde_json::Value;
use tcpwhy_diagnose::detectors::{Check, Language, RULES, Recipe, Rule};
use tcpwhy_diagnose::report::Severity;
use tcpwhy_report::terminal::Options;
use tcpwhy_report::{explain, rules};
use unicode_width::UnicodeWidthStr;

/// As the rules' macro keeps it: one space before each line of the doc comment.
static RULE: Rule = Rule {
    check: Check::Connection(|_, _| {}),
    name: "held-update",
    severity: Severity::Problem,
    doc: r" A small update waits in the sender until an ACK comes.

 ## What it means

 The sender's *kernel* holds back what is **smaller than a segment** while anything is in flight
 ([RFC 896](https://example.org/rfc896), [RFC 1122 4.2.3.4]). See <https://example.org>.

 A second paragraph.

 ## How it is detected

 - A pure ACK of all in flight arrives at the sender, and within `RELEASE_NS` a segment smaller than the MSS
   leaves.
 - The gap before the ACK is longer than the base round trip:
   1. on the client's side,
   2. on the server's side.

 ## What to do

 1. One write.
 2. Or, in C:

    ```c
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY,
               &one, sizeof one);
    ```

 | language | call |
 | --- | --- |
 | Go | `SetNoDelay(true)`, which is how its sockets begin, so that there is nothing to do for most programs |
 | Java | `setTcpNoDelay(true)` |

 ## References

 - RFC 896
",
    recipes: &[&SET, &BUFFER],
};

static SET: Recipe = Recipe {
    title: "Set the option",
    code: &[(Language::C, "int on = 1;\nset(fd, &on); // <b>"), (Language::NodeJs, "socket.set(true);")],
};

static BUFFER: Recipe = Recipe { title: "Or buffer", code: &[(Language::C, "buffer(fd);")] };

static ADVICE: Rule = Rule {
    check: Check::Connection(|_, _| {}),
    name: "chatter",
    severity: Severity::Advice,
    doc: " More ACKs than the data asks for, which costs packets and seldom time, and is long enough to wrap.\n",
    recipes: &[],
};

fn explained(rule: &Rule, width: usize, color: bool) -> String {
    explained_in(Some(Language::C), rule, width, color)
}

fn explained_in(language: Option<Language>, rule: &Rule, width: usize, color: bool) -> String {
    let mut out = Vec::new();
    explain::write(&mut out, rule, language, &Options { width, color, ..Options::default() }).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_rule_explained() {
    insta::assert_snapshot!(explained(&RULE, 80, false));
}

#[test]
fn a_rule_explained_in_colour() {
    insta::assert_snapshot!(explained(&RULE, 80, true).replace('\x1b', "␛"));
}

#[test]
fn a_rule_explained_in_every_language() {
    let shown = explained_in(None, &RULE, 80, false);
    let (_, code) = shown.split_once("\nIn code\n").unwrap();
    insta::assert_snapshot!(code);
}

#[test]
fn a_language_without_the_call_is_told_and_which_have_it() {
    let shown = explained_in(Some(Language::NodeJs), &RULE, 80, false);
    assert!(shown.contains("In code (Node.js)\n") && shown.contains("socket.set(true);"), "{shown}");
    assert!(!shown.contains("Or buffer") && !shown.contains("set(fd"), "{shown}");
    assert!(shown.contains("--language c, all."), "{shown}");
    let shown = explained_in(Some(Language::Go), &RULE, 80, false);
    assert!(
        shown.contains("Go has no call for it.") && shown.contains("--language c, javascript, all."),
        "{shown}"
    );
}

#[test]
fn all_code_is_shown_as_it_is_written() {
    for rule in RULES {
        let shown = explained_in(None, rule, 80, false);
        for (language, code) in rule.recipes.iter().flat_map(|recipe| recipe.code) {
            let set: Vec<String> = code.lines().map(|line| format!("    {line}\n")).collect();
            assert!(shown.contains(&set.concat()), "{} in {language:?}:\n{shown}", rule.name);
        }
        assert!(shown.lines().all(|line| line.width() <= 80), "{shown}");
    }
}

#[test]
fn nothing_of_the_text_is_lost() {
    for rule in RULES.iter().copied().chain([&RULE]) {
        let shown = explained(rule, 400, false);
        let words = |text: &str| -> Vec<String> {
            text.split(|c: char| !c.is_alphanumeric()).filter(|w| w.len() > 3).map(str::to_owned).collect()
        };
        let shown_words = words(&shown);
        let prose: Vec<&str> = rule.doc.lines().filter(|line| !line.trim().starts_with("```")).collect();
        for word in words(&prose.join("\n")) {
            assert!(shown_words.contains(&word), "{word} of {} is missing:\n{shown}", rule.name);
        }
        for heading in Rule::HEADINGS {
            let title = heading.trim_start_matches("## ");
            assert!(shown.lines().any(|line| line == title), "{title} is not a heading of {}", rule.name);
        }
    }
}

#[test]
fn prose_fits_the_page() {
    for rule in RULES.iter().copied().chain([&RULE]) {
        for line in explained(rule, 60, false).lines().filter(|line| !line.starts_with("    ")) {
            assert!(line.width() <= 60, "{line}");
        }
    }
}

#[test]
fn the_list() {
    let mut out = Vec::new();
    rules::write(&mut out, &[&ADVICE, &RULE], &Options::default()).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn the_list_as_json() {
    let mut out = Vec::new();
    rules::write_json(&mut out, &[&ADVICE, &RULE], "0.1.0").unwrap();
    let list: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(list["format"], rules::FORMAT);
    assert_eq!(list["version"], "0.1.0");
    assert_eq!(list["rules"][0]["severity"], "advice");
    assert_eq!(list["rules"][1]["name"], "held-update");
    assert_eq!(list["rules"][1]["summary"], "A small update waits in the sender until an ACK comes.");
    assert_eq!(list["rules"][0]["recipes"], serde_json::json!([]));
    assert_eq!(
        list["rules"][1]["recipes"][0],
        serde_json::json!({
            "title": "Set the option",
            "code": { "C": "int on = 1;\nset(fd, &on); // <b>", "Node.js": "socket.set(true);" },
        })
    );
    let markdown = list["rules"][1]["markdown"].as_str().unwrap();
    assert!(markdown.contains("\nNode.js:\n\n```javascript\nsocket.set(true);\n```\n"), "{markdown}");
    assert!(
        markdown.contains("\n## What to do\n") && markdown.contains("\n   ```c\n   int one = 1;\n"),
        "{markdown}"
    );
}
