//! One client's connection, from being accepted to its end.

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;

use super::Settings;
use super::account::{Connection, End, Passed, Path, Side, ms};
use super::direction::{Direction, Over, Scratch, Socket};
use super::tcp_info::{self, TcpInfo};

/// How long a side may take nothing of what another one sent before it vanished. Without the relay it would have seen the
/// reset at once; with it, the bytes before the reset come first, but nobody waits for ever on a reader that stands still.
const STALLED: Duration = Duration::from_secs(10);
/// How long a connection that both sides finished is kept until the last bytes are acknowledged, for the account's sake:
/// beyond a delayed ACK (200 ms and more, RFC 1122 section 4.2.3.2) and a round trip. The kernel delivers them anyhow.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Between two looks at a socket that is still to be drained: it grows from the first to the last.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// A client that has been accepted.
pub(super) struct Caller {
    /// From 1.
    pub(super) number: u64,
    /// Its socket.
    pub(super) client: TcpStream,
    /// From where it came.
    pub(super) address: SocketAddr,
    /// When the relay began.
    pub(super) begun: Instant,
}

/// Carries a client's connection to its end.
pub(super) async fn serve(
    caller: Caller,
    settings: Rc<Settings>,
    scratch: Rc<Scratch>,
    mut stopped: watch::Receiver<bool>,
) -> Connection {
    let accepted = Instant::now();
    let Caller { number, client, address, begun } = caller;
    let mut account = Connection {
        number,
        client: address,
        target: None,
        start_ms: ms(accepted - begun),
        connect_ms: None,
        duration_ms: 0.0,
        end: End::Stopped,
        up: Passed::default(),
        down: Passed::default(),
        client_path: None,
        target_path: None,
    };
    let connected = tokio::select! {
        biased;
        _ = stopped.wait_for(|stop| *stop) => None,
        // Also for a client that is gone by now: what it sent before is still to be passed on.
        connected = TcpStream::connect((settings.host.as_str(), settings.port)) => Some(connected),
    };
    match connected {
        Some(Ok(target)) => {
            account.target = target.peer_addr().ok();
            account.connect_ms = Some(ms(accepted.elapsed()));
            let sockets = Sockets::new(client, target, accepted, settings.nagle);
            sockets.relay(&scratch, &mut account, &mut stopped).await;
        }
        Some(Err(error)) => {
            account.end = End::Unreached { error: error.to_string() };
            reset(&client);
        }
        None => reset(&client),
    }
    account.duration_ms = ms(accepted.elapsed());
    account
}

/// Both sides of a connection that stands.
struct Sockets {
    client: TcpStream,
    target: TcpStream,
    accepted: Instant,
}

impl Sockets {
    fn new(client: TcpStream, target: TcpStream, accepted: Instant, nagle: bool) -> Self {
        // Where the option is refused, the connection is gone already, and ends as one that goes later.
        let _ = client.set_nodelay(!nagle);
        let _ = target.set_nodelay(!nagle);
        Self { client, target, accepted }
    }

    async fn relay(self, scratch: &Scratch, account: &mut Connection, stopped: &mut watch::Receiver<bool>) {
        let (client, target) = (Socket::new(&self.client), Socket::new(&self.target));
        let up = Direction::new(&client, &target, self.accepted);
        let down = Direction::new(&target, &client, self.accepted);
        let carry = async {
            let end = self.carry(&up, &down, scratch).await;
            self.drain(&end).await;
            end
        };
        let end = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => End::Stopped,
            end = carry => end,
        };
        let (client, target) = (tcp_info::of(&self.client), tcp_info::of(&self.target));
        account.up = with_segments(up.passed(), client.as_ref(), target.as_ref());
        account.down = with_segments(down.passed(), target.as_ref(), client.as_ref());
        account.client_path = client.as_ref().map(Path::of);
        account.target_path = target.as_ref().map(Path::of);
        if end != End::Finished {
            reset(&self.client);
            reset(&self.target);
        }
        account.end = end;
    }

    /// Passes on both directions until neither carries any more.
    async fn carry(&self, up: &Direction<'_>, down: &Direction<'_>, scratch: &Scratch) -> End {
        let (mut up_runs, mut down_runs) = (pin!(up.run(scratch)), pin!(down.run(scratch)));
        let mut client_lost = pin!(lost(&self.client, up));
        let mut target_lost = pin!(lost(&self.target, down));
        let (mut up_over, mut down_over) = (None, None);
        loop {
            let finished = Some(Over::Finished);
            tokio::select! {
                biased;
                over = &mut up_runs, if up_over.is_none() => up_over = Some(over),
                over = &mut down_runs, if down_over.is_none() => down_over = Some(over),
                () = vanished(&self.client), if up_over == finished => return End::Reset { by: Side::Client },
                () = vanished(&self.target), if down_over == finished => return End::Reset { by: Side::Target },
                () = &mut client_lost => return End::Reset { by: Side::Client },
                () = &mut target_lost => return End::Reset { by: Side::Target },
            }
            match (up_over, down_over) {
                (Some(Over::SenderGone), _) | (Some(_), Some(Over::ReceiverGone)) => {
                    return End::Reset { by: Side::Client };
                }
                (_, Some(Over::SenderGone)) | (Some(Over::ReceiverGone), Some(_)) => {
                    return End::Reset { by: Side::Target };
                }
                (Some(Over::Finished), Some(Over::Finished)) => return End::Finished,
                // Where a receiver is gone, what it had sent before is still to be passed on.
                (None, _) | (_, None) => {}
            }
        }
    }

    /// Waits until the side that is left, or both, have what was written to them: a reset would throw it away, and the
    /// account counts what has left.
    async fn drain(&self, end: &End) {
        match end {
            End::Finished => {
                let both = async {
                    drained(&self.client).await;
                    drained(&self.target).await;
                };
                let _ = tokio::time::timeout(LAST_WORDS, both).await;
            }
            End::Reset { by: Side::Client } => drained(&self.target).await,
            End::Reset { by: Side::Target } => drained(&self.client).await,
            End::Unreached { .. } | End::Stopped => {}
        }
    }
}

