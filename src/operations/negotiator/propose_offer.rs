//! `proposeOffer`

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

use super::parameter::{ReasonText, SlugParameter};
use super::reckoned_bid::ReckonedBid;
use super::{begin, client_of, no_campaign, noted, refused};
use crate::campaigns::drafts::AddOfferDraft;
use crate::domain::campaign::BadFile;
use crate::domain::campaign::contact;
use crate::domain::campaign::offer::{Offer, Proposal};
use crate::domain::campaign::record::OfferDraft;
use crate::operations::mistakes;
use crate::operations::prelude::*;

/// An offer to publish, made of a bid.
#[derive(Deserialize)]
pub struct ProposeOfferRequest {
    pub slug: SlugParameter,
    #[serde(default)]
    exception: Option<ReasonText>,
    #[serde(flatten)]
    offer: Map<String, Value>,
}

/// What is sent, for the schema; the reader of the operator's files checks it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase", rename = "ProposeOfferRequest")]
#[expect(dead_code, reason = "only its schema is used")]
struct OfferFields {
    /// The campaign's slug, from listCampaigns.
    slug: SlugParameter,
    /// The number of the bid, from recordBid or getCampaign. Price, term and saving come from it.
    #[schemars(range(min = 1, max = 500))]
    bid: u32,
    /// Members decide until the end of this day, such as 2027-03-15. Not later than the bid is valid.
    #[schemars(extend("format" = "date"))]
    decide_by: String,
    /// Who comes later may accept until the end of this day, once the deal runs. Leave it out if nobody may.
    #[schemars(extend("format" = "date"))]
    open_until: Option<String>,
    /// Where members complain about the supplier: the supplier's email address, or a page that begins with https://.
    #[schemars(length(min = 1, max = 320))]
    complaints: String,
    text: OfferTexts,
    /// Why a person should look at it although it misses points of the mandate, or has figures that the bid has not. Leave it out otherwise.
    exception: Option<ReasonText>,
}

/// What members read beside the figures, in every language.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct OfferTexts {
    /// In English.
    en: OfferTextFields,
    /// In Spanish; the same as in English.
    es: OfferTextFields,
}

/// What members read, in one language.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct OfferTextFields {
    /// What a member does to get the deal after accepting, or waits for. Ask the supplier.
    #[schemars(length(min = 1, max = 1000))]
    how: Option<String>,
    /// Whatever else belongs to the deal.
    #[schemars(length(min = 1, max = 2000))]
    details: Option<String>,
}

impl JsonSchema for ProposeOfferRequest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ProposeOfferRequest".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        OfferFields::json_schema(generator)
    }
}

/// The names that files have, and those of this tool.
const NAMES: [(&str, &str); 2] = [("decide_by", "decideBy"), ("open_until", "openUntil")];

/// A proposal as this tool takes it.
pub(super) fn sent(proposal: &Proposal) -> Value {
    let mut offer: Map<String, Value> = serde_json::from_str(&proposal.written()).unwrap_or_default();
    for (in_file, here) in NAMES {
        if let Some(value) = offer.remove(in_file) {
            offer.insert(here.to_owned(), value);
        }
    }
    // That is the operator's to choose.
    offer.remove("handover");
    offer.retain(|_, value| !value.is_null());
    Value::Object(offer)
}

/// Names what is wrong as it was sent.
fn refused_offer(wrong: Vec<String>) -> Error {
    let named = wrong
        .into_iter()
        .map(|mistake| NAMES.iter().fold(mistake, |text, (in_file, here)| text.replace(in_file, here)));
    refused(&named.collect::<Vec<_>>(), "?")
}

/// What to do about a draft that a person should not see as it is.
const WHAT_HELPS: &str = "Negotiate what the mandate asks for, and take out figures that the bid has not. If a person should look at it all the same, \
    send `exception` with the reason.";

impl ProposeOfferRequest {
    fn proposal(&self) -> Result<Proposal, Error> {
        let mut offer = self.offer.clone();
        for (in_file, here) in NAMES {
            if let Some(value) = offer.remove(here) {
                offer.insert(in_file.to_owned(), value);
            }
        }
        let mut wrong = Vec::new();
        if !offer.contains_key("bid") {
            wrong
                .push("bid: it is missing; write the number of a bid, which recordBid and getCampaign name".to_owned());
        }
        if offer.remove("handover").is_some() {
            wrong.push("handover: the operator chooses what the supplier gets; leave it out".to_owned());
        }
        let read = Proposal::sent(&offer);
        wrong.extend(read.as_ref().err().into_iter().flat_map(|BadFile(mistakes)| mistakes.clone()));
        wrong.extend(contact::refusals("", &Value::Object(self.offer.clone()), "complaints"));
        wrong.extend(self.exception.as_ref().and_then(|reason| contact::refusal("exception", &reason.0)));
        match read {
            Ok(proposal) if wrong.is_empty() => Ok(proposal),
            _ => Err(refused_offer(wrong)),
        }
    }
}

impl ObjectInput for ProposeOfferRequest {
    fn check(&self) -> Result<(), Error> {
        self.proposal().map(|_| ())
    }
}

