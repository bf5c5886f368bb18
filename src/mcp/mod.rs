//! The Model Context Protocol (MCP): a table of operations, as tools for assistants.
//!
//! One endpoint serves both eras of the protocol. The legacy era (2024-11-05 to 2025-11-25) begins with `initialize`. In the
//! modern era (2026-07-28) every request names its version, and `server/discover` replaces `initialize`. Both are served
//! without sessions and answered in JSON. This module must never describe an operation itself: tools, their schemas and
//! their errors come from the table of operations.

mod envelope;
pub mod http;
pub mod stdio;
mod tools;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::envelope::{Envelope, Fault, Message};
use self::tools::{ToolCall, ToolLists};
use crate::clock::Moment;
use crate::documents::icon;
use crate::domain::api_key::KeyId;
use crate::http::request::authorization::KeySearch;
use crate::limiter::{Bucket, Class, Subject};
use crate::operations::dispatch::{CallTrace, Dispatcher};
use crate::operations::{Access, Entry, Toolset};

/// The version of the modern era.
pub const MODERN: &str = "2026-07-28";

/// The versions of the legacy era, oldest first.
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// What asks for no tool (lists, pings, beginnings) draws on a wider budget of its own, per address.
const GUARD_PER_MINUTE: u32 = 600;

/// How long a client may keep a list: a new release needs another, and at times a new catalog, whose words are in it.
const LIST_FRESH_MS: u32 = 300_000;

/// What is known of a message besides its text.
#[derive(Clone, Copy)]
pub struct RpcContext<'a> {
    /// The `Authorization` header, whatever is in it.
    pub authorization: Option<&'a [u8]>,
    pub address: IpAddr,
    pub now: Moment,
    /// What the headers say, where there are headers.
    pub headers: Option<RpcHeaders<'a>>,
    /// What ties the answer to a line of the log, where there is one.
    pub request_id: Option<&'a str>,
    /// What the client called itself when it began, where that is remembered.
    pub client: Option<&'a str>,
}

/// The headers that a modern request repeats its own words in.
#[derive(Clone, Copy, Default)]
pub struct RpcHeaders<'a> {
    pub version: Option<&'a str>,
    pub method: Option<&'a str>,
    pub name: Option<&'a str>,
    /// Where to look for a key that is not read, if none is.
    pub misplaced_key: Option<KeySearch<'a>>,
}

/// The answer to one message, and what HTTP says of it.
pub struct RpcResponse {
    /// None where nothing is answered: a notification.
    pub body: Option<Bytes>,
    pub status: u16,
    pub retry_after: Option<u32>,
}

impl RpcResponse {
    /// Nothing is answered.
    const SILENT: Self = Self { body: None, status: 202, retry_after: None };
}

/// What stands at the end of every modern result.
struct ModernEnd {
    meta: Box<RawValue>,
}

impl ModernEnd {
    const RESULT_TYPE: &str = "complete";

    fn add_to(&self, result: &mut Value) {
        result["resultType"] = Self::RESULT_TYPE.into();
        result["_meta"] = json!(self.meta);
    }
}

/// The server that speaks the protocol; what it says of itself is made once.
pub struct McpServer {
    dispatcher: Arc<Dispatcher>,
    operations: &'static [Entry],
    lists: ToolLists,
    discovery: Box<RawValue>,
    /// The answers to `initialize`, in the order of [`LEGACY`].
    introductions: [Box<RawValue>; LEGACY.len()],
    modern_end: ModernEnd,
}

impl McpServer {
    pub fn new(dispatcher: Arc<Dispatcher>, tools: Toolset) -> Self {
        let union = &dispatcher.app().union;
        let info = json!({
            "name": tools.name,
            "title": union.name,
            "version": env!("CARGO_PKG_VERSION"),
            "websiteUrl": union.join_site,
            "icons": icon::listed(&union.base_url),
        });
        let capabilities = json!({ "tools": {} });
        let instructions = (tools.instructions)(union);
        let modern_end = ModernEnd { meta: raw(&json!({ "io.modelcontextprotocol/serverInfo": info })) };
        let versions: Vec<_> = std::iter::once(MODERN).chain(LEGACY.into_iter().rev()).collect();
        let mut discovery = json!({
            "supportedVersions": versions,
            "capabilities": capabilities,
            "instructions": instructions,
            "ttlMs": LIST_FRESH_MS,
            "cacheScope": "private",
        });
        modern_end.add_to(&mut discovery);
        let introductions = LEGACY.map(|version| {
            raw(&json!({
                "protocolVersion": version,
                "capabilities": capabilities,
                "serverInfo": info,
                "instructions": instructions,
            }))
        });
        let lists = ToolLists::new(tools.operations, union, &modern_end);
        Self { dispatcher, operations: tools.operations, lists, discovery: raw(&discovery), introductions, modern_end }
    }

