//! The header in which a proxy names the operator whom it has signed in (forward authentication): believed only from peers of its
//! own list, whatever `X-Forwarded-For` says.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::HeaderName;

use super::client_address::TrustedProxies;

#[derive(Debug, Clone)]
pub struct IdentityHeader {
    name: HeaderName,
    from: TrustedProxies,
}

impl IdentityHeader {
    pub fn new(name: HeaderName, from: TrustedProxies) -> Self {
        Self { name, from }
    }

    /// Whom the peer names: it is believed, and it says one name once.
    pub fn named<'h>(&self, peer: IpAddr, headers: &'h HeaderMap) -> Option<&'h str> {
        if !self.from.trusts(peer) {
            return None;
        }
        let mut values = headers.get_all(&self.name).iter();
        let value = values.next()?;
        if values.next().is_some() {
            return None;
        }
        value.to_str().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_believed_peer_names_somebody_and_only_once() {
        let header = IdentityHeader::new(
            HeaderName::from_static("x-operator"),
            TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]),
        );
        let named = |peer: &str, values: &[&str]| {
            let mut headers = HeaderMap::new();
            values.iter().for_each(|value| _ = headers.append("x-operator", value.parse().unwrap()));
            header.named(peer.parse().unwrap(), &headers).map(str::to_owned)
        };
        assert_eq!(named("10.0.0.1", &["ana"]).as_deref(), Some("ana"));
        assert_eq!(named("::ffff:10.0.0.1", &["ana"]).as_deref(), Some("ana"));
        for (peer, values) in [
            ("192.0.2.1", &["ana"][..]),
            ("::ffff:192.0.2.1", &["ana"]),
            ("10.0.0.1", &[]),
            ("10.0.0.1", &["ana", "ana"]),
            ("10.0.0.1", &["an\u{e9}"]),
        ] {
            assert_eq!(named(peer, values), None, "{peer} {values:?}");
        }
    }
}
