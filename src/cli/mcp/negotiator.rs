//! `unionhall negotiator`

use std::sync::Arc;

use clap::Args;

use crate::app::{App, Parts};
use crate::cli::{block_on, open_store, remedy, service};
use crate::clock::Clock;
use crate::config::{StoreSettings, UnionSettings};
use crate::domain::base32;
use crate::domain::email::disposable::DisposableDomains;
use crate::domain::mail::budget::MailBudget;
use crate::domain::person::RetentionTimes;
use crate::domain::secret::Secret;
use crate::installation::FindServiceFacts;
use crate::limiter::memory::MemoryLimiter;
use crate::log::{Format, Level, Log};
use crate::mail::Delivery;
use crate::mcp::{McpServer, stdio};
use crate::operations::dispatch::Dispatcher;
use crate::operations::negotiator;
use crate::outbound::GuardedClient;
use crate::people::erasures::ErasureLog;
use crate::random;
use crate::store::WRITE_BATCH;
use crate::store::migration::Prepare;

#[derive(Args)]
pub(in crate::cli) struct NegotiatorSettings {
    #[command(flatten)]
    store: StoreSettings,

    #[command(flatten)]
    union: UnionSettings,
}

/// Serves the negotiator's tools over standard input and output, on the service's own records.
pub(in crate::cli) fn run(settings: &NegotiatorSettings, is_name_given: bool) -> anyhow::Result<()> {
    // Reading the next line blocks this thread, so background work needs its own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    block_on(&runtime, async {
        // What can be wrong with the settings is told before anything is opened.
        settings.union.facts(settings.union.base_url(settings.union.listen, "http"))?;
        let store = open_store(&settings.store, Prepare::Expect, WRITE_BATCH).await?;
        let union = service::union_beside(&settings.union, is_name_given, store.ask(FindServiceFacts).await?)?;
        let clock = Clock::start();
        let log = Log::start(Level::Errors, Format::Text, clock, remedy::write, std::io::stderr())?;
        let app = App::new(Parts {
            limiter: Arc::new(MemoryLimiter::new(union.public_per_minute)),
            union: Arc::new(union),
            // A throwaway secret: this process cannot make a member's links.
            secret: Secret::new(&String::from_utf8_lossy(&base32::encode::<64>(&random::bytes::<40>()?)))?,
            store: store.clone(),
            log: log.clone(),
            mail: Delivery::Off,
            webhooks: Arc::default(),
            outbound: GuardedClient::new(Vec::new(), false),
            budget: MailBudget::NONE,
            disposable: DisposableDomains::default(),
            erasures: ErasureLog::beside(&settings.store.data),
            retention: RetentionTimes::DEFAULT,
        });
        let server = McpServer::new(Dispatcher::new(app), negotiator::TOOLS);
        let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
        let served = stdio::serve(&server, clock, None, input, output).await;
        store.close().await?;
        log.close();
        Ok(served?)
    })
}
