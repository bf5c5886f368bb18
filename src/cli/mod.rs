//! The commands. The only layer that prints to a terminal and ends the process.

mod audit;
mod backup;
mod campaigns;
mod catalog;
mod command_line;
mod demo;
mod doctor;
mod files;
mod findings;
mod health;
mod keys;
mod mail;
mod mcp;
mod members;
mod notify;
mod openapi;
mod operator;
mod partners;
pub mod remedy;
mod rewards;
mod sandbox_records;
mod secret;
mod serve;
mod service;
mod settings;
mod shell;
mod signups;
mod stats;
mod terminal;
mod transfer;

use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use tokio::runtime::Runtime;

pub use self::command_line::variables;
use self::settings::secret_flags;
use self::terminal::{print_aside, print_json, print_line, print_lines, print_row, print_table};
use crate::cli::sandbox_records::{SandboxRecords, find_sandbox, make_sandbox};
use crate::cli::serve::OfOtherCommands;
use crate::config::{Records, ServeSettings, StoreSettings, UnionSettings};
use crate::domain::api_key::Mode;
use crate::operator::{Act, Operator};
use crate::store::migration::{MIGRATIONS, Prepare};
use crate::store::postgres::PostgresStore;
use crate::store::sql::Unit;
use crate::store::sqlite::SqliteStore;
use crate::store::{Store, WRITE_BATCH};

