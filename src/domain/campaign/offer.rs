//! An offer: which bid is published, until when members decide, and in which words. Its figures are reckoned from the bid.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::LastDay;
use super::acceptance::Handover;
use super::bid::{Bid, RecordedBid, missed};
use super::draft::{Benchmark, CampaignDraft};
use super::figures_in_text::Numbers;
use super::file::{BadFile, FileReader, text_for};
use super::mandate::Measure;
use super::price::FeeAmount;
use super::reckoning::{Household, Reckoning, reckon};
use crate::domain::email::EmailAddress;
use crate::domain::language::Language;
use crate::domain::time::Timestamp;
use crate::domain::union::notice::Notice;
use crate::domain::us_state::UsState;

/// What `campaigns offer` reads, and a negotiator proposes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The bid's number, unless it was said otherwise.
    pub bid: Option<u32>,
    pub terms: OfferTerms,
}

/// What stands beside the bid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferTerms {
    /// Members decide until then.
    pub decide_by: LastDay,
    /// Later members may accept until then, once the campaign is active.
    pub open_until: Option<LastDay>,
    /// Where people complain about the supplier.
    pub complaints: String,
    /// What the supplier gets of those who accept. None: the offer is of version 1.0.0, which told suppliers nothing.
    pub handover: Option<Handover>,
    /// In every language there is.
    pub texts: Vec<(Language, OfferText)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OfferText {
    /// What a member does to get the deal, or waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// Whatever else belongs to the deal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

/// An offer as it is published: it stays what it is, whatever becomes of the bids and of the campaign's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub terms: OfferTerms,
    pub deal: Deal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deal {
    Reckoned(Box<ReckonedDeal>),
    /// Published by version 1.0.0, which believed its texts. It runs to its end, and none is published anew.
    AsText(Box<TextDeal>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReckonedDeal {
    /// The bid's number.
    pub number: u32,
    pub bid: Bid,
    pub household: Household,
    pub benchmark: Benchmark,
}

/// A deal that nobody reckoned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextDeal {
    pub supplier: String,
    pub annual_saving: u32,
    pub term_months: u32,
    pub source: String,
    pub date: LastDay,
    /// In every language that there was: the price, the exit fee, the benchmark's price.
    pub texts: Vec<(Language, [String; 3])>,
}

impl Proposal {
    pub fn parse(text: &str) -> Result<Self, BadFile> {
        Self::read(FileReader::new(text)?)
    }

    pub fn sent(object: &Map<String, Value>) -> Result<Self, BadFile> {
        Self::read(FileReader::sent(object))
    }

    /// As it is kept, and as `campaigns offer` takes it.
    pub fn written(&self) -> String {
        let mut written = self.terms.written();
        written["bid"] = json!(self.bid);
        written.to_string()
    }

    fn read(mut file: FileReader) -> Result<Self, BadFile> {
        for field in ["annual_saving", "supplier", "price", "benchmark", "term_months"] {
            // Not asked for: it is no field to be named among those there are.
            if file.peek().has(field) {
                file.wrong(field, TYPED);
                file.skip(field);
            }
        }
        let bid = file.optional_whole("bid", 1, Bid::MOST);
        let terms = OfferTerms::read(&mut file);
        file.finish(|| Some(Self { bid, terms: terms? }))
    }
}

const TYPED: &str =
    "it comes from the bid; leave it out, and name the bid by its number: what a deal costs and saves is reckoned";

impl OfferTerms {
    fn read(file: &mut FileReader) -> Option<Self> {
        let decide_by = file.day("decide_by");
        let open_until = file.optional_day("open_until");
        let complaints = file.parsed("complaints", COMPLAINTS, complaint_address);
        let handover = file.optional_parsed("handover", "code or address", Handover::from_name);
        let texts = file.texts("how and details", |text| {
            for field in ["price", "exit_fee", "benchmark_price"] {
                if text.peek().has(field) {
                    text.wrong(field, TYPED);
                    text.skip(field);
                }
            }
            let how = text.optional_text("how", 1000);
            let details = text.optional_text("details", 2000);
            Some(OfferText { how, details })
        });
        if let (Some(decide_by), Some(open_until)) = (decide_by, open_until)
            && open_until <= decide_by
        {
            file.wrong("open_until", "it must be later than decide_by, or left out");
        }
        let handover = Some(handover.unwrap_or(Handover::Code));
        Some(Self { decide_by: decide_by?, open_until, complaints: complaints?, handover, texts: texts? })
    }

    fn written(&self) -> Value {
        let texts: Map<_, _> =
            self.texts.iter().map(|(language, text)| (language.code().to_owned(), json!(text))).collect();
        json!({
            "decide_by": self.decide_by, "open_until": self.open_until, "complaints": self.complaints,
            "handover": self.handover, "text": texts,
        })
    }
}

impl Offer {
    /// The offer that a proposal makes of a bid, if it can be published now; all that is in the way at once.
    pub fn of(
        campaign: &CampaignDraft,
        bids: &[RecordedBid],
        proposal: &Proposal,
        now: Timestamp,
    ) -> Result<Self, BadFile> {
        let terms = proposal.terms.clone();
        let mut mistakes = Vec::new();
        if terms.decide_by.is_over(now) {
            mistakes
                .push(format!("decide_by: {} is over; write a day on which members can still decide", terms.decide_by));
        }
        let bid = match proposal.bid {
            None => {
                mistakes.push("bid: it is missing; write the number of the bid that is published".to_owned());
                None
            }
            Some(number) => {
                let bid = bids.iter().find(|bid| bid.number == number);
                if bid.is_none() {
                    mistakes.push(match bids.last() {
                        None => "bid: the campaign has none yet; record what the supplier said first".to_owned(),
                        Some(last) => {
                            format!("bid: there is no bid {number}; they are numbered from 1 to {}", last.number)
                        }
                    });
                }
                bid
            }
        };
        if let Some(recorded) = bid {
            let RecordedBid { number, bid, is_superseded, .. } = recorded;
            if *is_superseded {
                mistakes.push(format!("bid: {} made a later bid than {number}; publish that one", bid.supplier));
            }
            if terms.decide_by > bid.valid_until {
                mistakes.push(format!("decide_by: bid {number} is valid until {} only", bid.valid_until));
            }
            if let Err(BadFile(wrong)) = bid.check(campaign, now) {
                mistakes.extend(wrong.into_iter().map(|wrong| format!("bid {number}, {wrong}")));
            }
        }
        mistakes.extend(campaign.benchmark.as_ref().and_then(|benchmark| benchmark.wrong_day(now)));
        match (bid, &campaign.benchmark) {
            (Some(bid), Some(benchmark)) if mistakes.is_empty() => {
                let (number, bid, benchmark) = (bid.number, bid.bid.clone(), benchmark.clone());
                let deal = ReckonedDeal { number, bid, household: campaign.household, benchmark };
                Ok(Self { terms, deal: Deal::Reckoned(Box::new(deal)) })
            }
            _ => Err(BadFile(mistakes)),
        }
    }

    /// What somebody has to sign before it is published.
    pub fn unsigned(&self, campaign: &CampaignDraft) -> Unsigned {
        let Deal::Reckoned(deal) = &self.deal else { return Unsigned::default() };
        let outside = missed(campaign.mandate.as_ref(), &deal.bid, deal.reckoned(), Measure::WalkAway);
        Unsigned { outside, figures: self.unknown_figures(deal, campaign) }
    }

    /// As it is kept.
    pub fn written(&self) -> String {
        let mut written = self.terms.written();
        // Those of version 1.0.0 stay as they were written.
        if let Deal::Reckoned(deal) = &self.deal {
            written["number"] = deal.number.into();
            written["bid"] = json!(deal.bid);
            written["units"] = deal.household.units.into();
            written["uses_a_year"] = json!(deal.household.uses_a_year);
            written["benchmark"] = json!(deal.benchmark);
        }
        written.to_string()
    }

    /// Reads what was kept, perhaps by another version.
    pub fn kept(text: &str) -> Option<Self> {
        let mut file = FileReader::kept(text).ok()?;
        let deal = match file.has("annual_saving") {
            true => TextDeal::read(&mut file).map(|deal| Deal::AsText(Box::new(deal))),
            false => ReckonedDeal::read(&mut file).map(|deal| Deal::Reckoned(Box::new(deal))),
        };
        let mut terms = OfferTerms::read(&mut file);
        if let (Some(terms), Some(Deal::AsText(_))) = (&mut terms, &deal) {
            terms.handover = None;
        }
        file.finish(|| Some(Self { terms: terms?, deal: deal? })).ok()
    }

    /// Figures in its texts that are none of its numbers, each with its place. What the campaign's own texts say, such as a speed, may be
    /// said again; an amount of money may not.
    fn unknown_figures(&self, deal: &ReckonedDeal, campaign: &CampaignDraft) -> Vec<String> {
        let mut known = deal.numbers();
        for (_, text) in &campaign.texts {
            known.add_those_of(&text.title);
            known.add_those_of(&text.summary);
        }
        let OfferTerms { decide_by, open_until, texts, .. } = &self.terms;
        [Some(*decide_by), *open_until].into_iter().flatten().for_each(|day| known.add_day(day));
        let mut unknown = Vec::new();
        for (language, text) in texts {
            for (field, text) in [("how", &text.how), ("details", &text.details)] {
                let figures = text.iter().flat_map(|text| known.unknown_in(text));
                let place = format!("text.{}.{field}", language.code());
                unknown.extend(figures.map(|figure| format!("{place}: {figure} is none of the offer's numbers")));
            }
        }
        unknown
    }

    pub fn text(&self, language: Language) -> Option<&OfferText> {
        text_for(&self.terms.texts, language)
    }

    pub fn supplier(&self) -> &str {
        match &self.deal {
            Deal::Reckoned(deal) => &deal.bid.supplier,
            Deal::AsText(deal) => &deal.supplier,
        }
    }

    pub fn term_months(&self) -> u32 {
        match &self.deal {
            Deal::Reckoned(deal) => deal.bid.term_months,
            Deal::AsText(deal) => deal.term_months,
        }
    }

    /// Whether its figures are of one use instead of a year.
    pub fn is_by_use(&self) -> bool {
        matches!(&self.deal, Deal::Reckoned(deal) if deal.household.is_by_use(deal.benchmark.price))
    }

    /// Whole dollars a year, or of one use, against the benchmark.
    pub fn saving(&self) -> u64 {
        match &self.deal {
            Deal::Reckoned(deal) => deal.reckoned().saving,
            Deal::AsText(deal) => deal.annual_saving.into(),
        }
    }

    /// None: as in version 1.0.0, which knew no bids.
    pub fn bid(&self) -> Option<&Bid> {
        match &self.deal {
            Deal::Reckoned(deal) => Some(&deal.bid),
            Deal::AsText(_) => None,
        }
    }

    /// The states that it is for; empty: wherever the campaign is for.
    pub fn states(&self) -> &[UsState] {
        self.bid().map_or(&[], |bid| &bid.states)
    }

    pub fn is_for_new_customers(&self) -> bool {
        self.bid().is_some_and(|bid| bid.new_customers_only)
    }

    /// The last day on which somebody may accept.
    pub fn last_day(&self) -> LastDay {
        self.terms.open_until.unwrap_or(self.terms.decide_by)
    }
}

impl Offer {
    /// What happens to the data of somebody who accepts: stands above the button, and is kept with the acceptance.
    pub fn consent(&self, language: Language) -> Option<Notice> {
        let words = &language.words().handover;
        let sentence = match self.terms.handover? {
            Handover::Code => &words.code,
            Handover::Address => &words.address,
        };
        Some(Notice::of(&sentence.put("supplier", self.supplier()).plain()))
    }

    /// Names what somebody agrees to who accepts it: the offer with all its numbers and texts, and the sentence in their language.
    pub fn mark(&self, language: Language) -> String {
        let told = self.consent(language).map(|notice| notice.hash.to_string()).unwrap_or_default();
        Notice::of(&format!("{told} {}", self.written())).hash.chars().take(20).collect()
    }
}

/// A proposal that somebody publishes, with what they sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    pub proposal: Proposal,
    /// Why it is published although it misses points of the mandate.
    pub outside_mandate: Option<String>,
    /// Why its texts have figures that are none of its numbers.
    pub figures_checked: Option<String>,
}

/// What is not as it should be, and may be published all the same if somebody signs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unsigned {
    /// Points of the mandate that it misses.
    pub outside: Vec<String>,
    /// Figures in its texts.
    pub figures: Vec<String>,
}

