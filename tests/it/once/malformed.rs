//! What is no request of HTTP gets an answer of ours all the same: the Error body, the right status, the end of the connection.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::metrics::Watched;
use crate::once::https::{certify, connect};
use crate::server::{Server, block_on, in_time};

/// What may be sent by mistake or on purpose, and the status that it gets.
fn malformed() -> Vec<(&'static str, Vec<u8>, u16)> {
    let many: String = (0..200).map(|n| format!("X-{n}: 1\r\n")).collect();
    let large = "a".repeat(1 << 20);
    let hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[1; 500]].concat();
    vec![
        ("garbage", b"garbage\r\n\r\n".to_vec(), 400),
        ("another version", b"GET / HTTP/9.9\r\nHost: a\r\n\r\n".to_vec(), 400),
        ("no version", b"GET /v1/stats\r\n\r\n".to_vec(), 400),
        ("a path with spaces", b"GET /v1/a b HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), 400),
        ("a method that is none", b"G@T / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), 400),
        ("no colon", b"GET / HTTP/1.1\r\nHost: a\r\nNoColon\r\n\r\n".to_vec(), 400),
        ("a space before the colon", b"GET / HTTP/1.1\r\nHost : a\r\n\r\n".to_vec(), 400),
        ("a NUL", b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n".to_vec(), 400),
        ("a length in words", b"POST /v1/invite HTTP/1.1\r\nHost: a\r\nContent-Length: abc\r\n\r\n".to_vec(), 400),
        (
            "two lengths",
            b"POST /v1/invite HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_vec(),
            400,
        ),
        (
            "a framing that is none",
            b"POST /v1/invite HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n".to_vec(),
            400,
        ),
        ("half of the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".to_vec(), 400),
        ("the beginning of TLS", hello, 400),
        ("many headers", format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n").into_bytes(), 431),
        ("a large header", format!("GET / HTTP/1.1\r\nHost: a\r\nX: {large}\r\n\r\n").into_bytes(), 431),
        ("a long address", format!("GET /{large} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes(), 414),
    ]
}

/// Sends it, in pieces of so many bytes, and gives all that comes back until the other side closes.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, sent: &[u8], piece: usize) -> String {
    for part in sent.chunks(piece) {
        stream.write_all(part).await.unwrap();
        stream.flush().await.unwrap();
    }
    let mut answer = Vec::new();
    in_time("the server to close", stream.read_to_end(&mut answer)).await.expect("and not by a reset");
    String::from_utf8(answer).unwrap()
}

/// The message of an answer that is ours, whole and the last; and its id.
#[track_caller]
fn held_to_ours(answer: &str, status: u16, what: &str) -> (String, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{what}: {answer:?}"));
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap();
    assert!(first.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {first}");
    let headers: std::collections::BTreeMap<_, _> = lines.map(|line| line.split_once(": ").unwrap()).collect();
    for (name, value) in [
        ("content-type", "application/json"),
        ("connection", "close"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("content-length", &body.len().to_string()),
    ] {
        assert_eq!(headers.get(name), Some(&value), "{what}: {head}");
    }
    assert!(headers["date"].ends_with(" GMT"), "{what}: {head}");
    assert_eq!(head.matches("HTTP/1.1 ").count(), 1, "{what}: {head}");
    let json: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&json["ok"], json.as_object().unwrap().len()), (&Value::from(false), 2), "{what}: {json}");
    (json["error"].as_str().unwrap().to_owned(), headers["x-request-id"].to_owned())
}

#[test]
fn every_malformed_request_gets_our_error_body_and_a_line() {
    block_on(async {
        let server = Watched::start(&[], &["--log", "requests"]);
        let mut ids = Vec::new();
        for (what, sent, status) in malformed() {
            // Long ones in larger pieces; the short ones byte by byte, too.
            for piece in if sent.len() > 1000 { vec![sent.len(), 10_000] } else { vec![sent.len(), 1] } {
                let answer = exchange(TcpStream::connect(server.address).await.unwrap(), &sent, piece).await;
                let (message, id) = held_to_ours(&answer, status, what);
                let part = match status {
                    414 => "address is longer than 32 KiB",
                    431 => "more than 100 headers, or they are larger than 32 KiB",
                    _ => "cannot be read as HTTP",
                };
                assert!(message.contains(part), "{what}: {message}");
                ids.push((id, status));
            }
        }
        let figures = server.figures().await;
        for status in [400, 414, 431] {
            let count = ids.iter().filter(|(_, counted)| *counted == status).count();
            let series = format!("unionhall_requests_total{{route=\"(none)\",status=\"{status}\"}}");
            assert_eq!(figures.get(&series), Some(&(count as f64)), "{series}");
        }
        crate::server::wait_for!(async || {
            let log = server.log();
            ids.iter().all(|(id, status)| {
                log.lines().any(|line| {
                    line.contains(&format!("\"request_id\":\"{id}\""))
                        && line.contains(&format!("\"status\":{status},"))
                })
            })
        })
        .await;
        server.get("/v1/stats").await.good();
    });
}

/// The good ones are answered first, and as ever.
#[test]
fn after_good_requests_on_the_same_connection_too() {
    block_on(async {
        let server = Server::start();
        let key = server.key();
        let stats = "GET /v1/stats HTTP/1.1\r\nHost: a\r\n\r\n";
        let refused = "POST /v1/invite HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
        let empty = "OPTIONS /v1/stats HTTP/1.1\r\nHost: a\r\n\r\nHEAD /v1/stats HTTP/1.1\r\nHost: a\r\n\r\n";
        let link = format!(
            "POST /v1/referral-link HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Length: 27\r\n\r\n\
             {{\"email\":\"ana@example.com\"}}"
        );
        let good = [stats, refused, empty, &link, stats].concat();
        for piece in [100_000, 13] {
            let sent = format!("{good}garbage\r\n\r\n");
            let answer = exchange(TcpStream::connect(server.address).await.unwrap(), sent.as_bytes(), piece).await;
            let at = answer.rfind("HTTP/1.1 4").unwrap();
            held_to_ours(&answer[at..], 400, "the last");
            let before = &answer[..at];
            let statuses: Vec<_> = before.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
            assert_eq!(statuses, ["200", "401", "204", "200", "200", "200"], "{before}");
            assert!(before.ends_with("{\"ok\":true,\"memberCount\":0}"), "{before}");
            assert_eq!(before.matches("agent_unauthorized").count(), 1);
        }
        // An HTTP/1.0 caller who keeps the connection.
        let sent = b"GET /v1/stats HTTP/1.0\r\nConnection: keep-alive\r\n\r\ngarbage\r\n\r\n";
        let answer = exchange(TcpStream::connect(server.address).await.unwrap(), sent, 1000).await;
        held_to_ours(&answer[answer.rfind("HTTP/1.1 4").unwrap()..], 400, "after HTTP/1.0");
    });
}

/// Many answers that nobody reads yet, and then garbage: everything arrives, in its order.
#[test]
fn behind_answers_that_have_not_left_yet() {
    block_on(async {
        let server = Server::start_with(&["--public-per-minute", "1000000"]);
        let stream = TcpStream::connect(server.address).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        let page = "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1200);
        let sent = tokio::spawn(async move {
            writer.write_all(page.as_bytes()).await.unwrap();
            writer.write_all(b"garbage\r\n\r\n").await.unwrap();
            writer
        });
        // All of it is on its way, and more answers wait than the sockets have room for.
        let writer = in_time("the requests to be sent", sent).await.unwrap();
        reader.readable().await.unwrap();
        let mut answer = Vec::new();
        in_time("the server to close", reader.read_to_end(&mut answer)).await.expect("and not by a reset");
        assert!(answer.len() > 20 << 20, "{} bytes fit into the sockets", answer.len());
        drop(writer);
        let answer = String::from_utf8(answer).unwrap();
        assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 1200);
        held_to_ours(&answer[answer.rfind("HTTP/1.1 4").unwrap()..], 400, "the last");
    });
}

#[test]
fn over_tls_too() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let certificate = certify(folder.path());
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let server = Server::start_with(&["--tls-cert", &path("cert.pem"), "--tls-key", &path("key.pem")]);
        for (what, sent, status) in malformed() {
            let stream = connect(&server, &certificate, b"http/1.1").await.unwrap();
            let answer = exchange(stream, &sent, sent.len()).await;
            held_to_ours(&answer, status, what);
            assert!(answer.contains("strict-transport-security: "), "{what}");
        }
    });
}
