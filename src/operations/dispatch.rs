//! The one way to call an operation: authenticate → limit → decode → run → answer.
//!
//! Every transport comes through here, so that keys, limits and errors are the same whichever door a caller uses.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::authenticate::{Holder, Refusal};
use super::{Access, Caller, Entry, Lifetime};
use crate::app::App;
use crate::clock::Moment;
use crate::domain::api_key::KeyId;
use crate::domain::signup::Partner;
use crate::error::Error;
use crate::limiter::{Bucket, Class, Subject, Verdict};

/// What a transport knows of a call before its body is read.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The `Authorization` header, whatever is in it.
    pub authorization: Option<&'a [u8]>,
    pub address: IpAddr,
    pub now: Moment,
}

/// What came of it, and what the transport may say besides.
#[derive(Debug)]
pub struct Outcome<E> {
    pub result: Result<Bytes, E>,
    /// The caller's budget, once it was asked for.
    pub budget: Option<Budget>,
}

/// What is left of a caller's budget.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    pub class: Class,
    pub limit: u32,
    pub verdict: Verdict,
}

/// Calls `operation`. The body is asked for only once the key and the limit are passed, and only if the operation takes
/// one; `E` is whatever else can go wrong while the transport reads it. `key` is told as soon as a valid one is seen: the
/// caller may hang up before there is an outcome.
pub async fn dispatch<E: From<Error>>(
    app: &Arc<App>,
    operation: &'static Entry,
    call: Call<'_>,
    key: &mut Option<KeyId>,
    body: impl AsyncFnOnce() -> Result<Bytes, E>,
) -> Outcome<E> {
    let mut budget = None;
    let result = run(app, operation, call, body, &mut budget, key).await;
    Outcome { result, budget }
}

async fn run<E: From<Error>>(
    app: &Arc<App>,
    operation: &'static Entry,
    call: Call<'_>,
    body: impl AsyncFnOnce() -> Result<Bytes, E>,
    budget: &mut Option<Budget>,
    key: &mut Option<KeyId>,
) -> Result<Bytes, E> {
    let holder = authenticate(app, operation.spec.access, call).await?;
    *key = holder.as_ref().map(|holder| holder.record.id);

    let spent = spend(app, operation.spec.access, call, holder.as_ref()).await;
    *budget = Some(spent);
    if !spent.verdict.admitted {
        return Err(Error::RateLimited { limit: spent.limit, retry_after: spent.verdict.reset_seconds() }.into());
    }

    if let Some(answer) = app.fixed_answer(operation) {
        return Ok(answer);
    }
    let body = if operation.takes_input { body().await? } else { Bytes::new() };
    let partner = holder.map(|holder| Partner { key: holder.record.id, name: holder.record.partner.clone() });
    let caller = Caller { partner, now: call.now.time };
    let answer = (operation.run)(app, caller, body).await?;
    if operation.spec.answer == Lifetime::Fixed {
        app.keep_answer(operation, answer.clone());
    }
    Ok(answer)
}

/// A valid key, or none where none is needed: on public data an invalid key counts as no key.
async fn authenticate(app: &Arc<App>, access: Access, call: Call<'_>) -> Result<Option<Holder>, Error> {
    if access == Access::Public && call.authorization.is_none() {
        return Ok(None);
    }
    match app.keys.authenticate(&*app.store, call.authorization, call.now.time).await {
        Ok(holder) => {
            if holder.touch {
                app.touch_key(holder.record.id, call.now.time);
            }
            Ok(Some(holder))
        }
        Err(_) if access == Access::Public => Ok(None),
        Err(Refusal::Key(problem)) => Err(Error::AgentUnauthorized(problem)),
        Err(Refusal::Store(error)) => Err(Error::SaveFailed { cause: error.to_string() }),
    }
}

async fn spend(app: &App, access: Access, call: Call<'_>, holder: Option<&Holder>) -> Budget {
    let class = access.class();
    let (subject, limit) = match (holder, access) {
        (None, _) => (Subject::Network(call.address.into()), app.public_per_minute),
        (Some(holder), Access::Public) => (Subject::Key(holder.record.id), app.public_per_minute),
        (Some(holder), Access::Agent) => {
            (Subject::Key(holder.record.id), holder.record.per_minute.unwrap_or(app.key_per_minute))
        }
    };
    let verdict = app.spend(Bucket { class, subject }, limit, call.now.tick).await;
    Budget { class, limit, verdict }
}