/// Why an offer is not published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPublished {
    Wrong(BadFile),
    Unsigned(Unsigned),
}

impl NotPublished {
    /// All that is in the way.
    pub fn sentence(&self) -> String {
        match self {
            Self::Wrong(BadFile(mistakes)) => mistakes.join("; "),
            Self::Unsigned(Unsigned { outside, figures }) => [outside.as_slice(), figures].concat().join("; "),
        }
    }
}

impl Publication {
    /// The offer, and what the history says of what was signed.
    pub fn offer(
        &self,
        campaign: &CampaignDraft,
        bids: &[RecordedBid],
        now: Timestamp,
    ) -> Result<(Offer, String), NotPublished> {
        let offer = Offer::of(campaign, bids, &self.proposal, now).map_err(NotPublished::Wrong)?;
        let mut unsigned = offer.unsigned(campaign);
        let mut signed = Vec::new();
        for (points, reason, what) in [
            (&mut unsigned.outside, &self.outside_mandate, "outside the mandate"),
            (&mut unsigned.figures, &self.figures_checked, "figures checked"),
        ] {
            if let Some(reason) = reason
                && !points.is_empty()
            {
                signed.push(format!("{what}, {reason}: {}", points.join("; ")));
                points.clear();
            }
        }
        match unsigned == Unsigned::default() {
            true => Ok((offer, signed.join(". "))),
            false => Err(NotPublished::Unsigned(unsigned)),
        }
    }
}

