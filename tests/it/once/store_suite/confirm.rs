//! What every store makes of confirmations that come at once, whatever shares a commit.

use super::*;

/// What the records say of confirmations, with one row for each thing that a confirmation changes.
const SUMS: &str = "
    SELECT 'members', (SELECT count(*) FROM people WHERE state = 'member') UNION ALL
    SELECT 'counted', (SELECT member_count FROM installation) UNION ALL
    SELECT 'credited', (SELECT count(*) FROM people WHERE referrer_id IS NOT NULL) UNION ALL
    SELECT 'confirmed', (SELECT count(*) FROM sign_ups WHERE state = 'confirmed') UNION ALL
    SELECT 'mails of confirmed', (SELECT count(*) FROM outbox o JOIN sign_ups s ON s.id = o.sign_up_id WHERE s.state = 'confirmed')
    UNION ALL
    SELECT 'names', (SELECT count(*) FROM idempotency_keys WHERE confirmed_at IS NOT NULL) UNION ALL
    SELECT 'events', (SELECT count(*) FROM partner_events WHERE kind = 'sign_up.confirmed') UNION ALL
    SELECT 'deliveries', (SELECT count(*) FROM webhook_deliveries) UNION ALL
    SELECT 'complaints', (SELECT count(*) FROM mailboxes WHERE complained_at IS NOT NULL) UNION ALL
    SELECT 'the form: members', (SELECT confirmed FROM source_days WHERE partner_id IS NULL) UNION ALL
    SELECT 'the form: buttons', (SELECT sign_ups_confirmed FROM source_days WHERE partner_id IS NULL) UNION ALL
    SELECT 'Acme: members', (SELECT confirmed FROM source_days WHERE partner_id = 1) UNION ALL
    SELECT 'Acme: buttons', (SELECT sign_ups_confirmed FROM source_days WHERE partner_id = 1) UNION ALL
    SELECT 'changes', (SELECT count(*) FROM member_changes WHERE change = 1)";

