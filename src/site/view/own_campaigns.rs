//! Campaigns on a member's own page: a short card for each, the figures that stay in view, and where to begin.

use super::Frame;
use super::campaign::{CampaignCard, MemberPart, PartPlace, member_cards};
use super::join::JoinForm;
use crate::domain::campaign::acceptance::{Handover, OrderStatus};
use crate::domain::campaign::offer::Offer;
use crate::domain::campaign::participation::{ParticipationEntry, ParticipationState, Press};
use crate::domain::campaign::record::{CampaignRecord, NextDate};
use crate::domain::campaign::wording::OfferWords;
use crate::domain::campaign::{CampaignSlug, CampaignState};
use crate::domain::catalog::category::CategorySet;
use crate::domain::figure::grouped;
use crate::domain::language::{Filling, Phrase};
use crate::domain::person::{PersonDetails, RetentionTimes};
use crate::domain::time::{DAY, Timestamp};

const FIRST_CAMPAIGNS: usize = 2;

/// What the page shows besides what is kept.
#[derive(Clone, Copy)]
pub struct OwnView<'a> {
    pub file: &'a PersonDetails,
    pub token: &'a str,
    /// What fits them best first, each with their part in it.
    pub campaigns: &'a [(&'a CampaignRecord, MemberPart<'a>)],
    /// Those in which somebody whom they referred counts, as far as people know them.
    pub rewarded: &'a [&'a CampaignRecord],
    pub done: Option<&'a str>,
    /// Whether an offer is mailed to them once there is one.
    pub gets_offer: bool,
    /// What they just pressed here, and of which campaign.
    pub pressed: Option<(Press, &'a str)>,
    pub refused: Option<&'a JoinForm>,
    pub times: RetentionTimes,
    pub sign_ups_paused: bool,
}

/// A member's campaigns, those first in which a deal of theirs runs.
pub(super) struct OwnCampaigns<'a> {
    pub(super) deals: Vec<OwnCard<'a>>,
    pub(super) open: Vec<OwnCard<'a>>,
    pub(super) past: Vec<OwnCard<'a>>,
    pub(super) summary: Summary,
    /// What waits for a decision of theirs: a place, and what to do there.
    pub(super) first: Vec<(String, String)>,
}

