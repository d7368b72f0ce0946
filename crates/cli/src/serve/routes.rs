//! What can be asked for, and where.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /?token=…` | the cookie |
//! | `GET /` | the page |
//! | `GET /api/state` | captures, reports, analyses, live |
//! | `GET /api/jobs` | analyses and live alone |
//! | `PUT /api/captures/NAME` | takes the body as a capture |
//! | `POST /api/jobs` `{"capture": NAME}` | begins an analysis |
//! | `DELETE /api/jobs/N` | cancels it |
//! | `GET /reports/N` | a report, as `tcpwhy FILE --html` makes it |
//! | `DELETE /api/reports/N` | forgets it |
//! | `GET /api/comparison/BEFORE/AFTER` | `tcpwhy-comparison/1` |
//! | `POST /api/live` `{"interface": …, "filter": …}` | begins to capture |
//! | `DELETE /api/live` | ends it |

use std::io::Read;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::{delete, get, post, put};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tcpwhy_report::comparison::{self, Digest};
use tokio::task::spawn_blocking;

use super::access::{Entry, Refusal};
use super::answer::{self, Answer, Outcome, Problem};
use super::connections::Visitor;
use super::store::Store;
use super::{Shared, folder, jobs, live, upload};

/// Bytes of a request that is not a capture: a name and some words.
const MOST_WORDS: usize = 16 << 10;

/// Bytes in which a page's policy is to be found.
const MOST_HEAD: u64 = 4_096;

/// A report's page may run its own script and no more: no request, no cookie, no other page of this server. What is in it
/// comes from a capture.
const APART: &str = "; sandbox allow-scripts allow-downloads allow-modals";

type All = State<Arc<Shared>>;

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/reports/{id}", get(report))
        .route("/api/state", get(state))
        .route("/api/jobs", get(jobs_now).post(analyse))
        .route("/api/jobs/{id}", delete(cancel))
        .route("/api/captures/{name}", put(take))
        .route("/api/reports/{id}", delete(forget))
        .route("/api/comparison/{before}/{after}", get(compare))
        .route("/api/live", post(begin_live).delete(end_live))
        .fallback(async || said(Err(Problem::new(StatusCode::NOT_FOUND, "There is nothing here."))))
        .method_not_allowed_fallback(async || {
            said(Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "That cannot be done with this.")))
        })
        .layer(from_fn_with_state(Arc::clone(&shared), guard))
        .with_state(shared)
}

/// Stands before everything.
async fn guard(State(shared): All, request: Request, next: Next) -> Answer {
    let judged = shared.access.judge(request.method(), request.uri(), request.headers());
    if let (Ok(_), Some(visitor)) = (judged, request.extensions().get::<Visitor>()) {
        visitor.admit().await;
    }
    match judged {
        Ok(Entry::Open) => next.run(request).await,
        Ok(Entry::WithToken) => let_in(&shared),
        Err(refusal) => refused(refusal),
    }
}

/// The cookie, and on to the page. By a page of its own and not by a redirect: a link in another site's page leads here
/// too, and through a redirect the browser would not send the cookie at once.
fn let_in(shared: &Shared) -> Answer {
    let on = "<meta http-equiv=\"refresh\" content=\"0; url=/\">";
    let mut answer = answer::words(StatusCode::OK, on, "<a href=\"/\">tcpwhy</a>");
    if let Ok(cookie) = HeaderValue::from_str(&shared.access.set_cookie()) {
        answer.headers_mut().insert(SET_COOKIE, cookie);
    }
    answer
}

fn refused(refusal: Refusal) -> Answer {
    let (status, why) = match refusal {
        Refusal::Host => (
            StatusCode::MISDIRECTED_REQUEST,
            "Ask for this page by this machine's address or as localhost: any other name could be somebody else's.",
        ),
        Refusal::OtherPage => (StatusCode::FORBIDDEN, "Only tcpwhy's own page may ask for this."),
        Refusal::NoToken => (
            StatusCode::UNAUTHORIZED,
            "Open the whole address that tcpwhy serve printed: the token in it is the key.",
        ),
    };
    answer::words(status, "", why)
}

/// An answer in JSON, or why there is none.
fn said(outcome: Outcome<Value>) -> Answer {
    outcome.map_or_else(Into::into, |value| answer::json(StatusCode::OK, &value))
}

/// Nothing, or why not.
fn unsaid(outcome: Outcome<()>) -> Answer {
    outcome.map_or_else(Into::into, |()| answer::done())
}

/// What takes a disk's time, on a thread of its own.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Outcome<T> + Send + 'static) -> Outcome<T> {
    spawn_blocking(work).await.unwrap_or_else(|_| Err(Problem::here("tcpwhy itself failed at this.")))
}

