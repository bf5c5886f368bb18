//! A campaign as it is kept: what the operator wrote, how far it is, and what was counted last.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::demand::{BEING_COUNTED, DemandSheet, count_words};
use super::draft::CampaignDraft;
use super::offer::Offer;
use super::participation::{BadPress, ParticipationState, Press, PressAnswers};
use super::{CampaignSlug, CampaignState, LastDay};
use crate::domain::catalog::ReferralTerms;
use crate::domain::figure::{counted, grouped};
use crate::domain::language::Language;
use crate::domain::text::quote;
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;

/// Names one campaign inside the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CampaignId(pub i64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignRecord {
    pub id: CampaignId,
    pub state: CampaignState,
    pub draft: CampaignDraft,
    /// Once it is published.
    pub offer: Option<Offer>,
    /// The offer before was withdrawn, and there is no other yet.
    pub withdrawn: Option<Withdrawal>,
    /// When people first saw it; a draft that is cancelled was never shown.
    pub opened_at: Option<Timestamp>,
    /// When it last went into negotiation, and when its offer was published; neither where that step was left out.
    pub negotiating_at: Option<Timestamp>,
    pub offered_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub active_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    /// What referring those who take part earns, once it became active.
    pub terms: Option<ReferralTerms>,
    /// The last one, and when it was taken; none while fewer than five are in.
    pub sheet: Option<(Timestamp, DemandSheet)>,
    /// Members are about to be counted: what the last sheet has may be old.
    pub is_counting: bool,
    /// Of whom the supplier says that they switched, once it says something.
    pub switched: Option<SwitchedCount>,
}

/// Members who switched, as their supplier reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchedCount {
    /// At least so many: rounded down, and only after changes of a few.
    pub members: u64,
    pub as_of: Timestamp,
}

/// That an offer was withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Withdrawal {
    pub at: Timestamp,
    pub supplier: String,
    /// Why, in every language.
    pub reasons: BTreeMap<Language, String>,
}

impl Withdrawal {
    /// As it is kept.
    pub fn written(&self) -> String {
        // It holds only names and texts, so it always converts to JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn kept(text: &str) -> Option<Self> {
        let kept: serde_json::Value = serde_json::from_str(text).ok()?;
        let reason = |(code, reason): (&String, &serde_json::Value)| {
            Some((Language::from_code(code)?, reason.as_str()?.to_owned()))
        };
        Some(Self {
            at: kept["at"].as_str()?.parse().ok()?,
            supplier: kept["supplier"].as_str()?.to_owned(),
            reasons: kept["reasons"].as_object()?.iter().filter_map(reason).collect(),
        })
    }

    pub fn reason(&self, language: Language) -> &str {
        self.reasons.get(&language).or_else(|| self.reasons.values().next()).map_or("", String::as_str)
    }
}

/// A demand sheet that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TakenSheet {
    pub counted_at: Timestamp,
    pub demand: DemandSheet,
}

/// What a date that was named does by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NextDate {
    /// Gathering becomes negotiating after this day.
    Negotiating(LastDay),
    /// No one can accept after this day.
    AcceptingEnds(LastDay),
}

impl std::fmt::Display for NextDate {
    /// As announced beforehand.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Negotiating(day) => write!(f, "becomes negotiating after {day}"),
            Self::AcceptingEnds(day) => write!(f, "accepting ends after {day}"),
        }
    }
}

impl CampaignRecord {
    /// As it is at that moment: a day that is over has acted, whether the service has written that down yet or not.
    #[must_use]
    pub fn as_of(mut self, now: Timestamp) -> Self {
        if self.state == CampaignState::Gathering && self.draft.gather_until.is_over(now) {
            self.state = CampaignState::Negotiating;
        }
        self
    }

    /// Campaigns at the most: pages and memory hold all of them.
    pub const MOST: u32 = 500;

    const JUST_OPENED_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

    pub fn slug(&self) -> &CampaignSlug {
        &self.draft.slug
    }

