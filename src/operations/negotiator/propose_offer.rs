//! `proposeOffer`

use serde_json::{Map, Value};

use super::parameter::SlugParameter;
use super::{client_of, noted};
use crate::campaigns::drafts::AddOfferDraft;
use crate::campaigns::negotiator::SEAT;
use crate::domain::campaign::BadFile;
use crate::domain::campaign::offer::Proposal;
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
    /// The number of the bid, from recordBid or getCampaign. Its figures are reckoned; none is written here.
    #[schemars(range(min = 1, max = 500))]
    bid: u32,
    /// Members decide until the end of this day, such as 2027-03-15. Not later than the bid is valid.
    #[schemars(extend("format" = "date"))]
    decide_by: String,
    /// Who comes later may accept until the end of this day, once the deal runs. Leave it out if nobody may.
    #[schemars(extend("format" = "date"))]
    open_until: Option<String>,
    /// Where members complain about the supplier: an email address, or a page that begins with https://.
    #[schemars(length(min = 1, max = 320))]
    complaints: String,
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

/// What members read of the deal, in one language.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct OfferTextFields {
    /// Whatever else belongs to the deal.
    #[schemars(length(min = 1, max = 2000))]
    details: Option<String>,
    /// What a member does to get the deal after accepting, or waits for, such as "Example Fiber emails you a code." Ask the supplier.
    #[schemars(length(min = 1, max = 1000))]
    how: Option<String>,
}

impl ProposeOfferRequest {
    /// The file for `campaigns offer` and the offer in it, if all of it is good.
    fn proposal(&self) -> Result<Proposal, Error> {
        Proposal::sent(&self.offer).map_err(|BadFile(wrong)| refused(&wrong))
    }
}

/// Everything that is wrong with an offer, each with its place in what was sent.
fn refused(wrong: &[String]) -> Error {
    let wrong: Vec<_> = wrong.iter().map(|mistake| format!("offer.{mistake}")).collect();
    Error::InvalidSubmission { what: mistakes::list(&wrong), fields: vec!["offer".to_owned()] }
}

impl ObjectInput for ProposeOfferRequest {
    fn check(&self) -> Result<(), Error> {
        self.proposal().map(|_| ())
    }
}

/// The proposal is kept for a person to read.
#[derive(Serialize, JsonSchema)]
pub struct OfferProposed {
    /// Always true.
    pub ok: True,
    /// How many proposals this campaign has now; the newest is the last.
    pub proposals: u32,
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
        let (proposal, SlugParameter(slug)) = (input.proposal()?, input.slug);
        let draft = AddOfferDraft {
            slug: slug.clone(),
            client: client_of(caller),
            seat: SEAT.to_owned(),
            proposal,
            exception: None,
            now: caller.now,
        };
        let done = app.negotiator.propose(draft).await.map_err(Error::unsaved)?;
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
            "bid": 1,
            "decide_by": "2027-03-15",
            "complaints": "help@fiber.example",
            "text": {
                "en": { "how": "Example Fiber emails you a code. Order with it on their page." },
                "es": { "how": "Example Fiber te manda un código por correo. Haz tu pedido con él en su página." }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::Input;

    #[test]
    fn the_example_is_good_and_everything_wrong_is_told_at_once() {
        let good = example_request();
        assert!(ProposeOfferRequest::decode(good.to_string().as_bytes()).is_ok());
        let mut bad = good.clone();
        let offer = &mut bad["offer"];
        offer["annual_saving"] = json!(900);
        offer["decide_by"] = json!("next week");
        offer["text"]["es"] = Value::Null;
        let Err(Error::InvalidSubmission { what, .. }) = ProposeOfferRequest::decode(bad.to_string().as_bytes()) else {
            panic!("{bad} is taken")
        };
        for part in [
            "3 mistakes: (1) offer.annual_saving: it comes from the bid",
            "offer.decide_by: write a day, such as 2027-01-31.",
            "offer.text.es: it is missing; write its how and details.",
        ] {
            assert!(what.contains(part), "{part}: {what}");
        }
    }
}
