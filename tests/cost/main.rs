//! What a request costs, held to the figures in `figures.toml`: allocations of the whole server, and calls of the store.
//!
//! The real server runs in this process on one thread, and a client that allocates nothing talks to it. Both figures are
//! the same on every machine, so what makes a request dearer is seen in the test that changed it and not in a benchmark
//! weeks later. This is a binary of its own because it counts what its allocator is asked for.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod counting;

use std::alloc::System;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Deserialize;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::net::TcpListener;
use unionhall::app::{App, Parts};
use unionhall::cli::remedy;
use unionhall::clock::Clock;
use unionhall::config::UnionSettings;
use unionhall::domain::api_key::{ApiKey, IssuedKey};
use unionhall::domain::secret::Secret;
use unionhall::domain::union::Union;
use unionhall::http::request::id::RequestIds;
use unionhall::limiter::memory::MemoryLimiter;
use unionhall::log::{Format, Level, Log};
use unionhall::mail::Delivery;
use unionhall::operations::{ALL, Access};
use unionhall::server::{HttpService, HttpSettings, NodeResources, listener};
use unionhall::store::Store;
use unionhall::store::sqlite::SqliteStore;

use self::counting::Counting;
use unionhall::keys::records::{IssueKey, TouchKey};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Requests of a round, and rounds that are counted after two that are not. The cheapest counts: queues grow now and then, and a key is
/// read again once a second, which on a slow machine is in each round but one.
const REQUESTS: usize = 50;
const ROUNDS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct Cost {
    allocations: f64,
    store_calls: f64,
}

#[test]
fn no_request_costs_more_than_its_figure() {
    let figures: BTreeMap<String, Cost> = toml::from_str(include_str!("figures.toml")).unwrap();
    let mut seen = String::new();
    let mut grown = Vec::new();
    for (name, cost) in House::open().costs() {
        seen.push_str(&format!(
            "\n[\"{name}\"]\nallocations = {:.1}\nstore_calls = {:.1}\n",
            cost.allocations, cost.store_calls
        ));
        let Some(figure) = figures.get(&name) else {
            grown.push(format!("{name} has no figure"));
            continue;
        };
        for (what, is, may) in [
            ("allocations", cost.allocations, figure.allocations),
            ("store calls", cost.store_calls, figure.store_calls),
        ] {
            if is > may + 0.4 {
                grown.push(format!("{name}: {is:.1} {what} a request, and {may:.1} are its figure"));
            } else if is < may - 0.9 {
                println!("{name}: {is:.1} {what} a request; its figure of {may:.1} can be lowered");
            }
        }
    }
    assert!(
        grown.is_empty(),
        "{}\nIf that is worth it, these are the figures for tests/cost/figures.toml:\n{seen}",
        grown.join("\n")
    );
}

struct House {
    runtime: tokio::runtime::Runtime,
    engine: Arc<Counting>,
    address: SocketAddr,
    key: String,
    _folder: tempfile::TempDir,
}

