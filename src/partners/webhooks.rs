//! What the operator and partners do with webhook endpoints: add them, test them, rotate their secrets, and send messages again.

use std::sync::Arc;

use crate::domain::api_key::Mode;
use crate::domain::partner::endpoint::{EndpointId, EndpointRecord, NotAdded};
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::secret::Secret;
use crate::domain::time::Timestamp;
use crate::domain::webhook::signature::{WebhookSecret, message_id, signatures};
use crate::domain::webhook::url::{BadEndpoint, EndpointUrl};
use crate::domain::webhook::{self, EventKind, OLD_SECRET_SIGNS_FOR};
use crate::outbound::{GuardedClient, OutboundAnswer, OutboundError, OutboundRefusal};
use crate::partners::endpoints::{
    AddEndpoint, EmptyEndpoint, EnableEndpoint, FindEndpoint, RecoverEvents, RemoveEndpoint, ResendEvent,
    RestartDeliveries, RetireEndpoint, RotateEndpoint,
};
use crate::random::{self, NoRandom};
use crate::store::{Store, StoreError};

pub struct Webhooks {
    /// If it records an act in the audit log, the follow-up steps run without recording it.
    store: Store,
    secret: Secret,
    client: Arc<GuardedClient>,
    /// The mode of the records; messages include it.
    mode: Mode,
}

/// The most batches of the store for one call of a command, which does everything there is. A request has fewer, so that it takes
/// the same time however much there is.
pub const EVERY_BATCH: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    pub queued: u64,
    /// The time from which there may be more.
    pub next_since: Option<Timestamp>,
}

#[derive(Debug, thiserror::Error)]
pub enum EndpointProblem {
    #[error(transparent)]
    Address(#[from] BadEndpoint),
    #[error(transparent)]
    Refused(#[from] OutboundRefusal),
    #[error(transparent)]
    NotAdded(#[from] NotAdded),
    #[error("the secret of endpoint {id} was rotated at {at}, and the one before it still signs")]
    JustRotated { id: EndpointId, at: Timestamp },
    #[error(
        "the secret of endpoint {0} was made with a generation of the installation's secret that this node does not have"
    )]
    NoSecret(EndpointId),
    #[error(
        "its secret is known to others or lost since the union's own was, and it was not rotated in time: rotate it, then recover what it missed"
    )]
    MustRotate,
    #[error("there is no endpoint {0}")]
    Unknown(EndpointId),
    #[error("endpoint {id} is disabled since {at}: {why}")]
    Disabled { id: EndpointId, at: Timestamp, why: String },
    #[error(transparent)]
    Unanswered(#[from] OutboundError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EndpointProblem {
    /// Whether there was no place for the look-up of its name, or this node cannot sign for it: nothing that the endpoint did.
    pub(super) fn is_ours(&self) -> bool {
        if matches!(self, Self::NoSecret(_)) {
            return true;
        }
        let (Self::Refused(refusal) | Self::Unanswered(OutboundError::Refused(refusal))) = self else { return false };
        matches!(refusal, OutboundRefusal::LookupBusy(_))
    }
}

impl Webhooks {
    pub fn new(store: Store, secret: Secret, client: Arc<GuardedClient>, mode: Mode) -> Self {
        Self { store, secret, client, mode }
    }

    /// Adds an endpoint, if it can be reached. Its secret is shown only this once.
    pub async fn add(
        &self,
        partner: &str,
        url: &EndpointUrl,
        now: Timestamp,
    ) -> Result<(EndpointId, WebhookSecret), EndpointProblem> {
        self.client.check(partner, url).await?;
        let made_with = self.secret.generations().newest_number();
        let added = self
            .store
            .run(AddEndpoint { partner: partner.to_owned(), url: url.as_str().to_owned(), made_with, now })
            .await?;
        let id = added?;
        Ok((id, self.secret_of(id, made_with, 1)?))
    }

