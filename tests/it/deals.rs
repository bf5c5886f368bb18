//! Deals that can be checked: what each kind of bill comes to, wherever it is shown, and offers that are not true.

use crate::campaign_commands::{POSTAL, done, refused, run_with};
use crate::negotiator::{begin, bidding, content, negotiate};
use crate::operator_page::signed_in;
use crate::prelude::*;
use unionhall::domain::catalog::category::Category;

const REVIEWED: &str = "[reviewed]\nby = \"Ada Bell, counsel\"\non = 2026-01-15\n\
    note = \"Commission: none. Addresses: nobody's is handed over. Rewards: none depends on buying.\"\n";

/// A bill as people pay it, and as a supplier bids for it.
struct Case {
    category: &'static str,
    /// Of the campaign, beyond its texts and days.
    household: &'static str,
    benchmark: &'static str,
    /// Price, fees and term.
    bid: &'static str,
    saving: u64,
    all_in_cents: u64,
    /// What the saving is called.
    words: &'static str,
}

const CASES: [Case; 12] = [
    Case {
        category: "mobile_bills",
        household: "units = 2",
        benchmark: "{ cents = 4000, per = \"month\" }",
        bid: "price = { cents = 2500, per = \"month\" }\nterm_months = 0",
        saving: 360,
        all_in_cents: 60_000,
        words: "about $360 a year",
    },
    Case {
        category: "internet",
        household: "",
        benchmark: "{ cents = 6800, per = \"month\" }",
        bid: "steps = [{ from_month = 1, price = { cents = 2000, per = \"month\" } },
            { from_month = 4, price = { cents = 9000, per = \"month\" } }]\nterm_months = 12",
        saving: 0,
        all_in_cents: 87_000,
        words: "nothing",
    },
    Case {
        category: "internet",
        household: "",
        benchmark: "{ cents = 6800, per = \"month\" }",
        bid: "price = { cents = 4500, per = \"month\" }\nterm_months = 12
            fees = [{ name = \"modem\", cents = 1295, per = \"month\" }, { name = \"access\", cents = 1100, per = \"month\" }]",
        saving: 0,
        all_in_cents: 82_740,
        words: "nothing",
    },
    Case {
        category: "home_insurance",
        household: "",
        benchmark: "{ off_basis_points = 0, on_cents = 180000, per = \"year\" }",
        bid: "price = { off_basis_points = 1000, on_cents = 180000, per = \"year\" }\nterm_months = 12",
        saving: 180,
        all_in_cents: 162_000,
        words: "about $180 a year",
    },
    Case {
        category: "credit_card_debt",
        household: "",
        benchmark: "{ apr_basis_points = 2199, on_cents = 600000 }",
        bid: "price = { apr_basis_points = 1299, on_cents = 600000 }\nterm_months = 0
            fees = [{ name = \"transfer\", basis_points = 300, per = \"once\" }]",
        saving: 360,
        all_in_cents: 95_940,
        words: "about $360 a year",
    },
    Case {
        category: "mortgage",
        household: "",
        benchmark: "{ apr_basis_points = 650, on_cents = 30000000 }",
        bid: "price = { apr_basis_points = 600, on_cents = 30000000 }\nterm_months = 360
            fees = [{ name = \"closing costs\", cents = 600000, per = \"once\" }]",
        saving: 300,
        all_in_cents: 1_920_000,
        words: "about $300 a year",
    },
    Case {
        category: "auto_loan",
        household: "",
        benchmark: "{ apr_basis_points = 749, on_cents = 2000000 }",
        bid: "price = { apr_basis_points = 599, on_cents = 2000000 }\nterm_months = 60",
        saving: 300,
        all_in_cents: 119_800,
        words: "about $300 a year",
    },
    Case {
        category: "hawaii_resort_stay",
        household: "",
        benchmark: "{ cents = 175000, per = \"use\" }",
        bid: "price = { cents = 140000, per = \"use\" }\nterm_months = 0
            fees = [{ name = \"resort fee\", cents = 22500, per = \"use\" }]",
        saving: 125,
        all_in_cents: 162_500,
        words: "about $125 each time",
    },
    Case {
        category: "alaska_cruise",
        household: "units = 2",
        benchmark: "{ cents = 145000, per = \"use\" }",
        bid: "price = { cents = 110000, per = \"use\" }\nterm_months = 0
            fees = [{ name = \"port fees\", cents = 22000, per = \"use\" }]",
        saving: 260,
        all_in_cents: 264_000,
        words: "about $260 each time",
    },
    Case {
        category: "travel",
        household: "",
        benchmark: "{ off_basis_points = 0, on_cents = 250000, per = \"use\" }",
        bid: "price = { off_basis_points = 800, on_cents = 250000, per = \"use\" }\nterm_months = 0",
        saving: 200,
        all_in_cents: 230_000,
        words: "about $200 each time",
    },
    Case {
        category: "subscriptions",
        household: "",
        benchmark: "{ cents = 13900, per = \"year\" }",
        bid: "steps = [{ from_month = 1, price = { cents = 9900, per = \"year\" } },
            { from_month = 13, price = { cents = 13900, per = \"year\" } }]\nterm_months = 12",
        saving: 40,
        all_in_cents: 9900,
        words: "about $40 a year",
    },
    Case {
        category: "groceries",
        household: "",
        benchmark: "{ off_basis_points = 0, on_cents = 90000, per = \"month\" }",
        bid: "price = { off_basis_points = 500, on_cents = 90000, per = \"month\" }\nterm_months = 0
            fees = [{ name = \"membership\", cents = 5900, per = \"year\" }]",
        saving: 481,
        all_in_cents: 1_031_900,
        words: "about $481 a year",
    },
];

/// The date, so many days from now.
fn day(ahead: i64) -> String {
    Timestamp::from_millis(Clock::start().now().time.as_millis() + ahead * 86_400_000).to_string()[..10].to_owned()
}

/// A campaign's file: `top` before its tables, `tables` after them.
fn campaign(slug: &str, category: &str, top: &str, benchmark: &str, tables: &str) -> String {
    format!(
        "slug = \"{slug}\"\ncategory = \"{category}\"\ngather_until = {}\n{top}\n[text.en]\ntitle = \"Less\"\nsummary = \"Less.\"\n\
         [text.es]\ntitle = \"Menos\"\nsummary = \"Menos.\"\n[benchmark]\nprice = {benchmark}\nsource = \"A survey\"\n\
         url = \"https://survey.example\"\ndate = {}\n{tables}",
        day(60),
        day(-30)
    )
}

fn bid(terms: &str) -> String {
    format!(
        "supplier = \"Example Fiber\"\nexit_fee_cents = 0\ncommission_cents = 0\nvalid_until = {}\n{terms}\n",
        day(120)
    )
}

#[track_caller]
fn open(server: &Server, slug: &str, file: &str) {
    let (code, _, told) = run_with(server, &["campaigns", "new", "-"], file);
    assert_eq!(code, 0, "{slug}: {told}");
    done(server, &["campaigns", "open", slug, POSTAL]);
}

#[track_caller]
fn take_bid(server: &Server, slug: &str, bid: &str) -> String {
    let (code, said, told) = run_with(server, &["campaigns", "bid", slug, "-"], bid);
    assert_eq!(code, 0, "{slug}: {told}");
    said
}

/// By the commands, by the negotiator's tool, and on the operator's page.
#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_bill_comes_to_what_people_would_reckon() {
    let server = Server::start();
    let mut messages = vec![begin()];
    for (n, case) in CASES.iter().enumerate() {
        let slug = format!("case-{n}");
        let is_regulated = Category::from_slug(case.category).unwrap().is_regulated();
        let reviewed = if is_regulated { REVIEWED } else { "" };
        open(&server, &slug, &campaign(&slug, case.category, case.household, case.benchmark, reviewed));
        let said = take_bid(&server, &slug, &bid(case.bid));
        assert!(said.contains(&format!("saves {}", case.words)), "{slug}: {said}");
        let bids = server.json(&["campaigns", "bids", &slug, "--json"]);
        let reckoned = (&bids[0]["saving"], &bids[0]["allInCents"]);
        assert_eq!(reckoned, (&json!(case.saving), &json!(case.all_in_cents)), "{slug}: {bids}");
        let mut said = bids[0]["bid"].clone();
        said.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        messages.push(bidding(&slug, &said));
    }
    let answers = negotiate(&server, &messages);
    let mut ana = signed_in(&server, "ana", 1).await;
    for (n, case) in CASES.iter().enumerate() {
        let reckoned = &content(&answers[n + 1])["reckoned"];
        let told = (&reckoned["saving"], &reckoned["allInCents"]);
        assert_eq!(told, (&json!(case.words), &json!(case.all_in_cents)), "case-{n}: {reckoned}");
        let shown = page(&ana.get(&format!("/operator/campaigns/case-{n}")).await, 200, "Example Fiber");
        let cost = reckoned["allIn"].as_str().unwrap();
        assert!(shown.contains(cost) && shown.contains(case.words), "case-{n}: {shown}");
    }
}

#[test]
fn a_regulated_bill_is_not_opened_without_its_review() {
    let server = Server::start();
    let regulated: Vec<_> = Category::ALL.iter().filter(|category| category.is_regulated()).collect();
    assert_eq!(regulated.len(), 7);
    for category in regulated {
        let slug = category.slug().replace('_', "-");
        let file = |tables: &str| campaign(&slug, category.slug(), "", CASES[3].benchmark, tables);
        let (code, _, told) = run_with(&server, &["campaigns", "new", "-"], &file(""));
        assert_eq!(code, 0, "{told}");
        let told = refused(&server, &["campaigns", "open", &slug, POSTAL]);
        holds(&told, &["nobody has signed that they looked", "reviewed", "commission", "handing over addresses"]);
        // A note that leaves one of the three out is no review.
        let half = file(&REVIEWED.replace("Rewards: none depends on buying.", ""));
        holds(&run_with(&server, &["campaigns", "edit", &slug, "-"], &half).2, &["reviewed.note", "rewards"]);
        assert_eq!(run_with(&server, &["campaigns", "edit", &slug, "-"], &file(REVIEWED)).0, 0);
        done(&server, &["campaigns", "open", &slug, POSTAL]);
    }
}

#[test]
fn offers_that_are_not_true_are_refused_with_a_sentence() {
    let server = Server::start();
    let mandate = "[mandate]\ntarget_cents = 57600\nwalk_away_cents = 69600\nlongest_term_months = 12\nmost_exit_fee_cents = 0\n\
        most_commission_cents = 0\n";
    let benchmark = "{ cents = 6800, per = \"month\" }";
    let file = campaign("internet", "internet", "", benchmark, mandate);
    let told = run_with(&server, &["campaigns", "new", "-"], &file.replace(&day(-30), "2019-05-01")).2;
    holds(&told, &["benchmark.date: 2019-05-01 is more than a year ago"]);
    open(&server, "internet", &file);
    let offer = format!(
        "bid = 1\ndecide_by = {}\ncomplaints = \"help@fiber.example\"\n[text.en]\nhow = \"Order with your code.\"\n\
         [text.es]\nhow = \"Haz tu pedido con tu código.\"\n",
        day(90)
    );
    let publish = |offer: &str, more: &[&str]| {
        let arguments = [&["campaigns", "offer", "internet", "-"], more].concat();
        let (code, said, told) = run_with(&server, &arguments, offer);
        assert_eq!((code, said.as_str()), (1, ""), "{offer}");
        told
    };
    // Nobody bid.
    holds(&publish(&offer, &[]), &["bid: the campaign has none yet"]);
    let half_a_century = bid("price = { cents = 4800, per = \"month\" }\nterm_months = 600");
    let told = run_with(&server, &["campaigns", "bid", "internet", "-"], &half_a_century).2;
    holds(&told, &["term_months: write a whole number from 0 to 360"]);
    take_bid(&server, "internet", &bid("price = { cents = 4800, per = \"month\" }\nterm_months = 12"));
    let other = bid("price = { cents = 4000, per = \"month\" }\nterm_months = 24").replace("Example", "Other");
    take_bid(&server, "internet", &other);
    for (typed, figure) in [("annual_saving", "900"), ("annual_saving", "1000000"), ("supplier", "\"Third Fiber\"")] {
        let told = publish(&format!("{typed} = {figure}\n{offer}"), &[]);
        holds(&told, &[&format!("{typed}: it comes from the bid")]);
    }
    let told = publish(&offer.replace("bid = 1", "bid = 3"), &[]);
    holds(&told, &["bid: there is no bid 3"]);
    // Figures of the texts that are none of the offer's numbers, in either language.
    let spanish = offer.replace("tu código", "tu código por $38 al mes");
    holds(&publish(&spanish, &[]), &["text.es.how", "$38", "--figures-checked"]);
    let details = offer.replace("[text.es]", "details = \"You save $900 in 37 months.\"\n[text.es]");
    holds(&publish(&details, &[]), &["text.en.details", "$900", "37", "--figures-checked"]);
    // Beyond the mandate.
    let long = offer.replace("bid = 1", "bid = 2");
    holds(&publish(&long, &[]), &["24 months", "--outside-mandate"]);
    let empty = run_with(&server, &["campaigns", "offer", "internet", "-", "--outside-mandate", " "], &long);
    assert_eq!(empty.0, 2);
    holds(&empty.2, &["write the reason"]);
    // Nothing of it was published, and a signed one is.
    assert_eq!(server.json(&["campaigns", "show", "internet", "--json"])["state"], "gathering");
    let signed = ["campaigns", "offer", "internet", "-", "--outside-mandate", "the board agreed"];
    assert_eq!(run_with(&server, &signed, &long).0, 0);
    let shown = server.json(&["campaigns", "show", "internet", "--json"]);
    let note = shown["history"].as_array().unwrap().last().unwrap()["note"].to_string();
    holds(&note, &["24 months", "the board agreed"]);
}
