//! `unionhall demo`: the service at work on a union whose people are invented, with a calendar that can be moved.

mod deals;
pub(super) mod folder;
mod history;
mod negotiation;
mod orders;
mod partners;
mod parts;
mod people;
mod post;
mod presses;
mod printed;
mod receiver;
mod settings;
mod story;
mod time;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::{ArgMatches, Args, Subcommand};

use self::folder::DemoFolder;
use self::parts::ServiceParts;
use self::post::Post;
use self::printed::Told;
use self::receiver::Receiver;
use self::settings::{choose_address, settings, tell_ignored, write_catalog};
use super::serve::{self, OfOtherCommands};
use super::{AlreadyPrinted, ask, block_on, change, files, one_thread, open_store, print_aside, print_line};
use crate::clock::{self, Clock};
use crate::config::{Concealed, Records, ServeSettings, listen_address};
use crate::demonstration::{AskForTime, FindDemonstration, MarkDemonstration};
use crate::domain::campaign::LastDay;
use crate::domain::time::parse_span;
use crate::log::{Format, Level, Log};
use crate::mail::mailbox::MailboxFolder;
use crate::store::WRITE_BATCH;
use crate::store::migration::Prepare;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct DemoSettings {
    #[command(subcommand)]
    command: Option<DemoCommand>,

    /// The address to listen on, of this machine alone: 9000 or localhost:9000 [default: 127.0.0.1:8080, or any free port].
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    listen: Option<SocketAddr>,

    /// A folder to keep the demonstration in, to go on with it later [default: a temporary one, which is removed at the end].
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
}

#[derive(Subcommand)]
enum DemoCommand {
    /// Let time pass in a demonstration that runs: 1h, 10d, 30d. It never goes back.
    ///
    /// Everything that is due in an hour is done before the next one begins: mail, webhooks, steps by date, rewards, deletions.
    Advance(AdvanceArgs),
}

#[derive(Args)]
struct AdvanceArgs {
    /// How much time: 1h, 10d, 30d; a year at the most.
    #[arg(value_name = "TIME", value_parser = span)]
    by: Duration,

    /// The demonstration's folder [default: of the one that runs in a temporary folder].
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
}

fn span(text: &str) -> Result<Duration, String> {
    let year = Duration::from_secs(366 * 24 * 3600);
    parse_span(text)
        .filter(|span| !span.is_zero() && *span <= year)
        .ok_or_else(|| "write a time such as 1h, 10d or 30d, a year at the most".to_owned())
}

pub(super) fn run(task: &DemoSettings, others: OfOtherCommands) -> anyhow::Result<()> {
    if let Some(DemoCommand::Advance(task)) = &task.command {
        return advance(task);
    }
    tell_ignored();
    let kept = choose_address(task.listen)?;
    let listen = kept.local_addr()?;
    let folder = DemoFolder::open(task.data.as_deref())?;
    let told = Told::read(&folder.path)?;
    if told.is_none() {
        folder.clear()?;
        write_catalog(&folder.path)?;
    }
    let settings = settings(&folder.path, listen)?;
    let log = Log::start(Level::Off, Format::Text, Clock::start(), super::remedy::write, std::io::sink())?;
    let mut text = String::new();
    let prepared = block_on(&one_thread()?, async {
        text = prepare(&settings, &folder, told, &log).await?;
        Ok(())
    });
    log.close();
    prepared?;
    let passing = async {
        let clock = Clock::start();
        let log = Log::start(Level::Off, Format::Text, clock, super::remedy::write, std::io::sink())?;
        let transport = Arc::new(MailboxFolder::new(settings.store.data.join("mailbox")));
        let mut parts = ServiceParts::open(&settings, transport, &log, clock.now().time).await?;
        let receiver = Receiver::open(&settings.store.data).await?;
        tokio::select! {
            passed = time::pass(&mut parts, clock) => passed.context("time no longer passes in the demonstration"),
            never = receiver.run() => match never {},
        }
    };
    // The history took a while, and nobody else was to take the address.
    drop(kept);
    serve::run_beside(&settings, others, Some(text), Box::pin(passing))
}

