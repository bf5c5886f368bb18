//! What the operator reads, and what they must never read.

use crate::prelude::*;

fn lines(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_line_a_request_and_no_address_key_or_token_in_any() {
    let (server, key) = Server::with_key(&["--log", "requests", "--mail", "hold"]);
    let secret_address = "very.secret.person@example.com";
    server
        .send(Request::get("/v1/stats?email=very.secret.person@example.com").header("x-request-id", "mine"), "")
        .await;
    server.post("/v1/invite", &key, sign_up(secret_address)).await.good();
    server.post("/v1/invite", &key, format!("{{\"{secret_address}\": 1}}")).await;
    server.post("/v1/invite", &key, format!("{secret_address} {key}")).await;
    server.post("/v1/invite", &format!("{key}x"), sign_up(secret_address)).await;
    server.get(&format!("/confirm/{key}/{secret_address}")).await;
    server.send(Request::builder().method("SECRETPERSON").uri("/"), "").await;
    // A fault of the store while it is used, too.
    server.execute("ALTER TABLE people RENAME TO gone");
    server.post("/v1/invite", &key, sign_up(secret_address)).await.refused(500, "save_failed");
    let asked = 8;
    let home = server.stopped();
    let log = std::fs::read_to_string(home.path().join("stderr")).unwrap();
    for secret in [secret_address, "secret.person", "SECRETPERSON", &key, &key[12..44], "confirm"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
    let (requests, problems): (Vec<_>, Vec<_>) = lines(&log).into_iter().partition(|line| line.get("route").is_some());
    assert_eq!(requests.len(), asked, "{log}");
    let first = &requests[0];
    assert_eq!((&first["method"], &first["route"]), (&Value::from("GET"), &Value::from("/v1/stats")));
    assert_eq!((&first["status"], &first["request_id"]), (&Value::from(200), &Value::from("mine")));
    assert!(first["duration_us"].is_u64() && first["time"].is_string() && first.get("key").is_none());
    assert_eq!(requests[1]["key"], key[3..11]);
    assert_eq!(requests[5]["route"], "(none)");
    assert_eq!(problems.len(), 1);
    let told = problems[0]["message"].as_str().unwrap();
    assert!(told.contains("no such table") || told.contains("does not exist"), "in the store's own words: {told}");
    assert_eq!(problems[0]["request_id"], requests[7]["request_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_went_away_is_in_the_log() {
    use tokio::io::AsyncWriteExt;
    let (server, key) = Server::with_key(&["--log", "requests"]);
    let held = server.hold();
    // The key is known from now on: what follows waits for nothing but its write.
    server.send(Request::get("/v1/stats").header("authorization", format!("Bearer {key}")), "").await.good();
    let body = sign_up("ana@example.com");
    let head = format!("POST /v1/invite HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nX-Request-Id: {key}\r\n");
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    // Whoever goes away before the request was read leaves no line; then another does the same.
    let in_the_log = async || server.log().contains("499");
    let went_away = async || {
        let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        server.get("/healthz").await.good();
        drop(stream);
        // Each round trip gives it time to notice.
        for _ in 0..50 {
            server.get("/healthz").await.good();
            if in_the_log().await {
                return true;
            }
        }
        false
    };
    wait_for!(went_away).await;
    drop(held);
    let log = server.log();
    let line = lines(&log).into_iter().find(|line| line["status"] == 499).unwrap();
    assert_eq!((&line["route"], &line["key"]), (&Value::from("/v1/invite"), &Value::from(&key[3..11])));
    assert!(!log.contains(&key[12..]), "a key sent as an id is not logged");
}

mod once {
    use super::*;

    /// A collector that parses JSON meets nothing else, from the start to the stop.
    #[tokio::test(flavor = "multi_thread")]
    async fn every_line_of_a_whole_run_is_json_with_a_time_and_a_level() {
        let variables = [("UNIONHALL_LISTN", "8080"), ("UNIONHALL_BASE_URL", "http://union.example")];
        let server = Server::start_with_env(&variables, &["--log", "requests"]);
        let key = server.key();
        server.get("/v1/referral-program").await.good();
        server.post("/v1/invite", &key, "{}").await.refused(400, "invalid_submission");
        server.execute("ALTER TABLE installation RENAME TO away");
        assert_eq!(server.get("/v1/stats").await.status, 503);
        server.signal("HUP");
        wait_for!(async || server.log().contains("to read again")).await;
        let stdout = server.data().with_file_name("stdout");
        let printed = || std::fs::read_to_string(&stdout).unwrap();
        wait_for!(async || printed().contains("a --contact-email.")).await;
        let greeting = lines(&printed());
        let version = format!("unionhall {} listens on http://{}", env!("CARGO_PKG_VERSION"), server.address);
        assert_eq!(greeting[0]["message"], version);
        // A fact a line, each short, and commands that can be pasted.
        let messages: Vec<_> = greeting.iter().map(|line| line["message"].as_str().unwrap()).collect();
        assert!(messages.len() >= 8 && messages.iter().all(|message| !message.contains('\n')), "{messages:#?}");
        let step = |n: &str| messages.iter().find(|message| message.starts_with(n)).unwrap();
        assert!(step("3. ").ends_with("-d '{\"email\": \"ana@example.com\", \"categories\": {\"internet\": true}}'"));
        assert!(
            !step("3. ").contains('\\') && step("1. ").contains("curl http://union.example/v1/negotiate-categories")
        );
        let home = server.stopped();
        let log = lines(&std::fs::read_to_string(home.path().join("stderr")).unwrap());
        for line in greeting.iter().chain(&log) {
            assert!(line["time"].is_string() && (line["message"].is_string() || line["route"].is_string()), "{line}");
            assert!(["info", "warn", "error"].contains(&line["level"].as_str().unwrap()), "{line}");
        }
        let level = |part: &str| {
            let line = log.iter().find(|line| line.to_string().contains(part));
            line.unwrap_or_else(|| panic!("no {part} in {log:#?}"))["level"].clone()
        };
        assert_eq!(level("UNIONHALL_LISTN is not a setting"), "warn");
        assert_eq!(level("the savings and rewards shown are the sample's"), "warn");
        assert_eq!(level("people will ask who runs the union"), "warn");
        assert_eq!(level("no text of yours for about, privacy, terms"), "warn");
        assert_eq!((level("\"status\":200"), level("\"status\":400")), ("info".into(), "info".into()));
        assert_eq!((level("\"status\":503"), level("to read again")), ("error".into(), "info".into()));
        // A start that fails, at any level; as text it is the one plain line.
        let failed = |format: &str| {
            let mut command = crate::server::unionhall(home.path());
            let flags = ["serve", "--catalog", "nowhere.toml", "--log", "off", "--log-format", format];
            let output = command.args(flags).output().unwrap();
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
            String::from_utf8(output.stderr).unwrap()
        };
        let [line] = &lines(&failed("json"))[..] else { panic!("more than one line") };
        assert!(line["level"] == "error" && line["message"].as_str().unwrap().starts_with("cannot read the catalog"));
        assert!(failed("text").starts_with("unionhall: cannot read the catalog nowhere.toml"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn levels_hold() {
        for (level, expected) in [("off", 0), ("errors", 1), ("requests", 3)] {
            let server = Server::start_with(&["--log", level]);
            server.get("/v1/referral-program").await.good();
            server.execute("ALTER TABLE installation RENAME TO away");
            assert_eq!(server.get("/v1/stats").await.status, 503);
            let (_, home) = server.stop();
            let log = std::fs::read_to_string(home.path().join("stderr")).unwrap();
            assert_eq!(lines(&log).len(), expected, "{level}: {log}");
        }
    }

    /// "Why was my request refused yesterday?" has an answer for whoever has the request's id, and holds nothing that was sent.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_refusal_is_told_with_its_code_and_fields_at_every_level() {
        for level in ["errors", "requests"] {
            let (server, key) = Server::with_key(&["--log", level, "--mail", "hold", "--key-per-minute", "4"]);
            let post = async |id: &str, key: &str, body: &str| {
                let request = Request::post("/v1/invite").header("authorization", format!("Bearer {key}"));
                server.send(request.header("x-request-id", id), body.to_owned()).await
            };
            post("one", "wrong", "{}").await;
            post("two", &key, "{").await;
            let body = r#"{"email": "very.secret@", "secret.person@example.com": 1, "categories": {"pets": true}, "usState": "XX"}"#;
            post("three", &key, body).await;
            let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"signUpUser","arguments":{"email":1}}}"#;
            let request =
                Request::post("/mcp").header("authorization", format!("Bearer {key}")).header("x-request-id", "four");
            server.send(request.header("content-type", "application/json"), call).await;
            for _ in 0..3 {
                post("five", &key, "{}").await;
            }
            server.get("/nowhere").await;
            let (_, home) = server.stop();
            let log = std::fs::read_to_string(home.path().join("stderr")).unwrap();
            let refused = |id: &str| {
                let line = lines(&log).into_iter().rfind(|line| line["request_id"] == id);
                let line = line.unwrap_or_else(|| panic!("{level}: no {id} in {log}"));
                let fields: Vec<_> = line["fields"].as_array().into_iter().flatten().map(Value::to_string).collect();
                (line["error"].as_str().unwrap().to_owned(), fields.join(" "))
            };
            let told = |code: &str, fields: &str| (code.to_owned(), fields.to_owned());
            assert_eq!(refused("one"), told("agent_unauthorized", ""));
            assert_eq!(refused("two"), told("invalid_json", ""));
            assert_eq!(refused("three"), told("invalid_submission", r#""email" "?" "categories.?" "usState""#));
            assert_eq!(refused("four"), told("invalid_submission", r#""email""#));
            assert_eq!(refused("five"), told("rate_limited", ""));
            assert!(!log.contains("secret") && !log.contains("pets"), "{log}");
            let requests = lines(&log).into_iter().filter(|line| line.get("route").is_some()).count();
            assert_eq!(requests, if level == "errors" { 7 } else { 8 }, "what is no operation is no refusal: {log}");
        }
    }
}
