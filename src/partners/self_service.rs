//! Self-service: what partners do with their own endpoints and keys over the API.
//!
//! It does what the operator's commands do, with the same code; the audit log names the partner. Each kind of change is counted
//! before it is made, which bounds it per day, and the transaction that makes it also queues the mail to the contact. The
//! messages here are for partners, so they name no operator command.

use std::sync::Arc;
use std::time::Duration;

use super::places::{PartnerPlaces, PlaceOfPartner};
use super::webhooks::{EndpointProblem, Recovered, Webhooks, refused, unanswered};
use super::worker::WebhookNotifier;
use crate::domain::api_key::{ApiKey, KeyRecord, KeyStatus, MAX_ENDING_KEYS, Mode};
use crate::domain::partner::change::{ChangeKind, ClaimedChange};
use crate::domain::partner::endpoint::{ENDPOINTS_OF_ONE, EndpointId, ListedEndpoint, NotAdded};
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::secret::Secret;
use crate::domain::sign_up::Partner;
use crate::domain::time::Timestamp;
use crate::domain::webhook::OLD_SECRET_SIGNS_FOR;
use crate::domain::webhook::signature::WebhookSecret;
use crate::domain::webhook::url::EndpointUrl;
use crate::keys::records::{FindKey, ListKeysOf, RevokeKey};
use crate::keys::{Keys, NotRotated, RevokedKey, Rotated};
use crate::outbound::{GuardedClient, OUTBOUND_TIMEOUT};
pub use crate::partners::changes::UsageDay;
use crate::partners::changes::{ClaimChange, ListUsage, UnclaimChange};
pub use crate::partners::endpoints::MAX_COUNTED;
use crate::partners::endpoints::{DELIVERY_BATCH, ListEndpoints};
use crate::random;
use crate::store::audit::Act;
use crate::store::{Store, StoreError};

/// How many requests may wait for an endpoint to answer, or for its name to be looked up: per partner, and in total on a node.
const MAX_DIALING_EACH: u32 = 2;
const MAX_DIALING: u32 = 16;

pub const MAX_BATCHES: u32 = 20;
pub const MAX_RECOVERED: u32 = MAX_BATCHES * DELIVERY_BATCH;

pub const MAX_LISTED_KEYS: u32 = 100;

pub struct SelfService {
    store: Store,
    secret: Secret,
    /// Separate from the worker's client: partners who test endpoints take none of the places for look-ups that deliveries need.
    client: Arc<GuardedClient>,
    notifier: Arc<WebhookNotifier>,
    mode: Mode,
    dialing: PartnerPlaces,
}

