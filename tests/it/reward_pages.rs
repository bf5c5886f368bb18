//! Rewards as people meet them: on their own page, before they leave or are erased, in the export; and the figures of the terms,
//! which are the same wherever somebody reads them.

use crate::campaign_pages::{open, step};
use crate::own_page::{join, start};
use crate::prelude::*;

const CAMPAIGN: &str = "fiber-2099";

/// Ana, who has three groups (one paid, one being paid, one due), two who count and wait, and one on hold.
async fn rewarded(server: &Server, key: &str) {
    open(server, CAMPAIGN, "").await;
    server.execute(&format!(
        "UPDATE campaigns SET active_at = 1, reward_cents = 10000, group_size = 5, max_groups = 10, hold_days = 30
         WHERE slug = '{CAMPAIGN}'"
    ));
    step(server, CAMPAIGN, "active").await;
    let code = join(server, key, "ana@example.com", None).await;
    for friend in ["bea", "cem", "dan"] {
        join(server, key, &format!("{friend}@example.com"), Some(&code)).await;
    }
    let now = server.number("SELECT max(created_at) FROM sign_ups");
    for sql in [
        "UPDATE people SET account = 'account1' WHERE email_normalized = 'ana@example.com'",
        &format!(
            "INSERT INTO participations (campaign_id, person_id, state, accepted_at, changed_at)
             SELECT 1, id, 'accepted', {now}, {now} FROM people WHERE email_normalized = 'bea@example.com'"
        ),
        &format!(
            "INSERT INTO qualifications (campaign_id, person_id, referrer_id, qualified_at)
             SELECT 1, id, referrer_id, {now} FROM people WHERE email_normalized IN ('cem@example.com', 'dan@example.com')"
        ),
        &format!("INSERT INTO payout_batches (created_at, who, filled_at, written_at) VALUES ({now}, 'op', {now}, {now})"),
        &format!(
            "INSERT INTO payouts (batch_id, external_id, account, campaign_id, amount_cents, group_count, state, reference, paid_at)
             VALUES (1, 'account1-1-1', 'account1', 1, 10000, 1, 'paid', 'transfer-7', {now}),
                    (1, 'account1-1-2', 'account1', 1, 10000, 1, 'out', NULL, NULL)"
        ),
        &format!(
            "INSERT INTO reward_groups (referrer_id, campaign_id, state, formed_at, payout_id)
             SELECT id, 1, 'accrued', {now}, payout FROM people, (SELECT 1 AS payout UNION SELECT 2 UNION SELECT NULL) paid
             WHERE email_normalized = 'ana@example.com'"
        ),
        "INSERT INTO referrers (person_id, rewarded_groups, rewarded_cents)
         SELECT id, 3, 30000 FROM people WHERE email_normalized = 'ana@example.com'
         ON CONFLICT (person_id) DO UPDATE SET rewarded_groups = 3, rewarded_cents = 30000",
    ] {
        server.execute(sql);
    }
    book(server, "accrual", 30_000);
    book(server, "payout", -20_000);
}

fn book(server: &Server, kind: &str, cents: i64) {
    server.execute(&format!(
        "INSERT INTO reward_ledger (account, campaign_id, kind, amount_cents, at, who, why)
         VALUES ('account1', 1, '{kind}', {cents}, 1794743200000, 'rules', 'a test')"
    ));
}

