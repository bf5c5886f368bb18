//! What the operator's commands and page may do with the records, each use case by the layer that owns it.
//!
//! A command is given an [`Operator`] and never the store: no rule about a person, a key or a mail can be rebuilt in a command.
//! This layer must never print, and must never know a command line or a backend.

pub mod access;
pub mod accounts;
pub mod demand;
pub mod findings;
pub mod overview;
pub mod partner;
pub mod person;
pub mod resume;
pub mod running;

use std::sync::Arc;

use crate::campaigns::admin::CampaignAdmin;
use crate::clock::Clock;
use crate::domain::api_key::{KeyId, Mode};
use crate::domain::email::EmailAddress;
use crate::domain::mail::budget::SourceStatus;
use crate::domain::mail::report::{MailReport, ReportOutcome};
use crate::domain::mail::{HeldMail, MailId, WaitingMail};
use crate::domain::partner::endpoint::ListedEndpoint;
use crate::domain::person::{Leaving, PersonRecord, PersonState, SignUpEntry};
use crate::domain::referral::ReferralCode;
use crate::domain::secret::Secret;
use crate::domain::secret::mark::AddressMarker;
use crate::domain::sign_up::{SignUpId, SignUpsOf};
use crate::domain::time::Timestamp;
pub use crate::figures::Demand;
pub use crate::figures::Funnel;
use crate::figures::ListDemand;
use crate::figures::ListSourceDays;
use crate::figures::ListSources;
use crate::figures::ListTopReferrers;
pub use crate::figures::SourceDay;
use crate::figures::worker;
use crate::installation::AreSignUpsPaused;
pub use crate::installation::Claim;
use crate::installation::ClaimSecret;
use crate::installation::CompareSecret;
use crate::installation::FindLastBackup;
use crate::installation::FindLatestRecord;
use crate::installation::NoteBackup;
use crate::installation::PauseSignUps;
use crate::keys::Keys;
use crate::mail::outbox::DropHeld;
use crate::mail::outbox::ListMail;
use crate::mail::outbox::ReleaseHeld;
use crate::mail::outbox::RetriedMail;
use crate::mail::outbox::RetryFailed;
use crate::mail::outbox::RetryMail;
use crate::mail::sources::ListSourceStatuses;
use crate::membership::mail_report::NoteReport;
use crate::membership::withdraw;
use crate::outbound::GuardedClient;
use crate::partners::Partners;
use crate::partners::endpoints::ListEndpoints;
use crate::partners::webhooks::Webhooks;
use crate::people;
use crate::people::People;
use crate::people::erasures::ErasureLog;
use crate::people::records::FindPeople;
use crate::people::records::ListPeopleAfter;
use crate::people::records::ListSignUpsOf;
use crate::rewards::RewardAdmin;
use crate::store::audit::AppendAudit;
use crate::store::audit::ListAuditAfter;
use crate::store::audit::ListAuditBefore;
pub use crate::store::audit::{Act, AuditEntry, AuditPlace};
use crate::store::{Store, StoreError, StoreReply};

/// The records as commands see them.
#[derive(Debug, Clone)]
pub struct Operator {
    store: Store,
    mode: Mode,
}

impl Operator {
    pub fn new(store: Store, mode: Mode) -> Self {
        Self { store, mode }
    }

    /// The same, of which every change is written to the audit log as this act, together with the change.
    pub fn audited(&self, act: Act) -> Self {
        Self { store: self.store.clone().audited(act), mode: self.mode }
    }

    pub fn keys(&self) -> Keys {
        Keys::of_mode(self.store.clone(), self.mode)
    }

    pub fn partners(&self) -> Partners {
        Partners::new(self.store.clone())
    }

    /// The webhook endpoints; of these changes too the audit log has the act.
    pub fn webhooks(&self, act: Option<Act>, secret: Secret, client: GuardedClient) -> Webhooks {
        let audited = act.map_or_else(|| self.clone(), |act| self.audited(act));
        Webhooks::new(self.store.clone(), audited.store, secret, Arc::new(client), self.mode)
    }

    pub fn campaigns(&self) -> CampaignAdmin {
        CampaignAdmin::new(self.store.clone())
    }

    /// The same, of which the audit log has the act.
    pub fn audited_campaigns(&self, act: Act) -> CampaignAdmin {
        CampaignAdmin::audited(self.store.clone(), self.audited(act).store)
    }

    pub fn rewards(&self) -> RewardAdmin {
        RewardAdmin::new(self.store.clone())
    }

    /// The same, of which the audit log has the act.
    pub fn audited_rewards(&self, act: Act) -> RewardAdmin {
        RewardAdmin::audited(self.store.clone(), self.audited(act).store)
    }

