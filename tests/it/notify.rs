//! What needs attention is told by `--notify`: once when it has begun and once when it is over, by one node, in few messages.

use crate::partners::webhooks::{Message, Receiver};
use crate::prelude::*;
use unionhall::domain::webhook::signature::WebhookSecret;

fn told(message: &Message) -> Value {
    serde_json::from_str(&message.body).unwrap()
}

#[track_caller]
fn is_signed(message: &Message, secret: &WebhookSecret) {
    let header = |name: &str| message.headers[name].as_str();
    let seconds = header("webhook-timestamp").parse().unwrap();
    let expected = secret.signature(header("webhook-id"), seconds, message.body.as_bytes());
    assert_eq!(header("webhook-signature"), expected);
}

/// The service as it runs; that five minutes have passed is written into the records.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_service_tells_a_web_address() {
    let receiver = Receiver::start().await;
    let url = receiver.url("/ok");
    let server = Server::start_with(&["--notify", &url]);
    let secret = WebhookSecret::from_shown(&server.run(&["notify", "secret"])).unwrap();
    let listen = server.address.to_string();
    let test = server.command().args(["notify", "test", "--notify", &url, "--listen", &listen]).output().unwrap();
    assert!(test.status.success(), "{test:?}");
    let tested = receiver.at("/ok").remove(0);
    is_signed(&tested, &secret);
    assert_eq!(told(&tested)["type"], "findings.test");

    server.run(&["signups", "pause"]);
    wait_for!(async || server.number("SELECT count(*) FROM told_findings WHERE name LIKE 'sign-ups%'") == 1).await;
    server.execute("UPDATE told_findings SET began_at = began_at - 300000");
    receiver.wait_for("/ok", 2).await;
    let began = receiver.at("/ok").remove(1);
    is_signed(&began, &secret);
    assert_eq!(told(&began)["data"]["began"][0]["finding"], "sign-ups warn ", "{}", began.body);
    assert_eq!(told(&began)["data"]["page"], format!("http://{}/operator", server.address));
    server.run(&["signups", "resume"]);
    let over = async || {
        server.execute("UPDATE told_findings SET seen_at = seen_at - 300000 WHERE seen_at > 1500000000000");
        receiver.at("/ok").len() > 2
    };
    // Whatever is still seen is seen again at the next look.
    wait_for!(over).await;
    wait_for!(async || server.number("SELECT count(*) FROM told_findings") == 0).await;
    let ended = told(&receiver.at("/ok")[2]);
    assert_eq!(
        (&ended["data"]["began"], &ended["data"]["ended"][0]["finding"]),
        (&json!([]), &json!("sign-ups warn "))
    );
    assert_eq!(receiver.at("/ok").len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_is_mailed_and_mistakes_are_told() {
    needs!(MailServer);
    let mail = Mailserver::start(&[]);
    let url = format!("smtp://127.0.0.1:{}", mail.port);
    let server = Server::start_with(&["--mail", &url, "--notify", "ops@union.example"]);
    let said = server.run(&["notify", "test", "--mail", &url, "--notify", "ops@union.example"]);
    assert_eq!(said, "A test was handed to the mail server for ops@union.example.");
    let arrived = mail.wait_for(1).await.remove(0);
    assert_eq!(arrived["to"], json!(["ops@union.example"]));
    let message = MessageParser::default().parse(arrived["content"].as_str().unwrap().as_bytes()).unwrap().into_owned();
    holds(&message.body_text(0).unwrap(), &["This is a test: nothing is wrong", "/operator"]);
    let refused = |flags: &[&str]| {
        let done = server.try_run(&[&["notify", "test"], flags].concat());
        assert!(!done.status.success());
        String::from_utf8(done.stderr).unwrap()
    };
    holds(&refused(&[]), &["nowhere is set"]);
    holds(&refused(&["--notify", "ops"]), &["neither a web address nor an email address"]);
    holds(&refused(&["--notify", "ops@union.example", "--mail", "hold"]), &["no mail leaves from here"]);
    holds(&refused(&["--notify", "https://127.0.0.1:1/"]), &["was not sent"]);
    let start = server.command().args(["serve", "--listen", "127.0.0.1:0", "--notify", "ops"]).output().unwrap();
    holds(&String::from_utf8(start.stderr).unwrap(), &["neither a web address nor an email address"]);
}

/// The steps of the notifier, with times that are passed in, on each store.
mod once {
    use super::*;
    use unionhall::cli::remedy;
    use unionhall::config::UnionSettings;
    use unionhall::domain::api_key::Mode;
    use unionhall::domain::webhook::url::EndpointUrl;
    use unionhall::operator::Operator;
    use unionhall::operator::findings::Finding;
    use unionhall::operator::notify::{MESSAGES_AN_HOUR, Notifier, NotifyChannel};
    use unionhall::operator::running::FoundProblems;
    use unionhall::outbound::GuardedClient;
    use unionhall::store::sqlite::SqliteStore;

    struct Nodes {
        store: Store,
        records: Records,
        receiver: Receiver,
        /// From then on minutes are counted: the begin of an hour.
        start: Timestamp,
    }

    impl Nodes {
        fn node(&self, path: &str) -> Notifier {
            let url = EndpointUrl::parse(&self.receiver.url(path)).unwrap();
            let channel = NotifyChannel::Webhook { url, client: GuardedClient::new(Vec::new(), true) };
            let operator = Operator::new(self.store.clone(), Mode::Live);
            Notifier::new(operator, channel, secret(), Arc::new(UnionSettings::sample()), remedy::write)
        }

        fn at(&self, minute: u64) -> Timestamp {
            self.start.plus(Duration::from_secs(60 * minute))
        }

        async fn round(&self, node: &mut Notifier, found: &[Finding], minute: u64) -> Result<(), String> {
            let at = self.at(minute);
            node.round(&FoundProblems { at, findings: found.to_vec().into(), is_whole: true }, at).await
        }

        fn told(&self) -> Vec<Value> {
            self.receiver.at("/ok").iter().map(told).collect()
        }
    }

    fn secret() -> Secret {
        Secret::new(&"s".repeat(32)).unwrap()
    }

    fn fails(subject: &str) -> Finding {
        Finding::fail("mail", "it cannot be sent", "look").about(subject)
    }

    fn on_each_store(walk: impl AsyncFn(&Nodes)) {
        block_on(async {
            let start = Timestamp::from_millis(1_800_000_000_000);
            let folder = tempfile::tempdir().unwrap();
            let store = Store::new(Arc::new(SqliteStore::open(&folder.path().join("unionhall.db")).unwrap()));
            let records = Records::Sqlite { data: folder.path().to_owned() };
            walk(&Nodes { store, records, receiver: Receiver::start().await, start }).await;
            let database = Database::migrated().await;
            let records = Records::Postgres { store: database.url(), limits: String::new() };
            let store = PostgresStore::open(database.address(), Prepare::Upgrade, 256).await.unwrap();
            let nodes = Nodes { store: Store::new(Arc::new(store)), records, receiver: Receiver::start().await, start };
            walk(&nodes).await;
            nodes.store.close().await.unwrap();
        });
    }

    #[test]
    fn what_lasts_is_told_once_by_one_node_and_so_is_its_end() {
        needs!(Postgres);
        on_each_store(async |nodes| {
            let (mut a, mut b) = (nodes.node("/ok"), nodes.node("/ok"));
            for minute in 0..5 {
                nodes.round(&mut a, &[fails("")], minute).await.unwrap();
                nodes.round(&mut b, &[fails("")], minute).await.unwrap();
            }
            assert_eq!(nodes.told(), Vec::<Value>::new(), "it may be a restart");
            // The end of a short fault, and a restart of a node: nothing is told and nothing forgotten.
            let mut a = nodes.node("/ok");
            for minute in 5..30 {
                let short = if minute < 8 { vec![fails(""), fails("short")] } else { vec![fails("")] };
                let (one, other) =
                    tokio::join!(nodes.round(&mut a, &short, minute), nodes.round(&mut b, &short, minute));
                assert_eq!((one, other), (Ok(()), Ok(())));
            }
            let told = nodes.told();
            assert_eq!(told.len(), 1, "{told:#?}");
            let began = &told[0]["data"]["began"][0];
            assert_eq!((&began["finding"], &began["since"]), (&json!("mail fail "), &json!(nodes.at(0))));
            assert_eq!(began["message"], "mail, fails: it cannot be sent (look)");
            assert_eq!(told[0]["type"], "findings.changed");
            is_signed(&nodes.receiver.at("/ok")[0], &WebhookSecret::of_notices(&secret())[0]);

            // A node that cannot read the records does not say that it is over.
            for minute in 30..45 {
                let at = nodes.at(minute);
                a.round(&FoundProblems { at, findings: Arc::new([]), is_whole: false }, at).await.unwrap();
            }
            assert_eq!(nodes.told().len(), 1);
            nodes.round(&mut b, &[fails("")], 45).await.unwrap();
            for minute in 46..60 {
                nodes.round(&mut a, &[], minute).await.unwrap();
                nodes.round(&mut b, &[], minute).await.unwrap();
            }
            let told = nodes.told();
            assert_eq!((told.len(), &told[1]["data"]["ended"][0]["finding"]), (2, &json!("mail fail ")), "{told:#?}");
            assert_eq!(nodes.records.number("SELECT count(*) FROM told_findings"), 0);
        });
    }

    #[test]
    fn messages_are_few_and_the_last_says_that_there_may_be_more() {
        needs!(Postgres);
        on_each_store(async |nodes| {
            let mut node = nodes.node("/ok");
            let mut found = Vec::new();
            for minute in 0..59 {
                found.push(fails(&minute.to_string()));
                nodes.round(&mut node, &found, minute).await.unwrap();
            }
            let told = nodes.told();
            assert_eq!(told.len(), MESSAGES_AN_HOUR, "{told:#?}");
            let more: Vec<_> = told.iter().map(|one| one["data"]["mayBeMore"] == true).collect();
            assert_eq!(more, [false, false, false, false, false, true]);
            // What was not told is told in the next hour, some at a time.
            nodes.round(&mut node, &found, 60).await.unwrap();
            assert_eq!(nodes.told()[MESSAGES_AN_HOUR]["data"]["began"].as_array().unwrap().len(), 20);
        });
    }

    #[test]
    fn what_the_receiver_refuses_is_sent_again_as_the_same_message() {
        needs!(Postgres);
        on_each_store(async |nodes| {
            let mut node = nodes.node("/later");
            for minute in 0..5 {
                nodes.round(&mut node, &[fails("")], minute).await.unwrap();
            }
            for minute in [5, 8] {
                let why = nodes.round(&mut node, &[fails("")], minute).await.unwrap_err();
                assert!(why.ends_with("answered 429"), "{why}");
            }
            let ids: Vec<_> =
                nodes.receiver.at("/later").iter().map(|message| message.headers["webhook-id"].clone()).collect();
            assert!(ids.len() == 2 && ids[0] == ids[1], "{ids:?}");
            nodes.round(&mut nodes.node("/ok"), &[fails("")], 11).await.unwrap();
            assert_eq!(nodes.told().len(), 1);
        });
    }

    #[test]
    fn a_node_without_its_records_tells_that_alone() {
        needs!(Postgres);
        on_each_store(async |nodes| {
            let mut node = nodes.node("/ok");
            let records = [Finding::fail("records", "the store takes no writes", "look")];
            for minute in 0..3 {
                nodes.records.execute("ALTER TABLE told_findings RENAME TO away");
                nodes.round(&mut node, &records, minute).await.unwrap();
                nodes.records.execute("ALTER TABLE away RENAME TO told_findings");
                nodes.round(&mut node, &[], minute).await.unwrap();
            }
            nodes.records.execute("ALTER TABLE told_findings RENAME TO away");
            for minute in 3..20 {
                nodes.round(&mut node, &records, minute).await.unwrap();
            }
            let told = nodes.told();
            assert_eq!(told.len(), 1, "{told:#?}");
            assert_eq!(told[0]["data"]["began"][0]["message"], "this node cannot use its records: sign-ups fail");
            nodes.records.execute("ALTER TABLE away RENAME TO told_findings");
            nodes.round(&mut node, &[], 20).await.unwrap();
            let told = nodes.told();
            assert_eq!(
                (told.len(), &told[1]["data"]["ended"][0]["finding"]),
                (2, &json!("records alone")),
                "{told:#?}"
            );
        });
    }
}
