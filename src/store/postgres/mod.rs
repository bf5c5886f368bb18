//! The store for many nodes: PostgreSQL, with as many unionhall processes before it as one likes.
//!
//! A node keeps nothing of its own. Sign-ups that arrive together are one statement, so that a hundred of them cost one
//! commit; requests for the member count that arrive together are one read; everything else is one round trip where that
//! can be. What two nodes do at once meets in the database: by row locks, by unique indexes, and by a lock on the mailbox
//! where a decision rests on rows that are not there yet.

/// What a partner's pending sign-up becomes when it is sent again.
macro_rules! replacing_answers {
    () => {
        "ON CONFLICT (person_id, partner) WHERE state = 'pending' DO UPDATE
         SET key_id = excluded.key_id, us_state = excluded.us_state, categories = excluded.categories,
             comments = excluded.comments, referrer_id = excluded.referrer_id,
             consent_version = excluded.consent_version, updated_at = excluded.updated_at,
             expires_at = excluded.expires_at"
    };
}

/// What mail that waits becomes when there is newer; mail that is on its way stays.
macro_rules! replacing_waiting_mail {
    () => {
        "ON CONFLICT (sign_up_id) DO UPDATE
         SET id = excluded.id, kind = excluded.kind, recipient = excluded.recipient, created_at = excluded.created_at,
             send_after = excluded.send_after, attempts = 0, first_attempt_at = NULL, leased_by = NULL,
             last_error = NULL, given_up_at = NULL
         WHERE outbox.leased_until <= excluded.created_at"
    };
}

mod address;
mod batch;
mod count;
mod keys;
mod mail;
mod moving;
mod people;
mod pool;
mod schema;
mod sign_ups;
mod tls;

use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::FromSql;

use self::batch::Batcher;
use self::count::Counter;
use self::pool::{Pool, Unit};
use super::{Answer, Claim, Store, StoreError, Tidied};
use crate::domain::api_key::{KeyId, KeyRecord};
use crate::domain::email::EmailAddress;
use crate::domain::mail::{DueMail, MailId, MailOutcome, WaitingMail};
use crate::domain::referral::ReferralCode;
use crate::domain::signup::{Confirmation, Declining, NamedPerson, NewSignUp, SignUpId, SignUpRecord, SignedUp};
use crate::domain::time::Timestamp;
use crate::reply::Reply;

pub use self::address::{Address, BadAddress};
pub use self::moving::PostgresShelf;
pub use self::schema::OpenError;

#[derive(Debug)]
pub struct PostgresStore {
    pool: Pool,
    batcher: Batcher,
    counter: Counter,
}

impl PostgresStore {
    /// Connects. With `make` the schema is brought up to date, and several nodes may do so at once; without, it has to be
    /// there. `batch` is how many sign-ups may share a statement.
    pub async fn open(address: Address, make: bool, batch: usize) -> Result<Self, OpenError> {
        let pool = Pool::new(address)?;
        schema::prepare(&pool, make).await?;
        Ok(Self { batcher: Batcher::start(pool.clone(), batch), counter: Counter::start(pool.clone()), pool })
    }

    fn run<U: Unit + 'static>(&self, unit: U) -> Answer<'_, U::Done> {
        Reply::later(async move { self.pool.run(&unit).await })
    }
}

/// Why a query or a unit of work did not succeed, before it is told to the outside.
#[derive(Debug)]
enum Failure {
    /// The rules of the house say no; PostgreSQL is well.
    Refused(StoreError),
    /// Somebody else changed what this was about to change: look again.
    Overtaken,
    /// There is no connection, or no answer on it.
    Away(String),
    Postgres(tokio_postgres::Error),
}

impl Failure {
    /// Whether trying again at once may succeed: nothing was done.
    fn is_passing(&self) -> bool {
        match self {
            Self::Overtaken => true,
            Self::Postgres(error) => {
                matches!(error.code(), Some(&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE))
            }
            Self::Refused(_) | Self::Away(_) => false,
        }
    }

    /// Whether it is what was asked that was refused, and not the database that is unwell: others would not meet it.
    fn is_of_the_unit(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Overtaken => true,
            Self::Postgres(error) => {
                error.code().is_some_and(|state| ["22", "23", "54"].iter().any(|class| state.code().starts_with(class)))
            }
            Self::Away(_) => false,
        }
    }

    /// Whether the connection is to be thrown away: it is broken, or leads to a host that no longer takes writes.
    fn is_of_connection(&self) -> bool {
        match self {
            Self::Postgres(error) => match error.code() {
                None => true,
                // The host no longer takes writes, goes down, or has forgotten what was prepared on the connection.
                Some(state) => {
                    let forgotten = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::FEATURE_NOT_SUPPORTED];
                    *state == SqlState::READ_ONLY_SQL_TRANSACTION
                        || forgotten.contains(state)
                        || ["57P", "08", "25P"].iter().any(|class| state.code().starts_with(class))
                }
            },
            Self::Away(_) => true,
            Self::Refused(_) | Self::Overtaken => false,
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) => error,
            Failure::Overtaken => Self::Unavailable("PostgreSQL: others kept changing the same rows".to_owned()),
            Failure::Away(why) => Self::Unavailable(why),
            Failure::Postgres(error) => Self::Unavailable(format!("PostgreSQL: {}", describe(&error))),
        }
    }
}

