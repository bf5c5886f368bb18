//! Who can use the operator's page: links and sessions, the tokens of its forms (CSRF), and whether the page exists at all.

use std::collections::HashSet;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;

use super::overview::{KeptOverview, Overview};
use super::running::RunningFindings;
use super::service::ServiceParts;
use super::shared_read::SharedRead;
use super::{Act, Operator};
use crate::clock::Moment;
use crate::domain::api_key::{ApiKey, KeyId, Mode};
use crate::domain::email::EmailAddress;
use crate::domain::operator::{
    AddedOperator, LINK_FOR, LinkState, MailedOperator, OPERATOR_SESSION_FOR, OperatorLink, OperatorName, Role, Roles,
    SECOND_FACTOR_WITHIN,
};
use crate::domain::partner::endpoint::EndpointId;
use crate::domain::remedy::WriteRemedy;
use crate::domain::secret::mark::AddressMarker;
use crate::domain::secret::operator::{FormOwner, FormToken, OperatorProofs, token_hash};
use crate::domain::secret::seal::Sealer;
use crate::domain::secret::session::{NONCE, Nonce};
use crate::domain::secret::{KeyPurpose, Secret};
use crate::domain::time::{Tick, Timestamp};
use crate::log::Log;
use crate::mail::SendError;
use crate::operator::accounts::{
    AddOperator, AreThereOperators, BegunSession, EndOperatorSession, EndSessionsOf, FindOperatorSession, FindRole,
    ForgetMailedLink, FoundSession, LinkOperator, ListMailedOperators, ListOperatorLinks, MailLink, NewLink,
    UseOperatorLink,
};
use crate::outbound::OutboundAnswer;
use crate::partners::webhooks::{EndpointProblem, Webhooks};
use crate::people::People;
use crate::people::erasures::{ErasureLog, NotNoted};
use crate::store::StoreError;
use crate::{random, supervise};

/// How long the answer to "are there operators?" is kept. Anybody can ask, so the store is asked only once in this time.
const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// How long after one try to mail a link the next one is made, and how long all of them may take.
const MAIL_AGAIN_AFTER: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(20)];
const MAIL_WITHIN: Duration = Duration::from_secs(60);

impl NewLink {
    fn of(token: &Nonce, now: Timestamp) -> Self {
        Self { hash: token_hash(token), until: now.plus(LINK_FOR) }
    }
}

impl Operator {
    pub async fn add_operator(
        &self,
        name: &OperatorName,
        role: Role,
        email: Option<EmailAddress>,
        now: Timestamp,
    ) -> Result<(AddedOperator, Nonce), StoreError> {
        let token = new_token()?;
        let link = NewLink::of(&token, now);
        let added = self.store.run(AddOperator { name: name.clone(), role, email, link, now }).await?;
        Ok((added, token))
    }

    /// A new link, which ends those before; none if there is no such operator.
    pub async fn link_operator(&self, name: &OperatorName, now: Timestamp) -> Result<Option<Nonce>, StoreError> {
        let token = new_token()?;
        let linked = self.store.run(LinkOperator(name.clone(), NewLink::of(&token, now))).await?;
        Ok(linked.then_some(token))
    }
}

pub(super) fn new_token() -> Result<Nonce, StoreError> {
    Ok(Nonce::from_random(&random::bytes::<NONCE>()?))
}

#[derive(Clone)]
pub struct SignedInOperator {
    pub name: OperatorName,
    pub roles: Roles,
    pub has_factor: bool,
    /// Whether they have opened a link and not yet typed the code of the second factor.
    pub waits_for_code: bool,
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

    pub(super) fn session_hash(&self) -> Option<String> {
        self.session.as_ref().map(token_hash)
    }

    fn form_owner(&self) -> FormOwner<'_> {
        self.session.as_ref().map_or(FormOwner::Named(&self.name), FormOwner::Session)
    }
}

/// What the page is made of.
pub struct AccessParts {
    pub operator: Operator,
    pub secret: Secret,
    pub erasures: ErasureLog,
    pub findings: RunningFindings,
    pub write_remedy: WriteRemedy,
    pub service: ServiceParts,
    pub require_second_factor: bool,
    /// Whether a proxy says who may do what, so that nobody has to be added.
    pub has_groups: bool,
    /// Whether one person makes what another releases.
    pub two_people: bool,
}

