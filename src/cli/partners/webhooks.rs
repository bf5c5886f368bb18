//! `unionhall webhooks`

use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use super::super::audit::act;
use super::super::remedy::flag;
use super::super::{demo, print_aside, print_json, print_line, print_table, secret};
use super::{ListPartners, PartnerRecords};
use crate::clock::Clock;
use crate::config::{OutboundSettings, SecretSettings, web_address};
use crate::domain::figure::capped;
use crate::domain::partner::endpoint::{EndpointId, EndpointRecord, ListedEndpoint};
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::time::Timestamp;
use crate::domain::webhook::url::EndpointUrl;
use crate::operator::Act;
use crate::partners::endpoints;
use crate::partners::self_service::MAX_COUNTED;
use crate::partners::webhooks::{EVERY_BATCH, Webhooks};
use crate::random;

#[derive(Subcommand)]
pub(in crate::cli) enum WebhooksCommand {
    /// Add an endpoint of a partner. Only its secret is printed to standard output, once: it is not stored.
    ///
    /// From then on the endpoint is told what happens to every sign-up that the partner sent with an Idempotency-Key. The address
    /// is checked as at every delivery: https, a public address, no redirects. Any port will do, while partners themselves can add
    /// endpoints at the ports 443, 80 and 8443 only. `webhooks test` sends it a ping.
    Add(AddEndpointArgs),
    /// List all endpoints, with what waits for them and whether they work.
    List(ListPartners),
    /// Send a ping to an endpoint, now, and say what it answered.
    Test(OneEndpoint),
    /// Give an endpoint a new secret, printed to standard output; the old one also signs for 24 hours.
    Rotate(RotateSecret),
    /// Send an endpoint the event of one sign-up again. Refused while the endpoint is disabled: see `webhooks recover`.
    Resend(ResendEventArgs),
    /// Enable an endpoint again, and resend all events since a time; at most 30 days are kept.
    Recover(RecoverEndpoint),
    /// Delete an endpoint, and what waits for it.
    Remove(OneEndpoint),
}

#[derive(Args)]
pub(in crate::cli) struct WebhookSettings {
    #[command(flatten)]
    records: PartnerRecords,
    #[command(flatten)]
    secret: SecretSettings,
    #[command(flatten)]
    outbound: OutboundSettings,
    /// Where the service is reached. Only where that is a loopback address, in development, may endpoints be on this machine, and
    /// http://.
    #[arg(long, env = "UNIONHALL_BASE_URL", value_name = "URL", value_parser = web_address)]
    base_url: Option<String>,
}

#[derive(Args)]
pub(in crate::cli) struct AddEndpointArgs {
    /// The partner's name, as `partners list` shows it.
    partner: String,
    /// Where to send, such as `https://partner.example/webhooks`.
    url: String,
    #[command(flatten)]
    settings: WebhookSettings,
}

#[derive(Args)]
pub(in crate::cli) struct OneEndpoint {
    /// The endpoint's id, as `webhooks list` shows it.
    id: EndpointId,
    #[command(flatten)]
    settings: WebhookSettings,
}

#[derive(Args)]
pub(in crate::cli) struct RotateSecret {
    /// Even within 24 hours of the last time: the secret before the last one ends at once.
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    endpoint: OneEndpoint,
}

#[derive(Args)]
pub(in crate::cli) struct ResendEventArgs {
    #[command(flatten)]
    endpoint: OneEndpoint,
    /// The Idempotency-Key of the sign-up.
    #[arg(help_heading = None)]
    key: String,
}

#[derive(Args)]
pub(in crate::cli) struct RecoverEndpoint {
    /// From which day (2027-01-31) or moment (2027-01-31T18:00:00Z) on.
    #[arg(long, value_name = "DATE")]
    since: Timestamp,
    #[command(flatten)]
    endpoint: OneEndpoint,
}

pub(in crate::cli) fn run(command: WebhooksCommand) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    match command {
        WebhooksCommand::Add(task) => add(&task, now),
        WebhooksCommand::List(task) => list(&task),
        WebhooksCommand::Test(task) => test(&task, now),
        WebhooksCommand::Rotate(task) => rotate(&task, now),
        WebhooksCommand::Resend(task) => resend(&task, now),
        WebhooksCommand::Recover(task) => recover(&task, now),
        WebhooksCommand::Remove(task) => remove(&task, now),
    }
}

/// Runs one piece of work on the endpoints, which is written down as that act.
fn with_webhooks<T>(
    settings: &WebhookSettings,
    act: Option<Act>,
    work: impl AsyncFnOnce(Webhooks) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let given = settings.secret.given()?;
    let PartnerRecords { store: records, .. } = &settings.records;
    settings.records.with(async |operator| {
        let secret = secret::known(records, settings.records.mode(), given, &operator).await?;
        let only_this_machine = demo::folder::is_marked(&records.data);
        let outbound = OutboundSettings { only_this_machine, ..settings.outbound.clone() };
        let here = if only_this_machine { "http://127.0.0.1" } else { "" };
        let client = Arc::new(outbound.client(settings.base_url.as_deref().unwrap_or(here)));
        let webhooks = match act {
            Some(act) => operator.audited(act).webhooks(secret, client),
            None => operator.webhooks(secret, client),
        };
        work(webhooks).await
    })
}

