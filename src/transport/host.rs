//! Hosts and origins: which host a request or an address is for.

use hyper::header::HOST;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Uri};

/// The host that a request is for: HTTP/2 says it in the address, HTTP/1.1 in a header.
pub(super) fn of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> &'a str {
    let header = || headers.get(HOST).and_then(|value| value.to_str().ok());
    uri.authority().map(Authority::as_str).or_else(header).unwrap_or_default()
}

/// `HOST[:PORT]` of a web address.
pub(super) fn of_url(url: &str) -> &str {
    url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default()
}

/// A web address without its path, as browsers send it.
pub(super) fn origin(url: &str) -> String {
    let scheme = url.split("://").next().unwrap_or_default();
    format!("{scheme}://{}", of_url(url))
}
