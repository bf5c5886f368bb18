//! Whom and what the pages are shown with: a member of whom everything is kept, and a campaign in each state.

use crate::domain::answers::Answers;
use crate::domain::campaign::CampaignState;
use crate::domain::campaign::acceptance::{AcceptanceEntry, Handover, Reference};
use crate::domain::campaign::demand::DemandSheet;
use crate::domain::campaign::draft::SourceText;
use crate::domain::campaign::offer::Deal;
use crate::domain::campaign::participation::{ParticipationEntry, ParticipationState};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::tests::{campaign, offered};
use crate::domain::email::EmailAddress;
use crate::domain::language::Language;
use crate::domain::mail::choices::KeptChoices;
use crate::domain::person::{
    KeptEvidence, KeptNotice, MailboxStanding, PersonDetails, PersonRecord, PersonState, Referrals, SignUpEntry,
    StoppedPartner,
};
use crate::domain::referral::ReferralCode;
use crate::domain::reward::ledger::{CampaignStanding, RewardHistory, RewardStanding};
use crate::domain::sign_up::{Channel, NamedReferrer, PENDING_FOR, SignUpId, SignUpRecord, SignUpState, Silence};
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;

/// A member with every kind of text that others can bring.
pub(super) fn own_file(text: &str) -> PersonDetails {
    let at = Timestamp::from_millis(1_794_743_200_000);
    let code = ReferralCode::from_canonical("yd8z2z0xsrw1").unwrap();
    let sign_up = SignUpEntry {
        id: SignUpId(1),
        email: String::new(),
        source: format!("Acme Assistant{text}"),
        key: None,
        state: SignUpState::Confirmed,
        answers: answers_of(text),
        referrer: Some(code),
        disposable: false,
        created_at: at,
        updated_at: at,
        expires_at: at,
        decided_at: Some(at),
        mail: None,
        evidence: KeptEvidence {
            channel: Some(Channel::Mcp),
            client: Some(format!("Helper{text}")),
            notice: Some(KeptNotice { hash: "abc".to_owned(), words: Some(format!("By confirming, you join.{text}")) }),
            mailed_at: Some(at),
            decided_how: Some("button".to_owned()),
            language: Some(Language::English),
        },
    };
    let mailbox = MailboxStanding {
        suppressed_until: Some(at.plus(PENDING_FOR)),
        complained_at: Some(at),
        stopped: vec![StoppedPartner { partner: format!("Acme Assistant{text}"), stopped_at: at }],
        ..MailboxStanding::default()
    };
    PersonDetails {
        person: PersonRecord {
            id: 1,
            email: format!("ana@example.com{text}"),
            state: PersonState::Member,
            code,
            account: None,
            created_at: at,
            joined_at: Some(at),
            left_at: Some(at),
            erased_at: None,
            referrer: None,
            referred: 1,
            undeliverable_until: Some(at.plus(PENDING_FOR)),
            soft_bounces: 0,
            answers: Answers { categories: None, ..answers_of(text) },
            answered_at: None,
            mail_choices: KeptChoices::default().read(true),
            language: None,
            uncredited: false,
            source: None,
        },
        mailbox,
        sign_ups: vec![sign_up],
        participations: vec![ParticipationEntry {
            campaign: "internet-active".parse().unwrap(),
            state: ParticipationState::Accepted,
            in_at: Some(at),
            accepted_at: Some(at),
            changed_at: at,
            acceptances: vec![acceptance_of(at)],
        }],
        rewards: rewards_of(at),
        reward_history: RewardHistory::default(),
        referrals: Referrals { signed_up: 1000, members: 12 },
        requests: Vec::new(),
        sign_ins: Vec::new(),
        wrong_codes: 0,
    }
}

/// An acceptance that nothing has become of yet.
pub(in crate::site::view) fn acceptance_of(at: Timestamp) -> AcceptanceEntry {
    AcceptanceEntry {
        reference: Reference::from_random(&[1, 2, 3, 4, 5, 6]),
        handover: Handover::Code,
        told: None,
        made_at: at,
        accepted_at: at,
        ended_at: None,
        ended_why: None,
        handed_over_at: None,
        withdrawn_at: None,
        report: None,
        reported_at: None,
        trouble_at: None,
    }
}

