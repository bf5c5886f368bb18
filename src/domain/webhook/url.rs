//! Where a partner receives webhooks: a web address that all programs read alike.
//!
//! Programs differ in how they read odd addresses, and attackers use such differences to reach internal hosts. So what is not
//! plain is refused here, before any name is looked up.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An absolute `https` address, or an `http` one of this machine.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointUrl {
    text: String,
    /// Without the brackets of an IPv6 address.
    host: String,
    port: u16,
    /// Where the path begins in `text`.
    path_at: usize,
}

impl std::fmt::Debug for EndpointUrl {
    /// Without the path: debug prints end up in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EndpointUrl({}…)", &self.text[..=self.path_at])
    }
}

/// What is wrong with an address, and what would be right. It repeats nothing of it: there may be a token in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadEndpoint {
    #[error("the address is too long: it may have {} characters", EndpointUrl::LONGEST)]
    TooLong,
    #[error("that is not a web address; write all of it, such as https://partner.example/webhooks")]
    NotAbsolute,
    #[error("only https:// is spoken to other machines; http:// is for localhost while you try things out")]
    NotHttps,
    #[error(
        "there is a user or a password in the address; leave out what stands before the @, for webhooks are signed"
    )]
    UserInfo,
    #[error("leave out the # and what follows: it is never sent")]
    Fragment,
    #[error("the host is neither a name nor an address; write partner.example, 203.0.113.7 or [2001:db8::7]")]
    Host,
    #[error("the host ends in a number but is no IPv4 address; write all four parts in decimals, as in 203.0.113.7")]
    OddNumber,
    #[error("the host is an IPv4 address in the dress of IPv6; write the IPv4 address itself")]
    MappedAddress,
    #[error("the host ends in a dot; leave it out")]
    LastDot,
    #[error("the port is a number from 1 to 65535")]
    Port,
    #[error("there is a character in the address that must be percent-encoded, such as %20 for a space")]
    Character,
}

impl EndpointUrl {
    pub const LONGEST: usize = 2000;

    /// Ports of endpoints that partners add themselves. Other services listen at other ports, and a partner must not have this server dial them.
    pub const COMMON_PORTS: [u16; 3] = [443, 80, 8443];

    pub fn parse(text: &str) -> Result<Self, BadEndpoint> {
        if text.len() > Self::LONGEST * 4 || text.chars().count() > Self::LONGEST {
            return Err(BadEndpoint::TooLong);
        }
        let (scheme, rest) = text.split_once("://").ok_or(BadEndpoint::NotAbsolute)?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(BadEndpoint::NotAbsolute),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(BadEndpoint::UserInfo);
        }
        let (host, port) = host_and_port(authority)?;
        let port = port.unwrap_or(if is_https { 443 } else { 80 });
        check_path(path)?;
        if !is_https && !names_this_machine(&host) {
            return Err(BadEndpoint::NotHttps);
        }

        let mut text = if is_https { "https://" } else { "http://" }.to_owned();
        text.push_str(&if host.contains(':') { format!("[{host}]") } else { host.clone() });
        if port != if is_https { 443 } else { 80 } {
            text.push_str(&format!(":{port}"));
        }
        let path_at = text.len();
        text.push_str(if path.starts_with('/') { "" } else { "/" });
        text.push_str(path);
        // A name in another script grows.
        if text.len() > Self::LONGEST {
            return Err(BadEndpoint::TooLong);
        }
        Ok(Self { text, host, port, path_at })
    }

    /// The one spelling of it: as it is kept, and as it reads back.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn is_https(&self) -> bool {
        self.text.starts_with("https:")
    }

    /// A name as DNS knows it, or an address; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn common_ports() -> String {
        Self::COMMON_PORTS.map(|port| port.to_string()).join(", ")
    }

    pub fn has_common_port(&self) -> bool {
        Self::COMMON_PORTS.contains(&self.port)
    }

    /// The host, and the port where it is not the usual one: what the `Host` header says.
    pub fn authority(&self) -> &str {
        self.text[..self.path_at].split_once("://").map_or("", |(_, authority)| authority)
    }

    /// May hold a token: for the request alone.
    pub fn path_and_query(&self) -> &str {
        &self.text[self.path_at..]
    }

    /// The host's address, where it is written as one.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Whether the host is this machine by its very name.
    pub fn is_loopback(&self) -> bool {
        names_this_machine(&self.host)
    }
}

