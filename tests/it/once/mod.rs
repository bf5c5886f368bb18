//! Tests that run once, whatever backend the others run on: they do not depend on the store or the limiter, or bring their own
//! stores, or are about one machine by nature.
//!
//! A test with `once::` in its path is left out of the run on PostgreSQL and Redis. Files that have such tests among others keep
//! them in a module of this name at their end.

mod after_restore;
mod architecture;
mod backup;
mod continuous_backup;
mod cors;
mod demonstration;
mod dependencies;
mod deploy;
mod docs;
mod doctor;
mod first_start;
mod forgiveness;
mod full_disk;
mod hostile_text;
pub(crate) mod https;
mod limiter_suite;
mod limiter_switches;
mod mail_tls;
mod mailed_links;
mod many_nodes;
mod migrations;
mod monitoring;
pub(crate) mod outbound;
mod outbox;
mod postgres;
mod postgres_tls;
mod redis_buckets;
pub(crate) mod redis_server;
mod reference;
mod reload;
mod resume;
mod root_files;
mod rotation;
mod settings_page;
pub(crate) mod shared_limits;
mod source;
mod store_suite;
mod style;
mod tour;
mod transfer;
mod worst_days;

use crate::prelude::*;
use unionhall::domain::secret::mark::{AddressMarker, MailboxTombstone};
use unionhall::domain::sign_up::{Channel, Evidence};

/// How a sign-up of a test came about.
fn evidence() -> Evidence {
    Evidence { channel: Channel::Rest, client: None, notice: "a notice".into() }
}

/// By which the tests' stores know someone who was erased.
fn tombstone(email: &EmailAddress) -> MailboxTombstone {
    AddressMarker::new(&Secret::new(&"s".repeat(32)).unwrap()).mailbox_tombstone(email)
}
