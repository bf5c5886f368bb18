//! What happens to mail: `--mail`, `--mail-from`.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use lettre::Address;
use lettre::message::Mailbox;

use super::{Concealed, given_or_in_file};
use crate::mail::smtp::Smtp;

/// What happens to mail.
#[derive(Debug, Clone, Args)]
pub struct MailSettings {
    /// How mail leaves.
    ///
    /// `mailbox:` writes each message into DATA/mailbox, for development; /dev/mailbox shows them on this machine alone.
    /// `smtp://USER:PASSWORD@HOST:587` sends with STARTTLS, `smtps://USER:PASSWORD@HOST:465` with TLS from the start,
    /// `smtp://HOST:25?tls=none` in the clear. `hold` keeps mail in the outbox for another node to send. `none` switches
    /// sign-ups off: agent actions then answer `backend_not_configured`.
    #[arg(long, env = "UNIONHALL_MAIL", value_name = "MAIL", default_value = "mailbox:", hide_env_values = true)]
    pub mail: Concealed,

    /// A file that holds the above, for a password that should stand nowhere else.
    #[arg(long, env = "UNIONHALL_MAIL_FILE", value_name = "FILE", conflicts_with = "mail")]
    pub mail_file: Option<PathBuf>,

    /// Whom mail comes from: `Consumer Union <hello@union.example>` [default: no-reply at the host of the join site].
    #[arg(long, env = "UNIONHALL_MAIL_FROM", value_name = "SENDER")]
    pub mail_from: Option<Mailbox>,
}

/// How mail leaves.
#[derive(Debug, Clone)]
pub enum MailTransport {
    Mailbox,
    Smtp(Smtp),
    Hold,
    None,
}

impl MailSettings {
    /// How mail leaves, as it was set.
    pub fn transport(&self) -> anyhow::Result<MailTransport> {
        let text = given_or_in_file(&self.mail, self.mail_file.as_deref(), "how mail leaves")?;
        match text.as_str() {
            "mailbox:" => Ok(MailTransport::Mailbox),
            "hold" => Ok(MailTransport::Hold),
            "none" => Ok(MailTransport::None),
            url if url.starts_with("smtp") => Ok(MailTransport::Smtp(Smtp::new(url)?)),
            _ => {
                bail!("how mail leaves is not understood; write mailbox:, smtp://…, smtps://…, hold or none in --mail")
            }
        }
    }

    /// Whom mail comes from, for a union that is found at `join_site`.
    pub fn sender(&self, union: &str, join_site: &str) -> anyhow::Result<Mailbox> {
        if let Some(sender) = &self.mail_from {
            return Ok(sender.clone());
        }
        let uri: hyper::Uri = join_site.parse().context("the join site is no web address")?;
        let host = uri.host().unwrap_or("localhost");
        // An address of this machine is no domain; mail from there stays here.
        let domain = if host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[') { "localhost" } else { host };
        let address = Address::new("no-reply", domain).with_context(|| {
            format!("no sender can be made for {join_site}; give one with --mail-from or UNIONHALL_MAIL_FROM")
        })?;
        Ok(Mailbox::new(Some(union.to_owned()), address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let mail = "smtps://user:hunter2@mail.example.com".to_owned().into();
        let settings = MailSettings { mail, mail_file: None, mail_from: None };
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
