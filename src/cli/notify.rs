//! `unionhall notify`: what `--notify` signs with, and whether it arrives.

use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};
use lettre::message::Mailbox;
use tokio::sync::watch;

use super::{print_line, remedy, secret, serve, with_live_records};
use crate::clock::Clock;
use crate::config::{NotifyTarget, SecretSettings, ServeSettings, StoreSettings};
use crate::domain::api_key::Mode;
use crate::domain::secret::token::TokenMaker;
use crate::domain::webhook::signature::WebhookSecret;
use crate::mail::compose::Composer;
use crate::operator::notify::{Notice, Notifier};

#[derive(Subcommand)]
pub(super) enum NotifyCommand {
    /// Print the secret (whsec_…) that the webhook of --notify is signed with, for its receiver; it derives from the installation's.
    Secret(NotifySecret),
    /// Send a message that says it is a test to --notify; takes the settings of `serve`.
    Test(Box<ServeSettings>),
}

#[derive(Args)]
pub(super) struct NotifySecret {
    #[command(flatten)]
    secret: SecretSettings,
    #[command(flatten)]
    store: StoreSettings,
}

pub(super) fn run(command: NotifyCommand) -> anyhow::Result<()> {
    match command {
        NotifyCommand::Secret(task) => show_secret(&task),
        NotifyCommand::Test(settings) => test(&settings),
    }
}

fn show_secret(task: &NotifySecret) -> anyhow::Result<()> {
    let given = task.secret.given()?;
    let secret = with_live_records(&task.store, async |operator| {
        secret::known(&task.store, Mode::Live, given, &operator).await
    })?;
    let newest = WebhookSecret::of_notices(&secret).into_iter().next();
    print_line(&newest.context("the secret of these records cannot be used")?.reveal())
}

fn test(settings: &ServeSettings) -> anyhow::Result<()> {
    let Some(target) = settings.notify.target()? else {
        bail!("nowhere is set; give a web address or an email address with --notify or UNIONHALL_NOTIFY")
    };
    let scheme = if settings.tls_cert.is_some() { "https" } else { "http" };
    let union = Arc::new(settings.union.facts(settings.union.base_url(settings.union.listen, scheme))?);
    let (given, mail) = (settings.secret.given()?, settings.mail.transport()?);
    let shown = target.to_string();
    let is_mail = matches!(target, NotifyTarget::Address(_));
    with_live_records(&settings.store, async |operator| {
        let secret = secret::known(&settings.store, Mode::Live, given, &operator).await?;
        let composer = Composer {
            union: Arc::clone(&union),
            catalog: watch::channel(union.catalog.clone()).1,
            from: Mailbox::new(union.sender.name.clone(), union.sender.address.parse()?),
            tokens: TokenMaker::new(&secret),
            bounces: None,
        };
        let channel = serve::notify::channel(target, settings, &union, &mail, Some(composer))?;
        let notifier = Notifier::new(operator.clone(), channel, secret, Arc::clone(&union), remedy::write);
        let notice = Notice { is_test: true, ..Notice::default() };
        notifier.send(&notice, Clock::start().now().time).await.map_err(|why| anyhow!("the test was not sent: {why}"))
    })?;
    let how = if is_mail { "handed to the mail server for" } else { "taken by" };
    print_line(&format!("A test was {how} {shown}."))
}
