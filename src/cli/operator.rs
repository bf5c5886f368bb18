//! `unionhall operator`

use std::net::SocketAddr;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

use super::audit::act;
use super::service::never_ran;
use super::terminal::time_or_dash;
use super::{ListArgs, ask, print_aside, print_json, print_line, print_table, with_live_records};
use crate::clock::Clock;
use crate::config::{StoreSettings, listen_address, role, web_address};
use crate::domain::email::EmailAddress;
use crate::domain::operator::{AddedOperator, MAX_OPERATORS, OperatorName, OperatorRecord, Role};
use crate::domain::secret::session::Nonce;
use crate::domain::text::did_you_mean;
use crate::domain::time::Timestamp;
use crate::domain::union::service::ServiceFacts;
use crate::installation::FindServiceFacts;
use crate::operator::accounts::{ChangeOperator, ChangedOperator};
use crate::operator::{Operator, accounts};

#[derive(Subcommand)]
pub(super) enum OperatorCommand {
    /// Add a person who may use the page /operator. Only a link to sign in with is printed to standard output.
    ///
    /// The link works once, within 15 minutes. With --email the page mails the next ones; `operator link` makes one here. The page is on
    /// once you add an operator: it shows figures, findings, partners, held mail and the audit log, and does what the commands do, under
    /// this name.
    Add(AddOperatorArgs),
    /// Make a new link to sign in with, for an operator; links made before no longer work.
    Link(NamedOperator),
    /// Change the role or the address of an operator. The role holds from their next click on.
    Change(ChangeOperatorArgs),
    /// Turn off the second factor of an operator who lost the phone and the recovery codes, and sign them out everywhere.
    ///
    /// Make sure that it is them who asks.
    ResetSecondFactor(OnlyNamed),
    /// List who may use the page, and in how many browsers each is signed in.
    List(ListArgs),
    /// Remove an operator: their sessions and links end at once. What they did stays in the audit log.
    Remove(OnlyNamed),
}

#[derive(Args)]
pub(super) struct AddOperatorArgs {
    /// Where links to sign in are mailed to, when the operator asks for one on the page.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    email: Option<EmailAddress>,
    /// What they may do on the page.
    ///
    /// look: see everything but what identifies a member. support: also people, partners and their keys, mail, pausing sign-ups. money: look,
    /// and rewards, hand-overs and settling. all: everything.
    #[arg(long, value_name = "ROLE", value_parser = role, default_value = "all")]
    role: Role,
    #[command(flatten)]
    named: NamedOperator,
}

#[derive(Args)]
pub(super) struct ChangeOperatorArgs {
    /// The name, as `operator list` shows it.
    name: OperatorName,
    /// The new address. Links that were mailed to the one before no longer work.
    #[arg(long, value_name = "ADDRESS", value_parser = address, required_unless_present = "role")]
    email: Option<EmailAddress>,
    /// The new role: look, support, money or all.
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Option<Role>,
    #[command(flatten)]
    store: StoreSettings,
}

fn address(text: &str) -> Result<EmailAddress, String> {
    EmailAddress::parse_any_length(text.trim())
        .map_err(|_| format!("\"{text}\" is not an email address; write one such as ana@union.example"))
}

#[derive(Args)]
pub(super) struct NamedOperator {
    /// A short name, such as ana. With UNIONHALL_OPERATOR_HEADER: exactly as the proxy sends it.
    name: OperatorName,
    /// Where the page is reached: the link begins with it [default: the running service's].
    #[arg(long, env = "UNIONHALL_BASE_URL", value_name = "URL", value_parser = web_address)]
    base_url: Option<String>,
    /// The address that the service listens on: the link begins with it if there is no base address and the service has never run.
    #[arg(
        long,
        env = "UNIONHALL_LISTEN",
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:8080",
        value_parser = listen_address
    )]
    listen: SocketAddr,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct OnlyNamed {
    /// The name, as `operator list` shows it.
    name: OperatorName,
    #[command(flatten)]
    store: StoreSettings,
}

pub(super) fn run(command: OperatorCommand) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    match command {
        OperatorCommand::Add(task) => add(&task, now),
        OperatorCommand::Link(task) => link(&task, now),
        OperatorCommand::Change(task) => change(&task, now),
        OperatorCommand::ResetSecondFactor(task) => reset_second_factor(&task, now),
        OperatorCommand::List(task) => list(&task, now),
        OperatorCommand::Remove(task) => remove(&task, now),
    }
}

fn add(task: &AddOperatorArgs, now: Timestamp) -> anyhow::Result<()> {
    let AddOperatorArgs { email, role, named: task } = task;
    let name = &task.name;
    let act = act("operator add", format!("{name}, role {}", role.name()), now);
    let ((added, token), kept) = with_live_records(&task.store, async |operator| {
        let added = operator.audited(act).add_operator(name, *role, email.clone(), now).await?;
        Ok((added, operator.ask(FindServiceFacts).await?))
    })?;
    match added {
        AddedOperator::Added => {}
        AddedOperator::Exists => bail!(
            "{name} was added before; `unionhall operator link {name}` makes a new link, `unionhall operator change {name}` changes role or address"
        ),
        AddedOperator::AddressTaken => bail!("{ADDRESS_TAKEN}, so nobody was added; give another address"),
        AddedOperator::Full => bail!(
            "there are {MAX_OPERATORS} operators already, so nobody was added; `unionhall operator remove NAME` removes one"
        ),
    }
    print_aside(&format!("{name} may use the operator's page from now on, with the role {}.", role.name()));
    print_link(task, kept, &token)
}

