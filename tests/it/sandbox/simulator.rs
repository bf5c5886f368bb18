//! Addresses at `simulator.test`: each outcome, as often as a test needs it, and with test keys alone.

use super::*;
use crate::partners::invite;

async fn events(server: &Server, key: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let page = ask(server, key, "/partner/v1/events?limit=100").await.good();
    let events = page["events"].as_array().unwrap().iter();
    events.map(|event| (text(&event["type"]), text(&event["data"]["idempotencyKey"]))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_confirms_does_so_each_time() {
    let server = Server::start_with(&["--public-per-minute", "10000"]);
    let test = server.test_key();
    for round in 0..4 {
        for email in ["confirm+17@simulator.test", "confirm@simulator.test"] {
            let name = format!("{email}-{round}");
            invite(&server, &test, &name, email).await.good();
            wait_for!(async || server.status_of(&test, &name).await == "confirmed").await;
        }
        // It does not matter what was said in between: "this wasn't me", and that no mail is wanted.
        server.invite(&test, "decline@simulator.test").await.good();
        server.wait_for_state("decline@simulator.test", "declined").await;
        let decline = server.mailed_link("confirm@simulator.test", "not-me");
        page(
            &server.submit(Request::post(&decline), "do=choose&mailbox=silence&partner=stop&again=stop").await,
            200,
            "Sandbox",
        );
    }
    assert_eq!(server.count_of(&test).await, 2, "each person counts once");
    let told = events(&server, &test).await;
    assert_eq!(told.len(), 8);
    assert!(told.iter().all(|(kind, _)| kind == "sign_up.confirmed"), "{told:?}");
    // Each time with the mail that has the button.
    let mails = ask(&server, &test, "/partner/v1/inbox?limit=100").await.good()["mails"].as_array().unwrap().clone();
    let confirming = mails.iter().filter(|mail| mail["to"].as_str().unwrap().starts_with("confirm"));
    let links: Vec<_> = confirming.map(|mail| mail["confirmLink"].as_str()).collect();
    assert_eq!((links.len(), links.iter().flatten().count()), (8, 8));
}

/// An ordinary address takes 100 keys of a partner in a week; a test may need more, and one button still tells of 100 at the most.
#[tokio::test(flavor = "multi_thread")]
async fn no_number_of_idempotency_keys_is_too_many() {
    let server = Server::start_with(&["--key-per-minute", "1000"]);
    let test = server.test_key();
    for n in 0..250 {
        invite(&server, &test, &format!("bounce-{n}"), "bounce@simulator.test").await.good();
    }
    let most = "SELECT max(keys) FROM (SELECT count(*) AS keys FROM idempotency_keys GROUP BY sign_up_id) each_one";
    assert_eq!(server.sandbox_number(most), 100);
    let states = "SELECT state, count(*) FROM sign_ups GROUP BY state ORDER BY state";
    assert_eq!(server.sandbox_rows(states), [["expired", "2"], ["pending", "1"]]);
    for n in 0..101 {
        let request = Request::post("/v1/referral-link").header("authorization", format!("Bearer {test}"));
        let request = request.header("content-type", "application/json").header("idempotency-key", format!("link-{n}"));
        server.send(request, sign_up("confirm@simulator.test")).await.good();
    }
    for n in 0..101 {
        let answer = invite(&server, &test, &format!("kim-{n}"), "kim@example.com").await;
        if n < 100 { drop(answer.good()) } else { drop(answer.refused(400, "invalid_submission")) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_closes_after_a_minute_whatever_is_restarted_meanwhile() {
    let server = Server::start_with(&["--public-per-minute", "10000"]);
    let test = server.test_key();
    let names = ["close@simulator.test", "Close+b@simulator.test", "slow@simulator.test"];
    for name in names {
        invite(&server, &test, name, name).await.good();
    }
    let closes = "SELECT (closes_at - created_at) / 1000 FROM idempotency_keys ORDER BY id";
    assert_eq!(server.sandbox_rows(closes), [["60"], ["60"], ["604800"]]);
    wait_for!(async || server.sandbox_number("SELECT count(*) FROM inbox") == 3).await;
    assert_eq!(server.status_of(&test, names[0]).await, "pending");
    let home = server.stopped();
    let server = Server::start_in(home, &["--public-per-minute", "10000"]);
    // A minute goes by.
    server.change_sandbox("UPDATE idempotency_keys SET created_at = created_at - 60000, closes_at = closes_at - 60000");
    let closed = async || events(&server, &test).await.len() == 2;
    wait_for!(closed).await;
    let told = events(&server, &test).await;
    assert!(
        told.iter().all(|(kind, name)| kind == "sign_up.closed" && name.to_lowercase().contains("close")),
        "{told:?}"
    );
    for name in &names[..2] {
        assert_eq!(server.status_of(&test, name).await, "closed");
    }
    assert_eq!(server.status_of(&test, names[2]).await, "pending");
    assert_eq!(server.test_state("close@simulator.test"), "pending", "nobody decided it");
}

/// No test of a partner's ends among real people.
#[tokio::test(flavor = "multi_thread")]
async fn live_keys_and_the_form_refuse_the_simulators_addresses() {
    let server = Server::start();
    let (live, test) = (server.key(), server.test_key());
    for email in ["confirm@simulator.test", "Limit+x@Simulator.TEST", "fail@simulator.test", "ana@simulator.test"] {
        for path in ["/v1/invite", "/v1/referral-link"] {
            let told = server.post(path, &live, sign_up(email)).await.refused(400, "invalid_submission");
            assert!(told.contains("email: addresses at simulator.test work with test keys only"), "{told}");
        }
        for tool in ["signUpUser", "createReferralLink"] {
            let call = tool_call(tool, json!({ "email": email }));
            let told = server.post("/mcp", &live, call.to_string()).await.json_rpc()["result"].clone();
            assert!(told["isError"] == true && told.to_string().contains("test keys only"), "{told}");
        }
        let form = form_urlencoded::Serializer::new(String::new()).append_pair("email", email).finish();
        for (language, said) in [("en", "only for tests with a test key"), ("es", "solo para pruebas con una clave")] {
            let post = Request::post(format!("/join?lang={language}"))
                .header("content-type", "application/x-www-form-urlencoded");
            let sent = server.send(post, form.clone()).await;
            let answer = server.get(&format!("{}?lang={language}", sent.header("location"))).await;
            let shown = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(shown.contains(said), "{language}: {} {shown}", answer.status);
        }
    }
    assert_eq!(server.number("SELECT count(*) FROM people"), 0);
    // The hosts beside it are anybody's.
    server.invite(&live, "ana@simulator.test.example").await.good();
    server.invite(&test, "ana@simulator.test").await.good();
    wait_for!(async || server.sandbox_number("SELECT count(*) FROM inbox") == 1).await;
}
