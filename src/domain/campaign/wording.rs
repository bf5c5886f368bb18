//! What people read of an offer's numbers, in their language. Pages, mail, programs' lists and commands all take their words from here, so
//! no two of them differ.

use super::LastDay;
use super::acceptance::Handover;
use super::bid::Bid;
use super::draft::{Benchmark, CampaignDraft};
use super::mandate::in_money;
use super::offer::{Deal, Offer, ReckonedDeal};
use super::price::{Fee, FeeAmount, FeePeriod, Period, Price, PriceStep};
use super::reckoning::{Household, Reckoning};
use super::record::{CampaignResult, SwitchedCount};
use crate::domain::figure::grouped;
use crate::domain::language::words::DealWords;
use crate::domain::language::{Language, Phrase, Words};

/// An offer in words, in the order in which people compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferWords {
    /// What it costs in a year, with everything in it; none where nobody reckoned.
    pub all_in: Option<String>,
    /// What stands beside it.
    pub typical: String,
    /// Where that is from, with its day.
    pub source: String,
    /// The benchmark's own price.
    pub benchmark: String,
    /// Where that can be looked up.
    pub typical_url: Option<String>,
    pub saving: String,
    pub price: String,
    /// Each fee.
    pub fees: Vec<String>,
    pub term: String,
    pub exit_fee: String,
    /// What the union gets.
    pub commission: Option<String>,
    /// Who it is for, beyond the campaign's own states.
    pub places: Option<String>,
    pub new_customers: Option<&'static str>,
    pub needs_members: Option<String>,
}

/// One thing to know of an offer, as pages and mail list it.
pub struct OfferFact {
    pub label: &'static Phrase,
    pub value: String,
    /// Where it leads.
    pub link: Option<String>,
    /// Of the operator's, perhaps on several lines.
    pub is_text: bool,
}

impl OfferFact {
    fn of(label: &'static Phrase, value: impl Into<String>) -> Self {
        Self { label, value: value.into(), link: None, is_text: false }
    }
}

/// An offer as people compare it: on top what it costs beside what is typical, then the small print.
pub struct OfferView {
    pub supplier: String,
    /// What it costs with everything in it (where nobody reckoned, its price), and what is typical.
    pub compared: [OfferFact; 2],
    /// For whoever can still accept it, or has.
    pub saving: Option<OfferFact>,
    /// Where the typical price is from, with its day.
    pub source: String,
    pub source_url: Option<String>,
    /// Nobody reckoned it.
    pub note: Option<&'static Phrase>,
    pub small_print: Vec<OfferFact>,
}

impl OfferView {
    /// `decide_by` and `open_until` are shown where they are given: they may be over.
    pub fn of(
        offer: &Offer,
        language: Language,
        (decide_by, open_until): (Option<LastDay>, Option<LastDay>),
        with_how: bool,
    ) -> Self {
        let words = language.words();
        let (labels, told) = (&words.deal, OfferWords::of(offer, language));
        let text = offer.text(language);
        let day = |day: LastDay| words.date(day.begins_at());
        let mut small_print = Vec::new();
        let mut add = |label: &'static Phrase, value: Option<String>| {
            small_print.extend(value.map(|value| OfferFact::of(label, value)));
        };
        add(&labels.price, told.all_in.is_some().then(|| told.price.clone()));
        add(&labels.fees, (!told.fees.is_empty()).then(|| told.fees.join("; ")));
        add(&labels.term, Some(told.term));
        add(&labels.exit_fee, Some(told.exit_fee));
        add(&labels.places, told.places);
        add(&labels.only_for, told.new_customers.map(str::to_owned));
        add(&labels.needs_label, told.needs_members);
        add(&labels.commission_label, told.commission);
        add(
            &labels.learns,
            offer.terms.handover.map(|handover| match handover {
                Handover::Code => labels.learns_code.to_string(),
                Handover::Address => labels.learns_address.to_string(),
            }),
        );
        add(&labels.decide_by, decide_by.map(day));
        add(&labels.open_until, open_until.map(day));
        let complaints = &offer.terms.complaints;
        let link = if complaints.starts_with("https://") { complaints.clone() } else { format!("mailto:{complaints}") };
        small_print.push(OfferFact { link: Some(link), ..OfferFact::of(&labels.complaints, complaints) });
        let how = text.and_then(|text| text.how.as_ref()).filter(|_| with_how);
        for (label, value) in [(&labels.details, text.and_then(|text| text.details.as_ref())), (&labels.how, how)] {
            small_print.extend(value.map(|value| OfferFact { is_text: true, ..OfferFact::of(label, value) }));
        }
        let cost = match told.all_in {
            Some(all_in) => OfferFact::of(&labels.all_in, all_in),
            None => OfferFact::of(&labels.price, told.price),
        };
        Self {
            supplier: offer.supplier().to_owned(),
            compared: [cost, OfferFact::of(&labels.typical_label, told.typical)],
            saving: Some(OfferFact::of(&labels.saving_label, told.saving)),
            source: told.source,
            source_url: told.typical_url,
            note: offer.bid().is_none().then_some(&labels.as_text),
            small_print,
        }
    }

    /// All of it in one list, as mail and commands have it.
    pub fn listed(self, language: Language) -> Vec<OfferFact> {
        let labels = &language.words().deal;
        let [cost, mut typical] = self.compared;
        typical.value = labels.sourced.put("price", typical.value).put("source", self.source).plain();
        typical.link = self.source_url;
        let supplier = OfferFact::of(&labels.supplier, self.supplier);
        [supplier, cost, typical].into_iter().chain(self.saving).chain(self.small_print).collect()
    }

    /// What a result says of its deal: nothing is left to be decided.
    pub fn of_result(offer: &Offer, language: Language) -> Self {
        let labels = &language.words().deal;
        let mut deal = Self { saving: None, ..Self::of(offer, language, (None, None), false) };
        let kept = [&labels.price, &labels.commission_label];
        deal.small_print.retain(|fact| kept.iter().any(|label| std::ptr::eq(*label, fact.label)));
        deal
    }
}