    fn secret_of(&self, id: EndpointId, made_with: u32, generation: u32) -> Result<WebhookSecret, EndpointProblem> {
        WebhookSecret::derive(&self.secret, made_with, id.0, generation).ok_or(EndpointProblem::NoSecret(id))
    }

    /// Sends a ping now; `unique` gives it an id that no earlier ping had.
    pub async fn test(&self, id: EndpointId, unique: i64, now: Timestamp) -> Result<OutboundAnswer, EndpointProblem> {
        let endpoint = self.find(id).await?;
        let body = webhook::body(EventKind::Ping, now, self.mode, None);
        let message = message_id(&self.secret, unique, EventKind::Ping);
        send(&self.client, &self.secret, &endpoint, message, body, now).await
    }

    /// Gives an endpoint its next secret; the previous one signs too for a day. At most two sign, so another rotation in that
    /// time is only done if the caller wants the oldest to end.
    pub async fn rotate(
        &self,
        id: EndpointId,
        ends_oldest: bool,
        now: Timestamp,
    ) -> Result<WebhookSecret, EndpointProblem> {
        let unless_after = if ends_oldest { Timestamp::from_millis(i64::MAX) } else { now.minus(OLD_SECRET_SIGNS_FOR) };
        let generation = new_generation().map_err(StoreError::from)?;
        let made_with = self.secret.generations().newest_number();
        match self.store.run(RotateEndpoint { id, generation, made_with, unless_after, now }).await? {
            Some(generation) => self.secret_of(id, made_with, generation),
            None => match self.find(id).await?.rotated_at {
                Some(at) => Err(EndpointProblem::JustRotated { id, at }),
                None => Err(EndpointProblem::Unknown(id)),
            },
        }
    }

    /// Sends an endpoint the outcome of a request again; false if there is none yet.
    pub async fn resend(&self, id: EndpointId, key: IdempotencyKey, now: Timestamp) -> Result<bool, EndpointProblem> {
        let endpoint = self.find(id).await?;
        if let Some(at) = endpoint.disabled_at {
            let why = endpoint.disabled_why.unwrap_or_else(|| "it failed".to_owned());
            return Err(EndpointProblem::Disabled { id, at, why });
        }
        Ok(self.store.run(ResendEvent { id, key, now }).await?)
    }

    /// Enables an endpoint. Its waiting deliveries go now; those beyond `most` batches go when they were scheduled.
    pub async fn enable(&self, id: EndpointId, most: u32, now: Timestamp) -> Result<(), EndpointProblem> {
        if !self.store.run(EnableEndpoint(id, now)).await? {
            return Err(EndpointProblem::Unknown(id));
        }
        let mut batches = 1;
        while batches < most && self.store.unaudited().run(RestartDeliveries(id, now)).await? > 0 {
            batches += 1;
        }
        Ok(())
    }

    /// Enables an endpoint, and sends it everything since a time again.
    pub async fn recover(
        &self,
        id: EndpointId,
        since: Timestamp,
        most: u32,
        now: Timestamp,
    ) -> Result<Recovered, EndpointProblem> {
        self.enable(id, most, now).await?;
        let (mut since, mut after, mut queued, mut batches) = (since, 0, 0, 0);
        while batches < most {
            let (Some(last), some) = self.store.unaudited().run(RecoverEvents { id, since, after, now }).await? else {
                return Ok(Recovered { queued, next_since: None });
            };
            (since, after) = last;
            (queued, batches) = (queued + some, batches + 1);
        }
        Ok(Recovered { queued, next_since: Some(since) })
    }

    /// Removes an endpoint and its deliveries. The worker later deletes the deliveries beyond `most` batches.
    pub async fn remove(&self, id: EndpointId, most: u32, now: Timestamp) -> Result<(), EndpointProblem> {
        if !self.store.run(RetireEndpoint(id, now)).await? {
            return Err(EndpointProblem::Unknown(id));
        }
        let mut batches = 0;
        while batches < most {
            if self.store.unaudited().run(EmptyEndpoint(id, now)).await? == 0 {
                self.store.unaudited().run(RemoveEndpoint(id)).await?;
                break;
            }
            batches += 1;
        }
        Ok(())
    }

