//! A member's own page: signing in by mail, the session, and what they do there themselves.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::answers::Answers;
use crate::domain::campaign::{CampaignMail, CampaignSlug};
use crate::domain::email::EmailAddress;
use crate::domain::language::Language;
use crate::domain::mail::MailKind;
use crate::domain::mail::lane::Lane;
use crate::domain::person::{Erased, Leaving, Lifted, PersonDetails, RetentionTimes, Waiver};
use crate::domain::secret::Secret;
use crate::domain::secret::mark::AddressMarker;
use crate::domain::secret::session::{NONCE, Nonce, SessionCookie, SessionMaker, SignedInBy};
use crate::domain::secret::token::{Purpose, TokenMaker};
use crate::domain::sign_in::{SESSION_FOR, SignInCode};
use crate::domain::time::Timestamp;
use crate::membership::pad_response_time;
use crate::people::choices::{
    ChangeAnswers, ChooseLanguage, ChooseMail, EndSession, EndSessions, FindOwn, IsUnsubscribed, Unsubscribe,
};
use crate::people::erasures::ErasureLog;
use crate::people::sign_in::{
    AskSignIn, EnterByJoining, FindCampaignOfSignIn, FindSignIn, SignedIn, TryCode, UseSignIn,
};
use crate::people::{NotErased, People};
use crate::store::audit::{Act, BY_THEMSELVES};
use crate::store::{Store, StoreError};
use crate::{random, rewards};

/// Sign-in answers are sent at multiples of this, whatever the state of the address; it is longer than any of them takes.
const RESPONSE_TIME_STEP: Duration = Duration::from_millis(100);

pub struct OwnPages {
    store: Store,
    sessions: SessionMaker,
    tokens: TokenMaker,
    marker: AddressMarker,
    erasures: ErasureLog,
    /// How long data about people is kept, as the pages show it.
    pub times: RetentionTimes,
}

pub struct Entered {
    pub cookie: String,
    pub token: String,
    pub campaign: Option<CampaignSlug>,
}

impl OwnPages {
    pub fn new(store: Store, secret: &Secret, erasures: ErasureLog, times: RetentionTimes) -> Self {
        let (sessions, tokens, marker) =
            (SessionMaker::new(secret), TokenMaker::new(secret), AddressMarker::new(secret));
        Self { store, sessions, tokens, marker, erasures, times }
    }

    /// A person wants to sign in with an address, in a browser that has a nonce or gets one now. What happens depends on who has
    /// the address; the answer and its timing do not.
    pub async fn ask(
        &self,
        email: &EmailAddress,
        browser: Option<&str>,
        campaign: Option<CampaignSlug>,
        lane: Lane,
        now: Timestamp,
    ) -> Result<Nonce, StoreError> {
        let nonce = browser.and_then(Nonce::read).map_or_else(new_nonce, Ok)?;
        let begun = Instant::now();
        let (email_normalized, mailbox) = (email.normalized(), email.mailbox());
        let browser = self.sessions.browser(&nonce, email);
        let ask = AskSignIn { email_normalized, mailbox, browser, campaign, lane, now };
        let asked = self.store.run(ask).await;
        pad_response_time(begun, RESPONSE_TIME_STEP).await;
        // The worker finds the mail within a second. If woken now, its work would reveal that there is mail.
        asked?;
        Ok(nonce)
    }

    /// Whether a token belongs to one of our links; does not query the store.
    pub fn is_link(&self, token: &str) -> bool {
        self.tokens.read_sign_in(token).is_some()
    }

    /// The person that a link would sign in; none once it was used or has expired.
    pub async fn find_link(&self, token: &str, now: Timestamp) -> Result<Option<EmailAddress>, StoreError> {
        let Some(sign_in) = self.tokens.read_sign_in(token) else { return Ok(None) };
        self.store.run(FindSignIn(sign_in, now)).await
    }

