//! Records of many people, written straight into the tables: signing up 2 million would take all day.
//!
//! Nine in ten are members by a confirmed sign-up, one in ten is invited with a pending one; all have been mailed once.

use std::path::{Path, PathBuf};

use anyhow::Context;
use rusqlite::{Connection, params};

use crate::load::{SHUFFLE, shuffled};

/// How many people the records are measured with.
pub(crate) const FEW: u64 = 10_000;
pub(crate) const MANY: u64 = 2_000_000;

/// The address of the person with that number, with the number as [`crate::load::NUMBER`] has it.
pub(crate) fn address(number: &str) -> String {
    format!("m{number}@example.org")
}

/// Everyone whose number is a multiple of this is only invited.
pub(crate) const INVITED_EVERY: u64 = 10;

pub(crate) fn members(people: u64) -> u64 {
    people - people / INVITED_EVERY
}

/// A moment in the past and one in the future, in milliseconds, so that nothing expires while it is measured.
pub(crate) const JOINED_AT: i64 = 1_700_000_000_000;
pub(crate) const EXPIRES_AT: i64 = 4_000_000_000_000;

/// Records of so many people as a file; made once and kept in `folder` for later runs.
pub(crate) fn file(folder: &Path, empty: &Path, people: u64) -> anyhow::Result<PathBuf> {
    // Another schema is another file: records of an older one are of no use.
    let schema: String = Connection::open(empty)?
        .query_row("SELECT group_concat(coalesce(sql, name), ';') FROM sqlite_schema", [], |row| row.get(0))
        .context("the empty records")?;
    let version = schema
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let kept = folder.join(format!("people-{people}-{version:016x}.db"));
    if !kept.exists() {
        let unfinished = folder.join(format!("people-{people}.unfinished"));
        std::fs::copy(empty, &unfinished)?;
        fill(&unfinished, people).context("the tables are not as the bench knows them")?;
        std::fs::rename(&unfinished, &kept)?;
    }
    Ok(kept)
}

/// The partner of the sign-ups, and its key.
const PARTNER: &str = "
    INSERT INTO partners (name, created_at) VALUES ('Bench', 0) ON CONFLICT (name) DO NOTHING;
    INSERT INTO api_keys (id, partner_id, hash, created_at)
    SELECT 'benchkey', id, CAST('no key has this as its hash (32)' AS BLOB), 0 FROM partners WHERE name = 'Bench'";

fn fill(path: &Path, people: u64) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000; PRAGMA foreign_keys = OFF;
         BEGIN",
    )?;
    // A build to compare with may have partners by name.
    let by_id = connection.column_exists(None, "sign_ups", "partner_id")?;
    let (normalized, partner, bench) = if by_id {
        connection.execute_batch(PARTNER)?;
        ("email_normalized", "key_id, partner_id", "'benchkey', (SELECT id FROM partners WHERE name = 'Bench')")
    } else {
        ("compared", "partner", "'Bench'")
    };
    {
        let mut person = connection.prepare(&format!(
            "INSERT INTO people (id, email, {normalized}, mailbox, code, state, created_at, joined_at)
             VALUES (?1, ?2, ?2, ?2, ?3, ?4, ?5, ?6)",
        ))?;
        let mut sign_up = connection.prepare(&format!(
            "INSERT INTO sign_ups (person_id, {partner}, state, us_state, categories, consent_version, created_at,
                                   updated_at, expires_at, decided_at)
             VALUES (?1, {bench}, ?2, 'CA', 'internet,travel', 1, ?3, ?3, ?4, ?5)",
        ))?;
        let mut mailbox = connection.prepare("INSERT INTO mailboxes (mailbox, sent_1) VALUES (?1, ?2)")?;
        for number in 1..=people {
            let member = !number.is_multiple_of(INVITED_EVERY);
            let joined = member.then_some(JOINED_AT);
            let email = address(&format!("{:012}", shuffled(number)));
            person.execute(params![
                number as i64,
                email,
                code(number),
                if member { "member" } else { "invited" },
                JOINED_AT,
                joined
            ])?;
            sign_up.execute(params![
                number as i64,
                if member { "confirmed" } else { "pending" },
                JOINED_AT,
                EXPIRES_AT,
                joined
            ])?;
            mailbox.execute(params![email, JOINED_AT])?;
        }
    }
    connection.execute("UPDATE installation SET member_count = ?1", [members(people) as i64])?;
    // Else the service would roll up all of them while it is measured. Records of a release to compare with may have no figures.
    if connection.table_exists(None, "rollup")? {
        connection.execute("UPDATE rollup SET sign_up_id = ?1", [people as i64])?;
    }
    connection.execute_batch("COMMIT; PRAGMA journal_mode = WAL")
}

