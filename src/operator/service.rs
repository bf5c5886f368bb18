//! What the running service does for the operator's page beside the records: test mail, previews of mail, the sandbox's records, backups.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Operator;
use crate::domain::email::EmailAddress;
use crate::domain::operator::OperatorName;
use crate::domain::time::{Tick, Timestamp};
use crate::mail::compose::Composer;
use crate::mail::{SendError, Transport};
use crate::outbound::GuardedClient;
use crate::random;
use crate::reply::Reply;

/// How long a test mail may take. The mail server may look its recipient up.
const TEST_MAIL_TIMEOUT: Duration = Duration::from_secs(30);

const HOUR: Duration = Duration::from_secs(3600);

pub struct ServiceParts {
    pub sandbox: Arc<dyn OpensTestRecords>,
    /// Sends the test messages to webhook endpoints.
    pub client: Arc<GuardedClient>,
    pub composer: Composer,
    /// Makes mail whose links lead nowhere.
    pub previews: Composer,
    /// None where this node sends no mail.
    pub transport: Option<Arc<dyn Transport>>,
    /// Where mail goes, in words.
    pub mail_goes_to: String,
    /// None where the records are in PostgreSQL.
    pub backups: Option<Arc<BackupMaker>>,
    pub test_mails: HourlyLimit,
    pub test_messages: HourlyLimit,
}

/// Whoever knows where the sandbox's records are.
pub trait OpensTestRecords: Send + Sync {
    /// The sandbox's records; none where no test key was ever issued, unless `makes` makes them. What is wrong is logged there.
    fn open(&self, makes: bool) -> Reply<'_, Result<Option<Operator>, NoTestRecords>>;
}

/// There are some, and they cannot be used.
pub struct NoTestRecords;

pub struct BackupMaker {
    /// Where the files are and what is in them.
    pub says: Vec<String>,
    pub make: MakeBackup,
}

/// Makes one, which may take minutes; or says why it did not.
pub type MakeBackup = Box<dyn Fn(Timestamp) -> Result<MadeBackup, String> + Send + Sync>;

pub struct MadeBackup {
    pub path: String,
    pub says: Vec<String>,
}

impl ServiceParts {
    /// Sends a test mail the way that all mail goes; the answer, in words.
    pub async fn send_test_mail(&self, to: &EmailAddress, now: Timestamp) -> Result<String, String> {
        let Some(transport) = &self.transport else {
            return Err("this node sends no mail".to_owned());
        };
        let unique = u64::from_be_bytes(random::bytes().map_err(|error| error.to_string())?);
        let rejected = || "the mail server answered that there is no such recipient (5.1.x)".to_owned();
        let said = |error| match error {
            SendError::Rejected => rejected(),
            SendError::Later(why) | SendError::Unknown(why) => why,
            SendError::NotBefore(at) => format!("it is not sent before {at}"),
        };
        let mail = self.composer.test_mail(to, unique, now).map_err(said)?;
        match tokio::time::timeout(TEST_MAIL_TIMEOUT, transport.send(mail)).await {
            Ok(Ok(())) => Ok(format!("It was accepted. Mail goes {}.", self.mail_goes_to)),
            Ok(Err(error)) => Err(said(error)),
            Err(_late) => {
                Err("the mail server did not answer within 30 seconds; the mail may arrive all the same".to_owned())
            }
        }
    }
}

/// How often something may be done within an hour on this node: by one operator, and by all together.
pub struct HourlyLimit {
    each: usize,
    in_all: usize,
    done: Mutex<VecDeque<(Tick, OperatorName)>>,
}

impl HourlyLimit {
    pub fn new(each: usize, in_all: usize) -> Self {
        Self { each, in_all, done: Mutex::default() }
    }

    /// Counts it; false if that would be too often.
    pub fn take(&self, who: &OperatorName, now: Tick) -> bool {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        while done.front().is_some_and(|(at, _)| now.since(*at) >= HOUR) {
            done.pop_front();
        }
        let theirs = done.iter().filter(|(_, by)| by == who).count();
        let may = theirs < self.each && done.len() < self.in_all;
        if may {
            done.push_back((now, who.clone()));
        }
        may
    }

    /// In words.
    pub fn refusal(&self) -> String {
        format!(
            "It was done too often: at most {} times an hour for each operator, and {} for all.",
            self.each, self.in_all
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_so_many_for_each_and_for_all() {
        let limit = HourlyLimit::new(2, 3);
        let [ana, ben] = ["ana", "ben"].map(|name| name.parse::<OperatorName>().unwrap());
        let at = |seconds: u64| Tick::from_micros(seconds * 1_000_000);
        assert_eq!([0, 1, 2].map(|second| limit.take(&ana, at(second))), [true, true, false]);
        assert_eq!([3, 4].map(|second| limit.take(&ben, at(second))), [true, false], "no more for all");
        assert!(!limit.take(&ana, at(3599)));
        assert!(limit.take(&ana, at(3600)), "the first is an hour ago");
        assert!(!limit.take(&ana, at(3600)));
    }
}
