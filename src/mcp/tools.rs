//! Operations as MCP tools: the list, and the calls.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::envelope::{Envelope, Fault, text};
use super::{LIST_FRESH_MS, ModernEnd, Raw, RpcContext, RpcResponse, raw};
use crate::documents::schema;
use crate::domain::sign_up::Channel;
use crate::domain::union::Union;
use crate::error::{Error, ErrorBody};
use crate::http::request::authorization::KeySearch;
use crate::operations::dispatch::{Call, CallTrace, Dispatcher};
use crate::operations::{Access, Entry};

/// The lists of tools, each serialized once: for both versions of the protocol (its "eras"), with a key and without.
pub(super) struct ToolLists {
    legacy: [Box<RawValue>; 2],
    modern: [Box<RawValue>; 2],
}

impl ToolLists {
    pub(super) fn new(operations: &[Entry], union: &Union, end: &ModernEnd) -> Self {
        let tools = |holds_key| {
            let listed = operations.iter().filter(move |operation| {
                holds_key || matches!(operation.spec.access, Access::Public | Access::Operator)
            });
            listed.map(|operation| tool(operation, union)).collect::<Vec<_>>()
        };
        let both = [false, true];
        Self {
            legacy: both.map(|holds_key| raw(&json!({ "tools": tools(holds_key) }))),
            modern: both.map(|holds_key| {
                let mut list = json!({ "tools": tools(holds_key), "ttlMs": LIST_FRESH_MS, "cacheScope": "private" });
                end.add_to(&mut list);
                raw(&list)
            }),
        }
    }

    pub(super) fn of(&self, modern: bool, holds_key: bool) -> &RawValue {
        let era = if modern { &self.modern } else { &self.legacy };
        &era[usize::from(holds_key)]
    }
}

fn tool(operation: &Entry, union: &Union) -> Value {
    let (spec, effects) = (&operation.spec, operation.spec.effects);
    json!({
        "name": spec.id,
        "title": spec.title,
        "description": (operation.description)(union),
        "inputSchema": schema::of_tool(operation.input_schema),
        "outputSchema": schema::of_tool(operation.output_schema),
        // All four on every tool: some tool directories reject tools that omit one.
        "annotations": {
            "title": spec.title,
            "readOnlyHint": !effects.writes(),
            // Nothing here deletes, or changes what somebody else relies on.
            "destructiveHint": false,
            "idempotentHint": effects.is_idempotent(),
            "openWorldHint": effects.sends_mail(),
        },
    })
}

/// What a call answers, in either era.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    content: [TextContent<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Raw<'a>>,
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Raw<'a>>,
}

#[derive(Serialize)]
struct TextContent<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// A call of a tool that exists.
pub(super) struct ToolCall<'a> {
    operation: &'static Entry,
    arguments: Option<Raw<'a>>,
}

impl<'a> ToolCall<'a> {
    pub(super) fn read(operations: &'static [Entry], envelope: &Envelope<'a>, modern: bool) -> Result<Self, Fault> {
        let Some(name) = envelope.params.name.and_then(text) else {
            return Err(Fault::parameters(
                "a call names its tool in \"name\" and gives \"arguments\", an object",
                modern,
            ));
        };
        let arguments = envelope.params.arguments;
        match operations.iter().find(|operation| operation.spec.id == name) {
            Some(operation) => Ok(Self { operation, arguments }),
            None => {
                let names: Vec<_> = operations.iter().map(|operation| operation.spec.id).collect();
                Err(Fault::parameters(format!("there is no such tool; there are {}", names.join(", ")), modern))
            }
        }
    }

    /// Calls the operation as REST would. What goes wrong inside it is a result for the model to read, not an error of
    /// the protocol: clients do not show those. `end` is what the modern era wants at the end of every result.
    pub(super) async fn run(
        self,
        dispatcher: &Dispatcher,
        envelope: &Envelope<'_>,
        context: RpcContext<'_>,
        trace: &mut CallTrace,
        end: Option<&ModernEnd>,
    ) -> RpcResponse {
        let RpcContext { authorization, address, now, request_id, .. } = context;
        // Only operations that write record the client's name.
        let declared = if self.operation.spec.effects.writes() { envelope.client() } else { None };
        let client = declared.as_deref().or(context.client);
        let arguments = self.arguments.map_or("{}", RawValue::get);
        // A host sets headers once for all calls: one idempotency key for all of them would make every second one fail.
        let call = Call { authorization, address, now, channel: Channel::Mcp, client, idempotency_key: None };
        let body = async || Ok::<_, Error>(Bytes::copy_from_slice(arguments.as_bytes()));
        let done = dispatcher.dispatch(self.operation, call, trace, body).await;
        let result = |text: &str, structured_content: Option<Raw<'_>>| {
            envelope.succeed(&ToolResult {
                content: [TextContent { r#type: "text", text }],
                structured_content,
                is_error: structured_content.is_none(),
                result_type: end.map(|_| ModernEnd::RESULT_TYPE),
                meta: end.map(|end| &*end.meta),
            })
        };
        let error = match done.result {
            Ok(answer) => match serde_json::from_slice::<Raw<'_>>(&answer) {
                Ok(answer) => return result(answer.get(), Some(answer)),
                Err(error) => Error::Unavailable { cause: format!("an answer is not JSON: {error}") },
            },
            Err(error) => {
                let search = context.headers.and_then(|headers| headers.misplaced_key);
                error.knowing(search.and_then(KeySearch::misplaced))
            }
        };
        if let Some(cause) = error.cause() {
            dispatcher.app().report_store(request_id, cause);
        }
        let body = serde_json::to_string(&ErrorBody::from(&error)).unwrap_or_default();
        let mut response = result(&body, None);
        if let Error::RateLimited { retry_after, .. } = error {
            response.retry_after = Some(retry_after);
        }
        response
    }
}
