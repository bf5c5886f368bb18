//! `/campaigns.json`: the list of campaigns for programs, as its reader's language has it.

use bytes::Bytes;
use hyper::header::{ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_LANGUAGE, HeaderValue, VARY};
use hyper::{Request, StatusCode};
use serde::Serialize;

use crate::domain::campaign::acceptance::Handover;
use crate::domain::campaign::offer::{Deal, Offer};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::wording::OfferWords;
use crate::domain::campaign::{CampaignSlug, CampaignState, LastDay};
use crate::domain::catalog::category::Category;
use crate::domain::json::True;
use crate::domain::language::Language;
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::http::response::etag::EntityTag;
use crate::site::{PageResult, Visit};

#[derive(Serialize)]
struct PublicCampaignList<'a> {
    ok: True,
    campaigns: Vec<ListedCampaign<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedCampaign<'a> {
    slug: &'a CampaignSlug,
    /// Its page.
    url: String,
    category: Category,
    state: CampaignState,
    title: &'a str,
    summary: &'a str,
    /// Empty: all of them.
    states: &'a [UsState],
    /// Counted at each step and once a day, and rounded down to a multiple of five. None: being counted.
    #[serde(rename = "in")]
    members_in: Option<u64>,
    gather_until: LastDay,
    offer: Option<ListedOffer<'a>>,
    /// Once it is closed and its members are counted.
    result: Option<ListedResult>,
}

/// What was reached.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedResult {
    /// Members who had accepted at the last count, rounded as `in` is.
    accepted: u64,
    /// Of them, those of whom the supplier says that they switched, rounded alike; null until it says something.
    switched: Option<u64>,
    /// When that was counted.
    as_of: Option<Timestamp>,
    /// What those who switched, or as long as that is unknown those who accepted, save together against the benchmark, in dollars; in a year, or with one use where the offer's figures are per use.
    annual_saving: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedOffer<'a> {
    supplier: &'a str,
    price: String,
    /// What it costs in a year with everything in it; null where nobody reckoned.
    all_in_cents: Option<u64>,
    all_in: Option<String>,
    fees: Vec<String>,
    annual_saving: u64,
    /// What its figures are of: a year, or one use where the campaign does not say how many there are in a year.
    figures_per: &'static str,
    term_months: u32,
    exit_fee: String,
    benchmark: ListedBenchmark<'a>,
    /// What the union gets for each switch.
    commission_cents: Option<u64>,
    /// Where it is available; empty: wherever the campaign is for.
    states: &'a [UsState],
    new_customers_only: bool,
    needs_members: Option<u32>,
    complaints: &'a str,
    decide_by: LastDay,
    open_until: Option<LastDay>,
    details: Option<&'a str>,
    how: Option<&'a str>,
    /// What the supplier gets of who accepts: code or address. Null: the offer is of version 1.0.0.
    handover: Option<Handover>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedBenchmark<'a> {
    price: String,
    /// As a year's cost.
    all_in_cents: Option<u64>,
    source: &'a str,
    url: Option<&'a str>,
    date: LastDay,
}

pub async fn json(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let campaigns = visit.stored(visit.app().campaigns.public(visit.now).await)?;
    // Not by a cookie: what is cached for a minute is the same for everybody who asks alike.
    let liked = request.headers().get(ACCEPT_LANGUAGE).and_then(|header| header.to_str().ok());
    let language = visit.reader.asked().or_else(|| liked.and_then(Language::accepted)).unwrap_or_default();
    let site = &visit.app().union.join_site;
    let campaigns = campaigns.listed().iter().map(|campaign| listed(campaign, site, language)).collect();
    let document = Bytes::from(serde_json::to_vec(&PublicCampaignList { ok: True, campaigns }).unwrap_or_default());
    let answer = Answer::json(StatusCode::OK, document.clone());
    let mut answer = EntityTag::default().attach(answer, &document, request.headers());
    answer.set(CONTENT_LANGUAGE, HeaderValue::from_static(language.code()));
    answer.set(CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
    answer.set(VARY, HeaderValue::from_static("Accept-Language"));
    Ok(answer)
}

fn listed<'a>(campaign: &'a CampaignRecord, site: &str, language: Language) -> ListedCampaign<'a> {
    let text = campaign.draft.text(language);
    let result = campaign.result().filter(|_| campaign.state == CampaignState::Closed);
    ListedCampaign {
        slug: campaign.slug(),
        url: format!("{site}/campaigns/{}", campaign.slug()),
        category: campaign.draft.category,
        state: campaign.state,
        title: text.map_or("", |text| &text.title),
        summary: text.map_or("", |text| &text.summary),
        states: &campaign.draft.states,
        members_in: campaign.counted_in(),
        gather_until: campaign.draft.gather_until,
        offer: campaign.offer.as_ref().map(|offer| listed_offer(offer, language)),
        result: result.map(|result| ListedResult {
            accepted: result.accepted,
            switched: result.switched.map(|switched| switched.members),
            as_of: result.switched.map(|switched| switched.as_of),
            annual_saving: result.saved(),
        }),
    }
}

fn listed_offer(offer: &Offer, language: Language) -> ListedOffer<'_> {
    let (text, bid) = (offer.text(language), offer.bid());
    let words = OfferWords::of(offer, language);
    let (reckoned, benchmark) = match &offer.deal {
        Deal::Reckoned(deal) => {
            let (reckoned, from) = (deal.reckoned(), &deal.benchmark);
            let price = words.benchmark;
            let all_in_cents = Some(reckoned.typical_cents);
            let url = Some(from.url.as_str());
            let source = from.source.text(language);
            (Some(reckoned), ListedBenchmark { price, all_in_cents, source, url, date: from.date })
        }
        Deal::AsText(deal) => {
            let price = words.benchmark;
            (None, ListedBenchmark { price, all_in_cents: None, source: &deal.source, url: None, date: deal.date })
        }
    };
    ListedOffer {
        supplier: offer.supplier(),
        price: words.price,
        all_in_cents: reckoned.map(|reckoned| reckoned.all_in_cents),
        all_in: words.all_in,
        fees: words.fees,
        annual_saving: offer.saving(),
        figures_per: if offer.is_by_use() { "use" } else { "year" },
        term_months: offer.term_months(),
        exit_fee: words.exit_fee,
        benchmark,
        commission_cents: bid.map(|bid| bid.commission_cents),
        states: offer.states(),
        new_customers_only: offer.is_for_new_customers(),
        needs_members: bid.and_then(|bid| bid.needs_members),
        complaints: &offer.terms.complaints,
        decide_by: offer.terms.decide_by,
        open_until: offer.terms.open_until,
        details: text.and_then(|text| text.details.as_deref()),
        how: text.and_then(|text| text.how.as_deref()),
        handover: offer.terms.handover,
    }
}