/// "You save about $240 a year. Typical price: $68 a month."
pub fn saving_in_brief(offer: &Offer, language: Language) -> String {
    let texts = &language.words().deal;
    let told = OfferWords::of(offer, language);
    let phrase = if offer.saving() == 0 { &texts.brief_none } else { &texts.brief };
    phrase.put("saving", told.saving).put("typical", told.benchmark).plain()
}

/// What all who accepted an offer save together: "$1,200 a year".
fn saved_together(offer: &Offer, amount: u64, language: Language) -> String {
    let texts = &language.words().deal;
    let phrase = if offer.is_by_use() { &texts.per_use } else { &texts.per_year };
    phrase.put("amount", dollars(amount)).plain()
}

/// What a campaign reached, in a few sentences: how many accepted, how many switched as the supplier says, and what they save.
pub fn result_words(result: CampaignResult<'_>, language: Language) -> String {
    let words = language.words();
    let texts = &words.campaign;
    let mut said = vec![texts.result_text.put("members", words.members(result.accepted)).plain()];
    let supplier = result.offer.supplier();
    let saved = match result.switched {
        None => Some(&texts.result_would_save),
        Some(SwitchedCount { members, as_of }) => {
            let phrase = if members == 0 { &texts.result_switched_few } else { &texts.result_switched };
            let filled = phrase.put("members", words.members(members)).put("supplier", supplier);
            said.push(filled.put("date", words.date(as_of)).plain());
            (members > 0).then_some(&texts.result_saved)
        }
    };
    said.extend(
        saved.map(|phrase| phrase.put("saved", saved_together(result.offer, result.saved(), language)).plain()),
    );
    said.join(" ")
}

impl OfferWords {
    pub fn of(offer: &Offer, language: Language) -> Self {
        let words = language.words();
        match &offer.deal {
            Deal::Reckoned(deal) => Self::reckoned(deal, language),
            Deal::AsText(deal) => {
                let [price, exit_fee, typical] = deal.text(language);
                Self {
                    all_in: None,
                    typical: typical.to_owned(),
                    source: sourced(words, &deal.source, deal.date),
                    benchmark: typical.to_owned(),
                    typical_url: None,
                    saving: words.deal.saving.put("amount", dollars(deal.annual_saving.into())).plain(),
                    price: price.to_owned(),
                    fees: Vec::new(),
                    term: term(words, deal.term_months),
                    exit_fee: exit_fee.to_owned(),
                    commission: None,
                    places: None,
                    new_customers: None,
                    needs_members: None,
                }
            }
        }
    }