/// The public and partner API of a consumer union.
///
/// Members pool their demand, an AI negotiates better prices on household bills; assistants and partners use this
/// service to describe the union truthfully and to help people join it, with their consent.
///
/// Start with `unionhall serve`: it needs no settings and keeps everything in ./data.
#[derive(Parser)]
#[command(name = "unionhall", version = env!("UNIONHALL_VERSION"), max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Every setting is a flag and a variable; `unionhall COMMAND --help` lists them.")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service until it is told to stop (SIGTERM or Ctrl-C).
    Serve(Box<ServeSettings>),
    /// Show the service at work in a minute: a union with invented people, bids, deals and rewards, and a calendar that can be moved.
    ///
    /// It is the real service on this machine alone, in a folder of its own. It prints links to click and lines to paste. No mail is
    /// sent, no setting is read from variables, and nothing is ever sent to another machine. On every page is a strip to let a day or a
    /// month pass; `demo advance 30d` does the same. Ctrl-C ends it.
    Demo(demo::DemoSettings),
    /// Check what keeps the service from working well, and say how to fix it; changes no setting and no record.
    ///
    /// Give it the settings of `serve` and run it as the user that the service runs as; the service may be running. Each check
    /// is a line, ok, warn or fail, with the fix below it. Exits with 1 if a check failed, otherwise with 0.
    Doctor(Box<doctor::DoctorSettings>),
    /// Ask the running service for /healthz, at the address of these settings; exits with 1 if it does not answer.
    ///
    /// For the health check of a container or a supervisor. It takes at most a few seconds, and asks no database.
    Health(Box<ServeSettings>),
    /// Show every setting of `serve` that is in force, its value, and where it comes from; needs no store, shows no secret.
    ///
    /// Give it the flags and variables of `serve`. Variables that look like settings but are not are named.
    Settings(Box<settings::ShowSettings>),
    /// Issue, list, revoke and rotate the keys of partners; the running service notices within two seconds.
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// See who the partners are, set a contact and a mail budget for each, and suspend one.
    #[command(subcommand)]
    Partners(partners::PartnersCommand),
    /// Add, test and repair the webhook endpoints that tell partners what happens to their sign-ups.
    #[command(subcommand)]
    Webhooks(partners::webhooks::WebhooksCommand),
    /// See who the members are and why someone gets no mail, end memberships, and erase people.
    #[command(subcommand)]
    Members(members::MembersCommand),
    /// Run campaigns: ask members who wants to be in, publish the offer, and take each step.
    ///
    /// A campaign is one category, some states or all, and one offer: draft, gathering, negotiating, offered, active, closed; or
    /// cancelled. Every step is recorded with who took it and when. `campaigns list` shows which steps happen by date.
    #[command(subcommand)]
    Campaigns(campaigns::CampaignsCommand),
    /// See what members earned by referring others, review it before paying, pay it, and remove fraud.
    ///
    /// A referrer earns a reward for each full group of members who take part in one campaign: `campaigns show` has its terms. Groups are
    /// formed by the service; these commands bring them up to date first. Money is kept in a ledger that only grows: a mistake is reversed,
    /// never edited.
    #[command(subcommand)]
    Rewards(rewards::RewardsCommand),
    /// Show what happened to the sign-ups: by day, partner, state, category or referrer.
    Stats(stats::ShowStats),
    /// See waiting mail, send or delete held mail, and read bounces and complaints.
    #[command(subcommand)]
    Mail(mail::MailCommand),
    /// Rotate the installation's secret, which links, sessions and webhook secrets derive from, and see its generations.
    #[command(subcommand)]
    Secret(secret::command::SecretCommand),
    /// Turn sign-ups off and on, and see how much mail each source causes; the public data stays available.
    #[command(subcommand)]
    Signups(signups::SignupsCommand),
    /// Show who changed what, and when: every command that changes something is recorded here, and nothing is ever removed.
    Audit(audit::ShowAudit),
    /// See what `serve --notify` signs with, and try it out: it sends what needs attention to a web address or by mail.
    #[command(subcommand)]
    Notify(notify::NotifyCommand),
    /// Say who may use the page /operator, in a browser: add, list and remove people, and make their links to sign in with.
    #[command(subcommand)]
    Operator(operator::OperatorCommand),
    /// Move all records to another store: from SQLite to PostgreSQL when one machine is not enough, or back.
    ///
    /// Stop the service first, or its sign-ups fail meanwhile. Everything is copied, read back and compared; only then is the
    /// copy made valid, and the source refuses every change from then on. Interrupted at any moment nothing is lost: run it
    /// again. The service goes on with the secret it had. The sandbox stays behind: issue test keys anew.
    Move(transfer::MoveSettings),
    /// Write all records and the secret into one file, beside the running service; for SQLite.
    ///
    /// The file holds one moment of the records, and nothing that was deleted before it. The service is not held up, and
    /// loses nothing. The file is checked, whole and on the disk when it appears under its name; nothing is overwritten. While
    /// it is made, its folder needs room for twice the database. Without --recipient, anyone who reads the file reads every address, and
    /// with the secret can make everyone's links: only its owner can read it, and it should stay so.
    ///
    /// Not in it: settings, the catalog, certificates, the log of erasures (the file `erasures` in the data folder; copy it
    /// to another machine as often as you can), the sandbox, mail that a development server wrote to files.
    ///
    /// With --to and --every it makes such files again and again, and deletes the oldest: a copy that is a few minutes old.
    ///
    /// Records in PostgreSQL are backed up with its own tools; the refusal says how.
    Backup(backup::BackupSettings),
    /// Restore a backup into a data folder that has no records, ready to be served again.
    ///
    /// A file that is damaged, longer or shorter than it was, or of a newer version is refused, and so is a folder with records;
    /// then nothing is left behind. Interrupted at any moment it leaves nothing that a service would take for records: run it
    /// again. All of the database is read and checked before it is put in its place.
    ///
    /// The ids of new sign-ups begin far ahead, so that no link that was mailed after the backup opens another person's
    /// sign-up. Mail that waited is held, because it may have been sent since: decide with `unionhall mail release` or `drop`. People who
    /// were erased since the backup, as the log of erasures tells, are erased again, and keys that were revoked since are revoked again.
    /// What the records cannot know is listed at the end.
    ///
    /// An encrypted backup needs an identity that opens it: --identity. A backup without the secret needs it from --secret-file, UNIONHALL_SECRET or the file `secret` of the data folder.
    Restore(backup::RestoreSettings),
    /// Make records ready to serve after a restore of PostgreSQL with its own tools.
    ///
    /// Run it once after `pg_restore` and before the first start; the service refuses such records until then. Run it also after
    /// a recovery to a point in time, which nothing in the records can tell. A standby that was promoted needs none of this.
    ///
    /// People who were erased since the copy was made, as the logs of erasures tell, are erased again, and keys that were revoked since are
    /// revoked again. The ids of new sign-ups begin far
    /// ahead. Everyone is signed out of their own page, and sign-in links stop working. Mail that waited is held, because it may have been sent
    /// since: decide with `unionhall mail release` or `drop`. What the records cannot know is listed at the end. If it is
    /// interrupted, run it again.
    Resume(backup::ResumeSettings),
    /// Speak MCP over standard input and output, for an assistant on this machine; works on the service's own records.
    Mcp(Box<mcp::McpSettings>),
    /// Speak MCP over standard input and output to a negotiator on this machine: an assistant that negotiates with suppliers.
    ///
    /// Five tools: listCampaigns, getCampaign, recordRound, recordBid, proposeOffer. None reads an address of a member's or publishes
    /// anything: `campaigns rounds` and `campaigns bids` show what was recorded, and `campaigns offer` publishes what was proposed. Works on
    /// the service's own records, without a key. The audit log says what it read and recorded.
    Negotiator(Box<mcp::negotiator::NegotiatorSettings>),
    /// Check a catalog before it is served.
    #[command(subcommand)]
    Catalog(catalog::CatalogCommand),
    /// Print the OpenAPI document; needs no store and no running service.
    Openapi(Box<UnionSettings>),
    /// Print what a shell needs to complete these commands: `unionhall completions bash`.
    Completions {
        /// The shell to complete them in.
        shell: shell::CompletedShell,
    },
    /// Print the manual, a man page: `unionhall manual | sudo install -D -m 0644 /dev/stdin /usr/local/share/man/man1/unionhall.1`.
    Manual,
}

