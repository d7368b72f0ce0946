//! Answers, each with the headers that keep a browser from doing anything else with it.

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

/// An answer on its way.
pub(super) type Answer = Response<Body>;

/// A request that cannot be done: why, in a sentence for people.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) why: String,
}

/// What may be done, or not.
pub(super) type Outcome<T> = Result<T, Problem>;

impl Problem {
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }

    /// Something here is broken; it is nobody's request.
    #[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
    pub(super) fn here(why: impl ToString) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, why.to_string())
    }
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        #[derive(Serialize)]
        struct Why {
            error: String,
        }
        json(problem.status, &Why { error: problem.why })
    }
}

/// What no answer needs: to load anything, or to be shown inside another page.
const NOTHING: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    // Names of files are of other people's making: what is no text was not taken in the first place.
    let text = serde_json::to_vec(value).unwrap_or_default();
    with_headers(status, "application/json", NOTHING, text)
}

/// Nothing more to say.
pub(super) fn done() -> Answer {
    with_headers(StatusCode::NO_CONTENT, "text/plain", NOTHING, Vec::new())
}

/// One of the project's pages, with the policy that it brings, and `more`.
pub(super) fn page(html: impl Into<Body>, policy: &str, more: &str) -> Answer {
    let policy = format!("{policy}; frame-ancestors 'none'{more}");
    with_headers(StatusCode::OK, "text/html; charset=utf-8", &policy, html)
}

/// A few words for people, on a page of their own; `head` goes into its head.
pub(super) fn words(status: StatusCode, head: &str, words: &str) -> Answer {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">\
         {head}<title>tcpwhy</title></head><body><p>{words}</p></body></html>\n"
    );
    with_headers(status, "text/html; charset=utf-8", NOTHING, html)
}

fn with_headers(status: StatusCode, kind: &'static str, policy: &str, body: impl Into<Body>) -> Answer {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    let policy = HeaderValue::from_str(policy).unwrap_or(HeaderValue::from_static(NOTHING));
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        // Reports stay in the store, not in the browser's.
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// The policy that a page of `viewer/` brings in its head: it knows the hashes of its script and style.
pub(super) fn policy_of(page: &str) -> &str {
    let found = page.split_once("http-equiv=\"Content-Security-Policy\" content=\"");
    found.and_then(|(_, rest)| rest.split_once('"')).map_or("default-src 'none'", |(policy, _)| policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_a_policy_may_do_nothing() {
        assert_eq!(policy_of("<html>"), "default-src 'none'");
        let page = "<meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"a 'b'; c\"><style>";
        assert_eq!(policy_of(page), "a 'b'; c");
    }
}