    pub fn was_public(&self) -> bool {
        self.opened_at.is_some()
    }

    /// Whether members can count themselves in, and could not for long.
    pub fn just_opened(&self, now: Timestamp) -> bool {
        self.state.gathers() && self.opened_at.is_some_and(|at| now < at.plus(Self::JUST_OPENED_FOR))
    }

    /// What a press makes of a member's part; the same as before where it changes nothing. None: they have no part.
    pub fn press(
        &self,
        before: Option<ParticipationState>,
        press: Press,
        said: PressAnswers,
        now: Timestamp,
    ) -> Result<Option<ParticipationState>, BadPress> {
        use ParticipationState::{Accepted, In, Out, Passed};
        let is_over = matches!(self.state, CampaignState::Closed | CampaignState::Cancelled);
        if is_over {
            return Err(BadPress::Over);
        }
        match press {
            Press::In | Press::Out if !self.state.gathers() => Err(BadPress::CountingOver),
            Press::In if before == Some(In) => Ok(before),
            Press::In => self.require_state(said.us_state).map(|()| Some(In)),
            Press::Out => Ok(before.map(|_| Out)),
            Press::Accept | Press::Pass if self.offer.is_none() => Err(BadPress::NoOffer),
            Press::Accept if before == Some(Accepted) => Ok(before),
            Press::Accept if !self.takes_acceptances(now) => Err(BadPress::AcceptingOver),
            Press::Accept => self.require_fit(said).map(|()| Some(Accepted)),
            Press::Pass => Ok(match before {
                Some(In | Accepted) => Some(Passed),
                other => other,
            }),
        }
    }

    pub fn open_presses(
        &self,
        before: Option<ParticipationState>,
        us_state: Option<UsState>,
        now: Timestamp,
    ) -> OpenPresses {
        let mut open = OpenPresses { presses: Vec::new(), needs_state: false, asks_whether_customer: false };
        for press in Press::ALL {
            let after = self.press(before, press, PressAnswers { us_state, is_customer: None, agrees: true }, now);
            let needs_state = after == Err(BadPress::StateMissing);
            let is_asked = after == Err(BadPress::CustomerMissing);
            if needs_state || is_asked || after.is_ok_and(|after| after != before) {
                open.presses.push(press);
            }
            open.needs_state |= needs_state;
            // Also of those who have to name their state first: both are asked at once.
            open.asks_whether_customer |= is_asked
                || needs_state
                    && press == Press::Accept
                    && self.offer.as_ref().is_some_and(Offer::is_for_new_customers);
        }
        open
    }

    /// Whether a press of somebody's may be refused for that reason, whatever they say with it.
    pub fn may_refuse(
        &self,
        why: BadPress,
        before: Option<ParticipationState>,
        us_state: Option<UsState>,
        now: Timestamp,
    ) -> bool {
        // Who has named no state may name any.
        let named = UsState::ALL.iter().filter(|_| us_state.is_none()).map(|state| Some(*state));
        let states: Vec<_> = named.chain([us_state]).collect();
        let customers = [None, Some(false), Some(true)];
        let said = states.into_iter().flat_map(|us_state| {
            customers
                .into_iter()
                .flat_map(move |is_customer| [false, true].map(|agrees| PressAnswers { us_state, is_customer, agrees }))
        });
        said.into_iter().any(|said| Press::ALL.iter().any(|press| self.press(before, *press, said, now) == Err(why)))
    }

    pub fn takes_acceptances(&self, now: Timestamp) -> bool {
        self.last_day_to_accept().is_some_and(|day| !day.is_over(now))
    }

    /// While it is offered the day to decide by; once it runs perhaps a later one.
    pub fn last_day_to_accept(&self) -> Option<LastDay> {
        let offer = self.offer.as_ref()?;
        match self.state {
            CampaignState::Offered => Some(offer.terms.decide_by),
            CampaignState::Active => Some(offer.last_day()),
            _ => None,
        }
    }

