//! The export of everything that is kept of a person: complete by the tables themselves, and by its published schema.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use unionhall::domain::answers::Answers;
use unionhall::store::migration::MIGRATIONS;

use crate::own_page::{Browser, join};
use crate::server::{Server, block_on};

/// Where each column about a person is found in the export.
const EXPORTED: &[(&str, &str)] = &[
    ("people.email", "/email"),
    ("people.code", "/referralLink"),
    ("people.state", "/state"),
    ("people.referrer_id", "/referredBy"),
    ("people.created_at", "/firstKnownAt"),
    ("people.joined_at", "/joinedAt"),
    ("people.left_at", "/leftAt"),
    ("people.undeliverable_until", "/mail/undeliverableUntil"),
    ("people.soft_bounces", "/mail/softBounces"),
    ("people.account", "/account"),
    ("people.wrong_codes", "/wrongCodesToday"),
    ("people.answered_at", "/answers/changedAt"),
    ("people.unwanted_mail", "/mail/unwantedKinds"),
    ("people.wanted_mail", "/mail/unwantedKinds"),
    ("people.uncredited", "/uncredited"),
    ("people.language", "/language"),
    ("sign_ups.key_id", "/signUps/0/key"),
    ("sign_ups.partner_id", "/signUps/0/through"),
    ("sign_ups.state", "/signUps/0/state"),
    ("sign_ups.referrer_id", "/signUps/0/referredBy"),
    ("sign_ups.created_at", "/signUps/0/createdAt"),
    ("sign_ups.updated_at", "/signUps/0/updatedAt"),
    ("sign_ups.expires_at", "/signUps/0/expiresAt"),
    ("sign_ups.decided_at", "/signUps/0/decidedAt"),
    ("sign_ups.disposable", "/signUps/0/disposableAddress"),
    ("sign_ups.channel", "/signUps/0/channel"),
    ("sign_ups.client", "/signUps/0/clientSelfAsserted"),
    ("sign_ups.notice", "/signUps/0/notice/hash"),
    ("sign_ups.mailed_at", "/signUps/0/mailedAt"),
    ("sign_ups.decided_how", "/signUps/0/decidedHow"),
    ("sign_ups.language", "/signUps/0/language"),
    ("participations.campaign_id", "/campaigns/0/campaign"),
    ("participations.state", "/campaigns/0/state"),
    ("participations.in_at", "/campaigns/0/inAt"),
    ("participations.accepted_at", "/campaigns/0/acceptedAt"),
    ("participations.changed_at", "/campaigns/0/changedAt"),
    ("stopped_partners.partner_id", "/mail/stoppedPartners/0/partner"),
    ("stopped_partners.stopped_at", "/mail/stoppedPartners/0/stoppedAt"),
    ("notices.text", "/signUps/0/notice/words"),
    ("sign_ins.mailed", "/signIns/0/mailed"),
    ("sign_ins.tries", "/signIns/0/tries"),
    ("sign_ins.created_at", "/signIns/0/askedAt"),
    ("sign_ins.used_at", "/signIns/0/usedAt"),
    ("outbox.kind", "/signUps/1/waitingMail/kind"),
    ("outbox.created_at", "/signUps/1/waitingMail/createdAt"),
    ("outbox.send_after", "/signUps/1/waitingMail/sendAfter"),
    ("outbox.attempts", "/signUps/1/waitingMail/attempts"),
    ("outbox.last_error", "/signUps/1/waitingMail/lastError"),
    ("outbox.given_up_at", "/signUps/1/waitingMail/givenUpAt"),
    ("outbox.held_at", "/signUps/1/waitingMail/heldAt"),
    ("mailboxes.sent_1", "/mail/sent/0/at"),
    ("mailboxes.sent_2", "/mail/sent/1/at"),
    ("mailboxes.sent_3", "/mail/sent/2/at"),
    ("mailboxes.sent_4", "/mail/sent/3/at"),
    ("mailboxes.source_1", "/mail/sent/0/askedForBy"),
    ("mailboxes.source_2", "/mail/sent/1/askedForBy"),
    ("mailboxes.source_3", "/mail/sent/2/askedForBy"),
    ("mailboxes.source_4", "/mail/sent/3/askedForBy"),
    ("mailboxes.suppressed_until", "/mail/suppressedUntil"),
    ("mailboxes.complained_at", "/mail/complainedAt"),
    ("referrers.members", "/referrals/members"),
    ("referrers.rewarded_groups", "/rewards/rewardedGroups"),
    ("referrers.rewarded_cents", "/rewards/rewardedCents"),
    ("qualifications.campaign_id", "/rewardHistory/countedIn/0/campaign"),
    ("qualifications.qualified_at", "/rewardHistory/countedIn/0/countedAt"),
    ("qualifications.voided_at", "/rewardHistory/countedIn/0/voidedAt"),
    ("reward_groups.campaign_id", "/rewards/campaigns/0/campaign"),
    ("reward_groups.state", "/rewards/campaigns/0/groups"),
    ("reward_ledger.campaign_id", "/rewardHistory/ledger/0/campaign"),
    ("reward_ledger.kind", "/rewardHistory/ledger/0/kind"),
    ("reward_ledger.amount_cents", "/rewardHistory/ledger/0/amountCents"),
    ("reward_ledger.at", "/rewardHistory/ledger/0/at"),
    ("reward_ledger.why", "/rewardHistory/ledger/0/why"),
    ("payouts.external_id", "/rewardHistory/payouts/0/externalId"),
    ("payouts.campaign_id", "/rewardHistory/payouts/0/campaign"),
    ("payouts.amount_cents", "/rewardHistory/payouts/0/amountCents"),
    ("payouts.group_count", "/rewardHistory/payouts/0/groups"),
    ("payouts.state", "/rewardHistory/payouts/0/state"),
    ("payouts.reference", "/rewardHistory/payouts/0/reference"),
    ("payouts.paid_at", "/rewardHistory/payouts/0/paidAt"),
    ("payouts.reason", "/rewardHistory/payouts/0/reason"),
    ("payouts.settled_at", "/rewardHistory/payouts/0/settledAt"),
    ("idempotency_keys.partner_id", "/requests/0/partner"),
    ("idempotency_keys.key", "/requests/0/name"),
    ("idempotency_keys.created_at", "/requests/0/askedAt"),
    ("idempotency_keys.confirmed_at", "/requests/0/confirmedAt"),
];

