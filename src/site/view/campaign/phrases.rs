//! Campaigns in words: how far one is, what a member's part in it is, why a press changed nothing.

use crate::domain::campaign::participation::{BadPress, ParticipationState};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::{CampaignState, LastDay};
use crate::domain::figure::grouped;
use crate::domain::language::{Phrase, Words};
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;

/// A day, as the language writes it.
pub(super) fn day(words: &Words, day: LastDay) -> String {
    words.date(Timestamp::from_millis(day.number() * 86_400_000))
}

/// The states that a campaign is for.
pub(super) fn places(words: &Words, campaign: &CampaignRecord) -> String {
    let states: Vec<_> = campaign.draft.states.iter().map(|state| words.state(*state)).collect();
    if states.is_empty() { words.campaign.everywhere.to_string() } else { words.list(&states) }
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

/// What was reached, once it is closed.
pub(super) fn result(words: &Words, campaign: &CampaignRecord) -> Option<String> {
    let (accepted, saved) = campaign.result().filter(|_| campaign.state == CampaignState::Closed)?;
    Some(match accepted {
        0 => words.campaign.result_few.to_string(),
        accepted => {
            let text = words.campaign.result_text.put("members", words.members(accepted));
            text.put("amount", format!("${}", grouped(saved))).plain()
        }
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
        Some(ParticipationState::In) if campaign.offer.is_some() => &words.part_in_over,
        Some(ParticipationState::In) => &words.part_was_in,
        Some(ParticipationState::Out) => &words.part_out,
        Some(ParticipationState::Accepted) => &words.part_accepted,
        Some(ParticipationState::Passed) => &words.part_passed,
    })
}

/// Why a press changed nothing, and what to do next; `chosen` is the state that came with it.
pub fn refusal(words: &Words, campaign: &CampaignRecord, why: BadPress, chosen: Option<UsState>) -> String {
    let (texts, places) = (&words.campaign, || places(words, campaign));
    match why {
        BadPress::CountingOver => texts.refused_counting.to_string(),
        BadPress::NoOffer => texts.refused_no_offer.to_string(),
        BadPress::AcceptingOver => {
            let last = campaign.last_day_to_accept().map(|last| day(words, last)).unwrap_or_default();
            texts.refused_accepting.put("date", last).plain()
        }
        BadPress::Over => texts.refused_over.to_string(),
        BadPress::StateMissing => texts.refused_state.put("states", places()).plain(),
        BadPress::OtherState => {
            let chosen = chosen.map_or("", |state| words.state(state));
            texts.refused_other_state.put("states", places()).put("state", chosen).plain()
        }
    }
}
