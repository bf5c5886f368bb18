//! The `Authorization` header. Two of them count as an invalid key.

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::error::KeyPlace;

/// Headers in which other services want their keys.
const OTHERS: [HeaderName; 5] = [
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("apikey"),
    HeaderName::from_static("x-auth-token"),
    HeaderName::from_static("x-access-token"),
];

/// Names in a query by which other services take theirs.
const IN_QUERIES: [&str; 6] = ["api_key", "apikey", "api-key", "key", "token", "access_token"];

/// Parts of a query that are looked at: whoever has more there has no key there.
const PARTS: usize = 16;

/// What is sent in it. Two of them are no key, whichever comes first: a proxy and we might each read another.
pub fn of(headers: &HeaderMap) -> Option<&[u8]> {
    let mut sent = headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes);
    match (sent.next(), sent.next()) {
        (one, None) => one,
        (_, Some(_)) => Some(b""),
    }
}

/// Where a key may have been sent that is not read there; looked for only when the caller is refused.
#[derive(Clone, Copy)]
pub struct KeySearch<'a> {
    pub headers: &'a HeaderMap,
    pub query: Option<&'a str>,
}

impl KeySearch<'_> {
    /// Where a key seems to have been sent. What is in it is not looked at.
    pub fn misplaced(self) -> Option<KeyPlace> {
        if OTHERS.iter().any(|name| self.headers.contains_key(name)) {
            return Some(KeyPlace::OtherHeader);
        }
        let mut names = self.query?.split('&').take(PARTS).filter_map(|part| part.split('=').next());
        let is_known = |name: &str| IN_QUERIES.iter().any(|known| known.eq_ignore_ascii_case(name));
        names.any(is_known).then_some(KeyPlace::Query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_the_wrong_place_are_seen() {
        let misplaced = |headers: &HeaderMap, query: Option<&str>| KeySearch { headers, query }.misplaced();
        let mut headers = HeaderMap::new();
        assert_eq!(misplaced(&headers, None), None);
        assert_eq!(misplaced(&headers, Some("a=1&keys=2&token2=x")), None);
        for query in ["api_key=x", "a=1&API_KEY=x", "token", "key=uh_x"] {
            assert_eq!(misplaced(&headers, Some(query)), Some(KeyPlace::Query), "{query}");
        }
        assert_eq!(misplaced(&headers, Some(&("a=1&".repeat(100_000) + "key=x"))), None, "bounded");
        headers.insert("X-API-Key", HeaderValue::from_static("x"));
        assert_eq!(misplaced(&headers, Some("key=x")), Some(KeyPlace::OtherHeader));
    }
}
