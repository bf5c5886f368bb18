//! The JSON-RPC envelope of a message: validation, the protocol's era, and the response.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{LEGACY, MODERN, Raw, RpcHeaders, RpcResponse};
use crate::operations::{LARGEST_MESSAGE, decode};

/// With its padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// What a request may say in its parameters, as far as anything here asks; each as it was sent.
#[derive(Deserialize)]
#[serde(bound(deserialize = "M: Deserialize<'de>"))]
pub(super) struct Parameters<'a, M = Meta<'a>> {
    #[serde(default, borrow)]
    pub name: Option<Raw<'a>>,
    #[serde(default, borrow)]
    pub arguments: Option<Raw<'a>>,
    #[serde(default, borrow, rename = "protocolVersion")]
    pub version: Option<Raw<'a>>,
    #[serde(default, borrow, rename = "clientInfo")]
    client_info: Option<Raw<'a>>,
    #[serde(default = "Option::default", rename = "_meta")]
    meta: Option<M>,
}

impl<M> Default for Parameters<'_, M> {
    fn default() -> Self {
        Self { name: None, arguments: None, version: None, client_info: None, meta: None }
    }
}

/// What the modern era says in every request.
#[derive(Clone, Copy, Default, Deserialize)]
pub(super) struct Meta<'a> {
    #[serde(default, borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Raw<'a>>,
    #[serde(default, borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<Raw<'a>>,
    #[serde(default, borrow, rename = "io.modelcontextprotocol/clientInfo")]
    client_info: Option<Raw<'a>>,
}

/// What a program calls itself, as the protocol says it.
#[derive(Deserialize)]
struct ClientInfo<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

fn client_name(info: Raw<'_>) -> Option<String> {
    serde_json::from_str::<ClientInfo<'_>>(info.get()).ok().map(|info| info.name.into_owned())
}

/// What a client calls itself in the message that it begins with, if this is that message.
pub(super) fn client_of_initialize(text: &[u8]) -> Option<String> {
    match Envelope::read(text) {
        Ok(Message::Request(envelope)) if envelope.method == "initialize" => {
            envelope.params.client_info.and_then(client_name)
        }
        _ => None,
    }
}

/// A JSON string's text; none where it is no string. Most need no copy.
pub(super) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    let inside = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inside.contains('\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inside))
    }
}

/// A request: something that wants an answer.
pub(super) struct Envelope<'a> {
    pub id: Raw<'a>,
    pub method: Cow<'a, str>,
    pub params: Parameters<'a>,
}

pub(super) enum Message<'a> {
    Request(Envelope<'a>),
    /// Wants no answer.
    Silent,
}

/// A message as it was sent, with its parameters as `P`.
#[derive(Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
struct Sent<'a, P> {
    #[serde(default, borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "decode::present")]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default = "Option::default")]
    params: Option<P>,
    #[serde(default)]
    result: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

impl<'a> Sent<'a, Parameters<'a>> {
    /// Nearly every message has the shape that we ask for and is read in one pass. Where its parameters have another, each part
    /// of them is read by itself: one that cannot be read has nothing in it.
    fn read(text: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text).or_else(|_| {
            let sent: Sent<'a, Raw<'a>> = serde_json::from_slice(text)?;
            let Sent { jsonrpc, id, method, params, result, error } = sent;
            let params = params.map(|params| {
                let read = serde_json::from_str::<Parameters<'a, Raw<'a>>>(params.get());
                let Parameters { name, arguments, version, client_info, meta } = read.unwrap_or_default();
                let meta = meta.and_then(|meta| serde_json::from_str(meta.get()).ok());
                Parameters { name, arguments, version, client_info, meta }
            });
            Ok(Self { jsonrpc, id, method, params, result, error })
        })
    }
}

