//! `recordBid`

use serde_json::{Map, Value};

use super::parameter::SlugParameter;
use super::reckoned_bid::ReckonedBid;
use super::{begin, client_of, later, no_campaign, not_now, refused, too_many};
use crate::campaigns::bids::{AddBid, BidAdded};
use crate::domain::campaign::BadFile;
use crate::domain::campaign::bid::Bid;
use crate::domain::campaign::contact;
use crate::domain::campaign::price::{Fee, Price, PriceStep};
use crate::domain::us_state::UsState;
use crate::operations::prelude::*;

/// What a supplier said, as data.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BidRequest {
    /// The campaign's slug, from listCampaigns.
    pub slug: SlugParameter,
    /// The bid. The fields are those of the file that `campaigns bid` takes.
    #[schemars(with = "BidFields")]
    bid: Map<String, Value>,
}

/// The fields of a bid, for the schema; the reader of the operator's files checks them.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct BidFields {
    /// The company, always spelled alike: a later bid of the same supplier takes the place of the earlier.
    #[schemars(length(min = 1, max = 100))]
    supplier: String,
    /// Of one unit (line, traveler), in the form of the benchmark; `per` is month, year or use. Where it changes, send `steps` instead.
    price: Option<Price>,
    /// The price from month 1 on, and each change; also what it renews at after the term.
    #[schemars(length(max = 12))]
    steps: Option<Vec<PriceStep>>,
    /// Every fee that members cannot avoid, modem rental and access fees too; ask, and send [] if the supplier says that there are none. Each with `cents`, or `basis_points` of the price, the balance or the bill; `per` is once, month, year or use.
    #[schemars(length(max = 12))]
    fees: Vec<Fee>,
    /// How long members are bound; 0 if they are not.
    #[schemars(range(max = 360))]
    term_months: u32,
    /// What leaving early costs.
    exit_fee_cents: u64,
    /// Where it is offered; leave it out if wherever the campaign is for.
    states: Option<Vec<UsState>>,
    new_customers_only: Option<bool>,
    /// How many members have to accept before the supplier delivers.
    #[schemars(range(min = 1, max = 1_000_000))]
    needs_members: Option<u32>,
    /// The last day on which members can accept, such as 2027-03-31.
    #[schemars(extend("format" = "date"))]
    valid_until: String,
    /// What the supplier pays the union for each switch; 0 is an answer.
    commission_cents: u64,
    /// The supplier's own words for these terms, quoted.
    #[schemars(length(min = 1, max = 4000))]
    evidence: Option<String>,
}

impl BidRequest {
    fn bid(&self) -> Result<Bid, Error> {
        let read = Bid::sent(&self.bid);
        let mut wrong = Vec::new();
        if !self.bid.contains_key("fees") {
            wrong.push(
                "bid.fees: it is missing; ask for every fee, and send [] if the supplier says that there are none"
                    .to_owned(),
            );
        }
        let contacts = contact::refusals("bid", &Value::Object(self.bid.clone()), "");
        wrong.extend(contacts);
        match read {
            Ok(bid) if wrong.is_empty() => Ok(bid),
            read => {
                let BadFile(mistakes) = read.err().unwrap_or(BadFile(Vec::new()));
                wrong.splice(0..0, mistakes.iter().map(|mistake| format!("bid.{mistake}")));
                Err(refused(&wrong, "bid"))
            }
        }
    }
}

impl ObjectInput for BidRequest {
    fn check(&self) -> Result<(), Error> {
        self.bid().map(|_| ())
    }
}

/// The bid is recorded.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BidRecorded {
    /// Always true.
    pub ok: True,
    /// Names the bid in proposeOffer.
    pub number: u32,
    pub reckoned: Option<ReckonedBid>,
}

pub struct RecordBid;

impl Operation for RecordBid {
    const SPEC: Spec = Spec {
        id: "recordBid",
        method: Method::Post,
        path: "",
        access: Access::Operator,
        effects: Effects::AddsEachTime,
        answer: Lifetime::Live,
        title: "Record a supplier's bid",
    };

    type Input = BidRequest;
    type Output = BidRecorded;

    fn description(_: &Union) -> String {
        format!(
            "Records the terms that a supplier named, as figures. Call it as soon as a supplier names a price, and again when they change \
             anything: the newest bid of a supplier counts, and the earlier stay. Ask for what is missing (fees, term, exit fee, \
             commission, last day) instead of guessing.\n\n\
             The answer says what the bid costs a household in a year with everything in it, what it saves against the benchmark, and \
             every point of the mandate that it misses: negotiate those. All amounts are whole cents, all rates hundredths of a percent.\n\n\
             A campaign takes {} bids, {} an hour, while it is gathering or negotiating. No email address or phone number.",
            Bid::MOST,
            Bid::AN_HOUR
        )
    }

    async fn run(app: &App, caller: &Caller, input: BidRequest) -> Result<BidRecorded, Error> {
        let (bid, SlugParameter(slug)) = (input.bid()?, input.slug);
        begin(app, Some(&slug)).await?;
        let found = app.negotiator.campaign(&slug, caller.now).await.map_err(Error::unread)?;
        let Some(campaign) = found else { return Err(no_campaign(app, caller, &slug).await) };
        let reckoned = ReckonedBid::of(&bid, &campaign.draft);
        let add = AddBid { slug: slug.clone(), bid, who: app.negotiator.seat.clone(), now: caller.now };
        let added = app.negotiator.record_bid(add, &client_of(caller)).await.map_err(Error::unsaved)?;
        match added {
            Err(wait) => Err(later(wait, (Bid::AN_HOUR, "bids"))),
            Ok(BidAdded::Done(number)) => Ok(BidRecorded { ok: True, number, reckoned }),
            Ok(BidAdded::Refused(BadFile(wrong))) => {
                Err(refused(&Vec::from_iter(wrong.iter().map(|wrong| format!("bid.{wrong}"))), "bid"))
            }
            Ok(BidAdded::NotNow(state)) => Err(not_now(&slug, state, "bids")),
            Ok(BidAdded::Full) => Err(too_many(&slug, (Bid::MOST, "bids"))),
            Ok(BidAdded::Unknown) => Err(no_campaign(app, caller, &slug).await),
        }
    }

    fn example(_: &Catalog) -> Example<BidRecorded> {
        Example {
            request: Some(json!({
                "slug": "internet-2027",
                "bid": {
                    "supplier": "Example Fiber",
                    "price": { "cents": 4800, "per": "month" },
                    "fees": [{ "name": "modem", "cents": 500, "per": "month" }],
                    "term_months": 12,
                    "exit_fee_cents": 0,
                    "commission_cents": 2500,
                    "valid_until": "2027-03-31",
                    "evidence": "We can do $48 a month from 1,000 households on; the modem is $5."
                }
            })),
            answer: BidRecorded { ok: True, number: 1, reckoned: Some(ReckonedBid::example()) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::Input;

    #[test]
    fn everything_wrong_with_a_bid_is_told_at_once() {
        let mut sent = RecordBid::example(&Catalog::sample()).request.unwrap();
        assert!(BidRequest::decode(sent.to_string().as_bytes()).is_ok());
        sent["bid"]["term_months"] = json!("twelve");
        sent["bid"]["evidence"] = json!("Call me: 415-555-0123.");
        let Err(Error::InvalidSubmission { what, .. }) = BidRequest::decode(sent.to_string().as_bytes()) else {
            panic!("{sent} is taken")
        };
        for part in ["2 mistakes: (1) bid.term_months: ", "(2) bid.evidence: it has a phone number in it; "] {
            assert!(what.contains(part), "{part}: {what}");
        }
    }
}
