//! Bids of a campaign: compared, and recorded by a form.

use hyper::Request;

use super::{HERE, missing, slug_of};
use crate::campaigns::bids::{AddBid, BidAdded};
use crate::campaigns::records::FindCampaign;
use crate::domain::campaign::bid::missed;
use crate::domain::campaign::bid::{Bid, RecordedBid, compared};
use crate::domain::campaign::draft::{Benchmark, CampaignDraft};
use crate::domain::campaign::mandate::Measure;
use crate::domain::campaign::price::{Period, Price};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::wording::BidWords;
use crate::domain::figure::money;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::site::operator::form::{Form, FormField, FormPage, FormPart, Reads, Typed};
use crate::site::operator::question::Question;
use crate::site::operator::session::OperatorVisit;
use crate::site::view::operator::title;
use crate::site::{PageResult, Visit, field_is};

/// Superseded bids that are shown, the newest.
const MOST_SUPERSEDED: usize = 50;

/// Steps of a price and fees that the form has room for; a file may have more.
const FORM_STEPS: usize = 3;
const FORM_FEES: usize = 4;

pub(super) struct ShownBid<'a> {
    pub recorded: &'a RecordedBid,
    /// None without a benchmark.
    pub words: Option<BidWords>,
    /// Points of the mandate that it misses.
    pub outside: Vec<String>,
    /// Whether an offer can be made of it now.
    pub can_publish: bool,
}

/// Those that stand, cheapest first; and the last of those that were superseded.
pub(super) fn shown<'a>(
    bids: &'a [RecordedBid],
    campaign: &CampaignRecord,
    can_publish: bool,
) -> [Vec<ShownBid<'a>>; 2] {
    let draft = &campaign.draft;
    let mut shown = [Vec::new(), Vec::new()];
    for (recorded, _) in compared(bids, draft) {
        let (words, reckoned) = BidWords::of(&recorded.bid, draft).unzip();
        let outside =
            reckoned.map(|reckoned| missed(draft.mandate.as_ref(), &recorded.bid, reckoned, Measure::WalkAway));
        let can_publish = can_publish && words.is_some() && !recorded.is_superseded;
        let one = ShownBid { recorded, words, outside: outside.unwrap_or_default(), can_publish };
        shown[usize::from(recorded.is_superseded)].push(one);
    }
    shown[1].truncate(MOST_SUPERSEDED);
    shown
}

const PERIODS: [(&str, &str); 3] = [("month", "each month"), ("year", "each year"), ("use", "each use")];
const FEE_PERIODS: [(&str, &str); 4] =
    [("month", "each month"), ("year", "each year"), ("use", "each use"), ("once", "once")];

