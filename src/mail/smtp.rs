//! Mail through a server, by SMTP: encrypted, authenticated, several at once.

use std::time::Duration;

use lettre::transport::smtp::{self, PoolConfig};
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};

use super::{OutgoingMail, SendError, Transport};
use crate::loopback::is_loopback;
use crate::reply::Reply;

/// For making a connection.
const SMTP_CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// For a whole mail: less than a lease.
const SEND_TIMEOUT: Duration = Duration::from_secs(25);

/// Connections to the server at the most.
const CONNECTIONS: u32 = 8;

/// How long a mail that was given up on may still hold its connection. Its answer must be read before another mail uses the
/// connection, or each answer would be taken for that of the next command.
const ABANDONED_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone)]
pub struct Smtp(AsyncSmtpTransport<Tokio1Executor>);

#[derive(Debug, thiserror::Error)]
#[error(
    "the mail server's address is not understood; write smtp://USER:PASSWORD@HOST:587 (STARTTLS), \
     smtps://USER:PASSWORD@HOST:465, or smtp://HOST:25?tls=none, with special characters in the password percent-encoded; \
     a login is not sent with tls=opportunistic, which may be in the clear: write tls=required, or tls=none if you mean that"
)]
pub struct BadServer;

impl Smtp {
    /// `smtps://` is encrypted from the start; `smtp://` insists on STARTTLS unless `?tls=` says `none` or
    /// `opportunistic`. On the machine itself nothing is encrypted unless asked for.
    pub fn new(url: &str) -> Result<Self, BadServer> {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let wish = query.split('&').find_map(|pair| pair.strip_prefix("tls="));
        let host = address.rsplit('@').next().unwrap_or_default().trim_start_matches("smtp://");
        let here = is_loopback(host.split('/').next().unwrap_or_default());
        let url = match (address.split_once(':').map(|(scheme, _)| scheme), wish) {
            (Some("smtps"), None) => address.to_owned(),
            (Some("smtp"), Some("none")) => address.to_owned(),
            (Some("smtp"), None) if here => address.to_owned(),
            (Some("smtp"), None) => format!("{address}?tls=required"),
            (Some("smtp"), Some("required")) => url.to_owned(),
            // Whoever stands between could have the password by answering that there is no TLS.
            (Some("smtp"), Some("opportunistic")) if here || !address.contains('@') => url.to_owned(),
            _ => return Err(BadServer),
        };
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(&url).map_err(|_| BadServer)?;
        let pool = PoolConfig::new().max_size(CONNECTIONS).idle_timeout(Duration::from_secs(30));
        Ok(Self(builder.timeout(Some(SMTP_CONNECT_TIMEOUT)).pool_config(pool).build()))
    }
}

impl Transport for Smtp {
    fn send(&self, mail: OutgoingMail) -> Reply<'_, Result<(), SendError>> {
        let transport = self.0.clone();
        // In a task of its own: dropping a mail half-way would put its connection back among those in use.
        let sending =
            tokio::spawn(
                async move { tokio::time::timeout(ABANDONED_TIMEOUT, transport.send(mail.message)).await.ok() },
            );
        Reply::later(async move {
            match tokio::time::timeout(SEND_TIMEOUT, sending).await {
                Ok(Ok(Some(Ok(_)))) => Ok(()),
                Ok(Ok(Some(Err(error)))) => Err(understand(&error)),
                _ => Err(SendError::Unknown("the mail server did not answer in time".to_owned())),
            }
        })
    }
}

/// A server's words may repeat the address, so only its numbers are told.
fn understand(error: &smtp::Error) -> SendError {
    let Some(code) = error.status() else {
        // Nothing was said by a server: the network's or our own words, which hold no address.
        let cause = match std::error::Error::source(error) {
            Some(source) => format!("the mail server could not be used: {source}"),
            None => format!("the mail server could not be used: {error}"),
        };
        // A connection that was never made has taken nothing; one that broke may have taken the mail.
        let untaken = error.is_client() || error.is_tls() || error.to_string().starts_with("Connection error");
        return if untaken { SendError::Later(cause) } else { SendError::Unknown(cause) };
    };
    let text = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    match enhanced(&text) {
        Some(status) if is_recipients_fault(status) => SendError::Rejected,
        Some([class, subject, detail]) => {
            SendError::Later(format!("the mail server answered {code} {class}.{subject}.{detail}"))
        }
        None => SendError::Later(format!("the mail server answered {code}")),
    }
}

/// The enhanced status (RFC 3463) that an answer begins with.
fn enhanced(text: &str) -> Option<[u16; 3]> {
    let word = text.split_whitespace().next()?;
    let mut numbers = word.split('.').map(|part| part.parse().ok());
    let status = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(status)
}

/// Of what 5.1.x says about addresses, these are about the recipient's; the others are about the sender's, or so vague that
/// servers use them for the operator's own mistakes.
fn is_recipients_fault(status: [u16; 3]) -> bool {
    matches!(status, [5, 1, 1 | 2 | 3 | 6 | 10])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_recipients_own_fault_is_final() {
        let fault = |text: &str| enhanced(text).is_some_and(is_recipients_fault);
        for theirs in [
            "5.1.1 <ana@example.com>: no such user",
            "5.1.2 bad host",
            "5.1.10 null MX",
            "5.1.3 bad syntax",
            "5.1.6 moved",
        ] {
            assert!(fault(theirs), "{theirs}");
        }
        for other in [
            "5.7.8 authentication failed",
            "5.7.1 relay denied",
            "5.1.0 sender rejected",
            "5.1.90 over quota",
            "5.1.7 bad sender",
            "5.1.8 bad sender's domain",
            "4.1.1 later",
            "5.2.2 mailbox full",
            "no such user",
            "",
            "5.1",
            "5.1.1.1",
            "5.1.x",
        ] {
            assert!(!fault(other), "{other}");
        }
    }

    #[test]
    fn servers_are_encrypted_unless_said_otherwise() {
        // The pool of connections wants a runtime to live in.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        for good in [
            "smtp://mail.example.com",
            "smtp://u:p%40ss@mail.example.com:587",
            "smtps://u:p@mail.example.com",
            "smtp://mail.example.com:25?tls=none",
            "smtp://mail.example.com?tls=opportunistic",
            "smtp://127.0.0.1:2525",
            "smtp://localhost:25?tls=required",
        ] {
            assert!(Smtp::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "mail.example.com",
            "http://mail.example.com",
            "smtp://",
            "smtp://h?tls=maybe",
            "smtps://h?tls=none",
            "smtp://u:p@mail.example.com?tls=opportunistic",
        ] {
            assert!(Smtp::new(bad).is_err(), "{bad}");
        }
        let secret = Smtp::new("smtps://user:hunter2@mail.example.com").unwrap();
        assert!(!format!("{secret:?}").contains("hunter2"));
    }
}