fn names_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn host_and_port(authority: &str) -> Result<(String, Option<u16>), BadEndpoint> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(inside) => {
            let (address, rest) = inside.split_once(']').ok_or(BadEndpoint::Host)?;
            (literal(address)?, rest)
        }
        None => {
            let (name, rest) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            (host_name(name)?, rest)
        }
    };
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        None => return Err(BadEndpoint::Host),
        Some(port) => Some(read_port(port)?),
    };
    Ok((host, port))
}

/// An IPv6 address without a zone.
fn literal(text: &str) -> Result<String, BadEndpoint> {
    let address: Ipv6Addr = text.parse().map_err(|_| BadEndpoint::Host)?;
    if address.to_ipv4_mapped().is_some() {
        return Err(BadEndpoint::MappedAddress);
    }
    Ok(address.to_string())
}

fn read_port(text: &str) -> Result<u16, BadEndpoint> {
    let digits = text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = if digits { text.parse().unwrap_or(0) } else { 0 };
    if port == 0 { Err(BadEndpoint::Port) } else { Ok(port) }
}

/// The one spelling of a name, or an IPv4 address.
fn host_name(typed: &str) -> Result<String, BadEndpoint> {
    // Names in other scripts and widths first: what looks like a digit may become one.
    let name = idna::domain_to_ascii(typed).map_err(|_| BadEndpoint::Host)?;
    if name.ends_with('.') {
        return Err(BadEndpoint::LastDot);
    }
    if name.len() > 253 || !name.split('.').all(is_name_part) {
        return Err(BadEndpoint::Host);
    }
    // Resolvers read 127.1, 2130706433 and 0x7f.1 as addresses, where other programs take them for names.
    let last = name.rsplit('.').next().unwrap_or_default();
    if is_number(last) && name.parse::<Ipv4Addr>().is_err() {
        return Err(BadEndpoint::OddNumber);
    }
    Ok(name)
}

