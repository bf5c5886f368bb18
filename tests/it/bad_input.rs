//! Whatever is sent, the contract's error comes back and nothing is changed.

use crate::prelude::*;

const BOTH: [&str; 2] = ["/v1/invite", "/v1/referral-link"];

fn people(server: &Server) -> i64 {
    server.number("SELECT count(*) FROM people")
}

fn server() -> (Server, String) {
    Server::with_key(&["--key-per-minute", "100000"])
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_open_nothing() {
    let (server, key) = server();
    let foreign = Server::start();
    let changed: String =
        key.char_indices().map(|(i, c)| if i == 20 { if c == 'a' { 'b' } else { 'a' } } else { c }).collect();
    // Right in form and checksum, with the id of a key that exists but another secret.
    let forged = {
        let body = format!("{}{}", &key[..12], "z".repeat(32));
        let sum = unionhall::domain::base32::encode::<7>(&crc32fast::hash(body.as_bytes()).to_be_bytes());
        let forged = format!("{body}{}", std::str::from_utf8(&sum).unwrap());
        unionhall::domain::api_key::ApiKey::parse(&forged).expect("right in form");
        forged
    };
    let huge = "x".repeat(8000);
    for path in BOTH {
        for bad in ["", " ", &huge, &foreign.key(), &changed, &forged, &key[1..], &key.to_uppercase(), "null"] {
            let answer = server.post(path, bad, r#"{"email": "ana@example.com"}"#).await;
            let message = answer.refused(401, "agent_unauthorized");
            assert!(message.contains("Authorization: Bearer <API_KEY>"), "{message}");
            assert!(!message.contains(&key[12..]), "{message}");
        }
        let basic = Request::post(path).header("authorization", format!("Basic {key}"));
        server.send(basic, "{}").await.refused(401, "agent_unauthorized");
        server.send(Request::post(path), "{}").await.refused(401, "agent_unauthorized");
    }
    assert_eq!(people(&server), 0);
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_not_json_too_large_or_of_another_type() {
        let (server, key) = server();
        let nested = format!("{{\"email\": {}{}}}", "[".repeat(5000), "]".repeat(5000));
        let short: [&[u8]; 10] = [
            b"", b" \n", b"{\"email\": \"ana@example.com\"", b"{\"email\": \"ana@exam",
            b"{\"email\": \"ana@example.com\"} trailing", b"{\"email\": \"ana@example.com\"}{}",
            b"{\"email\": \"\xff\xfe@example.com\"}", b"{email: \"ana@example.com\"}", b"email=ana%40example.com",
            b"\0",
        ];
        let long = [vec![b'['; 100_000], nested.into_bytes()];
        for path in BOTH {
            for body in short.into_iter().chain(long.iter().map(Vec::as_slice)) {
                let message = server.post(path, &key, body.to_vec()).await.refused(400, "invalid_json");
                assert!(message.starts_with("What was sent is not valid JSON: "), "{message}");
            }
        }
        assert_eq!(people(&server), 0);

        let body = |size: usize| {
            let start = r#"{"email": "ana@example.com"}"#;
            format!("{start}{}", " ".repeat(size - start.len()))
        };
        for path in BOTH {
            server.post(path, &key, body(1 << 20)).await.good();
            for size in [(1 << 20) + 1, 3 << 20] {
                holds(&server.post(path, &key, body(size)).await.refused(400, "invalid_submission"), &["1 MiB"]);
            }
        }

        let send = async |kind: Option<&str>| {
            let mut request = Request::post("/v1/referral-link").header("authorization", format!("Bearer {key}"));
            if let Some(kind) = kind {
                request = request.header("content-type", kind);
            }
            server.send(request, r#"{"email": "ana@example.com"}"#).await
        };
        for kind in
            ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json", "text/json", "+json"]
        {
            let message = send(Some(kind)).await.refused(400, "invalid_json");
            assert!(message.contains("application/json"), "{kind}: {message}");
        }
        for kind in
            [None, Some("application/json"), Some("Application/JSON; charset=utf-8"), Some("application/ld+json")]
        {
            send(kind).await.good();
        }
        for (kind, part) in [
            ("application/x-www-form-urlencoded", "(curl: -H 'Content-Type: application/json')"),
            ("text/plain; charset=utf-8", "plain text; send the header Content-Type: application/json"),
            ("application/xml", "something else; send the header Content-Type: application/json"),
        ] {
            let request = Request::post("/v1/invite").header("authorization", format!("Bearer {key}"));
            let message = server.send(request.header("content-type", kind), "{}").await.refused(400, "invalid_json");
            assert!(message.contains(part), "{kind}: {message}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_does_not_fit_the_schema() {
        let (server, key) = server();
        let mut cases = vec![
            ("{}".to_owned(), "email: it is missing"),
            ("[]".to_owned(), "object"),
            ("null".to_owned(), "object"),
            ("\"ana@example.com\"".to_owned(), "object"),
            ("5".to_owned(), "object"),
            ("[\"ana@example.com\", \"CA\", {}, \"\", \"\"]".to_owned(), "object"),
            (r#"{"email": "ana@example.com", "email": "ana@example.com"}"#.to_owned(), "email: it is named twice"),
            (r#"{"email": "ana@example.com", "phone": "1"}"#.to_owned(), "phone"),
            (r#"{"Email": "ana@example.com"}"#.to_owned(), "Email"),
            (r#"{"email": "ana@example.com", "": 1}"#.to_owned(), "unknown field"),
        ];
        for wrong in [json!(null), json!(5), json!(true), json!([]), json!({})] {
            cases.push((json!({ "email": wrong }).to_string(), "email: "));
        }
        for (body, part) in &cases {
            for path in BOTH {
                let message = server.post(path, &key, body.clone()).await.refused(400, "invalid_submission");
                assert!(message.contains(part), "{body}: {message}");
            }
        }

        let mut cases = Vec::new();
        let wrong_types = |allowed: &str| {
            let all = [
                ("null", json!(null)),
                ("number", json!(5)),
                ("bool", json!(true)),
                ("text", json!("x")),
                ("list", json!([])),
            ];
            all.into_iter().filter(|(kind, _)| *kind != allowed).map(|(_, value)| value).collect::<Vec<_>>()
        };
        for (field, allowed) in [("usState", ""), ("categories", ""), ("otherComments", "text"), ("refCode", "text")] {
            for wrong in wrong_types(allowed) {
                cases.push((json!({ field: wrong }), format!("{field}: ")));
            }
        }
        for near in ["ca", "California", " CA", "CA "] {
            cases.push((json!({ "usState": near }), "usState: not a state code; did you mean CA?".to_owned()));
        }
        for wrong in ["PR", "", "XX"] {
            cases.push((json!({ "usState": wrong }), "usState: not a state code; use one of AL".to_owned()));
        }
        for wrong in wrong_types("bool") {
            cases.push((json!({ "categories": { "travel": wrong } }), "categories.travel: ".to_owned()));
        }
        cases.push((json!({ "categories": { "pets": true } }), "categories.pets: not a category".to_owned()));
        cases.push((json!({ "categories": { "Travel": true } }), "categories.Travel: not a category".to_owned()));
        cases.push((json!({ "otherComments": "é".repeat(1001) }), "otherComments: ".to_owned()));
        for (mut body, begins) in cases {
            body["email"] = json!("ana@example.com");
            let answer = server.post("/v1/invite", &key, body.to_string()).await;
            let message = answer.refused(400, "invalid_submission");
            assert!(message.starts_with(&begins), "{body}: {message}");
        }
        assert_eq!(people(&server), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_no_address() {
        let (server, key) = server();
        let long = [
            format!("{}@example.com", "a".repeat(309)),
            format!("{}@example.com", "a".repeat(65)),
            format!("{}@example.com", "é".repeat(33)),
        ];
        let odd = [
            "", " ", "ana", "@", "ana@", "@example.com", "ana@b@example.com", "ana@example", "ana@example.com ",
            " ana@example.com", "an a@example.com", "ana@exa mple.com", "ana\n@example.com",
            "ana@example.com\r\nBcc: x@y.zz", "an\u{0}a@example.com", "an\u{1f}a@example.com", "an\u{7f}a@example.com",
            "an\u{85}a@example.com", "ana\u{a0}@example.com", "ana\u{200b}@example.com", "\u{202e}ana@example.com",
            "ana@exam\tple.com", ".ana@example.com", "ana.@example.com", "a..na@example.com", "ana@.example.com",
            "ana@example..com", "ana@example.com.", "ana@-example.com", "ana@example-.com", "\"ana\"@example.com",
            "ana@[127.0.0.1]", "Ana <ana@example.com>", "ana@example.com,ben@example.com", "mailto:ana@example.com",
            "ana@exa_mple.com",
        ];
        for bad in odd.into_iter().chain(long.iter().map(String::as_str)) {
            for path in BOTH {
                let message = server
                    .post(path, &key, json!({ "email": bad }).to_string())
                    .await
                    .refused(400, "invalid_submission");
                assert!(message.starts_with("email: the address "), "{bad:?}: {message}");
            }
        }
        assert_eq!(people(&server), 0);
        let longest = format!("{}@{}example.com", "é".repeat(32), "ab.".repeat(92));
        for path in BOTH {
            server.post(path, &key, json!({ "email": longest }).to_string()).await.good();
        }
    }
}
