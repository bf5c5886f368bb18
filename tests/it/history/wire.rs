//! What the clients say over the wire and what the answers mean: REST, MCP and the pages. Nothing here stops a test: whatever
//! breaks is an outcome.

use hyper::client::conn::http1;
use hyper::http::request::Builder;

use super::events::{Answer, Decision, Outcome, Why};
use super::plan::Channel;
use crate::prelude::*;

/// How long a client waits for an answer: longer than any fault lasts.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Reply {
    status: u16,
    body: String,
    /// Where it leads.
    place: String,
}

pub(super) fn post(path: &str) -> Builder {
    Request::post(path)
}

/// Sends one request on a connection of its own; otherwise says what is then known.
pub(super) async fn exchange(
    from: Ipv4Addr,
    to: Option<SocketAddr>,
    request: Builder,
    body: String,
) -> Result<Reply, Outcome> {
    let unreachable = || Outcome::Refused(Why::Unreachable);
    let to = to.ok_or_else(unreachable)?;
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let broke = |error: hyper::Error| Outcome::Unknown(error.to_string());
    let talk = async {
        let stream = socket.connect(to).await.map_err(|_| unreachable())?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broke)?;
        let connection = tokio::spawn(connection);
        let request = request.header("host", "unionhall.test").body(Full::new(Bytes::from(body))).unwrap();
        let reply = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            let place =
                head.headers.get("location").and_then(|place| place.to_str().ok()).unwrap_or_default().to_owned();
            Ok(Reply { status: head.status.as_u16(), body: String::from_utf8_lossy(&body).into_owned(), place })
        };
        let reply = reply.await.map_err(broke);
        connection.abort();
        reply
    };
    tokio::time::timeout(PATIENCE, talk).await.unwrap_or_else(|_| Err(Outcome::Unknown("no answer in time".to_owned())))
}

pub(super) fn call(
    channel: Channel,
    tool: &str,
    path: &str,
    key: Option<&str>,
    arguments: &Value,
) -> (Builder, String) {
    let (request, body) = match (channel, key) {
        (Channel::Mcp, _) => {
            let params = json!({ "name": tool, "arguments": arguments });
            let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            (Request::post("/mcp"), message.to_string())
        }
        (_, None) => (Request::get(path), String::new()),
        (_, Some(_)) => (Request::post(path), arguments.to_string()),
    };
    let request = request.header("content-type", "application/json");
    (key.into_iter().fold(request, |request, key| request.header("authorization", format!("Bearer {key}"))), body)
}

pub(super) fn understood(channel: Channel, reply: &Reply) -> Outcome {
    let failed = || Outcome::Unknown(format!("{}: {}", reply.status, reply.body));
    let Ok(mut body) = serde_json::from_str::<Value>(&reply.body) else { return failed() };
    if channel == Channel::Mcp {
        let text = body["result"]["content"][0]["text"].as_str().unwrap_or_default();
        body = serde_json::from_str(text).unwrap_or_default();
    }
    let code = |link: &str| link.split("/joinus").nth(1).map(str::to_owned);
    match (body["ok"].as_bool(), body["code"].as_str()) {
        (Some(true), _) => Outcome::Acknowledged(Answer {
            code: body["inviteLink"].as_str().and_then(code),
            count: body["joinedCount"].as_u64().or(body["memberCount"].as_u64()),
            attributed: body["refAttributed"].as_bool(),
        }),
        (_, Some("agent_unauthorized")) => Outcome::Refused(Why::Key),
        (_, Some("backend_not_configured")) => Outcome::Refused(Why::Paused),
        (_, None | Some("save_failed")) => failed(),
        (_, Some(other)) => Outcome::Refused(Why::Other(format!("{other}: {}", reply.body))),
    }
}

pub(super) fn understood_form(reply: &Reply) -> Outcome {
    match reply.status {
        303 => Outcome::Acknowledged(Answer::default()),
        500 if reply.body.contains("Sign-ups are paused") => Outcome::Refused(Why::Paused),
        status if status >= 500 => Outcome::Unknown(format!("{status}")),
        status => Outcome::Refused(Why::Other(format!("{status}: {}", reply.body))),
    }
}

