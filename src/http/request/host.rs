//! Hosts and origins: which host a request or an address is for.

use hyper::header::HOST;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Uri, Version};

use crate::domain::union::Union;
use crate::loopback::{is_loopback, name_of};

/// The host that a request is for: HTTP/2 says it in the address, HTTP/1.1 in a header.
pub fn of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> &'a str {
    let header = || headers.get(HOST).and_then(|value| value.to_str().ok());
    uri.authority().map(Authority::as_str).or_else(header).unwrap_or_default()
}

/// Whether a request says clearly which host it is for: HTTP/1.1 asks for one header, and two would be read differently by
/// whoever stands in between.
pub fn is_clear(version: Version, headers: &HeaderMap) -> bool {
    let sent = headers.get_all(HOST).iter().count();
    match version {
        Version::HTTP_11 => sent == 1,
        _ => sent <= 1,
    }
}

/// `HOST[:PORT]` of a web address.
pub fn of_url(url: &str) -> &str {
    url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default()
}

/// A web address without its path, as browsers send it.
pub fn origin(url: &str) -> String {
    let scheme = url.split("://").next().unwrap_or_default();
    format!("{scheme}://{}", of_url(url))
}

/// Where our own pages are: those that may send forms to us, and speak MCP.
#[derive(Clone)]
pub struct Origins {
    own: [String; 2],
    /// Whether both addresses are this machine's own: a development server.
    pub local: bool,
}

impl Origins {
    pub fn of(union: &Union) -> Self {
        Self { own: [&union.base_url, &union.join_site].map(|url| origin(url)), local: is_local(union) }
    }

    pub fn contain(&self, origin: &str) -> bool {
        self.own.iter().any(|own| own.eq_ignore_ascii_case(origin))
    }

    /// Whether `HOST[:PORT]` is one of ours, or on a development server any name of this machine. A proxy may leave the port out.
    pub fn are_at(&self, host: &str) -> bool {
        let is_own = |own: &String| name_of(of_url(own)).eq_ignore_ascii_case(name_of(host));
        self.own.iter().any(is_own) || self.local && is_loopback(host)
    }
}

/// Whether both addresses are this machine's own: a development server.
pub fn is_local(union: &Union) -> bool {
    [&union.base_url, &union.join_site].into_iter().all(|url| is_loopback(of_url(url)))
}