/// A referral code that looks like any other: spread over the whole alphabet, no two the same.
fn code(number: u64) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    // An odd factor makes a permutation of the 60 bits that twelve characters hold.
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & ((1 << 60) - 1);
    (0..12).map(|i| char::from(ALPHABET[(spread >> (5 * i)) as usize & 31])).collect()
}

/// The same in PostgreSQL, as one script for `psql`; who is only invited may be more than one in ten.
pub(crate) fn script(people: u64, invited_every: u64) -> String {
    let (joined, expires) = (JOINED_AT, EXPIRES_AT);
    let member = format!("n % {invited_every} <> 0");
    let partner = PARTNER.replace("AS BLOB", "AS BYTEA");
    // The code's characters from a hash: as spread as real ones. Its 48 bits do not meet among these two million.
    format!(
        "SELECT count(*) > 0 AS by_id FROM information_schema.columns WHERE table_name = 'sign_ups' AND column_name = 'partner_id'
         \\gset
         \\if :by_id
             \\set normalized email_normalized
             \\set partner 'key_id, partner_id'
             \\set bench '''benchkey'', (SELECT id FROM partners WHERE name = ''Bench'')'
             {partner};
         \\else
             \\set normalized compared
             \\set partner partner
             \\set bench '''Bench'''
         \\endif
         BEGIN;
         SET LOCAL synchronous_commit = off;
         -- Without a look at the other table for each foreign key: a third of the time.
         SET LOCAL session_replication_role = replica;
         INSERT INTO people (email, :normalized, mailbox, code, state, created_at, joined_at)
         SELECT a, a, a, translate(substr(md5(n::text), 1, 12), 'abcdef', 'ghjkmn'),
                CASE WHEN {member} THEN 'member' ELSE 'invited' END, {joined}, CASE WHEN {member} THEN {joined} END
         FROM (SELECT n, 'm' || lpad((n::numeric * {SHUFFLE} % 1000000000000)::text, 12, '0') || '@example.org' AS a FROM generate_series(1, {people}) n) s;
         INSERT INTO sign_ups (person_id, :partner, state, us_state, categories, consent_version, created_at, updated_at,
                               expires_at, decided_at)
         SELECT id, :bench, CASE WHEN state = 'member' THEN 'confirmed' ELSE 'pending' END, 'CA', 'internet,travel', 1,
                {joined}, {joined}, {expires}, joined_at
         FROM people;
         INSERT INTO mailboxes (mailbox, sent_1) SELECT mailbox, {joined} FROM people;
         UPDATE installation SET member_count = {};
         DO $$ BEGIN UPDATE rollup SET sign_up_id = {people}; EXCEPTION WHEN undefined_table THEN NULL; END $$;
         COMMIT;
         VACUUM ANALYZE;",
        people - people / invited_every
    )
}

/// How many rows the tables that a sign-up writes to hold: people, sign-ups, mail that waits.
pub(crate) fn rows(database: &Path) -> anyhow::Result<[u64; 3]> {
    let connection = Connection::open(database)?;
    let count =
        |table: &str| connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0));
    Ok([count("people")?, count("sign_ups")?, count("outbox")?].map(i64::unsigned_abs))
}

/// A number of people in a few characters.
pub(crate) fn short(people: u64) -> String {
    match people {
        1_000_000.. => format!("{} M", people / 1_000_000),
        1_000.. => format!("{} k", people / 1_000),
        _ => people.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_differ_and_have_the_form_of_codes() {
        let codes: std::collections::HashSet<_> = (1..=10_000).map(code).collect();
        assert_eq!(codes.len(), 10_000);
        assert!(codes.iter().all(|code| code.len() == 12));
        assert_eq!(members(10_000), 9_000);
    }
}
