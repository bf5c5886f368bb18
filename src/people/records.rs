//! People as the operator asks about them: one person with everything, a search, and all people page by page.

use std::sync::LazyLock;

use crate::campaigns::participation::participations_of;
use crate::domain::campaign::acceptance::Reference;
use crate::domain::language::Language;
use crate::domain::mail::budget::day_of;
use crate::domain::mail::choices::KeptChoices;
use crate::domain::person::{
    AccountId, ActivityPage, ActivityPlace, KeptEvidence, KeptNotice, MailboxStanding, PersonDetails, PersonRecord,
    PersonState, Referrals, RequestEntry, SignInEntry, SignUpEntry, StoppedPartner,
};
use crate::domain::reward::ledger::RewardHistory;
use crate::domain::sign_up::{Channel, SignUpId, SignUpState, SignUpsOf};
use crate::domain::time::Timestamp;
use crate::mail::outbox::mailbox::{mailbox_columns, mailbox_record};
use crate::mail::outbox::{waiting, waiting_columns};
use crate::mail::sources::source_name;
use crate::membership::count::people_of;
use crate::membership::records::{answer_now, joined_by, state_at};
use crate::membership::sign_up::{answers, each_answer};
use crate::people::leave::name_account;
use crate::rewards::standing::standing_of;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// A person, as [`person`] reads them: with the sign-up that they joined with, while they are a member.
macro_rules! people {
    ($which:literal) => {{
        static PEOPLE: LazyLock<String> = LazyLock::new(|| {
            let (answers, source, joined_by) = (each_answer(answer_now!("{}")), source_name!("s.partner_id"), joined_by!());
            format!(
                "SELECT p.id, p.email, p.state, p.code, p.account, p.created_at, p.joined_at, p.left_at, p.erased_at,
                     (SELECT r.code FROM people r WHERE r.id = p.referrer_id) AS referrer,
                     coalesce((SELECT f.members FROM referrers f WHERE f.person_id = p.id), 0) AS referred,
                     p.undeliverable_until, p.soft_bounces, {answers}, CASE WHEN s.id IS NOT NULL THEN {source} END AS source,
                     p.answered_at, p.unwanted_mail, p.wanted_mail,
                     EXISTS (SELECT 1 FROM notices n WHERE n.hash = s.notice AND n.names_campaign_mail) AS is_told,
                     p.uncredited, p.language
                 FROM people p {joined_by} WHERE {}",
                $which
            )
        });
        PEOPLE.as_str()
    }};
}

/// A sign-up, as [`entry`] reads it at the time `$2`.
macro_rules! entries {
    ($which:literal) => {{
        static ENTRIES: LazyLock<String> = LazyLock::new(|| {
            let (answers, waiting) = (each_answer("s.{}"), waiting_columns!());
            let (source, state) = (source_name!("s.partner_id"), state_at!("$2"));
            format!(
                "SELECT s.id, p.email, {source} AS source, s.key_id, {state} AS state, {answers},
                     (SELECT r.code FROM people r WHERE r.id = s.referrer_id) AS referrer,
                     s.disposable, s.created_at, s.updated_at, s.expires_at, s.decided_at, s.channel, s.client, s.notice,
                     (SELECT n.text FROM notices n WHERE n.hash = s.notice) AS notice_text, s.mailed_at, s.decided_how,
                     s.language, {waiting}
                 FROM sign_ups s JOIN people p ON p.id = s.person_id LEFT JOIN outbox o ON o.sign_up_id = s.id WHERE {}",
                $which
            )
        });
        ENTRIES.as_str()
    }};
}

/// What is stored about the person with that normalized address; [`ListActivity`] reads their related records.
pub struct FindPerson(pub String, pub Timestamp);

impl Unit for FindPerson {
    type Done = Option<PersonDetails>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Some(person) = find_id(sql, &self.0).await? else { return Ok(None) };
        file_of(sql, person, self.1).await
    }
}

/// The same with their last sign-ups.
pub struct FindPersonBriefly(pub String, pub Timestamp);

impl Unit for FindPersonBriefly {
    type Done = Option<PersonDetails>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Some(person) = find_id(sql, &self.0).await? else { return Ok(None) };
        brief_file_of(sql, person, self.1).await
    }
}

async fn find_id(sql: &mut dyn Sql, email_normalized: &str) -> Result<Option<i64>, Failure> {
    sql.value("SELECT id FROM people WHERE email_normalized = $1", values![email_normalized]).await
}