/// Prices are of the benchmark's form: others cannot be compared with it.
fn bid_form(benchmark: &Benchmark, typed: Typed) -> Form {
    let text = |name: &str| typed.get(name).to_owned();
    let mut price = Vec::new();
    let often = text("per");
    for n in 1..=FORM_STEPS {
        let [from, cents, apr, off, on, per] = [
            "from_month",
            "price.cents",
            "price.apr_basis_points",
            "price.off_basis_points",
            "price.on_cents",
            "price.per",
        ]
        .map(|part| format!("steps.{n}.{part}"));
        let label = |what: &str| if n == 1 { what.to_owned() } else { format!("{what} then") };
        let then = if n == 1 { String::new() } else { format!("step {n}") };
        price.push(match n {
            1 => FormField::along(from, 1),
            _ => FormField::number(from, "Later from month (optional)", Reads::Whole).of(then.clone()).first(),
        });
        match benchmark.price {
            Price::Flat { .. } => {
                price.push(FormField::number(cents, label("Price in dollars"), Reads::Dollars).of(then));
                price.push(FormField::along(per, often.clone()));
            }
            Price::Loan { on_cents, .. } => {
                price.push(FormField::number(apr, label("APR in percent"), Reads::Percent).of(then).empty(""));
                price.push(FormField::along(on, on_cents));
            }
            Price::Discount { on_cents, per: often, .. } => {
                price.push(FormField::number(off, label("Discount in percent"), Reads::Percent).of(then).empty(""));
                price.push(FormField::along(on, on_cents));
                price.push(FormField::along(per, often.name()));
            }
        }
        if n == 1 && matches!(benchmark.price, Price::Flat { .. }) {
            price.push(FormField::choice("per", "Due", &PERIODS).reads(Reads::Nothing));
        }
    }
    let mut fees = Vec::new();
    for n in 1..=FORM_FEES {
        let unit = format!("fees.{n}.unit");
        let (part, reads) = match typed.get(&unit) {
            "percent" => ("basis_points", Reads::Percent),
            _ => ("cents", Reads::Dollars),
        };
        let of = format!("fee {n}");
        fees.push(FormField::line(format!("fees.{n}.name"), "Fee").of(of.clone()).first());
        let amount = FormField::number(format!("fees.{n}.amount"), "Amount", reads);
        fees.push(amount.at(format!("fees.{n}.{part}")).of(of.clone()));
        let units = [("dollars", "dollars"), ("percent", "percent")];
        fees.push(FormField::choice(unit, "In", &units).reads(Reads::Nothing).of(of.clone()));
        fees.push(FormField::choice(format!("fees.{n}.per"), "Due", &FEE_PERIODS).of(of));
    }
    let terms = vec![
        FormField::number("term_months", "Term in months", Reads::Whole).hint("How long members are bound; 0 if not."),
        FormField::number("exit_fee_cents", "Leaving early costs, in dollars", Reads::Dollars).hint("0 if nothing."),
        FormField::number("commission_cents", "The union gets for each switch, in dollars", Reads::Dollars)
            .hint("0 if nothing."),
        FormField::day("valid_until", "Valid until"),
    ];
    let whom = vec![
        FormField::line("states", "Only in these states (optional)").reads(Reads::Codes).hint("Codes, such as CA, OR"),
        FormField::number("needs_members", "Members it needs (optional)", Reads::Whole)
            .hint("How many must accept before the supplier delivers."),
        FormField::check("new_customers_only", "Only for new customers of the supplier"),
    ];
    let words = vec![
        FormField::line("supplier", "Supplier").wide(),
        FormField::lines("evidence", "The supplier's own words (optional)", 5),
    ];
    let price_hint = match benchmark.price {
        Price::Flat { .. } => "Of one unit, as the typical price is.".to_owned(),
        Price::Loan { on_cents, .. } => format!("On a balance of {}, as the typical price is.", in_money(on_cents)),
        Price::Discount { on_cents, per, .. } => {
            let often = match per {
                Period::Month => "each month",
                Period::Year => "each year",
                Period::Use => "each time",
            };
            format!("On a bill of {} {often}, as the typical price is.", in_money(on_cents))
        }
    };
    let parts = vec![
        FormPart::new("", "Who said it", "", words),
        FormPart::new("steps", "Price", price_hint, price),
        FormPart::new(
            "fees",
            "Fees (optional)",
            "A percentage is of the price, of the bill or of a loan's balance.",
            fees,
        ),
        FormPart::new("", "Terms", "", terms),
        FormPart::new("", "Who it is for", "", whom),
    ];
    Form::new(parts, typed, "steps.1")
}

fn in_money(cents: u64) -> String {
    money(i64::try_from(cents).unwrap_or(i64::MAX))
}

/// The campaign, if a bid can be recorded, and what it is compared with.
async fn read(found: &OperatorVisit<'_>) -> PageResult<(CampaignRecord, Benchmark)> {
    let slug = slug_of(found)?;
    let file = found.stored(found.operator().ask(FindCampaign(slug.clone())).await)?.ok_or_else(|| missing(found))?;
    let state = file.campaign.state;
    if !state.gathers() {
        let why =
            format!("{slug} is {}; bids are recorded while a campaign is gathering or negotiating.", state.name());
        return Err(found.refuse(&why).into());
    }
    match file.campaign.draft.benchmark.clone() {
        Some(benchmark) => Ok((file.campaign, benchmark)),
        None => Err(found.refuse(&format!("{slug} {NO_BENCHMARK}")).into()),
    }
}

pub(super) const NO_BENCHMARK: &str =
    "has no typical price, so no bid can be compared with it. Change the campaign, and fill in its typical price.";

pub async fn show_form(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let (campaign, benchmark) = read(&found).await?;
    let mut typed = Typed::default();
    let (Price::Flat { per, .. } | Price::Discount { per, .. }) = benchmark.price else {
        return Ok(form_page(&found, &campaign, &bid_form(&benchmark, typed)));
    };
    typed.set("per", per.name());
    Ok(form_page(&found, &campaign, &bid_form(&benchmark, typed)))
}