fn add(task: &AddEndpointArgs, now: Timestamp) -> anyhow::Result<()> {
    let url = EndpointUrl::parse(&task.url).context("the endpoint was not added")?;
    // Without its path, which may hold a token of the partner's.
    let act = act("webhooks add", format!("{} for {}", url.authority(), task.partner), now);
    let added = with_webhooks(&task.settings, Some(act), async |webhooks| {
        webhooks.add(&task.partner, &url, now).await.context("the endpoint was not added")
    })?;
    let (id, secret) = added;
    print_aside(&format!(
        "Endpoint {id} of {}. `unionhall webhooks test {id}{}` sends it a ping. Its secret is shown only now:",
        task.partner,
        flag(task.settings.records.mode())
    ));
    print_line(&secret.reveal())
}

fn list(task: &ListPartners) -> anyhow::Result<()> {
    let endpoints = task.records.with(async |operator| Ok(operator.ask(endpoints::ListEndpoints(None)).await?))?;
    if task.json {
        return print_json(&Vec::from_iter(endpoints.iter().map(as_json)));
    }
    let none = format!("No endpoints yet. `unionhall webhooks add PARTNER URL{}` adds one.", flag(task.records.mode()));
    let headings = "ID      WAITING  GIVEN UP  PARTNER                  URL and STATE";
    print_table(&endpoints, &none, headings, |ListedEndpoint { endpoint, waiting, given_up }| {
        let [waiting, given_up] = [waiting, given_up].map(|count| capped(*count, MAX_COUNTED));
        let EndpointRecord { id, partner, url, .. } = endpoint;
        let (id, state) = (id.to_string(), endpoint.state());
        format!("{id:<6}{waiting:>9}{given_up:>10}  {partner:<24} {url}: {state}")
    })
}

fn as_json(listed: &ListedEndpoint) -> serde_json::Value {
    let ListedEndpoint { endpoint, waiting, given_up } = listed;
    json!({
        "id": endpoint.id.0,
        "partner": endpoint.partner,
        "url": endpoint.url,
        "createdAt": endpoint.created_at,
        "rotatedAt": endpoint.rotated_at,
        "deliveredAt": endpoint.delivered_at,
        "failingSince": endpoint.failing_since,
        "lastError": endpoint.last_error,
        "disabledAt": endpoint.disabled_at,
        "disabledReason": endpoint.disabled_why,
        "waiting": waiting,
        "givenUp": given_up,
    })
}

fn test(task: &OneEndpoint, now: Timestamp) -> anyhow::Result<()> {
    let unique = i64::from_be_bytes(random::bytes()?);
    let answer = with_webhooks(&task.settings, None, async |webhooks| {
        webhooks.test(task.id, unique, now).await.context("the ping was not delivered")
    })?;
    match answer.status {
        200..=299 => print_line(&format!("Endpoint {} took the ping: it answered {}.", task.id, answer.status)),
        status => bail!("the endpoint answered {status} to the ping; anything but 2xx is a failure"),
    }
}

fn rotate(task: &RotateSecret, now: Timestamp) -> anyhow::Result<()> {
    let OneEndpoint { id, settings } = &task.endpoint;
    let act = act("webhooks rotate", format!("endpoint {id}"), now);
    let secret = with_webhooks(settings, Some(act), async |webhooks| Ok(webhooks.rotate(*id, task.now, now).await?))?;
    print_aside(&format!(
        "The new secret of endpoint {id}; the old one also signs for 24 hours. It is shown only now:"
    ));
    print_line(&secret.reveal())
}

fn resend(task: &ResendEventArgs, now: Timestamp) -> anyhow::Result<()> {
    let Ok(key) = IdempotencyKey::parse(&task.key) else {
        bail!("that is not an Idempotency-Key: it has 1 to {} visible ASCII characters", IdempotencyKey::LONGEST);
    };
    let OneEndpoint { id, settings } = &task.endpoint;
    let act = act("webhooks resend", format!("endpoint {id}"), now);
    let found = with_webhooks(settings, Some(act), async |webhooks| Ok(webhooks.resend(*id, key, now).await?))?;
    if !found {
        bail!(
            "that sign-up has no result yet, or its partner sent none with that key in the last 30 days; nothing is sent"
        );
    }
    print_line("It is sent again, with the same id.")
}

fn recover(task: &RecoverEndpoint, now: Timestamp) -> anyhow::Result<()> {
    let OneEndpoint { id, settings } = &task.endpoint;
    let act = act("webhooks recover", format!("endpoint {id} since {}", task.since), now);
    let recovered = with_webhooks(settings, Some(act), async |webhooks| {
        Ok(webhooks.recover(*id, task.since, EVERY_BATCH, now).await?)
    })?;
    print_line(&format!("Endpoint {id} is enabled. Sent again, each with the same id: {}.", recovered.queued))
}

fn remove(task: &OneEndpoint, now: Timestamp) -> anyhow::Result<()> {
    let act = act("webhooks remove", format!("endpoint {}", task.id), now);
    with_webhooks(&task.settings, Some(act), async |webhooks| Ok(webhooks.remove(task.id, EVERY_BATCH, now).await?))?;
    print_line(&format!("Endpoint {} is deleted, with everything that waited for it.", task.id))
}
