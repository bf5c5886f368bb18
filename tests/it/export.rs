//! The export of everything that is kept of a person: complete by the tables themselves, and by its published schema.

use crate::prelude::*;
use unionhall::domain::answers::Answers;
use unionhall::domain::campaign::acceptance::Reference;

use crate::own_page::join;

/// Where each column about a person is found in the export: of each table, columns and their places below one.
const EXPORTED: &[(&str, &str, &str)] = &[
    (
        "people",
        "",
        "email=email code=referralLink state=state referrer_id=referredBy created_at=firstKnownAt \
         joined_at=joinedAt left_at=leftAt undeliverable_until=mail/undeliverableUntil \
         soft_bounces=mail/softBounces account=account wrong_codes=wrongCodesToday \
         answered_at=answers/changedAt \
         unwanted_mail=mail/unwantedKinds wanted_mail=mail/unwantedKinds uncredited=uncredited language=language",
    ),
    (
        "sign_ups",
        "/signUps/0",
        "key_id=key partner_id=through state=state \
         referrer_id=referredBy created_at=createdAt updated_at=updatedAt expires_at=expiresAt \
         decided_at=decidedAt disposable=disposableAddress channel=channel client=clientSelfAsserted \
         mailed_at=mailedAt decided_how=decidedHow language=language",
    ),
    ("sign_ups", "/signUps/0/notice", "notice=hash"),
    (
        "participations",
        "/campaigns/0",
        "campaign_id=campaign state=state in_at=inAt accepted_at=acceptedAt changed_at=changedAt",
    ),
    (
        "acceptances",
        "/campaigns/0/acceptances/0",
        "reference=reference handover=handover notice=told made_at=madeAt accepted_at=acceptedAt ended_at=endedAt ended_why=endedWhy \
         batch_id=handedOverAt withdrawn_batch_id=withdrawnAt status=report/status status_on=report/on settled_at=reportedAt \
         trouble_at=troubleAt",
    ),
    ("stopped_partners", "/mail/stoppedPartners/0", "partner_id=partner stopped_at=stoppedAt"),
    ("notices", "/signUps/0/notice", "text=words"),
    ("sign_ins", "/signIns/0", "mailed=mailed tries=tries created_at=askedAt used_at=usedAt"),
    (
        "outbox",
        "/signUps/1/waitingMail",
        "kind=kind created_at=createdAt send_after=sendAfter attempts=attempts last_error=lastError \
         given_up_at=givenUpAt held_at=heldAt",
    ),
    ("mailboxes", "/mail/sent/0", "sent_1=at source_1=askedForBy"),
    ("mailboxes", "/mail/sent/1", "sent_2=at source_2=askedForBy"),
    ("mailboxes", "/mail/sent/2", "sent_3=at source_3=askedForBy"),
    ("mailboxes", "/mail/sent/3", "sent_4=at source_4=askedForBy"),
    ("mailboxes", "/mail", "suppressed_until=suppressedUntil complained_at=complainedAt"),
    ("referrers", "/referrals", "members=members"),
    ("referrers", "/rewards", "rewarded_groups=rewardedGroups rewarded_cents=rewardedCents"),
    (
        "qualifications",
        "/rewardHistory/countedIn/0",
        "campaign_id=campaign qualified_at=countedAt voided_at=voidedAt ended_on=endedOn ended_why=endedWhy",
    ),
    ("reward_groups", "/rewards/campaigns/0", "campaign_id=campaign state=groups"),
    (
        "reward_ledger",
        "/rewardHistory/ledger/0",
        "campaign_id=campaign kind=kind amount_cents=amountCents at=at why=why",
    ),
    (
        "payouts",
        "/rewardHistory/payouts/0",
        "external_id=externalId campaign_id=campaign amount_cents=amountCents group_count=groups state=state \
         reference=reference paid_at=paidAt reason=reason settled_at=settledAt",
    ),
    ("idempotency_keys", "/requests/0", "partner_id=partner key=name created_at=askedAt confirmed_at=confirmedAt"),
];

