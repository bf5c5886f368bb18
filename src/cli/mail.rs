//! `unionhall mail`

use std::io::Read;

use anyhow::bail;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::json;

use super::audit::act;
use super::{ListArgs, TryLater, ask, change, print_json, print_line, print_table, secret, with_live_records};
use crate::clock::Clock;
use crate::config::{SecretSettings, StoreSettings};
use crate::domain::api_key::KeyId;
use crate::domain::mail::report::{ReportKind, ReportOutcome};
use crate::domain::mail::{HeldMail, MailId, WaitingMail};
use crate::domain::secret::token::TokenMaker;
use crate::domain::time::Timestamp;
use crate::mail::outbox;
use crate::mail::outbox::{DropHeld, ReleaseHeld};
use crate::mail::report::mime;
use crate::membership::mail_report::NoteReport;
use crate::operator::mail::{read_domain, retried};
use crate::operator::partner;

#[derive(Subcommand)]
pub(super) enum MailCommand {
    /// List the mail that waits, without addresses: how often it was tried, and why it was not sent.
    List(ListArgs),
    /// Try a mail again at once, even one that was given up, is held, or whose mailbox has reached its limit.
    ///
    /// With --all or --to, everything that failed or was given up is tried again within a minute. Mail that is held stays held, mail
    /// of a suspended partner waits, and mailboxes at their rate limit get theirs later. After an outage of the mail server,
    /// the service does this by itself for everything that waits.
    Retry(RetryMail),
    /// Send held mail, such as that of a revoked key. Each person still gets a whole week to confirm.
    Release(HeldChoice),
    /// Delete held mail, and cancel its sign-ups at once. No one is notified.
    Drop(HeldChoice),
    /// Read a report of mail that came back on standard input: a delivery status notification or a complaint.
    ///
    /// For the pipe of a mail server, such as Postfix: whatever arrives at the domain of UNIONHALL_MAIL_BOUNCES. A report is
    /// believed only about the mail whose token it brings back; anything else changes nothing and is no failure. Ends with 75
    /// (try again later) when the records cannot be used, so that the mail server keeps the report.
    Feedback(Feedback),
}

#[derive(Args)]
pub(super) struct HeldChoice {
    /// Only what was asked for with this key.
    #[arg(long, value_name = "ID", conflicts_with = "form")]
    key: Option<KeyId>,
    /// Only what was asked for by the form.
    #[arg(long)]
    form: bool,
    #[command(flatten)]
    store: StoreSettings,
}

impl HeldChoice {
    fn which(&self) -> HeldMail {
        match (self.key, self.form) {
            (Some(key), _) => HeldMail::OfKey(key),
            (None, true) => HeldMail::OfTheForm,
            (None, false) => HeldMail::All,
        }
    }

    fn about(&self) -> String {
        match self.which() {
            HeldMail::All => "all that is held".to_owned(),
            HeldMail::OfKey(key) => format!("key {key}"),
            HeldMail::OfPartner(partner) => format!("partner {partner}"),
            HeldMail::OfTheForm => "the form".to_owned(),
        }
    }
}

#[derive(Args)]
#[command(group(ArgGroup::new("which").args(["id", "all", "to"]).required(true)))]
pub(super) struct RetryMail {
    /// The mail's number, as `mail list` shows it.
    #[arg(value_parser = number, allow_negative_numbers = true)]
    id: Option<i64>,
    /// All mail that failed or was given up.
    #[arg(long)]
    all: bool,
    /// Only what goes to addresses at this domain, such as example.com.
    #[arg(long, value_name = "DOMAIN", value_parser = read_domain)]
    to: Option<String>,
    #[command(flatten)]
    store: StoreSettings,
}

fn number(text: &str) -> Result<i64, &'static str> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or("write a mail's number, such as 17; `unionhall mail list` shows them")
}

#[derive(Args)]
pub(super) struct Feedback {
    /// The address that the report was sent to, where the mail server tells it (Postfix: ${recipient}).
    #[arg(long, value_name = "ADDRESS")]
    recipient: Option<String>,
    #[command(flatten)]
    store: StoreSettings,
    #[command(flatten)]
    secret: SecretSettings,
}

