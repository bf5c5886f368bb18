//! The client's address, which rate limits count: from the connection, or from a trusted proxy's `X-Forwarded-For`.

use std::net::{IpAddr, SocketAddr};

use hyper::HeaderMap;
use hyper::header::HeaderName;
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies whose `X-Forwarded-For` is believed.
#[derive(Clone, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The right-most hop that is not one of ours. Each proxy appends who spoke to it, so everything left of the first
    /// stranger is only what the stranger says. From anyone but a trusted proxy the header is ignored.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if self.0.is_empty() || !self.trusts(client) {
            return client;
        }
        for line in headers.get_all(FORWARDED_FOR).iter().rev() {
            let Ok(line) = line.to_str() else { return client };
            for hop in line.rsplit(',') {
                // A hop that is no address was written by a stranger to the last one we trust: that one is the client.
                let Some(address) = parse_hop(hop.trim()) else { return client };
                client = address.to_canonical();
                if !self.trusts(client) {
                    return client;
                }
            }
        }
        client
    }
}

/// `192.0.2.7`, `192.0.2.7:4711`, `2001:db8::7`, `[2001:db8::7]` or `[2001:db8::7]:4711`.
fn parse_hop(hop: &str) -> Option<IpAddr> {
    if let Ok(address) = hop.parse() {
        return Some(address);
    }
    if let Ok(address) = hop.parse::<SocketAddr>() {
        return Some(address.ip());
    }
    hop.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let proxies = TrustedProxies::new(trusted.iter().map(|text| text.parse().unwrap()).collect());
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_right_most_stranger_is_the_client() {
        let ours = &["10.0.0.0/8", "fd00::/8"];
        assert_eq!(client(ours, "10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client(ours, "10.0.0.1", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(client(ours, "10.0.0.1", &["1.1.1.1, 203.0.113.9, 10.0.0.2"]), "203.0.113.9");
        assert_eq!(client(ours, "10.0.0.1", &["1.1.1.1, 203.0.113.9", "10.0.0.2"]), "203.0.113.9");
        assert_eq!(client(ours, "10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
        assert_eq!(client(ours, "::ffff:10.0.0.1", &["::ffff:203.0.113.9"]), "203.0.113.9");
        assert_eq!(client(ours, "fd00::1", &["[2001:db8::7]:4711"]), "2001:db8::7");
        assert_eq!(client(ours, "10.0.0.1", &["203.0.113.9:4711"]), "203.0.113.9");
    }

    #[test]
    fn what_is_no_address_ends_the_search_at_the_last_one_known() {
        let ours = &["10.0.0.0/8"];
        for odd in ["unknown", "", ",", "203.0.113.9, nonsense", "1.1.1.1.1", "[::1", "\u{e9}"] {
            assert_eq!(client(ours, "10.0.0.1", &[odd]), "10.0.0.1", "{odd}");
        }
        assert_eq!(client(ours, "10.0.0.1", &["203.0.113.9, , 10.0.0.2"]), "10.0.0.2");
    }
}
