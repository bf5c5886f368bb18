//! `proposeOffer`

use serde_json::{Map, Value};

use super::parameter::SlugParameter;
use super::{client_of, noted, offer_file};
use crate::domain::campaign::BadFile;
use crate::domain::campaign::offer::Offer;
use crate::domain::campaign::record::OfferDraft;
use crate::operations::mistakes;
use crate::operations::prelude::*;

/// An offer to publish, as a supplier agreed to it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeOfferRequest {
    /// The campaign's slug, from listCampaigns.
    pub slug: SlugParameter,
    /// The deal. The fields are those of the file that `campaigns offer` takes.
    #[schemars(with = "OfferFields")]
    offer: Map<String, Value>,
}

/// The fields of an offer, for the schema; the reader of the operator's files checks them.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct OfferFields {
    /// The company's name.
    #[schemars(length(min = 1, max = 100))]
    supplier: String,
    /// What a typical member saves in a year against the benchmark, in whole US dollars.
    #[schemars(range(min = 1, max = 1_000_000))]
    annual_saving: u32,
    /// For how many months the price holds.
    #[schemars(range(min = 1, max = 600))]
    term_months: u32,
    /// Members decide until the end of this day, such as 2027-03-15.
    #[schemars(extend("format" = "date"))]
    decide_by: String,
    /// Who comes later may accept until the end of this day, once the deal runs. Leave it out if nobody may.
    #[schemars(extend("format" = "date"))]
    open_until: Option<String>,
    /// Where members complain about the supplier: an email address, or a page that begins with https://.
    #[schemars(length(min = 1, max = 320))]
    complaints: String,
    benchmark: BenchmarkFields,
    text: OfferTexts,
}

/// The texts for members, in every language.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct OfferTexts {
    /// In English.
    en: OfferTextFields,
    /// In Spanish.
    es: OfferTextFields,
}

/// What the price is compared with.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct BenchmarkFields {
    /// What members pay without the deal, such as "$68 a month".
    #[schemars(length(min = 1, max = 100))]
    price: String,
    /// Where that figure was published. Never make one up.
    #[schemars(length(min = 1, max = 200))]
    source: String,
    /// The day of the figure.
    #[schemars(extend("format" = "date"))]
    date: String,
}

/// What members read of the deal, in one language.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct OfferTextFields {
    /// What a member pays, such as "$48 a month".
    #[schemars(length(min = 1, max = 100))]
    price: String,
    /// What it costs to leave early; "None" if nothing.
    #[schemars(length(min = 1, max = 200))]
    exit_fee: String,
    /// Whatever else belongs to the deal.
    #[schemars(length(min = 1, max = 2000))]
    details: Option<String>,
    /// What a member does to get the deal after accepting, or waits for, such as "Example Fiber emails you a code." Ask the supplier.
    #[schemars(length(min = 1, max = 1000))]
    how: Option<String>,
    /// The benchmark's price, if this language writes it in another way. Leave it out if it does not.
    #[schemars(length(min = 1, max = 100))]
    benchmark_price: Option<String>,
}

impl ProposeOfferRequest {
    /// The file for `campaigns offer` and the offer in it, if all of it is good.
    fn file(&self) -> Result<(String, Offer), Error> {
        let file = offer_file::write(&self.offer);
        match Offer::parse(&file) {
            Ok(offer) => Ok((file, offer)),
            Err(BadFile(wrong)) => Err(refused(&wrong)),
        }
    }
}

/// Everything that is wrong with an offer, each with its place in what was sent.
fn refused(wrong: &[String]) -> Error {
    let wrong: Vec<_> = wrong.iter().map(|mistake| format!("offer.{mistake}")).collect();
    Error::InvalidSubmission { what: mistakes::list(&wrong), fields: vec!["offer".to_owned()] }
}

impl ObjectInput for ProposeOfferRequest {
    fn check(&self) -> Result<(), Error> {
        self.file().map(|_| ())
    }
}

/// The proposal is kept for a person to read.
#[derive(Serialize, JsonSchema)]
pub struct OfferProposed {
    /// Always true.
    pub ok: True,
    /// How many proposals this campaign has now; the newest is the last.
    pub proposals: u64,
}

