//! The scenarios that come with the program.

/// Names and texts, in the order in which they are listed.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("dsl-1998", include_str!("../../scenarios/dsl-1998.toml")),
    ("dsl-1998-guesses", include_str!("../../scenarios/dsl-1998-guesses.toml")),
    ("dsl-1998-table", include_str!("../../scenarios/dsl-1998-table.toml")),
    ("netrek-1995", include_str!("../../scenarios/netrek-1995.toml")),
    ("chained-buffers-2022", include_str!("../../scenarios/chained-buffers-2022.toml")),
    ("slow-start-after-idle", include_str!("../../scenarios/slow-start-after-idle.toml")),
    ("tail-loss", include_str!("../../scenarios/tail-loss.toml")),
    ("bufferbloat", include_str!("../../scenarios/bufferbloat.toml")),
];

/// The text of a scenario that comes with the program.
pub fn named(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
