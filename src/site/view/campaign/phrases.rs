//! Campaigns in words: how far one is, what a member's part in it is, why a press changed nothing.

use crate::domain::campaign::acceptance::{AcceptanceEntry, Ended, Handover, OrderStatus, SupplierReport};
use crate::domain::campaign::offer::Offer;
use crate::domain::campaign::participation::{BadPress, ParticipationState, Press, PressAnswers};
use crate::domain::campaign::record::{CampaignRecord, OpenPresses};
use crate::domain::campaign::wording::{OfferWords, result_words};
use crate::domain::campaign::{CampaignState, LastDay};
use crate::domain::language::{Language, Phrase, Words};
use crate::domain::time::Timestamp;
use crate::site::view::MemberPart;

/// A day, as the language writes it.
pub(super) fn day(words: &Words, day: LastDay) -> String {
    words.date(Timestamp::from_millis(day.number() * 86_400_000))
}

/// The states that a campaign is for.
pub(super) fn places(words: &Words, campaign: &CampaignRecord) -> String {
    let states: Vec<_> = campaign.draft.states.iter().map(|state| words.state(*state)).collect();
    if states.is_empty() { words.campaign.everywhere.to_string() } else { words.list(&states) }
}

/// The states that its offer is for.
pub(super) fn offer_places(words: &Words, campaign: &CampaignRecord) -> String {
    let states: Vec<_> = campaign.states().iter().map(|state| words.state(*state)).collect();
    if states.is_empty() { words.campaign.everywhere.to_string() } else { words.list(&states) }
}

/// Whether the offer is for a member who can still decide, in a sentence; none where they are asked first, or have accepted.
pub(super) fn fits(
    words: &Words,
    campaign: &CampaignRecord,
    part: MemberPart<'_>,
    open: &OpenPresses,
    now: Timestamp,
) -> Option<String> {
    let texts = &words.campaign;
    if open.presses.contains(&Press::Accept) {
        return (!open.needs_state && !open.asks_whether_customer).then(|| texts.offer_fits.to_string());
    }
    let said = PressAnswers { us_state: part.us_state, is_customer: None, agrees: true };
    let why = campaign.press(part.state, Press::Accept, said, now).err()?;
    let state = part.us_state.filter(|_| why == BadPress::OfferElsewhere)?;
    let elsewhere = match part.hears_of.contains(campaign.draft.category) {
        true => &texts.offer_elsewhere_mailed,
        false => &texts.offer_elsewhere,
    };
    Some(elsewhere.put("state", words.state(state)).plain())
}

pub(super) fn short(words: &'static Words, campaign: &CampaignRecord, now: Timestamp) -> String {
    let until = campaign.last_day_to_accept().filter(|day| !day.is_over(now));
    let (plain, dated, date) = match campaign.state {
        CampaignState::Gathering => {
            (&words.campaign.gathering, &words.campaign.short_gathering, Some(campaign.draft.gather_until))
        }
        CampaignState::Offered => (&words.campaign.offered, &words.campaign.short_offered, until),
        CampaignState::Active => (&words.campaign.active, &words.campaign.short_active, until),
        state => return step(words, state).to_string(),
    };
    date.map_or_else(|| plain.to_string(), |date| dated.put("date", day(words, date)).plain())
}