pub struct ProposeOffer;

impl Operation for ProposeOffer {
    const SPEC: Spec = Spec {
        id: "proposeOffer",
        method: Method::Post,
        path: "",
        access: Access::Operator,
        effects: Effects::AddsEachTime,
        answer: Lifetime::Live,
        title: "Propose an offer to publish",
    };

    type Input = ProposeOfferRequest;
    type Output = OfferProposed;

    fn description(_: &Union) -> String {
        format!(
            "Writes down the terms that a supplier agreed to, as a draft of the campaign's offer. Use it once the supplier has \
             confirmed every field; ask them for what is missing instead of guessing.\n\n\
             It publishes nothing. A person reads the draft and publishes it, changed or not; only then do members see it and decide. Tell \
             the operator that a draft waits, and of which campaign.\n\n\
             A draft cannot be changed or deleted: to correct one, propose again. A campaign takes {} drafts, while it is gathering \
             or negotiating. An error lists every field that is wrong, and what would be right.",
            OfferDraft::MOST
        )
    }

    async fn run(app: &App, caller: &Caller, input: ProposeOfferRequest) -> Result<OfferProposed, Error> {
        let ((file, offer), SlugParameter(slug)) = (input.file()?, input.slug);
        offer.check_days(caller.now).map_err(|BadFile(wrong)| refused(&wrong))?;
        let done =
            app.negotiator.propose(&slug, &client_of(caller), &file, caller.now).await.map_err(Error::unsaved)?;
        let done = done.map_err(|BadFile(wrong)| refused(&wrong))?;
        Ok(OfferProposed {
            ok: True,
            proposals: noted((app, caller), done, &slug, (OfferDraft::MOST, "drafts")).await?,
        })
    }

    fn example(_: &Catalog) -> Example<OfferProposed> {
        Example { request: Some(example_request()), answer: OfferProposed { ok: True, proposals: 1 } }
    }
}

fn example_request() -> Value {
    json!({
        "slug": "internet-2027",
        "offer": {
            "supplier": "Example Fiber",
            "annual_saving": 240,
            "term_months": 12,
            "decide_by": "2027-03-15",
            "complaints": "help@fiber.example",
            "benchmark": { "price": "$68 a month", "source": "FCC urban rate survey", "date": "2026-11-01" },
            "text": {
                "en": {
                    "price": "$48 a month", "exit_fee": "None",
                    "how": "Example Fiber emails you a code. Order with it on their page."
                },
                "es": {
                    "price": "$48 al mes", "exit_fee": "Ninguno", "benchmark_price": "$68 al mes",
                    "how": "Example Fiber te manda un código por correo. Haz tu pedido con él en su página."
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::language::Language;
    use crate::operations::Input;

    #[test]
    fn the_example_is_good_and_everything_wrong_is_told_at_once() {
        let good = example_request();
        let request = ProposeOfferRequest::decode(good.to_string().as_bytes()).unwrap();
        let texts = Language::ALL.map(|language| format!("[text.{}]", language.code()));
        assert!(texts.iter().all(|table| request.file().unwrap().0.contains(table)), "a table for each language");

        let mut bad = good.clone();
        let offer = &mut bad["offer"];
        offer["annual_saving"] = json!(0);
        offer["decide_by"] = json!("next week");
        offer["benchmark"]["dat"] = json!("2026-11-01");
        offer["text"]["es"] = Value::Null;
        let Err(Error::InvalidSubmission { what, .. }) = ProposeOfferRequest::decode(bad.to_string().as_bytes()) else {
            panic!("{bad} is taken")
        };
        for part in [
            "4 mistakes: (1) offer.annual_saving: write a whole number from 1 to 1000000.",
            "offer.decide_by: write a day, such as 2027-01-31.",
            "offer.benchmark.dat: there is no such field; did you mean date?",
            "offer.text.es: it is missing; write its price and exit_fee.",
        ] {
            assert!(what.contains(part), "{part}: {what}");
        }
    }
}
