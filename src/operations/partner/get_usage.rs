//! `GET /partner/v1/usage`

use super::not_done;
use super::page::DayParameter;
use crate::domain::mail::budget::day_of;
use crate::domain::time::Timestamp;
use crate::operations::decode;
use crate::operations::prelude::*;
use crate::partners::self_service::UsageDay;

/// Days of one answer.
const MAX_DAYS: i64 = 92;

/// Days of an answer to a request that does not say how many.
const DEFAULT_DAYS: i64 = 30;

/// Which days are asked about.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct UsageRequest {
    /// The first day, of UTC; left out, 29 days before the last.
    #[serde(default, deserialize_with = "decode::present")]
    pub since: Option<DayParameter>,
    /// The last day, of UTC; left out, today.
    #[serde(default, deserialize_with = "decode::present")]
    pub until: Option<DayParameter>,
}

impl ObjectInput for UsageRequest {}

/// What happened on a day, of UTC.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "UsageDay")]
pub struct DayOfUsage {
    #[schemars(extend("format" = "date"))]
    pub day: String,
    /// Requests and tool calls with one of your keys, whatever was answered.
    pub requests: u64,
    /// Sign-ups that were taken, repeats of the same one included.
    pub sign_ups: u64,
    /// Sign-ups of yours whose button was pressed on that day.
    pub confirmations: u64,
}

/// A day as RFC 3339 writes it.
fn date(day: i64) -> String {
    let mut text = Timestamp::from_millis(day.saturating_mul(86_400_000)).to_string();
    text.truncate("2026-11-16".len());
    text
}

/// What the partner did, day by day, oldest first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Always true.
    pub ok: True,
    /// Every day that was asked about, those without anything too.
    pub days: Vec<DayOfUsage>,
}

pub struct GetUsage;

impl Operation for GetUsage {
    const SPEC: Spec = Spec {
        id: "getUsage",
        method: Method::Get,
        path: "/partner/v1/usage",
        access: Access::Partner,
        effects: Effects::None,
        answer: Lifetime::Live,
        title: "See your requests, sign-ups and confirmations by day",
    };

    type Input = UsageRequest;
    type Output = Usage;

    fn description(_: &Union) -> String {
        format!(
            "Returns figures for each of up to {MAX_DAYS} days (UTC), over all your keys. Requests and sign-ups are counted by each server \
             and written down about once a minute, so these two may be two minutes old, and a server that crashes loses what it has \
             not written. Those of a minute around midnight may count on either day. Confirmations are exact at once. With a test key the \
             figures are the sandbox's, which are kept for 30 days."
        )
    }

    async fn run(app: &App, caller: &Caller, input: UsageRequest) -> Result<Usage, Error> {
        let to = input.until.map_or_else(|| day_of(caller.now), |until| day_of(until.0));
        let from = input.since.map_or(to.saturating_sub(DEFAULT_DAYS - 1).max(0), |since| day_of(since.0));
        if from > to {
            let how = format!("{} is after {}, the last day; send an earlier one.", date(from), date(to));
            return Err(Error::in_field("since", how));
        }
        if to - from >= MAX_DAYS {
            let how = format!("these are {} days; ask for {MAX_DAYS} at the most.", to - from + 1);
            return Err(Error::in_field("since", how));
        }
        let used = app.self_service.usage(caller.partner()?, from, to).await;
        let mut used = used.map_err(not_done::<Self>)?.into_iter().peekable();
        let days = (from..=to).map(|day| {
            let UsageDay { requests, sign_ups, confirmations, .. } =
                used.next_if(|used| used.day == day).unwrap_or_default();
            DayOfUsage { day: date(day), requests, sign_ups, confirmations }
        });
        Ok(Usage { ok: True, days: days.collect() })
    }

    fn example(_: &Catalog) -> Example<Usage> {
        let day = DayOfUsage { day: "2026-11-16".to_owned(), requests: 1840, sign_ups: 31, confirmations: 22 };
        Example {
            request: Some(json!({ "since": "2026-11-16", "until": "2026-11-16" })),
            answer: Usage { ok: True, days: vec![day] },
        }
    }
}
