//! Rows behind one person, one partner, one mailbox and one campaign, in SQL for both engines.

use crate::prelude::*;
use unionhall::domain::campaign::acceptance::Reference;

pub(super) const ROWS: u32 = 20_000;

/// Ana is person 1 and a member, her sign-up is the first, `Acme Assistant` is partner 1, and there are the campaigns 1, which
/// gathers, and 2, which is active.
pub(super) fn fill(server: &Server) {
    let now = server.number("SELECT max(created_at) FROM people");
    let key = &server.rows("SELECT id FROM api_keys")[0][0];
    let yes = if matches!(server.records(), Records::Sqlite { .. }) { "1" } else { "TRUE" };
    let (day, later, rows) = (24 * 3_600_000, now + 30 * 24 * 3_600_000, ROWS);
    let numbers = format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})");
    let referred = "people WHERE referrer_id = 1";
    let fifth = format!("{numbers} SELECT i FROM n WHERE i % 5 = 0");
    let [long_ago, then, lately, before] = [20, 13, 3, 2].map(|days| now - days * day);
    let (yesterday, tomorrow) = (now - day, now + day);
    let reference = |n: u32| {
        let reference = Reference::from_random(&[&[0][..], &n.to_be_bytes(), &[0]].concat().try_into().unwrap());
        format!("({n}, '{}')", reference.as_str())
    };
    let references = (1..=rows).map(reference).collect::<Vec<_>>().join(", ");
    let statements = format!(
        "-- Members whom Ana referred, all by the partner's key; others at her mailbox.
         INSERT INTO people (email, email_normalized, mailbox, code, state, created_at, joined_at, referrer_id)
             {numbers} SELECT 'r' || i || '@example.com', 'r' || i || '@example.com', 'r' || i || '@example.com',
             CAST(100000000000 + i AS TEXT), 'member', {now}, {now}, 1 FROM n;
         INSERT INTO people (email, email_normalized, mailbox, code, state, created_at)
             {numbers} SELECT 'ana+' || i || '@gmail.com', 'ana+' || i || '@gmail.com', 'ana@gmail.com',
             CAST(200000000000 + i AS TEXT), 'invited', {now} FROM n;
         INSERT INTO sign_ups (person_id, key_id, partner_id, referrer_id, state, consent_version, created_at, updated_at, expires_at,
             decided_at) SELECT id, '{key}', 1, 1, 'confirmed', 1, {now}, {now}, {later}, {now} FROM {referred};
         -- Requests of Ana's that nobody confirmed, and such as the key's people declined.
         INSERT INTO sign_ups (person_id, state, consent_version, created_at, updated_at, expires_at, decided_at, purged_at)
             {numbers} SELECT 1, 'expired', 1, {now}, {now}, {now}, {now}, {now} FROM n;
         INSERT INTO sign_ups (person_id, key_id, partner_id, state, consent_version, created_at, updated_at, expires_at, decided_at,
             purged_at) SELECT id, '{key}', 1, 'declined', 1, {now}, {now}, {now}, {now}, {now} FROM people WHERE state = 'invited';
         INSERT INTO sign_ups (person_id, slot, state, consent_version, created_at, updated_at, expires_at, mailed_at)
             SELECT id, 1, 'pending', 1, {now}, {now}, {later}, {now} FROM {referred};
         -- Idempotency keys that are closed, those of confirmed sign-ups, and what the partner learned of them.
         INSERT INTO idempotency_keys (partner_id, key, operation, input, person_id, link, created_at, closes_at, closed_at)
             {numbers} SELECT 1, 'old-' || i, 'sign_up', 'x', CASE WHEN i <= 100 THEN 1 END, 'x', {long_ago}, {then}, {then} FROM n;
         INSERT INTO idempotency_keys (partner_id, key, operation, input, person_id, sign_up_id, link, created_at, closes_at,
             confirmed_at) SELECT 1, 'done-' || id, 'sign_up', 'x', person_id, id, 'x', {now}, {later}, {now}
             FROM sign_ups WHERE state = 'confirmed' AND partner_id = 1 AND id > 1;
         INSERT INTO partner_events (partner_id, idempotency_key, kind, at, position)
             {numbers} SELECT 1, 'old-' || i, 'sign_up.closed', {now}, i FROM n;
         UPDATE partners SET events_numbered = {rows};
         INSERT INTO webhook_endpoints (partner_id, url, created_at, disabled_at, notified_at) VALUES
             (1, 'https://here.example/', {now}, NULL, NULL), (1, 'https://gone.example/', {now}, {now}, {now});
         INSERT INTO webhook_deliveries (endpoint_id, event_id, send_after, attempts, delivered_at, settled_at)
             SELECT 1, id, at, 1, at, at FROM partner_events;
         INSERT INTO webhook_deliveries (endpoint_id, event_id, send_after) SELECT 2, id, at FROM partner_events;
         INSERT INTO partner_changes (partner_id, key_id, kind, at, done_at, mailed_at)
             {numbers} SELECT 1, '{key}', 'endpoint added', {lately}, {lately}, {lately} FROM n;
         -- Both campaigns, their members, and a mailing that goes on.
         INSERT INTO participations (campaign_id, person_id, state, in_at, changed_at)
             SELECT 1, id, 'in', {now}, {now} FROM {referred};
         INSERT INTO participations (campaign_id, person_id, state, in_at, accepted_at, changed_at)
             SELECT 2, id, 'accepted', {now}, {now}, {now} FROM {referred};
         -- Its demand day by day, and what the negotiator did, as far as it may.
         INSERT INTO demand_sheets (campaign_id, day, taken_at, sheet)
             {numbers} SELECT 1 + i % 2, i, {now}, '{{\"in\":5,\"accepted\":0,\"byState\":[],\"inOtherStates\":5,\"byCategory\":[],\"inOtherCategories\":0}}'
             FROM n WHERE i < 2000;
         INSERT INTO campaign_rounds (campaign_id, at, client, supplier, asked, answered)
             {numbers} SELECT 1 + i % 2, {now}, 'x', 'x', 'x', 'x' FROM n WHERE i <= 1000;
         INSERT INTO campaign_offer_drafts (campaign_id, at, client, offer)
             {numbers} SELECT 1 + i % 2, {now}, 'x', 'x' FROM n WHERE i <= 1000;
         INSERT INTO campaign_mailings (campaign_id, kind, started_at) VALUES (1, 'campaign_opened', {now});
         INSERT INTO campaign_mails (campaign_id, kind, person_id, queued_at)
             SELECT 1, 'campaign_opened', id, {now} FROM {referred};
         INSERT INTO campaign_mails (campaign_id, kind, person_id, queued_at)
             SELECT 2, 'campaign_opened', id, {now} FROM {referred};
         -- Mail: held, waiting for later, and failed for good; and what is kept of mailboxes.
         INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after, held_at, priority)
             SELECT s.id, 'confirm', p.email, {now}, {now}, {now}, 0 FROM sign_ups s JOIN people p ON p.id = s.person_id
             WHERE s.state = 'pending';
         INSERT INTO sign_ins (person_id, browser, mailed, mailbox, created_at, expires_at)
             {numbers} SELECT 1, 'b' || i, {yes}, 'ana@gmail.com', {before}, {yesterday} FROM n WHERE i <= 100;
         INSERT INTO sign_ins (person_id, browser, mailed, mailbox, created_at, expires_at)
             SELECT id, 'c' || id, {yes}, mailbox, {now}, {later} FROM {referred};
         INSERT INTO outbox (sign_in_id, kind, recipient, created_at, send_after, given_up_at)
             SELECT id, 'sign_in', mailbox, {now}, {tomorrow}, CASE WHEN id % 2 = 0 THEN {now} END FROM sign_ins WHERE person_id > 1;
         INSERT INTO outbox (campaign_mail_id, kind, recipient, created_at, send_after)
             SELECT q.id, 'campaign_opened', p.email, {now}, {tomorrow} FROM campaign_mails q JOIN people p ON p.id = q.person_id
             WHERE q.campaign_id = 1;
         INSERT INTO mailboxes (mailbox, sent_1) SELECT mailbox, {now} FROM {referred};
         INSERT INTO stopped_partners (mailbox, partner_id, stopped_at) SELECT mailbox, 1, {now} FROM {referred};
         INSERT INTO used_once (name, ends_at) {numbers} SELECT 'proof ' || i, {later} FROM n;
         -- Money: groups that are due and such as were paid.
         UPDATE people SET account = 'aaaaaaaaaaaaaaaa' WHERE id = 1;
         INSERT INTO payout_batches (created_at, who, filled_at, closed_at, written_at) VALUES ({now}, 'ana', {now}, {now}, {now});
         INSERT INTO payouts (batch_id, external_id, account, campaign_id, amount_cents, group_count, state, paid_at)
             {numbers} SELECT 1, 'x' || i, CASE WHEN i <= 20 THEN 'aaaaaaaaaaaaaaaa' ELSE 'a' || i END, 2, 100, 1, 'paid', {now} FROM n;
         INSERT INTO payout_batches (created_at, who, filled_at, closed_at, written_at) VALUES ({now}, 'ana', {now}, {now}, {now});
         INSERT INTO payouts (batch_id, external_id, account, campaign_id, amount_cents, group_count, state)
             {numbers} SELECT 2, 'y' || i, 'b' || i, 2, 100, 1, 'out' FROM n;
         INSERT INTO reward_groups (referrer_id, campaign_id, state, formed_at, payout_id)
             SELECT CASE WHEN i % 100 = 0 THEN 1 ELSE i END, 2, CASE WHEN i % 10 = 0 THEN 'accrued' ELSE 'capped' END, 1, CASE WHEN i % 10 = 0 THEN i END FROM ({fifth}) f;
         INSERT INTO qualifications (campaign_id, person_id, referrer_id, qualified_at, group_id)
             SELECT 2, id, 1, {now}, 1 + id % 4000 FROM {referred};
         UPDATE qualifications SET ended_on = {now}, ended_why = 'passed' WHERE person_id % 10 = 0;
         -- What members accepted: a third of them no more, half handed over, some answered.
         INSERT INTO handover_batches (campaign_id, number, created_at, who, filled_at, closed_at, written_at)
             {numbers} SELECT 2, i, {now}, 'ana', {now}, {now}, {now} FROM n WHERE i <= 100;
         INSERT INTO acceptances (campaign_id, person_id, reference, notice, handover, offer_number, made_at, accepted_at, ended_at, ended_why,
                 batch_id, withdrawn_batch_id, status, status_on, trouble_at)
             SELECT 2, p.id, v.column2, '', 'code', 0, {now}, {now}, CASE WHEN p.id % 3 = 0 THEN {now} END,
                 CASE WHEN p.id % 3 = 0 THEN 'passed' END, CASE WHEN p.id % 2 = 0 THEN 1 + p.id % 100 END,
                 CASE WHEN p.id % 12 = 0 THEN 1 + p.id % 100 END, CASE WHEN p.id % 5 = 0 THEN 'switched' END,
                 CASE WHEN p.id % 5 = 0 THEN 20000 END, CASE WHEN p.id % 7 = 0 THEN {now} END
             FROM (VALUES {references}) v JOIN people p ON p.code = CAST(100000000000 + v.column1 AS TEXT);
         INSERT INTO reward_ledger (account, campaign_id, kind, amount_cents, at, who, why)
             {numbers} SELECT CASE WHEN i <= 20 THEN 'aaaaaaaaaaaaaaaa' ELSE 'a' || i END, 2, 'accrual', 100, {now}, 'x', 'x' FROM n;
         INSERT INTO account_sums VALUES ('aaaaaaaaaaaaaaaa', 100, 0, 100, {yes});
         INSERT INTO referrers (person_id, members, rewarded_groups) VALUES (1, {rows}, {rows});
         -- The log, and the roll-up: it has seen all of this.
         INSERT INTO audit (at, who, command, about) {numbers} SELECT {now}, 'x', 'keys issue', 'key ' || i FROM n;
         UPDATE rollup SET sign_up_id = (SELECT max(id) FROM sign_ups), referred_members = {rows};
         UPDATE installation SET member_count = {rows} + 1"
    );
    statements.split(";\n").for_each(|statement| server.execute(statement));
}
