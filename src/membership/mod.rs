//! Becoming a member, once for every source: signing up, confirming (double opt-in), declining, and referral codes.
//!
//! It must never know HTTP, MCP or a command line.

pub mod answers;
pub mod code;
pub mod confirm;
pub mod count;
pub mod decline;
pub mod form_throttle;
pub mod mail_again;
pub mod mail_report;
pub mod records;
pub mod sign_up;
pub mod tombstones;
pub mod withdraw;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::answers::Answers;
use crate::domain::email::EmailAddress;
use crate::domain::email::disposable::DisposableDomains;
use crate::domain::language::Language;
use crate::domain::mail::lane::Lane;
use crate::domain::mail::report::{MailReport, ReportOutcome};
use crate::domain::partner::idempotency::{IdempotencyKey, IdempotentRequest, InputHasher, MOST_KEYS, REUSED_KEY};
use crate::domain::referral::{CodeMaker, ReferralCode};
use crate::domain::secret::Secret;
use crate::domain::secret::mark::AddressMarker;
use crate::domain::secret::token::{Purpose, TokenMaker};
use crate::domain::sign_up::{
    Channel, ClientName, Confirmation, DecidedHow, Declining, Evidence, NamedPerson, NewSignUp, Partner, Refused,
    SeenPage, SignUpRecord, SignUpRef, SignedUp, SilenceChange,
};
use crate::domain::time::Timestamp;
use crate::domain::union::notice::Notices;
use crate::error::Error;
use crate::mail::Delivery;
use crate::membership::code::{CreateCode, FindCode, IdempotentCode, Revive};
use crate::membership::confirm::Confirm;
use crate::membership::decline::{ChooseSilence, Decline, TakeBack};
use crate::membership::mail_report::NoteReport;
use crate::membership::records::{FindSignUp, IsCodeKnown, KeepNotice};
use crate::membership::sign_up::SignUp;
use crate::partners::worker::WebhookNotifier;
pub use crate::store::StoreError;
use crate::store::{Batches, Store, StoreReply};

/// How many codes are tried for a new address. Two collisions in a row do not happen, so after this many something else is wrong.
const CODE_ATTEMPTS: u8 = 8;

/// Answers whose timing would reveal who is known are sent at multiples of this, which is longer than either kind takes.
const RESPONSE_TIME_STEP: Duration = Duration::from_millis(10);

pub struct Membership {
    store: Store,
    sign_ups: Batches<SignUp>,
    confirmations: Batches<Confirm>,
    codes: CodeMaker,
    inputs: InputHasher,
    marker: AddressMarker,
    tokens: TokenMaker,
    mail: Delivery,
    webhooks: Arc<WebhookNotifier>,
    disposable: DisposableDomains,
    notices: Notices,
}

#[derive(Debug, Clone)]
pub struct Application {
    pub email: EmailAddress,
    pub answers: Answers,
    pub ref_code: Option<ReferralCode>,
}

#[derive(Clone)]
pub struct SignUpContext {
    pub channel: Channel,
    pub client: Option<ClientName>,
    pub lane: Lane,
    pub proven: bool,
    pub language: Option<Language>,
    pub request: Option<IdempotentRequest>,
}

pub struct LinkedSignUp {
    sign_up: SignUpRef,
    pub record: SignUpRecord,
}

impl Membership {
    pub fn new(
        store: Store,
        secret: &Secret,
        mail: Delivery,
        webhooks: Arc<WebhookNotifier>,
        disposable: DisposableDomains,
        notices: Notices,
    ) -> Self {
        let (codes, marker, tokens) = (CodeMaker::new(secret), AddressMarker::new(secret), TokenMaker::new(secret));
        let (sign_ups, confirmations, inputs) = (store.batches(), store.batches(), InputHasher::new(secret));
        Self { store, sign_ups, confirmations, codes, inputs, marker, tokens, mail, webhooks, disposable, notices }
    }

    pub fn disposable_domains(&self) -> &DisposableDomains {
        &self.disposable
    }