    fn reckoned(deal: &ReckonedDeal, language: Language) -> Self {
        let words = language.words();
        let ReckonedDeal { bid, household, benchmark, .. } = deal;
        let (texts, reckoned) = (&words.deal, deal.reckoned());
        let is_by_use = household.is_by_use(benchmark.price);
        let first = bid.steps.first().map(|step| step.price);
        let commission = match bid.commission_cents {
            0 => texts.commission_none.put("supplier", &bid.supplier),
            cents => texts.commission.put("supplier", &bid.supplier).put("amount", in_money(cents)),
        };
        let states: Vec<_> = bid.states.iter().map(|state| words.state(*state)).collect();
        Self {
            all_in: Some(all_in(texts, reckoned.all_in_cents, is_by_use)),
            typical: typical(texts, benchmark, reckoned, *household),
            source: sourced(words, benchmark.source.text(language), benchmark.date),
            benchmark: one_price(texts, benchmark.price),
            typical_url: Some(benchmark.url.clone()),
            saving: saving(texts, reckoned, is_by_use),
            price: price_words(texts, &bid.steps, *household),
            fees: bid.fees.iter().map(|fee| fee_words(texts, fee, first)).collect(),
            term: term(words, bid.term_months),
            exit_fee: match bid.exit_fee_cents {
                0 => texts.none.to_string(),
                cents => in_money(cents),
            },
            commission: Some(commission.plain()),
            places: (!states.is_empty()).then(|| words.list(&states)),
            new_customers: bid.new_customers_only.then(|| texts.new_customers.as_str()),
            needs_members: bid.needs_members.map(|needs| {
                texts.needs_members.put("count", grouped(needs.into())).put("supplier", &bid.supplier).plain()
            }),
        }
    }
}

/// A bid in English, for operators and negotiators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BidWords {
    pub all_in: String,
    /// The benchmark's cost.
    pub typical: String,
    pub saving: String,
    pub price: String,
    pub fees: Vec<String>,
    pub term: String,
    pub exit_fee: String,
    pub commission: String,
    /// Where and for whom alone it is, and how many it needs.
    pub conditions: Vec<String>,
}

impl BidWords {
    /// None where the campaign has no benchmark: bids need one.
    pub fn of(bid: &Bid, campaign: &CampaignDraft) -> Option<(Self, Reckoning)> {
        let (words, household) = (Language::English.words(), campaign.household);
        let (texts, benchmark) = (&words.deal, campaign.benchmark.as_ref()?);
        let reckoned = bid.reckoned(campaign)?;
        let is_by_use = household.is_by_use(benchmark.price);
        let first = bid.steps.first().map(|step| step.price);
        let mut conditions = Vec::new();
        if !bid.states.is_empty() {
            let codes: Vec<_> = bid.states.iter().map(|state| state.code()).collect();
            conditions.push(format!("only in {}", codes.join(", ")));
        }
        conditions.extend(bid.new_customers_only.then(|| "only for new customers".to_owned()));
        conditions.extend(bid.needs_members.map(|needs| format!("needs {} members", grouped(needs.into()))));
        let in_words = Self {
            all_in: all_in(texts, reckoned.all_in_cents, is_by_use),
            typical: all_in(texts, reckoned.typical_cents, is_by_use),
            saving: saving(texts, reckoned, is_by_use),
            price: price_words(texts, &bid.steps, household),
            fees: bid.fees.iter().map(|fee| fee_words(texts, fee, first)).collect(),
            term: term(words, bid.term_months),
            exit_fee: in_money(bid.exit_fee_cents),
            commission: in_money(bid.commission_cents),
            conditions,
        };
        Some((in_words, reckoned))
    }
}

/// The campaign's benchmark in English, for suppliers: one unit's price, its source with the address, and the day.
pub fn benchmark_words(campaign: &CampaignDraft) -> Option<String> {
    let Benchmark { price, source, url, date } = campaign.benchmark.as_ref()?;
    let words = Language::English.words();
    let own = price_words(&words.deal, &[PriceStep { from_month: 1, price: *price }], campaign.household);
    let source = sourced(words, source.text(Language::English), *date);
    let priced = words.deal.sourced.put("price", own).put("source", source).plain();
    Some(format!("{priced}, {url}"))
}

fn dollars(amount: u64) -> String {
    format!("${}", grouped(amount))
}

fn all_in(texts: &DealWords, cents: u64, is_by_use: bool) -> String {
    let phrase = if is_by_use { &texts.per_use } else { &texts.per_year };
    phrase.put("amount", in_money(cents)).plain()
}

fn saving(texts: &DealWords, reckoned: Reckoning, is_by_use: bool) -> String {
    let phrase = match (reckoned.saving, is_by_use) {
        (0, _) => return texts.saving_none.to_string(),
        (_, true) => &texts.saving_by_use,
        (_, false) => &texts.saving,
    };
    phrase.put("amount", dollars(reckoned.saving)).plain()
}

