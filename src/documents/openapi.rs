//! The OpenAPI 3.1 document, generated from the table of operations and their input and output types.

use hyper::StatusCode;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{API_VERSION, schema};
use crate::domain::api_key::Mode;
use crate::domain::time::Timestamp;
use crate::domain::union::Union;
use crate::domain::webhook::{self, EventKind};
use crate::error::ErrorBody;
use crate::http::response::error::{ErrorKind, ErrorText, HttpError, MetBy};
use crate::operations::wording::{self, CONSENT_RULE_FOR_ALL};
use crate::operations::{ALL, Access, Entry, Lifetime, Method, Spec, partner};

/// The contract's operations.
pub fn document(union: &Union) -> Value {
    let (paths, components) = described(ALL, union);
    json!({
        "openapi": "3.1.0",
        "info": info(union),
        "servers": [{ "url": union.base_url }],
        "tags": [
            { "name": PUBLIC, "description": "Read-only facts about the union. No key needed, open to pages of any origin." },
            { "name": AGENT, "description": format!("Acts for a user, with a partner's key. {CONSENT_RULE_FOR_ALL}") },
        ],
        "paths": paths,
        "components": components,
    })
}

/// What partners ask about their own affairs, and what they are told without asking.
pub fn partner_document(union: &Union) -> Value {
    let (paths, mut components) = described(partner::ALL, union);
    // `/v1` is closed and has the contract's list of codes. What lives beside it may get more.
    let code = components["schemas"]["Error"]["properties"]["code"].take();
    components["schemas"]["Error"]["properties"]["code"] = json!({
        "description": format!(
            "{} More kinds may come: treat one that you do not know by the answer's status.",
            code["description"].as_str().unwrap_or_default()
        ),
        "anyOf": [{ "$ref": "#/components/schemas/ErrorCode" }, { "type": "string" }],
    });
    components["schemas"]["ErrorCode"] = json!({ "type": "string", "enum": code["enum"] });
    // Some things have a bound for a day.
    components["headers"]["Retry-After"]["schema"]["maximum"] = 86_400.into();
    let mut info = info(union);
    info["title"] = format!("{} partner API", union.name).into();
    info["summary"] = "Learn what came of the sign-ups you sent, and manage your webhooks and keys.".into();
    info["description"] = format!(
        "Beside the five operations of {0}/openapi.json: what a partner may know of the sign-ups that it sent with an \
         `Idempotency-Key`, the events in their order, its webhook endpoints, its keys and its figures by day, and the sandbox's inbox for test keys. A test key \
         reads and changes the sandbox's alone. Every operation needs the \
         partner's key and is limited to {1} requests a minute and key, apart from the other limits.\n\nWebhooks follow Standard \
         Webhooks 1.0.0: `webhook-id`, `webhook-timestamp`, `webhook-signature`. Deliveries are repeated until they are answered \
         with 2xx, so the same `webhook-id` may come more than once. `listEvents` lists what they tell, to catch up or to work without an endpoint.",
        union.base_url, union.public_per_minute
    )
    .into();
    json!({
        "openapi": "3.1.0",
        "info": info,
        "servers": [{ "url": union.base_url }],
        "tags": [{ "name": PARTNER, "description": "A partner's own affairs, with its key." }],
        "paths": paths,
        "webhooks": webhooks(),
        "components": components,
    })
}

/// Paths and components of a table of operations.
fn described(table: &[Entry], union: &Union) -> (Map<String, Value>, Value) {
    let mut schemas = schema::generator();
    let mut paths = Map::new();
    for operation in table {
        let item = path_item(operation, union, &mut schemas);
        // One path may have several methods.
        let methods = paths.entry(operation.spec.path).or_insert_with(|| json!({}));
        methods[operation.spec.method.name().to_lowercase()] = item;
    }
    schemas.subschema_for::<ErrorBody>();
    let components = json!({
        "schemas": schemas.take_definitions(true),
        "headers": headers(),
        "securitySchemes": {
            "partnerKey": {
                "type": "http",
                "scheme": "bearer",
                "description": "A partner's API key, issued by the operator: `Authorization: Bearer <API_KEY>`.",
            },
        },
    });
    (paths, components)
}

