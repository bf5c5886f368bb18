//! Which of the two worlds a request is for: the union's own records, or the sandbox's.
//!
//! The prefix of the key decides, and for the pages that the sandbox's mail leads to, the path. The sandbox is looked for when
//! somebody asks for it, no more than once a second, so that a service which runs learns of the first test key by itself. One
//! that cannot be opened is no trouble of the others'.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hyper::HeaderMap;
use tokio::sync::Mutex;

use super::catalog_snapshot::CatalogSnapshot;
use super::routes::FoundRoute;
use crate::app::{App, Refusal};
use crate::clock::Moment;
use crate::domain::api_key::{ApiKey, Mode};
use crate::domain::catalog::Catalog;
use crate::domain::time::Tick;
use crate::error::{Error, KeyProblem};
use crate::http::request::authorization;
use crate::http::response::error::HttpError;
use crate::operations::Access;
use crate::reply::Reply;
use crate::site::OperatorParts;

/// How long it is believed that there is no sandbox, or none that can be used.
const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// How long a key may be looked up there.
const LOOKED_UP_FOR: Duration = Duration::from_millis(500);

/// Whoever knows where the sandbox's records are.
pub trait FindsSandbox: Send + Sync {
    /// The sandbox, opened once; none where there is none. It never makes one. What is wrong is told to the operator there.
    fn find(&self) -> Reply<'_, Result<Option<Arc<App>>, NoSandbox>>;
}

/// There is one, and it cannot be used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NoSandbox;

/// The sandbox, as requests come to it.
#[derive(Default)]
pub(super) struct SandboxRouter {
    finder: Option<Arc<dyn FindsSandbox>>,
    mcp_origins: Vec<String>,
    snapshot: RwLock<Option<Arc<CatalogSnapshot>>>,
    /// When it was last looked for in vain, and what was found.
    looked: Mutex<Option<(Tick, Result<(), NoSandbox>)>>,
}

impl SandboxRouter {
    pub(super) fn new(finder: Option<Arc<dyn FindsSandbox>>, mcp_origins: Vec<String>) -> Self {
        Self { finder, mcp_origins, ..Self::default() }
    }

    /// Shows another catalog from the next request on.
    pub(super) fn show_catalog(&self, catalog: &Catalog) {
        let mut snapshot = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(shown) = snapshot.as_mut() {
            *shown = Arc::new(shown.with_catalog(catalog.clone()));
        }
    }

    /// What a request for the sandbox is answered by. A key that was never one there is nobody's, and the live records refuse it:
    /// neither does it see the sandbox, nor is it left out of the metrics.
    pub(super) async fn answers(
        &self,
        live: &Arc<CatalogSnapshot>,
        found: Option<FoundRoute<'_>>,
        headers: &HeaderMap,
        now: Moment,
    ) -> Result<Arc<CatalogSnapshot>, HttpError> {
        let is_page = found.is_some_and(|found| found.route.sandbox);
        // What cannot be anybody's key is not worth a look.
        if !is_page && test_key(headers).is_none_or(|key| ApiKey::parse(key).is_err()) {
            return Ok(Arc::clone(live));
        }
        match self.snapshot(live, now.tick).await {
            Ok(Some(snapshot)) if is_page => Ok(snapshot),
            Ok(Some(snapshot)) => {
                let looked_up = snapshot.app.recognize(authorization::of(headers), now.time);
                // Where it cannot say, or not soon, the key is as unknown as one that was made up.
                let is_answered_there = match tokio::time::timeout(LOOKED_UP_FOR, looked_up).await {
                    Ok(Ok(())) => true,
                    // What was somebody's key is told what became of it, as a live one is; public data needs none.
                    Ok(Err(Refusal::Key(
                        KeyProblem::Expired | KeyProblem::Rotated(_) | KeyProblem::Revoked | KeyProblem::Suspended,
                    ))) => found.and_then(|found| found.route.access()) != Some(Access::Public),
                    _ => false,
                };
                Ok(if is_answered_there { snapshot } else { Arc::clone(live) })
            }
            Ok(None) if is_page => Err(HttpError::NotFound("There is nothing at this path.".to_owned())),
            Ok(None) => Ok(Arc::clone(live)),
            Err(NoSandbox) => Err(match found.and_then(|found| found.route.access()) {
                // The operator has read why, once.
                Some(Access::Public | Access::Partner | Access::Operator) => {
                    Error::Unavailable { cause: String::new() }.into()
                }
                Some(Access::Agent) => Error::SaveFailed { cause: String::new() }.into(),
                None => HttpError::NotReady,
            }),
        }
    }