impl ReckonedDeal {
    fn read(file: &mut FileReader) -> Option<Self> {
        let number = file.whole("number", 1, Bid::MOST);
        let bid = file.table("bid", "fields", Bid::read_fields);
        let units = file.whole("units", 1, 1000);
        let uses_a_year = file.optional_whole("uses_a_year", 1, 1000);
        let benchmark = file.table("benchmark", "fields", Benchmark::read);
        let household = Household { units: units?, uses_a_year };
        Some(Self { number: number?, bid: bid?, household, benchmark: benchmark? })
    }

    pub fn reckoned(&self) -> Reckoning {
        reckon(self.bid.cost(), self.benchmark.price, self.household)
    }

    /// Every number of it, in each form in which a sentence may have it.
    fn numbers(&self) -> Numbers {
        let mut known = Numbers::default();
        let bid = &self.bid;
        for price in bid.steps.iter().map(|step| step.price).chain([self.benchmark.price]) {
            known.add_price(price);
        }
        for step in bid.steps.iter().skip(1) {
            // "from month 13", and "for 12 months".
            known.add_whole(step.from_month.into());
            known.add_whole(u64::from(step.from_month) - 1);
        }
        for fee in &bid.fees {
            match fee.amount {
                FeeAmount::Cents(cents) => known.add_cents(cents),
                FeeAmount::BasisPoints(part) => known.add_hundredths(part.into()),
            }
            known.add_those_of(&fee.name);
        }
        let reckoned = self.reckoned();
        known.add_cents(reckoned.all_in_cents);
        known.add_cents(reckoned.typical_cents);
        known.add_cents(reckoned.saving.saturating_mul(100));
        known.add_whole(bid.term_months.into());
        if bid.term_months.is_multiple_of(12) {
            known.add_whole((bid.term_months / 12).into());
        }
        known.add_cents(bid.exit_fee_cents);
        known.add_cents(bid.commission_cents);
        for count in [Some(self.household.units), self.household.uses_a_year, bid.needs_members].into_iter().flatten() {
            known.add_whole(count.into());
        }
        known.add_day(bid.valid_until);
        known.add_day(self.benchmark.date);
        known.add_those_of(&bid.supplier);
        known
    }
}

