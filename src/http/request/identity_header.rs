//! The header in which a proxy names the operator whom it has signed in (forward authentication): believed only from peers of its
//! own list, whatever `X-Forwarded-For` says.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use super::client_address::TrustedProxies;

#[derive(Clone)]
pub struct IdentityHeader {
    name: HeaderName,
    from: TrustedProxies,
}

/// Whom a proxy names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NamedInHeader<'h> {
    /// It names nobody, or it is not believed.
    Nobody,
    One(&'h str),
    /// It says more than one name, or one that cannot be read.
    Unclear,
}

impl IdentityHeader {
    pub fn new(name: HeaderName, from: TrustedProxies) -> Self {
        Self { name, from }
    }

    /// Whom the peer names, if it is believed.
    pub fn named<'h>(&self, peer: IpAddr, headers: &'h HeaderMap) -> NamedInHeader<'h> {
        if !self.from.trusts(peer) {
            return NamedInHeader::Nobody;
        }
        let mut values = headers.get_all(&self.name).iter();
        match (values.next().map(HeaderValue::to_str), values.next()) {
            (None, _) => NamedInHeader::Nobody,
            (Some(Ok(name)), None) => NamedInHeader::One(name),
            (Some(_), _) => NamedInHeader::Unclear,
        }
    }
}