/// What an endpoint of a partner is sent.
fn webhooks() -> Value {
    let header = |name: &str, description: &str| json!({ "name": name, "in": "header", "required": true, "description": description, "schema": { "type": "string" } });
    let event = |kind: EventKind| {
        let (id, summary) = kind.message();
        let (key, at) =
            ((kind != EventKind::Ping).then_some("sign-up-1042"), Timestamp::from_millis(1_794_823_471_000));
        let example: Value = serde_json::from_str(&webhook::body(kind, at, Mode::Live, key)).unwrap_or_default();
        let data = match key {
            Some(_) => json!({
                "type": "object",
                "required": ["idempotencyKey"],
                "properties": { "idempotencyKey": { "type": "string", "description": "The key that the sign-up was sent with." } },
            }),
            None => json!({ "type": "object" }),
        };
        let post = json!({
            "operationId": id,
            "summary": summary,
            "tags": [PARTNER],
            "security": [],
            "parameters": [
                header("webhook-id", "Names the message; the same at every attempt."),
                header("webhook-timestamp", "When this attempt was made, in seconds since 1970."),
                header("webhook-signature", "`v1,` and a base64 HMAC-SHA256 over `id.timestamp.body`; two with a space between them for a day after a rotation."),
            ],
            "requestBody": { "required": true, "content": { "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["type", "timestamp", "mode", "data"],
                    "properties": {
                        "type": { "type": "string", "const": kind.name() },
                        "timestamp": { "type": "string", "format": "date-time", "description": "When it happened." },
                        "mode": { "type": "string", "enum": [Mode::Live.name(), Mode::Test.name()], "description": "`test` for the sandbox." },
                        "data": data,
                    },
                },
                "example": example,
            } } },
            "responses": {
                "2XX": { "description": "Taken; it is not sent again." },
                "410": { "description": "The endpoint no longer exists: it is disabled." },
                "default": { "description": "Anything else, 3xx included, is a failure and tried again; `Retry-After` is honoured." },
            },
        });
        (kind.name().to_owned(), json!({ "post": post }))
    };
    Map::from_iter(EventKind::ALL.map(event)).into()
}

const PUBLIC: &str = "Public data";
const AGENT: &str = "Agent actions";
const PARTNER: &str = "Partner";

fn info(union: &Union) -> Value {
    let mut info = json!({
        "title": format!("{} API", union.name),
        "version": API_VERSION,
        "summary": "Describe the union truthfully, and help people join it with their consent.",
        "description": format!(
            "{} {}\n\nPublic data needs no key and is limited to {} requests a minute per address, or per key \
             if one is sent. Agent actions need a partner's key and are limited to {} a minute per key unless the key \
             was issued with another figure. A limit counts any 60 seconds; past it the answer is 429, and \
             `Retry-After` says how many seconds to wait.\n\n{CONSENT_RULE_FOR_ALL} A sign-up counts only once the user has \
             clicked the link in the email they are sent: tell them to check their inbox.\n\nEvery body has `ok`: true \
             on success, false with `error`, and mostly `code`, otherwise. The categories and \
             codes of /v1 are those listed here.",
            wording::what_it_is(union),
            wording::who_and_where(union),
            union.public_per_minute,
            union.key_per_minute
        ),
        "termsOfService": union.terms_page(),
        "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
    });
    if let Some(email) = &union.contact_email {
        info["contact"] = json!({ "name": union.name, "email": email });
    }
    info
}