    /// Stores the notice that people see from now on; sign-ups refer to it by its hash.
    pub async fn keep_notice(&self, now: Timestamp) -> Result<(), StoreError> {
        for notice in self.notices.all() {
            self.store.run(KeepNotice(notice.clone(), now)).await?;
        }
        Ok(())
    }

    pub fn count(&self) -> StoreReply<'_, u64> {
        self.store.member_count()
    }

    /// Signs a person up, through a partner or on their own, and has the confirmation mail sent.
    pub async fn sign_up(
        &self,
        application: &Application,
        partner: Option<&Partner>,
        context: SignUpContext,
        now: Timestamp,
    ) -> Result<SignedUp, Error> {
        let notice = self.notices.in_language(context.language.unwrap_or_default());
        let evidence = Evidence { channel: context.channel, client: context.client, notice: Arc::clone(&notice.hash) };
        let unit = |person, request| {
            let new = NewSignUp {
                person,
                answers: application.answers.clone(),
                ref_code: application.ref_code,
                partner: partner.cloned(),
                lane: context.lane,
                proven: context.proven,
                disposable: self.disposable.holds(&application.email),
                language: context.language,
                request,
                evidence: evidence.clone(),
            };
            self.sign_ups.run(SignUp { new, now })
        };
        let (is_named, begun) = (context.request.is_some(), Instant::now());
        let done = self.repeatable(&application.email, context.request.as_ref(), now, unit).await;
        // Storing the answer for a repeat takes longer for some people. Without a key there is nothing that timing could reveal.
        if is_named {
            pad_response_time(begun, RESPONSE_TIME_STEP).await;
        }
        let done = done?;
        self.mail.notify();
        Ok(done)
    }

    /// A sign-up request with its idempotency key; `join_site` and `savings` are part of its answer.
    pub fn idempotent_sign_up(
        &self,
        key: &IdempotencyKey,
        application: &Application,
        join_site: &str,
        savings: u32,
    ) -> IdempotentRequest {
        let Application { email, answers, ref_code } = application;
        let answers = answers.texts();
        let mut parts = vec![Some(email.as_typed())];
        parts.extend(answers.iter().map(Option::as_deref));
        parts.push(ref_code.as_ref().map(ReferralCode::as_str));
        let input = self.inputs.hash("sign up", &parts);
        IdempotentRequest { key: key.clone(), input, join_site: join_site.into(), savings }
    }

    /// The person's referral code for a request with an idempotency key; a repeat gets the first answer.
    pub async fn idempotent_referral_code(
        &self,
        partner: &Partner,
        key: &IdempotencyKey,
        email: &EmailAddress,
        join_site: &str,
        now: Timestamp,
    ) -> Result<SignedUp, Error> {
        let begun = Instant::now();
        let input = self.inputs.hash("referral link", &[Some(email.as_typed())]);
        let request = IdempotentRequest { key: key.clone(), input, join_site: join_site.into(), savings: 0 };
        let unit = |person, request: Option<IdempotentRequest>| {
            let create = CreateCode { person, now };
            self.store.run(IdempotentCode { partner: partner.id, request: request.expect("it has a key"), create })
        };
        let done = self.repeatable(email, Some(&request), now, unit).await;
        pad_response_time(begun, RESPONSE_TIME_STEP).await;
        done
    }

    /// The person's referral code, made on the first request and never changed. Signs no one up. Reading a code is faster than
    /// making one, so the answer waits for the next multiple of a fixed time: its timing does not reveal who is known.
    pub async fn referral_code(&self, email: &EmailAddress, now: Timestamp) -> Result<ReferralCode, Error> {
        let begun = Instant::now();
        let code = self.find_or_make_code(email, now).await;
        pad_response_time(begun, RESPONSE_TIME_STEP).await;
        code
    }

    async fn find_or_make_code(&self, email: &EmailAddress, now: Timestamp) -> Result<ReferralCode, Error> {
        self.require_mail()?;
        let found = self.store.run(FindCode { email_normalized: email.normalized() }).await.map_err(failed)?;
        let made = match found {
            Ok(Some(code)) => return Ok(code),
            Ok(None) => self.with_free_code(email, now, |person| self.store.run(CreateCode { person, now })).await?,
            Err(refused) => Err(refused),
        };
        made.map_err(refused)
    }

    /// Whether a token is one of ours; does not query the store.
    pub fn is_link(&self, purpose: Purpose, token: &str) -> bool {
        self.read(purpose, token).is_some()
    }

    /// Whether a token lets its holder do more than say no: not if only a leaked generation of the secret made it.
    pub fn is_more_than_no(&self, token: &str) -> bool {
        self.tokens.read(Purpose::Decline, token).is_some()
    }

    fn read(&self, purpose: Purpose, token: &str) -> Option<SignUpRef> {
        match purpose {
            Purpose::Decline => self.tokens.read_no(purpose, token),
            _ => self.tokens.read(purpose, token),
        }
    }

    pub async fn find(
        &self,
        purpose: Purpose,
        token: &str,
        now: Timestamp,
    ) -> Result<Option<LinkedSignUp>, StoreError> {
        let Some(sign_up) = self.read(purpose, token) else { return Ok(None) };
        Ok(self.store.run(FindSignUp(sign_up, now)).await?.map(|record| LinkedSignUp { sign_up, record }))
    }

    /// The token of another link of the same sign-up. A person who holds one of them can read the mailbox.
    pub fn token(&self, purpose: Purpose, linked: &LinkedSignUp) -> String {
        self.tokens.token(purpose, linked.sign_up)
    }

    /// The person pressed the button; `seen` is what their page showed.
    pub async fn confirm(&self, token: &str, seen: SeenPage, now: Timestamp) -> Result<Confirmation, StoreError> {
        let Some(sign_up) = self.tokens.read(Purpose::Confirm, token) else { return Ok(Confirmation::Unknown) };
        self.notify_partner(self.confirmations.run(Confirm { sign_up, seen, now }).await)
    }

    /// The person said "this wasn't me", or unsubscribed with one click.
    pub async fn decline(
        &self,
        token: &str,
        how: DecidedHow,
        silence: Option<SilenceChange>,
        now: Timestamp,
    ) -> Result<Declining, StoreError> {
        let Some(sign_up) = self.read(Purpose::Decline, token) else { return Ok(Declining::Unknown) };
        self.store.run(Decline { sign_up, how, silence, now }).await
    }

    /// The person chooses, with the same link, which mail to stop; false if the link is not ours.
    pub async fn choose_silence(
        &self,
        token: &str,
        silence: SilenceChange,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let Some(sign_up) = self.read(Purpose::Decline, token) else { return Ok(false) };
        self.store.run(ChooseSilence { sign_up, silence, now }).await
    }

    /// The sign-up was theirs after all: confirms it, with the same link.
    pub async fn take_back(&self, token: &str, seen: SeenPage, now: Timestamp) -> Result<Confirmation, StoreError> {
        let Some(sign_up) = self.tokens.read(Purpose::Decline, token) else { return Ok(Confirmation::Unknown) };
        self.notify_partner(self.store.run(TakeBack { sign_up, seen, now }).await)
    }

    /// The partner that sent the sign-up may have to be notified.
    fn notify_partner(&self, done: Result<Confirmation, StoreError>) -> Result<Confirmation, StoreError> {
        if matches!(done, Ok(Confirmation::Joined(_) | Confirmation::AlreadyMember)) {
            self.webhooks.notify();
        }
        done
    }

    pub async fn is_code_known(&self, code: ReferralCode) -> Result<bool, StoreError> {
        self.store.run(IsCodeKnown(code)).await
    }

    /// A mail server or mail service reports what happened to a mail.
    pub async fn note_report(&self, report: MailReport, now: Timestamp) -> Result<ReportOutcome, StoreError> {
        self.store.run(NoteReport { report, now }).await
    }

    /// Refuses sign-ups if no mail can be sent, because no one could ever confirm.
    fn require_mail(&self) -> Result<(), Error> {
        if matches!(self.mail, Delivery::Off) { Err(Error::BackendNotConfigured) } else { Ok(()) }
    }

    /// Runs a unit of work that may add a person, and tries the next code if another person has the one offered. If an erased
    /// person holds one of these codes, they are recognized by it; no one else is looked up.
    async fn with_free_code<'a, T: Unpin>(
        &self,
        email: &EmailAddress,
        now: Timestamp,
        unit: impl Fn(NamedPerson) -> StoreReply<'a, Result<T, Refused>>,
    ) -> Result<Result<T, Refused>, Error> {
        self.require_mail()?;
        tombstones::remark(&self.store, &self.marker, email).await.map_err(failed)?;
        let tombstone = self.marker.mailbox_tombstone(email);
        for attempt in 0..CODE_ATTEMPTS {
            let person = || NamedPerson { email: email.clone(), code: self.codes.code(email, attempt), tombstone };
            let done = match unit(person()).await {
                Ok(Err(Refused::CodeTaken)) if self.revive(email, now).await.map_err(failed)? => unit(person()).await,
                done => done,
            };
            match done {
                Ok(Err(Refused::CodeTaken)) => {}
                done => return done.map_err(failed),
            }
        }
        Err(Error::SaveFailed { cause: format!("{CODE_ATTEMPTS} referral codes in a row were taken") })
    }

    /// The same for a request that may have an idempotency key. A repeat is also known by the hash that it had before a rotation of the
    /// secret.
    async fn repeatable<'a, T: Unpin>(
        &self,
        email: &EmailAddress,
        request: Option<&IdempotentRequest>,
        now: Timestamp,
        unit: impl Fn(NamedPerson, Option<IdempotentRequest>) -> StoreReply<'a, Result<T, Refused>>,
    ) -> Result<T, Error> {
        let mut done = self.with_free_code(email, now, |person| unit(person, request.cloned())).await?;
        for request in request.into_iter().flat_map(IdempotentRequest::hashed_otherwise) {
            if !matches!(done, Err(Refused::KeyReused)) {
                break;
            }
            done = self.with_free_code(email, now, |person| unit(person, Some(request.clone()))).await?;
        }
        done.map_err(refused)
    }

    async fn revive(&self, email: &EmailAddress, now: Timestamp) -> Result<bool, StoreError> {
        self.store.run(Revive { email: email.clone(), marks: self.marker.marks(email), now }).await
    }
}

