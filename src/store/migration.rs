//! The schema's steps (migrations), for both engines in one list.

/// One step. Never changed once released.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    pub sqlite: &'static str,
    pub postgres: &'static str,
    /// The oldest schema whose programs still work on this one, where nodes are replaced one by one (PostgreSQL). A step that
    /// only adds leaves it as it was; one that takes away raises it, in a release after the last that used what it takes.
    pub serves: i32,
    /// Whether it makes a table anew and puts it in the old one's place. SQLite does so with foreign keys off, which can only
    /// be said outside a transaction, and every reference is checked before it is kept.
    pub rebuilds: bool,
    /// Whether more spellings of an address are one mailbox after it: `refold.rs` does that part.
    pub refolds: bool,
}

/// Each once, in order.
pub const MIGRATIONS: &[Migration] = &[
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0001_house.sql"),
        postgres: include_str!("../../migrations/postgres/0001_house.sql"),
        serves: 1,
        rebuilds: false,
        refolds: false,
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0002_ids_of_people.sql"),
        postgres: include_str!("../../migrations/postgres/0002_ids_of_people.sql"),
        serves: 1,
        rebuilds: true,
        refolds: false,
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0003_readiness.sql"),
        postgres: include_str!("../../migrations/postgres/0003_readiness.sql"),
        serves: 1,
        rebuilds: false,
        refolds: false,
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0004_fair_mail.sql"),
        postgres: include_str!("../../migrations/postgres/0004_fair_mail.sql"),
        serves: 4,
        rebuilds: false,
        refolds: false,
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0005_good_name.sql"),
        postgres: include_str!("../../migrations/postgres/0005_good_name.sql"),
        serves: 4,
        rebuilds: false,
        refolds: true,
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0006_operators_day.sql"),
        postgres: include_str!("../../migrations/postgres/0006_operators_day.sql"),
        serves: 4,
        rebuilds: false,
        refolds: false,
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0007_own_page.sql"),
        postgres: include_str!("../../migrations/postgres/0007_own_page.sql"),
        serves: 4,
        rebuilds: true,
        refolds: false,
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0008_language.sql"),
        postgres: include_str!("../../migrations/postgres/0008_language.sql"),
        serves: 4,
        rebuilds: false,
        refolds: false,
    },
    Migration {
        sqlite: include_str!("../../migrations/sqlite/0009_partners.sql"),
        postgres: include_str!("../../migrations/postgres/0009_partners.sql"),
        serves: 4,
        rebuilds: false,
        refolds: false,
    },
];

/// What may be done to a schema when a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepare {
    /// Nothing: it has to be there, and of our time. For commands, which may run beside a server of another version.
    Expect,
    /// It is made where there is none, and never changed: for a command that may come before the first start.
    Make,
    /// It is made or brought up to date: for the service.
    Upgrade,
}