pub(super) fn run(command: MailCommand) -> anyhow::Result<()> {
    match command {
        MailCommand::List(task) => list(&task),
        MailCommand::Retry(task) => retry(&task),
        MailCommand::Release(task) => release(&task),
        MailCommand::Drop(task) => drop_held(&task),
        MailCommand::Feedback(task) => feedback(&task),
    }
}

fn list(task: &ListArgs) -> anyhow::Result<()> {
    let mails = ask(&task.store, outbox::ListMail)?;
    if task.json {
        return print_json(&Vec::from_iter(mails.iter().map(as_json)));
    }
    let headings = "ID      KIND            ASKED FOR             NEXT TRY               TRIES  LAST ERROR";
    print_table(&mails, "The outbox is empty.", headings, |mail| {
        let next = match (mail.given_up_at, mail.held_at) {
            (Some(_), _) => "given up".to_owned(),
            (None, Some(_)) => "held".to_owned(),
            (None, None) => mail.send_after.to_string(),
        };
        let (id, kind, asked, tries) = (mail.id.0, mail.kind.name(), mail.created_at.to_string(), mail.attempts);
        let error = mail.last_error.as_deref().unwrap_or("-");
        format!("{id:<7} {kind:<16}{asked:<22}{next:<22}{tries:>6}  {error}")
    })
}

/// A mail that waits, with its number, which the operator alone sees.
pub(super) fn as_json(mail: &WaitingMail) -> serde_json::Value {
    let mut document = json!(mail);
    document["id"] = mail.id.0.into();
    document
}

fn retry(task: &RetryMail) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let Some(id) = task.id else { return retry_failed(task, now) };
    let act = act("mail retry", format!("mail {id}"), now);
    if !change(&task.store, act, outbox::RetryMail(MailId(id), now))? {
        bail!("there is no mail {id} in the outbox; `unionhall mail list` shows what waits");
    }
    print_line(&format!("Mail {id} is tried again now."))
}

fn retry_failed(task: &RetryMail, now: Timestamp) -> anyhow::Result<()> {
    let act = |about| act("mail retry", about, now);
    let count = with_live_records(&task.store, async |operator| {
        Ok(operator.retry_failed_mail(act, task.to.clone(), now).await?)
    })?;
    print_line(&retried(count))
}

fn release(task: &HeldChoice) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let act = act("mail release", task.about(), now);
    print_line(&partner::released(change(&task.store, act, ReleaseHeld(task.which(), now))?))
}

fn drop_held(task: &HeldChoice) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let act = act("mail drop", task.about(), now);
    print_line(&partner::dropped(change(&task.store, act, DropHeld(task.which(), now))?))
}

fn feedback(task: &Feedback) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let mut report = Vec::new();
    let mut input = std::io::stdin().lock();
    input.by_ref().take(mime::LONGEST).read_to_end(&mut report).map_err(TryLater::because)?;
    // What is too long is read to its end all the same: a mail server takes a broken pipe for a failure.
    std::io::copy(&mut input, &mut std::io::sink()).map_err(TryLater::because)?;
    let noted = with_live_records(&task.store, async |operator| {
        let secret = secret::claim(&task.store, task.secret.given()?, &operator).await?.secret;
        match mime::read(&report, task.recipient.as_deref(), &TokenMaker::new(&secret), now) {
            Ok(report) => {
                let act = act("mail feedback", format!("{:?} of a mail", report.kind), now);
                Ok(Ok((report.kind, operator.audited(act).run(NoteReport { report, now }).await?)))
            }
            Err(why) => Ok(Err(why)),
        }
    });
    match noted.map_err(TryLater::because)? {
        Ok((ReportKind::HardBounce, ReportOutcome::Noted)) => {
            print_line("There is no such recipient; no mail goes there for 30 days.")
        }
        Ok((ReportKind::SoftBounce, ReportOutcome::Noted)) => {
            print_line("It was not delivered this time; that is counted.")
        }
        Ok((ReportKind::Complaint, ReportOutcome::Noted)) => print_line(
            "The recipient reported it as spam; no mail goes to that mailbox until its owner confirms one of our mails.",
        ),
        Ok((_, ReportOutcome::Repeated)) => print_line("This report was already known."),
        Ok((_, ReportOutcome::Unknown)) => print_line("The sign-up it is about no longer exists; nothing was changed."),
        Err(why) => print_line(&format!("Nothing was changed: {why}.")),
    }
}