    /// The campaign that a link leads back to, even after the link has ended.
    pub async fn campaign_of_link(&self, token: &str) -> Result<Option<CampaignSlug>, StoreError> {
        let Some(sign_in) = self.tokens.read_sign_in(token) else { return Ok(None) };
        self.store.run(FindCampaignOfSignIn(sign_in)).await
    }

    /// A person pressed the button behind a link. Returns the session; none if the link no longer works.
    pub async fn enter_by_link(&self, token: &str, now: Timestamp) -> Result<Option<Entered>, StoreError> {
        let Some(sign_in) = self.tokens.read_sign_in(token) else { return Ok(None) };
        let signed_in = self.store.run(UseSignIn { sign_in, by_code: false, session: new_nonce()?, now }).await?;
        Ok(signed_in.map(|signed_in| self.enter(signed_in, SignedInBy::Mail, now)))
    }

    /// A person typed a code in the browser that asked for it. Returns the session; none if the code is wrong or no longer valid.
    pub async fn enter_by_code(
        &self,
        email: &EmailAddress,
        browser: Option<&str>,
        code: SignInCode,
        now: Timestamp,
    ) -> Result<Option<Entered>, StoreError> {
        let begun = Instant::now();
        let signed_in = self.compare_code(email, browser, code, now).await;
        pad_response_time(begun, RESPONSE_TIME_STEP).await;
        Ok(signed_in?.map(|signed_in| self.enter(signed_in, SignedInBy::Mail, now)))
    }

