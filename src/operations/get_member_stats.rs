//! `GET /v1/stats`

use super::Nothing;
use super::prelude::*;

/// How large the union is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberStats {
    /// Always true.
    pub ok: True,
    /// How many people have joined, right now.
    pub member_count: u64,
}

pub struct GetMemberStats;

impl Operation for GetMemberStats {
    const SPEC: Spec = Spec {
        id: "getMemberStats",
        method: Method::Get,
        path: "/v1/stats",
        access: Access::Public,
        effects: Effects::None,
        answer: Lifetime::Live,
        title: "Get the live member count",
    };

    type Input = Nothing;
    type Output = MemberStats;

    fn description(_: &Union) -> String {
        "Returns how many people have joined the union, read at this moment: ask again rather than quoting an earlier answer. People \
         who have not confirmed do not count. Arguments are ignored."
            .to_owned()
    }

    async fn run(app: &App, caller: &Caller, _: Nothing) -> Result<MemberStats, Error> {
        let counted = match &app.inbox {
            None => app.membership.count().await,
            Some(inbox) => inbox.member_count(caller.partner()?.id).await,
        };
        let member_count = counted.map_err(Error::unread)?;
        Ok(MemberStats { ok: True, member_count })
    }

    fn example(_: &Catalog) -> Example<MemberStats> {
        Example { request: None, answer: MemberStats { ok: True, member_count: 12_408 } }
    }
}