/// Why the others are not; `TABLE.*` is all of a table's.
const REASONS: &[(&str, &str)] = &[
    ("people.id", "a number inside the records that leads to nothing outside them"),
    ("people.email_normalized", "made from the address"),
    ("people.mailbox", "made from the address"),
    ("people.erased_at", "there is nobody to export for, once it is set"),
    ("people.session", "a secret: whoever reads it would be half-way into the session"),
    ("people.wrong_codes_day", "says of which day /wrongCodesToday is"),
    ("sign_ups.id", "a number inside the records; links are made from it"),
    ("sign_ups.person_id", "a number inside the records"),
    ("sign_ups.consent_version", "a number of the program, the same for everybody"),
    ("sign_ups.purged_at", "set with answers that are gone"),
    ("sign_ups.slot", "how posts of the form are told apart"),
    ("sign_ups.campaign_id", "the page that the form was opened from; whether they are in stands under /campaigns"),
    ("sign_ins.campaign_id", "the page that it leads back to, for ten minutes"),
    ("participations.id", "a number inside the records"),
    ("participations.person_id", "a number inside the records"),
    ("participations.hold_checked", "the worker's own; what came of it stands under /rewardHistory/countedIn"),
    ("qualifications.id", "a number inside the records"),
    ("qualifications.person_id", "a number inside the records"),
    ("qualifications.referrer_id", "whoever referred them: /referredBy"),
    ("qualifications.group_id", "a group of whoever referred them"),
    ("reward_groups.id", "a number inside the records"),
    ("reward_groups.referrer_id", "a number inside the records"),
    ("reward_groups.formed_at", "the moment of its line in /rewardHistory/ledger"),
    ("reward_groups.payout_id", "a number inside the records"),
    ("reward_ledger.id", "a number inside the records"),
    ("reward_ledger.account", "the same as /account"),
    ("reward_ledger.who", "of the operator"),
    ("payouts.id", "a number inside the records"),
    ("payouts.batch_id", "a number inside the records"),
    ("payouts.account", "the same as /account"),
    ("payout_batches.*", "of the operator"),
    ("regroupings.*", "the worker's own"),
    ("requalifications.*", "the worker's own"),
    ("campaigns.*", "of the union"),
    ("campaign_history.*", "of the operator"),
    ("demand_sheets.*", "figures without a person"),
    ("campaign_mailings.*", "how far a mailing is, without a person"),
    ("campaign_pace.*", "of the installation"),
    ("campaign_mails.*", "that a mail about a campaign is on its way; deleted once all are"),
    ("campaign_rounds.*", "of the negotiator"),
    ("campaign_offer_drafts.*", "of the negotiator"),
    ("notices.names_campaign_mail", "about the words, not about the person"),
    ("outbox.campaign_mail_id", "a number inside the records"),
    ("sign_ins.id", "a number inside the records; links and codes are made from it"),
    ("sign_ins.person_id", "a number inside the records"),
    ("sign_ins.mailbox", "derived from /email; the limits of sign-in mail are counted by it for a day"),
    ("sign_ins.browser", "a secret: a keyed hash of the browser's nonce"),
    ("sign_ins.expires_at", "ten minutes after /signIns/0/askedAt"),
    ("outbox.id", "a number inside the records; message ids are made from it"),
    ("outbox.sign_up_id", "a number inside the records"),
    ("outbox.sign_in_id", "a number inside the records; /signIns/0/mailed says that there is a mail"),
    ("outbox.recipient", "their own address, as it was typed for that sign-up"),
    ("outbox.first_attempt_at", "the worker's own"),
    ("outbox.leased_until", "the worker's own"),
    ("outbox.leased_by", "the worker's own"),
    ("outbox.lane", "the worker's own"),
    ("outbox.priority", "the worker's own"),
    ("outbox.held_suspended", "why /signUps/1/waitingMail/heldAt is set: of partners"),
    ("mailboxes.mailbox", "made from the address"),
    ("mailboxes.last_mail_id", "the worker's own"),
    ("stopped_partners.id", "a number inside the records"),
    ("stopped_partners.mailbox", "made from the address"),
    ("notices.hash", "the same as /signUps/0/notice/hash"),
    ("notices.first_shown_at", "about the words, not about the person"),
    ("referrers.person_id", "a number inside the records"),
    ("referrers.owed_cents", "of an account that was cut off by an erasure; it comes off their next reward"),
    ("referrers.rest_due", "the worker's own: the next batch looks at them; what is due stands under /rewards"),
    ("member_changes.*", "figures on their way: a source, a state and categories, without a person"),
    ("account_changes.*", "the accounts of sums on their way, for a minute"),
    ("account_sums.account", "the same as /account"),
    ("account_sums.due_cents", "a copy of /rewards/dueCents, at most a minute old"),
    ("account_sums.out_cents", "a copy of /rewards/outCents, at most a minute old"),
    ("account_sums.paid_cents", "a copy of /rewards/paidCents, at most a minute old"),
    ("account_sums.is_erased", "about accounts that are nobody's anymore"),
    ("reward_totals.*", "figures without a person"),
    ("demand.*", "figures without a person"),
    ("source_days.*", "figures of partners"),
    ("api_keys.*", "of partners"),
    ("audit.*", "of operators; a person appears as /account"),
    ("used_once.*", "names of proofs and reports, without a person"),
    ("idempotency_keys.id", "a number inside the records"),
    ("idempotency_keys.person_id", "a number inside the records"),
    ("idempotency_keys.sign_up_id", "a number inside the records"),
    ("idempotency_keys.operation", "which of the two operations was asked for"),
    ("idempotency_keys.input", "a keyed hash of what was sent, which stands under /signUps"),
    ("idempotency_keys.link", "the same as /referralLink"),
    ("idempotency_keys.joined_count", "how many members there were: of the union"),
    ("idempotency_keys.savings", "a figure of the catalog"),
    ("idempotency_keys.attributed", "the same as /signUps/0/referredBy"),
    ("idempotency_keys.closes_at", "seven days after /requests/0/askedAt"),
    ("idempotency_keys.closed_at", "when that was written down"),
    ("webhook_endpoints.*", "of partners"),
    ("partner_events.*", "what a partner learns; it stands under /requests"),
    ("webhook_deliveries.*", "on its way to a partner; what it says stands under /requests"),
    ("partner_changes.*", "of partners; nobody is in it"),
    ("partners.*", "of partners"),
    ("inbox.*", "the sandbox's; empty among live records"),
    ("installation.*", "of the installation"),
    ("readiness.*", "of the installation"),
    ("operators.*", "who runs the installation"),
    ("operator_sessions.*", "who runs the installation"),
    ("rollup.*", "of the installation"),
];

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
    for (name, _) in EXPORTED.iter().chain(REASONS) {
        let covered: Vec<_> = match name.strip_suffix('*') {
            Some(table) => all.iter().filter(|column| column.starts_with(table)).cloned().collect(),
            None => vec![(*name).to_owned()],
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
#[test]
fn an_export_holds_what_is_kept_by_its_published_schema() {
    block_on(async {
        let server = Server::start_with(&["--mail", "hold"]);
        let key = server.key();
        let referrer = join(&server, &key, "ref@example.com", None).await;
        let body = json!({
            "email": "Ana@example.com", "usState": "CA", "categories": { "travel": true }, "otherComments": "first words",
            "refCode": referrer,
        });
        let named = hyper::Request::post("/v1/invite").header("authorization", format!("Bearer {key}"));
        server.send(named.header("idempotency-key", "order-17"), body.to_string()).await.good();
        server.confirm(2).await;
        let mut ana = Browser::new(&server, 1);
        ana.sign_in("ana@example.com").await;
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
            &format!("INSERT INTO qualifications (campaign_id, person_id, qualified_at, voided_at)
                      VALUES (1, {id}, 1794743200000, 1794743200000)"),
            &format!("INSERT INTO reward_groups (referrer_id, campaign_id, state, formed_at) VALUES ({id}, 1, 'accrued', 1794743200000)"),
            "INSERT INTO reward_ledger (account, campaign_id, kind, amount_cents, at, who, why)
             VALUES ('account1', 1, 'accrual', 10000, 1794743200000, 'rules', 'group 1')",
            "INSERT INTO payout_batches (created_at, who) VALUES (1, 'op')",
            "INSERT INTO payouts (batch_id, external_id, account, campaign_id, amount_cents, group_count, state, reference, paid_at, reason, settled_at)
             VALUES (1, 'account1-1-1', 'account1', 1, 10000, 1, 'failed', 'transfer-7', 1794743200000, 'no such account', 1794743200000)",
            &format!("INSERT INTO participations (campaign_id, person_id, state, in_at, accepted_at, changed_at)
                      VALUES (1, {id}, 'in', 1794743200000, 1794743200000, 1794743200000)"),
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
        for (column, pointer) in EXPORTED {
            let value =
                export.pointer(pointer).unwrap_or_else(|| panic!("{column}: nothing at {pointer} in {export:#}"));
            assert!(!value.is_null() || elsewhere.contains(pointer), "{column}: {pointer} is null in {export:#}");
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
    });
}