/// Every kind of confirmation there is, together: good ones of two sources, with names and without, repeated ones, two of one
/// person, two of one mailbox, a throwaway's, and those that confirm nothing.
pub(super) async fn confirmations_at_once_are_each_done_as_if_alone(fixture: &Fixture) {
    fixture.endpoint("Acme").await;
    let referrer = fixture.sign_up("referrer@example.com").await.code;
    let referred = |email: &str| NewSignUp { ref_code: Some(referrer), ..fixture.new_sign_up(email) };
    let mut ids = HashMap::new();
    let mut taken = 1;
    let mut note = |name: String| {
        taken += 1;
        ids.insert(name, taken);
    };
    for n in 0..20 {
        fixture.sign_up_named(&format!("named{n}@example.com"), &format!("name{n}"), NOW).await;
        note(format!("named{n}"));
        fixture.store.sign_up(referred(&format!("referred{n}@example.com")), NOW).await.unwrap();
        note(format!("referred{n}"));
        fixture.by_form(&format!("form{n}@example.com"), NOW).await;
        note(format!("form{n}"));
    }
    for name in ["expired", "declined", "changed", "often", "moved"] {
        fixture.sign_up(&format!("{name}@example.com")).await;
        note(name.to_owned());
    }
    for name in ["twin", "twin+x"] {
        fixture.store.sign_up(referred(&format!("{name}@example.com")), NOW).await.unwrap();
        note(name.to_owned());
    }
    fixture.store.sign_up(NewSignUp { disposable: true, ..referred("thrown@example.com") }, NOW).await.unwrap();
    note("thrown".to_owned());
    fixture.sign_up("both@example.com").await;
    note("both".to_owned());
    fixture.by_form("both@example.com", NOW).await;
    note("both by form".to_owned());
    let id = |name: &str| linked(ids[name]);
    fixture.run(declining(id("declined"), None, NOW)).await;
    fixture.records.execute(
        "INSERT INTO mailboxes (mailbox, complained_at) VALUES ('form1@example.com', 1), ('b@example.com', 1)",
    );

    let mut asked: Vec<(String, SignUpRef, SeenPage, Timestamp)> = Vec::new();
    let mut ask = |name: &str, sign_up, seen| asked.push((name.to_owned(), sign_up, seen, after(MINUTE)));
    for n in 0..20 {
        for kind in ["named", "referred", "form"] {
            let name = format!("{kind}{n}");
            ask(&name, id(&name), SeenPage { answers: Some(NOW), ..SeenPage::default() });
        }
    }
    for _ in 0..50 {
        ask("often", id("often"), SeenPage::default());
    }
    for name in ["declined", "twin+x", "twin", "thrown"] {
        ask(name, id(name), SeenPage::default());
    }
    ask("both", id("both"), SeenPage::default());
    ask("both", id("both by form"), SeenPage::default());
    ask("changed", id("changed"), SeenPage { answers: Some(after(MINUTE)), ..SeenPage::default() });
    ask("unknown", linked(9999), SeenPage::default());
    ask("unknown", linked_at(ids["moved"], after(MINUTE)), SeenPage::default());
    asked.push(("expired".to_owned(), id("expired"), SeenPage::default(), after(PENDING_FOR)));

    let asked = asked.into_iter().map(|(name, sign_up, seen, now)| {
        let confirming = fixture.store.confirm(sign_up, seen, now);
        async move { (name, sign_up, confirming.await.unwrap()) }
    });
    let mut answers: HashMap<String, (usize, Vec<Confirmation>)> = HashMap::new();
    for (name, sign_up, answer) in together(asked.collect::<Vec<_>>().into_iter()).await {
        let (joined, others) = answers.entry(name).or_default();
        match answer {
            Confirmation::Joined(member) => {
                fixture.check_new_member(sign_up, &member, after(MINUTE)).await;
                *joined += 1;
            }
            answer => others.push(answer),
        }
    }
    for (name, answers) in answers {
        let expected = match name.as_str() {
            "declined" => (0, vec![Confirmation::Declined]),
            "changed" => (0, vec![Confirmation::Changed]),
            "expired" => (0, vec![Confirmation::Expired]),
            "unknown" => (0, vec![Confirmation::Unknown; 2]),
            "both" => (1, vec![Confirmation::AlreadyMember]),
            "often" => (1, vec![Confirmation::AlreadyMember; 49]),
            _ => (1, vec![]),
        };
        assert_eq!(answers, expected, "{name}");
    }
    let sums: HashMap<String, String> =
        fixture.records.rows(SUMS).into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let members = 60 + 1 + 2 + 1 + 1;
    let by_form = sums["the form: members"].parse::<i64>().unwrap() - 20;
    assert!((0..=1).contains(&by_form), "one of the two buttons made a member of both@example.com: {sums:?}");
    for (what, expected) in [
        ("members", members),
        ("counted", members),
        ("changes", members),
        ("credited", 20 + 1),
        ("confirmed", members + 1),
        ("mails of confirmed", 0),
        ("names", 20),
        ("events", 20),
        ("deliveries", 20),
        ("complaints", 1),
        ("the form: buttons", 21),
        ("Acme: members", members - 1 - 20 - by_form),
        ("Acme: buttons", members + 1 - 21),
    ] {
        assert_eq!(sums[what], expected.to_string(), "{what}");
    }
}

/// Whoever left and comes back without an answer joins with those that are kept of them.
pub(super) async fn a_new_member_is_told_with_the_answers_that_count(fixture: &Fixture) {
    let kept = answers(Some(UsState::CA), None, Some("Please hurry."));
    let first = NewSignUp { answers: kept.clone(), ..fixture.new_sign_up("ana@example.com") };
    fixture.store.sign_up(first, NOW).await.unwrap();
    fixture.confirm(1).await;
    fixture.leave("ana@example.com").await;
    let chosen = answers(None, Some(CategorySet::from_slugs("internet")), None);
    let back = NewSignUp {
        answers: chosen.clone(),
        partner: None,
        language: Some(Language::Spanish),
        ..fixture.new_sign_up("ana@example.com")
    };
    fixture.store.sign_up(back, after(HOUR)).await.unwrap();
    let again = linked_at(2, after(HOUR));
    let Ok(Confirmation::Joined(member)) = fixture.store.confirm(again, SeenPage::default(), after(HOUR)).await else {
        panic!("they are no member");
    };
    assert_eq!(member.answers, Answers { categories: chosen.categories, ..kept });
    assert_eq!((member.language, member.campaign.as_ref()), (Some(Language::Spanish), None));
    fixture.check_new_member(again, &member, after(HOUR)).await;
}

/// The same where each has a transaction of its own.
#[tokio::test(flavor = "multi_thread")]
async fn confirmations_at_once_on_postgres_without_batches() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let store = OpenStore::new(PostgresStore::open(database.address(), Prepare::Upgrade, 1).await.unwrap());
    let records = Records::Postgres { store: database.url(), limits: String::new() };
    let fixture = Fixture::new(store, records).await;
    confirmations_at_once_are_each_done_as_if_alone(&fixture).await;
    fixture.store.close().await.unwrap();
}
