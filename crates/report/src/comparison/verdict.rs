//! What a comparison comes to, in a sentence or two.

use tcpwhy_diagnose::report::Severity;

use super::{Change, FindingPair, ServicePair};
use crate::number;
use crate::page::GLUE;

/// Rules that a sentence names of each kind; more are counted.
const NAMED: usize = 3;
/// From this ratio on, times are said to be so many times as long.
const TIMES: f64 = 1.1;

pub(super) fn sentence(services: &[ServicePair], whole: &[FindingPair]) -> String {
    let both: Vec<_> = services.iter().filter(|pair| pair.matched.is_some()).collect();
    if both.is_empty() {
        return "The two reports have no service in common.".to_owned();
    }
    let findings = both.iter().flat_map(|pair| &pair.findings).chain(whole);
    let problems: Vec<_> = findings.filter(|pair| pair.severity == Severity::Problem).collect();
    let kinds = [
        (Change::Gone, "Gone"),
        (Change::New, "New"),
        (Change::Better, "Costs less"),
        (Change::Worse, "Costs more"),
        (Change::Same, "As before"),
    ];
    let mut said: Vec<String> =
        kinds.iter().filter_map(|(change, word)| list(&problems, *change, word)).collect();
    if said.is_empty() {
        said.push("No problem before, none after.".to_owned());
    }
    said.extend(exchanges(&both));
    said.join(" ").replace(GLUE, " ")
}

/// `Gone: nagle-delayed-ack, split-write.`
fn list(problems: &[&FindingPair], change: Change, word: &str) -> Option<String> {
    let mut rules: Vec<&str> = Vec::new();
    for pair in problems.iter().filter(|pair| pair.change == Some(change)) {
        if !rules.contains(&pair.rule.as_str()) {
            rules.push(&pair.rule);
        }
    }
    let more = rules.len().saturating_sub(NAMED);
    rules.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!rules.is_empty()).then(|| format!("{word}: {}{more}.", rules.join(", ")))
}

/// What an exchange takes, over all services that are in both.
fn exchanges(both: &[&ServicePair]) -> Option<String> {
    let (mut was, mut is) = ((0.0, 0.0), (0.0, 0.0));
    for pair in both {
        let of = |amount: &Option<super::Amount>| amount.as_ref().and_then(|amount| amount.exchanges);
        if let (Some(before), Some(after)) = (of(&pair.before), of(&pair.after)) {
            for (sum, exchanges) in [(&mut was, before), (&mut is, after)] {
                sum.0 += exchanges.mean_ms.0 * exchanges.count as f64;
                sum.1 += exchanges.count as f64;
            }
        }
    }
    let (was, is) = (was.0 / was.1, is.0 / is.1);
    if !(was > 0.0 && is > 0.0) {
        return None;
    }
    let mean = format!("An exchange takes {} on average", number::duration(is));
    let before = number::duration(was);
    Some(match (was / is, is / was) {
        (faster, _) if faster > TIMES => format!("{mean}, before {before}: {faster:.1} times as fast."),
        (_, slower) if slower > TIMES => format!("{mean}, before {before}: {slower:.1} times as long."),
        _ => format!("{mean}, before {before}."),
    })
}