pub(super) struct OwnCard<'a> {
    pub(super) card: CampaignCard<'a>,
    /// What the offer costs and saves, where they can accept it or have.
    pub(super) facts: Vec<(&'static str, String)>,
    /// What they just pressed, once it is so.
    pub(super) done: Option<Filling>,
    /// Who delivers it, where it is a deal of theirs that runs.
    pub(super) supplier: Option<&'a str>,
    /// What leads to the campaign's page besides its title, and whether they should follow it.
    pub(super) link: Option<(&'static Phrase, bool)>,
    /// What they can press here, and its label.
    pub(super) press: Option<(&'static str, &'static Phrase)>,
    pub(super) shows_count: bool,
    /// They never pressed anything there, and read what it is about.
    pub(super) is_new: bool,
}

/// Three figures that stay in view, each with its label.
pub(super) struct Summary {
    pub(super) saves: (&'static str, String),
    pub(super) has_deals: bool,
    /// The label, the day, and the campaign that it is about.
    pub(super) next: Option<(&'static str, String, String)>,
    pub(super) friends: String,
}

impl<'a> OwnCampaigns<'a> {
    pub(super) fn of(page: Frame<'a>, view: &OwnView<'a>) -> Self {
        let chosen = view.file.person.answers.chosen();
        let mut own = Self {
            deals: Vec::new(),
            open: Vec::new(),
            past: Vec::new(),
            summary: Summary::of(page, view),
            first: Vec::new(),
        };
        let cards = member_cards(page, view.campaigns, PartPlace::OwnPage);
        for ((record, part), card) in view.campaigns.iter().zip(cards) {
            own.first.extend(Some(part).filter(|part| concerns(record, part, chosen)).and_then(|part| {
                let presses = record.open_presses(part.state, part.us_state, page.now).presses;
                let (what, place) = match presses.first()? {
                    Press::Accept => (&page.words.own.first_accept, format!("/campaigns/{}", card.slug)),
                    Press::In => (&page.words.own.first_in, format!("#campaign-{}", card.slug)),
                    Press::Out | Press::Pass => return None,
                };
                Some((place, what.put("title", card.title).plain()))
            }));
            let place = match record.state {
                _ if runs(record, part, page.now) => &mut own.deals,
                CampaignState::Closed | CampaignState::Cancelled => &mut own.past,
                _ => &mut own.open,
            };
            place.push(OwnCard::of(page, record, part, card, view.pressed, view.gets_offer));
        }
        own.first.truncate(FIRST_CAMPAIGNS);
        own
    }
}

impl<'a> OwnCard<'a> {
    fn of(
        page: Frame<'a>,
        record: &'a CampaignRecord,
        part: &MemberPart<'_>,
        card: CampaignCard<'a>,
        pressed: Option<(Press, &str)>,
        gets_offer: bool,
    ) -> Self {
        let (own, campaign) = (&page.words.own, &page.words.campaign);
        let open = record.open_presses(part.state, part.us_state, page.now);
        let can = |press| open.presses.contains(&press);
        let is_accepted = part.state == Some(ParticipationState::Accepted);
        let offer = record.offer.as_ref().filter(|_| can(Press::Accept) || is_accepted);
        let done = match pressed.filter(|(_, slug)| *slug == card.slug).map(|(press, _)| (press, part.state)) {
            Some((Press::In, Some(ParticipationState::In))) if gets_offer => Some(&own.done_in),
            Some((Press::In, Some(ParticipationState::In))) => Some(&own.done_in_here),
            Some((Press::Out, None | Some(ParticipationState::Out))) => Some(&own.done_out),
            _ => None,
        };
        let press = if can(Press::In) && !open.needs_state {
            Some((Press::In.name(), &campaign.count_in))
        } else {
            can(Press::Out).then(|| (Press::Out.name(), &campaign.count_out))
        };
        Self {
            facts: offer.map_or_else(Vec::new, |offer| {
                let told = OfferWords::of(offer, page.language);
                let labels = &page.words.deal;
                vec![(labels.price.as_str(), told.price), (labels.saving_label.as_str(), told.saving)]
            }),
            done: done.map(|phrase| phrase.put("title", card.title)),
            supplier: record.offer.as_ref().filter(|_| runs(record, part, page.now)).map(Offer::supplier),
            link: if can(Press::Accept) {
                Some((&own.decide, true))
            } else if can(Press::In) && open.needs_state {
                Some((&own.name_state, true))
            } else {
                is_accepted.then_some((&own.see, false))
            },
            press,
            shows_count: record.state.gathers(),
            is_new: part.state.is_none(),
            card,
        }
    }
}

impl Summary {
    fn of(page: Frame<'_>, view: &OwnView<'_>) -> Self {
        let (own, deal) = (&page.words.own, &page.words.deal);
        let chosen = view.file.person.answers.chosen();
        let running = view.campaigns.iter().filter(|(record, part)| runs(record, part, page.now));
        let running: Vec<_> = running.filter_map(|(record, _)| record.offer.as_ref()).collect();
        // What is saved at each use is part of no year's sum.
        let (by_use, by_year): (Vec<&Offer>, Vec<_>) = running.iter().partition(|offer| offer.is_by_use());
        let a_year = by_year.iter().fold(0, |sum: u64, offer| sum.saturating_add(offer.saving()));
        let each_time = by_use.iter().map(|offer| offer.saving()).max().unwrap_or(0);
        let saves = match (a_year, each_time) {
            (0, 0) => (own.save_nothing.as_str(), own.nothing_yet.to_string()),
            (0, amount) => {
                (own.save_about.as_str(), deal.per_use.put("amount", format!("${}", grouped(amount))).plain())
            }
            (amount, _) => {
                (own.save_about.as_str(), deal.per_year.put("amount", format!("${}", grouped(amount))).plain())
            }
        };
        let dates = view.campaigns.iter().filter(|(record, part)| concerns(record, part, chosen));
        let dates = dates.filter_map(|(record, part)| {
            let is_in = part.state == Some(ParticipationState::In);
            let (label, day) = match record.next_date(page.now)? {
                NextDate::Negotiating(day) if is_in => (&own.gathers_until, day),
                NextDate::Negotiating(day) => (&own.count_in_by, day),
                NextDate::AcceptingEnds(day) => (&own.decide_by, day),
            };
            Some((day, label, record.slug()))
        });
        let next = dates.min_by_key(|(day, ..)| *day).map(|(day, label, slug)| {
            let day = page.words.short_date(Timestamp::from_millis(day.number() * 86_400_000));
            (label.as_str(), day, slug.to_string())
        });
        Self { saves, has_deals: !running.is_empty(), next, friends: grouped(view.file.referrals.members) }
    }
}

/// Whether it is theirs to decide about: they are in, or it is about a bill that they chose; and it is for where they live.
fn concerns(record: &CampaignRecord, part: &MemberPart<'_>, chosen: CategorySet) -> bool {
    let is_theirs = match part.state {
        Some(state) => state == ParticipationState::In,
        None => record.draft.is_about(chosen),
    };
    is_theirs && (record.states().is_empty() || part.us_state.is_some_and(|state| record.offer_is_for(Some(state))))
}

/// Whether a deal that they accepted runs: for as long as what it saves was reckoned, and the supplier says nothing else.
fn runs(record: &CampaignRecord, part: &MemberPart<'_>, now: Timestamp) -> bool {
    let Some(offer) = record.offer.as_ref().filter(|_| part.state == Some(ParticipationState::Accepted)) else {
        return false;
    };
    let report = part.acceptance.and_then(|acceptance| acceptance.report);
    if report.is_some_and(|report| matches!(report.status, OrderStatus::Rejected | OrderStatus::Cancelled)) {
        return false;
    }
    let accepted_at = part.acceptance.map(|acceptance| acceptance.accepted_at).or(record.active_at).unwrap_or(now);
    let begins_at = report.map_or(accepted_at, |report| report.begins_at().max(accepted_at));
    let days = offer.term_months().max(12).saturating_mul(365) / 12;
    now < begins_at.plus(DAY.saturating_mul(days)) && record.state != CampaignState::Cancelled
}

/// Each deal that ends with a membership, and the code or reference that is no longer part of it.
pub(super) fn ended_deals<'a>(
    page: Frame<'_>,
    parts: &[ParticipationEntry],
    find: impl Fn(&CampaignSlug) -> Option<&'a CampaignRecord>,
) -> Vec<String> {
    let own = &page.words.own;
    let ended = parts.iter().filter(|part| part.state == ParticipationState::Accepted).map(|part| {
        let record = find(&part.campaign);
        let text = record.and_then(|record| record.draft.text(page.language));
        let title = text.map_or(part.campaign.as_str(), |text| &text.title);
        let supplier = record.and_then(|record| record.offer.as_ref()).map(|offer| format!(" ({})", offer.supplier()));
        let deal = format!("{title}{}", supplier.unwrap_or_default());
        match part.acceptance().map(|acceptance| (acceptance.handover, acceptance.reference)) {
            Some((Handover::Code, code)) => own.ended_deal.put("deal", deal).put("code", code).plain(),
            Some((Handover::Address, code)) => own.ended_deal_address.put("deal", deal).put("code", code).plain(),
            None => own.ended_deal_alone.put("deal", deal).plain(),
        }
    });
    ended.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::campaign::acceptance::{AcceptanceEntry, SupplierReport};
    use crate::domain::campaign::tests::{campaign, offered};
    use crate::domain::us_state::UsState;
    use crate::site::view::every_page::samples::acceptance_of;

    const AT: Timestamp = Timestamp::from_millis(1_794_743_200_000);

    #[test]
    fn a_deal_runs_for_as_long_as_its_saving_was_reckoned_unless_the_supplier_says_otherwise() {
        let record = offered(CampaignState::Closed);
        let mut acceptance = acceptance_of(AT);
        let runs_at = |acceptance: &AcceptanceEntry, state, days| {
            let part = MemberPart {
                state: Some(state),
                acceptance: Some(acceptance),
                ..MemberPart::of("", None, None, CategorySet::default())
            };
            runs(&record, &part, AT.plus(DAY * days))
        };
        let accepted = ParticipationState::Accepted;
        assert!(runs_at(&acceptance, accepted, 364) && !runs_at(&acceptance, accepted, 365), "a year");
        assert!(!runs_at(&acceptance, ParticipationState::Passed, 0));
        let mut report = SupplierReport { status: OrderStatus::Switched, on: "2026-12-15".parse().unwrap() };
        acceptance.report = Some(report);
        assert!(runs_at(&acceptance, accepted, 390), "from the day that the supplier names");
        for over in [OrderStatus::Rejected, OrderStatus::Cancelled] {
            report.status = over;
            acceptance.report = Some(report);
            assert!(!runs_at(&acceptance, accepted, 0), "{over:?}");
        }
    }

    #[test]
    fn what_concerns_somebody_is_about_a_bill_of_theirs_where_they_live() {
        let mut record = campaign(CampaignState::Gathering);
        let bills = |text: &str| CategorySet::from_slugs(text);
        let of = |record: &CampaignRecord, state, us_state, chosen: &str| {
            let part = MemberPart { state, us_state, ..MemberPart::of("", None, None, CategorySet::default()) };
            concerns(record, &part, bills(chosen))
        };
        let is_in = Some(ParticipationState::In);
        assert!(of(&record, None, None, "internet") && !of(&record, None, None, "travel"));
        assert!(of(&record, is_in, None, "") && !of(&record, Some(ParticipationState::Out), None, "internet"));
        record.draft.states = vec![UsState::CA];
        assert!(of(&record, None, Some(UsState::CA), "internet"));
        for elsewhere in [Some(UsState::NY), None] {
            assert!(!of(&record, None, elsewhere, "internet") && !of(&record, is_in, elsewhere, "internet"));
        }
    }
}
