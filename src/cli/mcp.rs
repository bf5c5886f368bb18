//! `unionhall mcp`

use std::sync::Arc;

use clap::Args;

use super::limits::make_limiter;
use super::open_store;
use super::serve::{claim_secret, make_app};
use crate::app;
use crate::clock::Clock;
use crate::config::{LimitSettings, Mail, MailSettings, SecretSettings, StoreSettings, UnionSettings};
use crate::log::{Format, Level, Log};
use crate::transport::mcp::{Server, stdio};

#[derive(Debug, Args)]
pub(super) struct Settings {
    #[command(flatten)]
    store: StoreSettings,

    #[command(flatten)]
    union: UnionSettings,

    #[command(flatten)]
    secret: SecretSettings,

    #[command(flatten)]
    mail: MailSettings,

    #[command(flatten)]
    limits: LimitSettings,

    /// The partner's key to act with; without one only the tools that read are there.
    #[arg(long, env = "UNIONHALL_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<String>,
}

/// The same server, over standard input and output. Mail waits in the outbox for the running service to send it.
pub(super) fn run(settings: &Settings) -> anyhow::Result<()> {
    // Reading the next line holds up this thread; what goes on behind a request has another.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let union = &settings.union;
        // Told before anything is made.
        union.catalog()?;
        let given = settings.secret.given()?;
        let mail = match settings.mail.way()? {
            Mail::None => app::Mail::Off,
            Mail::Mailbox | Mail::Smtp(_) | Mail::Hold => app::Mail::Held,
        };
        let limits = settings.limits.place()?;
        let store = open_store(&settings.store, true).await?;
        let secret = claim_secret(&settings.store, given, &*store).await?.secret;
        let clock = Clock::start();
        // Standard output belongs to the protocol, and nobody reads a line for each request here.
        let log = Log::start(Level::Errors, Format::Human, clock, std::io::stderr())?;
        let base_url = union.base_url(union.listen, "http");
        let limiter = make_limiter(limits, union.public_per_minute, &log).await?;
        let app = make_app(union, base_url, secret, Arc::clone(&store), limiter, log.clone(), mail)?;
        let authorization = settings.key.as_ref().map(|key| format!("Bearer {key}"));
        let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
        let served = stdio::serve(&Server::new(app), clock, authorization.as_deref(), input, output).await;
        store.close().await?;
        log.close();
        Ok(served?)
    })
}
