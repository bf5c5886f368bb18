//! Campaigns in words: how far one is, what a member's part in it is, why a press changed nothing.

use crate::domain::campaign::acceptance::{AcceptanceEntry, Ended, Handover, OrderStatus, SupplierReport};
use crate::domain::campaign::offer::Offer;
use crate::domain::campaign::participation::{BadPress, ParticipationState, Press, PressAnswers};
use crate::domain::campaign::record::{CampaignRecord, NextDate, OpenPresses};
use crate::domain::campaign::wording::{OfferWords, result_words};
use crate::domain::campaign::{CampaignState, LastDay};
use crate::domain::figure::grouped;
use crate::domain::language::{Language, Phrase, Words};
use crate::domain::time::Timestamp;
use crate::site::view::MemberPart;

/// States that are named where there is little room.
pub(super) const MOST_NAMED: usize = 3;

/// A day, as the language writes it.
fn day(words: &Words, day: LastDay) -> String {
    words.date(day.begins_at())
}

/// The states that a campaign is for.
pub(super) fn places(words: &Words, campaign: &CampaignRecord) -> String {
    let states: Vec<_> = campaign.draft.states.iter().map(|state| words.state(*state)).collect();
    if states.is_empty() { words.campaign.everywhere.to_string() } else { words.list(&states) }
}

