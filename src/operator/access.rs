//! Who can use the operator's page: links and sessions, the tokens of its forms (CSRF), and whether the page exists at all.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::links::SharedLinks;
use super::overview::{KeptOverview, Overview};
use super::running::RunningFindings;
use super::service::ServiceParts;
use super::{Act, Operator};
use crate::clock::Moment;
use crate::domain::api_key::{ApiKey, KeyId, Mode};
use crate::domain::operator::{AddedOperator, LINK_FOR, LinkState, OPERATOR_SESSION_FOR, OperatorLink, OperatorName};
use crate::domain::partner::endpoint::EndpointId;
use crate::domain::remedy::WriteRemedy;
use crate::domain::secret::Secret;
use crate::domain::secret::mark::AddressMarker;
use crate::domain::secret::operator::{FormOwner, FormToken, OperatorProofs, token_hash};
use crate::domain::secret::session::{NONCE, Nonce};
use crate::domain::time::{Tick, Timestamp};
use crate::operator::accounts::{
    AddOperator, AreThereOperators, EndOperatorSession, FindOperatorSession, HasOperator, LinkOperator, UseOperatorLink,
};
use crate::outbound::OutboundAnswer;
use crate::partners::webhooks::{EndpointProblem, Webhooks};
use crate::people::People;
use crate::people::erasures::{ErasureLog, NotNoted};
use crate::random;
use crate::store::StoreError;

/// How long the answer to "are there operators?" is kept. Anybody can ask, so the store is asked only once in this time.
const BELIEVED_FOR: Duration = Duration::from_secs(1);

impl Operator {
    pub async fn add_operator(
        &self,
        name: &OperatorName,
        now: Timestamp,
    ) -> Result<(AddedOperator, Nonce), StoreError> {
        let token = new_token()?;
        let (link_hash, link_until) = (token_hash(&token), now.plus(LINK_FOR));
        let added = self.store.run(AddOperator { name: name.clone(), link_hash, link_until, now }).await?;
        Ok((added, token))
    }

    /// A new link, which ends the previous one; none if there is no such operator.
    pub async fn link_operator(&self, name: &OperatorName, now: Timestamp) -> Result<Option<Nonce>, StoreError> {
        let token = new_token()?;
        let (link_hash, link_until) = (token_hash(&token), now.plus(LINK_FOR));
        let linked = self.store.run(LinkOperator { name: name.clone(), link_hash, link_until }).await?;
        Ok(linked.then_some(token))
    }
}

fn new_token() -> Result<Nonce, StoreError> {
    Ok(Nonce::from_random(&random::bytes::<NONCE>()?))
}

#[derive(Clone)]
pub struct SignedInOperator {
    pub name: OperatorName,
    /// None if a proxy names the operator in a header.
    session: Option<Nonce>,
}

impl SignedInOperator {
    /// What the operator does right now; `about` never holds an address.
    pub fn act(&self, command: &'static str, about: String, now: Timestamp) -> Act {
        Act { who: self.name.on_the_page(), command, about, at: now, change: None }
    }

    /// Whether they can sign out here. If a proxy names them, they sign out there.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    fn form_owner(&self) -> FormOwner<'_> {
        self.session.as_ref().map_or(FormOwner::Named(&self.name), FormOwner::Session)
    }
}

/// The running service's part of the operator's access.
pub struct OperatorAccess {
    /// What the page can do.
    pub operator: Operator,
    pub findings: RunningFindings,
    pub write_remedy: WriteRemedy,
    pub service: ServiceParts,
    proofs: OperatorProofs,
    secret: Secret,
    erasures: ErasureLog,
    overview: KeptOverview,
    links: SharedLinks,
    /// Whether there are operators, and when that was read.
    is_on: Mutex<Option<(Tick, bool)>>,
}

impl OperatorAccess {
    pub fn new(
        operator: Operator,
        secret: Secret,
        erasures: ErasureLog,
        findings: RunningFindings,
        write_remedy: WriteRemedy,
        service: ServiceParts,
    ) -> Self {
        let proofs = OperatorProofs::new(&secret);
        let (overview, links) = (KeptOverview::default(), SharedLinks::default());
        let is_on = Mutex::default();
        Self { operator, findings, write_remedy, service, proofs, secret, erasures, overview, links, is_on }
    }

    /// People, with the audit log recording every change as this operator's act.
    pub fn people(&self, act: Act) -> People {
        self.operator.audited(act).people(&self.secret, self.erasures.clone())
    }

    /// Finds people who were erased by their address.
    pub fn marker(&self) -> AddressMarker {
        AddressMarker::new(&self.secret)
    }

    /// Lets a later restore know that a key was revoked.
    pub async fn note_revoked(&self, key: KeyId, at: Timestamp) -> Result<(), NotNoted> {
        self.erasures.note_revoked(key, at).await
    }

    /// A one-time name for a form that makes a key.
    pub fn new_form(&self) -> Result<Nonce, StoreError> {
        new_token()
    }

