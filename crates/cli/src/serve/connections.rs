//! HTTP over TCP, for as many at once as there is room for, and no longer than patience lasts.

use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

/// Connections at once: a browser opens six.
const MOST: usize = 32;
/// How long a client may take to say what it wants, or to ask again: a browser opens connections before it needs them.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are read of a connection before somebody takes them: the headers of a request have to fit.
const BUFFER: usize = 64 << 10;
/// How long a request may go on once the server is to end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Wait after a connection could not be accepted: without it, too many open files would keep a core busy.
const RECOVERY: Duration = Duration::from_millis(100);

/// Answers until `ending` says so.
pub(super) async fn serve(listener: TcpListener, router: Router, mut ending: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(MOST));
    loop {
        let until = ending.clone();
        let next = async {
            let place = Arc::clone(&room).acquire_owned().await.ok();
            (listener.accept().await, place)
        };
        tokio::select! {
            (accepted, place) = next => match accepted {
                Ok((stream, _)) => {
                    tokio::spawn(answer(stream, router.clone(), until, place));
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

async fn answer(
    stream: TcpStream,
    router: Router,
    mut ending: watch::Receiver<bool>,
    _place: Option<OwnedSemaphorePermit>,
) {
    let _ = stream.set_nodelay(true);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(BUFFER);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    tokio::select! {
        // What a client breaks off or gets wrong concerns nobody else.
        _ = connection.as_mut() => return,
        () = ended(&mut ending) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = timeout(LAST_WORDS, connection).await;
}

/// Returns when the server is to end.
async fn ended(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
}