/// The same where there is little room.
pub(super) fn places_in_brief(words: &Words, campaign: &CampaignRecord) -> String {
    match campaign.draft.states.len() {
        0..=MOST_NAMED => places(words, campaign),
        count => words.campaign.states_count.put("count", count).plain(),
    }
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

/// How many are in.
pub(super) fn count(words: &Words, campaign: &CampaignRecord, now: Timestamp) -> String {
    let texts = &words.campaign;
    match campaign.counted_in() {
        None => texts.count_counting.to_string(),
        Some(0) if campaign.just_opened(now) => texts.count_first.to_string(),
        Some(0) => texts.count_few.to_string(),
        Some(count) => texts.count.put("count", grouped(count)).plain(),
    }
}

/// How long what members can do now stays open.
pub(super) fn days_left(words: &Words, campaign: &CampaignRecord, now: Timestamp) -> Option<String> {
    let (NextDate::Negotiating(day) | NextDate::AcceptingEnds(day)) = campaign.next_date(now)?;
    Some(match day.days_left(now)? {
        0 => words.campaign.last_day.to_string(),
        1 => words.campaign.day_left.to_string(),
        count => words.campaign.days_left.put("count", grouped(count)).plain(),
    })
}

pub(super) fn short(language: Language, campaign: &CampaignRecord, now: Timestamp) -> String {
    let words = language.words();
    let texts = &words.campaign;
    let until = campaign.last_day_to_accept().filter(|day| !day.is_over(now));
    let price = || campaign.offer.as_ref().map(|offer| OfferWords::of(offer, language).price).unwrap_or_default();
    let ended = || campaign.closed_at.map(|at| words.date(at)).unwrap_or_default();
    match (campaign.state, until) {
        (CampaignState::Draft | CampaignState::Gathering, _) => {
            texts.short_gathering.put("date", day(words, campaign.draft.gather_until)).plain()
        }
        (CampaignState::Negotiating, _) => texts.negotiating.to_string(),
        (CampaignState::Offered, None) => texts.offered.to_string(),
        (CampaignState::Offered, Some(until)) => {
            texts.short_offered.put("price", price()).put("date", day(words, until)).plain()
        }
        (CampaignState::Active, None) => texts.active.put("price", price()).plain(),
        (CampaignState::Active, Some(until)) => {
            texts.short_active.put("price", price()).put("date", day(words, until)).plain()
        }
        (CampaignState::Closed, _) => texts.closed.put("date", ended()).plain(),
        (CampaignState::Cancelled, _) => texts.cancelled.put("date", ended()).plain(),
    }
}

/// One of the four steps of a campaign.
pub(super) struct StepView {
    pub(super) title: &'static Phrase,
    pub(super) when: String,
    /// What it means for the reader, while it is now.
    pub(super) what: Option<&'static Phrase>,
    pub(super) is_past: bool,
    pub(super) is_now: bool,
}

/// The steps with the days that are known; `part` is the reader's.
pub(super) fn steps(
    words: &'static Words,
    campaign: &CampaignRecord,
    part: Option<ParticipationState>,
    now: Timestamp,
) -> Vec<StepView> {
    let texts = &words.campaign;
    let is_open = campaign.takes_acceptances(now);
    let undecided = !matches!(part, Some(ParticipationState::Accepted | ParticipationState::Passed));
    let (at, what) = match campaign.state {
        CampaignState::Draft | CampaignState::Gathering => (0, Some(&texts.now_gathering)),
        CampaignState::Negotiating => (1, Some(&texts.now_negotiating)),
        CampaignState::Offered if is_open => (2, undecided.then_some(&texts.now_offered)),
        CampaignState::Offered => (3, Some(&texts.now_waits)),
        CampaignState::Active if is_open => (3, undecided.then_some(&texts.now_active)),
        CampaignState::Active => (3, undecided.then_some(&texts.now_active_over)),
        CampaignState::Closed => (4, None),
        CampaignState::Cancelled => return Vec::new(),
    };
    let until = |day: LastDay| texts.when_until.put("date", self::day(words, day)).plain();
    let on = |phrase: &'static Phrase, at: Option<Timestamp>| at.map(|at| phrase.put("date", words.date(at)).plain());
    let last = campaign.last_day_to_accept().filter(|_| is_open);
    let ahead = [
        Some(until(campaign.draft.gather_until)),
        match at {
            0 => Some(texts.when_after.put("date", day(words, campaign.draft.gather_until)).plain()),
            _ => on(&texts.when_since, campaign.negotiating_at),
        },
        last.map(until),
        on(&texts.when_since, campaign.active_at),
    ];
    let began = [campaign.opened_at, campaign.negotiating_at, campaign.offered_at, campaign.active_at];
    let titles = [&texts.step_gather, &texts.step_negotiate, &texts.step_decide, &texts.step_deal];
    let steps = titles.into_iter().zip(ahead).zip(began).enumerate();
    let view = |(number, ((title, ahead), began)): (usize, ((_, Option<String>), _))| StepView {
        title,
        when: match number {
            _ if number < at => on(&texts.when_began, began).unwrap_or_else(|| texts.when_done.to_string()),
            _ if number == at => ahead.unwrap_or_else(|| texts.when_now.to_string()),
            1 => ahead.unwrap_or_default(),
            // An offer that was withdrawn had days, which are over.
            2 => texts.when_offered.to_string(),
            _ => texts.when_decided.to_string(),
        },
        what: what.filter(|_| number == at),
        is_past: number < at,
        is_now: number == at,
    };
    steps.map(view).collect()
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
    let mut lines = Vec::new();
    lines.extend(match (acceptance.handover, acceptance.handed_over_at) {
        (Handover::Code, _) if acceptance.report.is_some() => None,
        (Handover::Code, _) => Some(of_supplier(&texts.use_code).plain()),
        (Handover::Address, None) => Some(of_supplier(&texts.address_waits).put("reference", reference).plain()),
        (Handover::Address, Some(at)) => {
            Some(of_supplier(&texts.address_sent).put("reference", reference).put("date", words.date(at)).plain())
        }
    });
    lines.extend(acceptance.report.map(|SupplierReport { status, on }| {
        let phrase = match status {
            OrderStatus::Ordered => &texts.ordered,
            OrderStatus::Switched => &texts.switched,
            OrderStatus::Rejected => &texts.rejected,
            OrderStatus::Cancelled => &texts.cancelled,
        };
        of_supplier(phrase).put("date", day(words, on)).plain()
    }));
    if acceptance.report.is_none() {
        lines.push(of_supplier(&texts.then).plain());
    }
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
