//! `unionhall mcp`

pub(super) mod negotiator;

use std::sync::Arc;

use anyhow::bail;
use clap::Args;

use super::serve::limits::make_limiter;
use super::{block_on, open_store, remedy, secret, service};
use crate::app::{App, Parts};
use crate::clock::Clock;
use crate::config::{
    Concealed, LimitSettings, MailSettings, MailTransport, SecretSettings, StoreSettings, UnionSettings,
};
use crate::demonstration::follow;
use crate::domain::api_key::Mode;
use crate::domain::mail::budget::MailBudget;
use crate::domain::person::RetentionTimes;
use crate::installation::FindServiceFacts;
use crate::log::{Format, Level, Log};
use crate::mail::Delivery;
use crate::mcp::{McpServer, stdio};
use crate::operations::CONTRACT_TOOLS;
use crate::operations::dispatch::Dispatcher;
use crate::operator::Operator;
use crate::outbound::GuardedClient;
use crate::people::erasures::ErasureLog;
use crate::store::WRITE_BATCH;
use crate::store::migration::Prepare;
use crate::supervise;

#[derive(Args)]
pub(super) struct McpSettings {
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
    key: Option<Concealed>,
}

/// The same server, over standard input and output. Mail waits in the outbox for the running service to send it.
pub(super) fn run(settings: &McpSettings, is_name_given: bool) -> anyhow::Result<()> {
    // Reading the next line blocks this thread, so background work needs its own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    block_on(&runtime, async {
        // What can be wrong with the settings is told before anything is made.
        settings.union.facts(settings.union.base_url(settings.union.listen, "http"))?;
        let given = settings.secret.given()?;
        let mail = match settings.mail.transport()? {
            MailTransport::None => Delivery::Off,
            MailTransport::Mailbox | MailTransport::Smtp(_) | MailTransport::Hold => Delivery::Held,
        };
        if settings.key.as_ref().is_some_and(|key| Mode::of_text(key.reveal()) == Mode::Test) {
            bail!("a test key opens the sandbox, which the running service has: send it to POST /mcp there");
        }
        let (limits, disposable) = (settings.limits.address()?, settings.mail.disposable.read()?);
        let store = open_store(&settings.store, Prepare::Make, WRITE_BATCH).await?;
        let kept = store.ask(FindServiceFacts).await?;
        let union = service::union_beside(&settings.union, is_name_given, kept, &settings.store.data)?;
        if union.is_demonstration() {
            supervise::spawn(follow(store.clone()));
        }
        let secret = secret::claim(&settings.store, given, &Operator::new(store.clone(), Mode::Live)).await?.secret;
        let clock = Clock::start();
        // Standard output belongs to the protocol, and nobody reads a line for each request here.
        let log = Log::start(Level::Errors, Format::Text, clock, remedy::write, std::io::stderr())?;
        let limiter = make_limiter(limits, union.public_per_minute, &log).await?;
        let app = App::new(Parts {
            union: Arc::new(union),
            secret,
            store: store.clone(),
            limiter,
            log: log.clone(),
            mail,
            webhooks: Arc::default(),
            // Nor is what partners change.
            outbound: GuardedClient::new(Vec::new(), false),
            // The form is not served here.
            budget: MailBudget::NONE,
            disposable,
            // Nor are people's own pages.
            erasures: ErasureLog::beside(&settings.store.data),
            retention: RetentionTimes::DEFAULT,
        });
        app.membership.keep_notice(clock.now().time).await?;
        let core = Arc::clone(app.core());
        let server = McpServer::new(Dispatcher::new(app), CONTRACT_TOOLS);
        let authorization = settings.key.as_ref().map(|key| format!("Bearer {}", key.reveal()));
        let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
        let served = stdio::serve(&server, clock, authorization.as_deref(), input, output).await;
        core.write_uses(true, clock.now().time).await;
        store.close().await?;
        log.close();
        Ok(served?)
    })
}
