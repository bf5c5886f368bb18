//! What every store must do, whatever it is made of. Times are passed in; nothing here waits.

use std::panic::Location;

use proptest::prelude::*;
use proptest::strategy::Union;

use crate::history::number_from;
use crate::once::{evidence, tombstone};
use crate::open_store::{NotDone, done};
use crate::prelude::*;
use unionhall::campaigns::acceptances::Agreed;
use unionhall::campaigns::participation::PressButton;
use unionhall::campaigns::records::FindCampaign;
use unionhall::campaigns::states::{MakeCampaign, StepCampaign};
use unionhall::campaigns::{Pressed, Stepped, TakenStep};
use unionhall::domain::answers::Answers;
use unionhall::domain::api_key::{IssuedKey, KeyRecord, KeyStatus, MAX_ENDING_KEYS, Mode};
use unionhall::domain::campaign::acceptance::Reference;
use unionhall::domain::campaign::draft::CampaignDraft;
use unionhall::domain::campaign::participation::{BadPress, ParticipationState, Press, PressAnswers};
use unionhall::domain::campaign::{CampaignSlug, CampaignStep};
use unionhall::domain::catalog::category::{Category, CategorySet};
use unionhall::domain::catalog::{CountsOn, ReferralTerms};
use unionhall::domain::language::Language;
use unionhall::domain::mail::budget::{FORM, MailBudget, SourceStatus, day_of};
use unionhall::domain::mail::lane::Lane;
use unionhall::domain::mail::report::{MailReport, ReportKind, ReportOutcome, ReportedMail};
use unionhall::domain::mail::{
    DueMail, HeldMail, MAIL_LEASE, MailAbout, MailId, MailKind, MailOutcome, UNDELIVERABLE_FOR,
};
use unionhall::domain::partner::endpoint::DeliveryOutcome;
use unionhall::domain::partner::name::PartnerId;
use unionhall::domain::person::{AccountId, PersonState, RetentionTimes, SignUpEntry, Waiver};
use unionhall::domain::referral::{CodeMaker, ReferralCode};
use unionhall::domain::reward::payout::PayoutRecord;
use unionhall::domain::reward::settlement::Settlement;
use unionhall::domain::secret::mark::AddressMarker;
use unionhall::domain::secret::session::Nonce;
use unionhall::domain::sign_up::{
    Confirmation, DecidedHow, Declining, NamedPerson, NewMember, PENDING_FOR, POSTS_PENDING, Partner, Refused,
    SUPPRESSED_FOR, SeenPage, SignUpId, SignUpRecord, SignUpState, SignUpsOf, SignedUp, Silence, SilenceChange,
};
use unionhall::domain::union::notice::Notice;
use unionhall::domain::us_state::UsState;
use unionhall::domain::webhook::{DISABLED_AFTER, EventKind};
use unionhall::figures::rollup::RollUp;
use unionhall::figures::{CountReferredMembers, ListSources};
use unionhall::installation::{Claim, ClaimSecret, CompareSecret, FindLatestRecord, HeldSecret, PauseSignUps};
use unionhall::keys::records::{
    FindKey, IssueKey, KeyFigures, KeyUse, ListKeys, RevokeKey, RotateKey, RotatedKey, TouchKey,
};
use unionhall::mail::outbox::lease::Lease;
use unionhall::mail::outbox::settle::Settle;
use unionhall::mail::outbox::{DropHeld, ListMail, ReleaseHeld, RetryMail};
use unionhall::mail::sources::{FindMailFigures, ListSourceStatuses};
use unionhall::membership::code::{CreateCode, FindCode, Revive};
use unionhall::membership::decline::{ChooseSilence, Decline, TakeBack};
use unionhall::membership::mail_report::NoteReport;
use unionhall::membership::records::{FindSignUp, IsCodeKnown, KeepNotice};
use unionhall::partners::changes::{ListUsage, UsageDay};
use unionhall::partners::deliveries::SettleDelivery;
use unionhall::partners::endpoints::{
    EmptyEndpoint, FindEndpoint, ListDueEndpoints, ListEndpoints, RemoveEndpoint, ResendEvent,
};
use unionhall::partners::idempotency::CloseSignUps;
use unionhall::partners::records::{ListPartners, ResumePartner, SuspendPartner};
use unionhall::people::erasures::ErasureLog;
use unionhall::people::forget::{ListPeopleToForget, Retain, Retained};
use unionhall::people::leave::{Erase, Leave, Unsuppress};
use unionhall::people::records::FindPerson;
use unionhall::people::sign_in::{AskSignIn, EnterByJoining, FindCampaignOfSignIn, SignedIn, TryCode, UseSignIn};
use unionhall::people::{People, fill};
use unionhall::rewards::group::VoidPerson;
use unionhall::rewards::payout::{BeginBatch, FillBatch, ListPayouts};
use unionhall::rewards::settle::SettlePayouts;
use unionhall::rewards::standing::ListRewardAccounts;
use unionhall::rewards::{RewardAdmin, Voided, worker};
use unionhall::sandbox::inbox::ListInboxPartners;
use unionhall::store::audit::{Act, AuditPlace, ListAuditAfter};
use unionhall::store::sql::{Failure, How, Sql, Unit};
use unionhall::store::sqlite::SqliteStore;

mod append_only;
mod campaign_mail;
mod campaigns;
mod coming_and_going;
mod confirm;
mod controls;
mod decline;
mod differential;
mod events;
mod handover_histories;
mod mail;
mod negotiation;
mod overview;
mod partners;
mod people;
mod refused_erasure;
mod reward_crash;
mod reward_histories;
mod reward_oracle;
mod rewards;
mod sandbox;
mod sources;
mod year;

use append_only::*;
use campaign_mail::*;
use campaigns::*;
use coming_and_going::*;
use confirm::*;
use controls::*;
use decline::*;
use events::*;
use handover_histories::*;
use mail::*;
use negotiation::*;
use overview::*;
use partners::*;
use people::*;
use reward_crash::*;
use reward_histories::*;
use rewards::*;
use sandbox::*;
use sources::*;

/// Runs every case on every store, each on one of its own.
macro_rules! suite {
    ($($case:ident)*) => {
        mod sqlite {
            $(#[test]
            fn $case() {
                let folder = tempfile::tempdir().unwrap();
                super::block_on(async {
                    let fixture = super::Fixture::on_sqlite(folder.path()).await;
                    super::$case(&fixture).await;
                    fixture.store.close().await.unwrap();
                });
            })*
        }

        mod postgres {
            $(#[test]
            fn $case() {
                needs!(Postgres);
                super::block_on(async {
                    let database = super::Database::migrated().await;
                    let fixture = super::Fixture::on_postgres(&database).await;
                    super::$case(&fixture).await;
                    fixture.store.close().await.unwrap();
                });
            })*
        }
    };
}