/// An error without values: the server's details repeat them, and they may be addresses.
fn describe(error: &tokio_postgres::Error) -> String {
    use std::error::Error;
    match (error.as_db_error(), error.source()) {
        // Class 22, data exceptions, quotes what was sent in the message itself.
        (Some(told), _) if told.code().code().starts_with("22") => {
            format!("the data was refused ({})", told.code().code())
        }
        (Some(told), _) => format!("{} ({})", told.message(), told.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

/// The row that a question always has.
fn expected(row: Option<Row>) -> Result<Row, Failure> {
    row.ok_or_else(|| {
        Failure::Refused(StoreError::Unavailable("PostgreSQL: a row of the installation is missing".to_owned()))
    })
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Failure> {
    Ok(row.try_get(column)?)
}

fn time(row: &Row, column: usize) -> Result<Timestamp, Failure> {
    Ok(Timestamp::from_millis(get(row, column)?))
}

fn perhaps_time(row: &Row, column: usize) -> Result<Option<Timestamp>, Failure> {
    Ok(get::<Option<i64>>(row, column)?.map(Timestamp::from_millis))
}

/// A number that is never negative.
fn number(row: &Row, column: usize) -> Result<u64, Failure> {
    Ok(get::<i64>(row, column)?.unsigned_abs())
}

/// A column that holds a value of the domain; one that does not was written by other hands, and is named.
fn parsed<T>(row: &Row, column: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T, Failure> {
    parse(get(row, column)?).ok_or_else(|| {
        let name = row.columns().get(column).map_or("?", |column| column.name());
        Failure::Refused(StoreError::Unavailable(format!(
            "PostgreSQL: the column {name} holds a value that is not ours"
        )))
    })
}

fn code(row: &Row, column: usize) -> Result<ReferralCode, Failure> {
    parsed(row, column, ReferralCode::from_canonical)
}

impl Store for PostgresStore {
    fn member_count(&self) -> Answer<'_, u64> {
        self.counter.read()
    }

    fn sign_up(&self, new: NewSignUp, now: Timestamp) -> Answer<'_, SignedUp> {
        self.batcher.sign_up(new, now)
    }

    fn referral_code(&self, email: &EmailAddress) -> Answer<'_, Option<ReferralCode>> {
        self.run(people::FindCode { compared: email.compared() })
    }

    fn create_referral_code(&self, person: NamedPerson, now: Timestamp) -> Answer<'_, ReferralCode> {
        self.run(people::CreateReferralCode { person, now })
    }

    fn confirm(&self, sign_up: SignUpId, seen: Option<Timestamp>, now: Timestamp) -> Answer<'_, Confirmation> {
        self.run(sign_ups::Confirm { sign_up, seen, now })
    }

    fn find_sign_up(&self, sign_up: SignUpId, now: Timestamp) -> Answer<'_, Option<SignUpRecord>> {
        self.run(sign_ups::Find { sign_up, now })
    }

    fn decline(&self, sign_up: SignUpId, now: Timestamp) -> Answer<'_, Declining> {
        self.run(sign_ups::Decline { sign_up, now })
    }

    fn lease_mail(&self, worker: &str, most: usize, now: Timestamp) -> Answer<'_, Vec<DueMail>> {
        self.run(mail::Lease { worker: worker.to_owned(), most, now })
    }

    fn settle_mail(&self, mail: MailId, attempt: u32, outcome: MailOutcome, now: Timestamp) -> Answer<'_, ()> {
        self.run(mail::Settle { mail, attempt, outcome, now })
    }

    fn release_mail(&self, worker: &str) -> Answer<'_, usize> {
        self.run(mail::Release { worker: worker.to_owned() })
    }

    fn list_mail(&self) -> Answer<'_, Vec<WaitingMail>> {
        self.run(mail::List)
    }

    fn retry_mail(&self, mail: MailId, now: Timestamp) -> Answer<'_, bool> {
        self.run(mail::Retry { mail, now })
    }

    fn tidy(&self, now: Timestamp) -> Answer<'_, Tidied> {
        self.run(sign_ups::Tidy { now })
    }

    fn find_key(&self, id: KeyId) -> Answer<'_, Option<KeyRecord>> {
        self.run(keys::Find { id })
    }

    fn list_keys(&self) -> Answer<'_, Vec<(KeyRecord, u64)>> {
        self.run(keys::List)
    }

    fn issue_key(&self, key: KeyRecord) -> Answer<'_, ()> {
        self.run(keys::Issue(key))
    }

    fn revoke_key(&self, id: KeyId, now: Timestamp) -> Answer<'_, Option<KeyRecord>> {
        self.run(keys::Revoke { id, now })
    }

    fn rotate_key(&self, old: KeyId, end: Timestamp, successor: KeyRecord) -> Answer<'_, bool> {
        self.run(keys::Rotate { old, end, successor })
    }

    fn touch_key(&self, id: KeyId, now: Timestamp) -> Answer<'_, ()> {
        self.run(keys::Touch { id, now })
    }

    fn pause_sign_ups(&self, paused: bool) -> Answer<'_, bool> {
        self.run(people::Pause(paused))
    }

    fn claim_secret(&self, fingerprint: String) -> Answer<'_, Claim> {
        self.run(keys::ClaimSecret(fingerprint))
    }

    fn check(&self) -> Answer<'_, ()> {
        self.run(keys::Check)
    }

    fn close(&self) -> Answer<'_, ()> {
        Reply::later(async {
            self.batcher.close().await?;
            self.pool.close();
            Ok(())
        })
    }
}
