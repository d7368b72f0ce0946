//! The pages as `viewer/` builds them, each one self-contained file; `None` where this crate was built without them.

/// The interactive report. Its line [`DATA`] is where a report's data goes.
pub const REPORT: Option<&str> = built(include_str!(concat!(env!("OUT_DIR"), "/report.html")));

/// The page of `tcpwhy serve`.
pub const SERVE: Option<&str> = built(include_str!(concat!(env!("OUT_DIR"), "/serve.html")));

/// What stands in [`REPORT`], once, where the data goes.
pub const DATA: &str = "<!--tcpwhy:data-->";

const fn built(page: &'static str) -> Option<&'static str> {
    if page.is_empty() { None } else { Some(page) }
}

#[cfg(test)]
#[expect(clippy::print_stderr, reason = "a test that skips itself says so")]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_one_place_for_its_data() {
        let Some(page) = REPORT else {
            eprintln!("SKIPPED: built without the pages");
            return;
        };
        assert_eq!(page.matches(DATA).count(), 1);
        let (before, after) = page.split_once(DATA).expect("it is there");
        assert!(before.contains("<body>") && !before.contains("<script"), "the data comes before the script");
        assert!(after.contains("<script"));
    }

    /// A page that is opened from disk must not ask anybody for anything.
    #[test]
    fn the_pages_load_nothing() {
        for page in [REPORT, SERVE].into_iter().flatten() {
            assert!(page.contains("content=\"default-src 'none'; script-src 'sha256-"));
            for outside in ["src=\"", "href=\"", "url(http", "@import"] {
                let head = page.split("<style>").next().unwrap_or_default();
                assert!(!head.contains(outside), "{outside}");
            }
        }
    }
}