/// Why the others are not; `TABLE.*` is all of a table's.
const REASONS: &[(&str, &str)] = &[
    ("a number inside the records that leads to nothing outside them", "people.id"),
    ("made from the address", "people.email_normalized people.mailbox mailboxes.mailbox stopped_partners.mailbox"),
    ("there is nobody to export for, once it is set", "people.erased_at"),
    ("a secret: whoever reads it would be half-way into the session", "people.session"),
    ("says of which day /wrongCodesToday is", "people.wrong_codes_day"),
    ("a number inside the records; links are made from it", "sign_ups.id"),
    (
        "a number inside the records",
        "sign_ups.person_id participations.id participations.person_id qualifications.id qualifications.person_id \
         reward_groups.id reward_groups.referrer_id reward_groups.payout_id reward_ledger.id payouts.id \
         payouts.batch_id outbox.campaign_mail_id sign_ins.person_id outbox.sign_up_id stopped_partners.id \
         referrers.person_id idempotency_keys.id idempotency_keys.person_id idempotency_keys.sign_up_id acceptances.id \
         acceptances.person_id",
    ),
    ("a number of the program, the same for everybody", "sign_ups.consent_version"),
    ("set with answers that are gone", "sign_ups.purged_at"),
    ("how posts of the form are told apart", "sign_ups.slot"),
    ("the page that the form was opened from; whether they are in stands under /campaigns", "sign_ups.campaign_id"),
    ("the page that it leads back to, for ten minutes", "sign_ins.campaign_id"),
    ("the worker's own; what came of it stands under /rewardHistory/countedIn", "participations.hold_checked"),
    ("how the last demand sheet counted what stands under /campaigns", "participations.counted"),
    ("the later of two times under /campaigns", "participations.hold_from"),
    ("the campaign that it stands under", "acceptances.campaign_id"),
    ("how many offers of the campaign there had been", "acceptances.offer_number"),
    ("of the union and a supplier; a person appears as a reference under /campaigns", "handover_batches.*"),
    ("the worker's own, for a minute", "disqualifications.*"),
    ("whoever referred them: /referredBy", "qualifications.referrer_id"),
    ("a group of whoever referred them", "qualifications.group_id"),
    ("the moment of its line in /rewardHistory/ledger", "reward_groups.formed_at"),
    ("the same as /account", "reward_ledger.account payouts.account account_sums.account"),
    ("of the operator", "reward_ledger.who payout_batches.* campaign_history.*"),
    (
        "the worker's own",
        "regroupings.* requalifications.* outbox.first_attempt_at outbox.leased_until outbox.leased_by outbox.lane \
         outbox.priority mailboxes.last_mail_id",
    ),
    ("of the union", "campaigns.*"),
    ("figures without a person", "demand_sheets.* reward_totals.* demand.*"),
    ("how far a mailing is, without a person", "campaign_mailings.*"),
    ("of the installation", "campaign_pace.* installation.* readiness.* rollup.* secret_generations.*"),
    ("that a mail about a campaign is on its way; deleted once all are", "campaign_mails.*"),
    (
        "of the negotiation",
        "campaign_rounds.* campaign_offer_drafts.* campaign_draft_answers.* campaign_bids.* campaign_messages.* negotiation_pauses.*",
    ),
    ("about the words, not about the person", "notices.names_campaign_mail notices.first_shown_at"),
    ("a number inside the records; links and codes are made from it", "sign_ins.id"),
    ("derived from /email; the limits of sign-in mail are counted by it for a day", "sign_ins.mailbox"),
    ("a secret: a keyed hash of the browser's nonce", "sign_ins.browser"),
    ("ten minutes after /signIns/0/askedAt", "sign_ins.expires_at"),
    ("a number inside the records; message ids are made from it", "outbox.id"),
    ("a number inside the records; /signIns/0/mailed says that there is a mail", "outbox.sign_in_id"),
    ("their own address, as it was typed for that sign-up", "outbox.recipient"),
    ("why /signUps/1/waitingMail/heldAt is set: of partners", "outbox.held_suspended"),
    ("the same as /signUps/0/notice/hash", "notices.hash"),
    ("of an account that was cut off by an erasure; it comes off their next reward", "referrers.owed_cents"),
    ("the worker's own: the next batch looks at them; what is due stands under /rewards", "referrers.rest_due"),
    ("figures on their way: a source, a state and categories, without a person", "member_changes.*"),
    ("the accounts of sums on their way, for a minute", "account_changes.*"),
    ("a copy of /rewards/dueCents, at most a minute old", "account_sums.due_cents"),
    ("a copy of /rewards/outCents, at most a minute old", "account_sums.out_cents"),
    ("a copy of /rewards/paidCents, at most a minute old", "account_sums.paid_cents"),
    ("about accounts that are nobody's anymore", "account_sums.is_erased"),
    ("figures of partners", "source_days.*"),
    ("of partners", "api_keys.* webhook_endpoints.* partners.*"),
    ("of operators; a person appears as /account", "audit.*"),
    ("names of proofs and reports, without a person", "used_once.*"),
    ("which of the two operations was asked for", "idempotency_keys.operation"),
    ("a keyed hash of what was sent, which stands under /signUps", "idempotency_keys.input"),
    ("the same as /referralLink", "idempotency_keys.link"),
    ("how many members there were: of the union", "idempotency_keys.joined_count"),
    ("a figure of the catalog", "idempotency_keys.savings"),
    ("the same as /signUps/0/referredBy", "idempotency_keys.attributed"),
    ("seven days after /requests/0/askedAt", "idempotency_keys.closes_at"),
    ("when that was written down", "idempotency_keys.closed_at"),
    ("what a partner learns; it stands under /requests", "partner_events.*"),
    ("on its way to a partner; what it says stands under /requests", "webhook_deliveries.*"),
    ("of partners; nobody is in it", "partner_changes.*"),
    ("the sandbox's; empty among live records", "inbox.*"),
    ("who runs the installation", "operators.* operator_sessions.* operator_links.* operator_recovery_codes.*"),
    ("what needs the operator's attention; nobody is in it", "told_findings.*"),
];

