//! Whether a host is this machine: what may be left unencrypted or shown to whoever asks depends on it.

use std::net::IpAddr;

/// The name or address in `HOST[:PORT]`.
pub(crate) fn name_of(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// Whether `HOST[:PORT]` names this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let name = name_of(host);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_are_known() {
        for here in ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.9.9.9:80", "[::1]:8080", "[::1]"] {
            assert!(is_loopback(here), "{here}");
        }
        for elsewhere in [
            "",
            "example.com",
            "localhost.example.com",
            "10.0.0.1",
            "[2001:db8::1]:80",
            "127.0.0.1.nip.io",
            "127.example.com",
        ] {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
    }
}