    /// The days that can still be missed: until when members decide, and until when others may accept.
    pub fn days_ahead(&self, now: Timestamp) -> (Option<LastDay>, Option<LastDay>) {
        let last = self.last_day_to_accept().filter(|day| !day.is_over(now));
        match self.state {
            // Others may accept only once the deal runs.
            CampaignState::Offered => (last, last.and(self.offer.as_ref().and_then(|offer| offer.terms.open_until))),
            _ => (None, last),
        }
    }

    /// What a member does to get the deal, while there is one to get.
    pub fn how(&self, language: Language) -> Option<&str> {
        let runs = matches!(self.state, CampaignState::Offered | CampaignState::Active);
        self.offer.as_ref().filter(|_| runs)?.text(language)?.how.as_deref()
    }

    fn require_state(&self, us_state: Option<UsState>) -> Result<(), BadPress> {
        match us_state {
            _ if self.draft.is_for(us_state) => Ok(()),
            Some(_) => Err(BadPress::OtherState),
            None => Err(BadPress::StateMissing),
        }
    }

    /// Whether the offer is for somebody who says that.
    fn require_fit(&self, said: PressAnswers) -> Result<(), BadPress> {
        self.require_state(said.us_state)?;
        let Some(offer) = &self.offer else { return Ok(()) };
        match said.us_state {
            _ if offer.states().is_empty() => {}
            None => return Err(BadPress::StateMissing),
            Some(state) if offer.states().contains(&state) => {}
            Some(_) => return Err(BadPress::OfferElsewhere),
        }
        match said.is_customer {
            Some(true) if offer.is_for_new_customers() => Err(BadPress::AlreadyCustomer),
            None if offer.is_for_new_customers() => Err(BadPress::CustomerMissing),
            _ if offer.terms.handover.is_some() && !said.agrees => Err(BadPress::OfferChanged),
            _ => Ok(()),
        }
    }

    /// Whether somebody who lives there may be mailed the offer: those who named no state are asked on its page.
    pub fn offer_is_for(&self, us_state: Option<UsState>) -> bool {
        let states = self.offer.as_ref().map_or(&[][..], Offer::states);
        us_state.is_none_or(|state| self.draft.is_for(Some(state)) && (states.is_empty() || states.contains(&state)))
    }

    /// The states that the offer is for, or else the campaign.
    pub fn states(&self) -> &[UsState] {
        let of_offer = self.offer.as_ref().map_or(&[][..], Offer::states);
        if of_offer.is_empty() { &self.draft.states } else { of_offer }
    }

    pub fn next_date(&self, now: Timestamp) -> Option<NextDate> {
        match self.state {
            CampaignState::Gathering => Some(NextDate::Negotiating(self.draft.gather_until)),
            _ => self.last_day_to_accept().filter(|day| !day.is_over(now)).map(NextDate::AcceptingEnds),
        }
    }

    /// Where it is for, for the operator.
    pub fn places(&self) -> String {
        let codes: Vec<_> = self.draft.states.iter().map(|state| state.code()).collect();
        if codes.is_empty() { "everywhere".to_owned() } else { format!("in {}", codes.join(", ")) }
    }

    /// What everybody may know of the members, for the operator.
    pub fn published_words(&self) -> String {
        match &self.sheet {
            Some((taken_at, _)) if self.is_counting => {
                format!("{BEING_COUNTED}; the last count was at {taken_at}")
            }
            None if self.is_counting => BEING_COUNTED.to_owned(),
            Some((taken_at, sheet)) => {
                let [members_in, accepted] = [sheet.members_in, sheet.accepted].map(|count| count_words(Some(count)));
                format!("{members_in} in, {accepted} accepted, as counted at {taken_at}")
            }
            None => "nothing yet: the first count comes once 5 members take part".to_owned(),
        }
    }

    /// How many are in, as everybody may know it. None: being counted.
    pub fn counted_in(&self) -> Option<u64> {
        self.counted(|sheet| sheet.members_in)
    }

    /// How many of them accepted, likewise.
    pub fn counted_accepted(&self) -> Option<u64> {
        self.counted(|sheet| sheet.accepted)
    }

