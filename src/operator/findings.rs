//! What was found to be wrong, and how to fix it (diagnostics): judged in one place for `unionhall doctor`, the log of `serve`, the
//! metrics, the operator's page and what is sent to `--notify`.

use std::time::Duration;

use super::Operator;
use crate::campaigns::drafts::ListWaitingDrafts;
use crate::domain::figure::{capped, counted};
use crate::domain::health::{Health, MailState, NotReady, Scope};
use crate::domain::mail::MOST_COUNTED;
use crate::domain::partner::endpoint::EndpointRecord;
use crate::domain::remedy::Remedy;
use crate::domain::time::{Timestamp, show_span};
use crate::domain::union::Union;
use crate::installation::{AreSignUpsPaused, FindLastBackup};
use crate::mail::sources::FindMailFigures;
use crate::partners::endpoints::ListTroubledEndpoints;
use crate::rewards::BatchRecord;
use crate::store::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    Ok,
    /// It works, but should be changed.
    Warn,
    /// It does not work, or not as intended.
    Fail,
}

impl Grade {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// What was found about one thing, on one line, and how to fix it.
#[derive(Clone)]
pub struct Finding {
    pub check: &'static str,
    /// Which one of the check's, where there may be several at once: a campaign, an endpoint.
    pub subject: String,
    pub grade: Grade,
    pub message: String,
    pub fix: Option<Remedy>,
}

impl Finding {
    pub fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, subject: String::new(), grade: Grade::Ok, message: message.into(), fix: None }
    }

    pub fn warn(check: &'static str, message: impl Into<String>, fix: impl Into<Remedy>) -> Self {
        Self { grade: Grade::Warn, fix: Some(fix.into()), ..Self::ok(check, message) }
    }

    pub fn fail(check: &'static str, message: impl Into<String>, fix: impl Into<Remedy>) -> Self {
        Self { grade: Grade::Fail, ..Self::warn(check, message, fix) }
    }

    /// Our errors say what is wrong and, after a semicolon, what would be right.
    pub fn of_error(check: &'static str, grade: Grade, error: &anyhow::Error) -> Self {
        let text = format!("{error:#}").lines().map(str::trim).collect::<Vec<_>>().join(" ");
        // Text in parentheses is not split.
        let is_outside = |at: &usize| text[..*at].matches('(').count() == text[..*at].matches(')').count();
        let (message, fix) = match text.match_indices("; ").map(|(at, _)| at).find(is_outside) {
            Some(at) => (text[..at].to_owned(), Some(text[at + 2..].into())),
            None => (text, None),
        };
        Self { grade, fix, ..Self::ok(check, message) }
    }

    /// Adds a fix if the error has none.
    pub fn or_fix(mut self, fix: impl Into<Remedy>) -> Self {
        self.fix.get_or_insert_with(|| fix.into());
        self
    }

    pub fn about(self, subject: impl ToString) -> Self {
        Self { subject: subject.to_string(), ..self }
    }

    /// The same for as long as it lasts, however its message changes.
    pub fn key(&self) -> String {
        format!("{} {} {}", self.check, self.grade.name(), self.subject)
    }

    pub fn is_ok(&self) -> bool {
        self.grade == Grade::Ok
    }
}

pub const MAIL: &str = "mail";
pub const CATALOG: &str = "catalog";
pub const BACKUP: &str = "backup";

const RECORDS: &str = "records";
const HELD: &str = "held";
const OLD: &str = "old";

/// Mail that has waited this long is stuck for a reason. The alert UnionhallMailOld uses the same limit.
const MAIL_IS_OLD: Duration = Duration::from_secs(3600);

/// An endpoint that has failed for so long is more than a restart of its server.
const ENDPOINT_FAILS: Duration = Duration::from_secs(600);

/// Endpoints of which each has a finding of its own.
const MAX_ENDPOINTS: usize = 10;