suite! {
    full_groups_are_rewarded_once_the_hold_is_over
    a_batch_without_a_file_pays_nobody
    rewards_follow_a_naive_oracle
    the_supplier_is_told_of_who_accepts_and_of_nobody_else
    a_hand_over_that_is_killed_names_everybody_once
    a_batch_that_is_killed_pays_nobody_twice_and_loses_nothing
    what_fails_after_its_group_was_reversed_is_paid
    whoever_passes_before_the_file_earns_nobody_anything
    an_offer_as_texts_counts_whoever_accepts
    no_file_is_written_while_somebody_waits_to_be_taken_out
    who_is_taken_out_while_it_is_killed_is_taken_out_once
    append_only_tables_take_rows_and_change_none
    what_is_netted_in_full_is_in_no_batch
    nothing_leads_from_somebody_who_was_erased_to_the_ledger
    the_groups_of_one_referrer_are_formed_alone
    whoever_is_due_a_reward_is_not_forgotten
    a_named_request_is_done_once_and_answered_as_the_first_time
    named_requests_at_once_are_one
    every_open_name_of_a_sign_up_is_confirmed_and_told
    a_declined_sign_up_that_is_taken_back_is_told
    an_erased_person_leaves_a_name_without_anything_of_theirs
    names_are_listed_in_their_order_and_kept_for_thirty_days
    events_are_recorded_without_an_endpoint_and_tell_of_deliveries_with_one
    events_are_deleted_in_time_and_older_cursors_are_told_so
    many_unread_events_are_numbered_in_steps
    deliveries_are_leased_tried_again_and_given_up
    an_endpoint_is_disabled_in_time_and_its_partner_told
    a_removed_endpoint_is_gone_before_its_deliveries_are
    changes_of_a_partner_are_bounded_and_mailed_once
    mail_about_changes_is_shared_among_partners
    a_key_that_is_over_changes_nothing
    a_new_store_is_empty
    a_person_keeps_their_code
    a_taken_code_is_refused_and_the_next_accepted
    sign_ups_are_attributed_to_another_mailbox_only
    a_confirmed_sign_up_counts_once
    confirming_in_any_number_at_once_counts_once
    confirmations_at_once_are_each_done_as_if_alone
    a_new_member_is_told_with_the_answers_that_count
    only_what_was_seen_is_confirmed
    a_sign_up_expires
    a_clock_that_was_ahead_for_a_while_decides_nothing
    a_partner_replaces_its_own_pending_sign_up
    repeats_merge_in_their_order_whatever_shares_a_commit
    two_partners_sign_ups_of_one_person_count_once
    paused_sign_ups_change_nothing
    first_requests_at_once_get_one_code
    sign_ups_at_once_are_each_done_as_if_alone
    texts_of_every_kind_are_kept
    keys_are_kept_listed_touched_and_revoked
    keys_rotate
    the_secret_is_claimed_once
    the_time_of_the_latest_record_is_known
    mail_is_leased_to_one_worker_at_a_time
    mail_that_failed_comes_back_at_its_time_and_late_workers_change_nothing
    a_workers_own_leases_are_given_back
    mail_that_may_have_gone_counts_as_gone
    mail_that_cannot_have_gone_spends_nothing
    a_post_of_the_form_touches_no_other
    the_days_last_mail_is_kept_for_another_source
    the_owners_own_name_goes_before_tagged_ones
    what_a_revoked_key_asked_for_is_held
    a_flood_of_spellings_is_settled_by_many_workers_at_once
    the_operator_may_send_past_a_mailboxs_share
    every_lane_has_its_turn_and_none_all_the_places
    what_somebody_decided_about_goes_before_the_rest_of_its_lane
    a_lease_is_renewed_by_whoever_holds_it
    a_late_worker_does_not_say_what_may_have_gone
    nobodys_flood_holds_up_somebody_elses_mail
    a_mailbox_gets_one_mail_in_ten_minutes_and_four_a_day
    mail_that_has_become_pointless_is_dropped
    a_newer_mail_replaces_the_one_that_waits
    a_rejected_address_gets_no_mail_for_thirty_days
    given_up_mail_waits_for_the_operator
    declining_withdraws_and_silences_nothing_by_itself
    a_mailbox_that_asks_for_silence_has_it_until_it_is_over_or_taken_back
    one_partners_mail_is_stopped_and_no_other
    a_member_withdraws_a_request_and_stays_as_they_are
    it_was_me_after_all_confirms_and_lets_mail_through
    a_code_is_known_whatever_became_of_its_owner
    a_page_lifts_only_what_it_showed
    not_everything_declined_can_be_taken_back
    one_click_at_an_alias_leaves_the_members_mailbox_open
    a_silence_that_was_lifted_stays_so
    old_sign_ups_expire_and_their_answers_are_deleted
    a_sign_up_without_a_partner_is_its_own
    a_source_that_has_had_its_share_is_held
    a_mail_that_is_tried_again_spends_nothing_of_its_sources_share
    good_reputation_earns_more_and_is_counted_where_it_happened
    what_the_form_asked_for_counts_before_it_is_looked_at
    a_source_is_judged_by_mail_that_left_and_can_be_confirmed
    an_outage_of_the_mail_server_punishes_no_partner
    what_waits_of_a_key_that_is_not_revoked_is_not_held
    mail_of_a_sign_up_that_lapsed_is_dropped_with_it
    a_proof_of_work_passes_the_budget_once_and_within_bounds
    the_same_proof_at_once_passes_one
    a_hard_bounce_ends_mail_to_that_address_alone
    a_complaint_silences_the_mailbox_until_its_owner_confirms
    soft_bounces_and_repeats_are_counted_once_each
    whoever_leaves_is_no_member_and_can_come_back
    whoever_comes_back_keeps_what_they_do_not_answer_anew
    whoever_is_erased_leaves_a_tombstone
    whoever_was_erased_and_comes_back_is_known_again
    a_shared_mailbox_outlives_one_of_its_addresses
    the_operator_lifts_whatever_keeps_mail_from_somebody
    people_are_found_by_what_one_has_of_them
    figures_follow_what_happened
    what_nobody_decides_lapses_in_the_figures
    nodes_that_roll_up_at_once_count_once
    every_change_is_written_down_with_who_did_it
    figures_and_members_agree_whatever_happens
    whoever_comes_and_goes_is_counted_as_a_naive_model_counts
    whoever_never_confirmed_is_forgotten_in_time_and_keeps_their_code
    whoever_left_is_forgotten_a_year_later
    whoever_is_erased_is_left_in_peace_under_every_name
    posts_that_nobody_was_mailed_about_leave_nothing
    a_reminder_goes_where_a_mail_left_and_counts
    a_partner_has_a_hundred_keys_for_an_address
    whoever_has_much_is_erased_in_steps
    spent_sign_ups_and_mailboxes_are_forgotten
    a_complaint_is_remembered_for_a_year
    notices_are_kept_once
    an_inbox_is_its_partners_newest_first_and_bounded
    mail_of_the_sandbox_has_caps_for_mailboxes_and_none_for_sources
    people_of_two_sandboxes_never_meet
    test_data_is_deleted_for_real_in_time
    a_closed_store_says_so
    an_old_link_is_not_about_whoever_has_its_id_now
    whoever_joined_is_signed_in_by_the_sign_up_that_they_confirmed
    a_suspended_partner_is_stopped_and_comes_back
    lifting_a_suspension_releases_what_it_held_and_no_more
    webhooks_of_a_suspended_partner_wait_and_are_not_disabled_for_it
    a_partner_has_a_mail_budget_of_its_own
    the_pending_sign_ups_of_a_key_end_in_steps
    a_campaign_goes_from_step_to_step_and_every_step_is_kept
    campaigns_follow_a_naive_model
    a_mailing_reaches_everybody_once_at_its_pace
    nodes_that_mail_at_once_mail_once
    whoever_joined_under_an_older_notice_is_mailed_once_they_switch_it_on
    what_concerns_nobody_any_more_is_dropped_before_it_goes
    an_offer_goes_to_those_who_are_in_and_the_result_to_those_who_took_part
    campaign_mail_that_waits_holds_up_the_mailing_and_nothing_else
    reports_of_campaign_mail_are_about_their_person
    each_step_counts_its_members_after_changes_of_five
    a_step_waits_for_its_count_and_needs_no_worker
    a_count_that_was_overtaken_is_not_kept
    no_sequence_of_sheets_tells_a_persons_state_or_answer
    a_sheet_follows_people_whose_part_differs_and_names_no_state_of_few
    a_negotiators_notes_are_bounded_and_kept
    a_round_is_blanked_once_and_old_rounds_are_pruned
    a_draft_waits_until_a_person_answers_it
    an_operator_pauses_the_negotiator_and_tells_it_something
    bids_are_numbered_and_the_offer_is_made_of_one
    a_key_is_believed_for_less_than_two_seconds
    operators_who_ask_at_once_share_one_overview
}