    /// A zero may be old while members are being counted. Any other figure stands until the next.
    fn counted(&self, figure: impl Fn(&DemandSheet) -> u64) -> Option<u64> {
        let count = self.sheet.as_ref().map_or(0, |(_, sheet)| figure(sheet));
        Some(count).filter(|count| *count > 0 || !self.is_counting)
    }

    /// What was reached. None while members are being counted.
    pub fn result(&self) -> Option<CampaignResult<'_>> {
        let offer = self.offer.as_ref().filter(|_| !self.is_counting)?;
        let accepted = self.sheet.as_ref().map_or(0, |(_, sheet)| sheet.accepted);
        Some(CampaignResult { offer, accepted, switched: self.switched })
    }
}

/// What a campaign reached, as counted last.
#[derive(Clone, Copy)]
pub struct CampaignResult<'a> {
    pub offer: &'a Offer,
    /// At least so many.
    pub accepted: u64,
    pub switched: Option<SwitchedCount>,
}

impl CampaignResult<'_> {
    /// What all who switched save against the benchmark, in whole dollars: in a year, or with one use. Where nobody says who did, all who
    /// accepted.
    pub fn saved(self) -> u64 {
        self.switched.map_or(self.accepted, |switched| switched.members) * self.offer.saving()
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct OpenPresses {
    pub presses: Vec<Press>,
    /// A state has to come with them.
    pub needs_state: bool,
    /// Whether they are a customer of the supplier has to come with accepting.
    pub asks_whether_customer: bool,
}

#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct HistoryEntry {
    pub at: Timestamp,
    /// The operator, or "date" where a date took the step.
    pub who: String,
    /// None where it was made.
    pub from: Option<CampaignState>,
    /// The same as `from` where its texts or days were changed.
    pub to: CampaignState,
    pub note: String,
}

impl HistoryEntry {
    /// What is noted for a file that was changed.
    pub const EDITED: &str = "edited";

    pub fn is_edit(&self) -> bool {
        self.from == Some(self.to) && self.note == Self::EDITED
    }

