//! Being told to stop: what was begun is finished.

use crate::prelude::*;

/// Clients open a connection for each request, as fast as they can, until the source is closed. Every connection that was made
/// before the signal gets its answer; one that is made while the source closes may find it closed, as any later one does.
#[tokio::test(flavor = "multi_thread")]
async fn every_accepted_request_is_answered_under_load() {
    let server = Server::start_with(&["--key-per-minute", "1000000"]);
    let (key, address) = (server.key(), server.address);
    let answered = Arc::new(AtomicU32::new(0));
    let told = Arc::new(AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..16 {
        let (key, answered, told) = (key.clone(), Arc::clone(&answered), Arc::clone(&told));
        clients.spawn(async move {
            for n in 0.. {
                // Refused at the source: the server has stopped listening.
                let Ok(stream) = tokio::net::TcpStream::connect(address).await else { return };
                let in_time = !told.load(Ordering::SeqCst);
                let (mut sender, connection) =
                    hyper::client::conn::http1::handshake::<_, Full<bytes::Bytes>>(TokioIo::new(stream)).await.unwrap();
                tokio::spawn(connection);
                let request = Request::post("/v1/invite")
                    .header("host", "test")
                    .header("authorization", format!("Bearer {key}"))
                    .body(Full::from(sign_up(&format!("u{client}-{n}@example.com"))))
                    .unwrap();
                let answer = match sender.send_request(request).await {
                    Err(_) if !in_time => return,
                    answer => answer.expect("an accepted request is answered"),
                };
                assert_eq!(answer.status(), 200);
                answer.into_body().collect().await.unwrap();
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    wait_for!(async || answered.load(Ordering::Relaxed) >= 300).await;
    told.store(true, Ordering::SeqCst);
    let stopped = tokio::task::spawn_blocking(move || server.stop());
    let (code, home) = in_time("the server's end", stopped).await.unwrap();
    assert_eq!(code, Some(0));
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    let kept = home.records().number("SELECT count(*) FROM sign_ups");
    assert_eq!(kept, i64::from(answered.load(Ordering::Relaxed)));
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_and_stuck_connections_do_not_hold_it_up() {
    use tokio::io::AsyncWriteExt;
    for signal in ["TERM", "INT"] {
        let server = Server::start();
        let mut kept = server.connect(std::net::Ipv4Addr::LOCALHOST).await;
        kept.send(Request::get("/v1/stats"), "").await.good();
        let mut stuck = tokio::net::TcpStream::connect(server.address).await.unwrap();
        stuck.write_all(b"GET /v1/sta").await.unwrap();
        server.signal(signal);
        let stopped = tokio::task::spawn_blocking(move || server.stop());
        let (code, home) = in_time("the server's end", stopped).await.unwrap();
        assert_eq!(code, Some(0), "{signal}");
        assert!(home.records().are_let_go(), "the store was closed cleanly");
    }
}