/// The sign-up that a mail is about.
fn about(mail: &DueMail) -> SignUpRef {
    match mail.about {
        MailAbout::SignUp(sign_up) => sign_up,
        ref other => panic!("a mail about {other:?}"),
    }
}

/// The sign-up of that id, made as a test begins, as its mail's links name it.
pub(super) fn linked(id: i64) -> SignUpRef {
    linked_at(id, NOW)
}

/// The same of one that was made later.
fn linked_at(id: i64, created_at: Timestamp) -> SignUpRef {
    SignUpRef { id: SignUpId(id), created_at }
}

/// The same of one in a person's file.
fn of_entry(entry: &SignUpEntry) -> SignUpRef {
    SignUpRef { id: entry.id, created_at: entry.created_at }
}

/// A store with a partner, and what is needed to use it.
struct Fixture {
    store: OpenStore,
    codes: CodeMaker,
    partner: Partner,
    /// The same records, for what no unit tells.
    records: Records,
}

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

const TIMES: RetentionTimes = RetentionTimes::DEFAULT;

impl Fixture {
    async fn on_sqlite(folder: &Path) -> Self {
        let store = OpenStore::new(SqliteStore::open(&folder.join("unionhall.db")).unwrap());
        Self::new(store, Records::Sqlite { data: folder.to_owned() }).await
    }

    async fn on_postgres(database: &Database) -> Self {
        let store = OpenStore::new(PostgresStore::open(database.address(), Prepare::Upgrade, 256).await.unwrap());
        Self::new(store, Records::Postgres { store: database.url(), limits: String::new() }).await
    }

    async fn new(store: OpenStore, records: Records) -> Self {
        let partner = issue(&store, key(1, "Acme")).await;
        Self { store, codes: CodeMaker::new(&Secret::new(&"s".repeat(32)).unwrap()), partner, records }
    }

    fn person(&self, email: &str) -> NamedPerson {
        let email = EmailAddress::parse(email).unwrap();
        NamedPerson { code: self.codes.code(&email, 0), tombstone: tombstone(&email), email }
    }

    fn new_sign_up(&self, email: &str) -> NewSignUp {
        NewSignUp {
            person: self.person(email),
            answers: Answers::default(),
            ref_code: None,
            partner: Some(self.partner.clone()),
            lane: Lane::of(email.as_bytes()),
            proven: false,
            disposable: false,
            language: None,
            request: None,
            evidence: evidence(),
        }
    }

    async fn sign_up(&self, email: &str) -> SignedUp {
        self.store.sign_up(self.new_sign_up(email), NOW).await.unwrap()
    }

    async fn refer(&self, email: &str, code: ReferralCode) -> SignedUp {
        let new = NewSignUp { ref_code: Some(code), ..self.new_sign_up(email) };
        self.store.sign_up(new, NOW).await.unwrap()
    }

    async fn confirm(&self, id: i64) -> Confirmation {
        let done = self.confirm_at(linked(id), NOW).await;
        if let Confirmation::Joined(member) = &done {
            self.check_new_member(linked(id), member, NOW).await;
        }
        done
    }

    /// What their page shows is what it shows whenever they look again.
    async fn check_new_member(&self, sign_up: SignUpRef, member: &NewMember, now: Timestamp) {
        let found = self.run(FindSignUp(sign_up, now)).await.unwrap();
        let SignUpRecord { code, language, answers, campaign, is_member: true, .. } = found else {
            panic!("they are no member")
        };
        assert_eq!(*member, NewMember { code, language, answers, campaign });
    }

    /// The same where only its time is of interest.
    async fn confirm_at(&self, sign_up: SignUpRef, now: Timestamp) -> Confirmation {
        self.store.confirm(sign_up, SeenPage::default(), now).await.unwrap()
    }

    /// Runs a unit that the store has to do.
    #[track_caller]
    fn run<U: Unit<Done: Unpin>>(&self, unit: U) -> impl Future<Output = U::Done> {
        let (reply, at) = (self.store.run(unit), Location::caller());
        async move { reply.await.unwrap_or_else(|error| panic!("{at}: {error:?}")) }
    }

    async fn members(&self) -> u64 {
        self.store.member_count().await.unwrap()
    }

    async fn lease(&self, worker: &str, now: Timestamp) -> Vec<DueMail> {
        self.run(lease_of(worker, 100, now)).await.mails
    }

    async fn settle(&self, mail: &DueMail, outcome: MailOutcome, now: Timestamp) {
        self.run(Settle { mail: mail.clone(), outcome, now }).await;
    }