fn link(task: &NamedOperator, now: Timestamp) -> anyhow::Result<()> {
    let name = &task.name;
    let act = act("operator link", name.to_string(), now);
    let (token, kept) = with_live_records(&task.store, async |operator| {
        match operator.audited(act).link_operator(name, now).await? {
            Some(token) => Ok((token, operator.ask(FindServiceFacts).await?)),
            None => Err(nobody(&operator, name, now).await?),
        }
    })?;
    print_aside(&format!("Links that were made for {name} before no longer work."));
    print_link(task, kept, &token)
}

/// Shows a link, this once.
fn print_link(task: &NamedOperator, kept: Option<ServiceFacts>, token: &Nonce) -> anyhow::Result<()> {
    let base = match (&task.base_url, kept) {
        (Some(given), _) => given.clone(),
        (None, Some(kept)) => kept.base_url,
        (None, None) => {
            print_aside(&never_ran("the link is"));
            format!("http://{}", task.listen)
        }
    };
    print_aside("Open this link within 15 minutes and press the button there. It works once; who has it can sign in:");
    let unseen = || format!("the link could not be shown; `unionhall operator link {}` makes another", task.name);
    print_line(&format!("{base}/operator/enter/{}", token.as_str())).with_context(unseen)
}

const ADDRESS_TAKEN: &str = "another operator has that address";

fn change(task: &ChangeOperatorArgs, now: Timestamp) -> anyhow::Result<()> {
    let ChangeOperatorArgs { name, email, role, store } = task;
    let what = [role.map(|role| format!("role {}", role.name())), email.as_ref().map(|_| "address".to_owned())];
    let about = Vec::from_iter([Some(name.to_string())].into_iter().chain(what).flatten()).join(", ");
    let act = act("operator change", about, now);
    with_live_records(store, async |operator| {
        let change = ChangeOperator { name: name.clone(), role: *role, email: email.clone() };
        match operator.audited(act).run(change).await? {
            ChangedOperator::Done => Ok(()),
            ChangedOperator::Unknown => Err(nobody(&operator, name, now).await?),
            ChangedOperator::AddressTaken => bail!("{ADDRESS_TAKEN}, so nothing was changed; give another"),
        }
    })?;
    if let Some(role) = role {
        print_line(&format!("{name} has the role {} from the next click on.", role.name()))?;
    }
    match email {
        Some(_) => print_line(&format!("Links for {name} go to the new address. Those mailed before no longer work.")),
        None => Ok(()),
    }
}

fn reset_second_factor(task: &OnlyNamed, now: Timestamp) -> anyhow::Result<()> {
    let name = &task.name;
    let act = act("operator reset-second-factor", name.to_string(), now);
    with_live_records(&task.store, async |operator| match operator.audited(act).reset_second_factor(name).await? {
        ChangedOperator::Done | ChangedOperator::AddressTaken => Ok(()),
        ChangedOperator::Unknown => Err(nobody(&operator, name, now).await?),
    })?;
    print_line(&format!("{name} has no second factor and is signed out everywhere. A link signs them in."))
}

fn list(task: &ListArgs, now: Timestamp) -> anyhow::Result<()> {
    let all = ask(&task.store, accounts::ListOperators(now))?;
    if task.json {
        return print_json(&all);
    }
    let none = "Nobody yet, so there is no page /operator. `unionhall operator add NAME` adds somebody.";
    let headings = "ROLE     2ND FACTOR  LAST SIGN-IN          LINK WORKS UNTIL      SESSIONS  NAME";
    print_table(&all, none, headings, |operator| {
        let OperatorRecord { name, role, email, second_factor, signed_in_at, link_until, sessions, .. } = operator;
        let (signed_in, link) = (time_or_dash(*signed_in_at), time_or_dash(*link_until));
        let (role, factor) = (role.name(), if *second_factor { "on" } else { "off" });
        let email = email.as_ref().map(|email| format!(" <{email}>")).unwrap_or_default();
        format!("{role:<9}{factor:<12}{signed_in:<22}{link:<22}{sessions:>8}  {name}{email}")
    })
}

fn remove(task: &OnlyNamed, now: Timestamp) -> anyhow::Result<()> {
    let name = &task.name;
    let act = act("operator remove", name.to_string(), now);
    let last = with_live_records(&task.store, async |operator| {
        match operator.audited(act).run(accounts::RemoveOperator(name.clone())).await? {
            true => Ok(operator.ask(accounts::ListOperators(now)).await?.is_empty()),
            false => Err(nobody(&operator, name, now).await?),
        }
    })?;
    print_line(&format!("{name} is removed and signed out everywhere."))?;
    match last {
        true => print_line("Nobody is left, so the page /operator is off: within two seconds it answers 404."),
        false => Ok(()),
    }
}

/// There is no operator of that name.
async fn nobody(operator: &Operator, name: &OperatorName, now: Timestamp) -> anyhow::Result<anyhow::Error> {
    let all = operator.ask(accounts::ListOperators(now)).await?;
    let near = did_you_mean(name.as_str(), all.iter().map(|known| known.name.as_str()), str::to_lowercase);
    Ok(anyhow::anyhow!("there is no operator called {name};{near} `unionhall operator list` shows them"))
}
