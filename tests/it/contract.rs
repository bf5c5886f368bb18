//! The contract, line by line, over the real server.

use crate::prelude::*;
use unionhall::operations::Method;

const SLUGS: [(&str, &str); 14] = [
    ("mobile_bills", "Mobile Plan"),
    ("internet", "Home Internet"),
    ("car_insurance", "Car Insurance"),
    ("home_insurance", "Home Insurance"),
    ("insurance", "Insurance"),
    ("credit_card_debt", "Credit Card Debt"),
    ("mortgage", "Mortgage"),
    ("hawaii_resort_stay", "Hawaii Resort Stay"),
    ("alaska_cruise", "Alaska Cruise"),
    ("auto_loan", "Auto Loan"),
    ("travel", "Travel"),
    ("medical_costs", "Medical Costs"),
    ("subscriptions", "Subscriptions"),
    ("groceries", "Groceries"),
];

const STATES: &str = "AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM \
                      NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY";

#[track_caller]
fn fields(value: &Value, expected: &[&str]) {
    let fields: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn stats_are_live_and_sign_ups_count_only_once_confirmed() {
    let (server, key) = Server::with_key(&[]);
    let stats = server.get("/v1/stats").await;
    assert_eq!(stats.good(), json!({ "ok": true, "memberCount": 0 }));
    assert_eq!(stats.header("cache-control"), "no-store");
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    assert_eq!(server.get("/v1/stats").await.good()["memberCount"], 0);

    let only = server.number("SELECT id FROM sign_ups");
    assert_eq!(server.confirm(only).await.status, 200);
    assert_eq!(server.get("/v1/stats").await.good()["memberCount"], 1);
    let next = server.post("/v1/invite", &key, sign_up("ben@example.com")).await.good();
    assert_eq!(next["joinedCount"], 1);
    // This test is another process than the server: what it commits must show in the very next answer.
    server.execute("UPDATE installation SET member_count = member_count + 1");
    assert_eq!(server.get("/v1/stats").await.good()["memberCount"], 2);
    let next = server.post("/v1/invite", &key, sign_up("cleo@example.com")).await.good();
    assert_eq!(next["joinedCount"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_up() {
    let (server, key) = Server::with_key(&["--join-site", "https://union.example/"]);
    let plain = server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    fields(&plain, &["ok", "inviteLink", "joinedCount", "selectedSavingsTotal", "refAttributed"]);
    let link = plain["inviteLink"].as_str().unwrap();
    let code = link.strip_prefix("https://union.example/joinus").unwrap();
    assert_eq!(code.len(), 12);
    assert_eq!(plain["selectedSavingsTotal"], 0);
    assert_eq!(plain["refAttributed"], false);

    let all: serde_json::Map<_, _> = SLUGS.iter().map(|(slug, _)| ((*slug).to_owned(), json!(true))).collect();
    let full = json!({
        "email": "ben@example.com", "usState": "DC", "categories": all,
        "otherComments": "é".repeat(1000), "refCode": code,
    });
    let done = server.post("/v1/invite", &key, full.to_string()).await.good();
    assert_eq!(done["refAttributed"], true);
    let total = server.get("/v1/negotiate-categories").await.good()["totalPotentialAnnualSavings"].clone();
    assert_eq!(done["selectedSavingsTotal"], total);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_and_every_category_is_taken() {
    let (server, key) = Server::with_key(&["--key-per-minute", "1000"]);
    assert_eq!(STATES.split(' ').count(), 51);
    for state in STATES.split(' ') {
        let body = json!({ "email": "ana@example.com", "usState": state });
        server.post("/v1/invite", &key, body.to_string()).await.good();
    }
    for (slug, _) in SLUGS {
        let body = json!({ "email": "ana@example.com", "categories": { slug: true } });
        assert!(
            server.post("/v1/invite", &key, body.to_string()).await.good()["selectedSavingsTotal"].as_u64() > Some(0)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn referral_link() {
    let (server, key) = Server::with_key(&["--mail", "hold"]);
    let made = server.post("/v1/referral-link", &key, sign_up("ana@example.com")).await.good();
    fields(&made, &["ok", "inviteLink", "code"]);
    let code = made["code"].as_str().unwrap();
    assert_eq!(made["inviteLink"], format!("http://{}/joinus{code}", server.address));
    let again = server.post("/v1/referral-link", &key, sign_up("ANA@Example.com")).await.good();
    assert_eq!(made, again);
    let joined = server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    assert_eq!(joined["inviteLink"], made["inviteLink"]);
    assert_eq!(server.number("SELECT count(*) FROM outbox"), 1, "only the sign-up is mailed");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_keeps_the_common_rules() {
    let server = Server::start_with(&["--public-per-minute", "5", "--key-per-minute", "5"]);
    for operation in ALL {
        let spec = &operation.spec;
        let bare = || match spec.method {
            Method::Get => Request::get(spec.path),
            Method::Post => Request::post(spec.path).header("content-type", "application/json"),
            Method::Delete => Request::delete(spec.path),
        };
        let good_body = serde_json::json!({ "email": "ana@example.com" }).to_string();
        // A client of its own for each operation: the public ones share one budget for an address.
        let from = std::net::Ipv4Addr::new(127, 0, 1, operation.position as u8 + 1);
        let send = async |request, body: &str| server.send_from(from, request, body.to_owned()).await;
        let key = server.run(&["keys", "issue", spec.id]);
        let with_key = || bare().header("authorization", format!("Bearer {key}"));

        let without = send(bare(), &good_body).await;
        let invalid = send(bare().header("authorization", "Bearer nonsense"), &good_body).await;
        match spec.access {
            Access::Public => {
                without.good();
                invalid.good();
                assert_eq!(invalid.header("ratelimit"), "\"public\";r=3;t=60", "an invalid key counts as none");
                assert_eq!(without.header("access-control-allow-origin"), "*");
            }
            Access::Agent | Access::Partner | Access::Operator => {
                for answer in [without, invalid] {
                    answer.refused(401, "agent_unauthorized");
                    assert_eq!(answer.header("www-authenticate"), "Bearer");
                    assert_eq!(answer.header("access-control-allow-origin"), "");
                }
                for (body, code) in [("{", "invalid_json"), ("{}", "invalid_submission")] {
                    send(with_key(), body).await.refused(400, code);
                }
            }
        }
        let spent = if spec.access == Access::Agent { 2 } else { 0 };
        for _ in spent..5 {
            send(with_key(), &good_body).await.good();
        }
        let over = send(with_key(), "{").await;
        let message = over.refused(429, "rate_limited");
        let wait: u32 = over.header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&wait) && message.contains(&format!("{wait} second")), "{message}");
        assert_eq!(over.header("ratelimit"), format!("\"{}\";r=0;t={wait}", spec.access.class().name()));
    }
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn categories_and_the_referral_program() {
        let server = Server::start();
        let list = server.get("/v1/negotiate-categories").await.good();
        fields(&list, &["ok", "currency", "categories", "totalPotentialAnnualSavings"]);
        assert_eq!(list["currency"], "USD");
        let categories = list["categories"].as_array().unwrap();
        let mut total = 0;
        for (category, (slug, label)) in categories.iter().zip(SLUGS) {
            fields(category, &["slug", "label", "annualSavings"]);
            assert_eq!((&category["slug"], &category["label"]), (&json!(slug), &json!(label)));
            total += category["annualSavings"].as_u64().unwrap();
        }
        assert_eq!(categories.len(), 14);
        assert_eq!(list["totalPotentialAnnualSavings"], total);

        let terms = server.get("/v1/referral-program").await.good();
        fields(&terms, &["ok", "currency", "rewardPerGroup", "groupSize", "maxReward", "maxGroups", "rules"]);
        assert_eq!(terms["currency"], "USD");
        let figure = |name: &str| terms[name].as_u64().unwrap();
        assert_eq!(figure("maxReward"), figure("rewardPerGroup") * figure("maxGroups"));
        let rules: Vec<_> = terms["rules"].as_array().unwrap().iter().map(|rule| rule.as_str().unwrap()).collect();
        let group = format!("group of {}", figure("groupSize"));
        assert!(rules.iter().any(|rule| rule.contains(&group) && rule.contains("same campaign")), "{rules:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_operators_catalog_is_what_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = folder.path().join("catalog.toml");
        let text = "[savings]\ntravel = 250\ninternet = 120\n[referral]\nreward_per_group = 40\ngroup_size = 3\nmax_groups = 7\n";
        std::fs::write(&catalog, text).unwrap();
        let server = Server::start_with(&["--catalog", catalog.to_str().unwrap()]);
        let list = server.get("/v1/negotiate-categories").await.good();
        let internet = json!({ "slug": "internet", "label": "Home Internet", "annualSavings": 120 });
        let travel = json!({ "slug": "travel", "label": "Travel", "annualSavings": 250 });
        assert_eq!(list["categories"], json!([internet, travel]));
        assert_eq!(list["totalPotentialAnnualSavings"], 370);

        let terms = server.get("/v1/referral-program").await.good();
        assert_eq!((&terms["maxReward"], &terms["groupSize"]), (&json!(280), &json!(3)));
        let rules = terms["rules"].to_string();
        assert!(["$40", "3 people", "7 groups", "$280"].iter().all(|part| rules.contains(part)), "{rules}");

        let body = json!({ "email": "ana@example.com", "categories": { "travel": true, "mortgage": true, "internet": false } });
        let done = server.post("/v1/invite", &server.key(), body.to_string()).await.good();
        assert_eq!(done["selectedSavingsTotal"], 250, "an unlisted category adds nothing");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn descriptor() {
        let server = Server::start_with(&["--name", "Bill Busters", "--base-url", "https://api.union.example/"]);
        let root = server.get("/").await.good();
        assert_eq!(root, server.get("/v1").await.good());
        fields(&root, &["ok", "name", "version", "openapi", "docs", "mcp", "endpoints"]);
        assert_eq!((&root["name"], &root["version"]), (&json!("Bill Busters"), &json!("1.0.0")));
        for (field, path) in [("openapi", "/openapi.json"), ("docs", "/docs"), ("mcp", "/mcp")] {
            assert_eq!(root[field], format!("https://api.union.example{path}"));
        }
        let endpoints = [
            "GET /v1/negotiate-categories", "GET /v1/referral-program", "GET /v1/stats", "POST /v1/invite",
            "POST /v1/referral-link",
        ];
        assert_eq!(root["endpoints"], json!(endpoints));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn reads_ignore_what_they_need_not_and_what_is_not_there_is_told_in_json() {
        let server = Server::start();
        holds(&server.get("/v1/stats/").await.refused(404, Value::Null), &["GET / lists the operations"]);
        server.get("/v2/anything?x=y").await.refused(404, Value::Null);
        for (method, path, allow) in [
            ("POST", "/v1/stats", "GET, HEAD, OPTIONS"),
            ("DELETE", "/", "GET, HEAD, OPTIONS"),
            ("PUT", "/openapi.json", "GET, HEAD, OPTIONS"),
            ("GET", "/v1/invite", "POST, OPTIONS"),
            ("HEAD", "/v1/invite", "POST, OPTIONS"),
            ("BREW", "/v1/referral-link", "POST, OPTIONS"),
        ] {
            let answer = server.send(Request::builder().method(method).uri(path), "").await;
            assert_eq!(answer.header("allow"), allow);
            if method == "HEAD" {
                assert_eq!(answer.status, 405);
            } else {
                assert!(answer.refused(405, Value::Null).contains(allow));
            }
        }
        let large = server.send(Request::get("/v1/stats"), vec![b'x'; 3 << 20]).await;
        large.refused(413, Value::Null);
        for path in ["/v1/invites", "/v1/invite/", "//v1//stats", "/mcp/", "/v1/secret-of-somebody"] {
            for request in [Request::get(path), Request::post(path)] {
                let told = server.send(request, "").await.refused(404, Value::Null);
                assert_eq!(told, "There is nothing at this path. GET / lists the operations; /docs describes them.");
            }
        }

        for path in ["/v1/negotiate-categories", "/v1/referral-program", "/v1/stats"] {
            let plain = server.get(path).await;
            let odd = server.send(Request::get(format!("{path}?a=b&c")), "{not json").await;
            assert_eq!(plain.good(), odd.good());
            let head = server.send(Request::head(path), "").await;
            assert_eq!(head.status, 200);
            assert!(head.body.is_empty());
            assert_eq!(head.header("content-length"), plain.body.len().to_string());
        }
        assert!(server.send(Request::head("/openapi.json"), "").await.header("content-length").len() >= 4);
    }
}