    /// Takes what is due at that time and sends it; says to whom.
    async fn send_due(&self, now: Timestamp) -> Vec<String> {
        let due = self.lease("w", now).await;
        for mail in &due {
            self.settle(mail, MailOutcome::Sent, now).await;
        }
        due.into_iter().map(|mail| mail.recipient).collect()
    }

    async fn sign_up_at(&self, email: &str, now: Timestamp) {
        self.store.sign_up(self.new_sign_up(email), now).await.unwrap();
    }

    async fn kept_code(&self, email: &str) -> Option<ReferralCode> {
        done(self.store.run(FindCode { email_normalized: (EmailAddress::parse(email).unwrap()).normalized() }))
            .await
            .unwrap()
    }
}

/// What a worker asks for where no budget is spent.
fn lease_of(worker: &str, most: usize, now: Timestamp) -> Lease {
    Lease { worker: worker.to_owned(), most, busy: Vec::new(), budget: Some(MailBudget::NONE), now }
}

fn erasing(address: &str, waiver: Option<Waiver>, now: Timestamp) -> Erase {
    let (email_normalized, account) = (email(address).normalized(), account_of(address));
    Erase { email_normalized, marks: marks(address), account, waiver, now }
}

fn declining(sign_up: SignUpRef, silence: Option<SilenceChange>, now: Timestamp) -> Decline {
    Decline { sign_up, how: DecidedHow::Button, silence, now }
}

fn one_click(sign_up: SignUpRef, now: Timestamp) -> Decline {
    Decline { sign_up, how: DecidedHow::OneClick, silence: None, now }
}

fn leaving(address: &str, now: Timestamp) -> Leave {
    Leave { email_normalized: email(address).normalized(), account: account_of(address), now }
}

fn asking(email: &EmailAddress, browser: &str, campaign: Option<CampaignSlug>, now: Timestamp) -> AskSignIn {
    let (email_normalized, mailbox) = (email.normalized(), email.mailbox());
    AskSignIn { email_normalized, mailbox, browser: browser.to_owned(), campaign, lane: Lane::of(b"x"), now }
}

/// A press by somebody who was shown the offer as it is.
#[derive(Clone)]
struct Pressing(PressButton);

impl Unit for Pressing {
    type Done = Pressed;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Pressed, Failure> {
        let mut press = self.0.clone();
        let found = FindCampaign(press.slug.clone()).apply(sql).await?;
        let offer = found.and_then(|found| found.campaign.offer);
        press.agreed.mark = offer.map(|offer| offer.mark(Language::English)).unwrap_or_default();
        press.apply(sql).await
    }
}

fn pressing(session: &Nonce, of: &str, press: Press, us_state: Option<UsState>, now: Timestamp) -> Pressing {
    let said = PressAnswers { us_state, ..PressAnswers::default() };
    let reference = Reference::from_random(&unionhall::random::bytes().unwrap());
    let agreed = Agreed { mark: String::new(), language: Language::English, reference };
    Pressing(PressButton { session: session.clone(), slug: slug(of), press, said, agreed, now })
}

fn voiding(address: &str, of: &str, now: Timestamp) -> VoidPerson {
    let (reason, who) = ("twins".to_owned(), "op".to_owned());
    VoidPerson { email_normalized: address.to_owned(), campaign: slug(of), reason, who, now }
}

fn answers(us_state: Option<UsState>, categories: Option<CategorySet>, comments: Option<&str>) -> Answers {
    let stored = |name| match name {
        "us_state" => us_state.map(|state| state.code().to_owned()),
        "categories" => categories.as_ref().map(ToString::to_string),
        "comments" => comments.map(str::to_owned),
        _ => None,
    };
    Answers::from_texts(|name| Ok::<_, ()>(stored(name))).unwrap()
}

fn key(n: u8, partner: &str) -> IssuedKey {
    let key = ApiKey::from_random(&[n; ApiKey::ENTROPY]);
    IssuedKey {
        id: key.id(),
        partner: partner.parse().unwrap(),
        hash: key.hash(),
        per_minute: None,
        created_at: NOW,
        expires_at: None,
    }
}

/// Issues a key; gives its partner.
async fn issue(store: &Store, issued: IssuedKey) -> Partner {
    store.run(IssueKey(issued.clone())).await.unwrap();
    let KeyRecord { id: key, partner_id: id, partner: name, .. } =
        store.run(FindKey(issued.id)).await.unwrap().unwrap();
    Partner { key, id, name }
}

/// What is kept of a key that was never used.
fn unused(IssuedKey { id, partner, hash, per_minute, created_at, expires_at }: IssuedKey, of: PartnerId) -> KeyRecord {
    let (last_used_at, revoked_at, replaced_by, suspended_at) = (None, None, None, None);
    let partner_id = of;
    KeyRecord {
        id,
        partner_id,
        partner,
        hash,
        per_minute,
        created_at,
        expires_at,
        last_used_at,
        revoked_at,
        replaced_by,
        suspended_at,
    }
}

/// Numbers below the one that is asked for, as if by chance and the same each time.
fn picker(mut random: u64) -> impl FnMut(usize) -> usize {
    move |most| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % most
    }
}

fn after(span: Duration) -> Timestamp {
    NOW.plus(span)
}

const HOUR: Duration = Duration::from_secs(3600);

async fn a_new_store_is_empty(fixture: &Fixture) {
    assert_eq!(fixture.members().await, 0);
    assert_eq!(fixture.kept_code("ana@example.com").await, None);
    assert_eq!(fixture.confirm(1).await, Confirmation::Unknown);
    assert_eq!(fixture.confirm(i64::MAX).await, Confirmation::Unknown);
}

async fn a_person_keeps_their_code(fixture: &Fixture) {
    let made =
        done(fixture.store.run(CreateCode { person: fixture.person("ana@example.com"), now: NOW })).await.unwrap();
    assert_eq!(fixture.kept_code("ANA@example.com").await, Some(made));
    // Whatever is computed later, what was kept wins.
    let other = NamedPerson { code: fixture.person("ben@example.com").code, ..fixture.person("Ana@Example.com") };
    assert_eq!(done(fixture.store.run(CreateCode { person: other, now: NOW })).await.unwrap(), made);
    assert_eq!(fixture.sign_up("ana@example.com").await.code, made);
    assert_ne!(fixture.sign_up("ana+tag@example.com").await.code, made, "another address, another code");
}