fn path_item(operation: &Entry, union: &Union, schemas: &mut SchemaGenerator) -> Value {
    let spec = &operation.spec;
    let example = (operation.example)(&union.catalog);
    let mut item = json!({
        "operationId": spec.id,
        "summary": spec.title,
        "description": (operation.description)(union),
        "tags": [match spec.access { Access::Public => PUBLIC, Access::Agent => AGENT, Access::Partner | Access::Operator => PARTNER }],
        "security": match spec.access {
            Access::Public => json!([{}, { "partnerKey": [] }]),
            Access::Agent | Access::Partner | Access::Operator => json!([{ "partnerKey": [] }]),
        },
    });
    if spec.access == Access::Agent {
        item["parameters"] = json!([{
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "description": "A name for this request, such as a UUID: sent again with the same body within 30 days it does nothing more \
                            and is answered as the first time, with `Idempotency-Replayed: true`. Retry with the same key after a \
                            time-out; use a new one for a new request. Never put an email address into it: it outlives the person's data.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" },
        }]);
    }
    let mut input = schema::standalone(operation.input_schema);
    if operation.takes_input && spec.method == Method::Post && !spec.path.contains('{') {
        item["requestBody"] = json!({
            "required": input.get("required").is_some(),
            "content": { "application/json": { "schema": (operation.input_schema)(schemas), "example": example.request } },
        });
    } else if operation.takes_input {
        // What stands in the path is no part of the body.
        let is_post = spec.method == Method::Post;
        let body = is_post.then(|| take_body(spec.path, &mut input, example.request.as_ref())).flatten();
        item["parameters"] = parameters(spec.path, &input, example.request.as_ref());
        if let Some(body) = body {
            item["requestBody"] = body;
        }
    }
    let mut responses = Map::new();
    let mut success = json!({
        "description": "Success.",
        "headers": limit_headers(),
        "content": { "application/json": { "schema": (operation.output_schema)(schemas), "example": example.answer } },
    });
    if spec.access == Access::Agent {
        success["headers"]["Idempotency-Replayed"] = reference("Idempotency-Replayed");
    }
    if spec.answer == Lifetime::Fixed {
        success["headers"]["ETag"] = reference("ETag");
        let mut headers = limit_headers();
        headers.insert("ETag".to_owned(), reference("ETag"));
        let known = "You have it already: `If-None-Match` named the answer's tag.";
        responses.insert("304".to_owned(), json!({ "description": known, "headers": headers }));
    }
    responses.insert("200".to_owned(), success);
    for error in errors(operation, union) {
        add_error(&mut responses, &error);
    }
    responses.sort_keys();
    item["responses"] = responses.into();
    item
}

/// One of each error that the operation can answer with.
pub(super) fn errors(operation: &Entry, union: &Union) -> impl Iterator<Item = HttpError> {
    let (access, live) = (operation.spec.access, operation.spec.answer != Lifetime::Fixed);
    let limit = match access {
        Access::Public | Access::Partner | Access::Operator => union.public_per_minute,
        Access::Agent => union.key_per_minute,
    };
    let meets = move |kind: &&ErrorKind| match kind.met_by() {
        MetBy::All => true,
        MetBy::LiveReads => access != Access::Agent && live,
        MetBy::Actions => access == Access::Agent || (access == Access::Partner && is_partners(**kind, operation.spec)),
        MetBy::Others => access == Access::Partner && **kind == ErrorKind::NotFound,
    };
    ErrorKind::ALL.iter().filter(meets).map(move |kind| kind.example(limit))
}

/// What a partner can be answered with, of what agent actions can.
fn is_partners(kind: ErrorKind, spec: Spec) -> bool {
    match kind {
        ErrorKind::InvalidSubmission | ErrorKind::AgentUnauthorized => true,
        ErrorKind::SaveFailed => spec.effects.writes(),
        ErrorKind::InvalidJson | ErrorKind::Timeout => spec.method == Method::Post,
        _ => false,
    }
}

