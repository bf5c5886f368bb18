//! `/operator/campaigns`: how far each campaign is, and everything about one: its next step, the bids of suppliers, and drafts of its offer
//! with the rounds behind them. What is made and changed there is in the files beside.

mod asked_step;
mod bid;
mod definition;
mod handover;
mod negotiation;
mod offer;
mod step;

use askama::Template;
use hyper::{Request, StatusCode};

use self::bid::{NO_BENCHMARK, ShownBid, shown};
pub use self::bid::{record as record_bid, show_form as show_bid_form};
pub use self::definition::{edit, make, show_edit, show_new};
use self::handover::ShownHandover;
pub use self::handover::{download as download_handover, settle as settle_orders};
pub use self::negotiation::{
    pause, pause_all, record_round, redact_round, reject_draft, say, show_round_form, show_words_form,
};
pub use self::offer::{publish as publish_offer, show_form as show_offer_form};
pub use self::step::step;
use super::frame::{OperatorFrame, OperatorSection, render};
use super::previews::called;
use super::session::OperatorVisit;
use crate::campaigns::bids::ListBids;
use crate::campaigns::drafts::ListOfferDrafts;
use crate::campaigns::negotiation::ListMessages;
use crate::campaigns::offer_facts::offer_facts;
use crate::campaigns::operator_step::terms_words;
use crate::campaigns::pause::ListPauses;
use crate::campaigns::records::{FindCampaign, ListCampaigns};
use crate::campaigns::rounds::ListRounds;
use crate::domain::campaign::demand::count_words;
use crate::domain::campaign::mandate::Mandate;
use crate::domain::campaign::offer::{Offer, Proposal};
use crate::domain::campaign::record::{
    CampaignDetails, CampaignRecord, HistoryEntry, MailingEntry, NegotiationRound, OfferDraft, OperatorMessage, Pause,
};
use crate::domain::campaign::wording::benchmark_words;
use crate::domain::campaign::{BadFile, CampaignSlug, CampaignState, CampaignStep};
use crate::domain::figure::{counted, money};
use crate::domain::mail::MailKind;
use crate::domain::operator::same_person;
use crate::domain::time::Timestamp;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::site::view::operator::{accepted, next, title};
use crate::site::{PageResult, Visit};

const HERE: OperatorSection = OperatorSection::Campaigns;

/// Rounds that are shown, the newest.
const MOST_ROUNDS: usize = 50;

/// Steps of its history that are shown, the newest: it has one for each edit.
const MOST_HISTORY: usize = 50;

#[derive(Template)]
#[template(path = "operator/campaigns.html")]
struct CampaignListPage<'a> {
    frame: OperatorFrame<'a>,
    campaigns: &'a [CampaignRecord],
    /// Of all campaigns.
    pause: Option<&'a Pause>,
    now: Timestamp,
}

pub async fn list(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let mut campaigns = found.stored(found.operator().ask(ListCampaigns).await)?;
    campaigns.sort_by_key(|campaign| (campaign.closed_at.is_some(), std::cmp::Reverse(campaign.id)));
    let pauses = found.stored(found.operator().ask(ListPauses).await)?;
    let pause = pauses.iter().find(|pause| pause.slug.is_none());
    let page = CampaignListPage { frame: found.frame(), campaigns: &campaigns, pause, now: visit.now.time };
    Ok(found.page(render(&page)))
}

