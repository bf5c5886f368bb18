//! Connections: taking them in, bounded, and letting them finish.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::Edge;

/// Open connections at the most; the next ones wait in the kernel's queue.
const CONNECTIONS: usize = 16 * 1024;

/// How long a request's head may take to arrive.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);

/// After the signal to stop: how long connections that were just taken in may still bring their first request.
const LAST_CALL: Duration = Duration::from_millis(200);

/// After that: how long requests in flight may take. With the store's and the log's end this stays below ten seconds.
const FINISH: Duration = Duration::from_secs(8);

/// A pause after the kernel refused a connection (out of file descriptors, usually), so as not to spin.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` is ready, then lets the requests in flight finish.
pub async fn serve(listener: TcpListener, edge: Arc<Edge>, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let (closing, closed) = watch::channel(false);
    let mut stop = pin!(stop);
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
            Ok((stream, peer)) => {
                tokio::spawn(attend(stream, peer, Arc::clone(&edge), closed.clone(), place));
            }
            Err(error) => {
                edge.app.log.problem(None, &format!("a connection could not be taken in: {error}"));
                tokio::time::sleep(REFUSED_PAUSE).await;
            }
        }
    }
    // Whoever is in the kernel's queue was told that they are connected; they are served too.
    while let Some((stream, peer)) = waiting(&listener).await {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        tokio::spawn(attend(stream, peer, Arc::clone(&edge), closed.clone(), place));
    }
    drop(listener);
    tokio::time::sleep(LAST_CALL).await;
    // Fails only when no connection is left to hear it.
    let _nobody_left = closing.send(true);
    let everyone = u32::try_from(CONNECTIONS).unwrap_or(u32::MAX);
    if tokio::time::timeout(FINISH, places.acquire_many(everyone)).await.is_err() {
        edge.app.log.problem(None, "some requests did not finish in time and were cut off");
    }
}

/// The next connection in the kernel's queue, without waiting for one.
async fn waiting(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    std::future::poll_fn(|context| match listener.poll_accept(context) {
        Poll::Ready(Ok(accepted)) => Poll::Ready(Some(accepted)),
        Poll::Ready(Err(_)) | Poll::Pending => Poll::Ready(None),
    })
    .await
}

async fn attend<P>(stream: TcpStream, peer: SocketAddr, edge: Arc<Edge>, mut closed: watch::Receiver<bool>, _place: P) {
    // Answers are written whole; waiting to fill a packet would only delay them. If it cannot be set, they are delayed.
    let _delayed = stream.set_nodelay(true);
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).keep_alive(true);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(128).keep_alive_interval(Some(HEAD_PATIENCE));
    let service = service_fn(move |request| {
        let edge = Arc::clone(&edge);
        async move { Ok::<_, Infallible>(edge.answer(request, peer.ip()).await) }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        _ = closed.wait_for(|closed| *closed) => None,
    };
    if ended.is_none() {
        connection.as_mut().graceful_shutdown();
        // How a connection ends is its peer's affair: resets and time-outs are ordinary life on the internet.
        let _peers_affair = connection.await;
    }
}