/// Gives the person with that normalized address a name for the audit log, unless they have one, and tells the log; false if no
/// one has the address.
pub struct NamePerson(pub String, pub AccountId);

impl Unit for NamePerson {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(email_normalized, account) = self;
        let find = "SELECT id FROM people WHERE email_normalized = $1 AND erased_at IS NULL FOR UPDATE";
        let Some(person) = sql.value(find, values![email_normalized]).await? else { return Ok(false) };
        name_account(sql, person, account).await?;
        Ok(true)
    }
}

/// People whose address begins with a text, or whose code, account or reference equals it, in the order of their addresses.
pub struct FindPeople(pub String, pub u32);

impl Unit for FindPeople {
    type Done = Vec<PersonRecord>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self(text, most) = self;
        let exact = people!("(p.code = $1 OR p.account = $1) AND p.erased_at IS NULL ORDER BY p.id LIMIT $2");
        let mut found = sql.rows(exact, values![text, *most], person).await?;
        if let Some(reference) = Reference::parse(text) {
            let accepted = people!(
                "p.id = (SELECT a.person_id FROM acceptances a WHERE a.reference = $1) AND p.erased_at IS NULL"
            );
            found.extend(sql.rows(accepted, values![reference.as_str()], person).await?);
        }
        // The upper bound: the text and the highest character of all.
        let end = format!("{text}\u{10ffff}");
        let begins = people!(
            "p.email_normalized >= $1 AND p.email_normalized < $2 AND p.erased_at IS NULL
                              ORDER BY p.email_normalized LIMIT $3"
        );
        found.extend(sql.rows(begins, values![text, &end, *most], person).await?);
        Ok(found)
    }
}

/// The people after an id, in the order of ids; those in one state, or all.
pub struct ListPeopleAfter {
    pub id: i64,
    pub state: Option<PersonState>,
    pub most: u32,
}

impl Unit for ListPeopleAfter {
    type Done = Vec<PersonRecord>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let after = people!("p.id > $1 AND p.erased_at IS NULL AND ($2 = '' OR p.state = $2) ORDER BY p.id LIMIT $3");
        sql.rows(after, values![self.id, self.state.map_or("", PersonState::name), self.most], person).await
    }
}

/// The sign-ups of a key, a partner or the form, newest first, before an id.
pub struct ListSignUpsOf {
    pub whose: SignUpsOf,
    pub before: SignUpId,
    pub now: Timestamp,
    pub most: u32,
}

impl Unit for ListSignUpsOf {
    type Done = Vec<SignUpEntry>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<SignUpEntry>, Failure> {
        let Self { whose, before, now, most } = self;
        let (key, partner) = whose.columns();
        let whose =
            entries!("(s.key_id = $1 OR coalesce(s.partner_id, 0) = $5) AND s.id < $3 ORDER BY s.id DESC LIMIT $4");
        sql.rows(whose, values![key, *now, before.0, *most, partner], entry).await
    }
}

/// What is stored about a person, without related records.
async fn file_of(sql: &mut dyn Sql, id: i64, now: Timestamp) -> Result<Option<PersonDetails>, Failure> {
    let Some(person) = sql.row(people!("p.id = $1"), values![id], person).await? else { return Ok(None) };
    let more =
        "SELECT mailbox, CASE WHEN wrong_codes_day = $2 THEN wrong_codes ELSE 0 END AS today FROM people WHERE id = $1";
    let more =
        sql.row(more, values![id, day_of(now)], |row| Ok((row.get::<String>("mailbox")?, row.get("today")?))).await?;
    let (mailbox, wrong_codes) = more.unwrap_or_default();
    let mailbox = standing(sql, &mailbox).await?;
    let referrals = referrals(sql, &person).await?;
    let participations = participations_of(sql, id).await?;
    let rewards = standing_of(sql, id, person.account.as_ref()).await?;
    Ok(Some(PersonDetails {
        person,
        mailbox,
        sign_ups: Vec::new(),
        referrals,
        participations,
        rewards,
        reward_history: RewardHistory::default(),
        sign_ins: Vec::new(),
        requests: Vec::new(),
        wrong_codes,
    }))
}