/// What is read on a page, from one heading to the next section.
fn section(answer: &Answer, id: &str) -> String {
    let html = page(answer, 200, &format!("id=\"{id}\""));
    let from = html.split(&format!("id=\"{id}\">")).nth(1).unwrap().split("</section>").next().unwrap();
    let mut text = String::new();
    for (place, part) in from.split('<').enumerate() {
        text.push(' ');
        text.push_str(if place == 0 { part } else { part.split_once('>').unwrap().1 });
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_sees_what_is_on_hold_what_counts_what_is_missing_and_the_money() {
    let (server, key) = start();
    rewarded(&server, &key).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    let export: Value = serde_json::from_slice(&ana.get("/me/export").await.body).unwrap();
    let rewards = &export["rewards"];
    assert_eq!(
        (&rewards["dueCents"], &rewards["outCents"], &rewards["paidCents"], &rewards["campaigns"][0]["groups"]),
        (&json!(10_000), &json!(10_000), &json!(10_000), &json!(3))
    );
    let history = &export["rewardHistory"];
    let amounts: Vec<_> = history["ledger"].as_array().unwrap().iter().map(|line| &line["amountCents"]).collect();
    assert_eq!(amounts, [30_000, -20_000]);
    assert_eq!(history["payouts"][0]["reference"], "transfer-7");
    let shown = server.json(&["members", "show", "cem@example.com", "--json"]);
    assert_eq!(shown["rewardHistory"]["countedIn"][0]["campaign"], CAMPAIGN);
    let shown = section(&ana.get("/me").await, "rewards");
    holds(
        &shown,
        &[
            "due to you $100 being paid now $100 paid to you $100",
            "with the union's next batch",
            "Title of fiber-2099 3/5 3 of 5 friends in this deal; 2 more for $100 Full groups 3 groups, $100 each",
            "Waiting period 1 friend; the first waiting period ends",
            "Waiting for a full group 2 friends",
        ],
    );
    assert!(!shown.contains("Without a reward") && !shown.contains("no longer count"), "{shown}");
    // As many as one person is rewarded for, and a further group.
    server.execute("UPDATE referrers SET rewarded_groups = 10, rewarded_cents = 100000");
    let shown = section(&ana.get("/me").await, "rewards");
    let most = "you can earn for 10 groups at the most, in all campaigns together, and $1,000 in total";
    assert!(shown.contains(&format!("Next group It would earn nothing: {most}")), "{shown}");
    server.execute("INSERT INTO reward_groups (referrer_id, campaign_id, state, formed_at) SELECT person_id, 1, 'capped', 1 FROM referrers WHERE rewarded_groups = 10");
    let shown = section(&ana.get("/me").await, "rewards");
    assert!(shown.contains(&format!("Without a reward one group: {most}")), "{shown}");
    assert!(!shown.contains("friends in this deal") && !shown.contains("Next group"), "{shown}");
    // More of those than anybody counts.
    let add = |numbers: &str| {
        server.execute(&format!(
            "INSERT INTO reward_groups (referrer_id, campaign_id, state, formed_at)
             SELECT r.person_id, 1, 'capped', 1 FROM referrers r, {numbers} WHERE r.rewarded_groups = 10"
        ));
    };
    let digits = "(SELECT 0 UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4
                       UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)";
    add(&format!("{digits} a, {digits} b, {digits} c, (SELECT 0 UNION SELECT 1) d"));
    server.execute("DELETE FROM reward_groups WHERE id = (SELECT max(id) FROM reward_groups)");
    holds(&section(&ana.get("/me").await, "rewards"), &[&format!("Without a reward 2,000 groups: {most}")]);
    add("(SELECT 0) a");
    holds(&section(&ana.get("/me").await, "rewards"), &[&format!("Without a reward more than 2,000 groups: {most}")]);
    holds(&server.run(&["members", "show", "ana@example.com"]), &["more than 2,000 capped"]);
    // Two were paid that no longer count.
    book(&server, "reversal", -20_000);
    let shown = section(&ana.get("/me").await, "rewards");
    assert!(shown.contains("$100 was paid, or is being paid, for people who no longer count."), "{shown}");
    assert!(!shown.contains("due to you") && !shown.contains("next batch"), "{shown}");
    ana.act("/me/language", &[("language", "es")]).await;
    holds(&section(&ana.get("/me").await, "rewards"), &["Título de fiber-2099", "personas que ya no cuentan"]);
    // Who is credited for somebody, and nobody counts yet.
    let kim = join(&server, &key, "kim@example.com", None).await;
    join(&server, &key, "lee@example.com", Some(&kim)).await;
    let mut kim = Browser::member(&server, 3, "kim@example.com").await;
    let shown = section(&kim.get("/me").await, "rewards");
    assert!(shown.contains("1 friend joined; none takes part in a deal yet."), "{shown}");
    // Who referred nobody reads nothing of it.
    let mut bea = Browser::member(&server, 2, "bea@example.com").await;
    assert!(!page(&bea.get("/me").await, 200, "How rewards work").contains("id=\"rewards\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_keeps_what_is_earned_and_earns_nothing_new() {
    let (server, key) = start();
    rewarded(&server, &key).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    page(&ana.get("/me/leave").await, 200, "your full groups stay yours and are paid");
    assert_eq!(ana.act("/me/leave", &[]).await.header("location"), "/me?done=left");
    let shown = section(&ana.get("/me").await, "rewards");
    assert!(shown.contains("due to you $100") && shown.contains("3 groups, $100 each"), "{shown}");
    assert!(!shown.contains("Waiting period") && !shown.contains("friends in this deal"), "{shown}");
    let mut bea = Browser::member(&server, 2, "bea@example.com").await;
    assert!(!page(&bea.get("/me/leave").await, 200, "Leave the union?").contains("full groups"));
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_with_money_due_is_erased_only_if_they_give_that_amount_up() {
    let (server, key) = start();
    rewarded(&server, &key).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    let asked = page(&ana.get("/me/erase").await, 200, "I give up $100 in rewards");
    assert!(asked.contains("name=\"dueCents\" value=\"10000\"") && !asked.contains("Nothing was erased"));
    assert!(
        asked.contains("$100 is being paid now, and that payment continues")
            && asked.contains("who are in their waiting period")
    );
    let refused = "Nothing was erased: we owe you $100 in rewards";
    let (waives, due) = (("waiveRewards", "true"), ("dueCents", "10000"));
    let wrong: [&[(&str, &str)]; 6] = [
        &[],
        &[due],
        &[waives],
        &[waives, ("dueCents", "9999")],
        &[waives, ("dueCents", "lots")],
        &[("waiveRewards", "false"), due],
    ];
    for fields in wrong {
        let shown = page(&ana.acted("/me/erase", fields).await, 200, refused);
        assert!(shown.contains("name=\"waiveRewards\""), "the way on is there");
    }
    // Another group is full between reading and pressing.
    book(&server, "accrual", 10_000);
    let shown =
        page(&ana.acted("/me/erase", &[waives, due]).await, 200, "Nothing was erased: we owe you $200 in rewards");
    assert!(shown.contains("value=\"20000\""), "and now it can be given up");
    assert!(ana.is_signed_in().await);
    assert_eq!(server.number("SELECT count(*) FROM reward_ledger WHERE why = 'waived'"), 0);
    leads(&ana.act("/me/erase", &[waives, ("dueCents", "20000")]).await, "/me/erased");
    let waived =
        "SELECT amount_cents FROM reward_ledger WHERE account = 'account1' AND kind = 'reversal' AND why = 'waived'";
    assert_eq!(server.number(waived), -20_000);
    assert_eq!(server.number("SELECT count(*) FROM payouts WHERE state = 'out'"), 1, "what is out goes on");
    assert_eq!(server.number("SELECT count(*) FROM people WHERE account = 'account1'"), 0);
}

/// The worker looks every half minute, and a hold may be over sooner.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_is_full_by_now_is_due_before_anything_is_erased() {
    let (server, key) = start();
    rewarded(&server, &key).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    page(&ana.get("/me/erase").await, 200, "I give up $100");
    // Two wait, and the third has taken part for long enough.
    server.execute("UPDATE campaigns SET group_size = 3");
    server.execute("UPDATE people SET joined_at = 1");
    server.execute("UPDATE participations SET accepted_at = 1");
    let given_up = [("waiveRewards", "true"), ("dueCents", "10000")];
    page(&ana.acted("/me/erase", &given_up).await, 200, "Nothing was erased: we owe you $200 in rewards");
    assert_eq!(server.number("SELECT count(*) FROM reward_groups WHERE state = 'accrued' AND payout_id IS NULL"), 2);
    assert_eq!(server.number("SELECT count(*) FROM audit WHERE command = 'own page: erase'"), 0);
    leads(&ana.act("/me/erase", &[given_up[0], ("dueCents", "20000")]).await, "/me/erased");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_paid_meanwhile_needs_no_giving_up() {
    let (server, key) = start();
    rewarded(&server, &key).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    page(&ana.get("/me/erase").await, 200, "I give up $100");
    // The batch took it between reading and pressing.
    book(&server, "payout", -10_000);
    let asked = page(&ana.get("/me/erase").await, 200, "Erase everything now");
    assert!(!asked.contains("waiveRewards"), "nothing is due");
    let erased = ana.act("/me/erase", &[("waiveRewards", "true"), ("dueCents", "10000")]).await;
    assert_eq!(erased.status.as_u16(), 303);
    assert_eq!(server.number("SELECT count(*) FROM reward_ledger WHERE why = 'waived'"), 0, "nothing was given up");
}

fn figures(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_digit() || c == ',';
    let words = text.split(|c| !is_part(c)).map(|word| word.trim_matches(','));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whoever reads the terms reads the same figures, wherever that is, and no others.
#[tokio::test(flavor = "multi_thread")]
async fn figures_and_words_of_the_terms_agree_wherever_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.toml");
    for (reward, size, groups, days, most) in [(137, 7, 9, 43, "1,233"), (60, 4, 3, 21, "180")] {
        let text = format!(
            "[savings]\ninternet = 300\n[referral]\nreward_per_group = {reward}\ngroup_size = {size}\nmax_groups = {groups}\n\
             hold_days = {days}\n[union.funding]\nen = \"Suppliers pay a fee.\"\nes = \"Los proveedores pagan una cuota.\"\n"
        );
        std::fs::write(&file, text).unwrap();
        let server = Server::start_with(&["--catalog", file.to_str().unwrap(), "--mail", "hold"]);
        let wanted: BTreeSet<String> =
            [reward, size, groups, days].iter().map(ToString::to_string).chain([most.to_owned()]).collect();
        let rules = server.get("/v1/referral-program").await.good()["rules"].clone();
        let rules: Vec<_> = rules.as_array().unwrap().iter().map(|rule| rule.as_str().unwrap()).collect();
        assert_eq!(figures(&rules.join(" ")), wanted, "{rules:?}");
        assert_eq!(rules.last(), Some(&"How the union earns and pays rewards: Suppliers pay a fee."));
        for (path, id) in [("/terms", "referrals"), ("/join", "referral"), ("/about", "referrals")] {
            let english = section(&server.get(path).await, id);
            assert_eq!(figures(&english), wanted, "{path}: {english}");
            assert!(rules.iter().all(|rule| english.contains(rule)), "{path}: {english}");
            let spanish = server.send(Request::get(path).header("accept-language", "es"), "").await;
            let spanish = section(&spanish, id);
            assert_eq!(figures(&spanish), wanted, "{path}: {spanish}");
            assert!(spanish.contains("Los proveedores pagan una cuota."), "{spanish}");
        }
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
        let request = Request::post("/mcp").header("content-type", "application/json");
        let tools = server.send(request, list.to_string()).await.json_rpc();
        let tools = tools["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == "getReferralProgram").unwrap();
        let described = tool["description"].as_str().unwrap();
        let words: Vec<_> = described.split_whitespace().filter(|word| !word.starts_with("http")).collect();
        assert_eq!(figures(&words.join(" ")), wanted, "{described}");
    }
}