/// What was typed: shown again with what is wrong with it, or asked about with what it comes to, or recorded.
pub async fn record(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (campaign, benchmark) = read(&found).await?;
    let mut form = bid_form(&benchmark, Typed::of(&fields));
    if field_is(&fields, "change", "yes") {
        return Ok(form_page(&found, &campaign, &form));
    }
    let now = visit.now.time;
    let read = Bid::sent(&form.sent()).and_then(|bid| bid.check(&campaign.draft, now).map(|()| bid));
    let bid = match read {
        Ok(bid) => bid,
        Err(bad) => {
            form.mark(bad);
            return Ok(form_page(&found, &campaign, &form));
        }
    };
    let slug = campaign.slug();
    let here = format!("/operator/campaigns/{slug}");
    let says = [
        "Bids are kept for good. A later bid of the same supplier takes the place of the earlier.".to_owned(),
        "Nothing is published by this.".to_owned(),
    ];
    let question = Question {
        title: "Record this bid?",
        facts: &[(String::new(), facts(&bid, &campaign.draft))],
        says: &says,
        can_change: true,
        action: &format!("{here}/bid"),
        fields: &form.again(),
        button: "Record it",
        ..Question::default()
    };
    found.require_sure(&question, &fields)?;
    let act = found.who.act("campaigns bid", slug.to_string(), now);
    let add = AddBid { slug: slug.clone(), bid, who: act.who.clone(), now };
    Ok(match found.stored(found.operator().audited(act).run(add).await)? {
        BidAdded::Done(number) => {
            found.done_at(&format!("{here}#bids"), "Recorded", &[format!("Bid {number} of {slug} is recorded.")])
        }
        BidAdded::Refused(bad) => {
            form.mark(bad);
            form_page(&found, &campaign, &form)
        }
        BidAdded::NotNow(state) => found.refuse(&format!("{slug} is {} now; no bid can be recorded.", state.name())),
        BidAdded::Full => found.refuse(&format!("{slug} has {} bids already, which is the most.", Bid::MOST)),
        BidAdded::Unknown => missing(&found),
    })
}

fn form_page(found: &OperatorVisit<'_>, campaign: &CampaignRecord, form: &Form) -> Answer {
    let here = format!("/operator/campaigns/{}", campaign.slug());
    let says = [format!(
        "What a supplier said, as data. The page reckons what it costs in a year and saves. More than {FORM_STEPS} prices or {FORM_FEES} \
         fees: `unionhall campaigns bid {} FILE`",
        campaign.slug()
    )];
    let page = FormPage {
        frame: found.frame(),
        title: "Record a bid",
        back: (&here, title(campaign)),
        says: &says,
        form,
        action: &format!("{here}/bid"),
        hidden: &[],
        button: "Go on…",
    };
    page.answer(found)
}

/// A bid in rows, with what it comes to.
fn facts(bid: &Bid, campaign: &CampaignDraft) -> Vec<(String, String)> {
    let mut facts = vec![("Supplier".to_owned(), bid.supplier.clone())];
    let Some((words, reckoned)) = BidWords::of(bid, campaign) else { return facts };
    let outside = missed(campaign.mandate.as_ref(), bid, reckoned, Measure::WalkAway);
    let mandate = match (outside.is_empty(), campaign.mandate.is_some()) {
        (true, true) => "within".to_owned(),
        (true, false) => "the campaign has none".to_owned(),
        (false, _) => format!("outside: {}", outside.join("; ")),
    };
    let conditions = if words.conditions.is_empty() { "none".to_owned() } else { words.conditions.join("; ") };
    let fees = if words.fees.is_empty() { "none".to_owned() } else { words.fees.join("; ") };
    let rows = [
        ("With everything", words.all_in),
        ("Typical", words.typical),
        ("Saves", words.saving),
        ("Mandate", mandate),
        ("Price", words.price),
        ("Fees", fees),
        ("Term", words.term),
        ("Leaving early", words.exit_fee),
        ("The union gets for each switch", words.commission),
        ("Conditions", conditions),
        ("Valid until", bid.valid_until.to_string()),
        ("In their words", bid.evidence.clone().unwrap_or_else(|| "–".to_owned())),
    ];
    facts.extend(rows.into_iter().map(|(name, fact)| (name.to_owned(), fact)));
    facts
}