    /// A person became a member by pressing the button that `token` belongs to. Returns the session; none if they are no longer a
    /// member. The caller knows that it was this press, and that our own page sent it.
    pub async fn enter_by_joining(
        &self,
        purpose: Purpose,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<Entered>, StoreError> {
        let Some(sign_up) = self.tokens.read(purpose, token) else { return Ok(None) };
        let session = self.store.run(EnterByJoining(sign_up, new_nonce()?)).await?;
        Ok(session.map(|session| self.enter(SignedIn { session, campaign: None }, SignedInBy::Joining, now)))
    }

    async fn compare_code(
        &self,
        email: &EmailAddress,
        browser: Option<&str>,
        code: SignInCode,
        now: Timestamp,
    ) -> Result<Option<SignedIn>, StoreError> {
        let Some(browser) = browser.and_then(Nonce::read) else { return Ok(None) };
        let mut open = Vec::new();
        for browser in self.sessions.browsers(&browser, email) {
            open.extend(self.store.run(TryCode(browser, now)).await?);
        }
        let right = open.into_iter().rev().find(|sign_in| self.tokens.is_sign_in_code(*sign_in, &code));
        match right {
            Some(sign_in) => self.store.run(UseSignIn { sign_in, by_code: true, session: new_nonce()?, now }).await,
            None => Ok(None),
        }
    }

    fn enter(&self, signed_in: SignedIn, by: SignedInBy, now: Timestamp) -> Entered {
        Entered {
            cookie: self.sessions.cookie(&signed_in.session, now.plus(SESSION_FOR), by),
            token: self.csrf_token(&signed_in.session),
            campaign: signed_in.campaign,
        }
    }

    /// The session that a cookie proves; only the store knows whether a person has it.
    pub fn session(&self, cookie: &str, now: Timestamp) -> Option<SessionCookie> {
        self.sessions.read_cookie(cookie, now)
    }

    pub fn csrf_token(&self, session: &Nonce) -> String {
        self.sessions.csrf_token(session)
    }

    pub fn is_csrf_token(&self, session: &Nonce, token: &str) -> bool {
        self.sessions.is_csrf_token(session, token)
    }

    /// What is stored about the session's holder, without related records; none if no one has the session.
    pub async fn find(&self, session: &SessionCookie, now: Timestamp) -> Result<Option<PersonDetails>, StoreError> {
        self.store.run(FindOwn(session.clone(), now)).await
    }

    pub async fn fill(&self, file: PersonDetails, now: Timestamp) -> Result<PersonDetails, StoreError> {
        crate::people::fill(&self.store, file, now).await
    }

    pub async fn change_answers(&self, session: &Nonce, answers: Answers, now: Timestamp) -> Result<bool, StoreError> {
        self.store.run(ChangeAnswers { session: session.clone(), answers, now }).await
    }

    /// Sets whether the session's holder wants these kinds of mail; other kinds stay as they are.
    pub async fn choose_mail(&self, session: &Nonce, chosen: &[(MailKind, bool)]) -> Result<bool, StoreError> {
        self.store.run(ChooseMail(session.clone(), chosen.to_vec())).await
    }

    /// The kind of mail that a link switches off; none if the token is not ours. Does not query the store.
    pub fn unsubscribe_kind(&self, token: &str) -> Option<CampaignMail> {
        self.tokens.read_unsubscribe(token).map(|(kind, _)| kind)
    }

    /// A person followed the link and pressed its button, or pressed their mail program's own. Returns the kind that is now off;
    /// none if the token is not ours, or its person no longer exists.
    pub async fn unsubscribe(&self, token: &str) -> Result<Option<CampaignMail>, StoreError> {
        let Some((kind, person)) = self.tokens.read_unsubscribe(token) else { return Ok(None) };
        Ok(self.store.run(Unsubscribe(person, kind.into())).await?.then_some(kind))
    }

    /// Whether the kind of mail that a link switches off is off; it is not for a person who no longer exists.
    pub async fn is_unsubscribed(&self, token: &str) -> Result<bool, StoreError> {
        let Some((kind, person)) = self.tokens.read_unsubscribe(token) else { return Ok(false) };
        self.store.run(IsUnsubscribed(person, kind.into())).await
    }

    pub async fn choose_language(&self, session: &Nonce, language: Language) -> Result<bool, StoreError> {
        self.store.run(ChooseLanguage(session.clone(), language)).await
    }

    /// Ends the session of one browser, and of anyone who copied its cookie.
    pub async fn sign_out(&self, session: &SessionCookie) -> Result<(), StoreError> {
        self.store.run(EndSession(session.clone())).await
    }

    pub async fn sign_out_everywhere(&self, session: &Nonce) -> Result<bool, StoreError> {
        self.store.run(EndSessions(session.clone(), new_nonce()?)).await
    }

    pub async fn leave(&self, email: &EmailAddress, now: Timestamp) -> Result<Leaving, StoreError> {
        self.people("own page: leave", now).leave(email, now).await
    }

    /// Refused while more rewards, in cents, are due to them than they give up; a group that has filled up by now counts.
    pub async fn erase(
        &self,
        email: &EmailAddress,
        person: i64,
        waived_cents: i64,
        now: Timestamp,
    ) -> Result<Option<Erased>, NotErased> {
        // Not audited, because it follows from the rules and not from their request.
        rewards::form_groups(&self.store, person, now).await?;
        let waiver = Waiver { by: BY_THEMSELVES.to_owned(), most_cents: waived_cents };
        self.people("own page: erase", now).erase(email, Some(waiver), now).await
    }

    /// Lets mail reach them again, whatever they or a mail server said before.
    pub async fn unsuppress(&self, email: &EmailAddress, now: Timestamp) -> Result<Option<Lifted>, StoreError> {
        self.people("own page: mail again", now).unsuppress(email).await
    }

    fn people(&self, command: &'static str, now: Timestamp) -> People {
        let act = Act { who: BY_THEMSELVES.to_owned(), command, about: String::new(), at: now, change: None };
        People::new(self.store.audited(act), self.marker.clone(), self.erasures.clone())
    }
}

fn new_nonce() -> Result<Nonce, StoreError> {
    Ok(Nonce::from_random(&random::bytes::<NONCE>()?))
}
