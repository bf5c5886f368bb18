//! The operator's settings: flags, then `UNIONHALL_*` variables, then defaults; one file per group of settings.
//!
//! A setting is a field with its flag, its variable, its default and its check. This module uses only modules below it,
//! whose addresses and levels it parses.

mod backup;
mod keyring;
mod limits;
mod mail;
mod mail_budget;
mod notify;
mod operator;
mod outbound;
mod own_text;
mod retention;
mod secret;
mod serve;
mod store;
mod theme;
mod union;

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::Context;

pub use self::backup::{BackupInterval, interval};
pub use self::keyring::{Keyring, LAST_GENERATION};
pub use self::limits::{LimitSettings, LimitsAddress};
pub use self::mail::{DisposableSettings, MailHookSettings, MailSettings, MailTransport};
pub use self::mail_budget::MailBudgetSettings;
pub use self::notify::{NotifySettings, NotifyTarget};
pub use self::operator::{OperatorSettings, role};
pub use self::outbound::OutboundSettings;
pub use self::retention::RetentionSettings;
pub use self::secret::{SecretSettings, read_secret};
pub use self::serve::ServeSettings;
pub use self::store::{Records, StoreSettings, quoted, sandbox_file};
pub use self::union::{CatalogSettings, PostalSettings, ServiceSettings, UnionSettings};

/// A setting that may hold a password or a secret: printed for debugging it shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Concealed(String);

impl std::fmt::Debug for Concealed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl Concealed {
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Concealed {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// A file that an operator wrote.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => std::io::Error::other("it is not a text; save it as UTF-8"),
        _ => error,
    })
}

/// The text of a setting that may also stand in a file of its own, without the white space around it (files end in a line
/// break). `what` is what could not be read, for whoever reads the error.
fn given_or_in_file(given: &Concealed, file: Option<&Path>, what: &str) -> anyhow::Result<String> {
    match file {
        None => Ok(given.reveal().trim().to_owned()),
        Some(path) => {
            let text = read_text(path);
            Ok(text.with_context(|| format!("cannot read {what} from {}", path.display()))?.trim().to_owned())
        }
    }
}

/// Reads a whole number for a flag. What clap says of a wrong one is an error of Rust's own parser.
pub(crate) fn whole<N: From<u32>>(least: u32, most: u32) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync {
    move |text| {
        let number = text.trim().parse().ok().filter(|number| (least..=most).contains(number));
        let example = 60.clamp(least, most);
        number.map(N::from).ok_or_else(|| format!("write a whole number from {least} to {most}, such as {example}"))
    }
}

/// An address to listen on, as people write it.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("localhost", text));
    let wrong =
        || "write a port (8080), localhost:8080, :8080 for all addresses, or one such as 10.0.0.11:8080".to_owned();
    let port: u16 = port.parse().map_err(|_| wrong())?;
    match host {
        "localhost" => Ok((Ipv4Addr::LOCALHOST, port).into()),
        "" | "*" => Ok((Ipv4Addr::UNSPECIFIED, port).into()),
        _ => Err(wrong()),
    }
}

pub(crate) fn web_address(text: &str) -> Result<String, String> {
    let bare = text.trim_end_matches('/');
    let uri: hyper::Uri = bare.parse().map_err(|_| wrong_address(text))?;
    let web = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty());
    if web && uri.query().is_none() && !bare.contains('#') { Ok(bare.to_owned()) } else { Err(wrong_address(text)) }
}

fn wrong_address(text: &str) -> String {
    format!("\"{text}\" is not a web address; write https://api.example.com, with a path if there is one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_hold_a_password_is_not_shown() {
        let shown = format!("{:?}", Concealed::from("smtps://user:hunter2@mail.example.com".to_owned()));
        assert_eq!(shown, "…");
    }

    #[test]
    fn addresses_to_listen_on_are_read_as_people_write_them() {
        for (text, address) in [
            ("8080", "127.0.0.1:8080"),
            (" localhost:8080 ", "127.0.0.1:8080"),
            (":8080", "0.0.0.0:8080"),
            ("*:0", "0.0.0.0:0"),
            ("10.0.0.11:8080", "10.0.0.11:8080"),
            ("[::1]:8080", "[::1]:8080"),
        ] {
            assert_eq!(listen_address(text).map(|read| read.to_string()).as_deref(), Ok(address), "{text}");
        }
        for bad in ["", "localhost", "80a", "127.0.0.1", "99999", "union.example:80", "::1:80"] {
            assert!(listen_address(bad).unwrap_err().contains("write a port"), "{bad}");
        }
    }

    #[test]
    fn web_addresses_lose_their_last_slash_and_nothing_else() {
        assert_eq!(web_address("https://api.example.com/").as_deref(), Ok("https://api.example.com"));
        assert_eq!(web_address("http://[::1]:8080/union").as_deref(), Ok("http://[::1]:8080/union"));
        for bad in ["", "api.example.com", "ftp://example.com", "https://", "https://e.com/?a=b", "https://e.com/#x"] {
            assert!(web_address(bad).is_err(), "{bad}");
        }
    }
}
