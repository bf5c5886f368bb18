//! The members and partners whose requests are measured, and the tables around them: as full as the number of people makes them.

use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use unionhall::domain::secret::Secret;
use unionhall::domain::secret::session::{Nonce, SessionMaker, SignedInBy};
use unionhall::domain::secret::token::{Purpose, TokenMaker};
use unionhall::domain::sign_in::{SignInId, SignInRef};
use unionhall::domain::sign_up::{SignUpId, SignUpRef};
use unionhall::domain::time::Timestamp;

use crate::load::{CONNECTIONS, Load, Numbers, Pace, Request, Target, shuffled};
use crate::people::{self, EXPIRES_AT, FEW, INVITED_EVERY, JOINED_AT};
use crate::records::Place;
use crate::server::Server;
use crate::targets::{SECRET, target};

/// Members who visit: as many as the smallest records have, spread over all.
pub(super) const MEMBERS: usize = 9000;

/// Sign-ups that partners sent with an idempotency key, and ask about.
const SIGN_UPS: usize = 4000;

/// The most links that are opened in a turn; each works once.
const LINKS_A_TURN: u64 = 10_000;

/// The most people who sign up, and who confirm, in a turn: each does so once.
const JOINING_A_TURN: usize = 3000;

/// The campaigns that members are counted in, and whose offer they accept.
pub(super) const GATHERING: &str = "internet-2099";
pub(super) const OFFERED: &str = "internet-2098";

pub(super) struct Crowd {
    members: Vec<Member>,
    /// Paths of links that are open.
    links: Vec<String>,
    /// Paths that confirm a sign-up.
    clicks: Vec<String>,
    /// How many sign up for the first time.
    newcomers: usize,
    keys: Vec<String>,
}

struct Member {
    email: String,
    /// The headers of their own address and session.
    address: String,
    session: String,
    /// What their forms carry.
    token: String,
}

