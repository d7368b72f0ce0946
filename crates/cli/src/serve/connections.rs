//! HTTP over TCP, for as many at once as there is room for, and no longer than patience lasts.
//!
//! Anybody on the machine can connect. Who has not shown the token yet has few places and little time, so that nobody
//! is kept out by those who never will.

use std::collections::VecDeque;
use std::future;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// Connections at once that have shown the token: a browser opens six.
const MOST: usize = 32;
/// Connections at once that have not; one more takes the place of the oldest.
const MOST_STRANGERS: usize = 16;
/// How long a connection may take to show the token: a browser opens connections before it needs them, and opens others then.
const INTRODUCTION: Duration = Duration::from_secs(2);
/// How long a client may take to say what it wants, or to ask again.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are read of a connection before somebody takes them: the headers of a request have to fit.
const BUFFER: usize = 64 << 10;
/// How long a request may go on once the server is to end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Wait after a connection could not be accepted: without it, too many open files would keep a core busy.
const RECOVERY: Duration = Duration::from_millis(100);

/// Who is at the other end of a connection.
#[derive(Clone)]
pub(super) struct Visitor {
    room: Arc<Semaphore>,
    /// Its place among those who have shown the token; kept until the connection ends.
    place: Arc<Place>,
}

impl Visitor {
    /// Notes that a request of this connection has shown the token. Waits for a place, at most as long as strangers may.
    pub(super) async fn admit(&self) {
        if !self.is_admitted()
            && let Ok(place) = Arc::clone(&self.room).acquire_owned().await
        {
            // There is one request at a time on a connection.
            let _ = self.place.set(place);
        }
    }

    fn is_admitted(&self) -> bool {
        self.place.get().is_some()
    }

    /// Returns when it has not shown the token in time.
    async fn stays_unknown(&self) {
        sleep(INTRODUCTION).await;
        if self.is_admitted() {
            future::pending::<()>().await;
        }
    }
}

/// A connection's place, once it has one.
type Place = OnceLock<OwnedSemaphorePermit>;

/// Connections that have not shown the token, the oldest first. Those that end take their places with them.
#[derive(Default)]
struct Strangers(VecDeque<(Weak<Place>, AbortHandle)>);

impl Strangers {
    fn add(&mut self, place: Weak<Place>, connection: AbortHandle) {
        self.0.retain(|(place, _)| place.upgrade().is_some_and(|place| place.get().is_none()));
        if self.0.len() >= MOST_STRANGERS
            && let Some((_, oldest)) = self.0.pop_front()
        {
            oldest.abort();
        }
        self.0.push_back((place, connection));
    }
}

/// Answers until `ending` says so.
pub(super) async fn serve(listener: TcpListener, router: Router, mut ending: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(MOST));
    let mut strangers = Strangers::default();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let visitor = Visitor { room: Arc::clone(&room), place: Arc::default() };
                    let place = Arc::downgrade(&visitor.place);
                    let answered = answer(stream, router.clone(), ending.clone(), visitor);
                    strangers.add(place, tokio::spawn(answered).abort_handle());
                }
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => sleep(RECOVERY).await,
            },
            () = ended(&mut ending) => break,
        }
    }
    // Whoever is being answered has its answer first.
    let all = u32::try_from(MOST).unwrap_or(u32::MAX);
    let _ = timeout(LAST_WORDS, room.acquire_many(all)).await;
}

async fn answer(stream: TcpStream, router: Router, mut ending: watch::Receiver<bool>, visitor: Visitor) {
    let _ = stream.set_nodelay(true);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(BUFFER);
    let service = TowerToHyperService::new(router.layer(Extension(visitor.clone())));
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // What a client breaks off or gets wrong concerns nobody else.
        _ = connection.as_mut() => return,
        () = visitor.stays_unknown() => return,
        () = ended(&mut ending) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(LAST_WORDS, connection).await;
}

/// Returns when the server is to end.
async fn ended(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
}
