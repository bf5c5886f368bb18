//! MCP as a client meets it: both eras, the same operations, the same limits, never anything but JSON.

use proptest::prelude::*;

use crate::prelude::*;
use unionhall::domain::mail::{MAX_MAILS_PER_DAY, MIN_MAIL_GAP};
use unionhall::domain::sign_up::PENDING_FOR;

const MODERN: &str = "2026-07-28";

fn message(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

/// A modern request: the version and the capabilities in `_meta`, and the headers that say the same.
fn modern(method: &str, mut params: Value) -> (Value, hyper::http::request::Builder) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut request = Request::post("/mcp").header("mcp-protocol-version", MODERN).header("mcp-method", method);
    if let Some(name) = params["name"].as_str() {
        request = request.header("mcp-name", name);
    }
    (message(1, method, params), request)
}

async fn send(server: &Server, message: &Value) -> Answer {
    server.send(Request::post("/mcp").header("content-type", "application/json"), message.to_string()).await
}

fn body(answer: &Answer) -> Value {
    assert_eq!(answer.header("content-type"), "application/json", "{answer:?}");
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["jsonrpc"], "2.0");
    body
}

#[track_caller]
fn result(answer: &Answer) -> Value {
    let body = body(answer);
    assert_eq!(answer.status, 200, "{body}");
    assert!(body.get("error").is_none(), "{body}");
    body["result"].clone()
}

#[track_caller]
fn fault(answer: &Answer, status: u16, code: i32) -> Value {
    let body = body(answer);
    assert_eq!((answer.status.as_u16(), &body["error"]["code"]), (status, &json!(code)), "{body}");
    body["error"].clone()
}

fn call(name: &str, arguments: Value) -> Value {
    message(7, "tools/call", json!({ "name": name, "arguments": arguments }))
}

async fn call_with(server: &Server, key: &str, message: &Value) -> Answer {
    let request = Request::post("/mcp").header("authorization", format!("Bearer {key}"));
    server.send(request, message.to_string()).await
}

