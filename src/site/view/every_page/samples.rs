//! Whom and what the pages are shown with: a member of whom everything is kept, and a campaign in each state.

use crate::domain::campaign::CampaignState;
use crate::domain::campaign::demand::DemandSheet;
use crate::domain::campaign::draft::CampaignDraft;
use crate::domain::campaign::offer::Offer;
use crate::domain::campaign::record::{CampaignId, CampaignRecord};
use crate::domain::catalog::category::CategorySet;
use crate::domain::language::Language;
use crate::domain::mail::choices::KeptChoices;
use crate::domain::person::{
    KeptEvidence, KeptNotice, MailboxStanding, PersonFile, PersonRecord, PersonState, Referrals, SignUpEntry,
    StoppedPartner,
};
use crate::domain::referral::ReferralCode;
use crate::domain::reward::ledger::{CampaignStanding, RewardHistory, RewardStanding};
use crate::domain::sign_up::{Channel, PENDING_FOR, SignUpId, SignUpState};
use crate::domain::time::Timestamp;

/// A member with every kind of text that others can bring.
pub(super) fn own_file(text: &str) -> PersonFile {
    let at = Timestamp::from_millis(1_794_743_200_000);
    let code = ReferralCode::from_canonical("yd8z2z0xsrw1").unwrap();
    let sign_up = SignUpEntry {
        id: SignUpId(1),
        email: String::new(),
        source: format!("Acme Assistant{text}"),
        key: None,
        state: SignUpState::Confirmed,
        us_state: None,
        categories: CategorySet::default(),
        comments: String::new(),
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
    PersonFile {
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
            us_state: None,
            categories: CategorySet::default(),
            comments: format!("My own words{text}"),
            answered_at: None,
            mail_choices: KeptChoices::default().read(true),
            language: None,
            uncredited: false,
            source: None,
        },
        mailbox,
        sign_ups: vec![sign_up],
        participations: Vec::new(),
        rewards: rewards_of(at),
        reward_history: RewardHistory::default(),
        referrals: Referrals { signed_up: 1000, members: 12 },
        requests: Vec::new(),
        sign_ins: Vec::new(),
        wrong_codes: 0,
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

/// A campaign with an offer, with the operator's own texts.
pub(super) fn campaign_of(text: &str, state: CampaignState) -> CampaignRecord {
    let draft = r#"
        slug = "internet-2027"
        category = "internet"
        states = ["CA", "OR"]
        gather_until = 2027-01-31
        [text.en]
        title = "Home internet, winter 2027"
        summary = "Faster for less: one price for all who are in."
        [text.es]
        title = "Internet en casa, invierno de 2027"
        summary = "Más rápido por menos: un precio para todos los que se suman."
    "#;
    let offer = r#"
        supplier = "Example Fiber"
        annual_saving = 240
        term_months = 12
        decide_by = 2027-03-15
        complaints = "help@fiber.example"
        benchmark = { price = "$68 a month", source = "FCC urban rate survey", date = 2026-12-01 }
        [text.en]
        price = "$48 a month"
        exit_fee = "None"
        details = "300 Mbit/s, router included."
        how = "Example Fiber emails you a code. Order with it on their page."
        [text.es]
        price = "$48 al mes"
        exit_fee = "Ninguno"
        details = "300 Mbit/s, con el router incluido."
        how = "Example Fiber te manda un código por correo. Haz tu pedido con él en su página."
        benchmark_price = "$68 al mes"
    "#;
    let mut draft = CampaignDraft::parse(draft).unwrap();
    draft.slug = format!("internet-{}", state.name()).parse().unwrap();
    draft.texts.iter_mut().for_each(|(_, texts)| texts.title.push_str(text));
    draft.texts.iter_mut().for_each(|(_, texts)| texts.summary.push_str(text));
    let mut offer = Offer::parse(offer).unwrap();
    offer.texts.iter_mut().for_each(|(_, texts)| texts.price.push_str(text));
    offer.complaints.push_str(text);
    let at = Timestamp::from_millis(1_794_743_200_000);
    CampaignRecord {
        id: CampaignId(1),
        state,
        draft,
        offer: (!state.gathers()).then_some(offer),
        was_public: true,
        created_at: at,
        active_at: None,
        closed_at: Some(at),
        terms: None,
        sheet: Some((at, DemandSheet { members_in: 1230, accepted: 610, ..DemandSheet::default() })),
    }
}
