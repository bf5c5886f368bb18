//! The parts of the service put together: what operations and transports share.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::domain::api_key::KeyId;
use crate::domain::catalog::Catalog;
use crate::domain::referral::CodeMaker;
use crate::domain::secret::Secret;
use crate::domain::time::Timestamp;
use crate::error::Error;
use crate::limiter::Limiter;
use crate::log::Log;
use crate::operations::authenticate::KeyRing;
use crate::operations::{self, Entry};
use crate::store::Store;

/// What an [`App`] is made of.
#[derive(Debug)]
pub struct Parts {
    pub name: String,
    /// Where this API is reached, without a slash at the end.
    pub base_url: String,
    /// Where people join, without a slash at the end.
    pub join_site: String,
    pub contact_email: Option<String>,
    pub catalog: Catalog,
    pub secret: Secret,
    pub store: Arc<dyn Store>,
    pub limiter: Arc<dyn Limiter>,
    pub log: Log,
    pub public_per_minute: u32,
    pub key_per_minute: u32,
    /// False where no mail can be sent: nobody could ever confirm.
    pub takes_sign_ups: bool,
}

#[derive(Debug)]
pub struct App {
    pub name: String,
    pub base_url: String,
    pub join_site: String,
    pub contact_email: Option<String>,
    pub catalog: Catalog,
    pub codes: CodeMaker,
    pub keys: KeyRing,
    pub store: Arc<dyn Store>,
    pub limiter: Arc<dyn Limiter>,
    pub log: Log,
    pub public_per_minute: u32,
    pub key_per_minute: u32,
    takes_sign_ups: bool,
    /// The answers that stay the same while the server runs, each made on its first request.
    fixed: Vec<OnceLock<Bytes>>,
}

impl App {
    pub fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            codes: CodeMaker::new(&parts.secret),
            keys: KeyRing::default(),
            fixed: operations::ALL.iter().map(|_| OnceLock::new()).collect(),
            name: parts.name,
            base_url: parts.base_url,
            join_site: parts.join_site,
            contact_email: parts.contact_email,
            catalog: parts.catalog,
            store: parts.store,
            limiter: parts.limiter,
            log: parts.log,
            public_per_minute: parts.public_per_minute,
            key_per_minute: parts.key_per_minute,
            takes_sign_ups: parts.takes_sign_ups,
        })
    }

    /// Refuses an agent action where mail is switched off.
    pub fn require_sign_ups(&self) -> Result<(), Error> {
        if self.takes_sign_ups { Ok(()) } else { Err(Error::BackendNotConfigured) }
    }

    /// Whether the store can be used, with a word on mail; or why not, for the operator.
    pub async fn readiness(&self) -> Result<&'static str, String> {
        self.store.member_count().await.map_err(|error| error.to_string())?;
        Ok(if self.takes_sign_ups { "held" } else { "off" })
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
                app.log.problem(None, &format!("the last use of key {id} was not recorded: {error}"));
            }
        });
    }
}