impl TextDeal {
    fn read(file: &mut FileReader) -> Option<Self> {
        let supplier = file.text("supplier", 100, "Example Fiber");
        let annual_saving = file.whole("annual_saving", 1, 1_000_000);
        let term_months = file.whole("term_months", 1, 600);
        let benchmark = file.table("benchmark", "price, source and date", |benchmark| {
            let price = benchmark.text("price", 100, "$68 a month");
            let source = benchmark.text("source", 200, "FCC urban rate survey");
            Some((price?, source?, benchmark.day("date")?))
        });
        let texts = file.peek().texts("price and exit_fee", |text| {
            let price = text.text("price", 100, "$48 a month");
            let exit_fee = text.text("exit_fee", 200, "None");
            Some((price?, exit_fee?, text.optional_text("benchmark_price", 100)))
        });
        let (typical, source, date) = benchmark?;
        let texts = texts?.into_iter().map(|(language, (price, exit_fee, own))| {
            (language, [price, exit_fee, own.unwrap_or_else(|| typical.clone())])
        });
        let texts = texts.collect();
        Some(Self {
            supplier: supplier?,
            annual_saving: annual_saving?,
            term_months: term_months?,
            source,
            date,
            texts,
        })
    }

    /// The price, the exit fee and the benchmark's price, for a reader.
    pub fn text(&self, language: Language) -> [&str; 3] {
        text_for(&self.texts, language).map_or([""; 3], |text| text.each_ref().map(String::as_str))
    }
}