/// A list of one kind of records.
#[derive(Args)]
struct ListArgs {
    /// As a JSON array, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreSettings,
}

/// Every command and every setting, as clap knows them: tests and documents read their lists here.
pub fn command_line() -> clap::Command {
    secret_flags::say_so(CommandLine::command())
}

/// Reads the command line. A variable that is set to nothing counts as not set: compose files write those. What is wrong
/// is told in one line.
fn parse() -> Result<(CommandLine, ArgMatches), ExitCode> {
    let mut command = command_line::without_empty_variables(command_line());
    if std::env::args_os().nth(1).is_some_and(|word| word == "doctor") {
        // It goes on where the parser would refuse a variable.
        command = doctor::without_refused(command).0;
    }
    let parsed = command.try_get_matches().and_then(|matches| Ok((CommandLine::from_arg_matches(&matches)?, matches)));
    parsed.map_err(|error| {
        if !error.use_stderr() {
            // Help and version; a reader who has gone, such as `head`, is no error.
            let _gone = error.print();
            return ExitCode::SUCCESS;
        }
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            let _gone = error.render().to_string().lines().try_for_each(print_line);
            return ExitCode::SUCCESS;
        }
        print_aside(&format!("unionhall: {} (--help explains)", command_line::in_one_line(&error)));
        ExitCode::from(2)
    })
}

/// Runs the command line and says how it went.
pub fn main() -> ExitCode {
    secret_flags::hide(CommandLine::command);
    let (line, matches) = match parse() {
        Ok(line) => line,
        Err(refused) => return refused,
    };
    if let Err(error) = demo::read_calendar(&matches) {
        print_aside(&format!("unionhall: {error:#}{}", remedy::end(&*error)));
        return ExitCode::FAILURE;
    }
    let done = match line.command {
        Command::Serve(settings) => serve::run(&settings, OF_OTHER_COMMANDS),
        Command::Demo(settings) => demo::run(&settings, OF_OTHER_COMMANDS),
        Command::Doctor(settings) => doctor::run(&settings),
        Command::Health(settings) => health::run(&settings),
        Command::Settings(task) => settings::run(&task, &matches),
        Command::Keys(command) => keys::run(command),
        Command::Partners(command) => partners::run(command),
        Command::Webhooks(command) => partners::webhooks::run(command),
        Command::Members(command) => members::run(command),
        Command::Campaigns(command) => campaigns::run(&command),
        Command::Rewards(command) => rewards::run(&command),
        Command::Stats(task) => stats::run(&task),
        Command::Mail(command) => mail::run(command),
        Command::Secret(command) => secret::command::run(&command),
        Command::Signups(command) => signups::run(command),
        Command::Audit(task) => audit::run(&task),
        Command::Notify(command) => notify::run(command),
        Command::Operator(command) => operator::run(command),
        Command::Move(settings) => transfer::run(&settings),
        Command::Backup(settings) => backup::run(&settings),
        Command::Restore(settings) => backup::restore(&settings),
        Command::Resume(settings) => backup::resume(&settings),
        Command::Mcp(settings) => mcp::run(&settings, is_given(&matches, "name")),
        Command::Negotiator(settings) => mcp::negotiator::run(&settings, is_given(&matches, "name")),
        Command::Catalog(command) => catalog::run(&command),
        Command::Openapi(settings) => openapi::run(&settings),
        Command::Completions { shell } => shell::complete(shell),
        Command::Manual => shell::manual(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is::<AlreadyPrinted>() {
                print_aside(&format!("unionhall: {error:#}{}", remedy::end(&*error)));
            }
            if error.is::<TryLater>() { ExitCode::from(TryLater::CODE) } else { ExitCode::FAILURE }
        }
    }
}

/// Whether a setting of the command was given, by a flag or a variable.
fn is_given(matches: &ArgMatches, id: &str) -> bool {
    let source = matches.subcommand().and_then(|(_, matches)| matches.value_source(id));
    source.is_some_and(|source| source != ValueSource::DefaultValue)
}

