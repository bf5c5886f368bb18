//! The parts of the service put together: what operations and transports share.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;

use crate::domain::api_key::KeyId;
use crate::domain::catalog::Catalog;
use crate::domain::referral::CodeMaker;
use crate::domain::secret::Secret;
use crate::domain::time::Timestamp;
use crate::domain::token::TokenMaker;
use crate::error::Error;
use crate::limiter::{Bucket, Class, Limiter, Tick, Verdict};
use crate::log::Log;
use crate::mail::Desk;
use crate::operations::authenticate::KeyRing;
use crate::operations::{self, Entry};
use crate::store::Store;

/// How long the store may take to show that it takes writes.
const CHECK_PATIENCE: Duration = Duration::from_secs(2);

/// What an [`App`] is made of.
#[derive(Debug)]
pub struct Parts {
    pub name: String,
    /// Where this API is reached, without a slash at the end.
    pub base_url: String,
    /// Where people join, without a slash at the end.
    pub join_site: String,
    pub contact_email: Option<String>,
    /// Where letters reach the union.
    pub postal: Option<String>,
    pub catalog: Catalog,
    pub secret: Secret,
    pub store: Arc<dyn Store>,
    pub limiter: Arc<dyn Limiter>,
    pub log: Log,
    pub public_per_minute: u32,
    pub key_per_minute: u32,
    pub mail: Mail,
}

/// What happens to mail here.
#[derive(Debug, Clone)]
pub enum Mail {
    /// None can be sent, so nobody could ever confirm: no sign-ups.
    Off,
    /// It waits in the outbox for another node.
    Held,
    /// A worker of this process sends it.
    Sent(Arc<Desk>),
}

/// A word on each part that may be in another state than it should, and leaves the node of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    pub mail: &'static str,
    pub limits: &'static str,
}

#[derive(Debug)]
pub struct App {
    parts: Parts,
    pub codes: CodeMaker,
    pub tokens: TokenMaker,
    pub keys: KeyRing,
    /// Refusals by class, and failures of the store.
    rate_limited: [AtomicU64; Class::ALL.len()],
    store_errors: AtomicU64,
    /// The answers that stay the same while the server runs, each made on its first request.
    fixed: Vec<OnceLock<Bytes>>,
}

/// An app is its parts and what was made of them: `app.catalog` rather than `app.parts.catalog`, at every use.
impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl App {
    pub fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            codes: CodeMaker::new(&parts.secret),
            tokens: TokenMaker::new(&parts.secret),
            keys: KeyRing::default(),
            rate_limited: Default::default(),
            store_errors: AtomicU64::new(0),
            fixed: operations::ALL.iter().map(|_| OnceLock::new()).collect(),
            parts,
        })
    }

    /// Refuses an agent action where mail is switched off.
    pub fn require_sign_ups(&self) -> Result<(), Error> {
        if matches!(self.mail, Mail::Off) { Err(Error::BackendNotConfigured) } else { Ok(()) }
    }

    /// Draws on a budget; every limited request comes through here.
    pub async fn spend(&self, bucket: Bucket, limit: u32, now: Tick) -> Verdict {
        let verdict = self.limiter.check(bucket, limit, now).await;
        if !verdict.admitted {
            self.rate_limited[bucket.class as usize].fetch_add(1, Ordering::Relaxed);
        }
        verdict
    }

    pub fn rate_limited(&self, class: Class) -> u64 {
        self.rate_limited[class as usize].load(Ordering::Relaxed)
    }

    /// The store failed a request; `cause` is for the operator.
    pub fn report_store(&self, request_id: Option<&str>, cause: &str) {
        self.store_errors.fetch_add(1, Ordering::Relaxed);
        self.log.problem(request_id, cause);
    }

    pub fn store_errors(&self) -> u64 {
        self.store_errors.load(Ordering::Relaxed)
    }

    /// There is new mail in the outbox.
    pub fn mail_waits(&self) {
        if let Mail::Sent(desk) = &self.mail {
            desk.ring();
        }
    }

    /// How things are while the store can be used; or why it cannot, for the operator.
    pub async fn readiness(&self) -> Result<Readiness, String> {
        let checked = tokio::time::timeout(CHECK_PATIENCE, self.store.check()).await;
        checked.map_err(|_| "the store does not take writes".to_owned())?.map_err(|error| error.to_string())?;
        let mail = match &self.mail {
            Mail::Off => "off",
            Mail::Held => "held",
            // Sign-ups are taken and their mail waits: a node whose mail does not go is still of use.
            Mail::Sent(desk) if desk.is_failing() => "failing",
            Mail::Sent(_) => "sent",
        };
        // A node that counts alone is of use as well.
        Ok(Readiness { mail, limits: self.limiter.standing().scope.name() })
    }

    pub fn fixed_answer(&self, operation: &Entry) -> Option<Bytes> {
        self.fixed[operation.position].get().cloned()
    }

    pub fn keep_answer(&self, operation: &Entry, answer: Bytes) {
        // Two first requests at once make the same answer; either may stay.
        let _kept_already = self.fixed[operation.position].set(answer);
    }

    /// Writes down that a key was used, behind the request's back.
    pub fn touch_key(self: &Arc<Self>, id: KeyId, now: Timestamp) {
        let app = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = app.store.touch_key(id, now).await {
                app.report_store(None, &format!("the last use of key {id} was not recorded: {error}"));
            }
        });
    }
}