/// Each column and its place.
fn exported() -> impl Iterator<Item = (String, String)> {
    EXPORTED.iter().flat_map(|(table, below, columns)| {
        let found = columns.split_whitespace().map(|column| column.split_once('=').unwrap());
        found.map(move |(column, place)| (format!("{table}.{column}"), format!("{below}/{place}")))
    })
}

#[test]
fn every_column_about_a_person_is_exported_or_has_a_reason_not_to_be() {
    let records = rusqlite::Connection::open_in_memory().unwrap();
    MIGRATIONS.iter().for_each(|step| records.execute_batch(step.sqlite).unwrap());
    let columns = "SELECT t.name || '.' || c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
                   WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
    let mut columns = records.prepare(columns).unwrap();
    let all: BTreeSet<String> = columns.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    // `answers.rs` finds these in an export.
    let answers = Answers::NAMES.iter().flat_map(|name| [format!("sign_ups.{name}"), format!("people.own_{name}")]);
    let mut named: BTreeSet<_> = answers.collect();
    assert!(named.is_subset(&all), "{named:?}");
    let unsaid = REASONS.iter().flat_map(|(_, columns)| columns.split_whitespace()).map(str::to_owned);
    for name in exported().map(|(column, _)| column).chain(unsaid) {
        let covered: Vec<_> = match name.strip_suffix('*') {
            Some(table) => all.iter().filter(|column| column.starts_with(table)).cloned().collect(),
            None => vec![name.clone()],
        };
        assert!(!covered.is_empty(), "{name} is no column");
        for column in covered {
            assert!(all.contains(&column), "{column} is no column");
            assert!(named.insert(column.clone()), "{column} is named twice");
        }
    }
    let forgotten: Vec<_> = all.difference(&named).collect();
    assert!(forgotten.is_empty(), "neither exported nor with a reason: {forgotten:?}");
}