/// Waits until the kernel knows that `side`, the sender of `direction`, is gone, and nothing of what it had sent is
/// delivered any more. Reading tells of a reset only once all before it has been passed on, and the other side may not take
/// it.
async fn lost(side: &TcpStream, direction: &Direction<'_>) {
    vanished(side).await;
    let mut delivered = direction.delivered();
    loop {
        sleep(STALLED).await;
        if std::mem::replace(&mut delivered, direction.delivered()) == delivered {
            return;
        }
    }
}

/// Waits until the kernel reports an error on a socket: a reset, or nothing heard for too long.
async fn vanished(side: &TcpStream) {
    if side.ready(Interest::ERROR).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits until everything written to a socket has been acknowledged, or nothing has been for [`STALLED`].
async fn drained(side: &TcpStream) {
    let mut pause = LOOKS.0;
    let mut progress = (Instant::now(), (0, 0));
    while let Some(info) = tcp_info::of(side).filter(|info| !info.is_drained()) {
        let left = (info.unacked, info.unsent);
        if left != progress.1 {
            progress = (Instant::now(), left);
        } else if progress.0.elapsed() >= STALLED {
            return;
        }
        sleep(pause).await;
        pause = LOOKS.1.min(pause * 2);
    }
}

/// A direction with what the kernel counted on its two sockets.
fn with_segments(mut passed: Passed, from: Option<&TcpInfo>, to: Option<&TcpInfo>) -> Passed {
    let left = |info: &TcpInfo| info.data_segments_out.saturating_sub(info.retransmits);
    passed.segments_in = from.map(|info| info.data_segments_in.into());
    passed.segments_out = to.filter(|info| info.unsent == 0).map(|info| left(info).into());
    passed
}

/// Lets a connection end by a reset instead of a FIN when it is dropped (`SO_LINGER` of 0 s), so that nobody takes a part for the whole.
fn reset(socket: &TcpStream) {
    let _ = socket.set_zero_linger();
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio::runtime::Builder;

    use super::*;

    /// A connection over loopback, both ends.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let near =
            TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a connection");
        (near, listener.accept().await.expect("its other end").0)
    }

    #[test]
    fn nagle_is_off_on_both_sides_unless_asked_for() {
        let runtime = Builder::new_current_thread().enable_io().build().expect("a runtime");
        runtime.block_on(async {
            for nagle in [false, true] {
                let (client, target) = (pair().await, pair().await);
                let sockets = Sockets::new(client.1, target.0, Instant::now(), nagle);
                assert_eq!(sockets.client.nodelay().expect("an option"), !nagle);
                assert_eq!(sockets.target.nodelay().expect("an option"), !nagle);
            }
        });
    }

    #[test]
    fn the_kernel_counts_segments() {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (near, far) = pair().await;
            near.set_nodelay(true).expect("an option");
            for _ in 0..3 {
                near.writable().await.expect("a socket");
                near.try_write(b"update").expect("room");
            }
            drained(&near).await;
            let (near, far) = (tcp_info::of(&near), tcp_info::of(&far));
            if cfg!(target_os = "linux") {
                let (near, far) = (near.expect("an answer"), far.expect("an answer"));
                assert_eq!((near.data_segments_out, near.data_segments_in), (3, 0));
                assert_eq!((far.data_segments_in, far.data_segments_out), (3, 0));
                assert!(near.is_drained() && !near.is_closed && near.retransmits == 0, "{near:?}");
                let shortest = near.min_rtt.expect("a round trip");
                assert!(shortest > 0 && shortest <= near.rtt * 8, "{near:?}");
            }
        });
    }
}
