//! What is asked of a server: the requests of a load (its workload), made for one server and its keys.

use unionhall::domain::secret::Secret;
use unionhall::domain::secret::token::{Purpose, TokenMaker};
use unionhall::domain::sign_up::SignUpRef;

use crate::load::{Expected, NUMBER, Numbers, Request, Target};
use crate::people;
use crate::server::{Installation, Server};

/// The paths whose answers bare hyper repeats.
pub(crate) const CATEGORIES: &str = "/v1/negotiate-categories";
pub(crate) const PROGRAM: &str = "/v1/referral-program";
pub(crate) const STATS: &str = "/v1/stats";

/// What referral codes are made with where the records are not in the data folder.
pub(crate) const SECRET: (&str, &str) = ("UNIONHALL_SECRET", "the secret of a bench that keeps nothing");

pub(crate) fn target(server: &Server, requests: Vec<Request>) -> Target {
    let (addresses, requests, numbers) = (vec![server.address], requests.into(), Numbers::Known(1));
    Target { addresses, requests, numbers, expected: Expected::OK, next: 0 }
}

pub(crate) fn reading(server: &Server, path: &str) -> Target {
    target(server, vec![Request::get(path)])
}

/// Both fixed listings, half of the connections each.
pub(crate) fn listings(server: &Server) -> Target {
    target(server, vec![Request::get(CATEGORIES), Request::get(PROGRAM)])
}

fn keyed(server: &Server, installation: &Installation, path: &str, body: &str) -> Target {
    let request = |key: &String| Request::post(path, &format!("authorization: Bearer {key}\r\n"), body);
    target(server, installation.keys.iter().map(request).collect())
}

/// Signing up somebody new with each request; `prefix` separates what two servers write to the same records.
pub(crate) fn inviting(server: &Server, installation: &Installation, prefix: &str) -> Target {
    let body = format!(
        "{{\"email\":\"{prefix}{NUMBER}@example.com\",\"usState\":\"CA\",\"categories\":{{\"internet\":true,\"travel\":true}}}}"
    );
    Target { numbers: Numbers::Fresh, ..keyed(server, installation, "/v1/invite", &body) }
}

/// The link of somebody who is known.
pub(crate) fn linking(server: &Server, installation: &Installation, people: u64) -> Target {
    let body = format!("{{\"email\":\"{}\"}}", people::address(NUMBER));
    Target { numbers: Numbers::Known(people), ..keyed(server, installation, "/v1/referral-link", &body) }
}

/// The clicks that confirm these sign-ups, each once and by somebody else: one address has a few hundred a minute. The
/// server must take the proxy's word.
pub(crate) fn confirming(server: &Server, sign_ups: &[SignUpRef]) -> anyhow::Result<Target> {
    let tokens = TokenMaker::new(&Secret::new(SECRET.1)?);
    let click = |sign_up: &SignUpRef| {
        let path = format!("/confirm/{}", tokens.token(Purpose::Confirm, *sign_up));
        let [a, b, c, d] = (sign_up.id.0 as u32 | 10 << 24).to_be_bytes();
        Request::post(&path, &format!("x-forwarded-for: {a}.{b}.{c}.{d}\r\n"), "")
    };
    let mut clicks = target(server, sign_ups.iter().map(click).collect());
    clicks.numbers = Numbers::EachOnce;
    clicks.expected = Expected { status: "303", holds: "done=welcome" };
    Ok(clicks)
}

/// The same count as `/v1/stats`, asked for as an assistant does.
pub(crate) fn calling(server: &Server, modern: bool) -> Target {
    const ACCEPT: &str = "accept: application/json, text/event-stream\r\n";
    let request = if modern {
        let meta = "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
                    \"io.modelcontextprotocol/clientCapabilities\":{}}";
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"getMemberStats\",\
             \"arguments\":{{}},{meta}}}}}"
        );
        let headers = format!(
            "{ACCEPT}mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: getMemberStats\r\n"
        );
        Request::post("/mcp", &headers, &body)
    } else {
        let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"getMemberStats\",\"arguments\":{}}}";
        Request::post("/mcp", &format!("{ACCEPT}mcp-protocol-version: 2025-11-25\r\n"), body)
    };
    target(server, vec![request])
}
