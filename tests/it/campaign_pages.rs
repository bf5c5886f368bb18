//! The pages of campaigns, as strangers and members use them, backwards and in the wrong order, too.

use crate::prelude::*;
use unionhall::domain::campaign::CampaignMail;
use unionhall::domain::mail::PersonRef;

use crate::own_page::{enter, invite, join, newest_request, start};

/// As it is kept.
pub(crate) const OFFER: &str = r#"{"number":1,"units":1,"uses_a_year":null,
 "bid":{"supplier":"Example Fiber","steps":[{"from_month":1,"price":{"cents":4800,"per":"month"}}],"fees":[],"term_months":12,
  "exit_fee_cents":0,"states":[],"new_customers_only":false,"needs_members":null,"valid_until":"2099-03-31","commission_cents":2500,
  "evidence":null},
 "benchmark":{"price":{"cents":6800,"per":"month"},"source":{"en":"FCC urban rate survey","es":"Encuesta de la FCC"},"url":"https://fcc.example/rates","date":"2026-12-01"},
 "decide_by":"2099-03-15","open_until":null,"complaints":"help@fiber.example",
 "text":{"en":{"how":"Order with the code that you are mailed."},"es":{"how":"Haz tu pedido con el código que te llega."}}}"#;

/// As version 1.0.0 took it.
pub(crate) const OLD_OFFER: &str = r#"
supplier = "Example Fiber"
annual_saving = 240
term_months = 12
decide_by = 2099-03-11
complaints = "help@fiber.example"
benchmark = { price = "$68 a month", source = "FCC urban rate survey", date = 2026-12-01 }
[text.en]
price = "$48 a month"
exit_fee = "None, ever"
how = "Order with the code that you are mailed."
[text.es]
price = "$48 al mes"
exit_fee = "Ninguno, nunca"
how = "Haz tu pedido con el código que te llega."
benchmark_price = "$68 al mes"
"#;

/// A campaign that the operator opened; `states` is a line of its file.
pub(crate) async fn open(server: &Server, slug: &str, states: &str) {
    let file = format!(
        "slug = \"{slug}\"\ncategory = \"internet\"\n{states}\ngather_until = 2099-01-31\n\
         [text.en]\ntitle = \"Title of {slug}\"\nsummary = \"Faster for less.\"\n\
         [text.es]\ntitle = \"Título de {slug}\"\nsummary = \"Más rápido por menos.\"\n"
    );
    server.execute(&format!(
        "INSERT INTO campaigns (slug, definition, state, gather_until, created_at)
         VALUES ('{slug}', '{file}', 'draft', 47147, 1)"
    ));
    step(server, slug, "gathering").await;
}

/// Takes a campaign to another state, and waits until the pages know.
pub(crate) async fn step(server: &Server, slug: &str, state: &str) {
    let closed_at = if ["closed", "cancelled"].contains(&state) { "1794743200000" } else { "NULL" };
    server.execute(&format!("UPDATE campaigns SET state = '{state}', closed_at = {closed_at} WHERE slug = '{slug}'"));
    server.execute(&format!(
        "INSERT INTO campaign_history (campaign_id, at, who, from_state, to_state, note)
         SELECT id, 1, 'operator', '', '{state}', '' FROM campaigns WHERE slug = '{slug}'"
    ));
    wait_for!(async || match state {
        "cancelled" => text(&server.get(&format!("/campaigns/{slug}")).await).contains("was canceled"),
        _ => listed(server).await.iter().any(|one| one["slug"] == slug && one["state"] == state),
    })
    .await;
}

pub(crate) async fn publish(server: &Server, slug: &str, offer: &str) {
    server.execute(&format!("UPDATE campaigns SET offer = '{offer}', decide_by = 47190 WHERE slug = '{slug}'"));
    step(server, slug, "offered").await;
    let day = offer.split("decide_by").nth(1).unwrap().trim_start_matches(['"', ':', ' ', '='])[..10].to_owned();
    wait_for!(async || {
        listed(server).await.iter().any(|one| one["slug"] == slug && one["offer"]["decideBy"] == day.as_str())
    })
    .await;
}

async fn listed(server: &Server) -> Vec<Value> {
    server.get("/campaigns.json").await.good()["campaigns"].as_array().unwrap().clone()
}

fn text(answer: &Answer) -> String {
    answer.text()
}