#[derive(Template)]
#[template(path = "operator/campaign.html")]
struct CampaignDetailsPage<'a> {
    frame: OperatorFrame<'a>,
    campaign: &'a CampaignRecord,
    now: Timestamp,
    /// What it is about, and what was counted.
    facts: Vec<(&'static str, String)>,
    offer: Vec<(String, String)>,
    /// Buttons: what they send, what they say, and whether they end it.
    steps: Vec<(&'static str, &'static str, bool)>,
    /// Whether what was written about it can still be changed.
    can_change: bool,
    /// Why others cannot be taken yet.
    in_the_way: Vec<String>,
    /// Those that stand, and those that were superseded.
    bids: [Vec<ShownBid<'a>>; 2],
    has_mandate: bool,
    takes_bids: bool,
    /// Why none can be taken, if the campaign lacks something.
    lacks: Option<&'static str>,
    drafts: Vec<ShownDraft<'a>>,
    /// The newest first.
    rounds: Vec<&'a NegotiationRound>,
    takes_rounds: bool,
    messages: &'a [OperatorMessage],
    /// Of this campaign, and of all.
    pause: Option<&'a Pause>,
    pause_of_all: Option<&'a Pause>,
    handover: Option<ShownHandover>,
    mailings: &'a [MailingEntry],
    history: Vec<&'a HistoryEntry>,
    is_history_cut: bool,
}

struct ShownDraft<'a> {
    draft: &'a OfferDraft,
    facts: Vec<(String, String)>,
    /// How many rounds were recorded before it.
    rounds: String,
    /// Why it cannot be published now.
    mistakes: Vec<String>,
    can_publish: bool,
    /// The reader made it, and it takes another person to publish it.
    is_own: bool,
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let slug = slug_of(&found)?;
    let (operator, now) = (found.operator(), visit.now.time);
    let file = found.stored(operator.ask(FindCampaign(slug.clone())).await)?.ok_or_else(|| missing(&found))?;
    let drafts = found.stored(operator.ask(ListOfferDrafts(slug.clone())).await)?;
    let rounds = found.stored(operator.ask(ListRounds(slug.clone())).await)?;
    let bids = found.stored(operator.ask(ListBids(slug.clone())).await)?;
    let messages = found.stored(operator.ask(ListMessages(slug.clone())).await)?;
    let pauses = found.stored(operator.ask(ListPauses).await)?;
    let campaign = &file.campaign;
    let can_publish = campaign.state.after(CampaignStep::Offer).is_ok();
    let drafts = drafts.iter().rev().map(|draft| {
        let read = Proposal::parse(&draft.file).and_then(|proposal| Offer::of(&campaign.draft, &bids, &proposal, now));
        let facts = read.as_ref().map(offer_facts).unwrap_or_default();
        let mistakes = read.err().map(|BadFile(mistakes)| mistakes).unwrap_or_default();
        let before = rounds.iter().filter(|round| round.at <= draft.at).count() as u64;
        let is_own = found.access.two_people && same_person(&draft.seat, &found.who.name.on_the_page());
        let can_publish = can_publish && mistakes.is_empty() && draft.answer.is_none() && !is_own;
        ShownDraft { draft, facts, rounds: counted(before, "round"), mistakes, can_publish, is_own }
    });
    let (steps, in_the_way) = step::steps(&file);
    let handover = handover::shown(&found, campaign).await?;
    let lacks = (campaign.state.gathers() && campaign.draft.benchmark.is_none()).then_some(NO_BENCHMARK);
    let page = CampaignDetailsPage {
        frame: found.frame(),
        campaign,
        now,
        facts: facts(&file),
        offer: campaign.offer.as_ref().map(offer_facts).unwrap_or_default(),
        steps,
        can_change: !matches!(campaign.state, CampaignState::Closed | CampaignState::Cancelled),
        in_the_way,
        bids: shown(&bids, campaign, can_publish),
        has_mandate: campaign.draft.mandate.is_some(),
        takes_bids: campaign.state.takes_bids() && lacks.is_none(),
        lacks,
        drafts: drafts.collect(),
        rounds: rounds.iter().rev().take(MOST_ROUNDS).collect(),
        takes_rounds: campaign.state.gathers(),
        messages: &messages,
        pause: pauses.iter().find(|pause| pause.slug.as_ref() == Some(&slug)),
        pause_of_all: pauses.iter().find(|pause| pause.slug.is_none()),
        handover,
        mailings: &file.mailings,
        history: file.history.iter().rev().take(MOST_HISTORY).collect(),
        is_history_cut: file.history.len() > MOST_HISTORY,
    };
    Ok(found.page(render(&page)))
}

fn slug_of(found: &OperatorVisit<'_>) -> PageResult<CampaignSlug> {
    Ok(found.visit.parameter.parse().map_err(|_| missing(found))?)
}

fn missing(found: &OperatorVisit<'_>) -> Answer {
    let says = ["There is no campaign at this address.".to_owned()];
    found.message(StatusCode::NOT_FOUND, "No such campaign", &says)
}

fn facts(file: &CampaignDetails) -> Vec<(&'static str, String)> {
    let CampaignDetails { campaign, counts, .. } = file;
    let mut facts = vec![
        ("About", format!("{}, {}", campaign.draft.category.label(), campaign.places())),
        ("Gathers until", format!("the end of {}", campaign.draft.gather_until)),
        ("Members now", counts.words()),
        ("Published", campaign.published_words()),
    ];
    facts.extend(benchmark_words(&campaign.draft).map(|typical| ("Typical price", typical)));
    facts.extend(campaign.draft.mandate.as_ref().map(|mandate| ("Mandate", mandate_words(mandate))));
    facts.extend(
        campaign.draft.reviewed.as_ref().map(|review| ("Reviewed", format!("by {} on {}", review.by, review.on))),
    );
    facts.extend(campaign.terms.map(|terms| ("Referrals", terms_words(&terms))));
    facts
}

/// How far a mailing is, under the name that its mail has on these pages.
fn mailing_words(mailing: &MailingEntry) -> String {
    let name = MailKind::from_name(&mailing.kind).map_or(mailing.kind.as_str(), |kind| called(kind));
    mailing.words().replacen(&mailing.kind, name, 1)
}

fn mandate_words(mandate: &Mandate) -> String {
    let rules = &mandate.rules;
    let [target, walk_away, exit_fee, commission] =
        [mandate.target_cents, mandate.walk_away_cents, rules.most_exit_fee_cents, rules.most_commission_cents]
            .map(|cents| money(i64::try_from(cents).unwrap_or(i64::MAX)));
    let term = counted(rules.longest_term_months.into(), "month");
    let never: String = rules.never.iter().map(|never| format!("; never {never}")).collect();
    format!(
        "target {target} a year, walk away above {walk_away} (only for you); term up to {term}, leaving early up to {exit_fee}, commission up to \
         {commission}{never}"
    )
}
