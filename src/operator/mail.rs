//! Trying mail again that failed: for the command and the operator's page.

use super::{Act, Operator};
use crate::domain::email::EmailAddress;
use crate::domain::figure::counted;
use crate::domain::mail::MailId;
use crate::domain::time::Timestamp;
use crate::mail::outbox::RetryFailed;
use crate::store::StoreError;

/// The part of an address after the @.
pub fn read_domain(text: &str) -> Result<String, String> {
    let domain = text.trim_start_matches('@');
    let is_domain = EmailAddress::parse(&format!("someone@{domain}")).is_ok();
    is_domain.then(|| domain.to_owned()).ok_or_else(|| "write a domain such as example.com".to_owned())
}

impl Operator {
    /// Makes mail that failed or was given up due again, all of it or what goes to a domain; returns how many. The audit log has it once.
    pub async fn retry_failed_mail(
        &self,
        act: impl FnOnce(String) -> Act,
        domain: Option<String>,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let about = domain.as_ref().map_or_else(|| "all that failed".to_owned(), |domain| format!("mail to {domain}"));
        let mut step =
            self.audited(act(about)).run(RetryFailed { after: MailId(0), domain: domain.clone(), now }).await?;
        let mut count = step.count;
        while let Some(after) = step.next {
            step = self.run_unaudited(RetryFailed { after, domain: domain.clone(), now }).await?;
            count += step.count;
        }
        Ok(count)
    }
}

pub fn retried(mails: u64) -> String {
    match mails {
        0 => "No such mail has failed.".to_owned(),
        1 => "1 mail is due again within a minute.".to_owned(),
        _ => format!("{} are due again within a minute.", counted(mails, "mail")),
    }
}
