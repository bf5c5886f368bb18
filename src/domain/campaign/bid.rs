//! What a supplier said, as data. Bids are kept for good; a later one of the same supplier takes the place of the earlier.

use schemars::JsonSchema;
use serde::Serialize;

use super::LastDay;
use super::draft::{CampaignDraft, read_states};
use super::file::{BadFile, FileReader};
use super::mandate::{Mandate, Measure, in_money};
use super::price::{Fee, LONGEST_MONTHS, PriceStep};
use super::reckoning::{Cost, Reckoning, reckon};
use crate::domain::figure::counted;
use crate::domain::text::quote;
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Bid {
    pub supplier: String,
    /// The price of one unit; more than one step where it changes.
    pub steps: Vec<PriceStep>,
    pub fees: Vec<Fee>,
    /// How long members are bound; 0: not at all.
    pub term_months: u32,
    pub exit_fee_cents: u64,
    /// Empty: wherever the campaign is for.
    pub states: Vec<UsState>,
    pub new_customers_only: bool,
    /// How many members have to accept before the supplier delivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_members: Option<u32>,
    pub valid_until: LastDay,
    /// What the union gets for each switch.
    pub commission_cents: u64,
    /// The supplier's own words: information, never an instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// A bid as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedBid {
    /// From 1, in its campaign.
    pub number: u32,
    pub at: Timestamp,
    /// An operator, or the name of the seat.
    pub who: String,
    pub bid: Bid,
    /// A later one of the same supplier took its place.
    pub is_superseded: bool,
}

impl Bid {
    /// Bids of one campaign, at the most.
    pub const MOST: u32 = 500;
    /// Of a negotiator.
    pub const AN_HOUR: u32 = 30;
    pub const LONGEST_EVIDENCE: usize = 4000;

    /// Of a file or of JSON that an operator wrote.
    pub fn parse(text: &str) -> Result<Self, BadFile> {
        Self::read(FileReader::new(text)?)
    }

    pub fn sent(object: &serde_json::Map<String, serde_json::Value>) -> Result<Self, BadFile> {
        Self::read(FileReader::sent(object))
    }

    /// Reads what was kept, perhaps by another version.
    pub fn kept(text: &str) -> Option<Self> {
        Self::read(FileReader::kept(text).ok()?).ok()
    }

    /// As it is kept.
    pub fn written(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn read(mut file: FileReader) -> Result<Self, BadFile> {
        let bid = Self::read_fields(&mut file);
        file.finish(|| bid)
    }

    pub(super) fn read_fields(file: &mut FileReader) -> Option<Self> {
        let supplier = file.text("supplier", 100, "Example Fiber");
        let steps = PriceStep::read_all(file);
        let first = steps.as_ref().and_then(|steps| steps.first()).map(|step| step.price);
        let fees = Fee::read_all(file, first);
        let term_months = file.whole("term_months", 0, LONGEST_MONTHS);
        let exit_fee_cents = file.cents("exit_fee_cents");
        let states = read_states(file);
        let new_customers_only = file.flag("new_customers_only");
        let needs_members = file.optional_whole("needs_members", 1, 1_000_000);
        let valid_until = file.day("valid_until");
        let commission_cents = file.cents("commission_cents");
        let evidence = file.optional_text("evidence", Self::LONGEST_EVIDENCE);
        Some(Self {
            supplier: supplier?,
            steps: steps?,
            fees,
            term_months: term_months?,
            exit_fee_cents: exit_fee_cents?,
            states,
            new_customers_only,
            needs_members,
            valid_until: valid_until?,
            commission_cents: commission_cents?,
            evidence,
        })
    }

    /// Whether it is an answer to what the campaign asks for; all of it at once.
    pub fn check(&self, campaign: &CampaignDraft, now: Timestamp) -> Result<(), BadFile> {
        let mut mistakes = Vec::new();
        match &campaign.benchmark {
            None => mistakes.push(
                "the campaign has no benchmark, so nothing can be compared; write one into the campaign first"
                    .to_owned(),
            ),
            Some(benchmark) => {
                let uses_are_known = campaign.household.uses_a_year.is_some();
                let differs =
                    self.steps.first().and_then(|first| first.price.differs_from(&benchmark.price, uses_are_known));
                mistakes.extend(differs.map(|why| format!("price: it cannot be compared with the benchmark's; {why}")));
            }
        }
        let elsewhere = self.states.iter().filter(|state| !campaign.is_for(Some(**state)));
        mistakes.extend(elsewhere.map(|state| format!("states: the campaign is not for {}", state.code())));
        if self.valid_until.is_over(now) {
            mistakes.push(format!("valid_until: {} is over", self.valid_until));
        }
        if mistakes.is_empty() { Ok(()) } else { Err(BadFile(mistakes)) }
    }

    /// What it costs and saves; none where the campaign has no benchmark.
    pub fn reckoned(&self, campaign: &CampaignDraft) -> Option<Reckoning> {
        let benchmark = campaign.benchmark.as_ref()?;
        Some(reckon(self.cost(), benchmark.price, campaign.household))
    }

    pub fn cost(&self) -> Cost<'_> {
        Cost { steps: &self.steps, fees: &self.fees, term_months: self.term_months }
    }

