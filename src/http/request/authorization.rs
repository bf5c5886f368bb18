//! The `Authorization` header: one, or as good as none.

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue};

/// What is sent in it. Two of them are no key, whichever comes first: a proxy and we might each read another.
pub fn of(headers: &HeaderMap) -> Option<&[u8]> {
    let mut sent = headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes);
    match (sent.next(), sent.next()) {
        (one, None) => one,
        (_, Some(_)) => Some(b""),
    }
}
