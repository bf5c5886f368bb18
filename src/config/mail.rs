//! How mail leaves: `--mail`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use clap::Args;

use super::{Concealed, given_or_in_file};
use crate::mail::smtp::Smtp;

/// What happens to mail.
#[derive(Debug, Clone, Args)]
pub struct MailSettings {
    /// How mail leaves.
    ///
    /// `mailbox:` writes each message into DATA/mailbox, for development; the start prints a link to /dev/mailbox, which shows
    /// them on this machine alone.
    /// `smtp://USER:PASSWORD@HOST:587` sends with STARTTLS, `smtps://USER:PASSWORD@HOST:465` with TLS from the start,
    /// `smtp://HOST:25?tls=none` in the clear. `hold` keeps mail in the outbox for another node to send. `none` switches
    /// sign-ups off: agent actions then answer `backend_not_configured`.
    #[arg(long, env = "UNIONHALL_MAIL", value_name = "MAIL", default_value = "mailbox:", hide_env_values = true)]
    pub mail: Concealed,

    /// A file that holds the above, for a password that should stand nowhere else.
    #[arg(long, env = "UNIONHALL_MAIL_FILE", value_name = "FILE", conflicts_with = "mail")]
    pub mail_file: Option<PathBuf>,
}

/// How mail leaves.
#[derive(Debug, Clone)]
pub enum MailTransport {
    Mailbox,
    Smtp(Arc<Smtp>),
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
            url if url.starts_with("smtp") => Ok(MailTransport::Smtp(Arc::new(Smtp::new(url)?))),
            _ => {
                bail!("how mail leaves is not understood; write mailbox:, smtp://…, smtps://…, hold or none in --mail")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let mail = "smtps://user:hunter2@mail.example.com".to_owned().into();
        let settings = MailSettings { mail, mail_file: None };
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