    /// Answers one message; never fails, and never says anything but JSON. `trace` gets what the log wants to know.
    pub async fn answer(&self, text: &[u8], context: RpcContext<'_>, trace: &mut CallTrace) -> RpcResponse {
        let envelope = match Envelope::read(text) {
            Ok(Message::Request(envelope)) => envelope,
            // Notifications, and answers to questions that we never ask.
            Ok(Message::Silent) => {
                let spent = self.guard(context).await;
                return spent.map_or_else(|fault| fault.reply(None), |()| RpcResponse::SILENT);
            }
            Err(fault) => return self.refuse(fault, context).await,
        };
        match self.request(&envelope, context, trace).await {
            Ok(reply) => reply,
            Err(fault) => fault.reply(Some(envelope.id)),
        }
    }

    /// What is no message counts as one.
    async fn refuse(&self, fault: Fault, context: RpcContext<'_>) -> RpcResponse {
        self.guard(context).await.err().unwrap_or(fault).reply(None)
    }

    async fn request(
        &self,
        envelope: &Envelope<'_>,
        context: RpcContext<'_>,
        trace: &mut CallTrace,
    ) -> Result<RpcResponse, Fault> {
        let modern = envelope.is_modern(context.headers);
        // A call of a tool draws on the budget of its operation; everything else on the one for talk.
        let call = match &modern {
            Ok(modern) if envelope.method == "tools/call" => Some(ToolCall::read(self.operations, envelope, *modern)),
            _ => None,
        };
        if !matches!(call, Some(Ok(_))) {
            self.guard(context).await?;
        }
        let modern = modern?;
        match &*envelope.method {
            "initialize" if !modern => Ok(envelope.succeed(&self.initialize(envelope))),
            "server/discover" if modern => Ok(envelope.succeed(&self.discovery)),
            // The modern era has no such method: every request there stands alone, and any of them tells that we are up.
            "ping" if !modern => Ok(envelope.succeed(&json!({}))),
            "tools/list" => {
                let holds_key = self.holds_key(context, &mut trace.key).await;
                Ok(envelope.succeed(&self.lists.of(modern, holds_key)))
            }
            _ => match call {
                Some(call) => {
                    let end = modern.then_some(&self.modern_end);
                    Ok(call?.run(&self.dispatcher, envelope, context, trace, end).await)
                }
                None => Err(Fault::unknown_method(&envelope.method, modern)),
            },
        }
    }

    /// In a version both sides know, or our newest legacy one: a client that wants the modern era does not send this.
    fn initialize(&self, envelope: &Envelope<'_>) -> &RawValue {
        let asked = envelope.params.version.and_then(envelope::text);
        let known = LEGACY.iter().position(|known| asked.as_deref() == Some(known));
        &self.introductions[known.unwrap_or(LEGACY.len() - 1)]
    }

    /// Whether a valid key came along. An invalid one counts as none: hosts would answer a 401 with a login.
    async fn holds_key(&self, context: RpcContext<'_>, key: &mut Option<KeyId>) -> bool {
        if context.authorization.is_none() {
            return false;
        }
        let found = self.dispatcher.app().authenticate(context.authorization, context.now.time).await;
        *key = found.as_ref().ok().map(|holder| holder.record.id);
        found.is_ok()
    }

    async fn guard(&self, context: RpcContext<'_>) -> Result<(), Fault> {
        if self.operations.iter().all(|operation| operation.spec.access == Access::Operator) {
            return Ok(());
        }
        let bucket = Bucket { class: Class::Protocol, subject: Subject::Network(context.address.into()) };
        let verdict = self.dispatcher.app().spend(bucket, GUARD_PER_MINUTE, context.now.tick).await;
        if verdict.admitted { Ok(()) } else { Err(Fault::too_many(verdict.reset_seconds())) }
    }
}

/// A piece of JSON as it was sent, or as it will be.
type Raw<'a> = &'a RawValue;

/// What is made once, as JSON.
fn raw(value: &Value) -> Box<RawValue> {
    // A value always has a JSON form.
    serde_json::value::to_raw_value(value).unwrap_or_default()
}
