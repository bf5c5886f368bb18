//! Entity tags (ETag, conditional requests): responses that stay the same until the catalog is reloaded, and the short
//! response (304) to a caller that already has them.

use std::sync::OnceLock;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH};
use hyper::{HeaderMap, StatusCode};

use super::answer::Answer;
use crate::domain::base32;

/// Long enough to spare a page its repeated reads, short enough that a new catalog is seen within minutes. Private: an
/// answer carries its caller's own budget.
const CACHED: HeaderValue = HeaderValue::from_static("private, max-age=300");

/// A document that is made before it is asked for.
pub struct Document {
    body: Bytes,
    kind: &'static str,
    tag: EntityTag,
    /// Of its own, beside those that every answer has.
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Document {
    pub fn new(kind: &'static str, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), kind, tag: EntityTag::default(), headers: Vec::new() }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    pub fn answer(&self, headers: &HeaderMap) -> Answer {
        let mut answer = Answer::json(StatusCode::OK, self.body.clone());
        answer.set(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        answer = self.tag.attach(answer, &self.body, headers);
        // On a 304 too: a browser then keeps these in place of those that it had, the policy among them.
        for (name, value) in &self.headers {
            answer.set(name.clone(), value.clone());
        }
        answer
    }
}

/// The entity tag of a body, worked out when it is first asked for.
#[derive(Default)]
pub struct EntityTag(OnceLock<HeaderValue>);

impl EntityTag {
    /// Marks the answer with `body`'s tag, or replaces it by 304 if the caller has that body already.
    pub fn attach(&self, mut answer: Answer, body: &[u8], headers: &HeaderMap) -> Answer {
        let tag = self.0.get_or_init(|| of(body));
        if headers.get(IF_NONE_MATCH).is_some_and(|known| names(known.as_bytes(), tag.as_bytes())) {
            answer = Answer::empty(StatusCode::NOT_MODIFIED);
        }
        answer.set(ETAG, tag.clone());
        answer.set(CACHE_CONTROL, CACHED);
        answer
    }
}

fn of(body: &[u8]) -> HeaderValue {
    let hash = ring::digest::digest(&ring::digest::SHA256, body);
    let tag = [&b"\""[..], &base32::encode::<20>(hash.as_ref()), b"\""].concat();
    HeaderValue::from_bytes(&tag).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// Whether an `If-None-Match` header names the tag; weak tags count too, as RFC 9110 has it.
fn names(known: &[u8], tag: &[u8]) -> bool {
    known.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).any(|one| {
        let one = one.strip_prefix(b"W/").unwrap_or(one);
        one == tag || one == b"*"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_tag_is_found_in_any_list() {
        let tag = b"\"abc\"";
        for known in [&b"\"abc\""[..], b"W/\"abc\"", b"\"x\", \"abc\"", b"\"x\",W/\"abc\" ,\"y\"", b"*"] {
            assert!(names(known, tag));
        }
        for unknown in [&b""[..], b"\"ab\"", b"abc", b"\"x\", \"y\"", b"W/", b"\"*\""] {
            assert!(!names(unknown, tag));
        }
        assert_ne!(of(b"one"), of(b"two"));
    }
}