    /// The key that such a form makes. Sending the form again gives the same key, which is issued once.
    pub fn key_of_form(&self, form: &str, mode: Mode) -> Option<ApiKey> {
        Some(ApiKey::of_mode(mode, &self.proofs.key_bytes(&Nonce::read(form)?)))
    }

    /// Webhook endpoints, with the audit log recording every change as this act.
    pub fn webhooks(&self, act: Act) -> Webhooks {
        self.operator.audited(act).webhooks(self.secret.clone(), Arc::clone(&self.service.client))
    }

    /// Sends a test message to an endpoint.
    pub async fn test_endpoint(
        &self,
        act: Act,
        id: EndpointId,
        now: Timestamp,
    ) -> Result<OutboundAnswer, EndpointProblem> {
        self.operator.note(act.clone()).await?;
        let unique = i64::from_be_bytes(random::bytes().map_err(StoreError::from)?);
        self.webhooks(act).test(id, unique, now).await
    }

    /// The figures on the page, less than a minute old.
    pub async fn overview(&self, now: Moment) -> Result<Arc<Overview>, StoreError> {
        self.overview.get(&self.operator, now).await
    }

    /// Whether any operator was added. If the store fails, the last answer stands.
    pub async fn is_on(&self, now: Tick) -> bool {
        let mut known = self.is_on.lock().await;
        if let Some((at, is_on)) = *known
            && now.since(at) < BELIEVED_FOR
        {
            return is_on;
        }
        let before = known.is_some_and(|(_, is_on)| is_on);
        let is_on = self.operator.store.run(AreThereOperators).await.unwrap_or(before);
        *known = Some((now, is_on));
        is_on
    }

    pub async fn find_link(&self, token: &str, now: Timestamp) -> Result<Option<OperatorLink>, StoreError> {
        let Some(token) = Nonce::read(token) else { return Ok(None) };
        self.links.find(&self.operator.store, &token_hash(&token), now).await
    }

    /// Signs in with a link and uses it up. Returns the cookie, or the state of the link if it does not work.
    pub async fn enter(&self, token: &str, now: Timestamp) -> Result<Result<String, Option<OperatorLink>>, StoreError> {
        let Some(token) = Nonce::read(token) else { return Ok(Err(None)) };
        let link = match self.find_link(token.as_str(), now).await? {
            Some(link) if link.state == LinkState::Works => link,
            // Nothing is written for a link that does not work.
            other => return Ok(Err(other)),
        };
        let session = new_token()?;
        let act =
            Act { who: link.name.on_the_page(), command: "page sign-in", about: String::new(), at: now, change: None };
        let (link_hash, session_hash) = (token_hash(&token), token_hash(&session));
        let enter = UseOperatorLink { link_hash, session_hash, until: now.plus(OPERATOR_SESSION_FOR), now };
        match self.operator.audited(act).run(enter).await? {
            true => Ok(Ok(self.proofs.cookie(&session))),
            // Another request used it meanwhile.
            false => Ok(Err(Some(OperatorLink { state: LinkState::Used, ..link }))),
        }
    }

    /// A new session for somebody who is signed in; returns its cookie. None if they were removed.
    pub async fn enter_again(&self, who: &SignedInOperator, now: Timestamp) -> Result<Option<String>, StoreError> {
        let audited = self.operator.audited(who.act("page sign-in", String::new(), now));
        match audited.link_operator(&who.name, now).await? {
            Some(link) => Ok(self.enter(link.as_str(), now).await?.ok()),
            None => Ok(None),
        }
    }

    pub async fn of_cookie(&self, cookie: &str, now: Timestamp) -> Result<Option<SignedInOperator>, StoreError> {
        let Some(session) = self.proofs.read_cookie(cookie) else { return Ok(None) };
        let found = self.operator.store.run(FindOperatorSession(token_hash(&session), now)).await?;
        Ok(found.map(|name| SignedInOperator { name, session: Some(session) }))
    }

    /// The operator that a proxy names, if they were added. The caller has checked that the proxy is trusted.
    pub async fn of_header(&self, value: &str) -> Result<Option<SignedInOperator>, StoreError> {
        let Ok(name) = value.parse::<OperatorName>() else { return Ok(None) };
        let found = self.operator.store.run(HasOperator(name.clone())).await?;
        Ok(found.then_some(SignedInOperator { name, session: None }))
    }

    /// Ends the session, so copies of the cookie stop working too.
    pub async fn sign_out(&self, who: &SignedInOperator) -> Result<(), StoreError> {
        match &who.session {
            Some(session) => self.operator.store.run(EndOperatorSession(token_hash(session))).await,
            None => Ok(()),
        }
    }

    pub fn form_token(&self, who: &SignedInOperator, now: Timestamp) -> String {
        self.proofs.form_token(who.form_owner(), now)
    }

    pub fn read_form_token(&self, who: &SignedInOperator, token: &str, now: Timestamp) -> FormToken {
        self.proofs.read_form_token(who.form_owner(), token, now)
    }
}