/// The benchmark as a year's cost, and how it is charged where that says more.
fn typical(texts: &DealWords, benchmark: &Benchmark, reckoned: Reckoning, household: Household) -> String {
    let cost = all_in(texts, reckoned.typical_cents, household.is_by_use(benchmark.price));
    let own = price_words(texts, &[PriceStep { from_month: 1, price: benchmark.price }], household);
    if cost == own { cost } else { texts.typical.put("cost", cost).put("price", own).plain() }
}

fn sourced(words: &Words, source: &str, date: LastDay) -> String {
    format!("{source}, {}", words.date(date.begins_at()))
}

/// A price with its steps: "$20 a month, $90 a month from month 4".
fn price_words(texts: &DealWords, steps: &[PriceStep], household: Household) -> String {
    let steps: Vec<_> = steps
        .iter()
        .map(|step| {
            let price = one_price(texts, step.price);
            if step.from_month == 1 {
                price
            } else {
                texts.from_month.put("price", price).put("month", step.from_month).plain()
            }
        })
        .collect();
    let price = steps.join(", ");
    if household.units == 1 {
        return price;
    }
    texts.each_of.put("price", price).put("units", household.units).plain()
}

fn one_price(texts: &DealWords, price: Price) -> String {
    match price {
        Price::Flat { cents, per } => often(texts, in_money(cents), per),
        Price::Loan { apr_basis_points, on_cents } => {
            texts.loan.put("rate", percent(apr_basis_points)).put("amount", in_money(on_cents)).plain()
        }
        Price::Discount { off_basis_points, on_cents, per } => {
            let bill = often(texts, in_money(on_cents), per);
            match off_basis_points {
                0 => texts.no_discount.put("bill", bill).plain(),
                off => texts.discount.put("percent", percent(off)).put("bill", bill).plain(),
            }
        }
    }
}

fn often(texts: &DealWords, amount: String, per: Period) -> String {
    let phrase = match per {
        Period::Month => &texts.per_month,
        Period::Year => &texts.per_year,
        Period::Use => &texts.per_use,
    };
    phrase.put("amount", amount).plain()
}

/// "modem: $5 a month", "processing: 3% of the balance, once".
fn fee_words(texts: &DealWords, fee: &Fee, price: Option<Price>) -> String {
    let amount = match fee.amount {
        FeeAmount::Cents(cents) => in_money(cents),
        FeeAmount::BasisPoints(part) => {
            let phrase = match price {
                Some(Price::Loan { .. }) => &texts.part_of_balance,
                Some(Price::Discount { .. }) => &texts.part_of_bill,
                Some(Price::Flat { .. }) | None => &texts.part_of_price,
            };
            phrase.put("percent", percent(part)).plain()
        }
    };
    let phrase = match fee.per {
        FeePeriod::Once => &texts.once,
        FeePeriod::Month => &texts.per_month,
        FeePeriod::Year => &texts.per_year,
        FeePeriod::Use => &texts.per_use,
    };
    texts.fee.put("name", &fee.name).put("amount", phrase.put("amount", amount).plain()).plain()
}

/// 649 basis points: 6.49%.
fn percent(basis_points: u32) -> String {
    let (whole, rest) = (basis_points / 100, basis_points % 100);
    match rest {
        0 => format!("{whole}%"),
        rest if rest % 10 == 0 => format!("{whole}.{}%", rest / 10),
        rest => format!("{whole}.{rest:02}%"),
    }
}

