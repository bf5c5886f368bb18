//! `GET /partner/v1/events`

use std::time::Duration;

use schemars::{Schema, SchemaGenerator};

use super::example_time;
use super::page::{CursorParameter, PageSize, WaitSeconds};
use crate::domain::api_key::Mode;
use crate::domain::json::open_enumeration;
use crate::domain::partner::endpoint::EndpointId;
use crate::domain::partner::event::{EVENTS_KEPT_FOR, EventDelivery, PartnerEvent};
use crate::domain::time::Timestamp;
use crate::domain::webhook::EventKind;
use crate::operations::decode;
use crate::operations::prelude::*;

/// Which events are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct EventsRequest {
    /// The `cursor` of the answer before; left out, the list begins with the oldest event that is kept.
    #[serde(default, deserialize_with = "decode::present")]
    pub after: Option<CursorParameter>,
    /// How many a page holds at the most.
    #[serde(default, deserialize_with = "decode::present")]
    pub limit: Option<PageSize>,
    /// How many seconds to wait for an event where there is none yet. The answer comes as soon as there is one.
    #[serde(default, deserialize_with = "decode::present")]
    pub wait: Option<WaitSeconds>,
}

impl ObjectInput for EventsRequest {}

/// Some of the partner's events, in the order in which they are listed for good.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventList {
    /// Always true.
    pub ok: True,
    pub events: Vec<ListedEvent>,
    /// What to send as `after` the next time; there on an empty page too.
    pub cursor: String,
    /// Whether there are more events after these right now.
    pub has_more: bool,
}

/// Something that happened to a sign-up. `type`, `timestamp`, `mode` and `data` are those of its webhook.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Event")]
pub struct ListedEvent {
    /// The same for ever, and the `webhook-id` of its webhook.
    pub id: String,
    /// What happened. More may come: skip what you do not know.
    #[serde(rename = "type")]
    #[schemars(schema_with = "event_types")]
    pub kind: EventKind,
    /// When it happened.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: Timestamp,
    /// `test` for the sandbox.
    #[schemars(extend("enum" = [Mode::Live, Mode::Test]))]
    pub mode: Mode,
    pub data: ListedEventData,
    /// How far it has come on its way to each of your webhook endpoints; empty where you had none at that time.
    pub deliveries: Vec<EventDelivery>,
}

/// Which sign-up an event is about.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "EventData")]
pub struct ListedEventData {
    /// The key that the sign-up was sent with.
    pub idempotency_key: String,
}

fn event_types(generator: &mut SchemaGenerator) -> Schema {
    open_enumeration(generator, "EventType", &json!(EventKind::listed().collect::<Vec<_>>()))
}

impl ListedEvent {
    fn new(id: String, event: PartnerEvent, mode: Mode) -> Self {
        Self {
            id,
            kind: event.kind,
            timestamp: event.at,
            mode,
            data: ListedEventData { idempotency_key: event.key.as_str().to_owned() },
            deliveries: event.deliveries,
        }
    }
}

pub struct ListEvents;

impl Operation for ListEvents {
    const SPEC: Spec = Spec {
        id: "listEvents",
        method: Method::Get,
        path: "/partner/v1/events",
        access: Access::Partner,
        effects: Effects::None,
        answer: Lifetime::Awaited,
        title: "List events, or wait for the next one",
    };

    type Input = EventsRequest;
    type Output = EventList;

    fn description(_: &Union) -> String {
        format!(
            "Lists what came of your sign-ups, in one order that never changes, and how far each event has come on its way to your \
             webhook endpoints. Use it to catch up after an outage, or instead of webhooks: it needs no endpoint, so it also works on \
             a laptop.\n\n\
             Store the `cursor` of each answer once you have processed its events, and send it as `after`. No event is ever listed \
             before a cursor that you were given. While `hasMore` is true, ask again at once. Otherwise ask with `wait`: the answer \
             comes with the next event, or empty after that many seconds. Two requests of yours wait at once on each server; a third \
             is answered at once, as without `wait`.\n\n\
             Events are kept for {} days after they happened. A cursor is refused with 400 where events after it were deleted: \
             begin again without it.",
            EVENTS_KEPT_FOR.as_secs() / (24 * 3600)
        )
    }

    async fn run(app: &App, caller: &Caller, input: EventsRequest) -> Result<EventList, Error> {
        let partner = caller.partner()?;
        let after = input.after.as_ref().map(|after| after.0.as_str());
        let most = input.limit.map_or(PageSize::DEFAULT, |limit| limit.0);
        let wait = Duration::from_secs(input.wait.map_or(0, |wait| wait.0.into()));
        let page = app.events.list(partner.id, after, most, wait).await.map_err(Error::unread)?;
        let page = page.map_err(|bad| Error::in_field("after", format!("{bad}.")))?;
        caller.note_wait(page.waited);
        let listed = |event| ListedEvent::new(app.events.message_id(&event), event, app.events.mode);
        Ok(EventList {
            ok: True,
            events: page.events.into_iter().map(listed).collect(),
            cursor: page.cursor,
            has_more: page.has_more,
        })
    }

    fn example(_: &Catalog) -> Example<EventList> {
        Example {
            request: Some(json!({ "limit": 50, "wait": 30 })),
            answer: EventList {
                ok: True,
                events: vec![ListedEvent {
                    id: "msg_2mvjqdczkvqz9x4tbwd3".to_owned(),
                    kind: EventKind::Confirmed,
                    timestamp: example_time("2026-11-16T10:04:31Z"),
                    mode: Mode::Live,
                    data: ListedEventData { idempotency_key: "sign-up-1042".to_owned() },
                    deliveries: vec![EventDelivery {
                        endpoint: EndpointId(7),
                        last_attempt_at: Some(example_time("2026-11-16T10:04:32Z")),
                        last_status: Some(204),
                        delivered_at: Some(example_time("2026-11-16T10:04:32Z")),
                        next_attempt_at: None,
                    }],
                }],
                cursor: "0000000000002p9v7q2m4e8rz0".to_owned(),
                has_more: false,
            },
        }
    }
}
