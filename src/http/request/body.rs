//! Reading a request's body: bounded in size and time (slowloris).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::http::response::error::HttpError;

/// The largest body that is read as one.
pub const LARGEST: u64 = 1 << 20;

/// A body past [`LARGEST`] is still taken in and thrown away up to here, so that its sender, who reads nothing before it
/// has sent everything, gets to see the answer.
const SWALLOWED: u64 = 8 << 20;

/// How long a whole body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

pub async fn read(body: Incoming) -> Result<Bytes, HttpError> {
    let declared = body.size_hint().lower();
    if declared > SWALLOWED {
        return Err(HttpError::TooLarge);
    }
    tokio::time::timeout(BODY_TIMEOUT, collect(body)).await.unwrap_or(Err(HttpError::Timeout))
}

async fn collect(mut body: Incoming) -> Result<Bytes, HttpError> {
    let mut size = 0;
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| HttpError::Broken)?.into_data() else { continue };
        size += data.len() as u64;
        if size > SWALLOWED {
            return Err(HttpError::TooLarge);
        }
        if size > LARGEST {
            continue;
        }
        // Most bodies come in one piece, which needs no copy.
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
        _ if size > LARGEST => Err(HttpError::TooLarge),
        _ if rest.is_empty() => Ok(first),
        _ => Ok(rest.freeze()),
    }
}