/// The tables as the number of people makes them: campaigns with a quarter of all people in them, requests to sign in, idempotency
/// keys for every other person, events that were delivered, and rewards that were paid. `$…` stand for times, addresses and the number of people. The demand is counted already: each
/// day's count takes a fifth of a processor for a while, which section `campaigns` measures.
const FILL: &str = r#"
    INSERT INTO campaigns (slug, definition, state, gather_until, offer, decide_by, created_at) VALUES
        ('internet-2099', $definition1, 'gathering', 47481, NULL, NULL, 0),
        ('internet-2098', $definition2, 'offered', 19630, $offer, 47481, 0),
        ('internet-2097', $definition3, 'gathering', 47481, NULL, NULL, 0);
    INSERT INTO campaign_history (campaign_id, at, who, from_state, to_state, note)
        SELECT id, 0, 'bench', 'draft', 'gathering', '' FROM campaigns;
    INSERT INTO participations (campaign_id, person_id, state, in_at, changed_at)
        SELECT c.id, p.id, 'in', $joined, $joined FROM campaigns c, people p
        WHERE p.id % 4 = 3 AND (p.session IS NULL OR c.slug = 'internet-2097');
    INSERT INTO demand_sheets (campaign_id, day, taken_at, sheet)
        SELECT id, 47481, $now, '{"in":5,"accepted":0,"byState":[],"inOtherStates":5,"byCategory":[],"inOtherCategories":0}' FROM campaigns;
    UPDATE people SET wanted_mail = 'campaign_opened' WHERE id > $people / 2 AND id <= $people / 2 + 3000;
    INSERT INTO sign_ins (person_id, browser, mailed, mailbox, created_at, expires_at)
        SELECT id, 'old ' || id, TRUE, mailbox, $joined, $expires FROM people WHERE id % 10 = 2;
    INSERT INTO idempotency_keys (partner_id, key, operation, input, person_id, sign_up_id, link, created_at, closes_at)
        SELECT partner_id, 'old-' || id, 'sign_up', '', person_id, id, '', $now, $week FROM sign_ups WHERE person_id % 2 = 1;
    INSERT INTO webhook_endpoints (partner_id, url, created_at) SELECT id, '$hook', 0 FROM partners;
    INSERT INTO partner_events (partner_id, idempotency_key, kind, at, position)
        SELECT partner_id, key, 'sign_up.confirmed', $now, id FROM idempotency_keys WHERE person_id % 8 = 1;
    INSERT INTO webhook_deliveries (endpoint_id, event_id, send_after, attempts, last_attempt_at, last_status, delivered_at, settled_at)
        SELECT e.id, v.id, $now, 1, $now, 200, $now, $now
        FROM partner_events v JOIN webhook_endpoints e ON e.partner_id = v.partner_id;
    INSERT INTO qualifications (campaign_id, person_id, referrer_id, qualified_at, group_id)
        SELECT c.id, p.id, p.id - 2, $joined, 1 + p.id / 20 FROM campaigns c, people p WHERE c.slug = 'internet-2098' AND p.id % 4 = 3;
    INSERT INTO payout_batches (created_at, who, filled_at, closed_at, written_at) VALUES ($joined, 'bench', $joined, $joined, $joined);
    INSERT INTO payouts (batch_id, external_id, account, campaign_id, amount_cents, group_count, state, paid_at)
        SELECT b.id, 'paid' || p.id, 'paid' || p.id, c.id, 10000, 1, 'paid', $joined
        FROM payout_batches b, campaigns c, people p WHERE c.slug = 'internet-2098' AND p.id % 20 = 1;
    INSERT INTO reward_groups (referrer_id, campaign_id, state, formed_at, payout_id)
        SELECT p.id, c.id, 'accrued', $joined, 1 + p.id / 20 FROM campaigns c, people p WHERE c.slug = 'internet-2098' AND p.id % 20 = 1;
    INSERT INTO reward_ledger (account, campaign_id, kind, amount_cents, at, who, why)
        SELECT account, campaign_id, 'accrual', 10000, $joined, 'rules', '' FROM payouts;
    INSERT INTO reward_ledger (account, campaign_id, kind, amount_cents, at, who, why)
        SELECT account, campaign_id, 'payout', -10000, $joined, 'bench', '' FROM payouts;
    UPDATE partners SET events_numbered = $people;
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $joining)
        INSERT INTO people (email, email_normalized, mailbox, code, state, created_at)
        SELECT 'q' || i || '@example.net', 'q' || i || '@example.net', 'q' || i || '@example.net',
            CAST(990000000000 + i AS TEXT), 'invited', $now FROM n;
    INSERT INTO sign_ups (person_id, key_id, partner_id, state, us_state, categories, consent_version, created_at, updated_at, expires_at, mailed_at)
        SELECT p.id, 'benchkey', b.id, 'pending', 'CA', 'internet', 1, $now, $now, $expires, $now
        FROM people p, partners b WHERE p.created_at = $now AND b.name = 'Bench';
    INSERT INTO idempotency_keys (partner_id, key, operation, input, person_id, sign_up_id, link, created_at, closes_at)
        SELECT partner_id, 'open-' || id, 'sign_up', '', person_id, id, '', $now, $week FROM sign_ups WHERE created_at = $now"#;

const DEFINITION: &str = r#"'slug = "$slug"
category = "internet"
gather_until = 2099-12-31
[text.en]
title = "Home internet"
summary = "Less."
[text.es]
title = "Internet"
summary = "Menos."
'"#;

const OFFER: &str = r#"'{"number":1,"units":1,"uses_a_year":null,
 "bid":{"supplier":"Example Fiber","steps":[{"from_month":1,"price":{"cents":4800,"per":"month"}}],"fees":[],"term_months":12,
  "exit_fee_cents":0,"states":[],"new_customers_only":false,"needs_members":null,"valid_until":"2099-12-31","commission_cents":2500,
  "evidence":null},
 "benchmark":{"price":{"cents":6800,"per":"month"},"source":"survey","url":"https://survey.example","date":"2023-09-01"},
 "decide_by":"2099-12-31","open_until":null,"complaints":"help@fiber.example","text":{"en":{},"es":{}}}'"#;

