//! MCP over HTTP (Streamable HTTP): `POST /mcp`, one message, one response.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::header::{HeaderName, HeaderValue, ORIGIN, RETRY_AFTER};
use hyper::{HeaderMap, Request, StatusCode};

use super::envelope::Fault;
use super::{McpServer, RpcContext, RpcHeaders, RpcResponse};
use crate::clock::Moment;
use crate::http::request::authorization::{self, KeySearch};
use crate::http::request::body::{self, SentBody};
use crate::http::request::host::Origins;
use crate::http::request::id::RequestId;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::loopback::is_loopback;
use crate::operations::dispatch::{CallTrace, Dispatcher};
use crate::operations::{CONTRACT_TOOLS, LARGEST_MESSAGE, decode};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

pub struct McpEndpoint {
    server: McpServer,
    origins: Origins,
    /// Whose pages may speak MCP besides our own.
    others: Vec<String>,
}

impl McpEndpoint {
    pub fn new(dispatcher: Arc<Dispatcher>, origins: Origins, others: Vec<String>) -> Self {
        Self { server: McpServer::new(dispatcher, CONTRACT_TOOLS), origins, others }
    }

    pub async fn answer(
        &self,
        request: Request<SentBody<'_>>,
        client: IpAddr,
        now: Moment,
        id: &RequestId,
        trace: &mut CallTrace,
    ) -> Answer {
        let (head, body) = request.into_parts();
        if !self.admits(&head.headers) {
            return from(Fault::origin().reply(None));
        }
        let text = body.read(LARGEST_MESSAGE).await;
        let header = |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let authorization = authorization::of(&head.headers);
        let search = KeySearch { headers: &head.headers, query: head.uri.query() };
        let context = RpcContext {
            authorization,
            address: client,
            now,
            headers: Some(RpcHeaders {
                version: header(VERSION),
                method: header(METHOD),
                name: header(NAME),
                misplaced_key: authorization.is_none().then_some(search),
            }),
            request_id: Some(id.as_str()),
            // Without sessions, what an earlier request said is not remembered.
            client: None,
        };
        let fault = match text {
            Ok(_) if body::is_encoded(&head.headers) => Fault::parse(decode::ENCODED),
            Ok(text) => return from(self.server.answer(&text, context, trace).await),
            Err(HttpError::TooLarge) => Fault::too_large(),
            Err(error @ (HttpError::Timeout | HttpError::Busy)) => return error.answer(),
            Err(_) => Fault::broken(),
        };
        from(self.server.refuse(fault, context).await)
    }

    /// Programs send no `Origin`; browsers send that of the page, and only our own and the operator's may speak here: a
    /// page elsewhere must not reach a server on its reader's machine (DNS rebinding).
    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(ORIGIN) else { return true };
        let Ok(origin) = origin.to_str() else { return false };
        // On a development server this machine has several names.
        let here = || {
            let (scheme, name) = origin.split_once("://").unwrap_or_default();
            self.origins.local && scheme.starts_with("http") && is_loopback(name)
        };
        self.origins.contain(origin) || self.others.iter().any(|known| known == origin) || here()
    }
}

fn from(response: RpcResponse) -> Answer {
    let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::OK);
    let mut answer = match response.body {
        Some(body) => Answer::json(status, body),
        None => Answer::empty(status),
    };
    if let Some(seconds) = response.retry_after {
        answer.set(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}
