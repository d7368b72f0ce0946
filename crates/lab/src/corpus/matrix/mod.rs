//! All cases of the corpus.

mod alike;
mod causes;
mod clean;
mod compound;
mod loss;
mod nagle;
mod programs;
mod road;
mod sending;
mod windows;

use super::case::{Case, Cause, Group};
use super::run::{Run, Traffic};
use road::Road;

/// Every case, in the order in which the list has them.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    nagle::add(&mut cases);
    windows::add(&mut cases);
    loss::add(&mut cases);
    sending::add(&mut cases);
    programs::add(&mut cases);
    alike::add(&mut cases);
    compound::add(&mut cases);
    clean::add(&mut cases);
    cases
}

/// A case on a road; its name ends with the road's.
fn case(group: Group, what: &str, story: &str, road: &Road, traffic: Traffic, causes: Vec<Cause>) -> Case {
    let allowed = if opens_a_window(road, &traffic) { vec!["slow-start"] } else { Vec::new() };
    Case {
        name: format!("{what}-{}", road.name()),
        story: story.to_owned(),
        group,
        run: Run {
            traffic,
            path: road.path(),
            initial_window: None,
            wide_windows: false,
            congestion: None,
            keeps_window: false,
            ecn: false,
            no_sack: false,
            seed: SEED,
        },
        causes,
        allowed,
        only_at: None,
    }
}

/// What a new connection may send at once, bytes: ten segments (RFC 6928).
const FIRST_WINDOW: usize = 14_480;

/// Whether a run waits for a congestion window to open whatever else is in it: each transfer is many times as long as
/// the first window, and some messages are longer. Loopback's segments are 64 KB.
fn opens_a_window(road: &Road, traffic: &Traffic) -> bool {
    let is_long = match traffic {
        Traffic::Transfer(_) => true,
        Traffic::Chat(chat) => {
            [&chat.request, &chat.response].iter().any(|writes| writes.iter().sum::<usize>() > FIRST_WINDOW)
        }
        Traffic::Stream(_) => false,
    };
    is_long && matches!(road, Road::Link { .. })
}

/// Seed of every case: chances are few, and each is the case's own link's.
const SEED: u64 = 1;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let cases = cases();
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
    }

    #[test]
    fn each_cure_changes_the_run_and_rules_exist() {
        for case in cases() {
            for cause in &case.causes {
                if cause.costs {
                    let (run, cured) = (case.run.key().unwrap(), case.without(cause).key().unwrap());
                    assert_ne!(run, cured, "{}: {} is not in it", case.name, cause.name);
                }
            }
            let named = case.causes.iter().flat_map(|cause| cause.rules).chain(&case.allowed);
            for rule in named {
                assert!(tcpwhy_diagnose::detectors::Rule::named(rule).is_some(), "{rule}");
            }
        }
    }

    #[test]
    fn clean_cases_have_no_cause_that_costs() {
        for case in cases().iter().filter(|case| case.group == Group::Clean) {
            assert!(case.causes.iter().all(|cause| !cause.costs), "{}", case.name);
        }
    }
}
