//! `recordRound`

use super::parameter::{NoteText, SlugParameter};
use super::{begin, client_of, noted, refused};
use crate::campaigns::rounds::AddRound;
use crate::domain::campaign::contact;
use crate::domain::campaign::record::NegotiationRound;
use crate::operations::prelude::*;

/// One exchange with a supplier.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundRequest {
    /// The campaign's slug, from listCampaigns.
    pub slug: SlugParameter,
    /// Who was spoken to: the company, and a role such as regional sales.
    pub supplier: NoteText,
    /// What you asked for or offered.
    pub asked: NoteText,
    /// What they answered, in their words where it matters. Write "no answer yet" while there is none.
    pub answered: NoteText,
}

impl ObjectInput for RoundRequest {
    fn check(&self) -> Result<(), Error> {
        let texts = [("supplier", &self.supplier), ("asked", &self.asked), ("answered", &self.answered)];
        let wrong: Vec<_> = texts.iter().filter_map(|(field, text)| contact::refusal(field, &text.0)).collect();
        if wrong.is_empty() { Ok(()) } else { Err(refused(&wrong, "?")) }
    }
}

/// The round is recorded.
#[derive(Serialize, JsonSchema)]
pub struct RoundRecorded {
    /// Always true.
    pub ok: True,
    /// The round's number.
    pub round: u32,
}

pub struct RecordRound;

impl Operation for RecordRound {
    const SPEC: Spec = Spec {
        id: "recordRound",
        method: Method::Post,
        path: "",
        access: Access::Operator,
        effects: Effects::AddsEachTime,
        answer: Lifetime::Live,
        title: "Record a round with a supplier",
    };

    type Input = RoundRequest;
    type Output = RoundRecorded;

    fn description(_: &Union) -> String {
        format!(
            "Records one exchange with a supplier: whom you spoke to, what you asked, what they answered. Call it after each \
             exchange, also after a refusal, and before you go on. Operators alone read it. Terms that a supplier named go to recordBid, too.\n\n\
             A round cannot be changed or deleted; correct a mistake with another one. Calling twice records two rounds. A campaign \
             takes {} of them, {} an hour, while it is gathering or negotiating. No email address, no phone number, and nothing that \
             identifies a member.",
            NegotiationRound::MOST,
            NegotiationRound::AN_HOUR
        )
    }

    async fn run(app: &App, caller: &Caller, input: RoundRequest) -> Result<RoundRecorded, Error> {
        let SlugParameter(slug) = input.slug;
        begin(app, Some(&slug)).await?;
        let round = AddRound {
            slug: slug.clone(),
            client: Some(client_of(caller)),
            who: app.negotiator.seat.clone(),
            supplier: input.supplier.0,
            asked: input.asked.0,
            answered: input.answered.0,
            now: caller.now,
        };
        let done = app.negotiator.record_round(round).await.map_err(Error::unsaved)?;
        let bounds = (NegotiationRound::MOST, NegotiationRound::AN_HOUR, "rounds");
        Ok(RoundRecorded { ok: True, round: noted((app, caller), done, &slug, bounds).await? })
    }

    fn example(_: &Catalog) -> Example<RoundRecorded> {
        Example {
            request: Some(json!({
                "slug": "internet-2027",
                "supplier": "Example Fiber, regional sales",
                "asked": "$45 a month for 300 Mbit/s, 12 months, no exit fee, for at least 1,230 households.",
                "answered": "They can do $48 from 1,000 households on, and will write it down by Friday."
            })),
            answer: RoundRecorded { ok: True, round: 2 },
        }
    }
}