/// The same with their last sign-ups, a bounded part of their related records.
pub(crate) async fn brief_file_of(
    sql: &mut dyn Sql,
    id: i64,
    now: Timestamp,
) -> Result<Option<PersonDetails>, Failure> {
    let Some(mut file) = file_of(sql, id, now).await? else { return Ok(None) };
    file.sign_ups = last_sign_ups(sql, &file.person, now).await?;
    Ok(Some(file))
}

/// The results of a person's link; past the first thousand, from the stored figures.
async fn referrals(sql: &mut dyn Sql, person: &PersonRecord) -> Result<Referrals, Failure> {
    // Credited people may have signed up long ago.
    let count = "
        SELECT (SELECT count(*) FROM
                    (SELECT person_id FROM (SELECT person_id FROM sign_ups WHERE referrer_id = $1 LIMIT $2) named
                     UNION SELECT id FROM (SELECT id FROM people WHERE referrer_id = $1 LIMIT $2) credited) referred) AS signed_up,
               looked_at, members
        FROM (SELECT count(*) AS looked_at, CAST(coalesce(sum(CASE WHEN state = 'member' THEN 1 ELSE 0 END), 0) AS BIGINT) AS members
              FROM (SELECT state FROM people WHERE referrer_id = $1 LIMIT $2) credited) counted";
    let most = u64::from(Referrals::MOST_COUNTED);
    let read = |row: &Row<'_>| {
        let (signed_up, counted) = (row.get::<u64>("signed_up")?, row.get::<u64>("members")?);
        let members = if row.get::<u64>("looked_at")? < most { counted } else { counted.max(person.referred) };
        Ok(Referrals { signed_up: signed_up.min(most), members })
    };
    Ok(sql.row(count, values![person.id, Referrals::MOST_COUNTED], read).await?.unwrap_or_default())
}

const ACTIVITY_PAGE: u32 = 100;

/// A person's last sign-ups, oldest first, and before them the one that they joined with, however old.
async fn last_sign_ups(sql: &mut dyn Sql, person: &PersonRecord, now: Timestamp) -> Result<Vec<SignUpEntry>, Failure> {
    let last = entries!("s.person_id = $1 ORDER BY s.id DESC LIMIT $3");
    let mut found = sql.rows(last, values![person.id, now, PersonDetails::LAST_SIGN_UPS], entry).await?;
    found.reverse();
    let joined_by = entries!("s.person_id = $1 AND s.state = 'confirmed' AND s.decided_at = $3 AND s.id < $4");
    let first = found.first().map_or(0, |entry| entry.id.0);
    if let Some(joined_by) = sql.row(joined_by, values![person.id, now, person.joined_at, first], entry).await? {
        found.insert(0, joined_by);
    }
    Ok(found)
}

pub struct ListActivity {
    pub person: i64,
    pub after: ActivityPlace,
    pub now: Timestamp,
}

impl Unit for ListActivity {
    type Done = ActivityPage;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<ActivityPage, Failure> {
        let (person, after) = (self.person, self.after);
        let mut last = after;
        let sign_ups = entries!("s.person_id = $1 AND s.id > $3 ORDER BY s.id LIMIT $4");
        let sign_ups = sql.rows(sign_ups, values![person, self.now, after.sign_up, ACTIVITY_PAGE], entry).await?;
        last.sign_up = sign_ups.last().map_or(last.sign_up, |entry| entry.id.0);
        let sign_ins = "SELECT id, created_at, mailed, tries, used_at FROM sign_ins
                        WHERE person_id = $1 AND id > $2 ORDER BY id LIMIT $3";
        let read = |row: &Row<'_>| {
            last.sign_in = row.get("id")?;
            let (asked_at, used_at) = (row.get("created_at")?, row.get("used_at")?);
            Ok(SignInEntry { asked_at, mailed: row.get("mailed")?, tries: row.get("tries")?, used_at })
        };
        let sign_ins = sql.rows(sign_ins, values![person, after.sign_in, ACTIVITY_PAGE], read).await?;
        let requests = "SELECT p.name, k.key, k.created_at, k.confirmed_at, k.partner_id, k.id
                        FROM idempotency_keys k JOIN partners p ON p.id = k.partner_id
                        WHERE k.person_id = $1 AND (k.partner_id, k.created_at, k.id) > ($2, $3, $4)
                        ORDER BY k.partner_id, k.created_at, k.id LIMIT $5";
        let read = |row: &Row<'_>| {
            last.request = (row.get("partner_id")?, row.get("created_at")?, row.get("id")?);
            let (asked_at, confirmed_at) = (row.get("created_at")?, row.get("confirmed_at")?);
            Ok(RequestEntry { partner: row.get("name")?, name: row.get("key")?, asked_at, confirmed_at })
        };
        let (partner, at, id) = after.request;
        let requests = sql.rows(requests, values![person, partner, at, id, ACTIVITY_PAGE], read).await?;
        let full = ACTIVITY_PAGE as usize;
        let next = (sign_ups.len() == full || sign_ins.len() == full || requests.len() == full).then_some(last);
        Ok(ActivityPage { sign_ups, sign_ins, requests, next })
    }
}