/// A provider normally answers sooner.
pub const PAYOUTS_ARE_OLD: Duration = Duration::from_secs(14 * 86_400);

/// What a trial may do without, besides the facts about the union.
#[derive(Clone, Default)]
pub struct TrialSettings {
    pub mail_goes_to_a_folder: bool,
    /// The pages of trust without a text of the union's own.
    pub silent_pages: Vec<&'static str>,
}

/// Trial settings that a public address should not have.
pub fn of_address(union: &Union, is_public: bool, trial: &TrialSettings) -> Vec<Finding> {
    let judge = |check, met: bool, fine: &str, wrong: &str, fix: &str| match is_public && met {
        true => Finding::warn(check, format!("{wrong}, though the base address is public"), fix),
        false => Finding::ok(check, fine),
    };
    let is_sample = union.catalog.is_sample();
    let unanswered = union.catalog.unanswered().join(", ");
    let silent = trial.silent_pages.join(", ");
    let is_plain = [&union.base_url, &union.join_site].iter().any(|address| address.starts_with("http://"));
    vec![
        judge(
            MAIL,
            trial.mail_goes_to_a_folder,
            "it goes into the folder `mailbox`, which is fine on this machine",
            "mail goes into the folder `mailbox` and to nobody's inbox",
            "set UNIONHALL_MAIL to an smtp:// address",
        ),
        judge(
            CATALOG,
            is_sample,
            if is_sample { "the sample, which is fine on this machine" } else { "your own figures" },
            "the savings and rewards shown are the sample's, which are made up",
            "give yours in UNIONHALL_CATALOG",
        ),
        judge(
            CATALOG,
            !union.catalog.says_counts_on(),
            if union.catalog.says_counts_on() {
                "it says who counts for a reward"
            } else {
                "whoever accepted counts for a reward"
            },
            "it does not say who counts for a reward, so whoever accepted an offer does, whether they switched or not",
            "write counts_on = \"switched\" or \"accepted\" into the table [referral] of your catalog",
        ),
        judge(
            CATALOG,
            !unanswered.is_empty(),
            if unanswered.is_empty() {
                "your own texts"
            } else {
                "texts are missing, which will do on this machine alone"
            },
            &format!(
                "people will ask who runs the union, what it costs and how it earns: no text of yours for {unanswered}"
            ),
            "write them in the table [union] of your catalog",
        ),
        judge(
            "pages",
            !silent.is_empty(),
            if silent.is_empty() { "your own texts" } else { "without texts of yours, which will do on this machine" },
            &format!("people see only what the program says of itself: no text of yours for {silent}"),
            "write it in the folder that UNIONHALL_PAGES names",
        ),
        judge(
            "contact",
            union.contact_email.is_none(),
            if union.contact_email.is_none() { "none, which is fine on this machine" } else { "given" },
            "nobody can write to the union",
            "give an address in UNIONHALL_CONTACT_EMAIL",
        ),
        judge(
            "encryption",
            is_plain,
            if is_plain { "none, which is fine on this machine" } else { "the addresses are https://" },
            "keys, addresses and links are sent unencrypted",
            "give https:// addresses in UNIONHALL_BASE_URL and UNIONHALL_JOIN_SITE",
        ),
    ]
}

/// What a node knows of itself.
pub fn of_health(health: &Health, is_public: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(health.not_ready.map(|why| match why {
        NotReady::Store => Finding::fail(
            RECORDS,
            "the store takes no writes, or its disk is full: sign-ups fail",
            Remedy::RunDoctor,
        ),
        NotReady::Secret => Finding::fail(
            "secret",
            "the secret was rotated after a leak, and this node has not the new one: it opens no link and sends no mail",
            "give it the new secret, as the log says",
        ),
        NotReady::Ending => {
            Finding::fail("service", "a part of it ended because of a bug in the program", "see where in the log")
        }
    }));
    found.extend(of_mail(health.mail, is_public).filter(|finding| !finding.is_ok()));
    if health.limits == Scope::Local {
        found.push(Finding::warn("limits", "Redis is away: each node counts its requests alone", Remedy::StartRedis));
    }
    found
}