/// A schema with its references followed, its keys in one order, without its descriptions: a tool has fewer of them.
fn plain(document: &Value, schema: &Value) -> Value {
    if let Some(path) = schema["$ref"].as_str() {
        return plain(document, document.pointer(path.trim_start_matches('#')).unwrap());
    }
    match schema {
        Value::Object(map) => {
            let told = |key: &String, value: &Value| key == "description" && value.is_string();
            let kept = map.iter().filter(|(key, value)| !told(key, value));
            let mut sorted: Vec<_> = kept.map(|(key, value)| (key.clone(), plain(document, value))).collect();
            sorted.sort_by(|one, other| one.0.cmp(&other.0));
            sorted.into_iter().collect()
        }
        Value::Array(list) => list.iter().map(|value| plain(document, value)).collect(),
        other => other.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_the_rest_call() {
    let (server, key) = Server::with_key(&[]);
    for operation in ALL {
        let spec = &operation.spec;
        let arguments = if operation.takes_input { json!({ "email": "ana@example.com" }) } else { json!({}) };
        let called = result(&call_with(&server, &key, &call(spec.id, arguments.clone())).await);
        let rest = match spec.access {
            Access::Public => server.get(spec.path).await.good(),
            Access::Agent | Access::Partner | Access::Operator => {
                server.post(spec.path, &key, arguments.to_string()).await.good()
            }
        };
        assert_eq!((&called["structuredContent"], &called["isError"]), (&rest, &json!(false)), "{}", spec.id);
        let text: Value = serde_json::from_str(called["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, rest, "the text says the same");
    }
    // Arguments of the tools that read are ignored; a call without any is one.
    result(&send(&server, &call("getMemberStats", json!({ "anything": 1 }))).await);
    result(&send(&server, &message(1, "tools/call", json!({ "name": "getMemberStats" }))).await);

    let refused = async |key: &str, name: &str, arguments: Value, code: &str| {
        let answer = call_with(&server, key, &call(name, arguments)).await;
        let result = result(&answer);
        assert_eq!(result["isError"], true, "{result}");
        assert!(result.get("structuredContent").is_none());
        let error: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&error["ok"], &error["code"]), (&json!(false), &json!(code)), "{error}");
        error["error"].as_str().unwrap().to_owned()
    };
    let told = refused(
        &key,
        "signUpUser",
        json!({ "email": "ana@example.com", "categories": { "pets": true } }),
        "invalid_submission",
    )
    .await;
    assert!(told.starts_with("categories.pets: not a category"), "{told}");
    refused(&key, "createReferralLink", json!([]), "invalid_submission").await;
    refused("", "signUpUser", json!({ "email": "ana@example.com" }), "agent_unauthorized").await;
    refused("wrong", "createReferralLink", json!({ "email": "ana@example.com" }), "agent_unauthorized").await;
    server.run(&["signups", "pause"]);
    let paused = async || call_with(&server, &key, &call("signUpUser", json!({ "email": "ana@example.com" }))).await;
    while result(&paused().await)["isError"] == false {}
    refused(&key, "signUpUser", json!({ "email": "ana@example.com" }), "backend_not_configured").await;
    for unknown in
        [call("nonsense", json!({})), message(1, "tools/call", json!({})), message(1, "tools/call", json!([]))]
    {
        fault(&send(&server, &unknown).await, 200, -32602);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_channels_share_one_budget() {
    let server = Server::start();
    let key = server.run(&["keys", "issue", "Acme", "--per-minute", "4"]);
    for _ in 0..30 {
        server.get("/v1/stats").await.good();
        result(&send(&server, &call("listNegotiationCategories", json!({}))).await);
    }
    server.get("/v1/stats").await.refused(429, "rate_limited");
    let over = send(&server, &call("getMemberStats", json!({}))).await;
    let result_over = result(&over);
    assert_eq!(result_over["isError"], true);
    let wait: u32 = over.header("retry-after").parse().unwrap();
    assert!(result_over["content"][0]["text"].as_str().unwrap().contains(&format!("Wait {wait} second")));
    for n in 0..2 {
        server.post("/v1/referral-link", &key, crate::server::sign_up(&format!("a{n}@example.com"))).await.good();
        assert_eq!(
            result(&call_with(&server, &key, &call("createReferralLink", json!({ "email": "a@example.com" }))).await)["isError"],
            false
        );
    }
    assert_eq!(
        result(&call_with(&server, &key, &call("createReferralLink", json!({ "email": "a@example.com" }))).await)["isError"],
        true
    );
    // Lists and pings are counted apart, more widely.
    let mut connection = server.connect(Ipv4Addr::LOCALHOST).await;
    let ping = message(1, "ping", json!({})).to_string();
    for n in 0..600 {
        assert_eq!(connection.send(Request::post("/mcp"), ping.clone()).await.status, 200, "{n}");
    }
    let over = connection.send(Request::post("/mcp"), ping).await;
    fault(&over, 429, -32000);
    assert!(!over.header("retry-after").is_empty());
}

/// What the tools say about mail is what the mail says of itself, and what the rules of mail are.
#[tokio::test(flavor = "multi_thread")]
async fn the_tools_claims_are_what_happens() {
    let (server, key) = Server::with_key(&["--mail-from", "The Hall <hello@union.example>", "--name", "Hall & Sons"]);
    let list = call_with(&server, &key, &message(1, "tools/list", json!({}))).await;
    let tools = result(&list)["tools"].clone();
    let initialize = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
    let instructions = result(&send(&server, &message(1, "initialize", initialize)).await)["instructions"]
        .as_str()
        .unwrap()
        .to_owned();
    // A model reads all of it at the start of every conversation.
    let size = json!({ "instructions": instructions, "tools": tools }).to_string().len();
    assert!(size <= 11_500, "{size} bytes");
    let describe = |name: &str| {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        tool["description"].as_str().unwrap().to_owned()
    };
    let told = describe("signUpUser");
    let letters = || {
        let files = std::fs::read_dir(server.data().join("mailbox")).into_iter().flatten();
        let letters = files.map(|file| file.unwrap().path()).filter(|file| file.extension().unwrap() == "eml");
        letters.map(|file| std::fs::read_to_string(file).unwrap()).collect::<Vec<_>>()
    };
    let arrive = async |count: usize| {
        wait_for!(async || letters().len() == count).await;
        letters()
    };
    for (n, claim) in
        ["Confirm your sign-up with Hall & Sons", "You are already a member of Hall & Sons"].into_iter().enumerate()
    {
        result(&call_with(&server, &key, &call("signUpUser", json!({ "email": "ana@example.com" }))).await);
        let mails = arrive(n + 1).await;
        assert!(mails.iter().any(|mail| mail.contains(&format!("Subject: {claim}\r\n"))), "{mails:?}");
        assert!(mails.iter().all(|mail| mail.contains("<hello@union.example>") && mail.contains("The Hall")));
        assert!(told.contains(&format!("\"{claim}\"")), "{told}");
        assert_eq!(server.confirm(1).await.status, 200);
        server.execute("UPDATE mailboxes SET sent_1 = 0; UPDATE outbox SET send_after = 0");
    }
    let days = |span: Duration| span.as_secs() / 86_400;
    for claim in [
        "from The Hall <hello@union.example>".to_owned(),
        format!("good for {} days", days(PENDING_FOR)),
        format!("at most once in {} minutes and {MAX_MAILS_PER_DAY} times a day", MIN_MAIL_GAP.as_secs() / 60),
        format!("http://{}/join", server.address),
    ] {
        assert!(told.contains(&claim), "{claim} in {told}");
    }
    // Each stands where a model looks for it, and once.
    let all = format!("{instructions}\n{tools}");
    for claim in [
        "the response does not show it",
        "Calling again restarts the 7 days",
        "past that the response is the same and no email goes",
        "Email is in English unless they chose Spanish on the site",
        "No tool counts referrals: members see theirs at http",
        "The referrer and each of them must be members",
        "No tool tells whether they confirmed",
        "Consent: call this only",
        "A tool's error is JSON",
        "Who runs the union: ",
        "What joining costs: ",
        "How the union earns and pays rewards: ",
        "members choose there which to take part in",
        "change their state and categories, turn off email, download their data, leave, or have their data erased",
        "Leave it out for Puerto Rico, other territories and countries",
        "a plain sum, in which categories may overlap",
    ] {
        assert_eq!(all.matches(claim).count(), 1, "{claim} in {all}");
    }
    assert_eq!(all.matches("Arguments are ignored").count(), 3, "of the tools that read");
    assert_eq!(server.get("/join").await.status, 200);
    assert!(!tools.to_string().contains("gent action"), "a word that only the documents explain");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_over_standard_input_on_the_same_records() {
    use std::io::Write;
    let (server, key) = Server::with_key(&[]);
    let talk = |key: Option<&str>, lines: &[Value]| {
        let mut command = server.command();
        key.into_iter().for_each(|key| {
            command.env("UNIONHALL_KEY", key);
        });
        let mut process = command
            .args(["mcp", "--base-url", &format!("http://{}", server.address)])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let list = message(2, "tools/list", json!({}));
    let lines = [
        message(1, "initialize", json!({ "protocolVersion": "2025-11-25", "clientInfo": { "name": "Desk Helper" } })),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        list.clone(),
        call("createReferralLink", json!({ "email": "ana@example.com" })),
        call("signUpUser", json!({ "email": "ana@example.com" })),
    ];
    let answers = talk(Some(&key), &lines);
    assert_eq!(answers.len(), 4, "a notification is not answered");
    let evidence = server.rows("SELECT channel, client FROM sign_ups");
    assert_eq!(evidence, [["mcp", "Desk Helper"]], "what it called itself when it began is kept");
    assert_eq!(answers[1]["result"]["tools"].as_array().unwrap().len(), 5);
    let rest = server.post("/v1/referral-link", &key, crate::server::sign_up("ana@example.com")).await.good();
    assert_eq!(answers[2]["result"]["structuredContent"], rest);
    assert_eq!(talk(None, &[list])[0]["result"]["tools"].as_array().unwrap().len(), 3);
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn the_legacy_era_begins_with_initialize() {
        let server = Server::start();
        for (asked, answered) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
        ] {
            let params =
                json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            let begun = result(&send(&server, &message("a", "initialize", params)).await);
            assert_eq!(begun["protocolVersion"], answered);
            assert_eq!(begun["capabilities"], json!({ "tools": {} }));
            assert_eq!(begun["serverInfo"]["name"], "unionhall");
            let instructions = begun["instructions"].as_str().unwrap();
            holds(
                instructions,
                &["explicitly asked to join", "own email address", "check their inbox", "Authorization"],
            );
        }
        let noted = send(&server, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        assert_eq!((noted.status.as_u16(), noted.body.len()), (202, 0));
        assert_eq!(result(&send(&server, &message(1, "ping", json!({}))).await), json!({}));
        for method in ["prompts/list", "resources/list", "logging/setLevel", "nonsense", ""] {
            fault(&send(&server, &message(1, method, json!({}))).await, 200, -32601);
        }
        let session = Request::post("/mcp").header("mcp-session-id", "whatever").header("accept", "*/*");
        result(&server.send(session, message(1, "ping", json!({})).to_string()).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_modern_era_says_its_version_in_every_request() {
        let server = Server::start();
        let ask = async |method: &str, params: Value| {
            let (message, request) = modern(method, params);
            server.send(request, message.to_string()).await
        };
        let found = result(&ask("server/discover", json!({})).await);
        assert_eq!(found["supportedVersions"][0], MODERN);
        assert_eq!((&found["resultType"], &found["cacheScope"]), (&json!("complete"), &json!("private")));
        assert!(found["ttlMs"].is_u64() && found["instructions"].is_string());
        let listed = result(&ask("tools/list", json!({})).await);
        assert_eq!((listed["tools"].as_array().unwrap().len(), &listed["cacheScope"]), (3, &json!("private")));
        let called = result(&ask("tools/call", json!({ "name": "getMemberStats" })).await);
        assert_eq!(called["structuredContent"], json!({ "ok": true, "memberCount": 0 }));
        for result in [&found, &listed, &called] {
            assert_eq!(result["resultType"], "complete");
            assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "unionhall");
        }
        fault(&ask("prompts/list", json!({})).await, 404, -32601);
        fault(&ask("initialize", json!({})).await, 404, -32601);
        // Every modern request stands alone, and any of them tells that the server is up.
        fault(&ask("ping", json!({})).await, 404, -32601);
        fault(&ask("tools/call", json!({ "name": "nonsense" })).await, 400, -32602);

        let (message, _) = modern("tools/call", json!({ "name": "getMemberStats" }));
        let with = |version: &str, method: &str, name: &str| {
            let request = Request::post("/mcp").header("mcp-protocol-version", version).header("mcp-method", method);
            if name.is_empty() { request } else { request.header("mcp-name", name) }
        };
        result(&server.send(with(MODERN, "tools/call", "=?base64?Z2V0TWVtYmVyU3RhdHM=?="), message.to_string()).await);
        for wrong in [
            with("2025-11-25", "tools/call", "getMemberStats"),
            with(MODERN, "tools/list", "getMemberStats"),
            with(MODERN, "tools/call", "signUpUser"),
            with(MODERN, "tools/call", ""),
            Request::post("/mcp"),
        ] {
            fault(&server.send(wrong, message.to_string()).await, 400, -32020);
        }
        let mut other = message.clone();
        other["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
        let refused = fault(
            &server.send(with("2099-01-01", "tools/call", "getMemberStats"), other.to_string()).await,
            400,
            -32022,
        );
        assert_eq!(refused["data"]["requested"], "2099-01-01");
        assert!(refused["data"]["supported"].as_array().unwrap().contains(&json!(MODERN)));
        let mut bare = message.clone();
        bare["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
        fault(&server.send(with(MODERN, "tools/call", "getMemberStats"), bare.to_string()).await, 400, -32602);
        fault(&send(&server, &json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover" })).await, 400, -32602);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_tools_are_the_operations_and_their_schemas_the_documents() {
        let (server, key) = Server::with_key(&[]);
        let list = message(1, "tools/list", json!({}));
        let names = |answer: &Answer| {
            let tools = result(answer)["tools"].clone();
            tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let all: Vec<_> = ALL.iter().map(|op| op.spec.id.to_owned()).collect();
        for without in [
            send(&server, &list).await,
            call_with(&server, "wrong", &list).await,
            call_with(&server, &format!("{key}0"), &list).await,
        ] {
            assert_eq!(names(&without), &all[..3]);
        }
        let with = call_with(&server, &key, &list).await;
        assert_eq!(names(&with), all);

        let document: Value = serde_json::from_slice(&server.get("/openapi.json").await.body).unwrap();
        let tools = result(&with)["tools"].clone();
        for (tool, operation) in tools.as_array().unwrap().iter().zip(ALL) {
            let described = &document["paths"][operation.spec.path][operation.spec.method.name().to_lowercase()];
            assert_eq!(tool["title"], described["summary"]);
            assert_eq!(tool["description"], described["description"]);
            let reads = operation.spec.access == Access::Public;
            let mails = operation.spec.id == "signUpUser";
            let hints = json!({
                "title": operation.spec.title, "readOnlyHint": reads, "destructiveHint": false,
                "idempotentHint": !mails, "openWorldHint": mails,
            });
            assert_eq!(tool["annotations"], hints, "all four, whatever the tool");
            if reads {
                assert_eq!(tool["inputSchema"], json!({ "type": "object", "additionalProperties": false }));
            } else {
                let sent = &described["requestBody"]["content"]["application/json"]["schema"];
                assert_eq!(plain(&document, &tool["inputSchema"]), plain(&document, sent));
            }
            let given = &described["responses"]["200"]["content"]["application/json"]["schema"];
            assert_eq!(plain(&document, &tool["outputSchema"]), plain(&document, given));
            let text = tool.to_string();
            for stray in ["$ref", "\"null\"", "uint", "\"default\""] {
                assert!(!text.contains(stray), "{stray} in {text}");
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_no_message_gets_a_json_rpc_error() {
        let server = Server::start();
        let raw = async |text: &str| server.send(Request::post("/mcp"), text.to_owned()).await;
        for bad in ["", "{", "nonsense", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} x", "\u{feff}{}"] {
            assert_eq!(fault(&raw(bad).await, 400, -32700), body(&raw(bad).await)["error"]);
            assert_eq!(body(&raw(bad).await)["id"], Value::Null);
        }
        for bad in [
            "[]", "5", "{}", "null", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
        ] {
            fault(&raw(bad).await, 400, -32600);
        }
        fault(&server.send(Request::post("/mcp"), vec![b' '; 3 << 20]).await, 413, -32600);
        for method in ["GET", "DELETE", "PUT"] {
            let answer = server.send(Request::builder().method(method).uri("/mcp"), "").await;
            answer.refused(405, Value::Null);
            assert_eq!(answer.header("allow"), "POST, OPTIONS");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn pages_of_other_origins_are_refused_and_programs_are_not() {
        let ping = message(1, "ping", json!({})).to_string();
        let ask = async |server: &Server, origin: &str| {
            server.send(Request::post("/mcp").header("origin", origin), ping.clone()).await
        };
        let public = Server::start_with(&[
            "--base-url", "https://api.union.example/v", "--join-site", "https://union.example", "--mail", "hold",
            "--mcp-origins", "https://one.example,https://two.example:8443",
        ]);
        for good in
            ["https://api.union.example", "https://union.example", "https://one.example", "https://two.example:8443"]
        {
            result(&ask(&public, good).await);
        }
        for bad in [
            "https://evil.example", "http://api.union.example", "null", "http://localhost:8080",
            "https://union.example.evil.example",
        ] {
            fault(&ask(&public, bad).await, 403, -32600);
        }
        let behind = Request::post("/mcp").header("x-forwarded-host", "anything.example");
        result(&public.send(behind, ping.clone()).await);
        let local = Server::start();
        result(&ask(&local, &format!("http://localhost:{}", local.address.port())).await);
        fault(&ask(&local, "http://evil.example").await, 403, -32600);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_registry_entry_leads_to_the_endpoint() {
        let server = Server::start();
        let entry: Value = serde_json::from_slice(&server.get("/server.json").await.body).unwrap();
        let remote = &entry["remotes"][0];
        assert_eq!(remote["type"], "streamable-http");
        let descriptor = server.get("/").await.good();
        assert_eq!((&remote["url"], &entry["version"]), (&descriptor["mcp"], &descriptor["version"]));
        let path =
            remote["url"].as_str().unwrap().strip_prefix(&format!("http://{}", server.address)).unwrap().to_owned();
        let key = server.key();
        let header = remote["headers"][0]["name"].as_str().unwrap();
        let request = Request::post(path).header(header, format!("Bearer {key}"));
        let listed = server.send(request, message(1, "tools/list", json!({})).to_string()).await;
        assert_eq!(result(&listed)["tools"].as_array().unwrap().len(), 5);
        let public = Server::start_with(&["--base-url", "https://api.union.example:8443/x", "--mail", "hold"]);
        let entry: Value = serde_json::from_slice(&public.get("/server.json").await.body).unwrap();
        assert_eq!(entry["name"], "example.union.api/unionhall");
        // What the registry's schema of 2025-12-11 asks of the fields that we have.
        let text = |longest: u32| json!({ "type": "string", "minLength": 1, "maxLength": longest });
        let link = json!({ "type": "string", "pattern": "^https?://[^ ]+$", "maxLength": 255 });
        let schema = json!({
            "type": "object",
            "required": ["$schema", "name", "description", "version", "title", "websiteUrl", "icons", "remotes"],
            "properties": {
                "$schema": { "const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json" },
                "name": { "type": "string", "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$" },
                "title": text(100),
                "description": text(100),
                "version": text(255),
                "websiteUrl": link,
                "icons": { "type": "array", "minItems": 1, "items": {
                    "required": ["src", "mimeType", "sizes"],
                    "properties": {
                        "src": link,
                        "mimeType": { "enum": ["image/png", "image/jpeg", "image/svg+xml", "image/webp"] },
                        "sizes": { "type": "array", "items": { "type": "string", "pattern": "^(\\d+x\\d+|any)$" } },
                    },
                } },
                "remotes": { "type": "array", "minItems": 1, "items": {
                    "required": ["type", "url"],
                    "properties": { "type": { "const": "streamable-http" }, "url": link },
                } },
            },
        });
        let schema = jsonschema::validator_for(&schema).unwrap();
        let long = Server::start_with(&["--name", &"é".repeat(200), "--mail", "hold"]);
        for server in [&server, &public, &long] {
            let entry: Value = serde_json::from_slice(&server.get("/server.json").await.body).unwrap();
            schema.validate(&entry).unwrap_or_else(|error| panic!("{error} in {entry}"));
        }
        // The icons are there, and are what is said of them; assistants are told of the same.
        let begun = result(&send(&server, &message(1, "initialize", json!({}))).await);
        let entry: Value = serde_json::from_slice(&server.get("/server.json").await.body).unwrap();
        assert_eq!(begun["serverInfo"]["icons"], entry["icons"]);
        assert_eq!(begun["serverInfo"]["websiteUrl"], entry["websiteUrl"]);
        for icon in entry["icons"].as_array().unwrap() {
            let path = icon["src"].as_str().unwrap().strip_prefix(&format!("http://{}", server.address)).unwrap();
            let found = server.get(path).await;
            assert_eq!(
                (found.status.as_u16(), found.header("content-type")),
                (200, icon["mimeType"].as_str().unwrap())
            );
            if icon["mimeType"] == "image/png" {
                assert_eq!(&found.body[16..24], [0, 0, 1, 0, 0, 0, 1, 0], "256 by 256");
            }
        }
    }

    /// Any bytes, and messages with something wrong in them.
    #[tokio::test(flavor = "multi_thread")]
    async fn no_input_yields_anything_but_json() {
        let server = Server::start_with(&["--public-per-minute", "1000000", "--trusted-proxies", "127.0.0.0/8"]);
        let mut connection = server.connect(Ipv4Addr::LOCALHOST).await;
        let capable = json!({ "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {} });
        let odd = json!([
            null, 1.5, "x", [], {}, "2.0", "tools/call", "tools/list", "initialize", "server/discover",
            { "name": "getMemberStats", "arguments": 5 }, { "name": 5 }, { "_meta": capable },
            { "_meta": { "io.modelcontextprotocol/protocolVersion": 5 } }
        ]);
        let odd = prop::sample::select(odd.as_array().unwrap().clone());
        let field = prop_oneof![Just("jsonrpc"), Just("id"), Just("method"), Just("params"), Just("result"), Just("x")];
        let messages = prop::collection::hash_map(field, odd, 0..5).prop_map(|map| {
            let mut message = json!({ "jsonrpc": "2.0" });
            map.into_iter().for_each(|(name, value)| message[name] = value);
            message.to_string().into_bytes()
        });
        let texts = prop_oneof![3 => messages, 1 => prop::collection::vec(any::<u8>(), 0..80)];
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        for n in 0..1500_u32 {
            let text = texts.new_tree(&mut runner).unwrap().current();
            // Many addresses: the guard is not what is tested here.
            let from = Ipv4Addr::from(0x0a00_0000 + n);
            let request = Request::post("/mcp").header("x-forwarded-for", from.to_string());
            let answer = connection.send(request, text.clone()).await;
            let shown = String::from_utf8_lossy(&text);
            if answer.status == 202 {
                assert!(answer.body.is_empty(), "{shown}");
            } else {
                let body = body(&answer);
                assert!(body.get("result").is_some() != body.get("error").is_some(), "{shown}: {body}");
                assert!([200, 400, 404].contains(&answer.status.as_u16()), "{shown}: {body}");
            }
        }
        assert!(!server.log().contains("\"level\":\"error\""), "{}", server.log());
    }
}