impl Crowd {
    /// Fills the records of a place, and prepares who visits it.
    pub(super) fn gather(place: &Place<'_>, rounds: usize, receiver: &Server) -> anyhow::Result<Self> {
        let secret = Secret::new(SECRET.1)?;
        let (sessions, tokens) = (SessionMaker::new(&secret), TokenMaker::new(&secret));
        let ends_at = Timestamp::from_millis(EXPIRES_AT);
        let (mut members, mut nonces) = (Vec::new(), Vec::new());
        for (n, id) in ids(place.people).into_iter().enumerate() {
            let nonce =
                Nonce::from_random(&(id as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_be_bytes());
            nonces.push(format!("({id}, '{}')", nonce.as_str()));
            let [a, b, c, d] = (n as u32 | 10 << 24).to_be_bytes();
            members.push(Member {
                email: people::address(&format!("{:012}", shuffled(id))),
                address: format!("x-forwarded-for: {a}.{b}.{c}.{d}\r\n"),
                session: format!("cookie: union={}\r\n", sessions.cookie(&nonce, ends_at, SignedInBy::Mail)),
                token: sessions.csrf_token(&nonce),
            });
        }
        let now = now()?;
        let hook = format!("http://{}/hook", receiver.address);
        let mut fill = FILL.replace("$offer", OFFER);
        for (name, slug) in [("$definition1", GATHERING), ("$definition2", OFFERED), ("$definition3", "internet-2097")]
        {
            fill = fill.replace(name, &DEFINITION.replace("$slug", slug));
        }
        // Each connection is served once before a turn counts.
        let joining = rounds * (JOINING_A_TURN + CONNECTIONS);
        let week = now + 7 * 24 * 3_600_000;
        for (name, value) in [
            ("$joining", joining.to_string()),
            ("$joined", JOINED_AT.to_string()),
            ("$expires", EXPIRES_AT.to_string()),
            ("$now", now.to_string()),
            ("$week", week.to_string()),
            ("$people", place.people.to_string()),
            ("$hook", hook),
        ] {
            fill = fill.replace(name, &value);
        }
        let mut statements = format!(
            "WITH nonces (id, nonce) AS (VALUES {}) UPDATE people SET session = nonce FROM nonces WHERE people.id = nonces.id; {fill}",
            nonces.join(", ")
        );
        let links = rounds * (LINKS_A_TURN as usize + CONNECTIONS);
        for _ in 0..links.div_ceil(MEMBERS) {
            statements.push_str(&format!(
                ";INSERT INTO sign_ins (person_id, browser, mailed, created_at, expires_at)
                  SELECT id, 'link ' || id, TRUE, {now}, {EXPIRES_AT} FROM people WHERE session IS NOT NULL"
            ));
        }
        place.records.write(&statements).context("the tables are not as the bench knows them")?;
        place.records.settle()?;
        // In the order of the ids, whose people are in no order on the disk: each round of members walks all of the records.
        let open = format!("SELECT id FROM sign_ins WHERE created_at = {now} ORDER BY id");
        let link = |id: i64| {
            let sign_in = SignInRef { id: SignInId(id), created_at: Timestamp::from_millis(now) };
            format!("/me/enter/{}", tokens.sign_in_token(sign_in))
        };
        let links = place.records.numbers(&open)?.into_iter().map(link).collect();
        let click = |id: i64| {
            let sign_up = SignUpRef { id: SignUpId(id), created_at: Timestamp::from_millis(now) };
            format!("/confirm/{}", tokens.token(Purpose::Confirm, sign_up))
        };
        let open = format!("SELECT id FROM sign_ups WHERE created_at = {now} ORDER BY id");
        let clicks = place.records.numbers(&open)?.into_iter().map(click).collect();
        Ok(Self { members, links, clicks, newcomers: joining, keys: place.installation.keys.clone() })
    }

    pub(super) fn ask(&self) -> Vec<Request> {
        let ask = |member: &Member| {
            Request::form("/me/sign-in", &member.address, &format!("email={}", member.email.replace('@', "%40")))
        };
        self.members.iter().map(ask).collect()
    }

    pub(super) fn enter(&self) -> Vec<Request> {
        let enter = |(n, path): (usize, &String)| Request::form(path, &self.members[n % MEMBERS].address, "");
        self.links.iter().enumerate().map(enter).collect()
    }

    pub(super) fn own_page(&self) -> Vec<Request> {
        let look = |member: &Member| Request::get_with("/me", &[&*member.address, &member.session].concat());
        self.members.iter().map(look).collect()
    }

    /// Everybody presses the first button, then everybody the second: each press changes something.
    pub(super) fn press(&self, slug: &str, buttons: [&str; 2]) -> Vec<Request> {
        let path = format!("/campaigns/{slug}");
        let press = |button: &str, member: &Member| {
            let headers = [&*member.address, &member.session].concat();
            Request::form(&path, &headers, &format!("token={}&press={button}", member.token))
        };
        buttons.iter().flat_map(|button| self.members.iter().map(move |member| press(button, member))).collect()
    }

    /// Sign-ups, each with its idempotency key.
    pub(super) fn sign_up(&self) -> Vec<Request> {
        (0..SIGN_UPS).map(|n| self.sign_up_of("bench", n)).collect()
    }

    /// The same of people whom nobody knows yet.
    pub(super) fn newcomers(&self) -> Vec<Request> {
        (0..self.newcomers).map(|n| self.sign_up_of("new", n)).collect()
    }

    fn sign_up_of(&self, who: &str, n: usize) -> Request {
        let body = format!("{{\"email\":\"{who}{:012}@example.com\",\"usState\":\"CA\"}}", shuffled(n as u64));
        Request::post("/v1/invite", &format!("idempotency-key: {who}-{n}\r\n{}", self.bearer(n)), &body)
    }

    pub(super) fn confirm(&self) -> Vec<Request> {
        let click = |(n, path): (usize, &String)| Request::form(path, &self.members[n % MEMBERS].address, "");
        self.clicks.iter().enumerate().map(click).collect()
    }

    /// The same once, for all that follows are replays.
    pub(super) fn sign_up_first(&self, server: &Server) -> anyhow::Result<()> {
        let first = Target { numbers: Numbers::EachOnce, ..target(server, self.sign_up()) };
        let outcome = Load::connect(&first, CONNECTIONS)?.run(Pace::Count(SIGN_UPS as u64))?;
        match outcome.first_error {
            Some(error) => bail!("a sign-up with an idempotency key: {error}"),
            None => Ok(()),
        }
    }

    pub(super) fn status(&self) -> Vec<Request> {
        let ask = |n: usize| Request::get_with(&format!("/partner/v1/sign-ups/bench-{n}"), &self.bearer(n));
        (0..SIGN_UPS).map(ask).collect()
    }

    fn bearer(&self, n: usize) -> String {
        format!("authorization: Bearer {}\r\n", self.keys[n % self.keys.len()])
    }
}

/// Members who visit, in no order.
fn ids(people: u64) -> Vec<u64> {
    let apart = people / FEW;
    // Between two that are `apart` each has a place of its own, where nobody is only invited.
    let id = |n: u64| if apart == 1 { n } else { n * apart - apart + 1 + n % (INVITED_EVERY - 1) };
    let mut ids: Vec<u64> = (1..=FEW).map(id).filter(|id| !id.is_multiple_of(INVITED_EVERY)).collect();
    ids.sort_by_key(|id| shuffled(*id));
    ids.truncate(MEMBERS);
    ids
}

/// The time of the records, in milliseconds.
pub(super) fn now() -> anyhow::Result<i64> {
    let since: Duration = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(i64::try_from(since.as_millis())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::MANY;

    #[test]
    fn as_many_members_visit_at_each_size_and_each_is_one() {
        for people in [FEW, MANY] {
            let ids = ids(people);
            let distinct: std::collections::HashSet<_> = ids.iter().collect();
            assert_eq!(distinct.len(), MEMBERS);
            assert!(ids.iter().all(|id| (1..=people).contains(id) && id % INVITED_EVERY != 0), "{people}");
        }
    }
}