fn person(row: &Row<'_>) -> Result<PersonRecord, Failure> {
    Ok(PersonRecord {
        id: row.get("id")?,
        email: row.get("email")?,
        state: row.parsed("state", PersonState::from_name)?,
        code: row.get("code")?,
        account: row.get::<Option<&str>>("account")?.map(AccountId::kept),
        created_at: row.get("created_at")?,
        joined_at: row.get("joined_at")?,
        left_at: row.get("left_at")?,
        erased_at: row.get("erased_at")?,
        referrer: row.get("referrer")?,
        referred: row.get("referred")?,
        undeliverable_until: row.get("undeliverable_until")?,
        soft_bounces: row.get("soft_bounces")?,
        answers: answers(row)?,
        source: row.get("source")?,
        answered_at: row.get("answered_at")?,
        mail_choices: KeptChoices { unwanted: row.get("unwanted_mail")?, wanted: row.get("wanted_mail")? }
            .read(row.get("is_told")?),
        uncredited: row.get("uncredited")?,
        language: row.get::<Option<&str>>("language")?.and_then(Language::from_code),
    })
}

fn entry(row: &Row<'_>) -> Result<SignUpEntry, Failure> {
    let mail = row.get::<Option<i64>>("mail_id")?.map(|_| waiting(row)).transpose()?;
    Ok(SignUpEntry {
        id: SignUpId(row.get("id")?),
        email: row.get("email")?,
        source: row.get("source")?,
        key: row.get("key_id")?,
        state: row.parsed("state", SignUpState::from_name)?,
        answers: answers(row)?,
        referrer: row.get("referrer")?,
        disposable: row.get("disposable")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        expires_at: row.get("expires_at")?,
        decided_at: row.get("decided_at")?,
        mail,
        evidence: KeptEvidence {
            channel: row.get::<Option<&str>>("channel")?.and_then(Channel::from_name),
            client: row.get("client")?,
            notice: match row.get("notice")? {
                Some(hash) => Some(KeptNotice { hash, words: row.get("notice_text")? }),
                None => None,
            },
            mailed_at: row.get("mailed_at")?,
            decided_how: row.get("decided_how")?,
            language: row.get::<Option<&str>>("language")?.and_then(Language::from_code),
        },
    })
}

async fn standing(sql: &mut dyn Sql, mailbox: &str) -> Result<MailboxStanding, Failure> {
    let look = concat!(
        "SELECT ",
        mailbox_columns!(),
        ", nullif(suppressed_until, 0) AS suppressed_until, complained_at,
           EXISTS (SELECT 1 FROM outbox o WHERE o.id = last_mail_id) AS is_on_its_way
         FROM mailboxes WHERE mailbox = $1"
    );
    let read = |row: &Row<'_>| {
        let record = mailbox_record(row)?;
        let (suppressed_until, complained_at) = (row.get("suppressed_until")?, row.get("complained_at")?);
        let is_on_its_way = row.get("is_on_its_way")?;
        Ok(MailboxStanding { record, is_on_its_way, suppressed_until, complained_at, ..MailboxStanding::default() })
    };
    let found = sql.row(look, values![mailbox], read).await?.unwrap_or_default();
    let stopped = concat!(
        "SELECT ",
        source_name!("partner_id"),
        " AS partner, stopped_at FROM stopped_partners WHERE mailbox = $1 ORDER BY partner"
    );
    let read = |row: &Row<'_>| Ok(StoppedPartner { partner: row.get("partner")?, stopped_at: row.get("stopped_at")? });
    let stopped = sql.rows(stopped, values![mailbox], read).await?;
    Ok(MailboxStanding { stopped, shared_with: people_of(sql, mailbox).await?.0.saturating_sub(1), ..found })
}