/// Somebody of whom everything is kept that can be: each value is found where the list says, and the schema holds.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_holds_what_is_kept_by_its_published_schema() {
    let (server, key) = Server::with_key(&["--mail", "hold"]);
    let referrer = join(&server, &key, "ref@example.com", None).await;
    let body = json!({
        "email": "Ana@example.com", "usState": "CA", "categories": { "travel": true }, "otherComments": "first words",
        "refCode": referrer,
    });
    let named = hyper::Request::post("/v1/invite").header("authorization", format!("Bearer {key}"));
    server.send(named.header("idempotency-key", "order-17"), body.to_string()).await.good();
    server.confirm(2).await;
    let mut ana = Browser::member(&server, 1, "ana@example.com").await;
    server.post("/v1/invite", &key, json!({ "email": "ana@example.com" }).to_string()).await.good();
    let id = server.number("SELECT id FROM people WHERE email_normalized = 'ana@example.com'");
    for sql in [
        &format!("UPDATE people SET soft_bounces = 3, undeliverable_until = 1800000000000, wrong_codes = 2,
                          wrong_codes_day = {}, own_us_state = 'NY', own_categories = 'internet', own_comments = 'own words',
                          answered_at = joined_at + 1, unwanted_mail = 'already_member', language = 'es', account = 'account1' WHERE id = {id}",
                 server.number("SELECT max(created_at) / 86400000 FROM sign_ups")),
        "UPDATE sign_ups SET client = 'Helper', mailed_at = 1794743200000, language = 'es' WHERE id = 2",
        "INSERT INTO stopped_partners (mailbox, partner_id, stopped_at)
         SELECT 'ana@example.com', id, 1794743200000 FROM partners",
        "UPDATE outbox SET last_error = 'the relay is away', attempts = 2, given_up_at = 1794743200000, held_at = 1794743200000",
        "INSERT INTO campaigns (slug, definition, state, gather_until, created_at, reward_cents, group_size, max_groups, hold_days)
         VALUES ('one-2027', '', 'draft', 1, 1, 10000, 5, 10, 30)",
        &format!("INSERT INTO qualifications (campaign_id, person_id, qualified_at, voided_at, ended_on, ended_why)
                  VALUES (1, {id}, 1794743200000, 1794743200000, 1794743200000, 'passed')"),
        &format!("INSERT INTO reward_groups (referrer_id, campaign_id, state, formed_at) VALUES ({id}, 1, 'accrued', 1794743200000)"),
        "INSERT INTO reward_ledger (account, campaign_id, kind, amount_cents, at, who, why)
         VALUES ('account1', 1, 'accrual', 10000, 1794743200000, 'rules', 'group 1')",
        "INSERT INTO payout_batches (created_at, who) VALUES (1, 'op')",
        "INSERT INTO payouts (batch_id, external_id, account, campaign_id, amount_cents, group_count, state, reference, paid_at, reason, settled_at)
         VALUES (1, 'account1-1-1', 'account1', 1, 10000, 1, 'failed', 'transfer-7', 1794743200000, 'no such account', 1794743200000)",
        &format!("INSERT INTO participations (campaign_id, person_id, state, in_at, accepted_at, changed_at)
                  VALUES (1, {id}, 'in', 1794743200000, 1794743200000, 1794743200000)"),
        "INSERT INTO handover_batches (campaign_id, number, created_at, who, closed_at) VALUES (1, 1, 1, 'op', 1794743200000)",
        "INSERT INTO notices (hash, text, first_shown_at, names_campaign_mail) VALUES ('told', 'You get a code.', 1, FALSE)",
        &format!("INSERT INTO acceptances (campaign_id, person_id, reference, notice, handover, offer_number, made_at, accepted_at, ended_at,
                      ended_why, batch_id, withdrawn_batch_id, status, status_on, settled_at, trouble_at)
                  VALUES (1, {id}, '{}', 'told', 'code', 0, 1794743200000, 1794743200000, 1794743200000, 'passed', 1, 1, 'switched', 20772,
                      1794743200000, 1794743200000)",
                 Reference::from_random(&[7; Reference::ENTROPY]).as_str()),
        "DELETE FROM mailboxes",
        "INSERT INTO mailboxes (mailbox, sent_1, sent_2, sent_3, sent_4, source_1, source_2, source_3, source_4, suppressed_until,
                                    complained_at)
             VALUES ('ana@example.com', 1794743200000, 1794743100000, 1794743000000, 1794742900000, 1, NULL, 1, 1,
                     1800000000000, 1794743200000)",
    ] {
        server.execute(sql);
    }
    let answer = ana.get("/me/export").await;
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"member-export.json\"");
    assert_eq!(answer.header("cache-control"), "no-store");
    let export: Value = serde_json::from_slice(&answer.body).unwrap();
    // What can only be told of somebody else, or in another state.
    let elsewhere = ["/leftAt", "/signUps/0/clientSelfAsserted"];
    for (column, pointer) in exported() {
        let value = export.pointer(&pointer).unwrap_or_else(|| panic!("{column}: nothing at {pointer} in {export:#}"));
        assert!(!value.is_null() || elsewhere.contains(&&*pointer), "{column}: {pointer} is null in {export:#}");
    }
    assert_eq!(export["answers"]["comments"], "own words");
    assert_eq!(export["signUps"][0]["comments"], "first words");
    assert_eq!(
        (&export["signUps"][0]["clientSelfAsserted"], &export["referredBy"]),
        (&json!("Helper"), &json!(referrer))
    );
    let session = server.rows(&format!("SELECT session FROM people WHERE id = {id}"))[0][0].clone();
    assert!(session.len() > 20 && !export.to_string().contains(&session), "no secret leaves");

    let published = server.get("/me/export.schema.json").await;
    assert_eq!(published.header("content-type"), "application/schema+json");
    assert!(export["$schema"].as_str().unwrap().ends_with("/me/export.schema.json"));
    let schema: Value = serde_json::from_slice(&published.body).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mistakes: Vec<_> = validator.iter_errors(&export).map(|error| error.to_string()).collect();
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let wrong = json!({ "email": 5 });
    assert!(!validator.is_valid(&wrong), "the schema refuses something");
}

/// A look at somebody with a command is in the audit log, as a look on the page is.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_looks_people_up_with_a_command_is_written_down() {
    let (server, key) = Server::with_key(&["--mail", "hold"]);
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    let shown = server.run(&["members", "show", "ana@example.com"]);
    assert!(!server.try_run(&["members", "show", "nobody@example.com"]).status.success());
    server.run(&["members", "find", "ana"]);
    server.run(&["members", "find", "zoe"]);
    server.run(&["members", "find", "--partner", "Acme Assistant"]);
    server.run(&["members", "find", "--form"]);
    let rows = server.rows("SELECT command, about FROM audit WHERE command LIKE 'members %' ORDER BY id");
    let about: Vec<_> = rows.iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
    let account = shown.lines().find_map(|line| line.trim().strip_prefix("account ")).unwrap();
    let account = format!("account {}", account.split(' ').next().unwrap());
    let expected = [
        ("members show", account.as_str()),
        ("members show", "nobody"),
        ("members find", "1 person"),
        ("members find", "0 people"),
        ("members find", "Acme Assistant"),
        ("members find", "the form"),
    ];
    assert_eq!(about, expected);
}