/// Waits until a multiple of `step` after `begun`, so that the timing does not reveal what was found.
pub(crate) async fn pad_response_time(begun: Instant, step: Duration) {
    let steps = begun.elapsed().as_micros() / step.as_micros().max(1) + 1;
    tokio::time::sleep_until(begun + step * u32::try_from(steps).unwrap_or(u32::MAX)).await;
}

/// What a refusal means to a caller.
fn refused(refused: Refused) -> Error {
    let invalid = |what| Error::InvalidSubmission { what, fields: vec!["Idempotency-Key".to_owned()] };
    match refused {
        Refused::Paused => Error::BackendNotConfigured,
        Refused::CodeTaken => Error::SaveFailed { cause: "the referral code is taken".to_owned() },
        Refused::KeyReused => {
            invalid(format!("{REUSED_KEY} Send exactly what you sent then, or use a new key for a new request."))
        }
        Refused::TooManyKeys => invalid(format!(
            "Idempotency-Key: this address has had {MOST_KEYS} different keys of yours within 7 days. Repeat a request with the \
             key it had, or leave the header out."
        )),
    }
}

fn failed(error: StoreError) -> Error {
    let cause = error.to_string();
    match error {
        StoreError::Unavailable(_) | StoreError::Damaged(_) | StoreError::Full(_) | StoreError::Restored => {
            Error::SaveFailed { cause }
        }
        StoreError::Unknown(_) => Error::OutcomeUnknown { cause },
    }
}