/// The part of the first member in a campaign.
fn part(server: &Server, slug: &str) -> String {
    let rows = server.rows(&format!(
        "SELECT p.state FROM participations p JOIN campaigns c ON c.id = p.campaign_id WHERE c.slug = '{slug}'"
    ));
    rows.first().map_or_else(String::new, |row| row[0].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_sees_what_is_public_and_nothing_else() {
    let server = Server::start_with(&["--mail", "hold"]);
    page(&server.get("/campaigns").await, 200, "No campaign is open right now");
    assert!(!page(&server.get("/join").await, 200, "Sign me up").contains("id=\"campaigns\""), "nothing without one");
    assert_eq!(server.get("/campaigns.json").await.good(), json!({ "ok": true, "campaigns": [] }));
    open(&server, "internet-2099", "states = [\"CA\", \"OR\"]").await;
    server.execute(
        "INSERT INTO campaigns (slug, definition, state, gather_until, created_at)
         SELECT 'hidden', replace(definition, 'internet-2099', 'hidden'), 'draft', gather_until, 1 FROM campaigns",
    );
    let shown = page(&server.get("/campaigns/internet-2099").await, 200, "Title of internet-2099");
    holds(
        &shown,
        &[
            "Faster for less.", "Home Internet", "California and Oregon", "Jan 31, 2099",
            "Fewer than 5 members at the last count",
        ],
    );
    assert!(shown.contains("rounded down to a multiple of 5") && shown.contains("/campaigns/internet-2099/sign-in"));
    let joining = page(&server.get("/join").await, 200, "id=\"campaigns\"");
    holds(
        &joining,
        &[
            "Title of internet-2099", "Home Internet", "California and Oregon", "Gathering members until Jan 31, 2099",
            "Fewer than 5 members at the last count",
        ],
    );
    page(&server.get("/campaigns/internet-2099?lang=es").await, 200, "Título de internet-2099");
    for unknown in ["/campaigns/hidden", "/campaigns/hidden/join", "/campaigns/nothing", "/campaigns/No%20Slug"] {
        page(&server.get(unknown).await, 404, "Campaign not found");
    }
    page(&server.send(Request::post("/campaigns/nothing"), "press=in").await, 404, "Campaign not found");
    // What is shown of how many is the stored sheet's.
    server.execute(
        "INSERT INTO demand_sheets (campaign_id, day, taken_at, sheet)
         SELECT id, 1, 1, '{\"in\":1230,\"accepted\":15,\"byState\":[],\"inOtherStates\":0,\"byCategory\":[],\"inOtherCategories\":0}'
         FROM campaigns WHERE slug = 'internet-2099'",
    );
    wait_for!(async || listed(&server).await[0]["in"] == 1230).await;
    page(&server.get("/campaigns").await, 200, "1,230 members in");
    publish(&server, "internet-2099", OFFER).await;
    let answer = server.get("/campaigns.json?lang=es").await;
    assert_eq!(
        (answer.header("cache-control"), answer.header("access-control-allow-origin")),
        ("public, max-age=60", "*")
    );
    assert_eq!(answer.header("content-language"), "es");
    let known = Request::get("/campaigns.json?lang=es").header("if-none-match", answer.header("etag"));
    let short = server.send(known, "").await;
    assert_eq!((short.status.as_u16(), short.header("cache-control")), (304, "public, max-age=60"));
    let mut all = answer.good()["campaigns"].clone();
    let url = all[0].as_object_mut().unwrap().remove("url").unwrap();
    assert!(url.as_str().unwrap().ends_with("/campaigns/internet-2099"), "{url}");
    assert_eq!(
        all,
        json!([{
            "slug": "internet-2099", "category": "internet", "state": "offered", "title": "Título de internet-2099",
            "summary": "Más rápido por menos.", "states": ["CA", "OR"], "in": 1230, "gatherUntil": "2099-01-31",
            "offer": {
                "supplier": "Example Fiber", "price": "$48 al mes", "annualSaving": 240, "termMonths": 12,
                "allInCents": 57600, "allIn": "$576 al año", "fees": [], "figuresPer": "year", "commissionCents": 2500,
                "states": [], "newCustomersOnly": false, "needsMembers": null,
                "exitFee": "Ninguno", "complaints": "help@fiber.example", "decideBy": "2099-03-15",
                "benchmark": {
                    "price": "$68 al mes", "allInCents": 81600, "source": "Encuesta de la FCC",
                    "url": "https://fcc.example/rates", "date": "2026-12-01",
                },
                "openUntil": null, "details": null, "how": "Haz tu pedido con el código que te llega.", "handover": "code",
            },
            "result": null,
        }])
    );
    let liked = Request::get("/campaigns.json").header("accept-language", "es-MX");
    assert_eq!(server.send(liked, "").await.good()["campaigns"][0]["title"], "Título de internet-2099");
    let shown = page(&server.get("/campaigns/internet-2099").await, 200, "Example Fiber");
    holds(
        &shown,
        &[
            "$576 a year",
            "$48 a month",
            "12 months",
            "about $240 a year",
            "$816 a year, at $68 a month",
            "<a class=\"address\" href=\"https://fcc.example/rates\">FCC urban rate survey, Dec 1, 2026</a>",
            "Mar 15, 2099",
            "mailto:help@fiber.example",
            "Example Fiber pays the union $25 for each member who switches.",
            "Order with the code that you are mailed.",
        ],
    );
    page(&server.get("/campaigns/internet-2099?lang=es").await, 200, "$816 al año, a $68 al mes");
    page(&server.get("/campaigns/internet-2099?lang=es").await, 200, "Encuesta de la FCC, 1 de ");
    let card = page(&server.get("/campaigns").await, 200, "You save about $240 a year. Typical price: $68 a month.");
    holds(&card, &["Offer published: $48 a month, decide by Mar 15, 2099", "1,230 members in"]);
    step(&server, "internet-2099", "active").await;
    page(&server.get("/campaigns/internet-2099").await, 200, "Deal running: $48 a month, accept by Mar 15, 2099");
    step(&server, "internet-2099", "closed").await;
    let shown = page(&server.get("/campaigns").await, 200, "15 members accepted the offer");
    assert!(shown.contains("about $3,600 a year") && shown.contains("No campaign is open right now"));
    assert_eq!(
        listed(&server).await[0]["result"],
        json!({ "accepted": 15, "switched": null, "asOf": null, "annualSaving": 3600 })
    );
    let joining = page(&server.get("/join").await, 200, "Sign me up");
    assert!(
        !joining.contains("id=\"campaigns\"") && joining.contains(">At least 15 members accepted the offer. <a href")
    );
    // Cancelled after it was seen: at its address alone.
    open(&server, "cancelled-1", "").await;
    step(&server, "cancelled-1", "cancelled").await;
    assert!(!page(&server.get("/campaigns").await, 200, "Campaigns").contains("cancelled-1"));
    assert!(listed(&server).await.iter().all(|one| one["slug"] != "cancelled-1"));
    open(&server, "cancelled-2", "").await;
    publish(&server, "cancelled-2", OFFER).await;
    step(&server, "cancelled-2", "cancelled").await;
    let shown = page(&server.get("/campaigns/cancelled-2").await, 200, "Title of cancelled-2");
    assert!(!shown.contains("Example Fiber") && !shown.contains("Fewer than 5"), "what it was about, no more");
}

/// Whether their own page says that something was done.
async fn own_page_says(member: &mut Browser<'_>, address: &str) -> bool {
    page(&member.get(address).await, 200, "Your page").contains("role=\"status\" id=\"done\"")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_in_and_out_accepts_and_passes() {
    let (server, key) = start();
    open(&server, "everywhere", "").await;
    join(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    let path = "/campaigns/everywhere";
    page(&ana.get("/me").await, 200, "Count me in");
    // Out without in, and in twice: nothing is wrong with either.
    leads(&ana.act(path, &[("press", "out")]).await, "/campaigns/everywhere?done=out");
    page(&ana.get("/campaigns/everywhere?done=out").await, 200, "You're not counted in.");
    assert_eq!(part(&server, "everywhere"), "");
    for _ in 0..2 {
        leads(&ana.act(path, &[("press", "in")]).await, "/campaigns/everywhere?done=in");
        assert_eq!(part(&server, "everywhere"), "in");
    }
    let shown =
        page(&ana.get("/campaigns/everywhere?done=in").await, 200, "You're in. We'll email you when there's an offer.");
    holds(&shown, &["/campaigns/everywhere?ref=", "you can earn a reward"]);
    // Whoever follows it joins with their code.
    let code = shown.split("/campaigns/everywhere?ref=").nth(1).unwrap()[..12].to_owned();
    let shared = page(&server.get(&format!("/campaigns/everywhere?ref={code}")).await, 200, "Join to take part");
    assert!(shared.contains(&format!("/campaigns/everywhere/join?ref={code}")), "{shared}");
    // Who switched that mail off is promised none.
    leads(&ana.act("/me/mail", &[("campaigns", "shown")]).await, "/me?done=mail");
    page(
        &ana.get("/campaigns/everywhere?done=in").await,
        200,
        "You're in. You'll find the offer here once there is one.",
    );
    assert!(shown.contains("Count me out") && !shown.contains("Count me in"));
    assert!(!text(&ana.get("/campaigns/everywhere?done=accept").await).contains("You accepted"), "what is not so");
    page(&ana.acted(path, &[("press", "accept")]).await, 200, "There is no offer yet");
    leads(&ana.act(path, &[("press", "pass"), ("lang", "es")]).await, "/campaigns/everywhere?refused=no-offer");
    page(&ana.get("/campaigns/everywhere?refused=no-offer&lang=es").await, 200, "Todavía no hay oferta");
    ana.cookies.remove("union-language");
    page(&ana.acted(path, &[]).await, 200, "arrived incomplete");
    page(&ana.acted(path, &[("press", "IN")]).await, 200, "arrived incomplete");
    page(&ana.acted(path, &[("press", "in"), ("usState", "XX")]).await, 200, "Choose a state from the list");
    let done = "/me?done=out&campaign=everywhere";
    leads(&ana.act(path, &[("press", "out"), ("from", "me")]).await, &format!("{done}#done"));
    let own = page(&ana.get(done).await, 200, "You're not counted in for Title of everywhere.");
    assert_eq!(own.matches("not counted in for").count(), 1, "once");
    let of_another = own_page_says(&mut ana, "/me?done=out&campaign=elsewhere").await;
    assert!(!of_another && !own_page_says(&mut ana, "/me?done=in&campaign=everywhere").await, "what is not so");
    ana.act("/me/mail", &[("campaigns", "shown"), ("campaign_offer", "true")]).await;
    leads(&ana.act(path, &[("press", "in"), ("from", "me")]).await, "/me?done=in&campaign=everywhere#done");
    page(
        &ana.get("/me?done=in&campaign=everywhere").await,
        200,
        "You're in for Title of everywhere. We'll email you when there's an offer.",
    );
    // Nothing is promised that does not come.
    ana.act("/me/mail", &[("campaigns", "shown"), ("campaign_opened", "true")]).await;
    page(
        &ana.get("/me?done=in&campaign=everywhere").await,
        200,
        "You're in for Title of everywhere. You'll find the offer here once there is one.",
    );
    ana.act(path, &[("press", "out")]).await;
    leads(&ana.act(path, &[("press", "in")]).await, "/campaigns/everywhere?done=in");

    publish(&server, "everywhere", OFFER).await;
    let own = page(&ana.get("/me").await, 200, "See the offer and decide");
    holds(&own, &["Decide on the offer: Title of everywhere", "$48 a month", "you haven't decided on the offer yet"]);
    assert!(!own.contains("value=\"accept\""), "what is agreed to stands above that button, on the campaign's page");
    assert!(own.contains("<dt>You save</dt><dd>nothing yet</dd>") && own.contains("<dt>Decide by</dt>"));
    page(&ana.acted(path, &[("press", "in")]).await, 200, "no longer be counted in or out");
    for _ in 0..2 {
        leads(&ana.act(path, &[("press", "accept")]).await, "/campaigns/everywhere?done=accept");
    }
    assert_eq!(part(&server, "everywhere"), "accepted");
    let shown = page(&ana.get("/campaigns/everywhere?done=accept").await, 200, "Withdraw");
    let how = "Order with the code that you are mailed.";
    assert!(shown.matches(how).count() == 1 && shown.find("What comes next") < shown.find(how), "with what comes next");
    let own = page(&ana.get("/me").await, 200, "You accepted the offer.");
    holds(&own, &["Your deals", "Your code", "You could save</dt><dd>$240 a year"]);
    assert!(!own.contains("Decide on the offer"), "it is decided");
    page(&ana.get("/me/leave").await, 200, "Title of everywhere (Example Fiber): you leave this deal, and your code");
    step(&server, "everywhere", "active").await;
    page(&ana.get("/me").await, 200, "Your deals");
    step(&server, "everywhere", "offered").await;
    leads(&ana.act(path, &[("press", "pass")]).await, "/campaigns/everywhere?done=pass");
    assert_eq!(part(&server, "everywhere"), "passed");
    // One of version 1.0.0 runs to its end, and says that nobody reckoned it.
    publish(&server, "everywhere", OLD_OFFER).await;
    let shown = page(&ana.get(path).await, 200, "The figures of this offer are its supplier");
    holds(&shown, &["$48 a month", "None, ever", "about $240 a year", "FCC urban rate survey, Dec 1, 2026"]);
    let old = &listed(&server).await[0]["offer"];
    assert_eq!(
        (&old["allInCents"], &old["annualSaving"], &old["price"]),
        (&Value::Null, &json!(240), &json!("$48 a month"))
    );
    page(&server.get("/campaigns/everywhere?lang=es").await, 200, "$68 al mes");
    // After its last day nobody can accept.
    publish(&server, "everywhere", &OFFER.replace("2099-03-15", "2020-03-15")).await;
    let shown = page(&ana.acted(path, &[("press", "accept")]).await, 200, "The last day to accept was Mar 15, 2020");
    assert!(shown.contains("hasn't started yet") && !shown.contains("value=\"accept\""));
    // Cancelled between the page and the press.
    let token = ana.token().await;
    step(&server, "everywhere", "cancelled").await;
    page(&ana.submit(path, &[("token", &token), ("press", "accept")]).await, 200, "This campaign is over");
    page(&ana.get("/me").await, 200, "You're not taking part in this offer.");
    assert_eq!(part(&server, "everywhere"), "passed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_for_some_states_asks_for_one_and_keeps_it() {
    let (server, key) = start();
    open(&server, "west", "states = [\"CA\", \"OR\"]").await;
    join(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    let path = "/campaigns/west";
    let shown = page(&ana.get(path).await, 200, "Choose your state");
    assert!(
        shown.contains(
            "This campaign is for California and Oregon. If you take part, we save your state as your answer."
        )
    );
    page(&ana.acted(path, &[("press", "in"), ("usState", "")]).await, 200, "Choose the state you live in");
    page(&ana.acted(path, &[("press", "in"), ("usState", "NY")]).await, 200, "your answers stay as they were");
    assert_eq!(part(&server, "west"), "");
    leads(&ana.act(path, &[("press", "in"), ("usState", "OR")]).await, "/campaigns/west?done=in");
    assert_eq!(part(&server, "west"), "in");
    let shown = server.json(&["members", "show", "ana@example.com", "--json"]);
    assert_eq!(shown["usState"], "OR");
    // Whoever lives elsewhere is told so, and is not shown it on their page.
    join(&server, &key, "ben@example.com", None).await;
    let mut ben = Browser::member(&server, 2, "ben@example.com").await;
    ben.change_answers(&[("usState", "NY")]).await;
    let shown = page(&ben.get(path).await, 200, "your answers say New York");
    assert!(!shown.contains("Count me in"));
    assert!(!page(&ben.get("/me").await, 200, "No campaign is open for you").contains("Title of west"));
    // Nobody is urged to what is about another bill.
    ben.change_answers(&[("usState", "OR"), ("travel", "true")]).await;
    page(&ben.get("/me").await, 200, "You're up to date.");
    ben.change_answers(&[("usState", "OR"), ("internet", "true")]).await;
    holds(
        &page(&ben.get("/me").await, 200, "Count yourself in: Title of west"),
        &["<dt>Count in by</dt>", "Jan 31</a>"],
    );
    ben.change_answers(&[("usState", ""), ("internet", "true")]).await;
    let own = page(&ben.get("/me").await, 200, "Choose your state to count in");
    assert!(own.contains("You're up to date.") && !own.contains("name=\"press\""));
    ben.change_answers(&[("usState", "NY")]).await;
    page(
        &ben.acted(path, &[("press", "in"), ("usState", "CA")]).await,
        200,
        "This campaign is for California and Oregon",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_says_whom_it_is_for_and_only_they_accept_it() {
    let (server, key) = start();
    open(&server, "everywhere", "").await;
    join(&server, &key, "ana@example.com", None).await;
    join(&server, &key, "ben@example.com", None).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    let mut ben = Browser::member(&server, 2, "ben@example.com").await;
    ben.change_answers(&[("usState", "NY"), ("internet", "true")]).await;
    let path = "/campaigns/everywhere";
    for one in [&mut ana, &mut ben] {
        leads(&one.act(path, &[("press", "in")]).await, "/campaigns/everywhere?done=in");
    }
    // Each has a day of its own, by which the test knows that the pages have it.
    let on = |day: &str, offer: &str| offer.replace("2099-03-15", &format!("2099-03-{day}"));
    let west = OFFER.replace("\"states\":[]", "\"states\":[\"CA\",\"OR\"]");
    publish(&server, "everywhere", &on("14", &west)).await;
    let shown = page(&ben.get(path).await, 200, "This offer isn't available in New York.");
    assert!(!shown.contains("value=\"accept\"") && shown.contains("value=\"pass\""), "{shown}");
    page(&ben.get("/campaigns/everywhere?lang=es").await, 200, "Esta oferta no está disponible en Nueva York.");
    page(&ben.get("/campaigns/everywhere?lang=en").await, 200, "available in New York.");
    page(&ben.acted(path, &[("press", "accept")]).await, 200, "for members in California and Oregon");
    let shown = page(&ana.get(path).await, 200, "This offer is for California and Oregon.");
    assert!(!shown.contains("This offer is for you"), "she is asked first");
    page(&ana.acted(path, &[("press", "accept")]).await, 200, "Choose the state you live in");
    page(
        &ana.acted(path, &[("press", "accept"), ("usState", "NY")]).await,
        200,
        "didn't accept it, and your answers stay as they were",
    );
    assert_eq!(server.json(&["members", "show", "ana@example.com", "--json"])["usState"], Value::Null);
    let new = west.replace("\"new_customers_only\":false", "\"new_customers_only\":true");
    publish(&server, "everywhere", &on("13", &new)).await;
    page(&ana.get(path).await, 200, "Are you a customer of Example Fiber now?");
    let at = [("press", "accept"), ("usState", "OR")];
    page(&ana.acted(path, &at).await, 200, "Answer the question whether you're a customer");
    page(&ana.acted(path, &[at[0], at[1], ("customer", "maybe")]).await, 200, "Answer the question");
    page(&ana.acted(path, &[at[0], at[1], ("customer", "yes")]).await, 200, "only for new customers of Example Fiber");
    assert_eq!(part(&server, "everywhere"), "in");
    leads(&ana.act(path, &[at[0], at[1], ("customer", "no")]).await, "/campaigns/everywhere?done=accept");
    assert_eq!(server.json(&["members", "show", "ana@example.com", "--json"])["usState"], "OR");
    assert!(!page(&ana.get(path).await, 200, "You accepted the offer.").contains("Are you a customer"));
    publish(&server, "everywhere", &on("12", &west)).await;
    leads(&ana.act(path, &[("press", "pass")]).await, "/campaigns/everywhere?done=pass");
    page(&ana.get(path).await, 200, "This offer is for you.");
}

#[tokio::test(flavor = "multi_thread")]
async fn presses_cannot_be_forged_and_need_a_member() {
    let (server, key) = start();
    open(&server, "everywhere", "").await;
    for address in ["ana@example.com", "eve@example.com"] {
        join(&server, &key, address, None).await;
    }
    let (mut ana, mut eve) = (Browser::new(&server, 1), Browser::new(&server, 2));
    ana.sign_in("ana@example.com").await;
    eve.sign_in("eve@example.com").await;
    let (path, token, others) = ("/campaigns/everywhere", ana.token().await, eve.token().await);
    let body = |token: &str| form(&[("token", token), ("press", "in")]);
    let own = || Request::post(path).header("sec-fetch-site", "same-origin");
    for (request, body) in [
        (Request::post(path), body(&token)),
        (Request::post(path).header("origin", "https://evil.example"), body(&token)),
    ] {
        page(&ana.send(request, body).await, 403, "nothing was changed");
    }
    // A form of before: the page of the campaign, with one that works.
    for body in [body(&others), form(&[("press", "in")])] {
        let old = ana.send(own(), body).await;
        let shown = page(&ana.follow(old).await, 200, "This form was out of date");
        assert!(shown.contains("Nothing was changed") && shown.contains(&token) && shown.contains("Count me in"));
    }
    assert_eq!(part(&server, "everywhere"), "");
    // Without a session they sign in, and are led back.
    let mut nobody = Browser::new(&server, 3);
    let signed_out = nobody.send(own(), body(&token)).await;
    let asked = page(&nobody.follow(signed_out).await, 200, "You're not signed in, so nothing was changed");
    assert!(asked.contains("name=\"campaign\" value=\"everywhere\""));
    // Whoever left is no member.
    let left = ana.act("/me/leave", &[]).await;
    leads(&left, "/me?done=left");
    page(&ana.submit(path, &[("token", &token), ("press", "in")]).await, 200, "You're no longer a member");
    page(&ana.get(path).await, 200, "You're no longer a member");
    assert_eq!(part(&server, "everywhere"), "");
}

/// From the campaign's page over the sign-in back to it, where one press remains.
#[tokio::test(flavor = "multi_thread")]
async fn signing_in_leads_back_to_the_campaign() {
    let (server, key) = start();
    open(&server, "everywhere", "").await;
    join(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::new(&server, 1);
    let asked = page(&ana.get("/campaigns/everywhere/sign-in").await, 200, "you'll come back to “Title of everywhere”");
    assert!(asked.contains("name=\"campaign\" value=\"everywhere\"") && asked.contains("/campaigns/everywhere/join"));
    let fields = [("email", "ana"), ("campaign", "everywhere")];
    page(&ana.submit("/me/sign-in", &fields).await, 200, "name=\"campaign\" value=\"everywhere\"");
    let fields = [("email", "ana@example.com"), ("campaign", "everywhere")];
    let sent = page(&ana.submit("/me/sign-in", &fields).await, 200, "Check your inbox");
    assert!(sent.contains("href=\"/campaigns/everywhere/sign-in\""), "where another is asked for");
    page(&ana.submit("/me/code", &[("code", "nothing")]).await, 200, "href=\"/campaigns/everywhere/sign-in\"");
    // In another browser, too.
    let mut phone = Browser::new(&server, 2);
    let link = enter(&server, newest_request(&server));
    leads(&phone.post(&link, &[]).await, "/campaigns/everywhere");
    let mut tablet = Browser::new(&server, 3);
    for used in [tablet.get(&link).await, tablet.submit(&link, &[]).await] {
        page(&used, 410, "href=\"/campaigns/everywhere/sign-in\"");
    }
    page(&phone.get("/campaigns/everywhere").await, 200, "Count me in");
    leads(&phone.get("/campaigns/everywhere/sign-in").await, "/campaigns/everywhere");
    leads(&phone.act("/campaigns/everywhere", &[("press", "in")]).await, "/campaigns/everywhere?done=in");
    // A campaign that is none of ours leads to one's own page.
    server.execute("UPDATE sign_ins SET created_at = created_at - 3600001");
    page(&ana.submit("/me/sign-in", &[fields[0], ("campaign", "../evil")]).await, 200, "Check your inbox");
    leads(&ana.post(&enter(&server, newest_request(&server)), &[]).await, "/me");
}

/// From the campaign's page over joining to the welcome page, which has that campaign first.
#[tokio::test(flavor = "multi_thread")]
async fn joining_leads_back_to_the_campaign() {
    let (server, key) = start();
    open(&server, "first", "").await;
    open(&server, "second", "").await;
    server.execute(
        "UPDATE campaigns SET definition = replace(definition, '\"internet\"', '\"travel\"') WHERE slug = 'second'",
    );
    step(&server, "second", "negotiating").await;
    let mut ana = Browser::new(&server, 1);
    let shown = page(&ana.get("/campaigns/second/join").await, 200, "you'll come back to “Title of second”");
    assert!(shown.contains("name=\"campaign\" value=\"second\""));
    let ticked = |html: &str| {
        html.matches(" checked").count() == 1 && html.contains("checked><span class=\"item\"><span>Travel<")
    };
    assert!(ticked(&shown), "its bill, and no other: {shown}");
    let mistaken = [("email", "ana"), ("campaign", "second"), ("internet", "true")];
    page(&ana.submit("/join", &mistaken).await, 200, "name=\"campaign\" value=\"second\"");
    let fields = [("email", "ana@example.com"), ("campaign", "second"), ("internet", "true")];
    let sent = ana.post("/join", &fields).await;
    page(&ana.get(sent.header("location")).await, 200, "name=\"campaign\" value=\"second\"");
    // The mail is opened elsewhere.
    let mut phone = Browser::new(&server, 2);
    let welcome = page(&phone.submit(&server.confirm_path(1), &[]).await, 200, "What you can do next");
    let at = |part: &str| welcome.find(part).unwrap();
    assert!(at("Title of second") < at("Title of first"), "the one that they came from, then what fits");
    let token = hidden(&welcome, "token");
    assert_eq!(part(&server, "second"), "", "counting in is always a press of one's own");
    let pressed = phone.post("/campaigns/second", &[("token", &token), ("press", "in")]).await;
    leads(&pressed, "/campaigns/second?done=in");
    assert_eq!(part(&server, "second"), "in");
    // Whoever is not signed in by the press is shown no buttons.
    invite(&server, &key, "ben@example.com", None).await;
    let plain = server.confirm(server.number("SELECT max(id) FROM sign_ups")).await;
    assert!(!page(&plain, 200, "Welcome to the union").contains("What you can do next"));
    // What fits one's bills comes first on the own page, too.
    join(&server, &key, "cem@example.com", None).await;
    let mut cem = Browser::member(&server, 3, "cem@example.com").await;
    cem.change_answers(&[("usState", "CA"), ("alaska_cruise", "true")]).await;
    let own = page(&cem.get("/me").await, 200, "Title of second");
    let at = |part: &str| own.find(part).unwrap();
    assert!(at("Title of second") < at("Title of first") && at("Title of first") < at("Your referral link"));
}

/// Whatever one member presses or answers, everybody else sees the very same bytes, until five have changed something.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_see_never_tells_what_one_member_pressed_or_answered() {
    let (server, key) = start();
    open(&server, "somewhere", "states = [\"CA\", \"OR\"]").await;
    let mut members = Vec::new();
    for n in 1..=6 {
        let email = format!("member{n}@example.com");
        join(&server, &key, &email, None).await;
        members.push(Browser::member(&server, n, &email).await);
    }
    let seen = async || {
        let mut all = Vec::new();
        for path in ["/campaigns", "/campaigns/somewhere", "/campaigns.json", "/join"] {
            // The count of members is another matter, and fewer than a hundred are not shown.
            all.push(text(&server.get(path).await));
        }
        all.push(server.run(&["campaigns", "demand", "somewhere", "--json"]));
        all
    };
    let nothing = seen().await;
    for (n, member) in members.iter_mut().enumerate() {
        let us_state = ["CA", "OR"][n % 2];
        leads(
            &member.act("/campaigns/somewhere", &[("press", "in"), ("usState", us_state)]).await,
            "/campaigns/somewhere?done=in",
        );
        if n < 4 {
            member.change_answers(&[("usState", us_state), ("mortgage", "true")]).await;
            assert_eq!(seen().await, nothing, "{} members are in", n + 1);
        }
        if n == 4 {
            server.run(&["campaigns", "negotiate", "somewhere"]);
            wait_for!(async || listed(&server).await[0]["in"] == 5).await;
        }
    }
    // One more on the same day, and one who goes: the day has its sheet.
    let five = seen().await;
    members[0].act("/campaigns/somewhere", &[("press", "out")]).await;
    assert_eq!(seen().await, five);
    assert!(five[4].contains("\"in\": 5"), "{}", five[4]);
    // Nor does a step tell of one.
    publish(&server, "somewhere", OFFER).await;
    assert_eq!(listed(&server).await[0]["in"], 5);
}

/// Each kind of mail about campaigns is switched on the own page, and off by the link of its mail, which looking does not press.
#[tokio::test(flavor = "multi_thread")]
async fn mail_about_campaigns_is_switched_kind_by_kind() {
    let (server, key) = start();
    join(&server, &key, "ana@example.com", None).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    let ticked = async |ana: &mut Browser<'_>| {
        let own = page(&ana.get("/me").await, 200, "campaign_opened");
        let is = |name: &str| own.contains(&format!("name=\"{name}\" value=\"true\" checked"));
        ["alreadyMember", "campaign_opened", "campaign_offer", "campaign_result"].map(is)
    };
    assert_eq!(ticked(&mut ana).await, [true; 4], "the notice that they confirmed names them");
    let person = server.rows("SELECT id, created_at FROM people WHERE email = 'ana@example.com'");
    let number = |at: usize| person[0][at].parse().unwrap();
    let person = PersonRef { id: number(0), created_at: Timestamp::from_millis(number(1)) };
    let tokens = TokenMaker::new(&server.records().secret());
    let link = |kind, person| format!("/unsubscribe/{}", tokens.person_token(Purpose::Unsubscribe(kind), person));
    let offer = link(CampaignMail::Offer, person);
    for _ in 0..2 {
        page(&server.get(&offer).await, 200, "offers for you to decide on");
    }
    assert_eq!(ticked(&mut ana).await, [true; 4], "looking changes nothing");
    // With one click, as mail programs do it: without a page, a cookie or an origin of ours. Twice is once.
    for _ in 0..2 {
        let done = server.send(Request::post(&offer), "List-Unsubscribe=One-Click").await;
        page(&done, 200, "We no longer email you about offers for you to decide on.");
        assert!(done.headers.get("set-cookie").is_none(), "nobody is signed in by it");
    }
    assert_eq!(ticked(&mut ana).await, [true, true, false, true]);
    // By the button of the page, which then says that it is off as often as it is loaded, in each language.
    let result = link(CampaignMail::Result, person);
    leads(&server.send(Request::post(&result), form(&[("lang", "es")])).await, &result);
    for _ in 0..2 {
        page(&server.get(&format!("{result}?lang=es")).await, 200, "Ya no te escribiremos sobre resultados");
    }
    assert_eq!(ticked(&mut ana).await, [true, true, false, false]);
    let chosen = [("campaigns", "shown"), ("campaign_offer", "true")];
    leads(&ana.act("/me/mail", &chosen).await, "/me?done=mail");
    assert_eq!(ticked(&mut ana).await, [false, false, true, false]);
    leads(&ana.act("/me/mail", &[("alreadyMember", "true")]).await, "/me?done=mail");
    assert_eq!(ticked(&mut ana).await, [true, false, true, false], "a form without them says nothing of them");

    let stranger = PersonRef { id: person.id + 1, ..person };
    let earlier = PersonRef { created_at: Timestamp::from_millis(1), ..person };
    for bad in [
        "/unsubscribe/x".to_owned(),
        offer[..offer.len() - 1].to_owned(),
        server.decline_path(1).replace("not-me", "unsubscribe"),
    ] {
        page(&server.get(&bad).await, 404, "We don't recognize this link");
        page(&server.send(Request::post(&bad), "").await, 404, "We don't recognize this link");
    }
    for gone in [stranger, earlier] {
        let pressed = server.send(Request::post(link(CampaignMail::Offer, gone)), "").await;
        page(&pressed, 404, "We don't recognize this link");
    }
    assert_eq!(ticked(&mut ana).await, [true, false, true, false]);
}
