//! The OpenAPI 3.1 document, made from the table of operations and the types they take and give.

use hyper::StatusCode;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::{API_VERSION, schema};
use crate::domain::union::Union;
use crate::error::ErrorBody;
use crate::http::response::error::{ErrorKind, ErrorText, HttpError, MetBy};
use crate::operations::wording::{self, CAMPAIGNS, CONSENT_RULE_FOR_ALL};
use crate::operations::{ALL, Access, Entry, Lifetime};

pub fn document(union: &Union) -> Value {
    let mut schemas = schema::generator();
    let mut paths = Map::new();
    for operation in ALL {
        let item = path_item(operation, union, &mut schemas);
        paths.insert(operation.spec.path.to_owned(), json!({ operation.spec.method.name().to_lowercase(): item }));
    }
    schemas.subschema_for::<ErrorBody>();
    let schemas = schemas.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": info(union),
        "servers": [{ "url": union.base_url }],
        "tags": [
            { "name": PUBLIC, "description": "Read-only facts about the union. No key needed, open to pages of any origin." },
            { "name": AGENT, "description": format!("Acts for a user, with a partner's key. {CONSENT_RULE_FOR_ALL}") },
        ],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "headers": headers(),
            "securitySchemes": {
                "partnerKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A partner's API key, issued by the operator: `Authorization: Bearer <API_KEY>`.",
                },
            },
        },
    })
}

const PUBLIC: &str = "Public data";
const AGENT: &str = "Agent actions";

fn info(union: &Union) -> Value {
    let mut info = json!({
        "title": format!("{} API", union.name),
        "version": API_VERSION,
        "summary": "Describe the union truthfully, and help people join it with their consent.",
        "description": format!(
            "{} {} {CAMPAIGNS}\n\nPublic data needs no key and is limited to {} requests a minute per address, or per key \
             if one is sent. Agent actions need a partner's key and are limited to {} a minute per key unless the key \
             was issued with another figure. A limit counts any 60 seconds; past it the answer is 429, and \
             `Retry-After` says how many seconds to wait.\n\n{CONSENT_RULE_FOR_ALL} A sign-up counts only once the user has \
             clicked the link in the e-mail they are sent: tell them to check their inbox.\n\nEvery body has `ok`: true \
             on success, false with `error`, and mostly `code`, otherwise. Changes within /v1 only add.",
            wording::what_it_is(union),
            wording::who_runs_it(union),
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
        "tags": [match spec.access { Access::Public => PUBLIC, Access::Agent => AGENT }],
        "security": match spec.access {
            Access::Public => json!([{}, { "partnerKey": [] }]),
            Access::Agent => json!([{ "partnerKey": [] }]),
        },
    });
    if operation.takes_input {
        item["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": (operation.input_schema)(schemas), "example": example.request } },
        });
    }
    let mut responses = Map::new();
    let mut success = json!({
        "description": "Success.",
        "headers": limit_headers(),
        "content": { "application/json": { "schema": (operation.output_schema)(schemas), "example": example.answer } },
    });
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
    let (access, live) = (operation.spec.access, operation.spec.answer == Lifetime::Live);
    let limit = match access {
        Access::Public => union.public_per_minute,
        Access::Agent => union.key_per_minute,
    };
    let meets = move |kind: &&ErrorKind| match kind.met_by() {
        MetBy::All => true,
        MetBy::LiveReads => access == Access::Public && live,
        MetBy::Actions => access == Access::Agent,
        MetBy::Others => false,
    };
    ErrorKind::ALL.iter().filter(meets).map(move |kind| kind.example(limit))
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
    json!({
        "Retry-After": {
            "description": "Whole seconds to wait before the next request.",
            "schema": { "type": "integer", "minimum": 1, "maximum": 60 },
            "example": 17,
        },
        "ETag": {
            "description": "Names this answer; send it in `If-None-Match` and an unchanged answer is 304.",
            "schema": { "type": "string" },
            "example": "\"zrdaqnfj256vs5ng33gr\"",
        },
        "RateLimit": {
            "description": "What is left: `r` requests now, more in `t` seconds.",
            "schema": { "type": "string" },
            "example": "\"public\";r=59;t=60",
        },
        "RateLimit-Policy": {
            "description": "The limit that applies: `q` requests in any `w` seconds.",
            "schema": { "type": "string" },
            "example": "\"public\";q=60;w=60",
        },
    })
}