/// The draft is kept for a person to read.
#[derive(Serialize, JsonSchema)]
pub struct OfferProposed {
    /// Always true.
    pub ok: True,
    /// The draft's number. Tell the operator that it waits, and of which campaign.
    pub draft: u32,
    /// What members will read of the bid.
    pub reckoned: Option<ReckonedBid>,
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
            "Proposes a recorded bid as the campaign's offer. Use it once the supplier has confirmed every figure of the bid, and how \
             members get the deal.\n\n\
             It publishes nothing. A person reads the draft and publishes or rejects it; only then do members decide. getCampaign says \
             what became of it, and why.\n\n\
             The bid must meet every point of the mandate, and `text` may name no figures but the bid's, and those that the campaign's own texts have. Otherwise the draft \
             is refused with all that it misses, unless `exception` says why a person should look at it all the same.\n\n\
             A draft cannot be changed or deleted: to correct one, propose again. A campaign takes {} drafts, {} an hour, while it is \
             gathering or negotiating. No email address or phone number but in `complaints`.",
            OfferDraft::MOST,
            OfferDraft::AN_HOUR
        )
    }

    async fn run(app: &App, caller: &Caller, input: ProposeOfferRequest) -> Result<OfferProposed, Error> {
        let proposal = input.proposal()?;
        let SlugParameter(slug) = input.slug;
        begin(app, Some(&slug)).await?;
        let found = app.negotiator.campaign(&slug, caller.now).await.map_err(Error::unread)?;
        let Some(campaign) = found else { return Err(no_campaign(app, caller, &slug).await) };
        let mut reckoned = None;
        if campaign.state.gathers() {
            let bids = app.negotiator.bids(&slug).await.map_err(Error::unread)?;
            let offer = Offer::of(&campaign.draft, &bids, &proposal, caller.now)
                .map_err(|BadFile(wrong)| refused_offer(wrong))?;
            reckoned = offer.bid().and_then(|bid| ReckonedBid::of(bid, &campaign.draft));
            // The figures alone: what else is missed is measured by the price that only people see.
            let figures = offer.unsigned(&campaign.draft).figures;
            let missed = reckoned.iter().flat_map(|reckoned| &reckoned.misses).map(|missed| format!("bid: {missed}"));
            let wrong: Vec<_> = missed.chain(figures).collect();
            if input.exception.is_none() && !wrong.is_empty() {
                let what = format!("{} {WHAT_HELPS}", mistakes::list(&wrong));
                return Err(Error::InvalidSubmission { what, fields: vec!["exception".to_owned()] });
            }
        }
        let draft = AddOfferDraft {
            slug: slug.clone(),
            client: client_of(caller),
            seat: app.negotiator.seat.clone(),
            proposal,
            exception: input.exception.map(|ReasonText(reason)| reason),
            now: caller.now,
        };
        let done = app.negotiator.propose(draft).await.map_err(Error::unsaved)?;
        let bounds = (OfferDraft::MOST, OfferDraft::AN_HOUR, "drafts");
        Ok(OfferProposed { ok: True, draft: noted((app, caller), done, &slug, bounds).await?, reckoned })
    }

    fn example(_: &Catalog) -> Example<OfferProposed> {
        Example {
            request: Some(example_request()),
            answer: OfferProposed { ok: True, draft: 1, reckoned: Some(ReckonedBid::example()) },
        }
    }
}

fn example_request() -> Value {
    json!({
        "slug": "internet-2027",
        "bid": 1,
        "decideBy": "2027-03-15",
        "complaints": "help@fiber.example",
        "text": {
            "en": { "how": "Order with your code on the page of Example Fiber." },
            "es": { "how": "Haz tu pedido con tu código en la página de Example Fiber." }
        },
        "exception": "They hold this price until Friday only, and the target is close."
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::Input;

    #[test]
    fn the_example_is_good_and_everything_wrong_is_told_at_once() {
        let good = example_request();
        let read = ProposeOfferRequest::decode(good.to_string().as_bytes());
        let mut expected = good.as_object().unwrap().clone();
        expected.retain(|name, _| !["slug", "exception"].contains(&name.as_str()));
        assert_eq!(
            sent(&read.ok().and_then(|read| read.proposal().ok()).unwrap()),
            Value::Object(expected),
            "as it was sent"
        );
        let mut bad = good.clone();
        bad["annual_saving"] = json!(900);
        bad["decideBy"] = json!("next week");
        bad["text"]["es"] = Value::Null;
        bad["text"]["en"]["details"] = json!("Ask ana@fiber.example.");
        let Err(Error::InvalidSubmission { what, .. }) = ProposeOfferRequest::decode(bad.to_string().as_bytes()) else {
            panic!("{bad} is taken")
        };
        for part in [
            "4 mistakes: (1) annual_saving: it comes from the bid",
            "decideBy: write a day, such as 2027-01-31.",
            "text.es: it is missing; write its how and details.",
            "text.en.details: it has an email address in it; ",
        ] {
            assert!(what.contains(part), "{part}: {what}");
        }
    }
}
