//! Where the mail server is, how far what goes there is encrypted, and as whom we log in: one address (`UNIONHALL_MAIL`).

use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::TlsParameters;
use percent_encoding::percent_decode_str;
use std::fmt;

use crate::loopback::is_loopback;

#[derive(Clone)]
pub(super) struct SmtpAddress {
    pub host: String,
    pub port: u16,
    pub encryption: Encryption,
    pub login: Option<Credentials>,
}

impl fmt::Debug for SmtpAddress {
    /// Without the login.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmtpAddress({}:{})", self.host, self.port)
    }
}

#[derive(Clone)]
pub(super) enum Encryption {
    None,
    /// Where the server offers it.
    Offered(TlsParameters),
    /// Asked for before anything else is said (STARTTLS).
    Asked(TlsParameters),
    FromTheStart(TlsParameters),
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the mail server's address is not understood; write smtp://USER:PASSWORD@HOST:587 (STARTTLS), \
     smtps://USER:PASSWORD@HOST:465, or smtp://HOST:25?tls=none, with special characters in the password percent-encoded; \
     a login is not sent with tls=opportunistic, which may be in the clear: write tls=required, or tls=none if you mean that"
)]
pub struct BadServer;

impl SmtpAddress {
    /// `smtps://` is encrypted from the start; `smtp://` insists on STARTTLS unless `?tls=` says `none` or
    /// `opportunistic`. On the machine itself nothing is encrypted unless asked for.
    pub(super) fn parse(url: &str) -> Result<Self, BadServer> {
        let (scheme, rest) = url.split_once("://").ok_or(BadServer)?;
        let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
        let wish = match query.split_once('=') {
            Some(("tls", wish)) => Some(wish),
            None if query.is_empty() => None,
            _ => return Err(BadServer),
        };
        let (user, server) = match authority.trim_end_matches('/').rsplit_once('@') {
            Some((user, server)) => (Some(user), server),
            None => (None, authority.trim_end_matches('/')),
        };
        let (host, port) = host_and_port(server).ok_or(BadServer)?;
        let here = is_loopback(server);
        let tls = || TlsParameters::new(host.to_owned()).map_err(|_| BadServer);
        let encryption = match (scheme, wish) {
            ("smtps", None) => Encryption::FromTheStart(tls()?),
            ("smtp", Some("none")) => Encryption::None,
            ("smtp", None) if here => Encryption::None,
            ("smtp", None | Some("required")) => Encryption::Asked(tls()?),
            // A man in the middle could get the password by answering that there is no TLS.
            ("smtp", Some("opportunistic")) if here || user.is_none() => Encryption::Offered(tls()?),
            _ => return Err(BadServer),
        };
        let usual = match encryption {
            Encryption::FromTheStart(_) => 465,
            Encryption::Asked(_) | Encryption::Offered(_) => 587,
            Encryption::None => 25,
        };
        let login = user.map(login).transpose()?;
        Ok(Self { host: host.to_owned(), port: port.unwrap_or(usual), encryption, login })
    }
}

fn login(text: &str) -> Result<Credentials, BadServer> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let plain = |text| Ok(percent_decode_str(text).decode_utf8().map_err(|_| BadServer)?.into_owned());
    Ok(Credentials::new(plain(user)?, plain(password)?))
}

/// An address of IPv6 stands in brackets.
fn host_and_port(server: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match server.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, port.strip_prefix(':').or_else(|| port.is_empty().then_some(""))?)
        }
        None => server.split_once(':').unwrap_or((server, "")),
    };
    let is_name = !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || "-._:".contains(c));
    let port = if port.is_empty() { None } else { Some(port.parse().ok()?) };
    is_name.then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_encrypted_unless_said_otherwise() {
        for (good, port, encrypted) in [
            ("smtp://mail.example.com", 587, true),
            ("smtp://u:p%40ss@mail.example.com:2587", 2587, true),
            ("smtps://u:p@mail.example.com", 465, true),
            ("smtps://u:p@mail.example.com/", 465, true),
            ("smtp://mail.example.com:25?tls=none", 25, false),
            ("smtp://mail.example.com?tls=opportunistic", 587, true),
            ("smtp://127.0.0.1:2525", 2525, false),
            ("smtp://[::1]:2525", 2525, false),
            ("smtp://localhost:25?tls=required", 25, true),
        ] {
            let parsed = SmtpAddress::parse(good).unwrap_or_else(|_| panic!("{good}"));
            assert_eq!((parsed.port, !matches!(parsed.encryption, Encryption::None)), (port, encrypted), "{good}");
        }
        for bad in [
            "",
            "mail.example.com",
            "http://mail.example.com",
            "smtp://",
            "smtp://h:port",
            "smtp://[::1",
            "smtp://h?tls=maybe",
            "smtp://h?timeout=5",
            "smtps://h?tls=none",
            "smtp://u:p@mail.example.com?tls=opportunistic",
        ] {
            assert!(SmtpAddress::parse(bad).is_err(), "{bad}");
        }
        let secret = SmtpAddress::parse("smtps://user:hunter%402@mail.example.com").unwrap();
        assert!(!format!("{secret:?}").contains("hunter"));
        assert_eq!(secret.login, Some(Credentials::new("user".to_owned(), "hunter@2".to_owned())));
    }
}
