//! Reading a request's body, with limits on its size, its time (slowloris) and the memory of all bodies together.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::{Body, Incoming};
use hyper::header::CONTENT_ENCODING;
use tokio::sync::Notify;

use crate::http::allowance::{self, Allowance};
use crate::http::connection::eviction::{EvictionTable, Occupant};
use crate::http::response::error::HttpError;

/// The largest body that is read as one.
pub const LARGEST: u64 = 1 << 20;

/// A body that nobody reads is still taken in and thrown away up to here, so that its sender, who reads nothing before it
/// has sent everything, gets to see the answer.
const SWALLOWED: u64 = 8 << 20;

/// How long a whole body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Bodies that may be waited for at once, whoever sends them. Past it the longest awaited is given up: most bodies come with
/// their heads and are never waited for, and whoever sends one by and by has it here within a second.
const AWAITED: usize = 2048;

/// What a body draws on: everybody's, and its caller's.
type Allowances<'a> = [Option<&'a Allowance>; 3];

/// What bodies may take of the service.
#[derive(Clone, Copy)]
pub struct BodyQuota<'a> {
    pub bytes: Allowances<'a>,
    pub awaited: &'a EvictionTable<AwaitedBody>,
    /// Requests under way: one whose body is waited for is not among them.
    pub in_flight: &'a AtomicUsize,
}

/// A body that did not come with its head.
#[derive(Default)]
pub struct AwaitedBody(Notify);

impl Occupant for AwaitedBody {
    fn uses(&self) -> Option<u32> {
        Some(0)
    }

    fn evict(&self) {
        self.0.notify_one();
    }
}

/// A request's body until somebody reads it.
pub struct SentBody<'a> {
    unread: &'a mut Option<Incoming>,
    quota: BodyQuota<'a>,
}

impl<'a> SentBody<'a> {
    pub fn new(unread: &'a mut Option<Incoming>, quota: BodyQuota<'a>) -> Self {
        Self { unread, quota }
    }

    /// Reads all of it, unless it is larger than `largest`.
    pub async fn read(self, largest: u64) -> Result<Bytes, HttpError> {
        let Some(body) = self.unread.take() else { return Ok(Bytes::new()) };
        if body.size_hint().lower() > SWALLOWED {
            return Err(HttpError::TooLarge);
        }
        let BodyQuota { bytes, awaited, in_flight } = self.quota;
        let mut collecting = pin!(collect(body, largest, Held { allowances: bytes, bytes: 0 }));
        if let Some(whole) = at_once(collecting.as_mut()).await {
            return whole;
        }
        let _not_under_way = NotUnderWay::new(in_flight);
        wait(collecting, awaited).await?
    }
}

/// What a future gives without waiting.
async fn at_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Waits for a body, for a while, and while there is a place for it.
async fn wait<F: Future>(arriving: Pin<&mut F>, awaited: &EvictionTable<AwaitedBody>) -> Result<F::Output, HttpError> {
    let body = Arc::new(AwaitedBody::default());
    let _place = awaited.take_or_evict(Arc::clone(&body), AWAITED);
    tokio::select! {
        done = tokio::time::timeout(BODY_TIMEOUT, arriving) => done.map_err(|_| HttpError::Timeout),
        () = body.0.notified() => Err(HttpError::Busy),
    }
}

/// A request that does nothing but wait for its body.
struct NotUnderWay<'a>(&'a AtomicUsize);

impl<'a> NotUnderWay<'a> {
    fn new(in_flight: &'a AtomicUsize) -> Self {
        in_flight.fetch_sub(1, Ordering::Relaxed);
        Self(in_flight)
    }
}

impl Drop for NotUnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// What one body holds of its allowances while it arrives.
struct Held<'a> {
    allowances: Allowances<'a>,
    bytes: usize,
}

impl Held<'_> {
    fn take(&mut self, bytes: usize) -> Result<(), HttpError> {
        if !allowance::take(|| self.allowances.into_iter().flatten(), bytes) {
            return Err(HttpError::Busy);
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.allowances.iter().flatten().for_each(|allowance| allowance.give_back(self.bytes));
    }
}

async fn collect(mut body: Incoming, largest: u64, mut held: Held<'_>) -> Result<Bytes, HttpError> {
    let mut size = 0;
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| HttpError::Broken)?.into_data() else { continue };
        size += data.len() as u64;
        if size > SWALLOWED {
            return Err(HttpError::TooLarge);
        }
        if size > largest {
            (first, rest) = (Bytes::new(), BytesMut::new());
            continue;
        }
        // Most bodies come in one piece, which needs no copy and holds nothing while others arrive.
        if first.is_empty() && rest.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        held.take(data.len())?;
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&data);
        }
    }
    match size {
        _ if size > largest => Err(HttpError::TooLarge),
        _ if rest.is_empty() => Ok(first),
        _ => Ok(rest.freeze()),
    }
}

/// Whether a body says that it is compressed, or otherwise not to be read as it is.
pub fn is_encoded(headers: &HeaderMap) -> bool {
    let plain = |value: &[u8]| value.trim_ascii().is_empty() || value.trim_ascii().eq_ignore_ascii_case(b"identity");
    headers.get_all(CONTENT_ENCODING).iter().any(|value| !plain(value.as_bytes()))
}

/// Takes in a body that nobody will read and throws it away; false if that is too much, or takes too long.
pub async fn swallow(mut body: Incoming, awaited: &EvictionTable<AwaitedBody>) -> bool {
    if body.size_hint().lower() > SWALLOWED {
        return false;
    }
    let mut size = 0;
    let mut all = pin!(async {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            size += frame.data_ref().map_or(0, |data| data.len() as u64);
            if size > SWALLOWED {
                return false;
            }
        }
        true
    });
    match at_once(all.as_mut()).await {
        Some(done) => done,
        None => wait(all, awaited).await.unwrap_or(false),
    }
}