async fn a_taken_code_is_refused_and_the_next_accepted(fixture: &Fixture) {
    let ana = fixture.sign_up("ana@example.com").await.code;
    let ben = || NamedPerson { code: ana, ..fixture.person("ben@example.com") };
    assert_eq!(
        done(fixture.store.run(CreateCode { person: ben(), now: NOW })).await,
        Err(NotDone::Refused(Refused::CodeTaken))
    );
    let new = NewSignUp { person: ben(), ..fixture.new_sign_up("ben@example.com") };
    assert_eq!(fixture.store.sign_up(new, NOW).await, Err(NotDone::Refused(Refused::CodeTaken)));
    assert_eq!(fixture.kept_code("ben@example.com").await, None, "a refusal leaves no trace");
    let next = NamedPerson { code: fixture.codes.code(&ben().email, 1), ..ben() };
    assert_eq!(done(fixture.store.run(CreateCode { person: next.clone(), now: NOW })).await.unwrap(), next.code);
    assert_eq!(fixture.kept_code("ben@example.com").await, Some(next.code));
}

async fn sign_ups_are_attributed_to_another_mailbox_only(fixture: &Fixture) {
    let ana = fixture.sign_up("ana@gmail.com").await;
    assert!(!ana.attributed);
    assert!(fixture.refer("ben@example.com", ana.code).await.attributed);
    for own in ["ana@gmail.com", "a.n.a@gmail.com", "ana+x@googlemail.com"] {
        assert!(!fixture.refer(own, ana.code).await.attributed, "{own}");
    }
    let nobodys = fixture.person("nobody@example.com").code;
    assert!(!fixture.refer("cleo@example.com", nobodys).await.attributed);
    let invited =
        done(fixture.store.run(CreateCode { person: fixture.person("dora@example.com"), now: NOW })).await.unwrap();
    assert!(fixture.refer("cleo@example.com", invited).await.attributed, "whoever has a link can refer");
}

async fn a_confirmed_sign_up_counts_once(fixture: &Fixture) {
    assert_eq!(fixture.sign_up("ana@example.com").await.joined_count, 0);
    assert_eq!(fixture.members().await, 0);
    assert!(matches!(fixture.confirm(1).await, Confirmation::Joined(_)));
    assert_eq!(fixture.confirm(1).await, Confirmation::AlreadyMember);
    assert_eq!(fixture.members().await, 1);
    let again = fixture.sign_up("ana@example.com").await;
    assert_eq!(again.joined_count, 1);
    assert_eq!(fixture.confirm(2).await, Confirmation::AlreadyMember, "a member's second sign-up adds nobody");
    assert_eq!(fixture.members().await, 1);
}

async fn confirming_in_any_number_at_once_counts_once(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let mut clicks = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let store = fixture.store.clone();
        clicks.spawn(async move { store.confirm(linked(1), SeenPage::default(), NOW).await.unwrap() });
    }
    let clicks = clicks.join_all().await;
    assert_eq!(clicks.iter().filter(|click| matches!(click, Confirmation::Joined(_))).count(), 1);
    assert_eq!(fixture.members().await, 1);
}

async fn a_sign_up_expires(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    fixture.sign_up("ben@example.com").await;
    let last = after(PENDING_FOR - Duration::from_millis(1));
    assert!(matches!(fixture.confirm_at(linked(1), last).await, Confirmation::Joined(_)));
    assert_eq!(fixture.confirm_at(linked(2), after(PENDING_FOR)).await, Confirmation::Expired);
    fixture.run(Retain { times: TIMES, now: after(PENDING_FOR) }).await;
    assert_eq!(fixture.confirm(2).await, Confirmation::Expired, "for good");
    let again = fixture.store.sign_up(fixture.new_sign_up("ben@example.com"), after(PENDING_FOR)).await.unwrap();
    assert_eq!(again.code, fixture.kept_code("ben@example.com").await.unwrap());
    assert!(matches!(
        fixture.confirm_at(linked_at(3, after(PENDING_FOR)), after(PENDING_FOR)).await,
        Confirmation::Joined(_)
    ));
    assert_eq!(fixture.members().await, 2);
}

async fn a_partner_replaces_its_own_pending_sign_up(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let later = after(PENDING_FOR - HOUR);
    fixture.store.sign_up(fixture.new_sign_up("ANA@example.com"), later).await.unwrap();
    assert_eq!(fixture.confirm(2).await, Confirmation::Unknown, "no second sign-up was made");
    // The time to confirm runs from the newer one.
    assert!(matches!(fixture.confirm_at(linked(1), after(PENDING_FOR + HOUR)).await, Confirmation::Joined(_)));
}

/// A request of the test below, by its choices.
#[derive(Debug, Clone, Copy)]
struct Repeat {
    person: usize,
    /// 0 is the form.
    partner: usize,
    us_state: Option<UsState>,
    categories: Option<CategorySet>,
    comments: Option<&'static str>,
    /// None, either of two other people's, the person's own, or nobody's.
    referral: usize,
}

/// What is kept of a sign-up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Kept {
    us_state: Option<UsState>,
    categories: CategorySet,
    comments: String,
    referrer: Option<ReferralCode>,
}

fn repeats() -> impl Strategy<Value = Vec<Repeat>> {
    let sets = ["", "travel", "internet,groceries"].map(|slugs| Just(CategorySet::from_slugs(slugs)));
    let state = prop::option::of(prop_oneof![Just(UsState::CA), Just(UsState::NY)]);
    let comments = prop::option::of(prop_oneof![Just(""), Just("one"), Just("two")]);
    let request = (0..3_usize, 0..3_usize, state, prop::option::of(Union::new(sets)), comments, 0..5_usize);
    let request = request.prop_map(|(person, partner, us_state, categories, comments, referral)| Repeat {
        person,
        partner,
        us_state,
        categories,
        comments,
        referral,
    });
    prop::collection::vec(request, 1..40)
}