    pub fn words(&self) -> String {
        match self.from {
            None => "made".to_owned(),
            Some(from) if from == self.to => match self.is_edit() {
                true => "changed".to_owned(),
                false => "another offer".to_owned(),
            },
            Some(from) => format!("{} to {}", from.name(), self.to.name()),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MailingEntry {
    pub kind: String,
    pub queued: u64,
    pub started_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// Its time was over before everybody was looked at.
    pub ended_early: bool,
    /// What came of a campaign is mailed after its last count.
    pub waits_for_count: bool,
}

impl MailingEntry {
    /// How far it is, for the operator.
    pub fn words(&self) -> String {
        let Self { kind, queued, started_at, finished_at, ended_early, waits_for_count } = self;
        let early = if *ended_early { ", before everyone was mailed: its time was over" } else { "" };
        let goes_on = match waits_for_count {
            true => "waits for the last count of members",
            false => "goes on",
        };
        let end = finished_at.map_or_else(|| goes_on.to_owned(), |at| format!("ended at {at}{early}"));
        format!("{kind}: {}, began at {started_at}, {end}", counted(*queued, "mail"))
    }
}

/// What a supplier was asked, and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NegotiationRound {
    /// From 1, in its campaign.
    pub number: u32,
    pub at: Timestamp,
    /// What the negotiator calls itself, unchecked. None: an operator recorded it.
    pub client: Option<String>,
    /// The name of the negotiator's seat, or the operator; empty: from before seats had names.
    pub who: String,
    pub supplier: String,
    pub asked: String,
    pub answered: String,
    /// Its texts were blanked.
    pub redacted: Option<Redaction>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redaction {
    pub at: Timestamp,
    pub who: String,
    pub why: String,
}

impl NegotiationRound {
    pub const MOST: u32 = 500;
    /// Of a negotiator.
    pub const AN_HOUR: u32 = 30;
    pub const LONGEST: usize = 4000;

    /// Who recorded it, for the operator.
    pub fn by(&self) -> String {
        match &self.client {
            None => quote(&self.who),
            Some(client) => seat_words(&self.who, client),
        }
    }
}

/// An offer that a negotiator proposes.
#[derive(Clone, PartialEq, Eq)]
pub struct OfferDraft {
    pub id: i64,
    /// From 1, in its campaign.
    pub number: u32,
    pub at: Timestamp,
    /// What the negotiator calls itself, unchecked.
    pub client: String,
    /// The name of its seat; empty: from before seats had names.
    pub seat: String,
    /// Why it was proposed although it misses points of the mandate.
    pub exception: Option<String>,
    /// As `campaigns offer` takes it.
    pub file: String,
    /// None: it waits for a person.
    pub answer: Option<DraftAnswer>,
}

impl OfferDraft {
    pub const MOST: u32 = 100;
    pub const AN_HOUR: u32 = 10;

    /// Who proposed it, for the operator.
    pub fn by(&self) -> String {
        // A person's draft, which another person publishes, was proposed by no client.
        if self.client.is_empty() && !self.seat.is_empty() {
            return self.seat.clone();
        }
        seat_words(&self.seat, &self.client)
    }
}

/// What became of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DraftAnswer {
    pub at: Timestamp,
    pub who: String,
    /// Or else it was rejected.
    pub is_published: bool,
    /// Empty where it was published without a note.
    pub reason: String,
}

impl DraftAnswer {
    pub fn words(&self) -> String {
        let Self { at, who, is_published, reason } = self;
        let what = if *is_published { "published" } else { "rejected" };
        let reason = if reason.is_empty() { String::new() } else { format!(": {}", quote(reason)) };
        format!("{what} at {at} by {who}{reason}")
    }
}

fn seat_words(seat: &str, client: &str) -> String {
    // An operator's own.
    if client.is_empty() && !seat.is_empty() {
        return seat.to_owned();
    }
    let client = format!("client {} (self-asserted)", quote(client));
    if seat.is_empty() { client } else { format!("{}, {client}", quote(seat)) }
}

/// What an operator told the negotiator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperatorMessage {
    pub at: Timestamp,
    pub who: String,
    pub message: String,
}

impl OperatorMessage {
    /// The last ones are kept.
    pub const MOST: u32 = 100;
    pub const LONGEST: usize = 1000;
}

/// A person paused the negotiator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pause {
    /// None: all campaigns.
    pub slug: Option<CampaignSlug>,
    pub at: Timestamp,
    pub who: String,
    pub reason: String,
}

/// Everything about a campaign, for the operator.
#[derive(Clone, PartialEq, Eq)]
pub struct CampaignDetails {
    pub campaign: CampaignRecord,
    pub history: Vec<HistoryEntry>,
    pub mailings: Vec<MailingEntry>,
    /// Exact, for the operator alone, up to [`ParticipationCounts::MOST`] members.
    pub counts: ParticipationCounts,
    pub rounds: u64,
    pub drafts: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ParticipationCounts {
    pub members_in: u64,
    pub out: u64,
    pub accepted: u64,
    pub passed: u64,
}

impl ParticipationCounts {
    /// Members that are looked at; where there are more the counts are of the first.
    pub const MOST: u32 = 10_000;

    /// Whether that was all of them.
    pub fn is_whole(&self) -> bool {
        self.members_in + self.out + self.accepted + self.passed < u64::from(Self::MOST)
    }

