//! The listener: taking connections in, bounded, and letting them finish (graceful shutdown).

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::{Connection, HttpService};
use crate::http::allowance::Slot;
use crate::http::connection::eviction::Occupant;
use crate::http::connection::idle_timeout::{ActiveStream, Activity, IdleWatch, LOOK_EVERY};
use crate::http::connection::tls::Tls;

/// Open connections at the most; the next ones wait in the kernel's queue. No caller gets more than a share.
pub const CONNECTIONS: usize = 16 * 1024;

/// From here on the longest idle is ended for each that comes: kept-alive connections are cheap to make anew.
const NEARLY_FULL: usize = CONNECTIONS - 512;

/// The last of them are for those who ask whether the service is well: whoever else gets one is asked to come back.
const RESERVE: usize = 64;

/// Connections that may wait in the kernel's queue.
pub const BACKLOG: u32 = 4096;

/// Bytes that a request's head may have, and that are read of a body at once: hyper would hold half a megabyte for each
/// connection that never ends its head.
const HEAD_BYTES: usize = 32 * 1024;

/// Requests at once on one HTTP/2 connection.
const STREAMS: u32 = 128;

/// Bytes that a peer may send on one of them, and on the whole connection, before anybody reads them: what is not read is
/// held for as long as the peer likes.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 128 * 1024;

/// After the signal to stop: how long connections that were just taken in may still bring their first request.
const LAST_CALL: Duration = Duration::from_millis(200);

/// After that: how long requests in flight may take. With the store's and the log's end this stays below ten seconds.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

/// A pause after the kernel refused a connection (out of file descriptors, usually), so as not to spin.
pub(super) const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` is ready, then lets the requests in flight finish.
pub async fn serve(
    listener: TcpListener,
    service: Arc<HttpService>,
    tls: Option<Arc<Tls>>,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let (closing, closed) = watch::channel(false);
    let mut stop = pin!(stop);
    let begin = |stream, peer, is_reserve, place| {
        if let Some(connection) = Connection::of(peer, &service, is_reserve) {
            tokio::spawn(attend(stream, connection, Arc::clone(&service), tls.clone(), closed.clone(), place));
        }
    };
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            () = &mut stop => break,
        };
        let Ok(place) = place else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => begin(stream, peer, places.available_permits() < RESERVE, place),
            Err(error) => {
                service.app.log.problem(None, &format!("a connection could not be taken in: {error}"));
                tokio::time::sleep(REFUSED_PAUSE).await;
            }
        }
    }
    // Whoever is in the kernel's queue was told that they are connected; they are served too.
    while let Some((stream, peer)) = waiting(&listener).await {
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { break };
        begin(stream, peer, false, place);
    }
    drop(listener);
    tokio::time::sleep(LAST_CALL).await;
    // Fails only when no connection is left to hear it.
    let _nobody_left = closing.send(true);
    let everyone = u32::try_from(CONNECTIONS).unwrap_or(u32::MAX);
    if tokio::time::timeout(FINISH_TIMEOUT, places.acquire_many(everyone)).await.is_err() {
        service.app.log.problem(None, "some requests did not finish in time and were cut off");
    }
}

impl Connection {
    /// None for a caller who has its share of connections; trusted proxies have no such share.
    fn of(peer: SocketAddr, service: &HttpService, is_reserve: bool) -> Option<Self> {
        let peer = peer.ip();
        let share = match service.proxies.trusts(peer) {
            true => None,
            false => Some(service.client_shares.connect(peer)?),
        };
        Some(Self { peer, share, is_reserve })
    }
}

/// The next connection in the kernel's queue, without waiting for one.
async fn waiting(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    for _ in 0..2 {
        let next = std::future::poll_fn(|context| match listener.poll_accept(context) {
            Poll::Ready(accepted) => Poll::Ready(accepted.ok()),
            Poll::Pending => Poll::Ready(None),
        });
        // Without the runtime's budget, which would say "nothing" after a hundred or so.
        if let Some(accepted) = tokio::task::coop::unconstrained(next).await {
            return Some(accepted);
        }
        // The runtime may not have heard of the latest yet.
        tokio::task::yield_now().await;
    }
    None
}

/// Looks after one connection; `_place` is given back when it ends.
async fn attend<P>(
    stream: TcpStream,
    connection: Connection,
    service: Arc<HttpService>,
    tls: Option<Arc<Tls>>,
    mut closed: watch::Receiver<bool>,
    _place: P,
) {
    let _counted = Slot::take(&service.connections);
    let activity = Arc::new(Activity::default());
    let _place_to_give_up = service.open.take_or_evict(Arc::clone(&activity), NEARLY_FULL);
    // Answers are written whole; waiting to fill a packet would only delay them. If it cannot be set, they are delayed.
    let _delayed = stream.set_nodelay(true);
    match tls {
        None => converse(stream, connection, activity, Arc::clone(&service), closed).await,
        Some(tls) => {
            let shaken = tokio::select! {
                shaken = tls.accept(stream) => shaken,
                _ = closed.wait_for(|closed| *closed) => None,
                () = activity.evicted() => None,
            };
            if let Some(stream) = shaken {
                converse(stream, connection, activity, Arc::clone(&service), closed).await;
            }
        }
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    connection: Connection,
    activity: Arc<Activity>,
    service: Arc<HttpService>,
    mut closed: watch::Receiver<bool>,
) {
    let mut watch = IdleWatch::new(Arc::clone(&activity));
    let io = TokioIo::new(ActiveStream::new(stream, Arc::clone(&activity)));
    let mut builder = Builder::new(TokioExecutor::new());
    // See `idle_timeout.rs` for the time-outs of heads and idle connections.
    builder.http1().keep_alive(true).header_read_timeout(None).max_buf_size(HEAD_BYTES);
    // Answers are a kilobyte or two: copied behind their heads they leave in one plain write, which costs the kernel less
    // than a list of two pieces.
    builder.http1().writev(false);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS).max_header_list_size(HEAD_BYTES as u32);
    builder.http2().initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    let (whose, evicted) = (Arc::new((service, connection)), Arc::clone(&activity));
    let answer = service_fn(move |request: Request<Incoming>| {
        let whose = Arc::clone(&whose);
        let busy = activity.begin_request(request.version() == Version::HTTP_2);
        async move {
            let (service, connection) = &*whose;
            let answer = service.answer(request, connection).await;
            drop(busy);
            Ok::<_, Infallible>(answer)
        }
    });
    let mut connection = pin!(builder.serve_connection(io, answer));
    let mut overdue = pin!(async {
        let (mut looks, mut is_evicted) = (tokio::time::interval(LOOK_EVERY), false);
        loop {
            tokio::select! {
                _ = looks.tick() => if watch.is_overdue() { return },
                () = evicted.evicted() => is_evicted = true,
            }
            // A request that came meanwhile is answered first.
            if is_evicted && evicted.uses().is_some() {
                return;
            }
        }
    });
    // Fails only when the server is gone, and then it closes too.
    let mut closing = pin!(async { drop(closed.wait_for(|closed| *closed).await) });
    let mut open = true;
    loop {
        tokio::select! {
            biased;
            // How a connection ends is its peer's affair: resets are ordinary life on the internet.
            _peers_affair = connection.as_mut() => return,
            () = &mut closing, if open => {
                open = false;
                connection.as_mut().graceful_shutdown();
            }
            () = &mut overdue => return,
        }
    }
}