/// What happens to mail on a node; none where a mail has to be tried to know.
pub fn of_mail(state: MailState, is_public: bool) -> Option<Finding> {
    let judge = |message: &str, fix: &str| match is_public {
        true => Finding::warn(MAIL, message, fix),
        false => Finding::ok(MAIL, message),
    };
    Some(match state {
        MailState::Failing => {
            Finding::fail(MAIL, "it cannot be sent: nobody who signs up can confirm", Remedy::ListMail)
        }
        MailState::Off => {
            judge("it is off, and so are sign-ups", "set UNIONHALL_MAIL to an smtp:// address, unless you want it off")
        }
        MailState::Held => judge(
            "it waits in the outbox, and nothing is sent from here",
            "make sure that another node sends it, or set UNIONHALL_MAIL to an smtp:// address",
        ),
        MailState::Untried | MailState::Sent => return None,
    })
}

/// What the records show, one query after the other, so that a look takes one database connection and not all. `is_held`: this node
/// sends no mail.
pub async fn of_records(
    operator: &Operator,
    is_held: bool,
    backup_every: Option<Duration>,
    now: Timestamp,
) -> Result<Vec<Finding>, StoreError> {
    let mut found = Vec::new();
    if operator.ask(AreSignUpsPaused).await? {
        let message = "they are paused: agents cannot sign anybody up";
        found.push(Finding::warn("sign-ups", message, Remedy::ResumeSignUps));
    }
    let mail = operator.ask(FindMailFigures).await?;
    if mail.held > 0 {
        let message = match mail.held {
            1 => "1 mail is held until you decide".to_owned(),
            held => format!("{} mails are held until you decide", capped(held, MOST_COUNTED)),
        };
        found.push(Finding::warn(MAIL, message, Remedy::DecideOnHeldMail).about(HELD));
    }
    if let Some(oldest) = mail.oldest.filter(|oldest| !is_held && now.since(*oldest) > MAIL_IS_OLD) {
        let message = format!("the oldest that waits was asked for at {oldest}");
        found.push(Finding::warn(MAIL, message, Remedy::ListMail).about(OLD));
    }
    if let Some(every) = backup_every {
        found.push(judge_backup(operator.ask(FindLastBackup).await?, now, every));
    }
    found.extend(of_endpoints(operator.ask(ListTroubledEndpoints).await?, now));
    found.extend(of_payouts(operator, now).await?);
    found.extend(of_drafts(operator).await?);
    Ok(found)
}

/// Webhook endpoints that get nothing: their partners miss what happens.
fn of_endpoints(mut troubled: Vec<EndpointRecord>, now: Timestamp) -> Vec<Finding> {
    const WEBHOOKS: &str = "webhooks";
    troubled
        .retain(|one| one.disabled_at.is_some() || one.failing_since.is_some_and(|at| now.since(at) > ENDPOINT_FAILS));
    let more = troubled.len().saturating_sub(MAX_ENDPOINTS);
    let judge = |EndpointRecord { id, partner, failing_since, disabled_at, .. }: &EndpointRecord| {
        let (message, fix) = match (disabled_at, failing_since) {
            (Some(at), _) => {
                (format!("endpoint {id} of {partner} is disabled since {at}"), Remedy::RecoverEndpoint(*id))
            }
            (None, since) => {
                let since = since.unwrap_or(now);
                (format!("endpoint {id} of {partner} fails since {since}; it is tried again"), Remedy::ListEndpoints)
            }
        };
        Finding::warn(WEBHOOKS, message, fix).about(id)
    };
    let mut found: Vec<_> = troubled.iter().take(MAX_ENDPOINTS).map(judge).collect();
    if more > 0 {
        let message = format!("{} more get nothing", counted(more as u64, "endpoint"));
        found.push(Finding::warn(WEBHOOKS, message, Remedy::ListEndpoints).about("more"));
    }
    found
}

