//! Partners whose endpoints have names with silent name servers, beside others. The worker and self-service are called by themselves,
//! because the names must be made up.

use crate::once::outbound::SilentNames;
use crate::prelude::*;
use tokio::sync::watch;
use unionhall::cli::remedy;
use unionhall::domain::api_key::Mode;
use unionhall::domain::sign_up::Partner;
use unionhall::keys::records::FindKey;
use unionhall::keys::{Keys, NewKey};
use unionhall::log::{Format, Level, Log};
use unionhall::outbound::{GuardedClient, Resolver};
use unionhall::partners::self_service::{NotDone, SelfService};
use unionhall::partners::worker::{WebhookNotifier, WebhookWorker};
use unionhall::store::sqlite::SqliteStore;

use super::webhooks::Receiver;

struct Hall {
    store: OpenStore,
    records: Records,
    names: Arc<SilentNames>,
    notifier: Arc<WebhookNotifier>,
    secret: Secret,
    _folder: tempfile::TempDir,
}

impl Hall {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            store: OpenStore::new(SqliteStore::open(&folder.path().join("unionhall.db")).unwrap()),
            records: Records::Sqlite { data: folder.path().to_owned() },
            names: SilentNames::new(Ipv4Addr::LOCALHOST),
            notifier: Arc::default(),
            secret: Secret::new(&"s".repeat(Secret::SHORTEST)).unwrap(),
            _folder: folder,
        }
    }

    fn client(&self, timeout: Duration) -> GuardedClient {
        let names: Arc<dyn Resolver> = self.names.clone();
        GuardedClient::new(Vec::new(), true).with_resolver(names).with_timeout(timeout)
    }

    /// A worker that never stops by itself.
    fn deliver(&self, timeout: Duration) -> (tokio::task::JoinHandle<()>, watch::Sender<bool>) {
        let (stop, stops) = watch::channel(false);
        let worker = WebhookWorker {
            store: Store::clone(&self.store),
            client: self.client(timeout),
            secret: self.secret.clone(),
            notifier: Arc::clone(&self.notifier),
            contact: None,
            log: Log::start(Level::Errors, Format::Text, Clock::start(), remedy::write, std::io::sink()).unwrap(),
            mode: Mode::Live,
            name: "worker".to_owned(),
        };
        (tokio::spawn(worker.run(Clock::start(), stops)), stop)
    }

    async fn partner(&self, name: &str) -> Partner {
        let key = ApiKey::from_random(&unionhall::random::bytes().unwrap());
        let new = NewKey { partner: name.parse().unwrap(), per_minute: None, expires_at: None };
        Keys::new(Store::clone(&self.store), Mode::Live).issue(&key, new, Clock::start().now().time).await.unwrap();
        let record = self.store.run(FindKey(key.id())).await.unwrap().unwrap();
        Partner { key: record.id, id: record.partner_id, name: record.partner }
    }

    /// Endpoints of a partner, each with as many messages due.
    fn due(&self, partner: &Partner, urls: &[String], messages: u32) {
        let id = partner.id;
        for url in urls {
            self.records.execute(&format!(
                "INSERT INTO webhook_endpoints (partner_id, url, created_at) VALUES ({id}, '{url}', 1794000000000)"
            ));
        }
        self.records.execute(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {messages})
             INSERT INTO partner_events (partner_id, idempotency_key, kind, at)
             SELECT {id}, 'k' || i, 'sign_up.confirmed', 1794000000000 FROM n"
        ));
        self.records.execute(&format!(
            "INSERT INTO webhook_deliveries (endpoint_id, event_id, send_after) SELECT w.id, e.id, 1794000000000
             FROM webhook_endpoints w JOIN partner_events e ON e.partner_id = w.partner_id
             WHERE w.partner_id = {id} ON CONFLICT DO NOTHING"
        ));
        self.notifier.notify();
    }

    fn silent(&self, partner: &Partner, messages: u32) {
        self.due(partner, &Vec::from_iter((0..10).map(|n| format!("https://silent{n}.example/"))), messages);
    }
}

