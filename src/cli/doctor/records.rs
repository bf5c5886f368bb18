//! The records: whether they are there and of our time, take writes, belong to this secret and to this clock.

use std::time::Duration;

use crate::campaigns::records::AreMailingsOpen;
use crate::cli::findings::{Finding, Grade};
use crate::cli::sandbox_records::{SandboxRecords, find_sandbox};
use crate::cli::{files, open_records, open_store, remedy, secret};
use crate::clock::Clock;
use crate::config::{Keyring, Records, ServeSettings};
use crate::domain::api_key::Mode;
use crate::domain::remedy::Remedy;
use crate::domain::time::Timestamp;
use crate::installation::FindLatestRecord;
use crate::operator::Operator;
use crate::operator::findings::of_records;
use crate::store::WRITE_BATCH;
use crate::store::migration::Prepare;
use crate::store::postgres::{self, Address, PostgresFacts, PostgresOpenError};
use crate::store::sqlite::{SqliteOpenError, quick_check};

const RECORDS: &str = "records";
const WRITES: &str = "writes";
const SECRET: &str = "secret";
const CLOCK: &str = "clock";
const NEWS: &str = "what waits";

/// How far two clocks may be apart before links and limits of the one surprise the other.
const CLOCKS_DIFFER: Duration = Duration::from_secs(2);
const CLOCKS_DISAGREE: Duration = Duration::from_secs(60);

const GIVE_SECRET: &str = "set UNIONHALL_SECRET_FILE to a file that holds the secret of these records";

const SET_CLOCKS: &str = "let both machines set their clocks by NTP (timedatectl set-ntp true)";

/// `given` is none where the secret cannot be read, which was told with the settings; `is_held`: no mail is sent from here.
pub(super) async fn examine(
    settings: &ServeSettings,
    given: Option<Option<Keyring>>,
    (is_public, is_held): (bool, bool),
    thorough: bool,
) -> Vec<Finding> {
    let Ok(records) = settings.store.records() else { return Vec::new() };
    if let Records::Sqlite(file) = &records
        && matches!(files::is_there(file), Ok(false))
    {
        let fix = "the first start makes them; if there are some, give their folder with --data or UNIONHALL_DATA";
        return vec![Finding::warn(RECORDS, format!("there are none at {records}"), fix)];
    }
    // As a command opens them: nothing is made and no schema is changed.
    let operator = match open_store(&settings.store, Prepare::Expect, WRITE_BATCH).await {
        Ok(store) => Operator::new(store, Mode::Live),
        Err(error) => {
            let grade = grade(&error);
            return vec![Finding { grade, ..of_store(RECORDS, error) }];
        }
    };
    let mut found = vec![Finding::ok(RECORDS, format!("{records} opens, and its schema is up to date"))];
    found.push(match operator.check().await {
        Ok(()) => Finding::ok(WRITES, "they are stored"),
        Err(error) => of_store(WRITES, error),
    });
    if let Some(given) = given {
        found.push(match secret::examine(&settings.store, given, &operator).await {
            Ok(state) if state.is_unfinished => {
                Finding::warn(SECRET, state.says, "go on with it: `unionhall secret rotate`")
            }
            Ok(state) => Finding::ok(SECRET, state.says),
            Err(error) => {
                let fix = remedy::of(&*error).unwrap_or_else(|| GIVE_SECRET.into());
                Finding::of_error(SECRET, Grade::Fail, &error).or_fix(fix)
            }
        });
    }
    match &records {
        Records::Sqlite(file) => {
            found.push(clock_of_records(&operator).await);
            if thorough {
                found.push(match quick_check(file) {
                    Ok(()) => Finding::ok("integrity", "SQLite finds no fault with the file"),
                    Err(error) => of_store("integrity", error),
                });
            }
        }
        Records::Postgres(address) => found.extend(of_postgres(address).await),
    }
    let backup_every = is_public.then_some(settings.backup.backup_every);
    found.extend(match of_records(&operator, is_held, backup_every, Clock::start().now().time).await {
        Ok(shown) if shown.iter().all(Finding::is_ok) => {
            let nothing = Finding::ok(NEWS, "sign-ups are on, and no mail, webhook, payout or draft needs you");
            [shown, vec![nothing]].concat()
        }
        Ok(shown) => shown,
        Err(error) => vec![of_store(NEWS, error)],
    });
    found.extend(of_sandbox(settings, &records).await);
    if let Err(error) = operator.close().await {
        found.push(of_store(RECORDS, error));
    }
    found
}

/// Whether a mailing about a campaign is not finished; records that cannot be read were told before.
pub(super) async fn does_campaign_mail_wait(settings: &ServeSettings) -> bool {
    let Ok(store) = open_store(&settings.store, Prepare::Expect, WRITE_BATCH).await else { return false };
    let operator = Operator::new(store, Mode::Live);
    let waits = operator.ask(AreMailingsOpen).await.unwrap_or(false);
    let _told_before = operator.close().await;
    waits
}