fn term(words: &Words, months: u32) -> String {
    match months {
        0 => words.deal.no_term.to_string(),
        1 => words.deal.one_month.to_string(),
        months => words.deal.months.put("count", months).plain(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::bid::tests::BID;
    use super::super::tests::{OLD_OFFER, offer};
    use super::*;

    fn of(bid: &str, change: impl FnOnce(&mut ReckonedDeal)) -> [OfferWords; 2] {
        let mut offer = offer();
        let Deal::Reckoned(deal) = &mut offer.deal else { panic!("it is reckoned") };
        deal.bid = Bid::parse(bid).unwrap();
        change(deal);
        Language::ALL.map(|language| OfferWords::of(&offer, language))
    }

    #[test]
    fn an_offer_reads_alike_in_each_language() {
        let [en, es] =
            of(&BID.replacen("supplier", "states = [\"CA\", \"NY\"]\nneeds_members = 1500\nsupplier", 1), |_| {});
        assert_eq!(en.all_in.as_deref(), Some("$636 a year"));
        assert_eq!(en.typical, "$816 a year, at $68 a month");
        assert_eq!(en.source, "FCC urban rate survey, Oct 1, 2026");
        assert_eq!((en.saving.as_str(), en.price.as_str()), ("about $180 a year", "$48 a month"));
        assert_eq!(
            (en.fees, en.term.as_str(), en.exit_fee.as_str()),
            (vec!["modem: $5 a month".to_owned()], "12 months", "None")
        );
        assert_eq!(en.commission.as_deref(), Some("Example Fiber pays the union $25 for each member who switches."));
        assert_eq!(en.places.as_deref(), Some("California and New York"));
        assert_eq!(en.needs_members.as_deref(), Some("Example Fiber delivers once 1,500 members have accepted."));
        assert_eq!(es.all_in.as_deref(), Some("$636 al año"));
        assert_eq!((es.price.as_str(), es.saving.as_str()), ("$48 al mes", "unos $180 al año"));
    }

    #[test]
    fn every_form_of_a_price_has_its_words() {
        let price = |price: &str, benchmark: Price| {
            let [en, _] = of(&BID.replace("{ cents = 4800, per = \"month\" }", price), |deal| {
                deal.benchmark.price = benchmark;
                deal.household.units = 2;
            });
            (en.price, en.typical)
        };
        let loan = Price::Loan { apr_basis_points: 750, on_cents: 2_000_000 };
        let (own, typical) = price("{ apr_basis_points = 649, on_cents = 2_000_000 }", loan);
        assert_eq!(own, "6.49% APR on a balance of $20,000 × 2");
        assert_eq!(typical, "$3,000 a year, at 7.5% APR on a balance of $20,000 × 2");
        let bill = Price::Discount { off_basis_points: 0, on_cents: 180_000, per: Period::Use };
        let (own, typical) = price("{ off_basis_points = 1000, on_cents = 180_000, per = \"use\" }", bill);
        assert_eq!(own, "10% off $1,800 each time × 2");
        assert_eq!(typical, "$3,600 each time, at $1,800 each time × 2");
        let steps = "steps = [{ from_month = 1, price = { cents = 2000, per = \"month\" } }, \
                     { from_month = 4, price = { cents = 9050, per = \"month\" } }]";
        let [en, _] = of(&BID.replace("price = { cents = 4800, per = \"month\" }", steps), |_| {});
        assert_eq!((en.price.as_str(), en.saving.as_str()), ("$20 a month, $90.50 a month from month 4", "nothing"));
    }

    #[test]
    fn an_offer_that_nobody_reckoned_keeps_its_words() {
        let old = Offer::kept(OLD_OFFER).unwrap();
        let [en, es] = Language::ALL.map(|language| OfferWords::of(&old, language));
        assert_eq!((en.all_in, en.price.as_str(), es.price.as_str()), (None, "$48 a month", "$48 al mes"));
        assert_eq!((en.typical.as_str(), en.source.as_str()), ("$68 a month", "FCC urban rate survey, Dec 1, 2026"));
        assert_eq!((en.saving.as_str(), es.exit_fee.as_str()), ("about $240 a year", "Ninguno"));
    }

    #[test]
    fn what_is_compared_comes_first_and_the_rest_is_small_print() {
        let labels = |view: OfferView| -> Vec<_> {
            view.listed(Language::English).iter().map(|fact| fact.label.as_str()).collect()
        };
        let of = |offer: &Offer, days| OfferView::of(offer, Language::English, days, true);
        let (decide_by, later) = ("2027-03-15".parse().ok(), "2027-06-30".parse().ok());
        let head = ["Supplier", "Everything included", "Typical price", "You save"];
        let small = [
            "Price",
            "Fees",
            "Term",
            "Cancellation fee",
            "Who pays us",
            "What we tell the supplier",
            "Last day to decide",
            "Last day to accept",
        ];
        let end = ["Complaints about the supplier", "How to get the deal"];
        assert_eq!(labels(of(&offer(), (decide_by, later))), [&head[..], &small, &end].concat());
        assert_eq!(
            labels(OfferView::of_result(&offer(), Language::English)),
            [&head[..3], &["Price", "Who pays us"]].concat()
        );
        // Its price is all that is known of one of version 1.0.0, and stands on top.
        let old = of(&Offer::kept(OLD_OFFER).unwrap(), (None, None));
        assert_eq!((old.compared[0].label.as_str(), old.compared[0].value.as_str()), ("Price", "$48 a month"));
        assert!(old.note.is_some() && old.small_print.iter().all(|fact| fact.label.as_str() != "Price"));
        assert_eq!(
            saving_in_brief(&offer(), Language::English),
            "You save about $180 a year. Typical price: $68 a month."
        );
        assert_eq!(
            saving_in_brief(&offer(), Language::Spanish),
            "Ahorras unos $180 al año. Precio típico: $68 al mes."
        );
    }
}