fn is_name_part(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// A path and a query as RFC 3986 spells them.
fn check_path(path: &str) -> Result<(), BadEndpoint> {
    if path.contains('#') {
        return Err(BadEndpoint::Fragment);
    }
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let fits = match byte {
            b'%' => [bytes.next(), bytes.next()].iter().all(|hex| hex.is_some_and(|byte| byte.is_ascii_hexdigit())),
            _ => byte.is_ascii_alphanumeric() || b"/?:@!$&'()*+,;=-._~".contains(&byte),
        };
        if !fits {
            return Err(BadEndpoint::Character);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> EndpointUrl {
        EndpointUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn plain_addresses_are_read_and_have_one_spelling() {
        for (text, spelled, host, port, path) in [
            ("https://partner.example", "https://partner.example/", "partner.example", 443, "/"),
            ("HTTPS://Partner.EXAMPLE:443/Hooks", "https://partner.example/Hooks", "partner.example", 443, "/Hooks"),
            ("https://a.example:8443?x=%20", "https://a.example:8443/?x=%20", "a.example", 8443, "/?x=%20"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443, "/"),
            ("https://[2001:DB8:0::7]:8443/a", "https://[2001:db8::7]:8443/a", "2001:db8::7", 8443, "/a"),
            ("https://1.2.3.4.example/", "https://1.2.3.4.example/", "1.2.3.4.example", 443, "/"),
            ("https://203.0.113.7/a?b@c:d/e?", "https://203.0.113.7/a?b@c:d/e?", "203.0.113.7", 443, "/a?b@c:d/e?"),
            ("http://localhost:8080/hook", "http://localhost:8080/hook", "localhost", 8080, "/hook"),
            ("http://127.9.9.9", "http://127.9.9.9/", "127.9.9.9", 80, "/"),
            ("http://[::1]:80/", "http://[::1]/", "::1", 80, "/"),
        ] {
            let url = read(text);
            assert_eq!((url.as_str(), url.host(), url.port(), url.path_and_query()), (spelled, host, port, path));
            assert_eq!(read(url.as_str()), url, "it reads back");
            assert_eq!(url.is_https(), spelled.starts_with("https"));
        }
        assert_eq!(read("https://[2001:db8::7]:8443/a").authority(), "[2001:db8::7]:8443");
        assert_eq!(read("https://a.example:443/a").authority(), "a.example");
        assert!(read("https://a.example:8443").has_common_port() && !read("https://a.example:8080").has_common_port());
        assert!(read("https://127.0.0.1/").is_loopback() && !read("https://a.localhost/").is_loopback());
    }

    #[test]
    fn what_is_not_plain_is_refused_in_words() {
        use BadEndpoint as Bad;
        for (text, bad) in [
            ("", Bad::NotAbsolute),
            ("partner.example/hooks", Bad::NotAbsolute),
            ("ftp://partner.example", Bad::NotAbsolute),
            (" https://partner.example", Bad::NotAbsolute),
            ("https:/partner.example", Bad::NotAbsolute),
            ("http://partner.example", Bad::NotHttps),
            ("http://10.0.0.1", Bad::NotHttps),
            ("http://localhost.example.com", Bad::NotHttps),
            ("https://user@partner.example", Bad::UserInfo),
            ("https://user:word@partner.example", Bad::UserInfo),
            ("https://partner.example@127.0.0.1/", Bad::UserInfo),
            ("https://@partner.example", Bad::UserInfo),
            ("https://partner.example/#", Bad::Fragment),
            ("https://partner.example#@a.example/", Bad::Fragment),
            ("https://", Bad::Host),
            ("https:///hooks", Bad::Host),
            ("https://:443/", Bad::Host),
            ("https://a..example", Bad::Host),
            ("https://-a.example", Bad::Host),
            ("https://a_b.example", Bad::Host),
            ("https://a b.example", Bad::Host),
            ("https://a%2eexample", Bad::Host),
            ("https://a.example\n/", Bad::Host),
            ("https://[::1", Bad::Host),
            ("https://[::1]x", Bad::Host),
            ("https://[fe80::1%25eth0]/", Bad::Host),
            ("https://[127.0.0.1]/", Bad::Host),
            ("https://::1/", Bad::Host),
            ("https://partner.example./", Bad::LastDot),
            ("https://127.0.0.1./", Bad::LastDot),
            ("https://partner.example。", Bad::LastDot),
            ("http://2130706433", Bad::OddNumber),
            ("https://0x7f000001/", Bad::OddNumber),
            ("https://0X7F.1", Bad::OddNumber),
            ("https://0x7f.0x", Bad::OddNumber),
            ("https://127.1", Bad::OddNumber),
            ("https://127.0.1", Bad::OddNumber),
            ("https://0177.0.0.1", Bad::OddNumber),
            ("https://127.0.0.01", Bad::OddNumber),
            ("https://1.2.3.4.5", Bad::OddNumber),
            ("https://256.1.1.1", Bad::OddNumber),
            ("https://②①③⓪⑦⓪⑥④③③/", Bad::OddNumber),
            ("https://[::ffff:127.0.0.1]/", Bad::MappedAddress),
            ("https://[::ffff:7f00:1]/", Bad::MappedAddress),
            ("https://a.example:/", Bad::Port),
            ("https://a.example:0/", Bad::Port),
            ("https://a.example:65536/", Bad::Port),
            ("https://a.example:+443/", Bad::Port),
            ("https://a.example:80:80/", Bad::Port),
            ("https://a.example/a b", Bad::Character),
            ("https://a.example\\b", Bad::Character),
            ("https://a.example/%2", Bad::Character),
            ("https://a.example/%zz", Bad::Character),
            ("https://a.example/ü", Bad::Character),
            ("https://a.example/a\r\nx: y", Bad::Character),
        ] {
            assert_eq!(EndpointUrl::parse(text), Err(bad), "{text}");
        }
        let long = |length: usize| format!("https://a.example/{}", "x".repeat(length - 18));
        assert!(EndpointUrl::parse(&long(2000)).is_ok());
        assert_eq!(EndpointUrl::parse(&long(2001)), Err(Bad::TooLong));
        let name = format!("https://{}.example", "a".repeat(64));
        assert_eq!(EndpointUrl::parse(&name), Err(Bad::Host));
    }

    #[test]
    fn what_may_be_a_token_is_printed_nowhere() {
        let url = read("https://a.example/hooks?token=very-secret");
        assert_eq!(format!("{url:?}"), "EndpointUrl(https://a.example/…)");
    }
}