pub(super) fn step(words: &'static Words, state: CampaignState) -> &'static Phrase {
    let words = &words.campaign;
    match state {
        CampaignState::Draft | CampaignState::Gathering => &words.gathering,
        CampaignState::Negotiating => &words.negotiating,
        CampaignState::Offered => &words.offered,
        CampaignState::Active => &words.active,
        CampaignState::Closed => &words.closed,
        CampaignState::Cancelled => &words.cancelled,
    }
}

/// What is true of it now, and until when.
pub(super) fn stands(words: &'static Words, campaign: &CampaignRecord, now: Timestamp) -> String {
    let texts = &words.campaign;
    let last_day = || campaign.last_day_to_accept().map(|last| day(words, last)).unwrap_or_default();
    let ended = || campaign.closed_at.map(|at| words.date(at)).unwrap_or_default();
    let is_open = campaign.takes_acceptances(now);
    let (text, date) = match campaign.state {
        CampaignState::Draft | CampaignState::Gathering => {
            (&texts.now_gathering, day(words, campaign.draft.gather_until))
        }
        CampaignState::Negotiating => return texts.now_negotiating.to_string(),
        CampaignState::Offered if is_open => (&texts.now_offered, last_day()),
        CampaignState::Offered => (&texts.now_offered_over, last_day()),
        CampaignState::Active if is_open => (&texts.now_active, last_day()),
        CampaignState::Active => (&texts.now_active_over, last_day()),
        CampaignState::Closed => (&texts.now_closed, ended()),
        CampaignState::Cancelled => (&texts.now_cancelled, ended()),
    };
    text.put("date", date).plain()
}

/// That the offer was withdrawn, by whom and why, until there is another.
pub(super) fn withdrawn(language: Language, campaign: &CampaignRecord) -> Option<String> {
    let withdrawn = campaign.withdrawn.as_ref()?;
    let words = language.words();
    let text = words.handover.withdrawn.put("supplier", &withdrawn.supplier).put("date", words.date(withdrawn.at));
    Some(text.put("reason", withdrawn.reason(language)).plain())
}

/// What was reached, once it is closed.
pub(super) fn result(language: Language, campaign: &CampaignRecord) -> Option<String> {
    if campaign.state != CampaignState::Closed {
        return None;
    }
    let words = language.words();
    Some(match campaign.result() {
        None if campaign.is_counting => words.campaign.result_counting.to_string(),
        None => return None,
        Some(result) if result.accepted == 0 => words.campaign.result_few.to_string(),
        Some(result) => result_words(result, language),
    })
}

/// What a member's part is, in a sentence; none where a campaign is over that they had no part in.
pub(super) fn said(
    words: &'static Words,
    campaign: &CampaignRecord,
    state: Option<ParticipationState>,
    now: Timestamp,
) -> Option<&'static Phrase> {
    let words = &words.campaign;
    Some(match state {
        None if matches!(campaign.state, CampaignState::Closed | CampaignState::Cancelled) => return None,
        None => &words.part_none,
        Some(ParticipationState::In) if campaign.state.gathers() => &words.part_in,
        Some(ParticipationState::In) if campaign.takes_acceptances(now) => &words.part_in_offered,
        // Perhaps they accepted, and it ended with the campaign.
        Some(ParticipationState::In) if campaign.state == CampaignState::Cancelled => &words.part_was_in,
        Some(ParticipationState::In) if campaign.offer.is_some() => &words.part_in_over,
        Some(ParticipationState::In) => &words.part_was_in,
        Some(ParticipationState::Out) => &words.part_out,
        Some(ParticipationState::Accepted) => &words.part_accepted,
        Some(ParticipationState::Passed) => &words.part_passed,
    })
}

/// The code to order with, or the reference of who has their address sent, and what it is called.
pub(super) fn code(words: &'static Words, acceptance: &AcceptanceEntry) -> (&'static str, String) {
    let label = match acceptance.handover {
        Handover::Code => &words.handover.your_code,
        Handover::Address => &words.handover.your_reference,
    };
    (label.as_str(), acceptance.reference.to_string())
}