impl<'a> Envelope<'a> {
    pub(super) fn read(text: &'a [u8]) -> Result<Message<'a>, Fault> {
        // What is not JSON gets another error than JSON that is not a message.
        let is_object = text.trim_ascii_start().first() == Some(&b'{');
        let sent = match Sent::read(text).map_err(|_| decode::check_syntax(text)) {
            Ok(sent) if is_object => sent,
            Err(Err(how)) => return Err(Fault::parse(&how)),
            _ if text.trim_ascii_start().first() == Some(&b'[') => {
                return Err(Fault::invalid("batches are not served; send one message at a time"));
            }
            _ => return Err(Fault::invalid("a message is an object with jsonrpc, method and, for a request, id")),
        };
        if sent.jsonrpc.as_deref() != Some("2.0") {
            return Err(Fault::invalid("jsonrpc must be \"2.0\""));
        }
        match (sent.method, sent.id) {
            (Some(_), None) => Ok(Message::Silent),
            (Some(method), Some(id)) if is_id(id) => {
                Ok(Message::Request(Envelope { id, method, params: sent.params.unwrap_or_default() }))
            }
            (Some(_), Some(_)) => Err(Fault::invalid("id must be a string or a number")),
            (None, _) if sent.result.is_some() || sent.error.is_some() => Ok(Message::Silent),
            (None, _) => Err(Fault::invalid("method is missing")),
        }
    }

    /// What the client calls itself, where the request says so.
    pub(super) fn client(&self) -> Option<String> {
        self.params.meta.and_then(|meta| meta.client_info).and_then(client_name)
    }

    /// Which era the request belongs to; an error if it belongs to the modern one and breaks its rules.
    pub(super) fn is_modern(&self, headers: Option<RpcHeaders<'_>>) -> Result<bool, Fault> {
        let Meta { version, capabilities, .. } = self.params.meta.unwrap_or_default();
        let claimed =
            self.method == "server/discover" || headers.is_some_and(|headers| headers.version == Some(MODERN));
        if version.is_none() && !claimed {
            return Ok(false);
        }
        let Some(version) = version.and_then(text) else {
            return Err(Fault::parameters(format!("params._meta must name the version in \"{VERSION_KEY}\""), true));
        };
        if !capabilities.is_some_and(|capabilities| capabilities.get().starts_with('{')) {
            return Err(Fault::parameters(format!("params._meta must hold an object \"{CAPABILITIES_KEY}\""), true));
        }
        if let Some(headers) = headers {
            self.compare(headers, &version)?;
        }
        if version != MODERN {
            return Err(Fault::version(&version));
        }
        Ok(true)
    }

    /// Proxies route by the headers, so they must say what the message says.
    fn compare(&self, headers: RpcHeaders<'_>, version: &str) -> Result<(), Fault> {
        let differ = |header: &'static str, said: Option<&str>, meant: &str| match said {
            Some(said) if said == meant => Ok(()),
            Some(_) => Err(Fault::headers(format!("the header {header} does not say what the message says"))),
            None => Err(Fault::headers(format!("the header {header} is missing"))),
        };
        differ("MCP-Protocol-Version", headers.version, version)?;
        differ("Mcp-Method", headers.method, &self.method)?;
        if self.method == "tools/call" {
            let name = self.params.name.and_then(text).unwrap_or_default();
            let said = headers.name.map(decode_name);
            differ("Mcp-Name", said.as_deref(), &name)?;
        }
        Ok(())
    }

    pub(super) fn succeed(&self, result: &impl Serialize) -> RpcResponse {
        #[derive(Serialize)]
        struct Success<'a, R> {
            jsonrpc: &'static str,
            id: Raw<'a>,
            result: &'a R,
        }

        // Enough for most answers: each doubling copies what is there.
        let mut body = Vec::with_capacity(2048);
        // Results are made of texts, numbers and what is JSON already, which always have a JSON form.
        let _infallible = serde_json::to_writer(&mut body, &Success { jsonrpc: "2.0", id: self.id, result });
        RpcResponse { body: Some(Bytes::from(body)), status: 200, retry_after: None }
    }
}

fn is_id(id: &RawValue) -> bool {
    matches!(id.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'))
}

/// A name that a header cannot hold comes as `=?base64?…?=`.
fn decode_name(header: &str) -> Cow<'_, str> {
    let encoded = header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let decoded = encoded.and_then(|text| BASE64.decode(text).ok()).and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map_or(Cow::Borrowed(header), Cow::Owned)
}

/// An error of the protocol, not of an operation.
pub(super) struct Fault {
    code: i32,
    message: String,
    data: Option<Value>,
    status: u16,
    retry_after: Option<u32>,
}

