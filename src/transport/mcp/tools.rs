//! Operations as tools: how they are listed, and how they are called.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::envelope::{Envelope, Fault, text};
use super::{Context, Reply};
use crate::app::App;
use crate::domain::api_key::KeyId;
use crate::error::{Error, ErrorBody};
use crate::operations::dispatch::{Call, dispatch};
use crate::operations::{ALL, Access, Entry};
use crate::transport::openapi;

/// The lists of tools, each written once: for either era, with a key and without.
#[derive(Debug)]
pub(super) struct Lists {
    legacy: [String; 2],
    modern: [String; 2],
}

impl Lists {
    pub(super) fn new(fresh: &str, modern_end: &str) -> Self {
        let both = [false, true].map(|holds_key| {
            let tools: Vec<_> =
                ALL.iter().filter(|op| holds_key || op.spec.access == Access::Public).map(tool).collect();
            Value::from(tools).to_string()
        });
        Self {
            legacy: both.clone().map(|tools| format!("{{\"tools\":{tools}}}")),
            modern: both.map(|tools| format!("{{\"tools\":{tools},{fresh}{modern_end}")),
        }
    }

    pub(super) fn of(&self, modern: bool, holds_key: bool) -> &str {
        let era = if modern { &self.modern } else { &self.legacy };
        &era[usize::from(holds_key)]
    }
}

fn tool(operation: &Entry) -> Value {
    let spec = &operation.spec;
    let reads = spec.access == Access::Public;
    json!({
        "name": spec.id,
        "title": spec.title,
        "description": spec.description,
        "inputSchema": openapi::standalone(operation.input_schema),
        "outputSchema": openapi::standalone(operation.output_schema),
        "annotations": if reads {
            json!({ "title": spec.title, "readOnlyHint": true, "openWorldHint": false })
        } else {
            json!({
                "title": spec.title,
                "readOnlyHint": false,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": true,
            })
        },
    })
}

/// A call of a tool that exists.
pub(super) struct ToolCall<'a> {
    operation: &'static Entry,
    arguments: Option<&'a RawValue>,
}

impl<'a> ToolCall<'a> {
    pub(super) fn read(envelope: &Envelope<'a>, modern: bool) -> Result<Self, Fault> {
        let Some(name) = envelope.params.name.and_then(text) else {
            return Err(Fault::parameters(
                "a call names its tool in \"name\" and gives \"arguments\", an object",
                modern,
            ));
        };
        let arguments = envelope.params.arguments;
        match ALL.iter().find(|operation| operation.spec.id == name) {
            Some(operation) => Ok(Self { operation, arguments }),
            None => {
                let names: Vec<_> = ALL.iter().map(|operation| operation.spec.id).collect();
                Err(Fault::parameters(format!("there is no such tool; there are {}", names.join(", ")), modern))
            }
        }
    }

    /// Calls the operation as REST would. What goes wrong inside it is a result for the model to read, not an error of
    /// the protocol: clients show those to nobody.
    pub(super) async fn run(
        self,
        app: &Arc<App>,
        envelope: &Envelope<'_>,
        context: Context<'_>,
        key: &mut Option<KeyId>,
        end: &str,
    ) -> Reply {
        let Context { authorization, address, now, .. } = context;
        let arguments = self.arguments.map_or("{}", RawValue::get);
        let call = Call { authorization, address, now };
        let outcome = dispatch(app, self.operation, call, key, async || {
            Ok::<_, Error>(Bytes::copy_from_slice(arguments.as_bytes()))
        })
        .await;
        match outcome.result {
            Ok(answer) => {
                let answer = String::from_utf8_lossy(&answer);
                // A text always has a JSON form.
                let text = serde_json::to_string(&*answer).unwrap_or_default();
                envelope.succeed_in_parts(&[
                    "{\"content\":[{\"type\":\"text\",\"text\":",
                    &text,
                    "}],\"structuredContent\":",
                    &answer,
                    ",\"isError\":false",
                    end,
                ])
            }
            Err(error) => {
                if let Some(cause) = error.cause() {
                    app.report_store(None, cause);
                }
                let body = serde_json::to_string(&ErrorBody::from(&error)).unwrap_or_default();
                let text = Value::from(body);
                let content = format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"isError\":true{end}");
                let mut reply = envelope.succeed(&content);
                if let Error::RateLimited { retry_after, .. } = error {
                    reply.retry_after = Some(retry_after);
                }
                reply
            }
        }
    }
}