/// Four partners took all places for look-ups, and the messages of all others waited until threads of the system gave up.
#[tokio::test(flavor = "multi_thread")]
async fn silent_name_servers_delay_no_other_partner() {
    let (hall, receiver) = (Hall::new(), Receiver::start().await);
    // Nothing here ends because its time is over.
    let _worker = hall.deliver(Duration::from_secs(3600));
    for n in 0..4 {
        let before = hall.names.asked();
        hall.silent(&hall.partner(&format!("Silent {n}")).await, 20);
        wait_for!(async || hall.names.asked() > before).await;
    }
    for n in 0..4 {
        let url = receiver.url(&format!("/{n}")).replace("127.0.0.1", "localhost");
        hall.due(&hall.partner(&format!("Honest {n}")).await, &[url], 50);
    }
    let settled = "SELECT count(*) FROM webhook_deliveries WHERE delivered_at IS NOT NULL AND attempts = 1";
    wait_for!(async || hall.records.number(settled) == 200).await;
    assert_eq!(hall.records.number("SELECT count(*) FROM webhook_deliveries WHERE last_attempt_at IS NOT NULL"), 200);
    assert!((4..32).contains(&hall.names.asked()), "{}", hall.names.asked());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_without_a_place_is_no_attempt() {
    let (hall, receiver) = (Hall::new(), Receiver::start().await);
    let acme = hall.partner("Acme").await;
    let _worker = hall.deliver(Duration::from_millis(60));
    hall.silent(&acme, 20);
    let count = |which: &str| hall.records.number(&format!("SELECT count(*) FROM {which}"));
    wait_for!(async || hall.names.asked() == 11).await;
    // Those that were looked up in vain have failed, and no other.
    wait_for!(
        async || count("webhook_deliveries WHERE last_error LIKE '%not looked up in time%' AND attempts = 1") == 11
    )
    .await;
    hall.due(&acme, &[receiver.url("/own").replace("127.0.0.1", "localhost")], 1);
    let own = "webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id WHERE e.url LIKE '%/own'";
    let postponed =
        "d.attempts = 0 AND d.send_after > 1794000000000 AND d.last_attempt_at IS NULL AND e.failing_since IS NULL";
    wait_for!(async || count(&format!("{own} AND {postponed}")) > 0).await;
    assert_eq!((hall.names.asked(), count("webhook_deliveries WHERE last_error IS NOT NULL")), (11, 11));
    // Once there are places, it goes. The silent ones are stopped, because they would take all of this partner's again.
    hall.records.execute("UPDATE webhook_endpoints SET disabled_at = 1794000000000 WHERE url LIKE '%silent%'");
    let silent = "webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id WHERE e.url LIKE '%silent%'";
    wait_for!(async || count(&format!("{silent} AND d.leased_until > 0")) == 0).await;
    hall.names.end_all();
    hall.records.execute("UPDATE webhook_deliveries SET send_after = 1794000000000 WHERE attempts = 0");
    hall.notifier.notify();
    let all = count(own);
    wait_for!(async || count(&format!("{own} AND d.delivered_at IS NOT NULL AND d.attempts = 1")) == all).await;
    assert_eq!(receiver.at("/own").len(), usize::try_from(all).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_names_of_one_partner_keep_no_other_from_adding_endpoints() {
    let hall = Hall::new();
    let (acme, zoe) = (hall.partner("Acme").await, hall.partner("Zoe").await);
    let client = hall.client(Duration::from_millis(60));
    let own = SelfService::new(Store::clone(&hall.store), &hall.secret, client, Arc::clone(&hall.notifier), Mode::Live);
    let now = Clock::start().now().time;
    let add = async |partner: &Partner, url: &str| own.add_endpoint(partner, url, now).await.map(|_| ());
    for _ in 0..11 {
        let late = add(&acme, "https://silent.example/").await;
        assert!(matches!(&late, Err(NotDone::Refused("url", why)) if why.contains("not looked up in time")));
    }
    let later = add(&acme, "http://localhost:9/").await;
    assert!(matches!(&later, Err(NotDone::Later(why, 15)) if why.contains("Try again in 15 seconds")));
    assert!(add(&zoe, "http://localhost:9/").await.is_ok());
    assert_eq!(hall.names.asked(), 11);
}