const COMPLAINTS: &str = "an email address, or a web address that begins with https://, of at most 320 characters";

fn complaint_address(text: &str) -> Option<String> {
    let is_address =
        EmailAddress::parse(text).is_ok() || text.starts_with("https://") && !text.contains(char::is_whitespace);
    is_address.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::bid::tests::BID;
    use super::super::tests::{DRAFT, MANDATE, OFFER as GOOD, OLD_OFFER, offer};
    use super::*;

    const NOW: &str = "2026-11-19";

    fn mistakes(offer: &str) -> Vec<String> {
        Proposal::parse(offer).unwrap_err().0
    }

    fn published(proposal: &str, bids: &[RecordedBid], now: &str) -> Result<Offer, BadFile> {
        let campaign = CampaignDraft::parse(DRAFT).unwrap();
        Offer::of(&campaign, bids, &Proposal::parse(proposal).unwrap(), now.parse().unwrap())
    }

    fn bids() -> Vec<RecordedBid> {
        let bid = Bid::parse(BID).unwrap();
        let (at, who) = (Timestamp::from_millis(0), "ada".to_owned());
        vec![RecordedBid { number: 1, at, who, bid, is_superseded: false }]
    }

    #[test]
    fn an_offer_is_made_of_a_bid_and_reckoned() {
        let offer = published(GOOD, &bids(), NOW).unwrap();
        assert_eq!((offer.supplier(), offer.saving(), offer.term_months()), ("Example Fiber", 180, 12));
        assert_eq!(offer.last_day(), offer.terms.decide_by);
        assert_eq!(Offer::kept(&offer.written()), Some(offer), "it is kept whole");
        let open = GOOD.replace("bid = 1", "bid = 1\nopen_until = 2027-03-20");
        assert_eq!(published(&open, &bids(), NOW).unwrap().last_day().to_string(), "2027-03-20");
        let proposal = Proposal::parse(&open).unwrap();
        assert_eq!(Proposal::parse(&proposal.written()), Ok(proposal), "a draft can be printed and sent again");
    }

    #[test]
    fn nobody_types_a_figure() {
        let typed = GOOD
            .replace("bid = 1", "bid = 1\nannual_saving = 900\nsupplier = \"Example Fiber\"\nterm_months = 600")
            .replace("[text.es]", "[text.es]\nprice = \"$40 al mes\"");
        let places: Vec<_> = mistakes(&typed)
            .into_iter()
            .map(|mistake| mistake.split_once(": it comes from the bid").unwrap().0.to_owned())
            .collect();
        assert_eq!(places, ["annual_saving", "supplier", "term_months", "text.es.price"]);
    }

    #[test]
    fn what_is_in_the_way_of_publishing_is_told_at_once() {
        let wrong = |proposal: &str, bids: &[RecordedBid], now: &str| published(proposal, bids, now).unwrap_err().0;
        assert_eq!(wrong(GOOD, &[], NOW), ["bid: the campaign has none yet; record what the supplier said first"]);
        let other = GOOD.replace("bid = 1", "bid = 2");
        assert_eq!(wrong(&other, &bids(), NOW), ["bid: there is no bid 2; they are numbered from 1 to 1"]);
        let unnamed = GOOD.replace("bid = 1", "");
        assert_eq!(
            wrong(&unnamed, &bids(), NOW),
            ["bid: it is missing; write the number of the bid that is published"]
        );
        let long = GOOD.replace("2027-03-15", "2027-04-30");
        assert_eq!(wrong(&long, &bids(), NOW), ["decide_by: bid 1 is valid until 2027-03-31 only"]);
        let mut superseded = bids();
        superseded[0].is_superseded = true;
        let expected = ["bid: Example Fiber made a later bid than 1; publish that one"];
        assert_eq!(wrong(GOOD, &superseded, NOW), expected);
        assert!(published(GOOD, &bids(), "2027-03-16T09:59:59Z").is_ok());
        let late = wrong(GOOD, &bids(), "2027-04-01T10:00:00Z");
        assert_eq!(late.len(), 2, "the day and the bid: {late:?}");
        let old = wrong(&GOOD.replace("2027-03-15", "2027-12-15"), &bids(), "2027-11-20");
        assert!(old.iter().any(|mistake| mistake.contains("more than a year ago")), "{old:?}");
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let bad = GOOD
            .replace("2027-03-15", "2027-02-30")
            .replace("help@fiber.example", "call us")
            .replace("how = \"Example Fiber emails", "hwo = \"Example Fiber emails");
        let expected = [
            "decide_by: write a day, such as 2027-01-31",
            "complaints: write an email address, or a web address that begins with https://, of at most 320 characters",
            "text.en.hwo: there is no such field; did you mean how?",
        ];
        assert_eq!(mistakes(&bad), expected);
        let early = GOOD.replace("bid = 1", "bid = 1\nopen_until = 2027-03-15");
        assert_eq!(mistakes(&early), ["open_until: it must be later than decide_by, or left out"]);
    }

    #[test]
    fn an_offer_of_version_1_0_0_is_still_read() {
        let old = Offer::kept(OLD_OFFER).unwrap();
        assert_eq!((old.supplier(), old.saving(), old.term_months()), ("Example Fiber", 240, 12));
        let Deal::AsText(deal) = &old.deal else { panic!("{old:?}") };
        let texts = Language::ALL.map(|language| deal.text(language));
        assert_eq!(texts, [["$48 a month", "None", "$68 a month"], ["$48 al mes", "Ninguno", "$68 a month"]]);
        assert_eq!(old.text(Language::English).unwrap().how.as_deref(), Some("Example Fiber emails you a code."));
        assert_eq!(
            offer().text(Language::Spanish).unwrap().how.as_deref(),
            Some("Example Fiber te manda un código por correo.")
        );
        assert!(Proposal::parse(OLD_OFFER).is_err(), "it is not published anew");
    }

    #[test]
    fn what_is_outside_is_published_only_with_a_reason() {
        let campaign = CampaignDraft::parse(&format!("{DRAFT}{MANDATE}")).unwrap();
        let mut bids = bids();
        bids[0].bid.term_months = 24;
        let proposal = Proposal::parse(&GOOD.replace("emails you a code", "emails you a code in 9 days")).unwrap();
        let mut publication = Publication { proposal, outside_mandate: None, figures_checked: None };
        let of = |publication: &Publication| publication.offer(&campaign, &bids, NOW.parse().unwrap());
        let outside = "its term is 24 months, and the longest is 12 months";
        let figure = "text.en.how: 9 is none of the offer's numbers";
        let unsigned = |outside: &[&str], figures: &[&str]| {
            let [outside, figures] =
                [outside, figures].map(|points| points.iter().map(|&point| point.to_owned()).collect());
            Err(NotPublished::Unsigned(Unsigned { outside, figures }))
        };
        assert_eq!(of(&publication), unsigned(&[outside], &[figure]));
        publication.outside_mandate = Some("the board agreed".to_owned());
        assert_eq!(of(&publication), unsigned(&[], &[figure]));
        publication.figures_checked = Some("days, not dollars".to_owned());
        let (_, note) = of(&publication).unwrap();
        assert_eq!(
            note,
            format!("outside the mandate, the board agreed: {outside}. figures checked, days, not dollars: {figure}")
        );
    }
}
