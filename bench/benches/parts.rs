//! The parts of a request by themselves: `cargo bench -p bench`. Figures are this machine's; compare within one run.

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::sync::Arc;

use divan::{Bencher, black_box};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use unionhall::app::{App, Parts};
use unionhall::cli::remedy;
use unionhall::clock::{Clock, Moment};
use unionhall::config::UnionSettings;
use unionhall::domain::api_key::{ApiKey, IssuedKey, Mode};
use unionhall::domain::email::EmailAddress;
use unionhall::domain::referral::CodeMaker;
use unionhall::domain::secret::Secret;
use unionhall::domain::time::Tick;
use unionhall::keys::records::{IssueKey, TouchKey};
use unionhall::keys::{KeyUse, Keys};
use unionhall::limiter::memory::MemoryLimiter;
use unionhall::limiter::{Bucket, Class, Limiter, Subject};
use unionhall::log::{Format, Level, Log};
use unionhall::mail::Delivery;
use unionhall::mcp::{McpServer, RpcContext};
use unionhall::operations::dispatch::Dispatcher;
use unionhall::operations::sign_up_user::InviteRequest;
use unionhall::operations::{CONTRACT_TOOLS, decode};
use unionhall::store::Store;
use unionhall::store::sqlite::SqliteStore;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
}

/// From the bytes of a body to an input that cannot be wrong.
#[divan::bench(args = ["small", "large"])]
fn decode_sign_up(bencher: Bencher<'_, '_>, size: &str) {
    let body = if size == "small" { SMALL } else { LARGE };
    bencher.bench_local(|| decode::object::<InviteRequest>(black_box(body.as_bytes())).expect("a good body"));
}

const SMALL: &str = r#"{"email":"ana@example.com"}"#;
const LARGE: &str = r#"{"email":"Ana.Maria+bills@mail.example.co.uk","usState":"CA","categories":{"internet":true,"travel":true,"groceries":true},"otherComments":"My plan ends in March.","refCode":"7kq2m9x4tbwd"}"#;

/// The whole check of a key that was read within the last second.
#[divan::bench]
fn check_key(bencher: Bencher<'_, '_>) {
    let house = House::new();
    let key = ApiKey::from_random(&[9; ApiKey::ENTROPY]);
    let header = format!("Bearer {}", key.reveal());
    let now = house.clock.now().time;
    let keys = Keys::new(house.store.clone(), Mode::Live);
    let runtime = runtime();
    bencher.bench_local(|| {
        let checked = keys.authenticate(Some(black_box(header.as_bytes())), now);
        runtime.block_on(checked).expect("a good key")
    });
}

#[divan::bench]
fn make_referral_code(bencher: Bencher<'_, '_>) {
    let maker = CodeMaker::new(&secret());
    let email = EmailAddress::parse("Ana.Maria+bills@mail.example.co.uk").expect("a good address");
    bencher.bench_local(|| maker.code(black_box(&email), 0));
}

/// A call of a tool whose answer is known: what is left is the protocol around it, and the limit.
#[divan::bench(args = ["legacy", "modern"])]
fn mcp_envelope(bencher: Bencher<'_, '_>, era: &str) {
    let message = if era == "legacy" { LEGACY } else { MODERN };
    let house = House::new();
    let server = McpServer::new(Dispatcher::new(Arc::clone(&house.app)), CONTRACT_TOOLS);
    let runtime = runtime();
    let start = house.clock.now();
    let mut second = 0;
    bencher.bench_local(|| {
        // Time passes as fast as the limit asks.
        second += 1;
        let now = Moment { time: start.time, tick: Tick::from_micros(second * 1_000_000) };
        let address = Ipv4Addr::LOCALHOST.into();
        let context = RpcContext { authorization: None, address, now, headers: None, request_id: None, client: None };
        let reply = runtime.block_on(server.answer(
            black_box(message.as_bytes()),
            context,
            &mut unionhall::operations::dispatch::CallTrace::default(),
        ));
        assert_eq!(reply.status, 200);
        reply
    });
}

const LEGACY: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"getReferralProgram","arguments":{}}}"#;
const MODERN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"getReferralProgram","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// One check of the limiter in memory; its clock is read for each, as governor does inside. The few keys are soon past
/// their limit, so theirs are mostly refusals; the bench's section `limiter` measures admissions.
#[divan::bench(args = [1_000_000, 100])]
fn limiter(bencher: Bencher<'_, '_>, keys: u32) {
    let limiter = MemoryLimiter::with_entries(2_000_000, 16);
    let clock = Clock::start();
    for n in 0..keys {
        black_box(limiter.check(bucket(n), LIMIT, clock.tick()));
    }
    let mut random = Random(1);
    bencher.bench_local(|| limiter.check(bucket(random.below(keys)), LIMIT, clock.tick()));
}

#[divan::bench(args = [1_000_000, 100])]
fn limiter_governor(bencher: Bencher<'_, '_>, keys: u32) {
    let limit = NonZeroU32::new(LIMIT).expect("not zero");
    let limiter: DefaultKeyedRateLimiter<Bucket> = RateLimiter::keyed(Quota::per_minute(limit));
    for n in 0..keys {
        black_box(limiter.check_key(&bucket(n)).is_ok());
    }
    let mut random = Random(1);
    bencher.bench_local(|| limiter.check_key(&bucket(random.below(keys))).is_ok());
}

/// As many as a bucket counts one by one.
const LIMIT: u32 = 1000;

fn bucket(n: u32) -> Bucket {
    let address = IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n));
    Bucket { class: Class::Public, subject: Subject::Network(address.into()) }
}

struct Random(u32);

impl Random {
    fn below(&mut self, most: u32) -> u32 {
        self.0 = self.0.wrapping_mul(0x915f_77f5).wrapping_add(0x3c6e_f35f);
        ((u64::from(self.0) * u64::from(most)) >> 32) as u32
    }
}

fn secret() -> Secret {
    Secret::new(&"s".repeat(32)).expect("long enough")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
}

/// An app on records of its own, with one key in them.
struct House {
    app: Arc<App>,
    store: Store,
    clock: Clock,
    _folder: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("unionhall.db")).expect("records");
        let store: Store = Store::new(Arc::new(store));
        let clock = Clock::start();
        let key = ApiKey::from_random(&[9; ApiKey::ENTROPY]);
        let issued = IssuedKey {
            id: key.id(),
            partner: "Acme Assistant".parse().expect("a name"),
            hash: key.hash(),
            per_minute: None,
            created_at: clock.now().time,
            expires_at: None,
        };
        runtime().block_on(store.run(IssueKey(issued))).expect("a key");
        runtime()
            .block_on(store.run(TouchKey { id: key.id(), used: KeyUse::default(), now: clock.now().time }))
            .expect("a key");
        let app = App::new(Parts {
            union: Arc::new(UnionSettings::sample()),
            secret: secret(),
            store: store.clone(),
            limiter: Arc::new(MemoryLimiter::new(60)),
            log: Log::start(Level::Off, Format::Json, clock, remedy::write, std::io::sink()).expect("a thread"),
            mail: Delivery::Off,
            webhooks: Arc::default(),
            outbound: unionhall::outbound::GuardedClient::new(Vec::new(), false),
            budget: unionhall::domain::mail::budget::MailBudget::NONE,
            disposable: unionhall::domain::email::disposable::DisposableDomains::default(),
            erasures: unionhall::people::erasures::ErasureLog::beside(folder.path()),
            retention: unionhall::domain::person::RetentionTimes::DEFAULT,
        });
        Self { app, store, clock, _folder: folder }
    }
}