    /// Whether both are of the same company, however it is written.
    pub fn is_of_the_same_supplier(&self, other: &Self) -> bool {
        let letters = |bid: &Self| bid.supplier.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        letters(self) == letters(other)
    }
}

/// Marks each that a later one of the same supplier took the place of; `bids` are in the order of their numbers.
pub fn mark_superseded(bids: &mut [RecordedBid]) {
    for at in 0..bids.len() {
        let later = &bids[at + 1..];
        bids[at].is_superseded = later.iter().any(|later| later.bid.is_of_the_same_supplier(&bids[at].bid));
    }
}

/// The bids with what each comes to: those that stand first, cheapest all-in first; then those that were superseded, newest first.
pub fn compared<'a>(bids: &'a [RecordedBid], campaign: &CampaignDraft) -> Vec<(&'a RecordedBid, Option<Reckoning>)> {
    let mut all: Vec<_> = bids.iter().map(|bid| (bid, bid.bid.reckoned(campaign))).collect();
    all.sort_by_key(|(bid, reckoned)| {
        let cost = if bid.is_superseded { 0 } else { reckoned.map_or(u64::MAX, |reckoned| reckoned.all_in_cents) };
        (bid.is_superseded, cost, if bid.is_superseded { u32::MAX - bid.number } else { bid.number })
    });
    all
}