/// The running service's part of the operator's access.
pub struct OperatorAccess {
    /// What the page can do.
    pub operator: Operator,
    pub findings: RunningFindings,
    pub write_remedy: WriteRemedy,
    pub require_second_factor: bool,
    pub two_people: bool,
    has_groups: bool,
    pub service: ServiceParts,
    proofs: OperatorProofs,
    /// Seals second factors, in the records and in the form that sets one up.
    pub(super) factors: Sealer,
    secret: Secret,
    erasures: ErasureLog,
    overview: KeptOverview,
    links: SharedRead<(String, OperatorLink)>,
    mailed: SharedRead<MailedOperator>,
    /// To whom a link is on its way: one at a time for each.
    mailing: SyncMutex<HashSet<OperatorName>>,
    /// Whether there are operators, and when that was read.
    is_on: Mutex<Option<(Tick, bool)>>,
}

impl OperatorAccess {
    pub fn new(parts: AccessParts) -> Self {
        let AccessParts { operator, secret, erasures, findings, write_remedy, service, .. } = parts;
        let AccessParts { require_second_factor, has_groups, two_people, .. } = parts;
        Self {
            operator,
            findings,
            write_remedy,
            service,
            require_second_factor,
            two_people,
            has_groups,
            proofs: OperatorProofs::new(&secret),
            factors: Sealer::new(&secret, KeyPurpose::SecondFactor),
            secret,
            erasures,
            overview: KeptOverview::default(),
            links: SharedRead::default(),
            mailed: SharedRead::default(),
            mailing: SyncMutex::default(),
            is_on: Mutex::default(),
        }
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

    /// Whether this node mails links.
    pub fn mails_links(&self) -> bool {
        self.service.transport.is_some()
    }

    /// Whether any operator was added, or a proxy says who is one. If the store fails, the last answer stands.
    pub async fn is_on(&self, now: Tick) -> bool {
        if self.has_groups {
            return true;
        }
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
        let (links, hash) = (self.links.rows(&self.operator.store, ListOperatorLinks(now)).await?, token_hash(&token));
        Ok(links.iter().find(|(kept, _)| *kept == hash).map(|(_, link)| link.clone()))
    }

    /// Mails a link to the operator with that address, if there is one and none was mailed a short while ago. What is answered, and when,
    /// is the same for every address: the link is made and mailed behind the request's back.
    pub async fn ask_for_link(
        self: &Arc<Self>,
        email: &EmailAddress,
        log: &Log,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let all = self.mailed.rows(&self.operator.store, ListMailedOperators).await?;
        let normalized = email.normalized();
        let due = |operator: &&MailedOperator| operator.email.normalized() == normalized && operator.may_be_mailed(now);
        let Some(operator) = all.iter().find(due).filter(|_| self.mails_links()).cloned() else { return Ok(()) };
        let mailing =
            |access: &Self| access.mailing.lock().unwrap_or_else(PoisonError::into_inner).insert(operator.name.clone());
        if mailing(self) {
            let (access, log) = (Arc::clone(self), log.clone());
            supervise::spawn(async move {
                let name = operator.name.clone();
                if let Err(cause) = access.mail_link(operator, now).await {
                    log.problem(None, &format!("no sign-in link could be mailed to the operator {name}: {cause}"));
                }
                access.mailing.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
            });
        }
        Ok(())
    }

    async fn mail_link(&self, operator: MailedOperator, now: Timestamp) -> Result<(), String> {
        let (composer, Some(transport)) = (&self.service.composer, &self.service.transport) else { return Ok(()) };
        let token = new_token().map_err(|error| error.to_string())?;
        let [wait] = random::bytes::<1>().map_err(|error| error.to_string())?;
        // Whoever asked cannot time what happens now.
        tokio::time::sleep(Duration::from_millis(250 + 4 * u64::from(wait))).await;
        let (link, hash) = (NewLink::of(&token, now), token_hash(&token));
        let kept = self.operator.store.run(MailLink(operator.clone(), link, now)).await;
        if !kept.map_err(|error| error.to_string())? {
            return Ok(());
        }
        let tries = async {
            let mut waits = MAIL_AGAIN_AFTER.iter();
            loop {
                let sent = match composer.operator_link(&operator, token.as_str(), &hash, now) {
                    Ok(mail) => transport.send(mail).await,
                    Err(error) => Err(error),
                };
                match (sent, waits.next()) {
                    (Err(SendError::Later(_) | SendError::NotBefore(_)), Some(wait)) => tokio::time::sleep(*wait).await,
                    (sent, _) => break sent,
                }
            }
        };
        let late = |_| Err(SendError::Later("the mail server did not answer in time".to_owned()));
        let error = match tokio::time::timeout(MAIL_WITHIN, tries).await.unwrap_or_else(late) {
            // It may be there: another would only follow when it is asked for.
            Ok(()) | Err(SendError::Unknown(_)) => return Ok(()),
            Err(error) => error,
        };
        let may_again = error != SendError::Rejected;
        let forgotten = self.operator.store.run(ForgetMailedLink { name: operator.name, hash, may_again }).await;
        Err(forgotten.map_or_else(|lost| format!("{error:?}; {lost}"), |()| format!("{error:?}")))
    }

    pub(super) fn cookie(&self, session: &Nonce) -> String {
        self.proofs.cookie(session)
    }

    /// Signs in with a link and uses it up. Returns the cookie with how long it lasts, or the state of the link if it does not work.
    pub async fn enter(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Result<(String, Duration), Option<OperatorLink>>, StoreError> {
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
        let lasts = match self.operator.audited(act).run(UseOperatorLink { link_hash, session_hash, now }).await? {
            Some(BegunSession::SignedIn) => OPERATOR_SESSION_FOR,
            Some(BegunSession::Waits) => SECOND_FACTOR_WITHIN,
            // Another request used it meanwhile.
            None => return Ok(Err(Some(OperatorLink { state: LinkState::Used, ..link }))),
        };
        Ok(Ok((self.cookie(&session), lasts)))
    }

    /// A new session for somebody who is signed in; returns its cookie. None if they were removed.
    pub async fn enter_again(&self, who: &SignedInOperator, now: Timestamp) -> Result<Option<String>, StoreError> {
        let audited = self.operator.audited(who.act("page sign-in", String::new(), now));
        match audited.link_operator(&who.name, now).await? {
            Some(link) => Ok(self.enter(link.as_str(), now).await?.ok().map(|(cookie, _)| cookie)),
            None => Ok(None),
        }
    }

    pub async fn of_cookie(&self, cookie: &str, now: Timestamp) -> Result<Option<SignedInOperator>, StoreError> {
        let Some(session) = self.proofs.read_cookie(cookie) else { return Ok(None) };
        let found = self.operator.store.run(FindOperatorSession(token_hash(&session), now)).await?;
        Ok(found.map(|FoundSession { name, role, has_factor, waits_for_code }| SignedInOperator {
            name,
            roles: role.into(),
            has_factor,
            waits_for_code,
            session: Some(session),
        }))
    }

    /// The operator that a proxy names: with the roles of the groups that it names, too, or else with the role that they were added with.
    /// None if they have no role. The caller has checked that the proxy is trusted.
    pub async fn of_header(&self, value: &str, groups: Option<Roles>) -> Result<Option<SignedInOperator>, StoreError> {
        let Ok(name) = value.parse::<OperatorName>() else { return Ok(None) };
        let roles = match groups {
            Some(roles) => Some(roles).filter(|roles| roles.may(Role::Look)),
            None => self.operator.store.run(FindRole(name.clone())).await?.map(Roles::from),
        };
        let (has_factor, waits_for_code, session) = (false, false, None);
        Ok(roles.map(|roles| SignedInOperator { name, roles, has_factor, waits_for_code, session }))
    }

    /// Ends the session, so copies of the cookie stop working too.
    pub async fn sign_out(&self, who: &SignedInOperator) -> Result<(), StoreError> {
        match &who.session {
            Some(session) => self.operator.store.run(EndOperatorSession(token_hash(session))).await,
            None => Ok(()),
        }
    }

    /// Ends all their sessions.
    pub async fn sign_out_everywhere(&self, who: &SignedInOperator, now: Timestamp) -> Result<(), StoreError> {
        let act = who.act("operator sign-out", "everywhere".to_owned(), now);
        self.operator.audited(act).run(EndSessionsOf(who.name.clone())).await
    }

    pub fn form_token(&self, who: &SignedInOperator, now: Timestamp) -> String {
        self.proofs.form_token(who.form_owner(), now)
    }

    pub fn read_form_token(&self, who: &SignedInOperator, token: &str, now: Timestamp) -> FormToken {
        self.proofs.read_form_token(who.form_owner(), token, now)
    }
}
