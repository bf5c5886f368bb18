//! Campaigns: the list, the page of one, and the cards of the welcome page, of a member's own page and of the page to join on.

mod phrases;

use askama::Template;

pub use self::phrases::refusal;
use self::phrases::{
    code, consent, day, ended, fits, offer_places, order, places, result, said, short, stands, step, trouble,
    withdrawing, withdrawn,
};
use super::{Frame, rendered};
use crate::domain::campaign::acceptance::{AcceptanceEntry, Handover};
use crate::domain::campaign::offer::Offer;
use crate::domain::campaign::participation::{ParticipationEntry, ParticipationState, Press};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::wording::{OfferFact, offer_facts};
use crate::domain::campaign::{CampaignMail, CampaignState};
use crate::domain::catalog::category::CategorySet;
use crate::domain::figure::grouped;
use crate::domain::language::{Filling, Phrase};
use crate::domain::us_state::UsState;

/// Campaigns on the page to join on, at the most.
const MOST_CARDS: usize = 3;

/// Who looks at a campaign.
#[derive(Clone, Copy)]
pub enum CampaignReader<'a> {
    Stranger,
    /// Signed in, and no member any more.
    Left,
    Member(MemberPart<'a>),
}

/// A member's part in a campaign.
#[derive(Clone, Copy)]
pub struct MemberPart<'a> {
    /// What every form carries.
    pub token: &'a str,
    pub state: Option<ParticipationState>,
    /// What they accepted last.
    pub acceptance: Option<&'a AcceptanceEntry>,
    pub us_state: Option<UsState>,
    /// The bills that they are mailed about when a campaign opens.
    pub hears_of: CategorySet,
}

impl<'a> MemberPart<'a> {
    pub fn of(
        token: &'a str,
        part: Option<&'a ParticipationEntry>,
        us_state: Option<UsState>,
        hears_of: CategorySet,
    ) -> Self {
        let (state, acceptance) = (part.map(|part| part.state), part.and_then(|part| part.acceptances.last()));
        Self { token, state, acceptance, us_state, hears_of }
    }
}

/// Where a member's part is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PartPlace {
    CampaignPage,
    OwnPage,
    Welcome,
}

/// A campaign in a list, or on top of its page.
pub(super) struct CampaignCard<'a> {
    pub(super) slug: &'a str,
    pub(super) title: &'a str,
    pub(super) summary: &'a str,
    pub(super) bill: &'a str,
    pub(super) places: String,
    pub(super) count: String,
    /// Its step and its day, in a few words.
    pub(super) short: String,
    /// What was reached, once it is closed.
    pub(super) result: Option<String>,
    pub(super) part: Option<PartView<'a>>,
    pub(super) offer: Option<OfferView>,
}

/// A member's part, and what they can press.
pub(super) struct PartView<'a> {
    pub(super) token: &'a str,
    pub(super) from_own_page: bool,
    pub(super) said: Option<&'static str>,
    /// The code or reference of who accepted, and what it is called.
    pub(super) code: Option<(&'static str, String)>,
    /// What is done with it, and what the supplier says.
    pub(super) order: Vec<String>,
    /// What withdrawing ends.
    pub(super) withdrawing: Option<String>,
    /// What is said of an order that failed: why, what is pressed, its label.
    pub(super) trouble: Option<(String, &'static str, &'static str)>,
    /// What happens to the data of who accepts, and what the supplier pays: above the button.
    pub(super) consent: Vec<String>,
    /// Names what they agree to.
    pub(super) offer_mark: String,
    /// What to do to get the deal, for who accepted it.
    pub(super) how: Option<&'a str>,
    pub(super) other_state: Option<Filling>,
    /// Whether the offer is for them.
    pub(super) fits: Option<String>,
    /// What they are asked before they accept.
    pub(super) question: Option<String>,
    /// Whether a state has to come with a press.
    pub(super) needs_state: bool,
    pub(super) state_hint: String,
    /// What is pressed, its label, and whether it is the one to press.
    pub(super) buttons: Vec<(&'static str, &'static str, bool)>,
}

impl<'a> CampaignCard<'a> {
    fn of(page: Frame<'a>, campaign: &'a CampaignRecord) -> Self {
        let (words, text) = (&page.words.campaign, campaign.draft.text(page.language));
        let count = campaign.counted_in();
        Self {
            slug: campaign.slug().as_str(),
            title: text.map_or("", |text| &text.title),
            summary: text.map_or("", |text| &text.summary),
            bill: page.words.category(campaign.draft.category),
            places: places(page.words, campaign),
            count: match count {
                None => words.count_counting.to_string(),
                Some(0) => words.count_few.to_string(),
                Some(count) => words.count.put("count", grouped(count)).plain(),
            },
            short: short(page.words, campaign, page.now),
            result: result(page.language, campaign),
            part: None,
            offer: None,
        }
    }

    /// With what a member can press; an offer that they can accept is part of it.
    fn for_member(page: Frame<'a>, campaign: &'a CampaignRecord, part: MemberPart<'a>, place: PartPlace) -> Self {
        let offer = offer_of(page, campaign, part.state).filter(|_| campaign.takes_acceptances(page.now));
        Self { part: Some(PartView::of(page, campaign, part, place)), offer, ..Self::of(page, campaign) }
    }
}