    pub fn words(&self) -> String {
        let first =
            if self.is_whole() { String::new() } else { format!("of the first {} ", grouped(Self::MOST.into())) };
        let [members_in, out, accepted, passed] = [self.members_in, self.out, self.accepted, self.passed].map(grouped);
        format!(
            "{first}{members_in} in, {out} out, {accepted} accepted, {passed} passed: only for you, never publish these"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::bid::Bid;
    use super::super::offer::Deal;
    use super::super::tests::{campaign, offered};
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_794_743_200_000);

    #[test]
    fn members_are_counted_while_it_gathers_and_decide_once_there_is_an_offer() {
        use ParticipationState::*;
        let gathering = campaign(CampaignState::Gathering);
        let of = |campaign: &CampaignRecord, before, what| {
            campaign.press(before, what, PressAnswers { agrees: true, ..PressAnswers::default() }, NOW)
        };
        for state in [CampaignState::Gathering, CampaignState::Negotiating] {
            let campaign = campaign(state);
            for before in [None, Some(In), Some(Out)] {
                assert_eq!(of(&campaign, before, Press::In), Ok(Some(In)));
                assert_eq!(of(&campaign, before, Press::Out), Ok(before.map(|_| Out)), "out without in is nothing");
            }
            assert_eq!(of(&campaign, Some(In), Press::Accept), Err(BadPress::NoOffer));
            assert_eq!(of(&campaign, Some(In), Press::Pass), Err(BadPress::NoOffer));
        }
        let offered = offered(CampaignState::Offered);
        for before in [None, Some(In), Some(Out), Some(Accepted), Some(Passed)] {
            assert_eq!(of(&offered, before, Press::Accept), Ok(Some(Accepted)));
            assert_eq!(of(&offered, before, Press::In), Err(BadPress::CountingOver));
        }
        for (before, after) in [
            (None, None),
            (Some(In), Some(Passed)),
            (Some(Out), Some(Out)),
            (Some(Accepted), Some(Passed)),
            (Some(Passed), Some(Passed)),
        ] {
            assert_eq!(of(&offered, before, Press::Pass), Ok(after));
        }
        for over in [CampaignState::Closed, CampaignState::Cancelled] {
            for what in Press::ALL {
                assert_eq!(of(&self::offered(over), Some(In), what), Err(BadPress::Over));
            }
        }
        assert_eq!(of(&gathering, None, Press::Pass), Err(BadPress::NoOffer));
    }

    #[test]
    fn accepting_ends_with_its_day_and_withdrawing_does_not() {
        use ParticipationState::*;
        let late = "2027-03-16T10:00:00Z".parse().unwrap();
        let of = |campaign: &CampaignRecord, before, what, now| {
            campaign.press(before, what, PressAnswers { agrees: true, ..PressAnswers::default() }, now)
        };
        let offered = offered(CampaignState::Offered);
        assert_eq!(of(&offered, Some(In), Press::Accept, late), Err(BadPress::AcceptingOver));
        assert_eq!(of(&offered, Some(Accepted), Press::Accept, late), Ok(Some(Accepted)), "again changes nothing");
        assert_eq!(of(&offered, Some(Accepted), Press::Pass, late), Ok(Some(Passed)));
        let mut active = self::offered(CampaignState::Active);
        assert_eq!(of(&active, Some(In), Press::Accept, NOW), Ok(Some(Accepted)), "activated before the day");
        assert_eq!(of(&active, Some(In), Press::Accept, late), Err(BadPress::AcceptingOver));
        active.offer.as_mut().unwrap().terms.open_until = Some("2027-06-30".parse().unwrap());
        assert_eq!(of(&active, None, Press::Accept, late), Ok(Some(Accepted)), "open for longer");
        let mut waiting = active.clone();
        waiting.state = CampaignState::Offered;
        assert_eq!(of(&waiting, None, Press::Accept, late), Err(BadPress::AcceptingOver), "only once the deal runs");
    }

    #[test]
    fn a_campaign_for_some_states_wants_one_of_them() {
        let mut some = campaign(CampaignState::Gathering);
        some.draft.states = vec![UsState::CA, UsState::OR];
        let of =
            |us_state, what| some.press(None, what, PressAnswers { us_state, is_customer: None, agrees: true }, NOW);
        assert_eq!(of(Some(UsState::CA), Press::In), Ok(Some(ParticipationState::In)));
        assert_eq!(of(Some(UsState::NY), Press::In), Err(BadPress::OtherState));
        assert_eq!(of(None, Press::In), Err(BadPress::StateMissing));
        assert_eq!(of(None, Press::Out), Ok(None));
        let is_in = Some(ParticipationState::In);
        assert_eq!(
            some.press(is_in, Press::In, PressAnswers { agrees: true, ..PressAnswers::default() }, NOW),
            Ok(is_in),
            "again changes nothing"
        );
    }

    #[test]
    fn what_can_be_pressed_changes_something() {
        use ParticipationState::*;
        let open = |campaign: &CampaignRecord, before, us_state| {
            let open = campaign.open_presses(before, us_state, NOW);
            (open.presses, open.needs_state)
        };
        let mut gathering = campaign(CampaignState::Gathering);
        assert_eq!(open(&gathering, None, None), (vec![Press::In], false));
        assert_eq!(open(&gathering, Some(In), None), (vec![Press::Out], false));
        gathering.draft.states = vec![UsState::CA];
        assert_eq!(open(&gathering, None, None), (vec![Press::In], true));
        assert_eq!(open(&gathering, None, Some(UsState::NY)), (vec![], false));
        assert_eq!(open(&gathering, Some(In), None), (vec![Press::Out], false));
        let offered = offered(CampaignState::Offered);
        assert_eq!(open(&offered, None, None), (vec![Press::Accept], false));
        assert_eq!(open(&offered, Some(In), None), (vec![Press::Accept, Press::Pass], false));
        assert_eq!(open(&offered, Some(Accepted), None), (vec![Press::Pass], false));
        assert_eq!(open(&self::offered(CampaignState::Closed), Some(Accepted), None), (vec![], false));
    }

    /// The offer of a bid that is changed before.
    fn offered_by(change: impl FnOnce(&mut Bid)) -> CampaignRecord {
        let mut campaign = offered(CampaignState::Offered);
        let Some(Deal::Reckoned(deal)) = campaign.offer.as_mut().map(|offer| &mut offer.deal) else {
            panic!("it is reckoned")
        };
        change(&mut deal.bid);
        campaign
    }

    #[test]
    fn who_an_offer_is_not_for_cannot_accept_it() {
        let here = offered_by(|bid| bid.states = vec![UsState::CA, UsState::OR]);
        let of = |us_state, what| {
            here.press(
                Some(ParticipationState::In),
                what,
                PressAnswers { us_state, is_customer: None, agrees: true },
                NOW,
            )
        };
        assert_eq!(of(Some(UsState::NY), Press::Accept), Err(BadPress::OfferElsewhere));
        assert_eq!(of(None, Press::Accept), Err(BadPress::StateMissing), "they are asked");
        assert_eq!(of(Some(UsState::CA), Press::Accept), Ok(Some(ParticipationState::Accepted)));
        assert_eq!(of(Some(UsState::NY), Press::Pass), Ok(Some(ParticipationState::Passed)));
        let presses = |us_state| here.open_presses(Some(ParticipationState::In), us_state, NOW).presses;
        assert_eq!(presses(Some(UsState::NY)), [Press::Pass]);
        assert_eq!(
            [None, Some(UsState::CA), Some(UsState::NY)].map(|state| here.offer_is_for(state)),
            [true, true, false]
        );
    }

    #[test]
    fn an_offer_for_new_customers_asks_one_question() {
        let new = offered_by(|bid| bid.new_customers_only = true);
        let of = |is_customer| {
            new.press(None, Press::Accept, PressAnswers { us_state: None, is_customer, agrees: true }, NOW)
        };
        assert_eq!(of(None), Err(BadPress::CustomerMissing));
        assert_eq!(of(Some(true)), Err(BadPress::AlreadyCustomer));
        assert_eq!(of(Some(false)), Ok(Some(ParticipationState::Accepted)));
        let open = new.open_presses(None, None, NOW);
        assert_eq!((open.presses, open.needs_state, open.asks_whether_customer), (vec![Press::Accept], false, true));
        assert!(!offered(CampaignState::Offered).open_presses(None, None, NOW).asks_whether_customer);
    }
}