/// Test keys may fail without anybody else noticing; nothing where there are none.
async fn of_sandbox(settings: &ServeSettings, live: &Records) -> Option<Finding> {
    const SANDBOX: &str = "sandbox";
    let opened = async {
        let SandboxRecords { records, are_there } = find_sandbox(live).await?;
        if !are_there {
            return Ok(None);
        }
        open_records(&records, &settings.store.data, Prepare::Expect, WRITE_BATCH).await?.close().await?;
        anyhow::Ok(Some(Finding::ok(SANDBOX, format!("{records} opens, for test keys"))))
    };
    let fix = "test keys do not work meanwhile; if nothing in it matters, delete it and issue them anew";
    opened.await.unwrap_or_else(|error| Some(Finding::of_error(SANDBOX, Grade::Warn, &error).or_fix(fix)))
}

/// Why the database cannot be used. It is not away if it says what is wrong with it.
fn of_store(check: &'static str, error: impl Into<anyhow::Error>) -> Finding {
    let error = error.into();
    let fix = remedy::of(&*error).unwrap_or(Remedy::CheckStore);
    Finding::of_error(check, Grade::Fail, &error).or_fix(fix)
}

/// What the next start of the service repairs by itself is not a failure.
fn grade(error: &anyhow::Error) -> Grade {
    let sqlite = matches!(error.downcast_ref(), Some(SqliteOpenError::Older { .. }));
    let postgres = matches!(error.downcast_ref(), Some(PostgresOpenError::Older { .. } | PostgresOpenError::Missing));
    if sqlite || postgres { Grade::Warn } else { Grade::Fail }
}

/// The database is on this machine and has its clock; what was written before may have had another.
async fn clock_of_records(operator: &Operator) -> Finding {
    let now = Clock::start().now().time;
    match operator.ask(FindLatestRecord).await {
        Ok(Some(latest)) if latest.since(now) > CLOCKS_DISAGREE => Finding::warn(
            CLOCK,
            format!("it says {now}, and the latest record was written at {latest}"),
            "set this machine's clock by NTP (timedatectl set-ntp true); if it was ahead before, wait until it has caught up",
        ),
        Ok(_) => Finding::ok(CLOCK, "no record is from the future"),
        Err(error) => of_store(CLOCK, error),
    }
}

async fn of_postgres(address: &Address) -> Vec<Finding> {
    let clock = Clock::start();
    let before = clock.now().time;
    let facts = match postgres::learn(address.clone()).await {
        Ok(facts) => facts,
        Err(error) => {
            return vec![of_store("database", error)];
        }
    };
    let after = clock.now().time;
    let PostgresFacts { version, encrypted, time, synchronous_commit, fsync, is_restored } = facts;
    let database = match (encrypted, address.leaves_this_machine()) {
        _ if is_restored => Finding::fail(
            "database",
            "its records were restored from a copy, and the service refuses to start on them",
            Remedy::ResumeRecords,
        ),
        (true, _) => Finding::ok("database", format!("{version}, a primary, over TLS")),
        (false, false) => Finding::ok("database", format!("{version}, a primary, on this machine")),
        (false, true) => Finding::warn(
            "database",
            format!("{version} is on another machine and connected without TLS"),
            "turn on TLS there and write sslmode=verify-full in UNIONHALL_STORE",
        ),
    };
    let durability = if !fsync {
        Finding::warn(
            "durability",
            "the server's fsync is off: a power failure may lose all records",
            "set fsync = on in postgresql.conf",
        )
    } else if synchronous_commit == "off" {
        Finding::ok("durability", "the server's synchronous_commit is off; unionhall sets it on for its own sessions")
    } else {
        Finding::ok("durability", format!("fsync is on, synchronous_commit is {synchronous_commit}"))
    };
    vec![database, durability, clock_of_server(before, time, after)]
}

/// The server read its clock at some moment between the two of ours.
fn clock_of_server(before: Timestamp, server: Timestamp, after: Timestamp) -> Finding {
    let apart = before.since(server).max(server.since(after));
    let message = format!("the database's clock is {:.1} s away from this machine's", apart.as_secs_f64());
    if apart > CLOCKS_DISAGREE {
        Finding::fail(CLOCK, message, SET_CLOCKS)
    } else if apart > CLOCKS_DIFFER {
        Finding::warn(CLOCK, message, SET_CLOCKS)
    } else {
        Finding::ok(CLOCK, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_may_differ_by_what_the_question_took_and_two_seconds() {
        let at = Timestamp::from_millis;
        let grade = |server| clock_of_server(at(100_000), at(server), at(101_000)).grade;
        for (server, expected) in [
            (100_500, Grade::Ok),
            (98_000, Grade::Ok),
            (103_000, Grade::Ok),
            (97_999, Grade::Warn),
            (103_001, Grade::Warn),
            (40_000, Grade::Warn),
            (39_999, Grade::Fail),
            (161_001, Grade::Fail),
        ] {
            assert_eq!(grade(server), expected, "{server}");
        }
    }
}
