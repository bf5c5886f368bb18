//! The limits as a client meets them.

use std::net::Ipv4Addr;

use hyper::Request;

use crate::server::{Answer, Server, block_on, resident, sign_up};

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Sends the same request over and over; gives the statuses.
async fn burst(
    server: &Server,
    times: usize,
    mut make: impl FnMut(usize) -> hyper::http::request::Builder,
) -> Vec<u16> {
    let mut connection = server.connect(HERE).await;
    let mut statuses = Vec::with_capacity(times);
    for i in 0..times {
        statuses.push(connection.send(make(i), "").await.status.as_u16());
    }
    statuses
}

fn count(statuses: &[u16], status: u16) -> usize {
    statuses.iter().filter(|found| **found == status).count()
}

#[test]
fn sixty_public_requests_a_minute_for_an_address_shared_by_the_three() {
    block_on(async {
        let server = Server::start();
        let paths = ["/v1/stats", "/v1/negotiate-categories", "/v1/referral-program"];
        let statuses = burst(&server, 61, |i| Request::get(paths[i % 3])).await;
        assert_eq!((count(&statuses[..60], 200), statuses[60]), (60, 429));
        let over = server.get("/v1/stats").await;
        over.refused(429, "rate_limited");
        let wait: u32 = over.header("retry-after").parse().unwrap();
        assert!((50..=60).contains(&wait), "{wait}");
        let other = server.send_from(Ipv4Addr::new(127, 0, 0, 2), Request::get("/v1/stats"), "").await;
        assert_eq!(other.header("ratelimit-policy"), "\"public\";q=60;w=60");
        assert_eq!(other.header("ratelimit"), "\"public\";r=59;t=60", "another address is not touched");
        // What needs no limit stays up for the one who is over it.
        server.get("/").await.good();
        assert_eq!(server.get("/openapi.json").await.status, 200);
    });
}

#[test]
fn thirty_actions_a_minute_for_a_key_and_its_reads_apart() {
    block_on(async {
        let server = Server::start();
        let (key, other) = (server.key(), server.run(&["keys", "issue", "Other", "--per-minute", "2"]));
        let act = async |key: &str, i: usize| -> Answer {
            let path = if i.is_multiple_of(2) { "/v1/invite" } else { "/v1/referral-link" };
            server.post(path, key, sign_up(&format!("ana{i}@example.com"))).await
        };
        for i in 0..30 {
            act(&key, i).await.good();
        }
        act(&key, 30).await.refused(429, "rate_limited");
        act(&other, 0).await.good();
        act(&other, 1).await.good();
        act(&other, 2).await.refused(429, "rate_limited");

        let read = |_| Request::get("/v1/stats").header("authorization", format!("Bearer {key}"));
        let statuses = burst(&server, 61, read).await;
        assert_eq!((count(&statuses[..60], 200), statuses[60]), (60, 429), "a key's reads are a budget of their own");
        assert_eq!(server.get("/v1/stats").await.header("ratelimit"), "\"public\";r=59;t=60", "and not the address's");
        // A missing or wrong key is never told to wait.
        for _ in 0..70 {
            server.post("/v1/invite", "wrong", "").await.refused(401, "agent_unauthorized");
        }
    });
}

mod once {
    use super::*;

    #[test]
    fn forwarded_addresses_count_only_from_trusted_proxies() {
        block_on(async {
            let forwarded = |i: usize| {
                Request::get("/v1/stats").header("x-forwarded-for", format!("1.2.3.4, 203.0.113.{}, 127.0.0.9", i % 2))
            };
            let server =
                Server::start_with(&["--public-per-minute", "10", "--trusted-proxies", "127.0.0.0/8,10.0.0.1"]);
            let statuses = burst(&server, 22, forwarded).await;
            assert_eq!((count(&statuses[..20], 200), &statuses[20..]), (20, &[429, 429][..]), "two clients, ten each");

            let server = Server::start_with(&["--public-per-minute", "10", "--trusted-proxies", "10.0.0.0/8"]);
            let statuses = burst(&server, 11, forwarded).await;
            assert_eq!((count(&statuses[..10], 200), statuses[10]), (10, 429), "a stranger's header is ignored");
        });
    }

    /// More addresses than the table holds, through the real server: it stays within the stated size and still counts.
    #[test]
    fn a_flood_of_addresses_does_not_grow_the_server() {
        use unionhall::limiter::Class;
        use unionhall::limiter::memory::MemoryLimiter;
        const FLOOD: u32 = 120_000;
        assert!(MemoryLimiter::new(60).network_entries(Class::Public) < FLOOD as usize);
        block_on(async {
            let server = Server::start_with(&["--trusted-proxies", "127.0.0.0/8", "--log", "off"]);
            let before = resident(server.id());
            let flood = async |first: u32, count: u32| {
                let mut clients = tokio::task::JoinSet::new();
                for part in 0..4 {
                    let mut connection = server.connect(HERE).await;
                    clients.spawn(async move {
                        for i in 0..count / 4 {
                            let address = Ipv4Addr::from(first + part * FLOOD + i);
                            let request =
                                Request::head("/v1/referral-program").header("x-forwarded-for", address.to_string());
                            assert_eq!(connection.send(request, "").await.status, 200);
                        }
                    });
                }
                clients.join_all().await;
            };
            flood(0x0b00_0000, FLOOD).await;
            // Somebody reaches their limit while the table is full, and more come: few enough that even a slow machine is done
            // with them before a minute is over.
            let statuses = burst(&server, 61, |_| Request::get("/v1/referral-program")).await;
            assert_eq!(statuses[60], 429);
            flood(0x0c00_0000, FLOOD / 8).await;
            let grown = resident(server.id()).saturating_sub(before);
            assert!(grown <= MemoryLimiter::NETWORK_BYTES, "{} MiB", grown >> 20);
            assert_eq!(server.get("/v1/stats").await.status, 429, "the one at its limit was not dropped");
        });
    }
}
