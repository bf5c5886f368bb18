//! Webhooks against a receiver that answers well, badly, late and not at all.

use crate::prelude::*;
use tokio::net::TcpListener;
use unionhall::domain::partner::endpoint::EndpointId;
use unionhall::domain::webhook::signature::WebhookSecret;

use super::{ask, invite};
use crate::operator_page::{act, audit, signed_in};

#[derive(Debug, Clone)]
pub(crate) struct Message {
    path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

/// A connection that got no answer: how many messages had come to other paths when it began to wait, and when it was left.
#[derive(Debug, Clone, Copy)]
struct Hanging {
    from: usize,
    to: Option<usize>,
}

#[derive(Default)]
struct Taken {
    messages: Vec<Message>,
    hanging: Vec<Hanging>,
}

impl Taken {
    fn elsewhere(&self) -> usize {
        self.messages.iter().filter(|message| message.path != "/hang").count()
    }
}

/// Takes whatever comes; the path says what is answered.
pub(crate) struct Receiver {
    port: u16,
    taken: Arc<Mutex<Taken>>,
    task: tokio::task::JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, taken) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Taken>>::default());
        let kept = Arc::clone(&taken);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(stream, Arc::clone(&kept)));
            }
        });
        Self { port, taken, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn at(&self, path: &str) -> Vec<Message> {
        self.taken.lock().unwrap().messages.iter().filter(|message| message.path == path).cloned().collect()
    }

    pub(crate) async fn wait_for(&self, path: &str, count: usize) {
        wait_for!(async || self.at(path).len() >= count).await;
    }

    /// The most messages that came to other paths while one and the same connection to `/hang` waited.
    fn most_beside_one_that_hangs(&self) -> usize {
        let taken = self.taken.lock().unwrap();
        let now = taken.elsewhere();
        taken.hanging.iter().map(|one| one.to.unwrap_or(now) - one.from).max().unwrap_or(0)
    }

    /// How many connections to `/hang` wait, and how many have been left.
    fn hanging(&self) -> (usize, usize) {
        let taken = self.taken.lock().unwrap();
        let left = taken.hanging.iter().filter(|one| one.to.is_some()).count();
        (taken.hanging.len() - left, left)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: TcpStream, taken: Arc<Mutex<Taken>>) {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        let mut some = [0; 4096];
        match stream.read(&mut some).await {
            Ok(0) | Err(_) => return,
            Ok(read) => bytes.extend_from_slice(&some[..read]),
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break (head.to_owned(), body.to_owned());
        }
    };
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    taken.lock().unwrap().messages.push(Message { path: path.clone(), headers, body });
    let answer = match path.as_str() {
        "/moved" => "HTTP/1.1 301 Moved\r\nlocation: /ok\r\ncontent-length: 0\r\n\r\n",
        "/gone" => "HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n",
        "/later" => "HTTP/1.1 429 Later\r\nretry-after: 7200\r\ncontent-length: 0\r\n\r\n",
        // Until the other side gives up.
        "/hang" => {
            let number = {
                let mut taken = taken.lock().unwrap();
                let from = taken.elsewhere();
                taken.hanging.push(Hanging { from, to: None });
                taken.hanging.len() - 1
            };
            while stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
            let mut taken = taken.lock().unwrap();
            taken.hanging[number].to = Some(taken.elsewhere());
            return;
        }
        "/reset" => {
            stream.set_zero_linger().unwrap();
            return;
        }
        // After another, which does not wait for it.
        "/slow" => {
            while !taken.lock().unwrap().messages.iter().any(|message| message.path == "/ok") {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
        }
        "/huge" => {
            let _cut_off = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000\r\n\r\n").await;
            let _cut_off = stream.write_all(&vec![b'x'; 10_000_000]).await;
            return;
        }
        _ => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    };
    let _gone = stream.write_all(answer.as_bytes()).await;
}

pub(super) fn add(server: &Server, receiver: &Receiver, path: &str) -> String {
    add_for(server, "Acme Assistant", &receiver.url(path))
}

/// As in development, where the service is at a loopback address.
fn add_for(server: &Server, partner: &str, url: &str) -> String {
    server.run(&["webhooks", "add", partner, url, "--base-url", "http://127.0.0.1:8080"])
}

pub(super) fn listed(server: &Server) -> Vec<Value> {
    serde_json::from_str(&server.run(&["webhooks", "list", "--json"])).unwrap()
}

/// Signs somebody up under a name, and confirms it.
pub(super) async fn confirmed(server: &Server, key: &str, name: &str) {
    invite(server, key, name, &format!("{name}@example.com")).await.good();
    server.confirm(server.number("SELECT max(id) FROM sign_ups")).await;
}

pub(super) fn is_signed(message: &Message, secret: &str) -> bool {
    let id = &message.headers["webhook-id"];
    let seconds = message.headers["webhook-timestamp"].parse().unwrap();
    let secret = WebhookSecret::from_shown(secret).unwrap();
    let signature = secret.signature(id, seconds, message.body.as_bytes());
    message.headers["webhook-signature"].split(' ').any(|one| one == signature)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_tests_enables_and_recovers_an_endpoint_on_the_page() {
    let ((server, key), receiver) = (Server::with_key(&[]), Receiver::start().await);
    let secret = add(&server, &receiver, "/ok");
    add_for(&server, "Acme Assistant", &receiver.url("/moved"));
    confirmed(&server, &key, "one").await;
    wait_for!(async || receiver.at("/ok").len() == 1).await;
    let mut ana = signed_in(&server, "ana", 1).await;
    let partner = server.number("SELECT id FROM partners");
    let path = format!("/operator/partners/{partner}/webhooks");
    let html = page(&ana.get(&path).await, 200, "Endpoint 1");
    assert!(html.contains(&receiver.url("/ok")) && !html.contains("Enable it"), "{html}");
    let fields = |act, id| [("act", act), ("endpoint", id)];
    page(&act(&mut ana, &path, &fields("test", "1")).await, 200, "Endpoint 1 took the test message: it answered 200");
    let ping = receiver.at("/ok").pop().unwrap();
    assert!(is_signed(&ping, &secret) && ping.body.contains("ping"), "{ping:?}");
    page(&act(&mut ana, &path, &fields("test", "2")).await, 200, "Anything but 2xx is a failure");
    server.execute("UPDATE webhook_endpoints SET disabled_at = 1, disabled_reason = '<b>gone</b>' WHERE id = 1");
    let html = page(&ana.get(&path).await, 200, "Enable it");
    assert!(html.contains("&#60;b&#62;gone") && !html.contains("<b>gone"), "{html}");
    for _ in 0..2 {
        page(&act(&mut ana, &path, &fields("enable", "1")).await, 200, "Endpoint 1 is enabled");
    }
    assert_eq!(server.number("SELECT count(*) FROM webhook_endpoints WHERE disabled_at IS NOT NULL"), 0);
    let since = |text| [("act", "recover"), ("endpoint", "1"), ("since", text)];
    for wrong in ["", "yesterday", "<b>"] {
        let html = page(&act(&mut ana, &path, &since(wrong)).await, 400, "Write a day, such as 2027-01-31");
        assert!(!html.contains("<b>"));
    }
    let before = receiver.at("/ok").len();
    page(&act(&mut ana, &path, &since("2020-01-01")).await, 200, "each with the same id: 1 event.");
    wait_for!(async || receiver.at("/ok").len() > before).await;
    // Another partner's, one that is none, and an act that is none.
    server.run(&["keys", "issue", "Other"]);
    let others = format!("/operator/partners/{}/webhooks", server.number("SELECT max(id) FROM partners"));
    page(&ana.get(&others).await, 200, "None.");
    for (path, fields) in
        [(&others, fields("enable", "1")), (&path, fields("enable", "99")), (&path, fields("test", "x"))]
    {
        page(&act(&mut ana, path, &fields).await, 400, "no such endpoint");
    }
    page(&act(&mut ana, &path, &fields("remove", "1")).await, 400, "neither test nor enable nor recover");
    let acts: Vec<_> = audit(&server).into_iter().filter(|(who, ..)| who == "ana (page)").skip(1).collect();
    let expected = [
        ("webhooks test", "endpoint 1"),
        ("webhooks test", "endpoint 2"),
        ("webhooks enable", "endpoint 1"),
        ("webhooks enable", "endpoint 1"),
        ("webhooks recover", "endpoint 1 since 2020-01-01T00:00:00Z"),
    ];
    let expected = expected.map(|(command, about)| ("ana (page)".to_owned(), command.to_owned(), about.to_owned()));
    assert_eq!(acts, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmation_is_told_signed_and_once() {
    let ((server, key), receiver) = (Server::with_key(&[]), Receiver::start().await);
    let secret = add(&server, &receiver, "/ok");
    server.run(&["webhooks", "test", "1", "--base-url", "http://127.0.0.1:8080"]);
    let guarded = server.try_run(&["webhooks", "test", "1"]);
    assert!(
        String::from_utf8_lossy(&guarded.stderr).contains("UNIONHALL_BASE_URL=http://127.0.0.1:8080"),
        "the same guard as adding has"
    );
    let ping = &receiver.at("/ok")[0];
    assert!(is_signed(ping, &secret) && ping.body.starts_with(r#"{"type":"ping","timestamp":"20"#), "{ping:?}");
    confirmed(&server, &key, "one").await;
    // Nothing is told of one without a name.
    server.post("/v1/invite", &key, sign_up("nameless@example.com")).await.good();
    server.confirm(2).await;
    receiver.wait_for("/ok", 2).await;
    confirmed(&server, &key, "two").await;
    receiver.wait_for("/ok", 3).await;
    let waiting = "SELECT count(*) FROM webhook_deliveries WHERE delivered_at IS NULL";
    wait_for!(async || server.number(waiting) == 0).await;
    let messages = receiver.at("/ok");
    assert_eq!(messages.len(), 3);
    let body: Value = serde_json::from_str(&messages[1].body).unwrap();
    assert_eq!(
        (&body["type"], &body["data"]),
        (&"sign_up.confirmed".into(), &serde_json::json!({ "idempotencyKey": "one" }))
    );
    assert!(messages.iter().all(|message| is_signed(message, &secret)));
    assert!(!is_signed(&messages[1], &WebhookSecret::derive(&server.records().secret(), 1, 9, 1).unwrap().reveal()));
    let ids: std::collections::HashSet<_> = messages.iter().map(|message| &message.headers["webhook-id"]).collect();
    assert_eq!(ids.len(), 3);
    // Two secrets sign after a rotation; the same message keeps its id.
    let next = server.run(&["webhooks", "rotate", "1"]);
    assert_ne!(next, secret);
    server.run(&["webhooks", "resend", "1", "one"]);
    receiver.wait_for("/ok", 4).await;
    let again = receiver.at("/ok").pop().unwrap();
    assert_eq!((&again.headers["webhook-id"], &again.body), (&messages[1].headers["webhook-id"], &messages[1].body));
    assert!(is_signed(&again, &secret) && is_signed(&again, &next));
    server.execute("UPDATE webhook_endpoints SET rotated_at = rotated_at - 86400000");
    server.run(&["webhooks", "recover", "1", "--since", "2026-01-01"]);
    receiver.wait_for("/ok", 6).await;
    let later = receiver.at("/ok").pop().unwrap();
    assert!(!is_signed(&later, &secret) && is_signed(&later, &next));
    // A second rotation would end a secret that the partner was promised a day for.
    server.run(&["webhooks", "rotate", "1"]);
    let refused = server.try_run(&["webhooks", "rotate", "1"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("still signs"), "{refused:?}");
    server.run(&["webhooks", "rotate", "1", "--now"]);
    let refused = server.try_run(&["webhooks", "resend", "1", "nothing"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nothing is sent"), "{refused:?}");
    assert!(!server.log().contains("example.com"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_taken_is_tried_again_at_its_time() {
    let ((server, key), receiver) = (Server::with_key(&[]), Receiver::start().await);
    let paths = ["/moved", "/gone", "/later", "/reset", "/slow", "/huge", "/ok"];
    for path in paths {
        add(&server, &receiver, path);
    }
    // Nobody listens there.
    add_for(&server, "Acme Assistant", "http://127.0.0.1:9/away");
    confirmed(&server, &key, "one").await;
    wait_for!(async || {
        listed(&server).iter().all(|one| one["deliveredAt"].is_string() || one["lastError"].is_string())
    })
    .await;
    let state: HashMap<_, _> = listed(&server)
        .into_iter()
        .map(|one| (one["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned(), one))
        .collect();
    for well in ["slow", "huge", "ok"] {
        assert!(state[well]["deliveredAt"].is_string() && state[well]["waiting"] == 0, "{}", state[well]);
    }
    for (failing, cause) in [
        ("moved", "it answered 301, and redirects are not followed"),
        ("later", "it answered 429"),
        ("reset", "gave no answer"),
        ("away", "could not be connected to"),
    ] {
        let told = state[failing]["lastError"].as_str().unwrap();
        assert!(
            told.contains(cause) && state[failing]["waiting"] == 1 && state[failing]["disabledAt"].is_null(),
            "{}",
            state[failing]
        );
    }
    assert!(state["gone"]["disabledReason"].as_str().unwrap().contains("410"), "{}", state["gone"]);
    assert_eq!(receiver.at("/ok").len(), 1, "a redirect is not followed");
    // What has not been tried again yet.
    let waits = |path: &str| {
        server.rows(&format!(
            "SELECT d.send_after - d.last_attempt_at FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id
             WHERE e.url LIKE '%/{path}' AND d.attempts = 1"
        ))
    };
    let among = |path: &str, range: std::ops::Range<i64>| {
        waits(path).iter().all(|wait| range.contains(&wait[0].parse().unwrap()))
    };
    assert!(among("moved", 4_000..6_001), "5 s, and a fifth of jitter: {:?}", waits("moved"));
    assert!(waits("later").len() == 1 && among("later", 7_199_000..8_700_000), "as it asked: {:?}", waits("later"));
    // The second attempt comes by itself.
    receiver.wait_for("/reset", 2).await;
    let both = receiver.at("/reset");
    assert_eq!((&both[0].body, &both[0].headers["webhook-id"]), (&both[1].body, &both[1].headers["webhook-id"]));
    assert!(server.log().contains("webhook endpoint 2 of Acme Assistant is disabled"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_survives_a_crash_between_confirmation_and_delivery() {
    let ((server, key), receiver) = (Server::with_key(&[]), Receiver::start().await);
    let secret = add(&server, &receiver, "/hang");
    confirmed(&server, &key, "one").await;
    receiver.wait_for("/hang", 1).await;
    server.signal("KILL");
    // The partner has mended its endpoint by the time of the next start, and the lease of the one that died has ended.
    let home = server.into_home();
    home.records().execute(&format!("UPDATE webhook_endpoints SET url = '{}'", receiver.url("/ok")));
    home.records().execute("UPDATE webhook_deliveries SET leased_until = 0");
    let server = Server::start_in(home, &[]);
    receiver.wait_for("/ok", 1).await;
    let (first, second) = (&receiver.at("/hang")[0], &receiver.at("/ok")[0]);
    assert_eq!((&first.body, &first.headers["webhook-id"]), (&second.body, &second.headers["webhook-id"]));
    assert!(is_signed(second, &secret));
    assert_eq!(ask(&server, &key, "/partner/v1/sign-ups/one").await.good()["status"], "confirmed");
}

/// Ten thousand messages wait for an endpoint that hangs; another's go as if there were none.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_endpoint_does_not_delay_a_live_one() {
    let ((server, key), receiver) = (Server::with_key(&[]), Receiver::start().await);
    add(&server, &receiver, "/hang");
    server.run(&["keys", "issue", "Zoe"]);
    add_for(&server, "Zoe", &receiver.url("/ok"));
    confirmed(&server, &key, "seed").await;
    receiver.wait_for("/hang", 1).await;
    for (partner, endpoint, messages) in [("Acme Assistant", 1, 10_000), ("Zoe", 2, 2_000)] {
        let numbers = format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {messages})");
        server.execute(&format!(
            "INSERT INTO partner_events (partner_id, idempotency_key, kind, at)
             {numbers} SELECT p.id, 'k' || i, 'sign_up.confirmed', 1794000000000 FROM n, partners p WHERE p.name = '{partner}'"
        ));
        server.execute(&format!(
            "INSERT INTO webhook_deliveries (endpoint_id, event_id, send_after)
             SELECT {endpoint}, id, 1794000000000 FROM partner_events
             WHERE partner_id = (SELECT id FROM partners WHERE name = '{partner}') AND idempotency_key LIKE 'k%'"
        ));
    }
    // More of the live one's have arrived than there are places, and one of the dead one's still waits for its answer.
    wait_for!(async || receiver.most_beside_one_that_hangs() > 64).await;
    let live = server.run(&["keys", "issue", "Zoe"]);
    invite(&server, &live, "fresh", "zoe@example.com").await.good();
    let waiting =
        || server.number("SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = 2 AND settled_at IS NULL");
    wait_for!(async || waiting() == 0).await;
    assert_eq!(receiver.at("/ok").len(), 2_000, "each once");
    assert!(receiver.at("/hang").len() <= 40, "the dead one has a few places: {}", receiver.at("/hang").len());
    server.confirm(server.number("SELECT max(id) FROM sign_ups")).await;
    receiver.wait_for("/ok", 2_001).await;
}

/// Endpoints that take as long as they may kept every place between them, and those with the lowest ids were always first.
#[tokio::test(flavor = "multi_thread")]
async fn slow_endpoints_leave_places_to_others() {
    let (server, receiver) = (Server::start(), Receiver::start().await);
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)";
    for slow in 1..=10 {
        let partner = format!("Slow {slow}");
        server.run(&["keys", "issue", &partner]);
        add_for(&server, &partner, &receiver.url("/hang"));
    }
    let key = server.run(&["keys", "issue", "Zoe"]);
    add_for(&server, "Zoe", &receiver.url("/ok"));
    server.execute(&format!(
        "INSERT INTO partner_events (partner_id, idempotency_key, kind, at)
         {numbers} SELECT p.id, 'k' || i, 'sign_up.confirmed', 1794000000000 FROM n, partners p WHERE p.name LIKE 'Slow%'"
    ));
    server.execute(
        "INSERT INTO webhook_deliveries (endpoint_id, event_id, send_after)
         SELECT e.id, v.id, 1794000000000
         FROM partner_events v JOIN webhook_endpoints e ON e.partner_id = v.partner_id",
    );
    // As many as there may be are on their way; each may take a quarter of a minute.
    wait_for!(async || receiver.hanging().0 >= 48).await;
    let (_, left) = receiver.hanging();
    invite(&server, &key, "fresh", "zoe@example.com").await.good();
    server.confirm(server.number("SELECT max(id) FROM sign_ups")).await;
    receiver.wait_for("/ok", 1).await;
    assert_eq!(receiver.hanging().1, left, "it went before any of those on their way was left");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_partners_contact_is_written_to_when_an_endpoint_is_disabled() {
    let ((server, key), receiver) = (Server::with_key(&[]), Receiver::start().await);
    add(&server, &receiver, "/gone");
    server.run(&["partners", "contact", "Acme Assistant", "ops@acme.example"]);
    confirmed(&server, &key, "one").await;
    wait_for!(async || listed(&server)[0]["disabledAt"].is_string()).await;
    // The worker looks once a minute; another start looks at once.
    let server = Server::start_in(server.stop().1, &[]);
    let mail = || {
        let folder = server.data().join("mailbox");
        // The folder comes with its first mail.
        let mut found = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        found.find(|path| {
            path.to_string_lossy().contains("endpoint-") && path.extension().is_some_and(|kind| kind == "eml")
        })
    };
    wait_for!(async || mail().is_some()).await;
    let text = std::fs::read_to_string(mail().unwrap()).unwrap();
    holds(&text, &["To: ops@acme.example", "webhook endpoint 1 is disabled", "410"]);
    wait_for!(async || { server.number("SELECT count(*) FROM webhook_endpoints WHERE notified_at IS NOT NULL") == 1 })
        .await;
    let partner = server.json(&["partners", "show", "Acme Assistant", "--json"]);
    assert_eq!((&partner["contact"], &partner["endpoints"]), (&"ops@acme.example".into(), &1.into()));
    server.run(&["webhooks", "remove", &EndpointId(1).to_string()]);
    assert!(listed(&server).is_empty());
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn endpoints_are_refused_in_words() {
        let server = Server::start();
        server.key();
        let refused = |partner: &str, url: &str| {
            let output = server.try_run(&["webhooks", "add", partner, url]);
            assert!(!output.status.success(), "{url}");
            String::from_utf8(output.stderr).unwrap()
        };
        for (url, told) in [
            ("http://partner.example/hook", "https://"),
            ("https://10.0.0.1/hook", "UNIONHALL_OUTBOUND_ALLOW"),
            ("https://[::ffff:10.0.0.1]/hook", "write the IPv4 address itself"),
            ("https://169.254.169.254/latest", "not on the public internet"),
            ("https://user:word@partner.example/", "user"),
            ("https://2130706433/", "number"),
            ("not a url", "https://"),
        ] {
            let text = refused("Acme Assistant", url);
            assert!(text.contains(told) && text.lines().count() == 1, "{url}: {text}");
        }
        let base = ["--base-url", "http://127.0.0.1:8080"];
        let add = |partner: &str| {
            let output = server.try_run(&[&["webhooks", "add", partner, "http://127.0.0.1:9/"][..], &base].concat());
            String::from_utf8(output.stderr).unwrap()
        };
        assert!(add("Nobody").contains("there is no partner of that name"));
        assert!(add("Acme Assistant").contains("Its secret is shown only now"));
        assert!(add("Acme Assistant").contains("that is endpoint 1 of the partner already"));
        let unknown = server.try_run(&["webhooks", "test", "7"]);
        assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is no endpoint 7"));
        // While the service is not at a loopback address, nothing on this machine is; nor where nobody says where it is.
        for base in [&["--base-url", "https://u.example"][..], &[]] {
            let add = [&["webhooks", "add", "Acme Assistant", "http://127.0.0.1:9/two"][..], base].concat();
            assert!(!server.try_run(&add).status.success());
        }
        let told = server.try_run(&["partners", "show", "a\nb"]);
        assert_eq!(String::from_utf8_lossy(&told.stderr).lines().count(), 1, "{told:?}");
        // Beside the closed /v1, lists may grow.
        let document = server.send(Request::get("/partner/openapi.json"), "").await;
        assert_eq!(document.status, 200);
        let document: serde_json::Value = serde_json::from_slice(&document.body).unwrap();
        let schemas = &document["components"]["schemas"];
        let open = |list: &str| json!([{ "$ref": format!("#/components/schemas/{list}") }, { "type": "string" }]);
        assert_eq!(schemas["Error"]["properties"]["code"]["anyOf"], open("ErrorCode"));
        assert_eq!(schemas["ErrorCode"]["enum"].as_array().unwrap().len(), 6);
        // One type for one thing, wherever it is used.
        for answer in ["StatusAnswer", "StatusOfSignUp"] {
            assert_eq!(schemas[answer]["properties"]["status"]["anyOf"], open("SignUpStatus"), "{answer}");
        }
        let filter = &document["paths"]["/partner/v1/sign-ups"]["get"]["parameters"][1];
        assert_eq!((&filter["name"], &filter["schema"]), (&json!("status"), &open("SignUpStatus")[0]));
        assert_eq!(schemas["SignUpStatus"]["enum"], json!(["pending", "confirmed", "closed"]));
    }
}
