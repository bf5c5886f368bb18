//! The request id, which links a response to its log line: the caller's own if it is valid, else a generated one.

use std::sync::atomic::{AtomicU64, Ordering};

use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method};

use crate::domain::base32;

/// The header, read and written. A constant: a name that is made where it is used is checked letter by letter each time.
pub const NAME: HeaderName = HeaderName::from_static("x-request-id");

const LONGEST: usize = 64;

/// Sixteen of ours, or up to 64 of the caller's; letters, digits and `-_.:` only, so that it needs no escaping
/// in any log. Held in place: a request needs no allocation for it but the header's own.
#[derive(Clone)]
pub struct RequestId {
    text: [u8; LONGEST],
    length: usize,
}

impl RequestId {
    /// An id of at most [`LONGEST`] bytes; what is longer is cut.
    fn new(id: &[u8]) -> Self {
        let length = id.len().min(LONGEST);
        let mut text = [0; LONGEST];
        text[..length].copy_from_slice(&id[..length]);
        Self { text, length }
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..self.length]).unwrap_or_default()
    }

    pub fn header(&self) -> HeaderValue {
        HeaderValue::from_bytes(&self.text[..self.length]).unwrap_or_else(|_| HeaderValue::from_static("-"))
    }
}

/// Makes ids: a random part that tells processes apart, and a count.
pub struct RequestIds {
    process: [u8; 5],
    next: AtomicU64,
}

impl RequestIds {
    pub fn new(random: [u8; 5]) -> Self {
        Self { process: random, next: AtomicU64::new(0) }
    }

    pub fn of(&self, headers: &HeaderMap) -> RequestId {
        let sent = headers.get(NAME).map(HeaderValue::as_bytes);
        match sent {
            Some(sent) if is_sane(sent) => RequestId::new(sent),
            _ => self.make(),
        }
    }

    fn make(&self) -> RequestId {
        let count = self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut bytes = [0; 10];
        bytes[..5].copy_from_slice(&self.process);
        bytes[5..].copy_from_slice(&count[3..]);
        RequestId::new(&base32::encode::<16>(&bytes))
    }
}

fn is_sane(id: &[u8]) -> bool {
    // A key sent here by mistake must not end up in the log.
    let holds_key = id.windows(3).any(|part| part.eq_ignore_ascii_case(b"uh_"));
    !holds_key
        && (1..=LONGEST).contains(&id.len())
        && id.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte))
}

/// The method for the log: callers may invent methods, and those need no place there.
pub fn plain_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sane_ids_are_kept_and_others_replaced() {
        let ids = RequestIds::new([7; 5]);
        let of = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert("x-request-id", HeaderValue::from_bytes(value).unwrap());
            ids.of(&headers).as_str().to_owned()
        };
        assert_eq!(of(b"9f8e-4.a_b:c"), "9f8e-4.a_b:c");
        let long = "x".repeat(65);
        for odd in [&b""[..], b"a b", b"\"", b"a@example.com", b"\xc3\xa9", b"x-uh_4yx7xszf_j93n", long.as_bytes()] {
            assert_eq!(of(odd).len(), 16);
        }
        assert_ne!(of(b""), of(b""), "each is another");
    }
}