/// A failure that passes: whoever called keeps what it has and calls again.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}; try again later")]
struct TryLater(anyhow::Error);

impl TryLater {
    /// What mail servers understand as "keep it" (EX_TEMPFAIL of sysexits.h).
    const CODE: u8 = 75;

    fn because(error: impl Into<anyhow::Error>) -> Self {
        Self(error.into())
    }
}

/// A failure that was printed where it happened.
#[derive(Debug, thiserror::Error)]
#[error("it was printed")]
struct AlreadyPrinted;

/// Opens the records; `batch` is how many writes may share a commit.
const OF_OTHER_COMMANDS: OfOtherCommands = OfOtherCommands { look: doctor::of_this_machine, backups: backup::maker };

async fn open_store(settings: &StoreSettings, prepare: Prepare, batch: usize) -> anyhow::Result<Store> {
    open_records(&settings.records()?, &settings.data, prepare, batch).await
}

async fn open_records(records: &Records, data: &Path, prepare: Prepare, batch: usize) -> anyhow::Result<Store> {
    let database = match records {
        Records::Sqlite(file) => file,
        Records::Postgres(address) => {
            let store = PostgresStore::open((**address).clone(), prepare, batch).await;
            return Ok(Store::new(Arc::new(store.with_context(|| address.to_string())?)));
        }
    };
    if prepare != Prepare::Expect {
        files::make_private_folder(data)?;
        files::make_database_file(database)?;
    } else if !files::is_there(database)? {
        return Err(no_records(database));
    }
    Ok(Store::new(Arc::new(SqliteStore::open_with(database, prepare, batch, MIGRATIONS)?)))
}

fn no_records(database: &Path) -> anyhow::Error {
    let shown = database.display();
    anyhow!("there are no records at {shown}; give the service's data folder with --data or UNIONHALL_DATA")
}

/// Asks the live records one thing.
fn ask<Q: Unit>(settings: &StoreSettings, query: Q) -> anyhow::Result<Q::Done>
where
    Q::Done: Unpin,
{
    with_live_records(settings, async |operator| Ok(operator.ask(query).await?))
}

/// Changes one thing in the live records, which is written down as that act.
fn change<U: Unit>(settings: &StoreSettings, act: Act, unit: U) -> anyhow::Result<U::Done>
where
    U::Done: Unpin,
{
    with_live_records(settings, async |operator| Ok(operator.audited(act).run(unit).await?))
}

/// Runs one piece of work on the live records and closes them. Commands work beside a running service: the database keeps
/// them apart.
fn with_live_records<T>(
    settings: &StoreSettings,
    work: impl AsyncFnOnce(Operator) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    with_records(settings, Mode::Live, Prepare::Expect, work)
}

/// The same on the live records or the sandbox's. Those of the sandbox come into being only where they are made on purpose.
fn with_records<T>(
    settings: &StoreSettings,
    mode: Mode,
    prepare: Prepare,
    work: impl AsyncFnOnce(Operator) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut done = None;
    let work = |operator| -> CommandFuture<'_> {
        Box::pin(async {
            done = Some(work(operator).await?);
            Ok(())
        })
    };
    run_on_records(settings, mode, prepare, Box::new(work))?;
    done.context("the command was not run")
}

/// What a command does, without its type: everything around it is compiled once and not for each command.
type CommandFuture<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

fn run_on_records<'a>(
    settings: &StoreSettings,
    mode: Mode,
    prepare: Prepare,
    work: Box<dyn FnOnce(Operator) -> CommandFuture<'a> + 'a>,
) -> anyhow::Result<()> {
    block_on(&one_thread()?, async {
        let live = settings.records()?;
        let records = match (mode, prepare) {
            (Mode::Live, _) => live,
            (Mode::Test, Prepare::Make) => make_sandbox(&live).await?,
            (Mode::Test, _) => match find_sandbox(&live).await? {
                SandboxRecords { records, are_there: true } => records,
                SandboxRecords { .. } => {
                    bail!("there is no sandbox yet; `unionhall keys issue NAME --test` makes it")
                }
            },
        };
        let store = open_records(&records, &settings.data, prepare, WRITE_BATCH).await?;
        let done = work(Operator::new(store.clone(), mode)).await;
        store.close().await?;
        done
    })
}

fn one_thread() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// The one place that blocks on the future of a command.
fn block_on<'a>(runtime: &Runtime, work: impl Future<Output = anyhow::Result<()>> + 'a) -> anyhow::Result<()> {
    let work: CommandFuture<'a> = Box::pin(work);
    runtime.block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        CommandLine::command().debug_assert();
    }
}
