//! What the union remembers, behind traits by area: keys, partners, events, webhooks, members, people, signing in, retention, campaigns,
//! outbox, inboxes, sources, figures, audit, operators, installation.
//!
//! A method is a whole unit of work: it commits everything it did or nothing, and no transaction crosses a trait. The
//! time is passed in. Units off the hot path are written once, as SQL that both engines understand (`sql.rs`), in the file
//! of their area; an engine is [`Engine`]: where units run, and the paths that are tuned for it by hand. A store must
//! never know about requests, limits or mail transports, and must never put an address, a key or a token into an error.

/// An area of the store: its trait, and for every engine its units. `read` may run beside a write, `scan` too and reads more than
/// a few rows, `write` changes something
/// with one statement at the most, `transact` with several that are done or undone together, `own` is the engine's own path. A unit is written
/// in place, or is a type of its own where it has parts.
macro_rules! area {
    ($(#[$doc:meta])* $area:ident {
        $($(#[$say:meta])* $run:ident $name:ident($($value:ident: $kind:ty),*) -> $done:ty
            $({ |$sql:ident| $body:expr })? $(= $unit:expr)?;)*
    }) => {
        $(#[$doc])*
        pub trait $area: Send + Sync + std::fmt::Debug {
            $($(#[$say])* fn $name(&self, $($value: $kind),*) -> $crate::store::StoreReply<'_, $done>;)*
        }

        impl<E: $crate::store::Engine> $area for E {
            $(fn $name(&self, $($value: $kind),*) -> $crate::store::StoreReply<'_, $done> {
                area!(@run self, $run, $name, ($($value: $kind),*) -> $done $(, = $unit)? $(, |$sql| $body)?)
            })*
        }
    };
    (@run $self:ident, own, $name:ident, ($($value:ident: $kind:ty),*) -> $done:ty) => {
        $crate::store::Engine::$name($self, $($value),*)
    };
    (@run $self:ident, $run:ident, $name:ident, ($($value:ident: $kind:ty),*) -> $done:ty, = $unit:expr) => {
        ($self as &dyn $crate::store::Engine).$run($unit)
    };
    (@run $self:ident, transact, $name:ident, ($($value:ident: $kind:ty),*) -> $done:ty, |$sql:ident| $body:expr) => {
        area!(@unit $self, write, true, ($($value: $kind),*) -> $done, |$sql| $body)
    };
    (@run $self:ident, $run:ident, $name:ident, ($($value:ident: $kind:ty),*) -> $done:ty, |$sql:ident| $body:expr) => {
        area!(@unit $self, $run, false, ($($value: $kind),*) -> $done, |$sql| $body)
    };
    (@unit $self:ident, $run:ident, $transaction:literal, ($($value:ident: $kind:ty),*) -> $done:ty, |$sql:ident| $body:expr) => {{
        struct InPlace { $($value: $kind),* }

        impl $crate::store::sql::Unit for InPlace {
            type Done = $done;

            fn is_transaction(&self) -> bool {
                $transaction
            }

            async fn apply(
                &self,
                $sql: &mut dyn $crate::store::sql::Sql,
            ) -> Result<$done, $crate::store::sql::Failure> {
                let Self { $($value),* } = self;
                $body
            }
        }

        ($self as &dyn $crate::store::Engine).$run(InPlace { $($value),* })
    }};
}

pub mod audit;
pub mod campaigns;
pub mod figures;
pub mod installation;
pub mod keys;
pub mod members;
pub mod migration;
pub mod operators;
pub mod outbox;
pub mod partners;
#[cfg(debug_assertions)]
pub mod plan;
pub mod postgres;
mod queue;
mod report;
pub mod resume;
pub mod rewards;
pub mod sandbox;
mod sign_up;
pub mod sources;
pub mod sql;
pub mod sqlite;
pub mod transfer;

use std::fmt;
use std::sync::Arc;

use crate::domain::sign_up::{Confirmation, NewSignUp, SeenPage, SignUpRef, SignedUp};
use crate::domain::time::Timestamp;
use crate::reply::Reply;

pub use self::audit::{Act, AuditStore};
pub use self::campaigns::CampaignStore;
pub use self::figures::FigureStore;
pub use self::installation::{Claim, InstallationStore};
pub use self::keys::KeyStore;
pub use self::members::MemberStore;
pub use self::members::own_page::OwnPageStore;
pub use self::members::people::PeopleStore;
pub use self::members::retention::{ForgottenPeople, MAILBOXES_KEPT_FOR, Retained, RetentionStore};
pub use self::members::sign_in::{SignInStore, SignedIn};
pub use self::operators::OperatorStore;
pub use self::outbox::OutboxStore;
pub use self::partners::PartnerStore;
pub use self::partners::changes::ChangeStore;
pub use self::partners::events::EventStore;
pub use self::partners::webhooks::WebhookStore;
pub use self::queue::{BATCH_ENDS, PoolFigures, StoreFigures, WriterFigures};
pub use self::rewards::RewardStore;
pub use self::sandbox::{ForgottenTestData, InboxStore};
pub use self::sources::{MailFigures, SourceStore, SpentProof};
use self::sql::{Job, JobDone, JobReply, Unit, result_of};

/// Units of work that share a commit at the most: past this a bigger batch gains little and its first unit waits longer.
pub const WRITE_BATCH: usize = 256;

/// All areas together, for whoever opens a store and hands each area to those who need it. Every engine passes the same
/// suite: `tests/it/once/store_suite/`.
pub trait Store:
    KeyStore
    + PartnerStore
    + WebhookStore
    + ChangeStore
    + EventStore
    + MemberStore
    + PeopleStore
    + SignInStore
    + OwnPageStore
    + RetentionStore
    + CampaignStore
    + RewardStore
    + OutboxStore
    + InboxStore
    + SourceStore
    + FigureStore
    + AuditStore
    + OperatorStore
    + InstallationStore
{
    /// The same store, of which every change is written down in the audit log as this act, together with the change.
    fn audited(self: Arc<Self>, act: Act) -> Arc<dyn Store>;
}

impl<E: Engine> Store for E {
    fn audited(self: Arc<Self>, act: Act) -> Arc<dyn Store> {
        Engine::audited(self, act)
    }
}

/// Where units of work run, and what is tuned for the engine by hand: the count that every page shows, sign-ups and
/// confirmations.
pub trait Engine: Send + Sync + fmt::Debug {
    /// Runs a job that changes nothing and reads a few rows.
    fn read_job(&self, job: Box<dyn Job>) -> JobReply<'_>;

    /// The same for a job that reads many: it must not hold up a thread that answers requests.
    fn scan_job(&self, job: Box<dyn Job>) -> JobReply<'_> {
        self.read_job(job)
    }

    fn write_job(&self, job: Box<dyn Job>) -> JobReply<'_>;

    fn member_count(&self) -> StoreReply<'_, u64>;

    fn sign_up(&self, new: NewSignUp, now: Timestamp) -> StoreReply<'_, SignedUp>;

    fn confirm(&self, sign_up: SignUpRef, seen: SeenPage, now: Timestamp) -> StoreReply<'_, Confirmation>;

    fn database_bytes(&self) -> StoreReply<'_, u64>;

    fn check(&self, for_room: bool) -> StoreReply<'_, ()>;

    fn figures(&self) -> StoreReply<'_, StoreFigures>;

    fn close(&self) -> StoreReply<'_, ()>;

    fn audited(self: Arc<Self>, act: Act) -> Arc<dyn Store>;
}

/// The part that is compiled for each unit: it is to stay this small.
impl dyn Engine + '_ {
    fn read<U: Unit>(&self, unit: U) -> StoreReply<'_, U::Done> {
        self.read_job(<dyn Job>::of(unit)).map(result_of)
    }

    fn scan<U: Unit>(&self, unit: U) -> StoreReply<'_, U::Done> {
        self.scan_job(<dyn Job>::of(unit)).map(result_of)
    }

    fn write<U: Unit>(&self, unit: U) -> StoreReply<'_, U::Done> {
        self.write_job(<dyn Job>::of(unit)).map(result_of)
    }
}

pub type StoreReply<'a, T> = Reply<'a, Result<T, StoreError>, JobDone>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The operator paused sign-ups; nothing was written.
    #[error("sign-ups are paused")]
    Paused,
    /// The code offered for a new person is another's: offer the next.
    #[error("the referral code is taken")]
    CodeTaken,
    /// The name of the request is another's; nothing was written.
    #[error("the idempotency key is in use")]
    KeyReused,
    /// The partner has used as many idempotency keys for the address as it may; nothing was written.
    #[error("too many idempotency keys for one address")]
    TooManyKeys,
    /// The store could not be read, or could not commit; nothing was written. The cause is for the operator.
    #[error("{0}")]
    Unavailable(String),
    /// It was asked to commit and its answer was lost: the unit is done whole or not at all, and nobody knows which.
    #[error("{0}; whether it was done is not known")]
    Unknown(String),
}

impl StoreError {
    /// The same, of a question that changes nothing.
    fn of_a_read(self) -> Self {
        match self {
            Self::Unknown(cause) => Self::Unavailable(cause),
            known => known,
        }
    }
}