    async fn snapshot(&self, live: &CatalogSnapshot, now: Tick) -> Result<Option<Arc<CatalogSnapshot>>, NoSandbox> {
        if let Some(snapshot) = self.opened() {
            return Ok(Some(snapshot));
        }
        let Some(finder) = &self.finder else { return Ok(None) };
        // Whoever comes while it is looked for waits for the one answer.
        let mut looked = self.looked.lock().await;
        if let Some(snapshot) = self.opened() {
            return Ok(Some(snapshot));
        }
        if let Some((at, result)) = *looked
            && now.since(at) < BELIEVED_FOR
        {
            return result.map(|()| None);
        }
        let found = finder.find().await;
        *looked = Some((now, found.as_ref().map(|_| ()).map_err(|error| *error)));
        let Some(app) = found? else { return Ok(None) };
        // The catalog may have been read again since the start.
        let app = app.with_catalog(live.app.union.catalog.clone());
        let snapshot = Arc::new(CatalogSnapshot::new(
            app,
            Arc::clone(&live.branding),
            self.mcp_origins.clone(),
            None,
            OperatorParts::default(),
        ));
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&snapshot));
        Ok(Some(snapshot))
    }

    fn opened(&self) -> Option<Arc<CatalogSnapshot>> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether a request is for the sandbox.
pub(super) fn is_asked_for(found: Option<FoundRoute<'_>>, headers: &HeaderMap) -> bool {
    found.is_some_and(|found| found.route.sandbox || (found.route.takes_key && test_key(headers).is_some()))
}

/// What is sent as a test key, be it one or not.
fn test_key(headers: &HeaderMap) -> Option<&str> {
    let text = std::str::from_utf8(authorization::of(headers)?).ok()?.trim();
    let (_scheme, key) = text.split_once(' ')?;
    Some(key.trim()).filter(|key| Mode::of_text(key) == Mode::Test)
}

#[cfg(test)]
mod tests {
    use hyper::header::{AUTHORIZATION, HeaderValue};

    use super::*;
    use crate::server::routes;

    #[test]
    fn keys_and_paths_say_which_world_is_asked() {
        let asked = |path: &str, authorization: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(authorization));
            is_asked_for(routes::find(path), &headers)
        };
        for path in ["/v1/stats", "/v1/invite", "/v1/referral-link", "/mcp"] {
            assert!(asked(path, "Bearer uh_test_") && asked(path, "bearer  uh_test_0123"), "{path}");
            assert!(!asked(path, "Bearer uh_0123") && !asked(path, "uh_test_0123") && !asked(path, ""), "{path}");
            assert!(!is_asked_for(routes::find(path), &HeaderMap::new()));
        }
        for path in ["/", "/join", "/confirm/abc", "/readyz", "/openapi.json", "/nothing"] {
            assert!(!asked(path, "Bearer uh_test_0123"), "{path}");
        }
        for path in
            ["/sandbox/confirm/abc", "/sandbox/not-me/abc", "/sandbox/joinus1", "/sandbox/inbox/a", "/sandbox/me"]
        {
            assert!(asked(path, "Bearer uh_0123"), "{path}");
        }
    }
}