    pub fn list_endpoints(&self) -> StoreReply<'_, Vec<ListedEndpoint>> {
        self.store.run(ListEndpoints)
    }

    pub fn people(&self, secret: &Secret, erasures: ErasureLog) -> People {
        People::new(self.store.clone(), AddressMarker::new(secret), erasures)
    }

    /// Ends a membership, because the person asks for it.
    pub async fn leave(&self, email: &EmailAddress, now: Timestamp) -> Result<Leaving, StoreError> {
        people::leave(&self.store, email, now).await
    }

    pub fn member_count(&self) -> StoreReply<'_, u64> {
        self.store.member_count()
    }

    /// People by the beginning of their address, by their code or account.
    pub fn find_people(&self, text: String, most: u32) -> StoreReply<'_, Vec<PersonRecord>> {
        self.store.run(FindPeople(text, most))
    }

    /// A page of everybody, after that id.
    pub fn people_after(&self, id: i64, state: Option<PersonState>, most: u32) -> StoreReply<'_, Vec<PersonRecord>> {
        self.store.run(ListPeopleAfter { id, state, most })
    }

    /// A page of the sign-ups of a key, a partner or the form, newest first, before that one.
    pub fn sign_ups_of(
        &self,
        whose: SignUpsOf,
        before: SignUpId,
        now: Timestamp,
        most: u32,
    ) -> StoreReply<'_, Vec<SignUpEntry>> {
        self.store.run(ListSignUpsOf { whose, before, now, most })
    }

    /// Ends the pending sign-ups that were made with a key since that time; says how many. The audit log has it once, as this act.
    pub async fn withdraw_sign_ups(
        &self,
        key: KeyId,
        since: Timestamp,
        act: Act,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        withdraw::withdraw_sign_ups(&self.store, &self.audited(act).store, key, since, now).await
    }

    /// Brings the figures up to date, where no service may be doing so.
    pub async fn catch_up_figures(&self, clock: Clock) -> Result<(), StoreError> {
        worker::catch_up(&self.store, clock).await
    }

    pub fn sources_since(&self, day: i64) -> StoreReply<'_, Vec<(String, Funnel)>> {
        self.store.run(ListSources(day))
    }

    pub fn source_days_since(&self, day: i64) -> StoreReply<'_, Vec<SourceDay>> {
        self.store.run(ListSourceDays(day))
    }

    pub fn demand(&self) -> StoreReply<'_, Vec<Demand>> {
        self.store.run(ListDemand)
    }

    pub fn top_referrers(&self, most: u32) -> StoreReply<'_, Vec<(ReferralCode, u64)>> {
        self.store.run(ListTopReferrers(most))
    }

    pub fn list_mail(&self) -> StoreReply<'_, Vec<WaitingMail>> {
        self.store.run(ListMail)
    }

    pub fn note_backup(&self, at: Timestamp) -> StoreReply<'_, ()> {
        self.store.run(NoteBackup(at))
    }

    pub fn last_backup(&self) -> StoreReply<'_, Option<Timestamp>> {
        self.store.run(FindLastBackup)
    }

    /// Has mail tried again that failed or was given up, a step after the mail `after`.
    pub fn retry_failed_mail(
        &self,
        after: MailId,
        domain: Option<String>,
        now: Timestamp,
    ) -> StoreReply<'_, RetriedMail> {
        self.store.run(RetryFailed { after, domain, now })
    }

    /// Says whether there is such a mail.
    pub fn retry_mail(&self, mail: MailId, now: Timestamp) -> StoreReply<'_, bool> {
        self.store.run(RetryMail(mail, now))
    }

    pub fn release_held(&self, which: HeldMail, now: Timestamp) -> StoreReply<'_, u64> {
        self.store.run(ReleaseHeld(which, now))
    }

    pub fn drop_held(&self, which: HeldMail, now: Timestamp) -> StoreReply<'_, u64> {
        self.store.run(DropHeld(which, now))
    }

    /// Takes in what a mail server says about a mail of ours.
    pub fn note_report(&self, report: MailReport, now: Timestamp) -> StoreReply<'_, ReportOutcome> {
        self.store.run(NoteReport { report, now })
    }

    /// Says whether that changed anything.
    pub fn pause_sign_ups(&self, paused: bool) -> StoreReply<'_, bool> {
        self.store.run(PauseSignUps(paused))
    }

    pub fn are_sign_ups_paused(&self) -> StoreReply<'_, bool> {
        self.store.run(AreSignUpsPaused)
    }

    pub fn source_statuses(&self, now: Timestamp) -> StoreReply<'_, Vec<SourceStatus>> {
        self.store.run(ListSourceStatuses(now))
    }

    /// What was done after that place and before `until`, oldest first.
    pub fn audit_after(&self, after: AuditPlace, until: Timestamp, most: u32) -> StoreReply<'_, Vec<AuditEntry>> {
        self.store.run(ListAuditAfter { after, until, most })
    }

    /// What was done from `since` on and before that place, newest first.
    pub fn audit_before(&self, since: Timestamp, before: AuditPlace, most: u32) -> StoreReply<'_, Vec<AuditEntry>> {
        self.store.run(ListAuditBefore { since, before, most })
    }

    /// Writes down an act that changes no record.
    pub fn append_audit(&self, act: Act) -> StoreReply<'_, ()> {
        self.store.run(AppendAudit(act))
    }

    /// Ties the records to the installation's secret, on the first call; says later whether it is the same.
    pub fn claim_secret(&self, fingerprint: String) -> StoreReply<'_, Claim> {
        self.store.run(ClaimSecret(fingerprint))
    }

    /// The same without tying anything.
    pub fn whose_secret(&self, fingerprint: String) -> StoreReply<'_, Claim> {
        self.store.run(CompareSecret(fingerprint))
    }

    /// Whether a write would be kept right now.
    pub fn check(&self) -> StoreReply<'_, ()> {
        self.store.check(true)
    }

    /// When the latest record was written, by the clock of whoever wrote it.
    pub fn latest_record(&self) -> StoreReply<'_, Option<Timestamp>> {
        self.store.run(FindLatestRecord)
    }

    pub fn close(&self) -> StoreReply<'_, ()> {
        self.store.close()
    }
}
