//! Peers who send half a request, or nothing, or far too much, cost others nothing.

use crate::prelude::*;

/// Honest requests, each on a new connection and each behind one more half-sent request: they are answered before it is.
async fn honest(server: &Server, half: &str) {
    for _ in 0..101 {
        let mut stuck = server.dial(Ipv4Addr::LOCALHOST).await;
        stuck.write_all(half.as_bytes()).await.unwrap();
        server.get("/v1/stats").await.good();
        let read = stuck.try_read(&mut [0; 1]).expect_err("what came before is still open, and not answered");
        assert_eq!(read.kind(), std::io::ErrorKind::WouldBlock, "{read}");
    }
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn half_sent_requests_and_idle_connections_cost_others_nothing() {
        let flags = ["--public-per-minute", "100000", "--key-per-minute", "1000", "--log", "off"];
        let (server, key) = Server::with_key(&flags);
        let head = format!("POST /v1/invite HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n");
        let half = format!("{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{\"em");
        honest(&server, &half).await;
        let level = resident(server.id());

        let mut stuck = Vec::new();
        for n in 0..300 {
            let mut stream = server.dial(Ipv4Addr::LOCALHOST).await;
            let part = match n % 3 {
                0 if n % 2 == 0 => "P".to_owned(),
                0 => format!("{head}X-Long: {}", "x".repeat(30_000)),
                1 => head.clone(),
                _ => half.clone(),
            };
            stream.write_all(part.as_bytes()).await.unwrap();
            stuck.push(stream);
        }
        let mut idle = Vec::new();
        for n in 0..5000 {
            // Different sources, so that no ports run out here.
            idle.push(server.dial(Ipv4Addr::new(127, 0, 2, (n % 200) as u8 + 1)).await);
        }
        honest(&server, &half).await;
        let peak = resident(server.id()).saturating_sub(level);
        // A stuck body is told so; a stuck head is cut off.
        for (n, stream) in stuck.iter_mut().enumerate() {
            let mut answer = Vec::new();
            in_time("the end of a half-sent request", stream.read_to_end(&mut answer)).await.ok();
            let text = String::from_utf8_lossy(&answer);
            if n % 3 == 2 {
                assert!(text.starts_with("HTTP/1.1 408") && text.contains("\"ok\":false"), "{text}");
            } else {
                assert_eq!(text, "");
            }
        }
        for stream in &mut idle {
            let ended = in_time("the end of an idle connection", stream.read(&mut [0; 1])).await;
            assert!(matches!(ended, Ok(0) | Err(_)));
        }
        drop((stuck, idle));
        // The allocator gives back what it no longer needs a moment later, as it is used.
        wait_for!(async || {
            honest(&server, &half).await;
            resident(server.id()).saturating_sub(level) * 4 <= peak
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_body_that_breaks_off_leaves_nothing() {
        let (server, key) = Server::with_key(&[]);
        let head = format!("POST /v1/invite HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n");
        let mut broken = server.dial(Ipv4Addr::LOCALHOST).await;
        let part = format!("{head}Content-Length: 100\r\n\r\n{{\"email\": \"ana@example.com\"}}");
        broken.write_all(part.as_bytes()).await.unwrap();
        broken.shutdown().await.unwrap();
        let mut answer = String::new();
        broken.read_to_string(&mut answer).await.unwrap();
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");

        let mut chunked = server.dial(Ipv4Addr::LOCALHOST).await;
        let part = format!("{head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\n");
        chunked.write_all(part.as_bytes()).await.unwrap();
        let mut answer = String::new();
        chunked.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert_eq!(server.number("SELECT count(*) FROM people"), 0);
        server.send(Request::get("/v1/stats"), "").await.good();
    }

    /// As many requests as may be in flight, all waiting for a store that another process keeps locked. Once, because PostgreSQL
    /// gives such requests up sooner.
    #[tokio::test(flavor = "multi_thread")]
    async fn past_the_cap_on_requests_in_flight_the_answer_is_to_come_back() {
        const MOST: usize = 40;
        let server = Arc::new(Server::start_with(&["--in-flight", &MOST.to_string(), "--key-per-minute", "10000"]));
        let key = server.key();
        let held = server.hold();
        let (mut waiting, mut answered, mut busy) = (JoinSet::new(), Vec::new(), None);
        wait_for!(async || {
            // Each is given up after a while, and another comes in its place.
            while let Some(answer) = waiting.try_join_next() {
                answered.push(answer.unwrap());
            }
            while waiting.len() < MOST {
                let (server, key) = (Arc::clone(&server), key.clone());
                waiting.spawn(async move { server.post("/v1/invite", &key, sign_up("ana@example.com")).await });
            }
            busy = Some(server.get("/v1/stats").await).filter(|answer| answer.status == 503);
            busy.is_some()
        })
        .await;
        let busy = busy.unwrap();
        busy.refused(503, serde_json::Value::Null);
        assert!((1..=60).contains(&busy.header("retry-after").parse::<u32>().unwrap()));
        server.get("/healthz").await.good();
        drop(held);
        answered.extend(waiting.join_all().await);
        assert!(answered.iter().all(|answer| [200, 500, 503].contains(&answer.status.as_u16())));
        // Every place is free again.
        together((0..MOST).map(|_| server.post("/v1/invite", &key, sign_up("ana@example.com"))))
            .await
            .iter()
            .for_each(|answer| drop(answer.good()));
    }
}
