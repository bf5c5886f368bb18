//! Campaigns: the list, the page of one, and the cards of the welcome page, of a member's own page and of the page to join on.

mod phrases;

use askama::Template;

pub use self::phrases::refusal;
use self::phrases::{
    MOST_NAMED, StepView, code, consent, count, days_left, ended, fits, offer_places, order, places, places_in_brief,
    result, said, short, steps, trouble, withdrawing, withdrawn,
};
use super::{Frame, rendered};
use crate::domain::campaign::acceptance::{AcceptanceEntry, Handover};
use crate::domain::campaign::offer::Offer;
use crate::domain::campaign::participation::{ParticipationEntry, ParticipationState, Press};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::wording::{OfferView, saving_in_brief};
use crate::domain::campaign::{CampaignMail, CampaignState};
use crate::domain::catalog::category::CategorySet;
use crate::domain::language::{Filling, Phrase};
use crate::domain::referral::ReferralCode;
use crate::domain::share::ShareWays;
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
    pub(super) shows_count: bool,
    /// Its step and its day, in a few words.
    pub(super) short: String,
    pub(super) days_left: Option<String>,
    /// What its offer saves, beside what is typical, while it can be accepted.
    pub(super) saving: Option<String>,
    /// What was reached, once it is closed.
    pub(super) result: Option<String>,
    pub(super) part: Option<PartView<'a>>,
}

/// A member's part, and what they can press.
pub(super) struct PartView<'a> {
    pub(super) token: &'a str,
    /// What stands above it for who accepted.
    pub(super) heading: &'static Phrase,
    /// Whether there are others on the page, so that its buttons name their campaign.
    pub(super) is_listed: bool,
    pub(super) has_accepted: bool,
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
        let text = campaign.draft.text(page.language);
        let offer = campaign.offer.as_ref().filter(|_| campaign.takes_acceptances(page.now));
        Self {
            slug: campaign.slug().as_str(),
            title: text.map_or("", |text| &text.title),
            summary: text.map_or("", |text| &text.summary),
            bill: page.words.category(campaign.draft.category),
            places: places_in_brief(page.words, campaign),
            count: count(page.words, campaign, page.now),
            shows_count: !matches!(campaign.state, CampaignState::Closed | CampaignState::Cancelled),
            short: short(page.language, campaign, page.now),
            days_left: days_left(page.words, campaign, page.now),
            saving: offer.map(|offer| saving_in_brief(offer, page.language)),
            result: result(page.language, campaign),
            part: None,
        }
    }

    /// With what a member can press.
    fn for_member(page: Frame<'a>, campaign: &'a CampaignRecord, part: MemberPart<'a>, place: PartPlace) -> Self {
        Self { part: Some(PartView::of(page, campaign, part, place)), ..Self::of(page, campaign) }
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
        let is_reported = accepted.is_some_and(|(acceptance, _)| acceptance.report.is_some());
        let awaits_order = part.state == Some(ParticipationState::Accepted) && !is_reported;
        Self {
            token: part.token,
            heading: if is_reported { &words.your_deal } else { &page.words.handover.next },
            is_listed: place != PartPlace::CampaignPage,
            has_accepted: part.state == Some(ParticipationState::Accepted),
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
            how: campaign.how(page.language).filter(|_| awaits_order),
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
    /// Of a member: whose invitation they share, and whether the offer will be mailed to them if there is one.
    pub code: Option<ReferralCode>,
    pub gets_offer: bool,
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
    /// That it was cancelled, and that its offer was withdrawn.
    over: Option<String>,
    withdrawn: Option<String>,
    /// How far it is; none of one that was cancelled.
    steps: Vec<StepView>,
    /// Where it is for, if the top of the page has no room for that.
    states: Option<String>,
    offer: Option<OfferView>,
    is_over: bool,
    part: Option<PartView<'a>>,
    /// What somebody who is in waits for.
    next: Option<&'static Phrase>,
    /// What whoever is no member is led to: why they would, and the button.
    led_to: Option<(&'static Phrase, &'static Phrase)>,
    has_left: bool,
    /// How a member who is in passes it on.
    share: Option<(String, ShareWays)>,
}

impl CampaignPage<'_> {
    /// Whether there is an offer that nobody can accept any more.
    fn is_too_late(&self) -> bool {
        self.offer.is_some() && self.card.saving.is_none()
    }
}

