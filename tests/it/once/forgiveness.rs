//! A partner's engineer makes the usual slips, and each answer says what was meant and what would be right.

use crate::prelude::*;

const ACTIONS: [&str; 2] = ["/v1/invite", "/v1/referral-link"];

/// Calls a tool of MCP with a key; gives what it refused with.
async fn refused_tool(server: &Server, key: &str, name: &str, arguments: Value) -> Value {
    let message = tool_call(name, arguments);
    let request = Request::post("/mcp").header("authorization", format!("Bearer {key}"));
    let result = server.send(request, message.to_string()).await.json_rpc()["result"].clone();
    assert_eq!(result["isError"], true, "{result}");
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mistake_of_a_body_is_told_at_once_over_both_channels() {
    let (server, key) = Server::with_key(&[]);
    let body = r#"{"email": "nobody", "usState": null, "categories": {"travel": null, "pets": true, "internet": 1},
            "otherComments": null, "refCode": null, "phone": "1", "ref_code": "x", "email": "b@example.com"}"#;
    let told = server.post("/v1/invite", &key, body).await.refused(400, "invalid_submission");
    holds(
        &told,
        &[
            "10 mistakes: ",
            "email: it is named twice; send it once.",
            "email: the address has no @",
            "usState: null is no value; send a two-letter state code in a string, or leave it out.",
            "categories.travel: null is no value; send a boolean, or leave it out.",
            "categories.pets: not a category; use one of mobile_bills, ",
            "categories.internet: send a boolean, not the integer 1.",
            "otherComments: null is no value; send a string, or leave it out.",
            "refCode: null is no value; send a referral code in a string, or leave it out.",
            "phone: unknown field",
            "ref_code: unknown field; did you mean refCode?",
        ],
    );
    // As a tool: its arguments may not name anything twice and be read as a value here.
    let arguments = json!({ "email": null, "usState": null, "categories": null, "otherComments": null,
        "refCode": null, "phone": 1 });
    let refused = refused_tool(&server, &key, "signUpUser", arguments).await;
    assert_eq!(refused["code"], "invalid_submission");
    let told = refused["error"].as_str().unwrap();
    assert!(told.starts_with("6 mistakes: ") && told.matches(", or leave it out.").count() == 4, "{told}");
    assert!(told.contains("email: null is no value; send an email address in a string."), "{told}");
    let refused = refused_tool(&server, &key, "createReferralLink", json!(r#"{"email": "a@example.com"}"#)).await;
    assert!(refused["error"].as_str().unwrap().contains("encode it once, not twice"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_in_another_form_are_told_so() {
    let (server, key) = Server::with_key(&[]);
    let body = br#"{"email": "ana@example.com"}"#;
    let utf16 = |mark: &[u8], swap: bool| {
        let units = body.iter().flat_map(|byte| if swap { [0, *byte] } else { [*byte, 0] });
        mark.iter().copied().chain(units).collect::<Vec<u8>>()
    };
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec();
    let cases = [
        (gzip.clone(), "it is compressed; send it plain"),
        (b"\x28\xb5\x2f\xfd\x24".to_vec(), "it is compressed; send it plain"),
        ([&b"\xef\xbb\xbf"[..], body].concat(), "it begins with a byte order mark (BOM); send it without one"),
        (utf16(b"\xff\xfe", false), "it looks like UTF-16; send it in UTF-8"),
        (utf16(b"\xfe\xff", true), "it looks like UTF-16; send it in UTF-8"),
        (utf16(b"", false), "it looks like UTF-16; send it in UTF-8"),
        (utf16(b"", true), "it looks like UTF-16; send it in UTF-8"),
    ];
    for (bytes, told) in cases {
        for path in ACTIONS {
            let message = server.post(path, &key, bytes.clone()).await.refused(400, "invalid_json");
            assert_eq!(message, format!("What was sent is not valid JSON: {told}"));
        }
        let answer = server.send(Request::post("/mcp"), bytes).await;
        let error = &answer.json_rpc()["error"];
        assert_eq!((answer.status.as_u16(), &error["code"]), (400, &json!(-32700)), "{error}");
        assert!(error["message"].as_str().unwrap().ends_with(told), "{error}");
    }
    for encoding in ["gzip", "br", "deflate, gzip", "x"] {
        let request = |path: &str| {
            let request = Request::post(path).header("content-encoding", encoding);
            request.header("content-type", "application/json").header("authorization", format!("Bearer {key}"))
        };
        let message = server.send(request("/v1/referral-link"), gzip.clone()).await.refused(400, "invalid_json");
        assert!(message.contains("its Content-Encoding says that it is compressed"), "{message}");
        let error = &server.send(request("/mcp"), gzip.clone()).await.json_rpc()["error"];
        assert_eq!(error["code"], -32700, "{error}");
        assert!(error["message"].as_str().unwrap().contains("Content-Encoding"), "{error}");
    }
    for plain in ["identity", "IDENTITY", ""] {
        let request = Request::post("/v1/referral-link").header("content-encoding", plain);
        server.send(request.header("authorization", format!("Bearer {key}")), &body[..]).await.good();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_came_another_way_is_seen_and_never_repeated() {
    let (server, key) = Server::with_key(&[]);
    let post = |path: &str| Request::post(path).header("content-type", "application/json");
    let in_query = format!("/v1/invite?api_key={key}");
    for (request, part) in [
        (post("/v1/invite").header("x-api-key", &key), "A key in X-API-Key or a header like it is not read"),
        (post(&in_query), "A key in the address is not read"),
        (post("/v1/invite").header("authorization", &key), "a key without the word Bearer before it"),
        (post("/v1/invite").header("authorization", "Basic dXNlcjpwYXNz"), "The Authorization header is Basic"),
        (post("/v1/invite").header("authorization", format!("Token {key}")), "is not a bearer key"),
        (post("/v1/invite").header("authorization", ""), "is empty, or there are two of them"),
        (
            post("/v1/invite")
                .header("authorization", format!("Bearer {key}"))
                .header("authorization", format!("Bearer {key}")),
            "is empty, or there are two of them",
        ),
        (post("/v1/invite").header("authorization", format!("Bearer \"{key}\"")), "quotes or brackets around it"),
        (post("/v1/invite").header("authorization", "Bearer <API_KEY>"), "placeholder and not a key"),
        (post("/v1/invite"), "This operation needs an API key."),
    ] {
        let answer = server.send(request, "{}").await;
        let message = answer.refused(401, "agent_unauthorized");
        assert!(message.contains(part), "{message}");
        assert!(message.contains("Send \"Authorization: Bearer <API_KEY>\""), "{message}");
        assert!(!message.contains(&key[3..11]), "{message}");
    }
    // As a tool, too.
    let call = tool_call("signUpUser", json!({}));
    for (request, part) in [
        (post("/mcp").header("x-api-key", &key), "X-API-Key"),
        (post(&format!("/mcp?token={key}")), "A key in the address is not read"),
    ] {
        let result = server.send(request, call.to_string()).await.json_rpc()["result"].clone();
        assert!(result["content"][0]["text"].as_str().unwrap().contains(part), "{result}");
    }
    // Public data is for everybody, whatever they send.
    server.send(Request::get("/v1/stats?api_key=x").header("x-api-key", &key), "").await.good();
}

#[tokio::test(flavor = "multi_thread")]
async fn other_shapes_get_the_right_one_shown() {
    let (server, key) = Server::with_key(&[]);
    for (body, told) in [
        (r#"[{"email": "ana@example.com"}]"#, "what was sent is a list: one object at a time."),
        (r#""{\"email\": \"ana@example.com\"}""#, "encode it once, not twice."),
        (r#"{"email": " ana@example.com "}"#, "white space or an invisible character in it or around it"),
        (r#"{"email": "ana@example.com", "usState": "texas"}"#, "usState: not a state code; did you mean TX?"),
        (
            r#"{"email": "ana@example.com", "categories": ["travel", "internet"]}"#,
            r#"categories: send an object of category slugs to booleans, not a list: {"internet": true, "travel": true}."#,
        ),
        (r#"{"email": "ana@example.com", "categories": "travel"}"#, r#"not a text: {"travel": true}."#),
    ] {
        let message = server.post("/v1/invite", &key, body).await.refused(400, "invalid_submission");
        assert!(message.contains(told), "{body}: {message}");
    }
}

/// By bytes, as mail servers count; the form says it too, and who was taken before can still sign in.
#[tokio::test(flavor = "multi_thread")]
async fn what_stands_before_the_at_is_bounded() {
    let (server, key) = Server::with_key(&[]);
    for (local, fits) in
        [("a".repeat(64), true), ("a".repeat(65), false), ("é".repeat(32), true), ("é".repeat(33), false)]
    {
        let email = format!("{local}@example.com");
        for path in ACTIONS {
            let answer = server.post(path, &key, json!({ "email": email }).to_string()).await;
            match fits {
                true => drop(answer.good()),
                false => {
                    let message = answer.refused(400, "invalid_submission");
                    assert!(message.starts_with("email: the address has more than 64 bytes before the @"), "{message}");
                }
            }
        }
    }
    let form = |path: &str| Request::post(path).header("sec-fetch-site", "same-origin");
    let typed = format!("email={}%40example.com", "a".repeat(65));
    let text = server.submit(form("/join"), typed.clone()).await.text();
    assert!(text.contains("That is too long for an email address."), "{text}");
    let asked = server.send(form("/me/sign-in"), typed).await;
    let cookie = asked.header("set-cookie").split(';').next().unwrap();
    let shown = server.send(Request::get("/me/sign-in").header("cookie", cookie), "").await;
    page(&shown, 200, "Check your inbox");
}
