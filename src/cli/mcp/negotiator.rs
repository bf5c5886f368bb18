//! `unionhall negotiator`

use std::sync::Arc;

use anyhow::{anyhow, bail};
use clap::{Args, Subcommand};

use crate::app::{App, Parts};
use crate::campaigns::negotiator::SEAT;
use crate::campaigns::operator_step::read_reason;
use crate::campaigns::pause::{ListPauses, PauseNegotiation, Paused, ResumeNegotiation, Resumed};
use crate::cli::audit::act;
use crate::cli::{block_on, open_store, print_line, remedy, service, with_live_records};
use crate::clock::Clock;
use crate::config::{StoreSettings, UnionSettings};
use crate::demonstration::follow;
use crate::domain::base32;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::record::Pause;
use crate::domain::email::disposable::DisposableDomains;
use crate::domain::mail::budget::MailBudget;
use crate::domain::person::RetentionTimes;
use crate::domain::secret::Secret;
use crate::domain::text::{is_hidden, quote};
use crate::installation::FindServiceFacts;
use crate::limiter::memory::MemoryLimiter;
use crate::log::{Format, Level, Log};
use crate::mail::Delivery;
use crate::mcp::{McpServer, stdio};
use crate::operations::dispatch::Dispatcher;
use crate::operations::negotiator;
use crate::outbound::GuardedClient;
use crate::people::erasures::ErasureLog;
use crate::store::WRITE_BATCH;
use crate::store::migration::Prepare;
use crate::{random, supervise};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct NegotiatorSettings {
    #[command(subcommand)]
    act: Option<NegotiatorCommand>,

    #[command(flatten)]
    store: StoreSettings,

    #[command(flatten)]
    union: UnionSettings,

    /// The name of this seat: it stands on everything that is recorded here, and in the audit log.
    #[arg(long = "as", value_name = "NAME", help_heading = None, default_value = SEAT, value_parser = read_seat)]
    seat: String,
}

#[derive(Subcommand)]
enum NegotiatorCommand {
    /// Pause the negotiator: from its next call on, every tool refuses and tells it to stop, until `negotiator resume`.
    ///
    /// With a slug it is that campaign alone, otherwise all of them. Nothing else changes: people can go on with the commands.
    Pause(PauseArgs),
    /// Let the negotiator go on. A pause of all campaigns and that of one each stand until they are ended by themselves.
    Resume(ResumeArgs),
}

#[derive(Args)]
struct PauseArgs {
    /// The campaign's slug; without it all campaigns.
    slug: Option<CampaignSlug>,
    /// Why, for other operators; the negotiator does not read it.
    #[arg(long, value_name = "TEXT", value_parser = read_reason)]
    reason: String,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
struct ResumeArgs {
    /// The campaign's slug; without it the pause of all campaigns.
    slug: Option<CampaignSlug>,
    #[command(flatten)]
    store: StoreSettings,
}

/// What a pause is about, in words.
fn what(slug: Option<&CampaignSlug>) -> String {
    slug.map_or_else(|| "the negotiation of all campaigns".to_owned(), |slug| format!("the negotiation of {slug}"))
}

fn no_campaign(slug: Option<&CampaignSlug>) -> anyhow::Error {
    let slug = slug.map(ToString::to_string).unwrap_or_default();
    anyhow!("there is no campaign {slug}; `unionhall campaigns list` shows them")
}

fn pause(task: &PauseArgs) -> anyhow::Result<()> {
    let (now, slug) = (Clock::start().now().time, &task.slug);
    let about = slug.as_ref().map_or_else(|| "all campaigns".to_owned(), ToString::to_string);
    let act = act("negotiator pause", about, now);
    let pause = PauseNegotiation { slug: slug.clone(), reason: task.reason.clone(), who: act.who.clone(), now };
    let paused = with_live_records(&task.store, async |operator| Ok(operator.audited(act).run(pause).await?))?;
    let what = what(slug.as_ref());
    match paused {
        Paused::Done => {
            print_line(&format!("{what} is paused, from the negotiator's next call on.").replacen('t', "T", 1))
        }
        Paused::Already(Pause { at, who, reason, .. }) => {
            bail!("{what} is paused already, since {at} by {who}: {}", quote(&reason))
        }
        Paused::Unknown => Err(no_campaign(slug.as_ref())),
    }
}

fn resume(task: &ResumeArgs) -> anyhow::Result<()> {
    let (now, slug) = (Clock::start().now().time, &task.slug);
    let about = slug.as_ref().map_or_else(|| "all campaigns".to_owned(), ToString::to_string);
    let act = act("negotiator resume", about, now);
    let (resumed, pauses) = with_live_records(&task.store, async |operator| {
        let resumed = operator.audited(act).run(ResumeNegotiation(slug.clone())).await?;
        Ok((resumed, operator.ask(ListPauses).await?))
    })?;
    let what = what(slug.as_ref());
    match resumed {
        Resumed::Done => print_line(&format!("{what} goes on.").replacen('t', "T", 1))?,
        Resumed::NotPaused => print_line(&format!("{what} was not paused.").replacen('t', "T", 1))?,
        Resumed::Unknown => return Err(no_campaign(slug.as_ref())),
    }
    for Pause { slug, at, who, reason } in &pauses {
        print_line(&format!("Still paused, since {at} by {who}: {}: {}", self::what(slug.as_ref()), quote(reason)))?;
    }
    Ok(())
}

fn read_seat(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_good = (1..=60).contains(&text.chars().count()) && !text.chars().any(is_hidden) && !text.contains('@');
    if is_good { Ok(text.to_owned()) } else { Err("write a name of 1 to 60 characters, without @".to_owned()) }
}

/// Serves the negotiator's tools over standard input and output, on the service's own records.
pub(in crate::cli) fn run(settings: &NegotiatorSettings, is_name_given: bool) -> anyhow::Result<()> {
    match &settings.act {
        Some(NegotiatorCommand::Pause(task)) => return pause(task),
        Some(NegotiatorCommand::Resume(task)) => return resume(task),
        None => {}
    }
    // Reading the next line blocks this thread, so background work needs its own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    block_on(&runtime, async {
        // What can be wrong with the settings is told before anything is opened.
        settings.union.facts(settings.union.base_url(settings.union.listen, "http"))?;
        let store = open_store(&settings.store, Prepare::Expect, WRITE_BATCH).await?;
        let kept = store.ask(FindServiceFacts).await?;
        let union = service::union_beside(&settings.union, is_name_given, kept, &settings.store.data)?;
        if union.is_demonstration() {
            supervise::spawn(follow(store.clone()));
        }
        let clock = Clock::start();
        let log = Log::start(Level::Errors, Format::Text, clock, remedy::write, std::io::stderr())?;
        let parts = Parts {
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
        };
        let app = App::for_seat(parts, &settings.seat);
        let server = McpServer::new(Dispatcher::new(app), negotiator::TOOLS);
        let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
        let served = stdio::serve(&server, clock, None, input, output).await;
        store.close().await?;
        log.close();
        Ok(served?)
    })
}