impl Fault {
    fn new(code: i32, status: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, status, retry_after: None }
    }

    pub(super) fn parse(how: &str) -> Self {
        Self::new(-32700, 400, format!("Parse error: the message is not JSON: {how}"))
    }

    pub(super) fn invalid(how: &str) -> Self {
        Self::new(-32600, 400, format!("Invalid request: {how}"))
    }

    pub(super) fn too_large() -> Self {
        let largest = LARGEST_MESSAGE >> 10;
        Self::new(-32600, 413, format!("Invalid request: the message is larger than {largest} KiB"))
    }

    pub(super) fn broken() -> Self {
        Self::new(-32700, 400, "Parse error: the message broke off before its end")
    }

    pub(super) fn origin() -> Self {
        Self::new(-32600, 403, "Invalid request: pages of this origin may not speak to this server")
    }

    fn headers(how: String) -> Self {
        Self::new(-32020, 400, how)
    }

    fn version(requested: &str) -> Self {
        let supported: Vec<_> = std::iter::once(MODERN).chain(LEGACY.into_iter().rev()).collect();
        let data = Some(json!({ "supported": supported, "requested": requested }));
        Self { data, ..Self::new(-32022, 400, "Unsupported protocol version") }
    }

    /// In the legacy era these travel with 200, in the modern one with a status of their own.
    pub(super) fn parameters(how: impl Into<String>, modern: bool) -> Self {
        Self::new(-32602, if modern { 400 } else { 200 }, format!("Invalid params: {}", how.into()))
    }

    pub(super) fn unknown_method(method: &str, modern: bool) -> Self {
        let name: String = method.chars().take(60).collect();
        Self::new(-32601, if modern { 404 } else { 200 }, format!("Method not found: {name}"))
    }

    pub(super) fn too_many(retry_after: u32) -> Self {
        let message = format!("Too many requests: wait {retry_after} seconds, then try again");
        Self { retry_after: Some(retry_after), ..Self::new(-32000, 429, message) }
    }

    /// `id` is null where the request could not be read.
    pub(super) fn reply(self, id: Option<Raw<'_>>) -> RpcResponse {
        #[derive(Serialize)]
        struct Failed<'a> {
            jsonrpc: &'static str,
            id: Option<Raw<'a>>,
            error: Value,
        }

        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = self.data {
            error["data"] = data;
        }
        // The id as it was sent: some that JSON can write no value can hold.
        let body = serde_json::to_vec(&Failed { jsonrpc: "2.0", id, error }).unwrap_or_default();
        RpcResponse { body: Some(Bytes::from(body)), status: self.status, retry_after: self.retry_after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_where_they_had_to_be_encoded() {
        assert_eq!(decode_name("signUpUser"), "signUpUser");
        assert_eq!(decode_name("=?base64?c2lnblVwVXNlcg==?="), "signUpUser");
        assert_eq!(decode_name("=?base64?w6k=?="), "é");
        for odd in ["=?base64?!!?=", "=?base64?/w==?=", "=?base64?", ""] {
            assert_eq!(decode_name(odd), odd);
        }
    }

    #[test]
    fn an_id_comes_back_as_it_was_sent_whatever_becomes_of_the_request() {
        for id in ["1e999", r#""\ud800""#, "123456789012345678901234567890", r#""a\u0062""#, "-0"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
            let Ok(Message::Request(envelope)) = Envelope::read(text.as_bytes()) else { panic!("{id}") };
            let refused = Fault::unknown_method("x", true).reply(Some(envelope.id)).body.unwrap();
            let done = envelope.succeed(&json!({})).body.unwrap();
            for body in [refused, done] {
                let body = String::from_utf8(body.to_vec()).unwrap();
                assert!(body.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"#)), "{body}");
            }
        }
        let unread = Fault::invalid("x").reply(None).body.unwrap();
        assert!(unread.starts_with(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"#));
    }

    #[test]
    fn messages_are_told_apart() {
        let read = |text: &str| match Envelope::read(text.as_bytes()) {
            Ok(Message::Request(envelope)) => format!("request {} {}", envelope.id.get(), envelope.method),
            Ok(Message::Silent) => "silent".to_owned(),
            Err(fault) => fault.code.to_string(),
        };
        for (text, kind) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping"),
            (r#"{"jsonrpc":"2.0","id":"a\u0062","method":"p\u0069ng","x":1}"#, "request \"a\\u0062\" ping"),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "silent"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "silent"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "-32600"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "-32600"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "-32600"),
            (r#"{"id":1,"method":"ping"}"#, "-32600"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "-32600"),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, "-32600"),
            (r#"[]"#, "-32600"),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "-32600"),
            (r#""ping""#, "-32600"),
            (r#"{"jsonrpc":"2.0""#, "-32700"),
            ("", "-32700"),
        ] {
            assert_eq!(read(text), kind, "{text}");
        }
    }
}
