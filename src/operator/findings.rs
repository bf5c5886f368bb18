//! What was found to be wrong, and how to fix it (diagnostics): judged in one place for `unionhall doctor`, the log of `serve` and the
//! operator's page.

use std::time::Duration;

use super::Operator;
use crate::campaigns::drafts::ListWaitingDrafts;
use crate::domain::remedy::Remedy;
use crate::domain::time::{Timestamp, show_span};
use crate::domain::union::Union;
use crate::rewards::BatchRecord;

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
    pub grade: Grade,
    pub message: String,
    pub fix: Option<Remedy>,
}

impl Finding {
    pub fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, grade: Grade::Ok, message: message.into(), fix: None }
    }

    pub fn warn(check: &'static str, message: impl Into<String>, fix: impl Into<Remedy>) -> Self {
        Self { check, grade: Grade::Warn, message: message.into(), fix: Some(fix.into()) }
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
        Self { check, grade, message, fix }
    }

    /// Adds a fix if the error has none.
    pub fn or_fix(mut self, fix: impl Into<Remedy>) -> Self {
        self.fix.get_or_insert_with(|| fix.into());
        self
    }

    pub fn is_ok(&self) -> bool {
        self.grade == Grade::Ok
    }
}

pub const MAIL: &str = "mail";
pub const CATALOG: &str = "catalog";
pub const BACKUP: &str = "backup";

/// A provider normally answers sooner.
pub const PAYOUTS_ARE_OLD: Duration = Duration::from_secs(14 * 86_400);

/// Trial settings that a public address should not have.
pub fn of_address(union: &Union, is_public: bool, mail_goes_to_a_folder: bool) -> Vec<Finding> {
    let judge = |check, met: bool, fine: &str, wrong: &str, fix: &str| match is_public && met {
        true => Finding::warn(check, format!("{wrong}, though the base address is public"), fix),
        false => Finding::ok(check, fine),
    };
    let is_sample = union.catalog.is_sample();
    let unanswered = union.catalog.unanswered().join(", ");
    let is_plain = [&union.base_url, &union.join_site].iter().any(|address| address.starts_with("http://"));
    vec![
        judge(
            MAIL,
            mail_goes_to_a_folder,
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

/// Batches of payouts that were not settled in time, if any: those with a file, and those without.
pub async fn of_payouts(operator: &Operator, now: Timestamp) -> Vec<Finding> {
    const PAYOUTS: &str = "payouts";
    let before = now.minus(PAYOUTS_ARE_OLD);
    let open = match operator.rewards().open_batches().await {
        Ok((open, _)) => open,
        Err(error) => {
            let fix = error.remedy().unwrap_or(Remedy::CheckStore);
            return vec![Finding::of_error(PAYOUTS, Grade::Fail, &error.into()).or_fix(fix)];
        }
    };
    let old = |written: bool| open.iter().filter(move |batch| batch.created_at < before && batch.is_written == written);
    let settle = old(true).map(|BatchRecord { id, created_at, out, .. }| {
        format!("batch {id} was made at {created_at}; payouts of it that are not settled: {out}")
    });
    let finish = old(false).map(|BatchRecord { id, created_at, .. }| {
        format!("batch {id} was made at {created_at}; its file was never written")
    });
    let found = [(Vec::from_iter(settle), Remedy::SettleBatch), (Vec::from_iter(finish), Remedy::FinishBatch)];
    let found = found.into_iter().filter(|(messages, _)| !messages.is_empty());
    found.map(|(messages, fix)| Finding::warn(PAYOUTS, messages.join("; "), fix)).collect()
}

/// Drafts of an offer that wait for a person, a finding for each campaign.
pub async fn of_drafts(operator: &Operator) -> Vec<Finding> {
    const DRAFTS: &str = "drafts";
    match operator.ask(ListWaitingDrafts).await {
        Ok(waiting) => waiting
            .into_iter()
            .map(|(slug, drafts, since)| {
                let message = match drafts {
                    1 => format!("a draft of {slug}'s offer waits for you since {since}"),
                    drafts => format!("{drafts} drafts of {slug}'s offer wait for you, the oldest since {since}"),
                };
                Finding::warn(DRAFTS, message, Remedy::AnswerDraft(slug))
            })
            .collect(),
        Err(error) => {
            let fix = error.remedy().unwrap_or(Remedy::CheckStore);
            vec![Finding::of_error(DRAFTS, Grade::Fail, &error.into()).or_fix(fix)]
        }
    }
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