/// Takes out of an input what is not in the path: the body of a request; none where nothing is left.
fn take_body(path: &str, input: &mut Schema, example: Option<&Value>) -> Option<Value> {
    let in_path = |name: &str| path.contains(&format!("{{{name}}}"));
    let part = |of: Option<&Value>| -> Map<String, Value> {
        let fields = of.and_then(Value::as_object).into_iter().flatten();
        fields.filter(|(name, _)| !in_path(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let (properties, example) = (part(input.get("properties")), part(example));
    let required = input.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<_> = required.filter(|name| name.as_str().is_some_and(|name| !in_path(name))).cloned().collect();
    if properties.is_empty() {
        return None;
    }
    if let Some(all) = input.get_mut("properties").and_then(Value::as_object_mut) {
        all.retain(|name, _| in_path(name));
    }
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = required.clone().into();
    }
    let content = json!({ "application/json": { "schema": schema, "example": example } });
    Some(json!({ "required": !required.is_empty(), "content": content }))
}

/// The parameters of an operation that takes its input from the path and the query.
fn parameters(path: &str, input: &Schema, example: Option<&Value>) -> Value {
    let (properties, required) = (input.get("properties"), input.get("required").and_then(Value::as_array));
    let named = properties.and_then(Value::as_object).into_iter().flatten().map(|(name, schema)| {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let in_path = path.contains(&format!("{{{name}}}"));
        let mut parameter = json!({
            "name": name,
            "in": if in_path { "path" } else { "query" },
            "required": required.is_some_and(|names| names.iter().any(|required| required == name)),
            "description": description,
            "schema": schema,
        });
        if let Some(value) = example.and_then(|example| example.get(name)) {
            parameter["example"] = value.clone();
        }
        parameter
    });
    named.collect()
}

fn add_error(responses: &mut Map<String, Value>, error: &HttpError) {
    let ErrorText { name, meaning, .. } = error.kind().text();
    let line = match error.body().code {
        Some(_) => format!("`{name}`: {meaning}"),
        None => format!("Without a code: {meaning}"),
    };
    let status = error.status();
    let response = responses.entry(status.as_str()).or_insert_with(|| {
        let mut headers = Map::new();
        if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::BAD_REQUEST {
            headers = limit_headers();
        }
        if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert("Retry-After".to_owned(), reference("Retry-After"));
        }
        let mut response = json!({ "description": "" });
        if !headers.is_empty() {
            response["headers"] = headers.into();
        }
        response["content"] = json!({
            "application/json": { "schema": { "$ref": "#/components/schemas/Error" }, "examples": {} },
        });
        response
    });
    let before = response["description"].as_str().unwrap_or_default();
    response["description"] = if before.is_empty() { line } else { format!("{before}\n\n{line}") }.into();
    response["content"]["application/json"]["examples"][name] = json!({ "value": error.body() });
}

fn reference(header: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{header}") })
}

fn limit_headers() -> Map<String, Value> {
    ["RateLimit", "RateLimit-Policy"].into_iter().map(|name| (name.to_owned(), reference(name))).collect()
}

fn headers() -> Value {
    let text = |description: &str, example: &str| json!({ "description": description, "schema": { "type": "string" }, "example": example });
    json!({
        "Retry-After": {
            "description": "Whole seconds to wait before the next request.",
            "schema": { "type": "integer", "minimum": 1, "maximum": 60 },
            "example": 17,
        },
        "Idempotency-Replayed": text(
            "`true` where this is the answer to an earlier request with the same `Idempotency-Key`; left out otherwise.",
            "true",
        ),
        "ETag": text(
            "Names this answer; send it in `If-None-Match` and an unchanged answer is 304.",
            "\"zrdaqnfj256vs5ng33gr\"",
        ),
        "RateLimit": text("What is left: `r` requests now, more in `t` seconds.", "\"public\";r=59;t=60"),
        "RateLimit-Policy": text("The limit that applies: `q` requests in any `w` seconds.", "\"public\";q=60;w=60"),
    })
}