/// Batches of payouts that were not settled in time, if any: those with a file, and those without.
async fn of_payouts(operator: &Operator, now: Timestamp) -> Result<Vec<Finding>, StoreError> {
    const PAYOUTS: &str = "payouts";
    let before = now.minus(PAYOUTS_ARE_OLD);
    let (open, _) = operator.rewards().open_batches().await?;
    let old = |written: bool| open.iter().filter(move |batch| batch.created_at < before && batch.is_written == written);
    let settle = old(true).map(|BatchRecord { id, created_at, out, .. }| {
        format!("batch {id} was made at {created_at}; payouts of it that are not settled: {out}")
    });
    let finish = old(false).map(|BatchRecord { id, created_at, .. }| {
        format!("batch {id} was made at {created_at}; its file was never written")
    });
    let found = [
        ("settle", Vec::from_iter(settle), Remedy::SettleBatch),
        ("finish", Vec::from_iter(finish), Remedy::FinishBatch),
    ];
    let found = found.into_iter().filter(|(_, messages, _)| !messages.is_empty());
    let found = found.map(|(which, messages, fix)| Finding::warn(PAYOUTS, messages.join("; "), fix).about(which));
    Ok(found.collect())
}

/// Drafts of an offer that wait for a person, a finding for each campaign.
async fn of_drafts(operator: &Operator) -> Result<Vec<Finding>, StoreError> {
    let waiting = operator.ask(ListWaitingDrafts).await?.into_iter().map(|(slug, drafts, since)| {
        let message = match drafts {
            1 => format!("a draft of {slug}'s offer waits for you since {since}"),
            drafts => format!("{drafts} drafts of {slug}'s offer wait for you, the oldest since {since}"),
        };
        Finding::warn("drafts", message, Remedy::AnswerDraft(slug.clone())).about(slug)
    });
    Ok(waiting.collect())
}

/// Whether the last backup is recent enough for records that people rely on. One failed backup does not make it old yet. The alert
/// UnionhallBackupOld uses the same limit.
pub fn judge_backup(at: Option<Timestamp>, now: Timestamp, every: Duration) -> Finding {
    match at {
        None => Finding::warn(BACKUP, "no backup was ever recorded", Remedy::MakeBackups),
        Some(at) if now.since(at) > every.saturating_mul(2) => {
            let message = format!("the last one was made at {at}, and one is expected every {}", show_span(every));
            Finding::warn(BACKUP, message, Remedy::MakeBackups)
        }
        Some(at) => Finding::ok(BACKUP, format!("the last one was made at {at}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_old_after_two_turns() {
        let at = Timestamp::from_millis;
        let grade = |made| judge_backup(made, at(200_000_000), Duration::from_secs(86_400)).grade;
        assert_eq!(grade(None), Grade::Warn);
        assert_eq!(grade(Some(at(200_000_000 - 2 * 86_400_000))), Grade::Ok);
        assert_eq!(grade(Some(at(200_000_000 - 2 * 86_400_000 - 1))), Grade::Warn);
        let found = judge_backup(Some(at(0)), at(1_800_001), Duration::from_secs(900));
        assert!(found.message.ends_with("one is expected every 15m"), "{}", found.message);
    }

    #[test]
    fn an_error_is_what_is_wrong_and_what_would_be_right() {
        let message = |text: &str| Finding::of_error("x", Grade::Fail, &anyhow::anyhow!(text.to_owned()));
        let both = message("it is full (a; b);\nmake room; or not");
        assert_eq!(both.message, "it is full (a; b)");
        assert!(matches!(both.fix, Some(Remedy::Do(fix)) if fix == "make room; or not"));
        assert!(message("it is full").fix.is_none());
    }
}