/// What is sent replaces, what is left out stays, an attribution gives way only to another; each answer is told from its
/// request alone. Sent one after the other or all at once, which is then one batch or several: a naive model agrees.
async fn repeats_merge_in_their_order_whatever_shares_a_commit(fixture: &Fixture) {
    let other = issue(&fixture.store, key(2, "Other")).await;
    let partners = [None, Some(fixture.partner.clone()), Some(other)];
    let referrers = [fixture.sign_up("ana@example.com").await.code, fixture.sign_up("ben@example.com").await.code];
    let nobodys = ReferralCode::from_canonical("000000000000").unwrap();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut expected = HashMap::new();
    for case in 0..24 {
        let requests = repeats().new_tree(&mut runner).unwrap().current();
        let mut waiting = Vec::new();
        for (n, request) in requests.iter().enumerate() {
            let person = fixture.person(&format!("p{}+{case}@example.com", request.person));
            let referrer = [None, Some(referrers[0]), Some(referrers[1]), Some(person.code), Some(nobodys)];
            let attributed = matches!(request.referral, 1 | 2);
            let partner = partners[request.partner].clone();
            let whose =
                (person.email.as_typed().to_owned(), partner.as_ref().map(|partner| partner.name.as_str().to_owned()));
            let all: &mut Vec<Kept> = expected.entry(whose).or_default();
            // A partner's is one; each post of the form is one more, and the newest three wait.
            if partner.is_none() || all.is_empty() {
                all.push(Kept::default());
                all.drain(..all.len().saturating_sub(POSTS_PENDING));
            }
            let kept = all.last_mut().unwrap();
            kept.us_state = request.us_state.or(kept.us_state);
            kept.categories = request.categories.unwrap_or(kept.categories);
            kept.comments = request.comments.map_or(kept.comments.clone(), str::to_owned);
            kept.referrer = referrer[request.referral].filter(|_| attributed).or(kept.referrer);
            let new = NewSignUp {
                answers: answers(request.us_state, request.categories, request.comments),
                ref_code: referrer[request.referral],
                partner,
                person,
                lane: Lane::of(b"all"),
                proven: false,
                disposable: false,
                language: None,
                request: None,
                evidence: evidence(),
            };
            let sent = fixture.store.sign_up(new, Timestamp::from_millis(NOW.as_millis() + n as i64));
            if case % 2 == 0 {
                assert_eq!(sent.await.unwrap().attributed, attributed);
            } else {
                waiting.push((sent, attributed));
            }
        }
        for (sent, attributed) in waiting {
            assert_eq!(sent.await.unwrap().attributed, attributed);
        }
    }
    let mut found: HashMap<_, Vec<Kept>> = HashMap::new();
    for entry in fixture.sign_ups().await.iter().filter(|entry| entry.id >= SignUpId(3)) {
        let record = fixture.run(FindSignUp(of_entry(entry), NOW)).await.unwrap();
        let SignUpRecord { answers, referrer, state, .. } = record;
        if state == SignUpState::Pending {
            let whose = (record.email.as_typed().to_owned(), record.partner);
            found.entry(whose).or_default().push(Kept {
                us_state: answers.us_state,
                categories: answers.chosen(),
                comments: answers.comments.map_or_else(String::new, |comments| comments.as_str().to_owned()),
                referrer: referrer.map(|named| named.code),
            });
        }
    }
    assert_eq!(found, expected);
}

/// The same where each sign-up has a transaction of its own.
#[tokio::test(flavor = "multi_thread")]
async fn repeats_merge_on_postgres_without_batches() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let store = OpenStore::new(PostgresStore::open(database.address(), Prepare::Upgrade, 1).await.unwrap());
    let records = Records::Postgres { store: database.url(), limits: String::new() };
    let fixture = Fixture::new(store, records).await;
    repeats_merge_in_their_order_whatever_shares_a_commit(&fixture).await;
    fixture.store.close().await.unwrap();
}

async fn two_partners_sign_ups_of_one_person_count_once(fixture: &Fixture) {
    let partner = issue(&fixture.store, key(2, "Other")).await;
    fixture.sign_up("ana@example.com").await;
    fixture
        .store
        .sign_up(NewSignUp { partner: Some(partner), ..fixture.new_sign_up("ana@example.com") }, NOW)
        .await
        .unwrap();
    assert!(matches!(fixture.confirm(2).await, Confirmation::Joined(_)));
    assert_eq!(fixture.confirm(1).await, Confirmation::AlreadyMember);
    assert_eq!(fixture.members().await, 1);
}

async fn paused_sign_ups_change_nothing(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    assert!(fixture.run(PauseSignUps(true)).await);
    assert!(!fixture.run(PauseSignUps(true)).await);
    let ben = || fixture.new_sign_up("ben@example.com");
    assert_eq!(fixture.store.sign_up(ben(), NOW).await, Err(NotDone::Refused(Refused::Paused)));
    assert_eq!(
        done(fixture.store.run(CreateCode { person: ben().person, now: NOW })).await,
        Err(NotDone::Refused(Refused::Paused))
    );
    assert_eq!(
        done(fixture.store.run(FindCode { email_normalized: ben().person.email.normalized() })).await,
        Err(NotDone::Refused(Refused::Paused))
    );
    assert_eq!(fixture.members().await, 0, "the count stays readable");
    assert!(matches!(fixture.confirm(1).await, Confirmation::Joined(_)), "who was mailed may still confirm");
    assert!(fixture.run(PauseSignUps(false)).await);
    assert_eq!(fixture.kept_code("ben@example.com").await, None);
    fixture.sign_up("ben@example.com").await;
}

async fn first_requests_at_once_get_one_code(fixture: &Fixture) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..24 {
        let store = fixture.store.clone();
        let (person, new) = (fixture.person("ana@example.com"), fixture.new_sign_up("ana@example.com"));
        tasks.spawn(async move {
            match n % 2 {
                0 => done(store.run(CreateCode { person, now: NOW })).await.unwrap(),
                _ => store.sign_up(new, NOW).await.unwrap().code,
            }
        });
    }
    let codes: HashSet<_> = tasks.join_all().await.into_iter().collect();
    assert_eq!(codes.len(), 1);
    assert_eq!(fixture.confirm(2).await, Confirmation::Unknown, "and one sign-up");
}

/// Every kind of sign-up there is, together: new people, known ones, members, pending ones of this partner that are fresh
/// or too old, one address many times, a code that is somebody else's, somebody referred.
async fn sign_ups_at_once_are_each_done_as_if_alone(fixture: &Fixture) {
    let now = after(PENDING_FOR + HOUR);
    let member = fixture.sign_up("member@example.com").await;
    assert!(matches!(fixture.confirm(1).await, Confirmation::Joined(_)));
    fixture.sign_up("stale@example.com").await;
    fixture.sign_up_at("fresh@example.com", after(HOUR * 2)).await;
    done(fixture.store.run(CreateCode { person: fixture.person("invited@example.com"), now: NOW })).await.unwrap();
    let mut asked = Vec::new();
    for n in 0..100 {
        asked.push(NewSignUp { ref_code: Some(member.code), ..fixture.new_sign_up(&format!("new{n}@example.com")) });
    }
    for known in ["member@example.com", "stale@example.com", "fresh@example.com", "invited@example.com"] {
        asked.push(fixture.new_sign_up(known));
    }
    for _ in 0..20 {
        asked.push(fixture.new_sign_up("same@example.com"));
    }
    let mut taken = fixture.new_sign_up("taken@example.com");
    taken.person.code = member.code;
    asked.push(taken);
    let mut tasks = tokio::task::JoinSet::new();
    for new in asked {
        let store = fixture.store.clone();
        let email = new.person.email.as_typed().to_owned();
        tasks.spawn(async move { (email, store.sign_up(new, now).await) });
    }
    for (email, done) in tasks.join_all().await {
        if email == "taken@example.com" {
            assert_eq!(done, Err(NotDone::Refused(Refused::CodeTaken)));
            continue;
        }
        let done = done.unwrap();
        assert_eq!(Some(done.code), fixture.kept_code(&email).await, "{email}");
        assert_eq!((done.joined_count, done.attributed), (1, email.starts_with("new")), "{email}");
    }
    // In portions, as a worker does.
    let mut due = Vec::new();
    loop {
        let more = fixture.run(lease_of("w", 16, now)).await.mails;
        if more.is_empty() {
            break;
        }
        due.extend(more);
    }
    let to = |email: &str| due.iter().filter(|mail| mail.recipient == email).collect::<Vec<_>>();
    assert_eq!(due.len(), 100 + 4 + 1, "one mail each, and none for the one refused");
    assert_eq!(to("same@example.com").len(), 1);
    assert_eq!(to("member@example.com")[0].kind, MailKind::AlreadyMember);
    assert_eq!(about(to("fresh@example.com")[0]).id, SignUpId(3), "replaced");
    assert_ne!(about(to("stale@example.com")[0]).id, SignUpId(2), "a new one beside the expired");
    assert_eq!(fixture.confirm(2).await, Confirmation::Expired);
}

