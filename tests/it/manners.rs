//! HTTP manners: ids, caches, headers, protocols.

use crate::prelude::*;
use hyper::Version;

#[tokio::test(flavor = "multi_thread")]
async fn health_is_told_outside_the_limits() {
    let server = Server::start_with(&["--public-per-minute", "1"]);
    for _ in 0..5 {
        assert_eq!(server.get("/healthz").await.good(), json!({ "ok": true }));
        let ready = json!({
            "ok": true, "store": "usable", "limits": server.records().limits(), "mail": "untried", "signUps": "taken",
            // A debug build is of no revision.
            "version": env!("CARGO_PKG_VERSION"), "revision": null,
        });
        assert_eq!(server.get("/readyz").await.good(), ready);
    }
    server.execute("ALTER TABLE readiness RENAME TO away");
    server.get("/healthz").await.good();
    // What was found is believed for a second.
    wait_for!(async || server.get("/readyz").await.status == 503).await;
    let away = server.get("/readyz").await;
    assert!(away.refused(503, Value::Null).contains("store"));
    assert!(!away.header("retry-after").is_empty());
    let told = ["no such table", "does not exist"];
    wait_for!(async || told.iter().any(|told| server.log().contains(told))).await;
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn request_ids_are_kept_if_sane_and_always_returned() {
        let server = Server::start();
        let own = server.send(Request::get("/v1/stats").header("x-request-id", "abc-123.x_y:z"), "").await;
        assert_eq!(own.header("x-request-id"), "abc-123.x_y:z");
        let long = "x".repeat(65);
        for odd in ["", "a b", "a\"b", "a/b", long.as_str()] {
            let answer = server.send(Request::get("/nowhere").header("x-request-id", odd), "").await;
            let id = answer.header("x-request-id");
            assert!(id.len() == 16 && id != odd, "{id}");
        }
        assert_ne!(server.get("/").await.header("x-request-id"), server.get("/").await.header("x-request-id"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_static_listings_are_cached_and_checked_by_tag() {
        let server = Server::start();
        for path in
            ["/v1/negotiate-categories", "/v1/referral-program", "/openapi.json", "/docs", "/docs.md", "/llms.txt"]
        {
            let full = server.get(path).await;
            let tag = full.header("etag").to_owned();
            assert!(tag.starts_with('"') && tag.ends_with('"'), "{path} {tag}");
            assert_eq!(full.header("cache-control"), "private, max-age=300");
            for known in [tag.clone(), format!("\"other\", W/{tag}"), "*".to_owned()] {
                let again = server.send(Request::get(path).header("if-none-match", known), "").await;
                assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
                assert_eq!(
                    (again.header("etag"), again.header("cache-control")),
                    (tag.as_str(), "private, max-age=300")
                );
                assert_eq!(again.header("content-type"), "");
            }
            let changed = server.send(Request::get(path).header("if-none-match", "\"other\""), "").await;
            assert_eq!(changed.body, full.body);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_live_or_personal_is_not_stored() {
        let (server, key) = Server::with_key(&["--public-per-minute", "1"]);
        let mut answers = vec![
            server.get("/v1/stats").await,
            server.get("/v1/negotiate-categories").await,
            server.get("/healthz").await,
            server.get("/readyz").await,
            server.get("/nowhere").await,
        ];
        assert_eq!(answers[1].status, 429);
        for path in ["/v1/invite", "/v1/referral-link"] {
            answers.push(server.post(path, &key, sign_up("ana@example.com")).await);
            answers.push(server.post(path, &key, "{").await);
            answers.push(server.post(path, "", "{").await);
        }
        for answer in answers {
            assert_eq!((answer.header("cache-control"), answer.header("etag")), ("no-store", ""), "{answer:?}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_answer_is_guarded() {
        let plain = Server::start();
        let secure = Server::start_with(&["--base-url", "https://api.union.example"]);
        for path in ["/", "/v1/stats", "/docs", "/nowhere", "/healthz", "/openapi.json", "/style.css"] {
            for server in [&plain, &secure] {
                let answer = server.get(path).await;
                assert_eq!(answer.header("x-content-type-options"), "nosniff");
                // What a browser shows as a page, or loads into one.
                if answer.header("content-type") != "application/json" {
                    assert!(answer.header("content-security-policy").starts_with("default-src 'none'"), "{path}");
                    assert!(answer.header("content-security-policy").contains("frame-ancestors 'none'"), "{path}");
                    assert_eq!(answer.header("referrer-policy"), "strict-origin", "{path}");
                }
                assert_eq!(answer.header("server"), "");
            }
            assert_eq!(plain.get(path).await.header("strict-transport-security"), "");
            assert_eq!(secure.get(path).await.header("strict-transport-security"), "max-age=31536000");
        }
        assert_eq!(plain.get("/").await.header("vary"), "Accept");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn connections_are_kept_alive_and_http_2_is_spoken_without_a_preamble() {
        let (server, key) = Server::with_key(&[]);
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        // Many at once on one connection; each is counted.
        let answers = (0..61).map(|_| {
            let request = Request::get(format!("http://{}/v1/stats", server.address));
            sender.send_request(request.body(Full::<bytes::Bytes>::default()).unwrap())
        });
        let mut statuses = Vec::new();
        for answer in answers.collect::<Vec<_>>() {
            let answer = answer.await.unwrap();
            assert_eq!(answer.version(), Version::HTTP_2);
            statuses.push(answer.status().as_u16());
            answer.into_body().collect().await.unwrap();
        }
        statuses.sort_unstable();
        assert_eq!((statuses[59], statuses[60]), (200, 429));
        // The same connection for one request after the other, from another address.
        let mut connection = server.connect(Ipv4Addr::new(127, 0, 0, 2)).await;
        for n in 0..20 {
            connection.send(Request::get("/v1/stats"), "").await.good();
            let request = Request::post("/v1/referral-link").header("authorization", format!("Bearer {key}"));
            connection.send(request, sign_up(&format!("ana{n}@example.com"))).await.good();
            // A refusal does not cost the connection either.
            connection.send(Request::post("/v1/invite"), "{}").await.refused(401, "agent_unauthorized");
        }
    }

    /// A proxy and we might each believe another of two.
    #[tokio::test(flavor = "multi_thread")]
    async fn two_keys_are_none_and_a_host_is_named_once() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (server, key) = Server::with_key(&[]);
        let ask = async |head: &str| {
            let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
            stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        for hosts in ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n"] {
            let answer = ask(&format!("GET /v1/stats HTTP/1.1\r\n{hosts}")).await;
            assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("\"ok\":false"), "{answer}");
        }
        assert!(ask("GET /v1/stats HTTP/1.1\r\nHost: a\r\n").await.starts_with("HTTP/1.1 200"));
        assert!(ask("GET /v1/stats HTTP/1.0\r\n").await.starts_with("HTTP/1.0 200"));
        let two = |one: &str, other: &str| {
            Request::post("/v1/referral-link").header("authorization", one).header("authorization", other)
        };
        let good = format!("Bearer {key}");
        for (one, other) in [(good.as_str(), good.as_str()), (&good, "Bearer x"), ("Bearer x", &good)] {
            server.send(two(one, other), sign_up("ana@example.com")).await.refused(401, "agent_unauthorized");
        }
    }
}
