//! The only way to call an operation: authenticate → rate limit → decode → run → respond.
//!
//! REST and MCP both use it, so that keys, rate limits and errors are the same in every channel.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;

use super::{ALL, Access, Caller, Entry, Lifetime, OperationAnswer};
use crate::app::App;
use crate::clock::Moment;
use crate::domain::api_key::KeyId;
use crate::domain::partner::idempotency::{BadIdempotencyKey, IdempotencyKey};
use crate::domain::sign_up::{Channel, ClientName, Partner};
use crate::error::{Error, MaybeOperations, RefusedCall};
use crate::keys::{Holder, Refusal};
use crate::limiter::{Bucket, Class, Subject, Verdict};

/// What a channel knows of a call before its body is read.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The `Authorization` header, whatever is in it.
    pub authorization: Option<&'a [u8]>,
    pub address: IpAddr,
    pub now: Moment,
    pub channel: Channel,
    /// What the client calls itself, if it says so.
    pub client: Option<&'a str>,
    /// Its `Idempotency-Key`, where the channel takes one.
    pub idempotency_key: Option<&'a Result<IdempotencyKey, BadIdempotencyKey>>,
}

/// What is known of a call while it goes on, for the log: its caller may hang up at any moment.
#[derive(Default)]
pub struct CallTrace {
    pub key: Option<KeyId>,
    /// What it was refused with.
    pub refusal: Option<RefusedCall>,
    /// It may be waiting, because its caller asked for that; and for how long it did, once it is over.
    pub may_wait: bool,
    pub waited: Duration,
}

/// What came of it, and what the channel may say besides.
pub struct Dispatched<E> {
    pub result: Result<Bytes, E>,
    /// The caller's budget, once it was asked for.
    pub budget: Option<Budget>,
    /// It is what an earlier request with the same idempotency key was answered.
    pub replayed: bool,
}

/// What is left of a caller's budget.
#[derive(Clone, Copy)]
pub struct Budget {
    pub class: Class,
    pub limit: u32,
    pub verdict: Verdict,
}

/// Calls operations, and keeps the answers that stay the same as long as its catalog.
pub struct Dispatcher {
    app: Arc<App>,
    /// One for each operation, made on its first request.
    fixed: Vec<OnceLock<Bytes>>,
}

impl Dispatcher {
    pub fn new(app: Arc<App>) -> Arc<Self> {
        Arc::new(Self { app, fixed: ALL.iter().map(|_| OnceLock::new()).collect() })
    }

    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Calls `operation`. The body is asked for only once the key and the limit are passed, and only if the operation takes
    /// one; `E` is what else can go wrong while it is read. `trace` gets a valid key as soon as it is seen: the caller may
    /// hang up before there is an answer.
    pub async fn dispatch<E: From<Error> + MaybeOperations>(
        &self,
        operation: &'static Entry,
        call: Call<'_>,
        trace: &mut CallTrace,
        body: impl AsyncFnOnce() -> Result<Bytes, E>,
    ) -> Dispatched<E> {
        let mut budget = None;
        let result = self.run(operation, call, body, &mut budget, trace).await;
        trace.refusal = result.as_ref().err().and_then(E::operations).and_then(Error::refusal);
        let replayed = result.as_ref().is_ok_and(|answer| answer.replayed);
        Dispatched { result: result.map(|answer| answer.json), budget, replayed }
    }

    /// The same for a caller who has the whole body.
    pub async fn call(&self, operation: &'static Entry, call: Call<'_>, body: Bytes) -> Result<Bytes, Error> {
        self.dispatch(operation, call, &mut CallTrace::default(), async || Ok(body)).await.result
    }

    async fn run<E: From<Error>>(
        &self,
        operation: &'static Entry,
        call: Call<'_>,
        body: impl AsyncFnOnce() -> Result<Bytes, E>,
        budget: &mut Option<Budget>,
        trace: &mut CallTrace,
    ) -> Result<OperationAnswer, E> {
        let app = &self.app;
        let holder = authenticate(app, operation.spec.access, call).await?;
        trace.key = holder.as_ref().map(|holder| holder.record.id);

        let mut limit = u32::MAX;
        if operation.spec.access != Access::Operator {
            let spent = spend(app, operation.spec.access, call, holder.as_ref()).await;
            *budget = Some(spent);
            limit = spent.limit;
            if !spent.verdict.admitted {
                return Err(Error::RateLimited { limit, retry_after: spent.verdict.reset_seconds() }.into());
            }
        }

        let fixed = (operation.spec.answer == Lifetime::Fixed).then(|| &self.fixed[operation.position]);
        if let Some(kept) = fixed.and_then(OnceLock::get) {
            return Ok(OperationAnswer { json: kept.clone(), replayed: false, waited: Duration::ZERO });
        }
        let body = if operation.reads_input { body().await? } else { Bytes::new() };
        let partner = holder.as_ref().map(|Holder { record, .. }| Partner {
            key: record.id,
            id: record.partner_id,
            name: record.partner.clone(),
        });
        let client = call.client.and_then(ClientName::new);
        let idempotency_key = call.idempotency_key.filter(|_| operation.spec.access == Access::Agent).cloned();
        let (now, channel) = (call.now.time, call.channel);
        let (replayed, waited) = (AtomicBool::new(false), AtomicU64::new(0));
        let caller = Caller { partner, now, channel, client, limit, idempotency_key, replayed, waited };
        trace.may_wait = operation.spec.answer == Lifetime::Awaited;
        let answer = (operation.run)(app, caller, body).await?;
        if let Some(holder) = holder.filter(|_| operation.spec.effects.sends_mail()) {
            holder.uses.note_sign_up();
        }
        (trace.may_wait, trace.waited) = (false, answer.waited);
        if let Some(place) = fixed {
            // Two first requests at once make the same answer; either may stay.
            let _kept_already = place.set(answer.json.clone());
        }
        Ok(answer)
    }
}

/// A valid key, or none where none is needed: on public data an invalid key counts as no key.
async fn authenticate(app: &Arc<App>, access: Access, call: Call<'_>) -> Result<Option<Holder>, Error> {
    if access == Access::Operator || access == Access::Public && call.authorization.is_none() {
        return Ok(None);
    }
    match app.authenticate(call.authorization, call.now.time).await {
        Ok(holder) => Ok(Some(holder)),
        // The sandbox has nothing that is public: a key that no longer opens it shows no other count.
        Err(_) if access == Access::Public && !app.is_sandbox() => Ok(None),
        Err(Refusal::Key(problem)) => Err(Error::AgentUnauthorized(problem)),
        Err(Refusal::Store(error)) if access == Access::Agent => Err(Error::unsaved(error)),
        Err(Refusal::Store(error)) => Err(Error::unread(error)),
    }
}

async fn spend(app: &App, access: Access, call: Call<'_>, holder: Option<&Holder>) -> Budget {
    let class = access.class();
    let subject = match holder {
        Some(holder) => Subject::Key(holder.record.id),
        None => Subject::Network(call.address.into()),
    };
    let limit = match holder {
        Some(holder) if access == Access::Agent => holder.record.per_minute.unwrap_or(app.union.key_per_minute),
        _ => app.union.public_per_minute,
    };
    let verdict = app.spend(Bucket { class, subject }, limit, call.now.tick).await;
    Budget { class, limit, verdict }
}