/// What the supplier gets, what it says of the order, and what the member says.
pub(super) fn order(words: &'static Words, acceptance: &AcceptanceEntry, offer: &Offer) -> Vec<String> {
    let texts = &words.handover;
    let reference = acceptance.reference;
    let of_supplier = |phrase: &'static Phrase| phrase.put("supplier", offer.supplier());
    let mut lines = vec![match (acceptance.handover, acceptance.handed_over_at) {
        (Handover::Code, _) => of_supplier(&texts.use_code).plain(),
        (Handover::Address, None) => of_supplier(&texts.address_waits).put("reference", reference).plain(),
        (Handover::Address, Some(at)) => {
            of_supplier(&texts.address_sent).put("reference", reference).put("date", words.date(at)).plain()
        }
    }];
    lines.extend(acceptance.report.map(|SupplierReport { status, on }| {
        let phrase = match status {
            OrderStatus::Ordered => &texts.ordered,
            OrderStatus::Switched => &texts.switched,
            OrderStatus::Rejected => &texts.rejected,
            OrderStatus::Cancelled => &texts.cancelled,
        };
        of_supplier(phrase).put("date", day(words, on)).plain()
    }));
    let trouble = acceptance.trouble_at.map(|at| of_supplier(&texts.trouble_said).put("date", words.date(at)).plain());
    lines.extend(trouble);
    lines
}

/// That what they accepted ended without them.
pub(super) fn ended(words: &Words, last: Option<&AcceptanceEntry>) -> Option<String> {
    last.filter(|last| last.ended_why == Some(Ended::Offer)).map(|_| words.handover.ended.to_string())
}

/// What withdrawing ends, and what it does not.
pub(super) fn withdrawing(words: &Words, acceptance: &AcceptanceEntry, offer: &Offer) -> String {
    let phrase = match acceptance.handover {
        Handover::Code => &words.handover.withdrawing,
        Handover::Address => &words.handover.withdrawing_address,
    };
    phrase.put("supplier", offer.supplier()).plain()
}

/// What a member may say of an order that failed: why they would, what they press, its label.
pub(super) fn trouble(
    words: &'static Words,
    acceptance: &AcceptanceEntry,
    offer: &Offer,
) -> (String, &'static str, &'static str) {
    let texts = &words.handover;
    match acceptance.trouble_at {
        None => {
            let hint = texts.trouble_hint.put("supplier", offer.supplier()).plain();
            (hint, "trouble", texts.trouble.as_str())
        }
        Some(_) => (String::new(), "trouble-over", texts.trouble_over.as_str()),
    }
}

/// What stands above the button: what happens to their data and, where their address is sent, what the supplier pays.
pub(super) fn consent(language: Language, offer: &Offer) -> Vec<String> {
    let told = offer.consent(language).map(|notice| notice.words.to_string());
    let gives_address = offer.terms.handover == Some(Handover::Address);
    told.into_iter().chain(OfferWords::of(offer, language).commission.filter(|_| gives_address)).collect()
}

/// Why a press changed nothing, and what to do next; `chosen` is the state that came with it.
pub fn refusal(words: &Words, campaign: &CampaignRecord, why: BadPress) -> String {
    let (texts, places) = (&words.campaign, || offer_places(words, campaign));
    let supplier = || campaign.offer.as_ref().map_or("", Offer::supplier);
    match why {
        BadPress::CountingOver => texts.refused_counting.to_string(),
        BadPress::NoOffer => texts.refused_no_offer.to_string(),
        BadPress::AcceptingOver => {
            let last = campaign.last_day_to_accept().map(|last| day(words, last)).unwrap_or_default();
            texts.refused_accepting.put("date", last).plain()
        }
        BadPress::Over => texts.refused_over.to_string(),
        BadPress::StateMissing => texts.refused_state.put("states", places()).plain(),
        BadPress::OfferElsewhere => texts.refused_offer_elsewhere.put("states", places()).plain(),
        BadPress::CustomerMissing => texts.refused_customer_missing.put("supplier", supplier()).plain(),
        BadPress::AlreadyCustomer => texts.refused_already_customer.put("supplier", supplier()).plain(),
        BadPress::OfferChanged => words.handover.refused_changed.to_string(),
        BadPress::OtherState => texts.refused_other_state.put("states", places()).plain(),
    }
}