async fn texts_of_every_kind_are_kept(fixture: &Fixture) {
    let comments = ["", "'; DROP TABLE people; --", "line\nbreak\ttab", "\u{1f600}\u{202e}é", &"🙂".repeat(1000)];
    for (n, text) in comments.into_iter().enumerate() {
        let mut categories = CategorySet::default();
        Category::ALL.iter().for_each(|category| categories.insert(*category));
        let new = NewSignUp {
            answers: answers(Some(UsState::DC), Some(categories), Some(text)),
            ..fixture.new_sign_up(&format!("o'neil{n}+%_@exämple.com"))
        };
        fixture.store.sign_up(new, NOW).await.unwrap();
    }
    let longest = format!("{}@{}example.com", "ü".repeat(32), "ab.".repeat(92));
    let code = fixture.sign_up(&longest).await.code;
    assert_eq!(fixture.kept_code(&longest.to_uppercase()).await, Some(code));
}

async fn keys_are_kept_listed_touched_and_revoked(fixture: &Fixture) {
    let store = &fixture.store;
    let full = IssuedKey {
        per_minute: Some(7),
        created_at: after(HOUR),
        expires_at: Some(after(HOUR * 2)),
        ..key(3, "Zoë's \"Assistant\"")
    };
    let zoe = issue(store, full.clone()).await.id;
    assert!(store.run(IssueKey(full.clone())).await.is_err(), "an id is used once");
    let kept = unused(full.clone(), zoe);
    assert_eq!(fixture.run(FindKey(full.id)).await, Some(kept.clone()));
    assert_eq!(fixture.run(FindKey(key(9, "x").id)).await, None);
    assert_eq!(
        fixture.run(ListKeys).await,
        vec![(unused(key(1, "Acme"), fixture.partner.id), KeyFigures::default()), (kept, KeyFigures::default())]
    );

    let used = KeyUse { requests: 3, sign_ups: 1 };
    fixture.run(TouchKey { id: full.id, used, now: after(HOUR) }).await;
    fixture.run(TouchKey { id: full.id, used, now: NOW }).await;
    fixture.run(TouchKey { id: key(9, "x").id, used, now: NOW }).await;
    let today = day_of(NOW);
    let used = UsageDay { day: today, requests: 6, sign_ups: 2, confirmations: 0 };
    assert_eq!(fixture.run(ListUsage { partner: zoe, from: today - 1, to: today }).await, vec![used]);
    assert_eq!(fixture.run(ListUsage { partner: zoe, from: today - 2, to: today - 1 }).await, vec![]);
    assert_eq!(
        fixture.run(ListUsage { partner: fixture.partner.id, from: today, to: today }).await,
        vec![],
        "another's"
    );
    let touched = fixture.run(FindKey(full.id)).await.unwrap();
    assert_eq!(touched.last_used_at, Some(after(HOUR)), "never backwards");

    let revoked = fixture.run(RevokeKey(full.id, after(HOUR))).await.unwrap();
    assert_eq!((revoked.key.revoked_at, revoked.was_last), (Some(after(HOUR)), true));
    let again = fixture.run(RevokeKey(full.id, after(HOUR * 9))).await.unwrap();
    assert_eq!(again.key.revoked_at, Some(after(HOUR)), "the first time stays");
    assert_eq!(fixture.run(RevokeKey(key(9, "x").id, NOW)).await, None);
}

async fn keys_rotate(fixture: &Fixture) {
    let rotate = |old, end, successor, by_partner| fixture.run(RotateKey { old, end, successor, by_partner });
    let old = key(1, "Acme");
    assert_eq!(rotate(old.id, after(HOUR), key(4, "Acme"), false).await, RotatedKey::Done);
    assert_eq!(fixture.run(FindKey(old.id)).await.unwrap().expires_at, Some(after(HOUR)));
    assert_eq!(fixture.run(FindKey(key(4, "Acme").id)).await, Some(unused(key(4, "Acme"), fixture.partner.id)));
    let again = rotate(old.id, after(HOUR), key(5, "Acme"), true).await;
    assert_eq!(again, RotatedKey::Replaced(key(4, "Acme").id), "a partner rotates a key once");
    assert_eq!(rotate(old.id, after(HOUR * 9), key(5, "Acme"), false).await, RotatedKey::Done);
    assert_eq!(fixture.run(FindKey(old.id)).await.unwrap().expires_at, Some(after(HOUR)), "never later");
    assert_eq!(rotate(key(9, "x").id, NOW, key(6, "x"), false).await, RotatedKey::Over);
    assert!(!fixture.run(RevokeKey(old.id, NOW)).await.unwrap().was_last, "its successors work");
    assert_eq!(rotate(old.id, NOW, key(6, "Acme"), false).await, RotatedKey::Over);
    // A chain of rotations does not multiply keys.
    let mut last = key(5, "Acme");
    for n in 0..MAX_ENDING_KEYS {
        let next = key(20 + n as u8, "Acme");
        assert_eq!(rotate(last.id, after(HOUR), next.clone(), true).await, RotatedKey::Done, "{n}");
        last = next;
    }
    assert_eq!(rotate(last.id, after(HOUR), key(40, "Acme"), true).await, RotatedKey::TooMany);
    let later = IssuedKey { created_at: after(HOUR), ..key(40, "Acme") };
    assert_eq!(rotate(last.id, after(HOUR * 2), later, true).await, RotatedKey::Done, "those have ended");
    assert_eq!(fixture.run(FindKey(key(6, "x").id)).await, None, "nothing done");
}

