//! Idle time-outs of a connection: detects heads that never end (slowloris) and silent peers.
//!
//! hyper has a timer for heads, but it also closes idle keep-alive connections, costs a timer per request, and does not
//! run while the protocol is being detected. This one checks each connection every few seconds and costs a request two
//! flags.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::eviction::Occupant;

/// How often a connection is looked at.
pub const LOOK_EVERY: Duration = Duration::from_millis(2500);

/// Looks until a head must be whole, and until a new connection must have begun one: ten seconds.
const HEAD_LOOKS: u32 = 4;

/// Looks until a kept-alive connection without a request is ended: 75 seconds, a little more than most clients keep them.
const IDLE_LOOKS: u32 = 30;

/// What the connection and its requests tell each other.
#[derive(Default)]
pub struct Activity {
    /// Bytes came since the last request began or ended.
    begun: AtomicBool,
    /// Requests being answered.
    busy: AtomicU32,
    /// Requests begun so far; most begin and end between two looks.
    requests: AtomicU32,
    /// HTTP/2 has traffic of its own between requests; only requests count there.
    many_streams: AtomicBool,
    /// Another needs its place.
    evicted: Notify,
}

impl Activity {
    pub fn begin_request(self: &Arc<Self>, many_streams: bool) -> BusyGuard {
        self.begun.store(false, Ordering::Relaxed);
        self.many_streams.store(many_streams, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.busy.fetch_add(1, Ordering::Relaxed);
        BusyGuard(Arc::clone(self))
    }

    /// Ready once another needs its place.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Occupant for Activity {
    fn uses(&self) -> Option<u32> {
        (self.busy.load(Ordering::Relaxed) == 0).then(|| self.requests.load(Ordering::Relaxed))
    }

    fn evict(&self) {
        self.evicted.notify_one();
    }
}

/// A request being answered.
pub struct BusyGuard(Arc<Activity>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.begun.store(false, Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream that notes when bytes come in.
pub struct ActiveStream<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl<S> ActiveStream<S> {
    pub fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ActiveStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.begun.store(true, Ordering::Relaxed);
        }
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ActiveStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Counts looks at one connection.
pub struct IdleWatch {
    activity: Arc<Activity>,
    half: u32,
    idle: u32,
    /// The requests that were begun at the last look.
    seen: u32,
}

impl IdleWatch {
    pub fn new(activity: Arc<Activity>) -> Self {
        Self { activity, half: 0, idle: 0, seen: 0 }
    }

    /// Looks once; true when the connection has had its time.
    pub fn is_overdue(&mut self) -> bool {
        let requests = self.activity.requests.load(Ordering::Relaxed);
        if self.activity.busy.load(Ordering::Relaxed) > 0 || requests != self.seen {
            (self.half, self.idle, self.seen) = (0, 0, requests);
            return false;
        }
        let half = self.activity.begun.load(Ordering::Relaxed) && !self.activity.many_streams.load(Ordering::Relaxed);
        self.half = if half { self.half + 1 } else { 0 };
        self.idle += 1;
        self.half > HEAD_LOOKS || self.idle > if requests > 0 { IDLE_LOOKS } else { HEAD_LOOKS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks_until_overdue(watch: &mut IdleWatch) -> u32 {
        (1..1000).find(|_| watch.is_overdue()).unwrap()
    }

    #[test]
    fn heads_get_ten_seconds_and_idle_connections_seventy_five() {
        let activity = Arc::new(Activity::default());
        assert_eq!(looks_until_overdue(&mut IdleWatch::new(Arc::clone(&activity))), HEAD_LOOKS + 1, "never began");
        activity.begun.store(true, Ordering::Relaxed);
        assert_eq!(looks_until_overdue(&mut IdleWatch::new(Arc::clone(&activity))), HEAD_LOOKS + 1, "never ended");

        let mut watch = IdleWatch::new(Arc::clone(&activity));
        let busy = activity.begin_request(false);
        assert!((0..100).all(|_| !watch.is_overdue()), "a request being answered is not idle");
        activity.begun.store(true, Ordering::Relaxed);
        drop(busy);
        assert_eq!(looks_until_overdue(&mut watch), IDLE_LOOKS + 1, "the rest of a body is no head");

        let mut watch = IdleWatch::new(Arc::clone(&activity));
        for _ in 0..100 {
            drop(activity.begin_request(false));
            assert!(!watch.is_overdue(), "requests that begin and end between two looks keep it alive");
        }
        assert_eq!(looks_until_overdue(&mut watch), IDLE_LOOKS + 1);

        let mut watch = IdleWatch::new(Arc::clone(&activity));
        let busy = activity.begin_request(true);
        assert!(!watch.is_overdue());
        drop(busy);
        activity.begun.store(true, Ordering::Relaxed);
        assert_eq!(looks_until_overdue(&mut watch), IDLE_LOOKS + 1, "HTTP/2 talks between requests");
    }
}
