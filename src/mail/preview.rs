//! Each mail in each language, with invented facts, as an operator looks at it. The composer that makes it has a site and a secret that
//! nobody has: no link in it leads anywhere.

use std::sync::Arc;

use super::ReadableMail;
use super::compose::Composer;
use crate::domain::campaign::CampaignState;
use crate::domain::campaign::acceptance::Reference;
use crate::domain::campaign::bid::Bid;
use crate::domain::campaign::demand::DemandSheet;
use crate::domain::campaign::draft::CampaignDraft;
use crate::domain::campaign::offer::{Deal, Offer, Proposal, ReckonedDeal};
use crate::domain::campaign::record::{CampaignId, CampaignRecord};
use crate::domain::language::Language;
use crate::domain::mail::lane::Lane;
use crate::domain::mail::{CampaignNews, DueMail, MailAbout, MailId, MailKind, PersonRef, Receipt};
use crate::domain::referral::ReferralCode;
use crate::domain::sign_in::{SignInId, SignInRef};
use crate::domain::sign_up::{SignUpId, SignUpRef};
use crate::domain::time::Timestamp;

/// Where the links of a preview lead. No such name can exist (RFC 2606).
pub const PREVIEW_SITE: &str = "https://preview.invalid";

const PARTNER: &str = "Example Assistant";

impl Composer {
    pub fn preview(&self, kind: MailKind, language: Language, now: Timestamp) -> Option<ReadableMail> {
        let person = PersonRef { id: 0, created_at: now };
        let campaign = |state| sample_campaign(state, now).map(Arc::new);
        let about = match (kind, kind.campaign()) {
            (MailKind::SignIn, _) => MailAbout::SignIn(SignInRef { id: SignInId(0), created_at: now }),
            (MailKind::Receipt, _) => MailAbout::Receipt(Receipt {
                campaign: campaign(CampaignState::Active)?,
                person,
                reference: Reference::from_random(&[1, 2, 3, 4, 5, 6]),
                accepted_at: now,
            }),
            (_, Some(mail)) => {
                let state = match kind {
                    MailKind::CampaignOpened => CampaignState::Gathering,
                    MailKind::CampaignOffer => CampaignState::Offered,
                    _ => CampaignState::Closed,
                };
                MailAbout::Campaign(CampaignNews { mail, campaign: campaign(state)?, person })
            }
            _ => MailAbout::SignUp(SignUpRef { id: SignUpId(0), created_at: now }),
        };
        let is_about_sign_up = matches!(about, MailAbout::SignUp(_));
        let mail = DueMail {
            id: MailId(0),
            about,
            kind,
            recipient: "you@example.com".to_owned(),
            partner_id: None,
            partner: is_about_sign_up.then(|| PARTNER.to_owned()),
            asked_at: now,
            code: ReferralCode::from_canonical("yd8z2z0xsrw1")?,
            attempts: 1,
            first_attempt_at: now,
            lane: Lane::of(PARTNER.as_bytes()),
            language: Some(language),
            is_reminder: false,
        };
        self.compose(&mail).ok().map(|mail| mail.readable)
    }
}

/// The campaign of the files that `campaigns --help` shows.
fn sample_campaign(state: CampaignState, now: Timestamp) -> Option<CampaignRecord> {
    let draft = CampaignDraft::parse(include_str!("../cli/campaigns/campaign.sample.toml")).ok()?;
    let bid = Bid::parse(include_str!("../cli/campaigns/bid.sample.toml")).ok()?;
    let terms = Proposal::parse(include_str!("../cli/campaigns/offer.sample.toml")).ok()?.terms;
    let deal = ReckonedDeal { number: 1, bid, household: draft.household, benchmark: draft.benchmark.clone()? };
    let offer = Offer { terms, deal: Deal::Reckoned(Box::new(deal)) };
    Some(CampaignRecord {
        id: CampaignId(0),
        state,
        draft,
        offer: (state != CampaignState::Gathering).then_some(offer),
        withdrawn: None,
        opened_at: Some(now),
        negotiating_at: None,
        offered_at: None,
        created_at: now,
        active_at: None,
        closed_at: None,
        terms: None,
        sheet: Some((now, DemandSheet { members_in: 1230, accepted: 610, ..DemandSheet::default() })),
        is_counting: false,
        switched: None,
    })
}