pub fn campaign(page: Frame<'_>, view: &CampaignView<'_>) -> String {
    let CampaignView { campaign, reader, code, gets_offer, done, refused } = *view;
    let words = &page.words.campaign;
    let (state, card) = (campaign.state, CampaignCard::of(page, campaign));
    let (is_over, is_cancelled) = (state == CampaignState::Closed, state == CampaignState::Cancelled);
    let (part, is_stranger) = match reader {
        CampaignReader::Member(part) => (Some(part), false),
        CampaignReader::Stranger => (None, true),
        CampaignReader::Left => (None, false),
    };
    let has = |state| part.is_some_and(|part| part.state == Some(state));
    let (is_in, has_accepted) = (has(ParticipationState::In), has(ParticipationState::Accepted));
    // What a member whom it fits could press.
    let open = campaign.open_presses(None, campaign.states().first().copied(), page.now).presses;
    let led_to = if open.contains(&Press::In) {
        Some((&words.stranger_in_text, &words.stranger_in))
    } else if open.contains(&Press::Accept) {
        Some((&words.stranger_accept_text, &words.stranger_accept))
    } else {
        None
    };
    rendered(
        page,
        &CampaignPage {
            page,
            is_public: campaign.state.is_public() && is_stranger,
            done,
            refused,
            over: is_cancelled.then(|| {
                words
                    .now_cancelled
                    .put("date", campaign.closed_at.map(|at| page.words.date(at)).unwrap_or_default())
                    .plain()
            }),
            withdrawn: withdrawn(page.language, campaign).filter(|_| !is_cancelled),
            steps: steps(page.words, campaign, part.and_then(|part| part.state), page.now),
            states: (campaign.draft.states.len() > MOST_NAMED).then(|| places(page.words, campaign)),
            // Of what was given up only what it was about.
            offer: campaign.offer.as_ref().filter(|_| !is_cancelled).map(|offer| match is_over {
                true => OfferView::of_result(offer, page.language),
                // Who accepted reads how to get it beside their code.
                false => OfferView::of(offer, page.language, campaign.days_ahead(page.now), !has_accepted),
            }),
            is_over,
            part: part
                .map(|part| PartView::of(page, campaign, part, PartPlace::CampaignPage))
                .filter(|part| part.said.is_some()),
            next: (is_in && state.gathers() && done.is_none()).then_some(match gets_offer {
                true => &words.next_mailed,
                false => &words.next_here,
            }),
            led_to: led_to.filter(|_| part.is_none()),
            has_left: !is_stranger,
            share: code.filter(|_| (is_in && state.gathers()) || (has_accepted && card.saving.is_some())).map(|code| {
                let link = format!("{}/campaigns/{}?ref={code}", page.union.join_site, card.slug);
                let ways = ShareWays::for_campaign(page.words, &page.union.name, card.title, &link);
                (link, ways)
            }),
            card,
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

#[cfg(test)]
mod tests {
    use super::super::every_page::samples::{acceptance_of, campaign_of};
    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::language::Language;
    use crate::domain::time::Timestamp;

    const NOW: Timestamp = Timestamp::from_millis(1_794_743_200_000);

    fn shown_at(campaign: &CampaignRecord, reader: CampaignReader<'_>, now: Timestamp) -> String {
        let union = UnionSettings::sample();
        let code = ReferralCode::from_canonical("yd8z2z0xsrw1").filter(|_| matches!(reader, CampaignReader::Member(_)));
        let view = CampaignView { campaign, reader, code, gets_offer: true, done: None, refused: None };
        super::campaign(Frame::new(&union, Language::English, "/campaigns/x", now), &view)
    }

    fn shown(campaign: &CampaignRecord, reader: CampaignReader<'_>) -> String {
        shown_at(campaign, reader, NOW)
    }

    fn member(state: Option<ParticipationState>) -> CampaignReader<'static> {
        let part = MemberPart::of("abc", None, Some(UsState::CA), CategorySet::default());
        CampaignReader::Member(MemberPart { state, ..part })
    }

    /// Each of its four steps: where it is, and what stands below its name.
    fn steps_of(html: &str) -> Vec<(&str, Vec<&str>)> {
        let list = html.split("<ol class=\"steps dated\">").nth(1).and_then(|rest| rest.split("</ol>").next());
        let steps = list.unwrap_or_default().split("<li").skip(1);
        steps
            .map(|step| {
                let place = if step.starts_with(" class=\"past\"") {
                    "past"
                } else if step.starts_with(" class=\"now\" aria-current=\"step\"") {
                    "now"
                } else {
                    "ahead"
                };
                (place, step.split("<p>").skip(1).map(|text| text.split("</p>").next().unwrap()).collect())
            })
            .collect()
    }

    #[test]
    fn four_steps_have_the_days_that_are_known() {
        let of = |state, reader| {
            let html = shown(&campaign_of("", state), reader);
            steps_of(&html)
                .into_iter()
                .map(|(place, texts)| format!("{place}: {}", texts.join(" ")))
                .collect::<Vec<_>>()
        };
        let [gathering, negotiating, decides] = [
            "Being in doesn't commit you to anything. Once there is an offer, you decide.",
            "An AI negotiates for everyone who is in. You can still count yourself in or out. Being in doesn't commit you to anything.",
            "Members accept the offer or pass. If you do nothing, nothing changes.",
        ];
        let (offer, decided) = ("ahead: Once there is an offer", "ahead: After members have decided");
        let stranger = CampaignReader::Stranger;
        assert_eq!(
            of(CampaignState::Gathering, stranger),
            [&format!("now: Until Jan 31, 2027 {gathering}"), "ahead: After Jan 31, 2027", offer, decided]
        );
        assert_eq!(
            of(CampaignState::Negotiating, stranger),
            ["past: Began on Sep 16, 2026", &format!("now: Since Oct 16, 2026 {negotiating}"), offer, decided]
        );
        let past = ["past: Began on Sep 16, 2026", "past: Began on Oct 16, 2026"];
        let offered = of(CampaignState::Offered, stranger);
        assert_eq!(
            (&offered[..2], offered[2].as_str()),
            (&past.map(str::to_owned)[..], &*format!("now: Until Mar 15, 2027 {decides}"))
        );
        let accepted = of(CampaignState::Offered, member(Some(ParticipationState::Accepted)));
        assert_eq!(accepted[2..], ["now: Until Mar 15, 2027", decided], "they have decided");
        let active = of(CampaignState::Active, stranger);
        assert_eq!(
            active[2..],
            ["past: Began on Nov 5, 2026", "now: Since Nov 13, 2026 Members can still accept the offer."]
        );
        let closed = of(CampaignState::Closed, stranger);
        assert_eq!(closed[2..], ["past: Began on Nov 5, 2026", "past: Began on Nov 13, 2026"]);
        assert_eq!(of(CampaignState::Cancelled, stranger), [""; 0]);
        // An offer that nobody can accept any more, and no deal yet.
        let late =
            shown_at(&campaign_of("", CampaignState::Offered), stranger, "2027-03-16T10:00:00Z".parse().unwrap());
        assert_eq!(steps_of(&late)[3], ("now", vec!["Now", "It hasn't started yet."]));
        // One that was withdrawn leaves no day behind.
        let mut again = campaign_of("", CampaignState::Negotiating);
        (again.offered_at, again.negotiating_at) = (Some(NOW), None);
        assert_eq!(steps_of(&shown(&again, stranger))[2], ("ahead", vec!["Once there is an offer"]));
    }

    #[test]
    fn days_are_counted_until_the_last_and_not_beyond() {
        let gathering = campaign_of("", CampaignState::Gathering);
        let left = |campaign: &CampaignRecord, now: &str| {
            let now = now.parse().unwrap();
            days_left(Language::English.words(), &campaign.clone().as_of(now), now)
        };
        assert_eq!(left(&gathering, "2027-01-22T12:00:00Z").as_deref(), Some("9 days left"));
        assert_eq!(left(&gathering, "2027-01-30T12:00:00Z").as_deref(), Some("1 day left"));
        assert_eq!(left(&gathering, "2027-01-31T10:00:00Z").as_deref(), Some("Today is the last day"));
        assert_eq!(left(&gathering, "2027-02-01T10:00:00Z"), None);
        let active = campaign_of("", CampaignState::Active);
        assert_eq!(left(&active, "2027-03-15T12:00:00Z").as_deref(), Some("Today is the last day"));
        assert_eq!(left(&active, "2027-03-17"), None);
        assert_eq!(left(&campaign_of("", CampaignState::Negotiating), "2027-01-22"), None, "nobody knows");
    }

    #[test]
    fn few_members_are_the_first_only_just_after_it_opened() {
        let mut campaign = campaign_of("", CampaignState::Gathering);
        campaign.sheet = None;
        let says = |campaign: &CampaignRecord| count(Language::English.words(), campaign, NOW);
        assert_eq!(says(&campaign), "Fewer than 5 members at the last count");
        campaign.opened_at = Some(NOW);
        assert_eq!(says(&campaign), "Just opened: be one of the first");
        campaign.state = CampaignState::Offered;
        assert_eq!(says(&campaign), "Fewer than 5 members at the last count", "nobody can be the first any more");
        assert_eq!(says(&campaign_of("", CampaignState::Gathering)), "1,230 members in");
    }

    #[test]
    fn everybody_is_led_to_what_they_can_do_by_one_gold_button() {
        let offered = campaign_of("", CampaignState::Offered);
        let gathering = campaign_of("", CampaignState::Gathering);
        let gold = |html: &str| html.matches("class=\"button\"").count();
        let (join, sign_in) = ("/join\">Join to get this offer</a>", "/sign-in\">I'm a member: sign in</a>");
        let html = shown(&offered, CampaignReader::Stranger);
        assert!(html.contains(join) && html.contains(sign_in) && !html.contains("<form") && gold(&html) == 1);
        let html = shown(&offered, CampaignReader::Left);
        assert!(
            html.contains(join) && !html.contains(sign_in) && html.contains("no longer a member") && gold(&html) == 1
        );
        let html = shown(&offered, member(Some(ParticipationState::In)));
        assert!(html.contains("value=\"accept\"") && html.contains("value=\"pass\"") && !html.contains("/join\">Join"));
        assert!(gold(&html) == 1 && html.find("You get a code to order with") < html.find("value=\"accept\""));
        let html = shown(&gathering, CampaignReader::Stranger);
        assert!(html.contains("/join\">Join to take part</a>") && gold(&html) == 1);
        let html = shown(&gathering, member(None));
        assert!(html.contains("value=\"in\"") && gold(&html) == 1 && !html.contains("ref=yd8z2z0xsrw1"));
        let html = shown(&gathering, member(Some(ParticipationState::In)));
        assert!(
            html.contains("We'll email you when there's an offer.")
                && html.contains("/campaigns/internet-gathering?ref=yd8z2z0xsrw1")
        );
        for over in [CampaignState::Closed, CampaignState::Cancelled] {
            for reader in [CampaignReader::Stranger, CampaignReader::Left, member(Some(ParticipationState::In))] {
                let html = shown(&campaign_of("", over), reader);
                assert!(
                    !html.contains("<form") && gold(&html) == 0 && !html.contains("/join\">Join"),
                    "{}",
                    over.name()
                );
            }
        }
    }

    #[test]
    fn who_accepted_reads_first_what_comes_next_and_last_how_to_withdraw() {
        let acceptance = acceptance_of(NOW);
        let CampaignReader::Member(part) = member(Some(ParticipationState::Accepted)) else { unreachable!() };
        let html = shown(
            &campaign_of("", CampaignState::Offered),
            CampaignReader::Member(MemberPart { acceptance: Some(&acceptance), ..part }),
        );
        let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} in {html}"));
        let order = [
            "A410610500",
            "Example Fiber emails you a code",
            "tells us whether you ordered",
            "Everything included",
            "The four steps",
            "value=\"trouble\"",
            "value=\"pass\"",
        ];
        assert!(order.map(at).is_sorted(), "{:?}", order.map(at));
        assert!(!html.contains("Members accept the offer or pass"));
    }

    #[test]
    fn what_is_over_has_no_day_to_decide_by() {
        let dates = ["Decide by", "decide by", "Last day to", "Until ", "days left", "Deal running"];
        let closed = campaign_of("", CampaignState::Closed);
        let late =
            shown_at(&campaign_of("", CampaignState::Offered), CampaignReader::Stranger, "2027-04-01".parse().unwrap());
        for html in [shown(&closed, CampaignReader::Stranger), late.clone()] {
            for date in dates {
                assert!(!html.contains(date), "{date} in {html}");
            }
        }
        assert!(late.contains("too late to accept this offer") && !late.contains("/join\">Join"));
        let html = shown(&closed, CampaignReader::Stranger);
        let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} in {html}"));
        assert!(["At least 610 members accepted", "The deal with Example Fiber", "The four steps"].map(at).is_sorted());
        assert!(
            html.contains("$636 a year") && html.contains("$816 a year") && html.contains("Closed on Nov 15, 2026")
        );
    }
}