impl House {
    fn open() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::start();
        let engine = Arc::new(Counting::new(SqliteStore::open(&folder.path().join("unionhall.db")).unwrap()));
        let store = Store::new(Arc::clone(&engine) as _);
        let key = ApiKey::from_random(&[9; ApiKey::ENTROPY]);
        let issued = IssuedKey {
            id: key.id(),
            partner: "Acme Assistant".parse().unwrap(),
            hash: key.hash(),
            per_minute: Some(1_000_000),
            created_at: clock.now().time,
            expires_at: None,
        };
        let address = runtime.block_on(async {
            store.run(IssueKey(issued)).await.unwrap();
            store.run(TouchKey { id: key.id(), used: Default::default(), now: clock.now().time }).await.unwrap();
            let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = socket.local_addr().unwrap();
            let app = App::new(Parts {
                union: Arc::new(Union {
                    base_url: format!("http://{address}"),
                    join_site: format!("http://{address}"),
                    public_per_minute: 1_000_000,
                    key_per_minute: 1_000_000,
                    ..UnionSettings::sample()
                }),
                secret: Secret::new(&"s".repeat(32)).unwrap(),
                store: store.clone(),
                limiter: Arc::new(MemoryLimiter::new(1_000_000)),
                // A line for each request is part of what a request costs.
                log: Log::start(Level::Requests, Format::Json, clock, remedy::write, std::io::sink()).unwrap(),
                mail: Delivery::Held,
                webhooks: Arc::default(),
                outbound: unionhall::outbound::GuardedClient::new(Vec::new(), false),
                budget: unionhall::domain::mail::budget::MailBudget::NONE,
                disposable: unionhall::domain::email::disposable::DisposableDomains::default(),
                erasures: unionhall::people::erasures::ErasureLog::beside(folder.path()),
                retention: unionhall::domain::person::RetentionTimes::DEFAULT,
            });
            let settings = HttpSettings { metrics: Some(NodeResources::default()), ..HttpSettings::default() };
            let service = HttpService::new(app, clock, RequestIds::new([7; 5]), settings);
            tokio::spawn(listener::serve(socket, service, None, std::future::pending()));
            address
        });
        Self { runtime, engine, address, key: key.reveal().to_owned(), _folder: folder }
    }

    /// What a request to each operation costs, over REST and as a tool.
    fn costs(self) -> Vec<(String, Cost)> {
        let mut costs = Vec::new();
        for operation in ALL {
            let spec = &operation.spec;
            let arguments = if operation.takes_input { "{\"email\":\"p####@example.com\"}" } else { "{}" };
            let key = match spec.access {
                Access::Agent | Access::Partner | Access::Operator => format!("authorization: Bearer {}\r\n", self.key),
                Access::Public => String::new(),
            };
            let body = if operation.takes_input { arguments } else { "" };
            let rest = request(spec.method.name(), spec.path, &key, body);
            costs.push((format!("REST {}", spec.id), self.cost(rest)));
            let call = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"{}\",\"arguments\":{arguments}}}}}",
                spec.id
            );
            costs.push((format!("MCP {}", spec.id), self.cost(request("POST", "/mcp", &key, &call))));
        }
        self.runtime.shutdown_background();
        costs
    }

    fn cost(&self, mut request: Vec<u8>) -> Cost {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let mut buffer = vec![0; 64 << 10];
        let number = request.windows(4).position(|part| part == b"####");
        let mut send = |from: usize| {
            for n in from..from + REQUESTS {
                if let Some(at) = number {
                    for (place, digit) in request[at..at + 4].iter_mut().rev().enumerate() {
                        *digit = b'0' + (n / 10_usize.pow(u32::try_from(place).unwrap()) % 10) as u8;
                    }
                }
                ask(&mut stream, &request, &mut buffer);
            }
        };
        // Other people in each round where there are people: each request does all of its work.
        let mut round = |number: usize| {
            let calls = self.engine.calls.load(Ordering::Relaxed);
            let region = Region::new(ALLOCATOR);
            send(1000 + number * REQUESTS);
            let asked = region.change();
            let calls = self.engine.calls.load(Ordering::Relaxed) - calls;
            let each = |count: usize| count as f64 / REQUESTS as f64;
            Cost { allocations: each(asked.allocations + asked.reallocations), store_calls: each(calls) }
        };
        (0..2).for_each(|number| _ = round(number));
        let costs: Vec<_> = (2..2 + ROUNDS).map(round).collect();
        let least = |figure: fn(&Cost) -> f64| costs.iter().map(figure).fold(f64::INFINITY, f64::min);
        Cost { allocations: least(|cost| cost.allocations), store_calls: least(|cost| cost.store_calls) }
    }
}

fn request(method: &str, path: &str, key: &str, body: &str) -> Vec<u8> {
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    format!("{method} {path} HTTP/1.1\r\nhost: union.test\r\ncontent-type: application/json\r\n{key}{length}\r\n{body}")
        .into_bytes()
}

/// One request and its whole answer, without an allocation.
fn ask(stream: &mut TcpStream, request: &[u8], buffer: &mut [u8]) {
    stream.write_all(request).unwrap();
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..]).unwrap();
        assert!(read > 0, "the server hung up");
        filled += read;
        let answer = &buffer[..filled];
        let Some(head) = answer.windows(4).position(|part| part == b"\r\n\r\n") else { continue };
        let name = b"content-length: ";
        let at = answer.windows(name.len()).position(|part| part == name).unwrap() + name.len();
        let length =
            answer[at..].iter().take_while(|b| b.is_ascii_digit()).fold(0, |n, b| n * 10 + usize::from(b - b'0'));
        if filled >= head + 4 + length {
            assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(answer));
            assert!(!answer.windows(14).any(|part| part == b"\"isError\":true"), "{}", String::from_utf8_lossy(answer));
            return;
        }
    }
}
