//! `--mail`: how mail is sent.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;

use super::{Concealed, given_or_in_file, read_text, whole};
use crate::domain::email::EmailAddress;
use crate::domain::email::disposable::DisposableDomains;
use crate::mail::report::MailHooks;
use crate::mail::report::postmark::PostmarkLogin;
use crate::mail::report::resend::ResendSecret;
use crate::mail::smtp::Smtp;

/// What happens to mail.
#[derive(Clone, Args)]
#[command(next_help_heading = "Mail")]
pub struct MailSettings {
    /// How mail is sent.
    ///
    /// `mailbox:` writes each message into DATA/mailbox, for development; the start prints a link to /dev/mailbox, which shows
    /// them on this machine alone.
    /// `smtp://USER:PASSWORD@HOST:587` sends with STARTTLS, and refuses a server that does not offer it;
    /// `smtps://USER:PASSWORD@HOST:465` sends with TLS from the start, `smtp://HOST:25?tls=none` in the clear, as does
    /// `smtp://localhost`. `hold` keeps mail in the outbox for another node to send. `none` switches
    /// sign-ups off: agent actions then answer `backend_not_configured`.
    #[arg(long, env = "UNIONHALL_MAIL", value_name = "MAIL", default_value = "mailbox:", hide_env_values = true)]
    pub mail: Concealed,

    /// The file that holds it, to keep a password out of flags and variables.
    #[arg(long, env = "UNIONHALL_MAIL_FILE", value_name = "FILE", conflicts_with = "mail")]
    pub mail_file: Option<PathBuf>,

    /// The domain for bounces, such as bounces.example.org. Each mail gets its own return path in that domain (VERP), and your mail server
    /// pipes what arrives there into `unionhall mail feedback` [default: the sender's own].
    #[arg(long, env = "UNIONHALL_MAIL_BOUNCES", value_name = "DOMAIN", value_parser = bounce_domain)]
    pub mail_bounces: Option<String>,

    /// The most mails about campaigns that are queued in an hour, over all campaigns and nodes; 0 for none.
    ///
    /// None is queued while the postal address is unset, and none delays other mail. Begin with few from a new domain or address: large
    /// providers distrust a sender that suddenly writes to many.
    #[arg(
        long,
        env = "UNIONHALL_CAMPAIGN_MAILS_AN_HOUR",
        value_name = "N",
        default_value_t = 500,
        value_parser = whole::<u32>(0, 1_000_000)
    )]
    pub campaign_mails_an_hour: u32,

    #[command(flatten)]
    pub disposable: DisposableSettings,
}

/// Domains whose mailboxes are thrown away.
#[derive(Clone, Args)]
pub struct DisposableSettings {
    /// A list of more domains of disposable mailboxes, one on each line, in addition to the built-in list.
    ///
    /// Sign-ups from them are accepted, and no one is credited for them. Read at the start [default: the built-in list alone].
    #[arg(long, env = "UNIONHALL_DISPOSABLE_DOMAINS", value_name = "FILE")]
    pub disposable_domains: Option<PathBuf>,
}

/// How mail is sent.
#[derive(Clone)]
pub enum MailTransport {
    Mailbox,
    Smtp(Arc<Smtp>),
    Hold,
    None,
}

impl DisposableSettings {
    /// Domains of mailboxes that are thrown away.
    pub fn read(&self) -> anyhow::Result<DisposableDomains> {
        let Some(path) = &self.disposable_domains else { return Ok(DisposableDomains::default()) };
        let list = read_text(path).with_context(|| format!("cannot read the disposable domains {}", path.display()))?;
        DisposableDomains::with(&list)
            .with_context(|| format!("the disposable domains {} have a mistake", path.display()))
    }
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

/// What mail services prove themselves with when they report bounces and complaints.
#[derive(Clone, Args)]
#[command(next_help_heading = "Bounces and complaints")]
pub struct MailHookSettings {
    /// The signing secret (whsec_…) of a webhook of Resend to /hooks/mail/resend, for bounces and complaints [default: not set (the address is closed)].
    #[arg(long, env = "UNIONHALL_RESEND_WEBHOOK_SECRET", value_name = "SECRET", hide_env_values = true)]
    pub resend_webhook_secret: Option<Concealed>,

    /// A file that holds it.
    #[arg(
        long,
        env = "UNIONHALL_RESEND_WEBHOOK_SECRET_FILE",
        value_name = "FILE",
        conflicts_with = "resend_webhook_secret"
    )]
    pub resend_webhook_secret_file: Option<PathBuf>,

    /// NAME:PASSWORD of a webhook of Postmark to /hooks/mail/postmark, for bounces and complaints [default: not set (the address is closed)].
    #[arg(long, env = "UNIONHALL_POSTMARK_WEBHOOK_LOGIN", value_name = "LOGIN", hide_env_values = true)]
    pub postmark_webhook_login: Option<Concealed>,

    /// A file that holds it.
    #[arg(
        long,
        env = "UNIONHALL_POSTMARK_WEBHOOK_LOGIN_FILE",
        value_name = "FILE",
        conflicts_with = "postmark_webhook_login"
    )]
    pub postmark_webhook_login_file: Option<PathBuf>,
}

impl MailHookSettings {
    pub fn hooks(&self) -> anyhow::Result<MailHooks> {
        let given = |text: &Option<Concealed>, file: &Option<PathBuf>, what| match (text, file) {
            (None, None) => Ok(None),
            (text, file) => {
                let empty = Concealed::from(String::new());
                given_or_in_file(text.as_ref().unwrap_or(&empty), file.as_deref(), what).map(Some)
            }
        };
        let resend =
            given(&self.resend_webhook_secret, &self.resend_webhook_secret_file, "the secret of Resend's webhook")?;
        let postmark =
            given(&self.postmark_webhook_login, &self.postmark_webhook_login_file, "the login of Postmark's webhook")?;
        Ok(MailHooks {
            resend: resend
                .map(|text| ResendSecret::parse(&text))
                .transpose()
                .context("UNIONHALL_RESEND_WEBHOOK_SECRET")?,
            postmark: postmark
                .map(|text| PostmarkLogin::parse(&text))
                .transpose()
                .context("UNIONHALL_POSTMARK_WEBHOOK_LOGIN")?,
        })
    }
}

fn bounce_domain(text: &str) -> Result<String, String> {
    let address = EmailAddress::parse(&format!("b@{text}"));
    let domain = address.map_err(|_| "write a domain such as bounces.example.org".to_owned())?;
    Ok(domain.domain().to_owned())
}
