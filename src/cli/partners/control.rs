//! What the operator does to a partner as a whole: suspend it, lift that, give it a mail budget of its own.

use anyhow::bail;
use clap::Args;

use super::{NamedPartner, find};
use crate::cli::audit::act;
use crate::cli::{print_aside, print_line, print_lines, remedy, with_live_records};
use crate::clock::Clock;
use crate::config::{StoreSettings, quoted};
use crate::domain::api_key::Mode;
use crate::domain::partner::MAX_MAILS_A_DAY;
use crate::domain::remedy::Remedy;
use crate::domain::time::Timestamp;
use crate::operator::partner;
use crate::partners::records::{ResumePartner, SetMailsADay, SuspendPartner};

#[derive(Args)]
pub(in crate::cli) struct SetMailBudget {
    /// The partner's name, as `partners list` shows it.
    name: String,
    /// Mails a day, from 1 to 1000000. `default`: UNIONHALL_KEY_MAILS_A_DAY and its reputation decide.
    #[arg(value_name = "N|default")]
    mails: MailsADay,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(in crate::cli) struct WithdrawOfPartner {
    /// The partner's name, as `partners list` shows it.
    name: String,
    /// Only what was signed up, or signed up again, from that day (2027-01-31) or moment (2027-01-31T18:00:00Z) on.
    #[arg(long, value_name = "DATE")]
    since: Option<Timestamp>,
    #[command(flatten)]
    store: StoreSettings,
}

/// A figure of the partner's own, or the general rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MailsADay(Option<u32>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write a number from 1 to {}, or default; `unionhall partners suspend` stops all mail of a partner",
    MAX_MAILS_A_DAY
)]
struct NotMailsADay;

impl std::str::FromStr for MailsADay {
    type Err = NotMailsADay;

    fn from_str(text: &str) -> Result<Self, NotMailsADay> {
        match text {
            "default" => Ok(Self(None)),
            text => match text.parse() {
                Ok(mails @ 1..=MAX_MAILS_A_DAY) => Ok(Self(Some(mails))),
                _ => Err(NotMailsADay),
            },
        }
    }
}

pub(super) fn suspend(task: &NamedPartner) -> anyhow::Result<()> {
    let (now, name) = (Clock::start().now().time, &task.name);
    let before = task.records.with(async |operator| {
        let partner = find(&operator, name).await?;
        let act = act("partners suspend", name.clone(), now);
        operator.audited(act).run(SuspendPartner(partner.id, now)).await?;
        Ok(partner.suspended_at)
    })?;
    let mode = task.records.mode();
    print_line(&partner::suspended(name, before, mode))?;
    if before.is_some() {
        return Ok(());
    }
    let resume = remedy::write(&Remedy::ResumePartner(name.clone()), mode);
    if mode == Mode::Test {
        return print_line(&format!("Its webhooks wait. {resume}."));
    }
    print_line(&format!("Its webhooks wait, and its mail that has not left is held. {resume}."))?;
    print_aside(&format!(
        "If it has test keys, they still work: `unionhall partners suspend {} --test` suspends them.",
        quoted(name)
    ));
    Ok(())
}

pub(super) fn resume(task: &NamedPartner) -> anyhow::Result<()> {
    let (now, name) = (Clock::start().now().time, &task.name);
    let (resumed, released) = task.records.with(async |operator| {
        let partner = find(&operator, name).await?;
        let act = act("partners resume", name.clone(), now);
        let resumed = operator.audited(act).run(ResumePartner(partner.id, now)).await?;
        // Also where it was lifted before: the mail of a command that was interrupted is still held.
        Ok((resumed, operator.partners().release_suspended(partner.id, now).await?))
    })?;
    print_line(&partner::resumed(name, resumed, task.records.mode()))?;
    print_lines(partner::waits_again(released).as_slice())
}

pub(super) fn set_mail_budget(task: &SetMailBudget) -> anyhow::Result<()> {
    let (now, name, MailsADay(mails)) = (Clock::start().now().time, &task.name, task.mails);
    let figure = mails.map_or_else(|| "default".to_owned(), |mails| mails.to_string());
    with_live_records(&task.store, async |operator| {
        let partner = find(&operator, name).await?;
        let act = act("partners mail-budget", format!("{name}: {figure}"), now);
        Ok(operator.audited(act).run(SetMailsADay(partner.id, mails)).await?)
    })?;
    print_line(&match mails {
        None => {
            format!("{name} has the general mail budget again: UNIONHALL_KEY_MAILS_A_DAY and its reputation decide.")
        }
        Some(_) => format!("{name} may cause {figure} mails a day, whatever its reputation; mail past that is held."),
    })?;
    print_line("Mail that is held stays held: `unionhall mail release --key ID` lets it go.")
}

pub(super) fn withdraw(task: &WithdrawOfPartner) -> anyhow::Result<()> {
    let (now, name) = (Clock::start().now().time, &task.name);
    let (since, about) = match task.since {
        Some(since) => (since, format!("{name} since {since}")),
        None => (Timestamp::from_millis(0), name.clone()),
    };
    let ended = with_live_records(&task.store, async |operator| {
        let partner = find(&operator, name).await?;
        let operator = operator.audited(act("partners withdraw", about, now));
        Ok(operator.withdraw_sign_ups_of_partner(partner.id, since, now).await?)
    })?;
    let Some(ended) = ended else {
        bail!(
            "a key of {name} still works and would sign up more people, so nothing was ended; first run `unionhall partners suspend {}`",
            quoted(name)
        );
    };
    print_line(&partner::withdrawn(ended))?;
    print_aside("Run this again if a key worked within the last minute: the service may take two seconds to notice.");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_number_or_the_default() {
        for (text, mails) in [("default", None), ("1", Some(1)), ("1000000", Some(1_000_000))] {
            assert_eq!(text.parse(), Ok(MailsADay(mails)));
        }
        for bad in ["", "0", "-1", "1000001", "1.5", "Default", "unlimited", "99999999999"] {
            assert_eq!(bad.parse::<MailsADay>(), Err(NotMailsADay), "{bad}");
        }
    }
}