/// What is in the store.
async fn stored<T: Send + 'static>(
    shared: Arc<Shared>,
    ask: impl FnOnce(&Store) -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    aside(move || ask(&shared.store())).await
}

/// A request's words.
async fn words<T: DeserializeOwned>(body: Body) -> Outcome<T> {
    let bytes = to_bytes(body, MOST_WORDS).await;
    let bytes = bytes.map_err(|_| Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "That is too much to ask."))?;
    serde_json::from_slice(&bytes).map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))
}

fn number(text: &str) -> Outcome<i64> {
    text.parse().map_err(|_| Problem::new(StatusCode::NOT_FOUND, "There is no such number."))
}

async fn page(State(shared): All) -> Answer {
    answer::page(shared.page, answer::policy_of(shared.page), "")
}

async fn state(State(shared): All) -> Answer {
    let look = |shared: Arc<Shared>| async move {
        let listing = aside(|| folder::list().map_err(Problem::here)).await?;
        let reports = stored(Arc::clone(&shared), Store::list).await?;
        Ok(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "folder": shared.folder,
            "upload_limit": shared.upload_limit,
            "captures": listing,
            "reports": reports,
            "jobs": shared.jobs.list(),
            "live": shared.live.view(),
        }))
    };
    said(look(shared).await)
}

async fn jobs_now(State(shared): All) -> Answer {
    said(Ok(json!({ "jobs": shared.jobs.list(), "live": shared.live.view() })))
}

async fn take(State(shared): All, Path(name): Path<String>, body: Body) -> Answer {
    said(upload::take(&shared, name, body).await.map(|name| json!({ "name": name })))
}

#[derive(Deserialize)]
struct Wanted {
    capture: String,
}

async fn analyse(State(shared): All, body: Body) -> Answer {
    let begin = async { jobs::start(&shared, &words::<Wanted>(body).await?.capture) };
    said(begin.await.map(|id| json!({ "job": id })))
}

async fn cancel(State(shared): All, Path(id): Path<String>) -> Answer {
    let id = number(&id).map(|id| u64::try_from(id).unwrap_or(u64::MAX));
    unsaid(id.and_then(|id| shared.jobs.cancel(id)))
}

/// A report's page. It is kept compressed, and goes to the browser so.
async fn report(State(shared): All, Path(id): Path<String>, headers: HeaderMap) -> Answer {
    let read = async {
        let id = number(&id)?;
        let gzip = stored(shared, move |store| store.page(id)).await?;
        let start = unpacked(&gzip, MOST_HEAD)?;
        let accepts = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
        let takes_gzip = accepts.is_some_and(|all| all.split(',').any(|kind| kind.trim() == "gzip"));
        // The page's own: another version of tcpwhy may have made it.
        let policy = answer::policy_of(&String::from_utf8_lossy(&start)).to_owned();
        if takes_gzip {
            let mut answer = answer::page(gzip, &policy, APART);
            answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            return Ok(answer);
        }
        let page = aside(move || unpacked(&gzip, u64::MAX)).await?;
        Ok(answer::page(page, &policy, APART))
    };
    read.await.unwrap_or_else(|problem: Problem| answer::words(problem.status, "", &problem.why))
}

/// The beginning of what was compressed.
fn unpacked(gzip: &[u8], most: u64) -> Outcome<Vec<u8>> {
    let mut page = Vec::new();
    GzDecoder::new(gzip).take(most).read_to_end(&mut page).map_err(Problem::here)?;
    Ok(page)
}

async fn forget(State(shared): All, Path(id): Path<String>) -> Answer {
    let forget = async {
        let id = number(&id)?;
        stored(shared, move |store| store.delete(id)).await
    };
    unsaid(forget.await)
}

async fn compare(State(shared): All, Path((before, after)): Path<(String, String)>) -> Answer {
    let compare = async {
        let (before, after) = (number(&before)?, number(&after)?);
        let (before, after) =
            stored(shared, move |store| Ok((store.digest(before)?, store.digest(after)?))).await?;
        aside(move || {
            let read = |text: &str| serde_json::from_str::<Digest>(text).map_err(Problem::here);
            let compared = comparison::compare(&read(&before)?, &read(&after)?);
            serde_json::to_value(compared).map_err(Problem::here)
        })
        .await
    };
    said(compare.await)
}

async fn begin_live(State(shared): All, body: Body) -> Answer {
    let begin = async {
        let wanted: live::Wanted = words(body).await?;
        aside(move || live::begin(&shared, &wanted)).await
    };
    unsaid(begin.await)
}

async fn end_live(State(shared): All) -> Answer {
    unsaid(shared.live.end())
}