impl<'a> PartView<'a> {
    fn of(page: Frame<'a>, campaign: &'a CampaignRecord, part: MemberPart<'a>, place: PartPlace) -> Self {
        let words = &page.words.campaign;
        let open = campaign.open_presses(part.state, part.us_state, page.now);
        let named = part.us_state.filter(|state| !campaign.draft.is_for(Some(*state)));
        let offer = campaign.offer.as_ref();
        let gives_address = offer.is_some_and(|offer| offer.terms.handover == Some(Handover::Address));
        let accepted = part.acceptance.filter(|acceptance| acceptance.ended_at.is_none()).zip(offer);
        let can_accept = offer.filter(|_| open.presses.contains(&Press::Accept));
        let button = |press: Press| {
            let (label, is_first) = match press {
                Press::In => (&words.count_in, true),
                Press::Out => (&words.count_out, false),
                Press::Accept if gives_address => (&page.words.handover.accept_address, true),
                Press::Accept => (&words.accept, true),
                Press::Pass if part.state == Some(ParticipationState::Accepted) => (&words.withdraw, false),
                Press::Pass => (&words.pass, false),
            };
            (press.name(), label.as_str(), is_first)
        };
        Self {
            token: part.token,
            from_own_page: place == PartPlace::OwnPage,
            said: said(page.words, campaign, part.state, page.now)
                .filter(|_| part.state.is_some() || place == PartPlace::CampaignPage)
                .map(Phrase::as_str),
            code: accepted.map(|(acceptance, _)| code(page.words, acceptance)),
            order: match accepted {
                Some((acceptance, offer)) => order(page.words, acceptance, offer),
                None => ended(page.words, part.acceptance).into_iter().collect(),
            },
            withdrawing: accepted
                .filter(|_| open.presses.contains(&Press::Pass))
                .map(|(acceptance, offer)| withdrawing(page.words, acceptance, offer)),
            trouble: accepted.map(|(acceptance, offer)| trouble(page.words, acceptance, offer)),
            consent: can_accept.map(|offer| consent(page.language, offer)).unwrap_or_default(),
            offer_mark: can_accept.map(|offer| offer.mark(page.language)).unwrap_or_default(),
            how: campaign.how(page.language).filter(|_| part.state == Some(ParticipationState::Accepted)),
            other_state: named.map(|state| {
                let places = places(page.words, campaign);
                words.part_other_state.put("states", places).put("state", page.words.state(state))
            }),
            fits: fits(page.words, campaign, part, &open, page.now),
            question: open.asks_whether_customer.then(|| {
                let supplier = campaign.offer.as_ref().map_or("", Offer::supplier);
                words.customer_question.put("supplier", supplier).plain()
            }),
            needs_state: open.needs_state,
            state_hint: match &campaign.offer {
                Some(_) => words.offer_state_hint.put("states", offer_places(page.words, campaign)).plain(),
                None => words.state_hint.put("states", places(page.words, campaign)).plain(),
            },
            buttons: open.presses.into_iter().map(button).collect(),
        }
    }
}

/// An offer, as people compare it.
pub(super) struct OfferView {
    pub(super) facts: Vec<OfferFact>,
    pub(super) note: Option<&'static Phrase>,
}

/// What a reader compares, if there is an offer; who accepted reads how to get it beside their part instead.
fn offer_of(page: Frame<'_>, campaign: &CampaignRecord, part: Option<ParticipationState>) -> Option<OfferView> {
    let offer = campaign.offer.as_ref()?;
    let with_how = campaign.how(page.language).is_some() && part != Some(ParticipationState::Accepted);
    let facts = offer_facts(offer, page.language, (offer.terms.decide_by, offer.terms.open_until), with_how);
    Some(OfferView { facts, note: offer.bid().is_none().then_some(&page.words.deal.as_text) })
}

#[derive(Template)]
#[template(path = "campaign/list.html")]
struct CampaignsPage<'a> {
    page: Frame<'a>,
    open: Vec<CampaignCard<'a>>,
    over: Vec<CampaignCard<'a>>,
}

/// All that everybody may see.
pub fn campaigns(page: Frame<'_>, listed: &[CampaignRecord]) -> String {
    let (over, open): (Vec<_>, Vec<_>) = listed.iter().partition(|campaign| campaign.state == CampaignState::Closed);
    let cards = |campaigns: Vec<_>| campaigns.into_iter().map(|campaign| CampaignCard::of(page, campaign)).collect();
    rendered(page, &CampaignsPage { page, open: cards(open), over: cards(over) })
}

/// The page of a campaign.
#[derive(Clone, Copy)]
pub struct CampaignView<'a> {
    pub campaign: &'a CampaignRecord,
    pub reader: CampaignReader<'a>,
    /// What was just done.
    pub done: Option<&'a str>,
    /// Why what was pressed changed nothing.
    pub refused: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "campaign/page.html")]