/// Why a request was not carried out, worded for the partner.
#[derive(Clone, PartialEq, Eq)]
pub enum NotDone {
    /// The partner has no such endpoint, or nothing by that name.
    NotFound(&'static str),
    /// It cannot be done as requested. Names the field, if it is about one.
    Refused(&'static str, String),
    /// The key that was presented stopped working a moment ago, and how.
    KeyOver(KeyStatus),
    /// Not now, but after this many seconds.
    Later(String, u32),
    /// The store could not be read, or nothing was written. The cause is for the operator.
    Failed(String),
    /// All, some or none of it was done. The cause is for the operator.
    Unknown(String),
}

impl From<StoreError> for NotDone {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unknown(_) => Self::Unknown(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl NotDone {
    /// The same for an action with several steps.
    fn midway(problem: EndpointProblem) -> Self {
        match problem.into() {
            Self::Failed(cause) => Self::Unknown(cause),
            other => other,
        }
    }

    fn busy() -> Self {
        let seconds = u32::try_from(OUTBOUND_TIMEOUT.as_secs()).unwrap_or(u32::MAX);
        let what = format!("Other requests still wait for an endpoint to answer. Try again in {seconds} seconds.");
        Self::Later(what, seconds)
    }
}

#[derive(Clone, PartialEq, Eq)]
pub enum Pinged {
    Answered(u16),
    Failed(String),
}

const NO_ENDPOINT: NotDone = NotDone::NotFound("You have no webhook endpoint with this id; listWebhooks shows yours.");

impl SelfService {
    pub fn new(
        store: Store,
        secret: &Secret,
        client: GuardedClient,
        notifier: Arc<WebhookNotifier>,
        mode: Mode,
    ) -> Self {
        let (secret, client) = (secret.clone(), Arc::new(client));
        Self { store, secret, client, notifier, mode, dialing: PartnerPlaces::new(MAX_DIALING_EACH, MAX_DIALING) }
    }

    pub async fn endpoints(&self, by: &Partner) -> Result<Vec<ListedEndpoint>, NotDone> {
        Ok(self.store.run(ListEndpoints(Some(by.id))).await?)
    }

    /// One of the partner's own endpoints. Another partner's looks the same as one that never existed.
    pub async fn endpoint(&self, by: &Partner, id: EndpointId) -> Result<ListedEndpoint, NotDone> {
        let listed = self.store.run(ListEndpoints(Some(by.id))).await?;
        listed.into_iter().find(|listed| listed.endpoint.id == id).ok_or(NO_ENDPOINT)
    }

    /// Adds an endpoint, if it can be reached. Its secret is shown only this once.
    pub async fn add_endpoint(
        &self,
        by: &Partner,
        url: &str,
        now: Timestamp,
    ) -> Result<(EndpointId, EndpointUrl, WebhookSecret), NotDone> {
        let url = EndpointUrl::parse(url).map_err(|bad| NotDone::Refused("url", bad.to_string()))?;
        if url.is_https() && !url.has_common_port() && !self.client.is_local(&url) {
            let (port, common) = (url.port(), EndpointUrl::common_ports());
            let what =
                format!("you cannot use port {port}; use one of {common}, or ask the operator to add the endpoint");
            return Err(NotDone::Refused("url", what));
        }
        let _place = self.place(by)?;
        let change = self.claim(by, ChangeKind::EndpointAdded, now).await?;
        // Without the path, which may contain one of the partner's tokens.
        let about = format!("{} for {}", url.authority(), by.name.as_str());
        let webhooks = self.webhooks(act(by, "webhooks add", about, Some(change), now));
        let (id, secret) = webhooks.add(by.name.as_str(), &url, now).await?;
        self.notifier.notify_contact();
        Ok((id, url, secret))
    }

    pub async fn remove_endpoint(&self, by: &Partner, id: EndpointId, now: Timestamp) -> Result<(), NotDone> {
        let webhooks = self.on_endpoint(by, id, (ChangeKind::EndpointRemoved, "webhooks remove"), now).await?;
        webhooks.remove(id, MAX_BATCHES, now).await.map_err(NotDone::midway)?;
        self.notifier.notify_contact();
        Ok(())
    }

    pub async fn test_endpoint(&self, by: &Partner, id: EndpointId, now: Timestamp) -> Result<Pinged, NotDone> {
        self.endpoint(by, id).await?;
        let _place = self.place(by)?;
        self.claim(by, ChangeKind::EndpointTested, now).await?;
        let unique = i64::from_be_bytes(random::bytes().map_err(StoreError::from)?);
        let webhooks = self.webhooks(act(by, "webhooks test", String::new(), None, now));
        match webhooks.test(id, unique, now).await {
            Err(problem) if problem.is_ours() => Err(problem.into()),
            Ok(answer) => Ok(Pinged::Answered(answer.status)),
            Err(EndpointProblem::Unanswered(error)) => Ok(Pinged::Failed(unanswered(&error))),
            Err(problem) => Err(problem.into()),
        }
    }

    /// Gives an endpoint its next secret, shown only this once. A refused rotation does not count.
    pub async fn rotate_secret(
        &self,
        by: &Partner,
        id: EndpointId,
        ends_oldest: bool,
        now: Timestamp,
    ) -> Result<WebhookSecret, NotDone> {
        let rotated_at = self.endpoint(by, id).await?.endpoint.rotated_at;
        let is_recent = |at: &Timestamp| !ends_oldest && *at > now.minus(OLD_SECRET_SIGNS_FOR);
        if let Some(at) = rotated_at.filter(is_recent) {
            return Err(EndpointProblem::JustRotated { id, at }.into());
        }
        let change = self.claim(by, ChangeKind::SecretRotated, now).await?;
        let webhooks = self.webhooks(act(by, "webhooks rotate", format!("endpoint {id}"), Some(change), now));
        match webhooks.rotate(id, ends_oldest, now).await {
            Ok(secret) => {
                self.notifier.notify_contact();
                Ok(secret)
            }
            Err(EndpointProblem::Store(error)) => Err(error.into()),
            // Another request was faster.
            Err(refusal) => Err(self.unclaim(change, refusal.into()).await),
        }
    }

    pub async fn enable_endpoint(&self, by: &Partner, id: EndpointId, now: Timestamp) -> Result<(), NotDone> {
        let webhooks = self.on_endpoint(by, id, (ChangeKind::EndpointEnabled, "webhooks enable"), now).await?;
        webhooks.enable(id, MAX_BATCHES, now).await.map_err(NotDone::midway)?;
        self.notify();
        Ok(())
    }

    /// Enables an endpoint, and also sends what happened since a time.
    pub async fn recover_endpoint(
        &self,
        by: &Partner,
        id: EndpointId,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Recovered, NotDone> {
        let webhooks = self.on_endpoint(by, id, (ChangeKind::EndpointEnabled, "webhooks recover"), now).await?;
        let recovered = webhooks.recover(id, since, MAX_BATCHES, now).await.map_err(NotDone::midway)?;
        self.notify();
        Ok(recovered)
    }

    /// Sends an endpoint the outcome of a request again. The contact gets no mail about this.
    pub async fn resend_event(
        &self,
        by: &Partner,
        id: EndpointId,
        key: IdempotencyKey,
        now: Timestamp,
    ) -> Result<(), NotDone> {
        self.endpoint(by, id).await?;
        self.claim(by, ChangeKind::EventResent, now).await?;
        let webhooks = self.webhooks(act(by, "webhooks resend", format!("endpoint {id}"), None, now));
        if !webhooks.resend(id, key, now).await? {
            return Err(NotDone::NotFound(
                "No sign-up of yours with this Idempotency-Key has a result yet, or it was sent more than 30 days ago; nothing is sent.",
            ));
        }
        self.notify();
        Ok(())
    }

    pub async fn keys(&self, by: &Partner) -> Result<Vec<KeyRecord>, NotDone> {
        let listed = self.store.run(ListKeysOf(by.id, MAX_LISTED_KEYS)).await?;
        Ok(listed.into_iter().map(|(key, _)| key).collect())
    }

    /// Issues a successor of the key that was presented, shown only this once. A refused rotation does not count: the holder of
    /// an already rotated key cannot keep the partner from rotating another.
    pub async fn rotate_key(
        &self,
        by: &Partner,
        grace: Duration,
        now: Timestamp,
    ) -> Result<(ApiKey, Rotated), NotDone> {
        if let Some(next) = self.store.run(FindKey(by.key)).await?.and_then(|key| key.replaced_by) {
            return Err(not_rotated(NotRotated::Replaced(by.key, next)));
        }
        let successor = ApiKey::of_mode(self.mode, &random::bytes().map_err(StoreError::from)?);
        let change = self.claim(by, ChangeKind::KeyRotated, now).await?;
        let about = format!("key {} by {}", by.key, successor.id());
        let audited = self.store.audited(act(by, "keys rotate", about, Some(change), now));
        let keys = Keys::new(audited, self.mode);
        match keys.rotate(by.key, &successor, grace, None, true, now).await {
            Ok(rotated) => {
                self.notifier.notify_contact();
                Ok((successor, rotated))
            }
            Err(NotRotated::Store(error)) => Err(error.into()),
            Err(refusal) => Err(self.unclaim(change, not_rotated(refusal)).await),
        }
    }

    /// Ends the key that was presented, even when the day's limit is reached. A key that was revoked a moment ago gets the same answer.
    pub async fn revoke_key(&self, by: &Partner, now: Timestamp) -> Result<RevokedKey, NotDone> {
        let claim = ClaimChange { partner: by.id, key: by.key, kind: ChangeKind::KeyRevoked, now };
        let change = match self.store.run(claim).await? {
            ClaimedChange::Counted(change) => Some(change),
            ClaimedChange::Full(_) | ClaimedChange::Over(_) => None,
        };
        let act = act(by, "keys revoke", format!("key {}", by.key), change, now);
        let revoked = self.store.audited(act).run(RevokeKey(by.key, now)).await?;
        self.notifier.notify_contact();
        revoked.ok_or(NotDone::NotFound("There is no such key."))
    }

    pub async fn usage(&self, by: &Partner, from: i64, to: i64) -> Result<Vec<UsageDay>, NotDone> {
        Ok(self.store.run(ListUsage { partner: by.id, from, to }).await?)
    }

    /// Counts a change to one of the partner's endpoints, and returns the [`Webhooks`] to make it with.
    async fn on_endpoint(
        &self,
        by: &Partner,
        id: EndpointId,
        (kind, command): (ChangeKind, &'static str),
        now: Timestamp,
    ) -> Result<Webhooks, NotDone> {
        self.endpoint(by, id).await?;
        let change = self.claim(by, kind, now).await?;
        Ok(self.webhooks(act(by, command, format!("endpoint {id}"), Some(change), now)))
    }

    async fn claim(&self, by: &Partner, kind: ChangeKind, now: Timestamp) -> Result<i64, NotDone> {
        let again = match self.store.run(ClaimChange { partner: by.id, key: by.key, kind, now }).await? {
            ClaimedChange::Counted(change) => return Ok(change),
            ClaimedChange::Over(status) => return Err(NotDone::KeyOver(status)),
            ClaimedChange::Full(again) => again,
        };
        let what = format!(
            "This can be asked for {} times in 24 hours, over all your keys, and was. Try again at {again}.",
            kind.max_a_day()
        );
        let seconds = again.since(now).as_millis().div_ceil(1000);
        Err(NotDone::Later(what, u32::try_from(seconds).unwrap_or(u32::MAX)))
    }

    /// Uncounts a change that was refused. If that cannot be written, the change still counts, which the partner need not know.
    async fn unclaim(&self, change: i64, refusal: NotDone) -> NotDone {
        let _counts = self.store.run(UnclaimChange(change)).await;
        refusal
    }

    fn place(&self, by: &Partner) -> Result<PlaceOfPartner<'_>, NotDone> {
        self.dialing.take(by.id).ok_or_else(NotDone::busy)
    }

    fn webhooks(&self, act: Act) -> Webhooks {
        Webhooks::new(self.store.audited(act), self.secret.clone(), Arc::clone(&self.client), self.mode)
    }

    /// Wakes the worker: there may be something to deliver, and a contact to mail.
    fn notify(&self) {
        self.notifier.notify();
        self.notifier.notify_contact();
    }
}

/// What a partner does, as the audit log records it.
fn act(by: &Partner, command: &'static str, about: String, change: Option<i64>, now: Timestamp) -> Act {
    let who = format!("partner {}, key {}", by.name.as_str(), by.key);
    Act { who, command, about, at: now, change }
}

impl From<EndpointProblem> for NotDone {
    fn from(problem: EndpointProblem) -> Self {
        match problem {
            problem if problem.is_ours() => Self::busy(),
            EndpointProblem::Store(error) => error.into(),
            EndpointProblem::Unknown(_) => NO_ENDPOINT,
            EndpointProblem::Address(bad) => Self::Refused("url", bad.to_string()),
            EndpointProblem::Refused(refusal) => Self::Refused("url", refused(&refusal)),
            EndpointProblem::Unanswered(error) => Self::Refused("url", unanswered(&error)),
            EndpointProblem::NotAdded(NotAdded::Full) => Self::Refused(
                "url",
                format!("you have {ENDPOINTS_OF_ONE} endpoints, as many as you may; remove one of them first"),
            ),
            EndpointProblem::NotAdded(NotAdded::Known(id)) => Self::Refused(
                "url",
                format!("this is your endpoint {id} already; rotateWebhookSecret gives it another secret"),
            ),
            EndpointProblem::NotAdded(NotAdded::NoPartner) => NO_ENDPOINT,
            EndpointProblem::JustRotated { at, .. } => Self::Refused(
                "now",
                format!(
                    "the secret was rotated at {at}, and the one before it still signs; rotate again after 24 hours, or send true, which \
                 ends the oldest at once"
                ),
            ),
            EndpointProblem::NoSecret(_) | EndpointProblem::MustRotate => Self::Refused("id", problem.to_string()),
            EndpointProblem::Disabled { at, why, .. } => Self::Refused(
                "id",
                format!(
                    "the endpoint is disabled since {at}: {why}; enableWebhook or recoverWebhook lets it have messages again"
                ),
            ),
        }
    }
}

fn not_rotated(problem: NotRotated) -> NotDone {
    let refused = |what: String| NotDone::Refused("", what);
    match problem {
        NotRotated::Store(error) => error.into(),
        NotRotated::Replaced(_, by) => refused(format!(
            "This key was rotated to key {by} before, and a key is rotated once: go on with that one; if you do not know it, somebody \
             else may have this key: ask the operator to revoke {by}"
        )),
        NotRotated::TooMany => refused(format!(
            "{MAX_ENDING_KEYS} of your keys that were rotated still work; wait until one of them ends, or revoke one"
        )),
        NotRotated::Unknown(_) | NotRotated::Over(_) | NotRotated::Suspended(..) => {
            refused("This key no longer works".to_owned())
        }
    }
}