async fn the_secret_is_claimed_once(fixture: &Fixture) {
    let claim = |text: &str| fixture.store.run(ClaimSecret(HeldSecret::only(text.to_owned())));
    let whose = |text: &str| fixture.store.run(CompareSecret(HeldSecret::only(text.to_owned())));
    assert_eq!(whose("theirs").await, Ok(Claim::First), "and nothing is tied by asking");
    assert_eq!(claim("ours").await, Ok(Claim::First));
    assert_eq!(whose("ours").await, Ok(Claim::Same));
    assert_eq!(whose("theirs").await, Ok(Claim::Another));
    assert_eq!(whose("").await, Ok(Claim::Another));
    assert_eq!(claim("ours").await, Ok(Claim::Same));
    assert_eq!(claim("theirs").await, Ok(Claim::Another));
    assert_eq!(claim("ours").await, Ok(Claim::Same));
    assert_eq!(fixture.store.check(true).await, Ok(()));
}

async fn the_time_of_the_latest_record_is_known(fixture: &Fixture) {
    let before = fixture.run(FindLatestRecord).await;
    assert!(before <= Some(NOW), "{before:?}");
    fixture.sign_up_at("ana@example.com", after(HOUR)).await;
    assert_eq!(fixture.run(FindLatestRecord).await, Some(after(HOUR)));
    let late = IssuedKey { created_at: after(HOUR * 2), ..key(7, "Late") };
    fixture.run(IssueKey(late)).await;
    assert_eq!(fixture.run(FindLatestRecord).await, Some(after(HOUR * 2)));
}

async fn a_closed_store_says_so(fixture: &Fixture) {
    fixture.store.close().await.unwrap();
    let refused = fixture.store.sign_up(fixture.new_sign_up("ana@example.com"), NOW).await;
    assert!(matches!(refused, Err(NotDone::Store(StoreError::Unavailable(_)))), "{refused:?}");
    fixture.store.close().await.expect("closing twice is no error");
}

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn old_sign_ups_expire_and_their_answers_are_deleted(fixture: &Fixture) {
    let code = fixture.sign_up("ana@example.com").await.code;
    fixture
        .store
        .sign_up(
            NewSignUp { answers: answers(None, None, Some("private")), ..fixture.new_sign_up("ben@example.com") },
            NOW,
        )
        .await
        .unwrap();
    fixture.sign_up("cleo@example.com").await;
    fixture.confirm(3).await;
    let retain = async |span| fixture.run(Retain { times: TIMES, now: after(span) }).await;
    assert_eq!(retain(PENDING_FOR - MINUTE).await, Retained { expired: 0, purged: 0, sign_ins: 0, named: 0 });
    assert_eq!(retain(PENDING_FOR).await, Retained { expired: 2, purged: 0, sign_ins: 0, named: 0 });
    assert_eq!(fixture.run(ListMail).await, [], "their mail is gone too");
    assert_eq!(retain(TIMES.answers - MINUTE).await, Retained { expired: 0, purged: 0, sign_ins: 0, named: 0 });
    assert!(fixture.run(FindSignUp(linked(2), NOW)).await.unwrap().answers.comments.is_some());
    assert_eq!(retain(TIMES.answers).await, Retained { expired: 0, purged: 2, sign_ins: 0, named: 0 });
    assert_eq!(retain(TIMES.answers * 2).await, Retained { expired: 0, purged: 0, sign_ins: 0, named: 0 }, "once");
    let purged = fixture.run(FindSignUp(linked(2), NOW)).await.unwrap();
    assert_eq!(purged.answers, Answers::default());
    assert_eq!(fixture.kept_code("ana@example.com").await, Some(code), "codes stay");
    assert_eq!(fixture.members().await, 1);
}

async fn a_sign_up_without_a_partner_is_its_own(fixture: &Fixture) {
    let alone = || NewSignUp { partner: None, ..fixture.new_sign_up("ana@example.com") };
    fixture.store.sign_up(alone(), NOW).await.unwrap();
    let first = about(&fixture.lease("w", NOW).await[0]);
    fixture.store.sign_up(alone(), NOW).await.unwrap();
    assert_eq!(fixture.run(ListMail).await.len(), 2, "each post stands for itself");
    fixture.sign_up("ana@example.com").await;
    assert_eq!(fixture.run(ListMail).await.len(), 3, "the partner's stands beside them");
    assert_eq!(fixture.run(FindSignUp(first, NOW)).await.unwrap().partner, None);
    assert!(matches!(fixture.confirm_at(first, NOW).await, Confirmation::Joined(_)));
}

/// A thief's post replaced the owner's referrer and comments, unseen.
async fn a_post_of_the_form_touches_no_other(fixture: &Fixture) {
    let thief = fixture.sign_up("thief@example.com").await.code;
    let friend = fixture.sign_up("friend@example.com").await.code;
    let post = |code, words: &str| NewSignUp {
        partner: None,
        ref_code: Some(code),
        answers: answers(None, None, Some(words)),
        ..fixture.new_sign_up("ana@example.com")
    };
    fixture.store.sign_up(post(friend, "mine"), NOW).await.unwrap();
    let mailed = fixture.lease("w", NOW).await;
    let own = mailed.iter().find(|mail| mail.recipient == "ana@example.com").unwrap();
    fixture.settle(own, MailOutcome::Sent, NOW).await;
    for n in 1..=6 {
        fixture.store.sign_up(post(thief, "theirs"), after(MINUTE * n)).await.unwrap();
    }
    let shown = fixture.run(FindSignUp(about(own), after(MINUTE * 7))).await.unwrap();
    assert_eq!(
        (shown.state, shown.answers.comments.unwrap().as_str(), shown.referrer.map(|named| named.code)),
        (SignUpState::Pending, "mine", Some(friend))
    );
    let of_ana = async || {
        let mut pending = 0;
        for entry in fixture.file("ana@example.com").await.unwrap().sign_ups {
            let record = fixture.run(FindSignUp(of_entry(&entry), after(MINUTE * 7))).await.unwrap();
            pending += usize::from(record.state == SignUpState::Pending);
        }
        pending
    };
    assert_eq!(of_ana().await, POSTS_PENDING, "whose mail has left is kept, and two more wait");
    // Credit follows the button that is pressed.
    assert!(matches!(fixture.confirm_at(about(own), after(MINUTE * 7)).await, Confirmation::Joined(_)));
}

async fn only_what_was_seen_is_confirmed(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let shown = fixture.run(FindSignUp(linked(1), NOW)).await.unwrap();
    assert_eq!(shown.updated_at, NOW);
    fixture.sign_up_at("ana@example.com", after(MINUTE)).await;
    let press = async |seen| {
        let seen = SeenPage { answers: Some(seen), ..SeenPage::default() };
        fixture.store.confirm(linked(1), seen, after(MINUTE)).await.unwrap()
    };
    assert_eq!(press(shown.updated_at).await, Confirmation::Changed);
    assert_eq!(fixture.members().await, 0);
    assert!(matches!(press(after(MINUTE)).await, Confirmation::Joined(_)));
    assert_eq!(press(NOW).await, Confirmation::AlreadyMember);
}
