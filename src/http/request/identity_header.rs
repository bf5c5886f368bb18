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
    groups: Option<HeaderName>,
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
    /// `groups` names the header with the groups of whoever is named.
    pub fn new(name: HeaderName, from: TrustedProxies, groups: Option<HeaderName>) -> Self {
        Self { name, from, groups }
    }

    /// The groups of whom [`named`](Self::named) found, if the proxy is to name groups: none where it does not, or where it says two
    /// lists, of which one may be another's.
    pub fn groups<'h>(&self, headers: &'h HeaderMap) -> Option<Vec<&'h str>> {
        let mut lists = headers.get_all(self.groups.as_ref()?).iter();
        let list = lists.next().and_then(|list| list.to_str().ok()).filter(|_| lists.next().is_none());
        Some(list.unwrap_or_default().split(',').map(str::trim).filter(|group| !group.is_empty()).collect())
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