/// Makes the union, if it is not there yet, and the links that are printed.
async fn prepare(
    settings: &ServeSettings,
    folder: &DemoFolder,
    told: Option<Told>,
    log: &Log,
) -> anyhow::Result<String> {
    if told.is_none() {
        let store = open_store(&settings.store, Prepare::Upgrade, WRITE_BATCH).await?;
        let is_marked = store.run(MarkDemonstration).await?;
        store.close().await?;
        ensure!(is_marked, "the records in {} are not a demonstration's", folder.path.display());
    }
    let receiver = Receiver::open(&settings.store.data).await?;
    let url = receiver.url.clone();
    let now = Clock::start().now().time;
    let post = Post::new(MailboxFolder::new(settings.store.data.join("mailbox")), now);
    let transport = Arc::<Post>::clone(&post);
    let mut parts = ServiceParts::open(settings, transport, log, now).await?;
    let told = match told {
        Some(told) => told,
        None => {
            let told = tokio::select! {
                told = history::tell(&mut parts, &post, settings, &url, now) => told?,
                never = receiver.run() => match never {},
            };
            told.keep(&folder.path)?;
            told
        }
    };
    let text = printed::text(&mut parts, settings, folder, &told, &url).await?;
    parts.close().await?;
    Ok(text)
}

fn advance(task: &AdvanceArgs) -> anyhow::Result<()> {
    let data = match &task.data {
        Some(data) => data.clone(),
        None => folder::find_running()?,
    };
    let shown = data.display();
    ensure!(
        folder::is_marked(&data),
        "{shown} is no demonstration's folder; the calendar of a real union cannot be moved"
    );
    ensure!(
        folder::is_running(&data)?,
        "no demonstration runs in {shown}; start it with `unionhall demo --data {shown}`"
    );
    let store = settings(&data, SocketAddr::from(([127, 0, 0, 1], 0)))?.store;
    set_calendar(&data)?;
    let act = super::audit::act("demo advance", crate::domain::time::show_span(task.by), Clock::start().now().time);
    let Some(wanted) = change(&store, act, AskForTime(task.by))? else { bail!("{shown} is no demonstration's folder") };
    loop {
        let Some(time) = ask(&store, FindDemonstration)? else { bail!("{shown} is no demonstration's folder") };
        if time.ahead >= wanted.until {
            clock::move_ahead(time.ahead);
            return print_line(&format!("Today is {}.", LastDay::of(Clock::start().now().time)));
        }
        if !folder::is_running(&data)? {
            print_aside("unionhall: the demonstration was ended; the rest of the time passes when it is started again");
            return Err(AlreadyPrinted.into());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Sets this process to the calendar of the demonstration whose folder a command works on, if it is one's.
pub(super) fn read_calendar(matches: &ArgMatches) -> anyhow::Result<()> {
    let mut matches = matches;
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    match matches.try_get_one::<PathBuf>("data").ok().flatten() {
        Some(folder) if folder::is_marked(folder) => {
            let elsewhere = matches
                .try_get_one::<Concealed>("store")
                .ok()
                .flatten()
                .is_some_and(|store| store.reveal() != "sqlite:")
                || matches.try_get_one::<PathBuf>("store_file").ok().flatten().is_some();
            ensure!(
                !elsewhere,
                "{} is a demonstration's folder, and its records are in it: leave --store, UNIONHALL_STORE and UNIONHALL_STORE_FILE out. Nothing \
                 was done",
                folder.display()
            );
            set_calendar(folder)
        }
        _ => Ok(()),
    }
}

fn set_calendar(data: &Path) -> anyhow::Result<()> {
    if !files::is_there(&data.join("unionhall.db"))? {
        return Ok(());
    }
    block_on(&one_thread()?, async {
        let records = Records::Sqlite(data.join("unionhall.db"));
        let store = super::open_records(&records, data, Prepare::Expect, WRITE_BATCH).await?;
        if let Some(time) = store.run(FindDemonstration).await? {
            clock::move_ahead(time.ahead);
        }
        Ok(store.close().await?)
    })
}