    async fn find(&self, id: EndpointId) -> Result<EndpointRecord, EndpointProblem> {
        self.store.ask(FindEndpoint(id)).await?.ok_or(EndpointProblem::Unknown(id))
    }
}

/// One that no endpoint had by counting.
fn new_generation() -> Result<u32, NoRandom> {
    Ok(u32::from_be_bytes(random::bytes()?) | 1 << 31)
}

/// Why an address is not dialed. A name that only we can look up, however many addresses it has, and a name that does not exist
/// get the same message, so that callers cannot learn which internal names exist.
pub(super) fn refused(refusal: &OutboundRefusal) -> String {
    match refusal {
        OutboundRefusal::NotEncrypted => {
            "write https://; http:// is only for localhost, while the service itself runs there".to_owned()
        }
        OutboundRefusal::LookupLate(_) | OutboundRefusal::LookupBusy(_) => format!("{refusal}; try again"),
        OutboundRefusal::Elsewhere(_) => refusal.to_string(),
        OutboundRefusal::NotFound(host)
        | OutboundRefusal::NoAddress(host)
        | OutboundRefusal::TooManyAddresses(host)
        | OutboundRefusal::NotPublic(host)
        | OutboundRefusal::ThisMachine(host) => {
            format!("{host}: there is no such name, or not every address of it is on the public internet")
        }
    }
}

pub(super) fn unanswered(error: &OutboundError) -> String {
    match error {
        OutboundError::Refused(refusal) => refused(refusal),
        OutboundError::NoAuthorities | OutboundError::Unwritable => {
            "the request could not be sent from here".to_owned()
        }
        OutboundError::NotConnected { .. }
        | OutboundError::Tls { .. }
        | OutboundError::NoAnswer { .. }
        | OutboundError::Late { .. } => error.to_string(),
    }
}

/// Sends one message to an endpoint, signed with every secret that is in force.
pub(super) async fn send(
    client: &GuardedClient,
    secret: &Secret,
    endpoint: &EndpointRecord,
    message: String,
    body: String,
    now: Timestamp,
) -> Result<OutboundAnswer, EndpointProblem> {
    let url = EndpointUrl::parse(&endpoint.url)?;
    if endpoint.rotate_by.is_some_and(|by| by <= now) {
        return Err(EndpointProblem::MustRotate);
    }
    let secrets = WebhookSecret::in_force(secret, endpoint.secrets(), endpoint.rotated_at, now);
    if secrets.is_empty() {
        return Err(EndpointProblem::NoSecret(endpoint.id));
    }
    Ok(post_signed(client, &endpoint.partner, &url, &secrets, message, body, now).await?)
}

/// Sends a message with the headers of Standard Webhooks, signed with each of these secrets.
pub(crate) async fn post_signed(
    client: &GuardedClient,
    caller: &str,
    url: &EndpointUrl,
    secrets: &[WebhookSecret],
    message: String,
    body: String,
    now: Timestamp,
) -> Result<OutboundAnswer, OutboundError> {
    let seconds = now.as_millis() / 1000;
    let signature = signatures(secrets, &message, seconds, body.as_bytes());
    let headers =
        [("webhook-id", message), ("webhook-timestamp", seconds.to_string()), ("webhook-signature", signature)];
    client.post(caller, url, &headers, body.into(), now).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_nowhere_or_inside_are_refused_alike() {
        let host = || "hook.acme.example".to_owned();
        let told = [
            OutboundRefusal::NotFound(host()),
            OutboundRefusal::NoAddress(host()),
            OutboundRefusal::TooManyAddresses(host()),
            OutboundRefusal::NotPublic(host()),
            OutboundRefusal::ThisMachine(host()),
        ]
        .map(|refusal| refused(&refusal));
        assert!(told.iter().all(|one| *one == told[0] && one.starts_with("hook.acme.example: ")), "{told:?}");
    }
}