struct CampaignPage<'a> {
    page: Frame<'a>,
    card: CampaignCard<'a>,
    /// Whether search engines may show it.
    is_public: bool,
    done: Option<&'a str>,
    refused: Option<&'a str>,
    stands: String,
    withdrawn: Option<String>,
    step: &'static Phrase,
    /// While it gathers.
    until: Option<String>,
    offer: Option<OfferView>,
    shows_count: bool,
    part: Option<PartView<'a>>,
    /// What whoever is not signed in is led to.
    stranger: Option<(&'static Phrase, &'static Phrase)>,
    has_left: bool,
}

pub fn campaign(page: Frame<'_>, view: &CampaignView<'_>) -> String {
    let CampaignView { campaign, reader, done, refused } = *view;
    let words = &page.words.campaign;
    // What a member whom it fits could press.
    let open = campaign.open_presses(None, campaign.states().first().copied(), page.now).presses;
    let led_to = if open.contains(&Press::In) {
        Some((&words.stranger_in, &words.stranger_in_text))
    } else if open.contains(&Press::Accept) {
        Some((&words.stranger_accept, &words.stranger_accept_text))
    } else {
        None
    };
    let part = match reader {
        CampaignReader::Member(part) => part.state,
        CampaignReader::Stranger | CampaignReader::Left => None,
    };
    let is_cancelled = campaign.state == CampaignState::Cancelled;
    rendered(
        page,
        &CampaignPage {
            page,
            card: CampaignCard::of(page, campaign),
            is_public: campaign.state.is_public() && matches!(reader, CampaignReader::Stranger),
            done,
            refused,
            stands: stands(page.words, campaign, page.now),
            withdrawn: withdrawn(page.language, campaign),
            step: step(page.words, campaign.state),
            until: (campaign.state == CampaignState::Gathering).then(|| day(page.words, campaign.draft.gather_until)),
            // Of what was given up only what it was about.
            offer: offer_of(page, campaign, part).filter(|_| !is_cancelled),
            shows_count: !is_cancelled && campaign.state != CampaignState::Closed,
            part: match reader {
                CampaignReader::Member(part) => {
                    let part = PartView::of(page, campaign, part, PartPlace::CampaignPage);
                    Some(part).filter(|part| part.said.is_some())
                }
                CampaignReader::Stranger | CampaignReader::Left => None,
            },
            stranger: led_to.filter(|_| matches!(reader, CampaignReader::Stranger)),
            has_left: led_to.is_some() && matches!(reader, CampaignReader::Left),
        },
    )
}

/// Campaigns for a member, with what they can press: on their own page, or on the page that welcomes them.
pub(super) fn member_cards<'a>(
    page: Frame<'a>,
    campaigns: &[(&'a CampaignRecord, MemberPart<'a>)],
    place: PartPlace,
) -> Vec<CampaignCard<'a>> {
    campaigns.iter().map(|(campaign, part)| CampaignCard::for_member(page, campaign, *part, place)).collect()
}

#[derive(Template)]
#[template(path = "campaign/unsubscribe.html")]
struct UnsubscribePage<'a> {
    page: Frame<'a>,
    kind: &'static Phrase,
    done: bool,
}

/// Asks whether a kind of mail is to be switched off, or says that it is.
pub fn unsubscribe(page: Frame<'_>, kind: CampaignMail, done: bool) -> String {
    let words = &page.words.unsubscribe;
    let kind = match kind {
        CampaignMail::Opened => &words.opened,
        CampaignMail::Offer => &words.offer,
        CampaignMail::Result => &words.result,
    };
    rendered(page, &UnsubscribePage { page, kind, done })
}

/// Those of the listed that are not over.
pub(super) fn open(listed: &[CampaignRecord]) -> impl Iterator<Item = &CampaignRecord> {
    listed.iter().filter(|campaign| campaign.state != CampaignState::Closed)
}

/// The first of them, each in a line on the page to join on.
pub(super) fn open_cards<'a>(page: Frame<'a>, listed: &'a [CampaignRecord]) -> Vec<CampaignCard<'a>> {
    open(listed).take(MOST_CARDS).map(|campaign| CampaignCard::of(page, campaign)).collect()
}

/// The newest result in which somebody accepted: the newest that was closed comes first.
pub(super) fn newest_result<'a>(page: Frame<'a>, listed: &'a [CampaignRecord]) -> Option<(&'a str, &'a str, String)> {
    let closed = listed.iter().filter(|campaign| campaign.state == CampaignState::Closed);
    let mut reached = closed.filter_map(|campaign| Some((campaign, campaign.result()?)));
    let (campaign, result) = reached.find(|(_, result)| result.accepted > 0)?;
    let words = page.words;
    let said = match result.switched.filter(|switched| switched.members > 0) {
        Some(switched) => {
            let members = words.join.result_switched.put("members", words.members(switched.members));
            members.put("supplier", result.offer.supplier())
        }
        None => words.campaign.result_text.put("members", words.members(result.accepted)),
    };
    Some((campaign.slug().as_str(), campaign.draft.text(page.language).map_or("", |text| &text.title), said.plain()))
}
