//! The steps of the schema (migrations), for both engines in one list.

use ring::digest::{SHA256, digest};

/// One step. A released one is never changed: records hold its fingerprint, and those of another shape are refused.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    pub sqlite: &'static str,
    pub postgres: &'static str,
    /// The oldest schema whose programs still work on this one, where nodes are replaced one by one (PostgreSQL). A step that
    /// only adds leaves it as it was; one that removes raises it, in a release after the last that used what it removes.
    pub serves: i32,
    /// Whether it replaces a table by a new one. SQLite does so with foreign keys off, which can only be set outside a
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
        sqlite: include_str!("../../migrations/sqlite/0002_indexes.sql"),
        postgres: include_str!("../../migrations/postgres/0002_indexes.sql"),
        serves: 1,
        rebuilds: false,
    },
];

/// What identifies the text of a step: the start of its hash, without comments and white space. It is stored with the
/// records when the step is taken.
pub(super) fn fingerprint(sql: &str) -> String {
    let code = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    let words: Vec<_> = code.flat_map(str::split_whitespace).collect();
    let hash = digest(&SHA256, words.join(" ").as_bytes());
    hash.as_ref().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// What may be done to a schema when a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepare {
    /// Nothing: it has to exist and be current. For commands, which may run beside a server of another version.
    Expect,
    /// It is created if there is none, and never changed: for a command that may come before the first start.
    Make,
    /// It is created or brought up to date: for the service.
    Upgrade,
    /// It is brought up to date, and may have been restored from a copy: for `unionhall resume`.
    Resume,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of SQLite and PostgreSQL, one line for each step. A line is added with its step and stays: every database of a release
    /// holds these, and is refused by a build whose steps differ.
    const FINGERPRINTS: &[[&str; 2]] = &[["1ab589deb44d", "903d3564ea5c"], ["71174bfd1531", "71174bfd1531"]];

    #[test]
    fn a_released_step_is_never_changed() {
        let found: Vec<_> = MIGRATIONS.iter().map(|step| [step.sqlite, step.postgres].map(fingerprint)).collect();
        assert_eq!(found, FINGERPRINTS, "write a new step instead: \"A migration\" in CONTRIBUTING.md");
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