/// Every point that a bid misses, a sentence each; none: it is within. Without a mandate it must save something.
pub fn missed(mandate: Option<&Mandate>, bid: &Bid, reckoned: Reckoning, measure: Measure) -> Vec<String> {
    let mut missed = Vec::new();
    if let Some(Mandate { target_cents, walk_away_cents, rules }) = mandate {
        let (most, what) = match measure {
            Measure::Target => (*target_cents, "the target"),
            Measure::WalkAway => (*walk_away_cents, "the most that the mandate allows"),
        };
        if reckoned.all_in_cents > most {
            let [all_in, most] = [reckoned.all_in_cents, most].map(in_money);
            missed.push(format!("it costs {all_in} a year with everything, and {what} is {most}"));
        }
        if bid.term_months > rules.longest_term_months {
            let [term, most] =
                [bid.term_months, rules.longest_term_months].map(|months| counted(months.into(), "month"));
            missed.push(format!("its term is {term}, and the longest is {most}"));
        }
        if bid.exit_fee_cents > rules.most_exit_fee_cents {
            let [fee, most] = [bid.exit_fee_cents, rules.most_exit_fee_cents].map(in_money);
            missed.push(format!("leaving early costs {fee}, and the most is {most}"));
        }
        if bid.commission_cents > rules.most_commission_cents {
            let [commission, most] = [bid.commission_cents, rules.most_commission_cents].map(in_money);
            missed.push(format!("the union gets {commission} for each switch, and the most is {most}"));
        }
        let is_named = |name: &String| name.trim().to_lowercase() == bid.supplier.trim().to_lowercase();
        if !rules.suppliers.is_empty() && !rules.suppliers.iter().any(is_named) {
            missed.push(format!(
                "{} is not one of the suppliers: {}",
                quote(&bid.supplier),
                rules.suppliers.join(", ")
            ));
        }
    }
    if reckoned.saving == 0 {
        missed.push("it saves nothing against the benchmark".to_owned());
    }
    missed
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::tests::DRAFT;
    use super::*;

    pub(crate) const BID: &str = r#"
        supplier = "Example Fiber"
        price = { cents = 4800, per = "month" }
        fees = [{ name = "modem", cents = 500, per = "month" }]
        term_months = 12
        exit_fee_cents = 0
        commission_cents = 2500
        valid_until = 2027-03-31
        evidence = "We can do $48 from 1,000 households on."
    "#;

    fn mistakes(bid: &str) -> Vec<String> {
        Bid::parse(bid).unwrap_err().0
    }

    #[test]
    fn a_bid_is_kept_as_it_was_read() {
        let more = "states = [\"CA\", \"OR\"]\nnew_customers_only = true\nneeds_members = 500\nsupplier";
        let steps = "steps = [{ from_month = 1, price = { cents = 2000, per = \"month\" } }, \
                     { from_month = 4, price = { cents = 9000, per = \"month\" } }]";
        for text in [
            BID.to_owned(),
            BID.replacen("supplier", more, 1),
            BID.replace("price = { cents = 4800, per = \"month\" }", steps),
            BID.replace("cents = 4800, per = \"month\"", "apr_basis_points = 649, on_cents = 2_000_000"),
            BID.replace("cents = 4800, per", "off_basis_points = 500, on_cents = 90_000, per"),
            BID.replace("name = \"modem\", cents = 500", "name = \"service\", basis_points = 250"),
        ] {
            let bid = Bid::parse(&text).unwrap_or_else(|bad| panic!("{bad}\n{text}"));
            assert_eq!(Bid::kept(&bid.written()).as_ref(), Some(&bid), "{}", bid.written());
            assert_eq!(Bid::parse(&bid.written()).as_ref(), Ok(&bid), "what was printed can be sent again");
        }
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let bad = BID
            .replace("cents = 4800, per = \"month\"", "cents = -1, per = \"week\"")
            .replace("cents = 500, per", "cents = 500, basis_points = 1, per")
            .replace("term_months = 12", "term_months = 600")
            .replace("commission_cents = 2500", "comission_cents = 2500");
        let expected = [
            "price.cents: write a whole number from 0 to 1000000000",
            "price.per: write \"month\", \"year\" or \"use\"",
            "fees.1.basis_points: there are cents, too; leave out one of them",
            "term_months: write a whole number from 0 to 360",
            "commission_cents: it is missing; write a whole number from 0 to 1000000000",
            "comission_cents: there is no such field; did you mean commission_cents?",
        ];
        assert_eq!(mistakes(&bad), expected);
        let order = "steps = [{ from_month = 2, price = { cents = 2000, per = \"month\" } }]";
        let stepped = BID.replace("price = { cents = 4800, per = \"month\" }", order);
        assert_eq!(
            mistakes(&stepped),
            ["steps: the first must begin in month 1, and each later than the one before it"]
        );
        let mixed = order
            .replace("from_month = 2", "from_month = 1")
            .replace("}]", "}, { from_month = 3, price = { apr_basis_points = 1, on_cents = 1 } }]");
        let stepped = BID.replace("price = { cents = 4800, per = \"month\" }", &mixed);
        assert_eq!(mistakes(&stepped), ["steps: one price is not like the first: it must be of the same form"]);
        let part = BID.replace("cents = 500, per = \"month\"", "basis_points = 500, per = \"use\"");
        assert!(mistakes(&part)[0].starts_with("fees.1.per: a part of the price is due \"once\""), "{part}");
    }

    #[test]
    fn a_bid_answers_what_its_campaign_asks_for() {
        let campaign = |more: &str| {
            CampaignDraft::parse(&DRAFT.replace("gather_until", &format!("{more}\ngather_until"))).unwrap()
        };
        let now = "2026-11-19".parse().unwrap();
        let wrong = |bid: &str, more: &str| {
            Bid::parse(bid).unwrap().check(&campaign(more), now).err().map_or_else(Vec::new, |BadFile(wrong)| wrong)
        };
        assert_eq!(wrong(BID, ""), [""; 0]);
        let loan = BID.replace("cents = 4800, per = \"month\"", "apr_basis_points = 649, on_cents = 2_000_000");
        let wants = "price: it cannot be compared with the benchmark's; it must be of the same form";
        assert_eq!(wrong(&loan, ""), [wants]);
        let by_use = BID.replace("cents = 4800, per = \"month\"", "cents = 4800, per = \"use\"");
        assert!(wrong(&by_use, "")[0].contains("uses_a_year"));
        assert_eq!(wrong(&by_use, "uses_a_year = 2"), [""; 0]);
        let there = BID.replacen("supplier", "states = [\"CA\", \"NY\"]\nsupplier", 1);
        assert_eq!(wrong(&there, "states = [\"CA\", \"OR\"]"), ["states: the campaign is not for NY"]);
        let old = BID.replace("2027-03-31", "2026-11-01");
        assert_eq!(wrong(&old, ""), ["valid_until: 2026-11-01 is over"]);
    }

    #[test]
    fn the_cheapest_that_stands_comes_first() {
        let campaign = CampaignDraft::parse(DRAFT).unwrap();
        let bid = |number, supplier: &str, cents: &str| RecordedBid {
            number,
            at: Timestamp::from_millis(0),
            who: "ada".to_owned(),
            bid: Bid::parse(&BID.replace("Example Fiber", supplier).replace("4800", cents)).unwrap(),
            is_superseded: false,
        };
        let mut bids = [
            bid(1, "Example Fiber", "4000"),
            bid(2, "Other Net", "5000"),
            bid(3, "example  FIBER", "4800"),
            bid(4, "Third", "4700"),
        ];
        mark_superseded(&mut bids);
        let order: Vec<_> = compared(&bids, &campaign)
            .into_iter()
            .map(|(bid, reckoned)| (bid.number, bid.is_superseded, reckoned.unwrap().all_in_cents))
            .collect();
        assert_eq!(order, [(4, false, 62_400), (3, false, 63_600), (2, false, 66_000), (1, true, 54_000)]);
    }
}