/// Presses a button of a mailed page, and reads the page that it leads to.
pub(super) async fn press(to: Option<SocketAddr>, path: &str, body: String) -> Result<Reply, Outcome> {
    let pressed = exchange(Ipv4Addr::LOCALHOST, to, post(path), body).await?;
    if pressed.status != 303 {
        return Ok(pressed);
    }
    let shown = exchange(Ipv4Addr::LOCALHOST, to, Request::get(&pressed.place), String::new()).await;
    // What was pressed may have been done, whatever became of the page after it.
    shown.map_err(|_| Outcome::Unknown("no page after it".to_owned()))
}

pub(super) fn understood_decision(reply: &Reply) -> Outcome {
    let says = |text: &str| reply.body.contains(text);
    let decided = |before| Outcome::Refused(Why::Decided(before));
    match reply.status {
        200 if says("<h1>Welcome to the union</h1>") || says("<h1>You've already confirmed</h1>") => {
            let code = between(&reply.body, "/joinus", "<").map(str::to_owned);
            Outcome::Acknowledged(Answer { code, count: members(&reply.body), ..Answer::default() })
        }
        200 if says("<h1>The sign-up is withdrawn</h1>") || says("<h1>The request is withdrawn</h1>") => {
            Outcome::Acknowledged(Answer::default())
        }
        200 if says("<h1>You are already a member</h1>") => Outcome::Refused(Why::Member),
        200 if says("This sign-up was confirmed") => decided(Decision::Confirmed),
        200 if says("This sign-up has changed") => Outcome::Refused(Why::Changed),
        410 if says("This sign-up was withdrawn") => decided(Decision::Declined),
        status if status >= 500 => Outcome::Unknown(format!("{status}")),
        status => Outcome::Refused(Why::Other(format!("{status}: {}", reply.body))),
    }
}

/// Which answers a confirmation page shows; none where there is nothing to confirm.
pub(super) fn seen(reply: &Reply) -> Option<String> {
    between(&reply.body, "name=\"seen\" value=\"", "\"").map(str::to_owned)
}

/// The number in "the union has 1,234 members".
fn members(page: &str) -> Option<u64> {
    let before = page.split(" member").find(|before| before.ends_with(|last: char| last.is_ascii_digit()))?;
    before.rsplit(' ').next()?.replace(',', "").parse().ok()
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.split_once(before)?.1.split_once(after).map(|(inside, _)| inside)
}

mod once {
    use super::*;

    #[test]
    fn the_number_of_members_is_read_from_a_page() {
        assert_eq!(members("<p>a member of Union. With you, the union has 1,234 members.</p>"), Some(1234));
        assert_eq!(members("With you, the union has 1 member."), Some(1));
        assert_eq!(members("You are a member of it."), None);
        assert_eq!(between("a=\"b\" c", "=\"", "\""), Some("b"));
    }

    #[test]
    fn only_a_clear_answer_is_taken_for_one() {
        let reply = |status, body: &str| Reply { status, body: body.to_owned(), place: String::new() };
        let rest = |status, body| understood(Channel::Rest, &reply(status, body));
        assert!(matches!(rest(200, r#"{"ok":true,"memberCount":3}"#), Outcome::Acknowledged(a) if a.count == Some(3)));
        assert!(matches!(rest(500, r#"{"ok":false,"error":"x","code":"save_failed"}"#), Outcome::Unknown(_)));
        assert!(matches!(rest(503, r#"{"ok":false,"error":"x"}"#), Outcome::Unknown(_)));
        assert!(matches!(rest(502, "<html>"), Outcome::Unknown(_)));
        let paused = r#"{"ok":false,"error":"x","code":"backend_not_configured"}"#;
        assert!(matches!(rest(500, paused), Outcome::Refused(Why::Paused)));
        assert!(matches!(understood_form(&reply(500, "<h1>Join</h1>")), Outcome::Unknown(_)));
        assert!(matches!(understood_decision(&reply(503, "")), Outcome::Unknown(_)));
    }
}
