//! The steps of the schema (migrations), for both engines in one list.

use ring::digest::{SHA256, digest};

/// One step. A released step never changes: records store its fingerprint, and records with another one are refused.
#[derive(Clone, Copy)]
pub struct Migration {
    pub sqlite: &'static str,
    pub postgres: &'static str,
    /// The oldest schema whose programs still work on this one, for replacing nodes one by one (PostgreSQL). A step that only
    /// adds things keeps this number. A step that removes something raises it, in a release after the last one that used what it
    /// removes.
    pub serves: i32,
    /// Whether it replaces a table with a new one. SQLite does so with foreign keys off, which can only be set outside a
    /// transaction, and every reference is checked before the commit.
    pub rebuilds: bool,
}

/// Each once, in order.
pub const MIGRATIONS: &[Migration] = &[
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0001_schema.sql"),
        postgres: include_str!("../../migrations/postgres/0001_schema.sql"),
        serves: 1,
        rebuilds: false,
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0002_after_1_0_0.sql"),
        postgres: include_str!("../../migrations/postgres/0002_after_1_0_0.sql"),
        serves: 1,
        rebuilds: false,
    },
];

/// Identifies the text of a step: the start of its hash, without comments and white space. It is stored with the records when the
/// step runs.
pub(super) fn fingerprint(sql: &str) -> String {
    let code = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    let words: Vec<_> = code.flat_map(str::split_whitespace).collect();
    let hash = digest(&SHA256, words.join(" ").as_bytes());
    hash.as_ref().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// What opening a store may do to the schema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Prepare {
    /// Nothing: the schema must exist and be current. For commands, which may run beside a server of another version.
    Expect,
    /// Create it if there is none, and never change it. For a command that may run before the first start.
    Make,
    /// Create it or bring it up to date. For the service.
    Upgrade,
    /// Bring it up to date; it may have been restored from a copy. For `unionhall resume`.
    Resume,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For SQLite and PostgreSQL, one line per step. A line is added with its step and stays: every database of a release stores
    /// these, and a build whose steps differ refuses the database.
    const FINGERPRINTS: &[[&str; 2]] = &[["1ab589deb44d", "903d3564ea5c"], ["1dfae84e1b0c", "5ef0e1fbec51"]];

    #[test]
    fn a_released_step_is_never_changed() {
        let found: Vec<_> = MIGRATIONS.iter().map(|step| [step.sqlite, step.postgres].map(fingerprint)).collect();
        assert_eq!(
            found, FINGERPRINTS,
            "a new step: add its fingerprints; a released one never changes (\"A migration\" in CONTRIBUTING.md)"
        );
    }

    #[test]
    fn comments_and_white_space_are_no_part_of_a_fingerprint() {
        let plain = fingerprint("CREATE TABLE a (b TEXT);");
        assert_eq!(plain.len(), 12);
        assert_eq!(
            fingerprint("-- A table.\nCREATE TABLE a (\n    b TEXT); -- done\n"),
            fingerprint("CREATE TABLE a ( b TEXT);")
        );
        assert_ne!(fingerprint("CREATE TABLE a (c TEXT);"), plain);
    }
}