/// Somebody who referred people in every stage there is.
fn rewards_of(at: Timestamp) -> RewardStanding {
    let standing = |slug: &str, on_hold, waiting, groups, capped| CampaignStanding {
        campaign: slug.parse().unwrap(),
        group_size: 5,
        reward_cents: 10_000,
        max_groups: 10,
        on_hold,
        on_hold_until: (on_hold > 0).then(|| at.plus(PENDING_FOR)),
        waiting,
        groups,
        has_the_most: capped > 0,
        capped,
    };
    RewardStanding {
        due_cents: 20_000,
        out_cents: 10_000,
        paid_cents: 700_000,
        rewarded_groups: 10,
        rewarded_cents: 100_000,
        campaigns: vec![
            standing("internet-2025", 0, 0, 4, 0),
            standing("internet-closed", 0, 3, 1, 1),
            standing("internet-active", 3, 2, 5, 0),
        ],
    }
}

/// Every answer.
pub(super) fn answers_of(text: &str) -> Answers {
    let stored = |name| match name {
        "us_state" => "CA".to_owned(),
        "categories" => "mobile_bills,mortgage".to_owned(),
        _ => format!("Two cars, and a cat.\nRing after six.{text}"),
    };
    Answers::from_texts(|name| Ok::<_, ()>(Some(stored(name)))).unwrap()
}

/// A sign-up through a partner's assistant, with every answer.
pub(in crate::site::view) fn sign_up_of(text: &str) -> SignUpRecord {
    let code = ReferralCode::from_canonical("yd8z2z0xsrw1").unwrap();
    SignUpRecord {
        state: SignUpState::Pending,
        email: EmailAddress::parse("ana@example.com").unwrap(),
        code,
        partner: Some(format!("Acme Assistant{text}")),
        answers: answers_of(text),
        referrer: Some(NamedReferrer { code, email: EmailAddress::parse("kim@example.com").ok() }),
        updated_at: Timestamp::from_millis(1_800_000_000_000),
        is_member: false,
        joined_at: None,
        language: None,
        campaign: None,
        can_take_back: false,
        silence: Silence::default(),
        silent_until: None,
    }
}

/// A campaign with an offer, with the operator's own texts.
pub(in crate::site::view) fn campaign_of(text: &str, state: CampaignState) -> CampaignRecord {
    let mut campaign = if state.gathers() { campaign(state) } else { offered(state) };
    campaign.draft.slug = format!("internet-{}", state.name()).parse().unwrap();
    campaign.draft.states = vec![UsState::CA, UsState::OR];
    for (_, texts) in &mut campaign.draft.texts {
        texts.title.push_str(text);
        texts.summary.push_str(text);
    }
    if let Some(offer) = &mut campaign.offer {
        if let Deal::Reckoned(deal) = &mut offer.deal {
            deal.bid.supplier.push_str(text);
            deal.bid.fees[0].name.push_str(text);
            deal.benchmark.source = SourceText::One(format!("FCC urban rate survey{text}"));
            deal.bid.states = vec![UsState::CA];
        }
        for (_, texts) in &mut offer.terms.texts {
            texts.details = Some("300 Mbit/s, router included.".to_owned());
        }
        offer.terms.complaints.push_str(text);
    }
    let at = Timestamp::from_millis(1_794_743_200_000);
    let day = |before: u64| Some(Timestamp::from_millis(at.as_millis() - 86_400_000 * before as i64));
    (campaign.opened_at, campaign.negotiating_at) = (day(60), day(30).filter(|_| state != CampaignState::Gathering));
    campaign.offered_at = day(10).filter(|_| !state.gathers());
    campaign.active_at = day(2).filter(|_| !state.gathers() && state != CampaignState::Offered);
    campaign.closed_at = Some(at);
    campaign.sheet = Some((at, DemandSheet { members_in: 1230, accepted: 610, ..DemandSheet::default() }));
    campaign
}
