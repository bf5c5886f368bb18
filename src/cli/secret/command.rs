//! `unionhall secret`: rotate the installation's secret, see its generations, end one, replace one that is lost.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use clap::{Args, Subcommand};

use super::watch::{LOOKS_EVERY, SecretWatch};
use super::{find, held, new_text};
use crate::cli::audit::act;
use crate::cli::files::{cannot_write, is_there, new_file_of, put_in_place, replace};
use crate::cli::{print_aside, print_line, print_table, with_live_records};
use crate::clock::Clock;
use crate::config::{Keyring, LAST_GENERATION, Records, SecretSettings, StoreSettings, quoted, read_secret, whole};
use crate::domain::secret::{Generation, SAYS_NO_FOR};
use crate::domain::time::{Timestamp, parse_span};
use crate::installation::{AddGeneration, CompareSecret, KnownGeneration, ListGenerations};
use crate::membership::tombstones::AreThereTombstonesOf;
use crate::operator::lost_secret::ReplaceSecret;
use crate::operator::{Claim, Operator};
use crate::partners::endpoints::{AreThereEndpointsOf, AskToRotate};
use crate::private_files::file_to_append;

/// When a rotation begins that every node reads from the same file: more than one look of a node away.
const SOON: Duration = LOOKS_EVERY.saturating_mul(2);

/// And one whose file is given to each node first.
const AFTER_HANDING_OUT: Duration = Duration::from_secs(15 * 60);

#[derive(Subcommand)]
pub(in crate::cli) enum SecretCommand {
    /// List the generations of the secret, and what still needs each.
    Status(SecretArgs),
    /// Give the installation a new secret. Referral links and codes never change; the old generation still reads what it made.
    ///
    /// The service may be running. Nodes take the new file by themselves within seconds, and begin to use it all at the same moment. With
    /// PostgreSQL the new file must be in its place on every node by then; `--in` sets the time. Interrupted at any moment, run it again.
    ///
    /// API keys do not derive from the secret, and stay as they are, also those issued on the operator's page. SECURITY.md lists what
    /// derives from it, and what a rotation does to each.
    Rotate(RotateSecret),
    /// End a generation that nothing needs any more; what it made no longer works.
    Retire(RetireGeneration),
    /// Make a new secret because the old one is lost, and go on with the records that there are.
    ///
    /// Stop the service on every node first, and look for a copy: a backup may hold it. Links mailed before no longer work, not even those
    /// that stop mail, and everyone is signed out. People who were erased are not recognized: they get other codes, and can count
    /// for a reward again. Webhook endpoints are disabled until their partners rotate the secret. Members keep their codes and links, and
    /// keys stay valid. Interrupted at any moment, run it again.
    Replace(ReplaceLost),
}

#[derive(Args)]
pub(in crate::cli) struct SecretArgs {
    #[command(flatten)]
    store: StoreSettings,
    #[command(flatten)]
    secret: SecretSettings,
}

#[derive(Args)]
pub(in crate::cli) struct RotateSecret {
    /// Others know the secret: what it made ends as soon as the new one begins. Only links that stop mail work for 30 more days.
    ///
    /// Everyone is signed out, pending sign-ups are mailed again at four a second, and partners are asked by mail to rotate the secrets of
    /// their webhook endpoints within 7 days.
    #[arg(long)]
    leaked: bool,

    /// When the new one begins: 30s, 15m, 1d [default: 10s for SQLite, 15m for PostgreSQL].
    #[arg(long = "in", value_name = "TIME", value_parser = span)]
    begins_in: Option<Duration>,

    /// Write the new secret file here instead of over the old one; put it in its place yourself.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,

    #[command(flatten)]
    shared: SecretArgs,
}

#[derive(Args)]
pub(in crate::cli) struct RetireGeneration {
    /// Its number, as `unionhall secret status` lists it.
    #[arg(value_name = "N", value_parser = whole::<u32>(1, LAST_GENERATION))]
    number: u32,
    #[command(flatten)]
    shared: SecretArgs,
}

#[derive(Args)]
pub(in crate::cli) struct ReplaceLost {
    /// Says that it is lost: no file, backup or node has it any more.
    #[arg(long, required = true)]
    lost: bool,
    #[command(flatten)]
    shared: SecretArgs,
}

fn span(text: &str) -> Result<Duration, String> {
    parse_span(text).ok_or_else(|| "write a time such as 30s, 15m or 1d".to_owned())
}

pub(in crate::cli) fn run(command: &SecretCommand) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    match command {
        SecretCommand::Status(task) => {
            with_live_records(&task.store, async |operator| status(task, &operator, now).await)
        }
        SecretCommand::Rotate(task) => {
            with_live_records(&task.shared.store, async |operator| rotate(task, &operator, now).await)
        }
        SecretCommand::Retire(task) => {
            with_live_records(&task.shared.store, async |operator| retire(task, &operator, now).await)
        }
        SecretCommand::Replace(task) => {
            with_live_records(&task.shared.store, async |operator| replace_lost(task, &operator, now).await)
        }
    }
}

impl SecretArgs {
    /// The secret of these records, whole.
    async fn keyring(&self, operator: &Operator) -> anyhow::Result<Keyring> {
        let Some(ring) = find(&self.store, self.secret.given()?)? else {
            return Err(super::none_found(&self.store, operator).await?);
        };
        match operator.ask(CompareSecret(held(&ring))).await? {
            Claim::Same => Ok(ring),
            Claim::First => bail!("nothing was made with the secret yet: start the service once, then try again"),
            Claim::Another => Err(super::another(&self.store)?),
            Claim::Lacks(generation) => Err(super::lacks(&generation)),
        }
    }

    fn file(&self) -> anyhow::Result<PathBuf> {
        let file = SecretWatch::file(&self.store, &self.secret);
        file.context("the secret is given as text, which nothing can write anew: give its file with --secret-file, or name one with --to")
    }

    fn is_postgres(&self) -> anyhow::Result<bool> {
        Ok(matches!(self.store.records()?, Records::Postgres(_)))
    }
}

async fn rotate(task: &RotateSecret, operator: &Operator, now: Timestamp) -> anyhow::Result<()> {
    let file = task.to.clone().map_or_else(|| task.shared.file(), Ok)?;
    let _alone = lock(&file)?;
    let known = operator.ask(ListGenerations).await?;
    let unfinished = unfinished(&file, &known)?;
    if unfinished.is_none()
        && let Some(ring) = written_before(task, &file, &known)?
    {
        print_aside(&format!("{} was written before. Nothing was changed.", file.display()));
        return report(task, &ring, &known_of(&ring, ring.newest(), now), &file);
    }
    let ring = match &unfinished {
        Some(ring) => ring.clone(),
        None => task.shared.keyring(operator).await?,
    };
    let is_missing = |generation: &&Generation| is_unknown(generation.number, &known);
    let goes_on = unfinished.is_some() || ring.generations().any(|generation| is_missing(&generation));
    let newest = known_of(&ring, ring.newest(), now);
    let ring = match goes_on {
        true => {
            ensure!(
                newest.leaked || !task.leaked,
                "a rotation without --leaked was interrupted: finish it with `unionhall secret rotate`, then say --leaked"
            );
            print_aside("An earlier rotation was interrupted. It goes on.");
            ring
        }
        // Who lost the terminal says it again, and wants no second one.
        false if ring.newest().begins_at.is_some_and(|at| at > now) && (newest.leaked || !task.leaked) => {
            print_aside(&format!(
                "Generation {} was made before, and has not begun. Nothing was changed.",
                newest.number
            ));
            return report(task, &ring, &newest, &file);
        }
        false => {
            ensure!(
                task.to.is_none() || !is_there(&file)?,
                "{} already exists; give a new name with --to. Nothing was changed",
                file.display()
            );
            let begins_in = match task.begins_in {
                Some(span) => span,
                None if task.shared.is_postgres()? => AFTER_HANDING_OUT,
                None => SOON,
            };
            // The file tells whole seconds.
            let begins_at = now.plus(begins_in).as_millis().saturating_add(999) / 1000 * 1000;
            let begins_at = Timestamp::from_millis(begins_at);
            let rotated = ring.rotated(&new_text()?, begins_at, task.leaked.then_some(now))?;
            write(&beside(&file), &rotated, &file, &task.shared.store.data)?;
            rotated
        }
    };
    // The records know it before the file changes: of two rotations at once, one is refused, and what its file held stays.
    for generation in ring.generations().filter(is_missing) {
        let added = known_of(&ring, generation, now);
        let about = format!("generation {}{}", added.number, if added.leaked { ", after a leak" } else { "" });
        if !operator.audited(act("secret rotate", about, now)).run(AddGeneration(added)).await? {
            std::fs::remove_file(beside(&file))?;
            bail!(
                "another rotation made generation {} at the same moment; this one changed nothing. `unionhall secret status` shows how it is",
                generation.number
            );
        }
    }
    if is_there(&beside(&file))? {
        // An interrupted run may have linked it already.
        let is_linked = task.to.is_some() && is_there(&file)? && read_secret(&file)?.text() == ring.text();
        match task.to.is_some() {
            // Two names of one file: to rename one to the other would leave both.
            true if is_linked => std::fs::remove_file(beside(&file)),
            true => put_in_place(&beside(&file), &file).and_then(|()| std::fs::remove_file(beside(&file))),
            false => replace(&beside(&file), &file),
        }
        .with_context(|| cannot_write(&file))?;
    }
    report(task, &ring, &known_of(&ring, ring.newest(), now), &file)
}

/// What a rotation that was interrupted before its file was in its place left beside it. One that the records do not know changed
/// nothing yet, and the next begins anew: its time may be over.
fn unfinished(file: &Path, known: &[KnownGeneration]) -> anyhow::Result<Option<Keyring>> {
    let beside = beside(file);
    if !is_there(&beside)? {
        return Ok(None);
    }
    let ring = read_secret(&beside)?;
    let newest = ring.newest();
    if known.iter().any(|known| known.number == newest.number && known.fingerprint == newest.fingerprint()) {
        return Ok(Some(ring));
    }
    std::fs::remove_file(&beside)?;
    Ok(None)
}

/// What an earlier run wrote with --to, if it is not in its place yet: perhaps all but its report was done.
fn written_before(task: &RotateSecret, file: &Path, known: &[KnownGeneration]) -> anyhow::Result<Option<Keyring>> {
    if task.to.is_none() || !is_there(file)? {
        return Ok(None);
    }
    // Another file is refused later.
    let Ok(ring) = read_secret(file) else { return Ok(None) };
    let is_newest = known
        .last()
        .is_some_and(|known| known.fingerprint == ring.newest().fingerprint() && (known.leaked || !task.leaked));
    let in_place = find(&task.shared.store, task.shared.secret.given()?)?;
    let is_in_place = in_place.is_some_and(|in_place| in_place.knows(&ring.newest().fingerprint()));
    Ok((is_newest && !is_in_place).then_some(ring))
}

fn known_of(ring: &Keyring, generation: &Generation, now: Timestamp) -> KnownGeneration {
    let before = ring.generations().rfind(|before| before.number < generation.number);
    KnownGeneration {
        number: generation.number,
        fingerprint: generation.fingerprint(),
        begins_at: generation.begins_at.unwrap_or(now),
        leaked: before.is_some_and(|before| before.leaked_at.is_some()),
        is_done: false,
    }
}

/// Where the new file lies until the records know of it.
fn beside(file: &Path) -> PathBuf {
    with_ending(file, ".rotated")
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Holds the file of the secret for this process alone.
fn lock(file: &Path) -> anyhow::Result<File> {
    let path = with_ending(file, ".lock");
    let lock = file_to_append(&path).with_context(|| cannot_write(&path))?;
    let free = lock.try_lock().is_ok();
    ensure!(free, "another command changes the secret right now; nothing was changed");
    Ok(lock)
}

/// Writes a file whole or not at all, with the owner and the rights of another, but nobody else may read it.
fn write(path: &Path, ring: &Keyring, like: &Path, data: &Path) -> anyhow::Result<()> {
    let text = ring.text();
    Keyring::parse(text.reveal()).context("the rotated secret could not be read back; nothing was changed")?;
    // Under the lock it is nobody else's: one that is there is left of a run that was killed, and holds secrets.
    let unfinished = with_ending(path, ".part");
    let write = || {
        if unfinished.exists() {
            std::fs::remove_file(&unfinished)?;
        }
        let mut file = new_file_of(&unfinished, data)?;
        file.write_all(text.reveal().as_bytes())?;
        file.write_all(b"\n")?;
        if let Ok(before) = std::fs::metadata(like) {
            file.set_permissions(Permissions::from_mode(before.permissions().mode() & 0o770))?;
            let own = file.metadata()?;
            if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
                chown(&unfinished, Some(before.uid()), Some(before.gid()))?;
            }
        }
        file.sync_all()?;
        replace(&unfinished, path)
    };
    let written = write();
    // Gone already, or never made.
    let _gone = std::fs::remove_file(&unfinished);
    written.with_context(|| format!("{}. Nothing was changed", cannot_write(path)))
}

fn report(task: &RotateSecret, ring: &Keyring, generation: &KnownGeneration, file: &Path) -> anyhow::Result<()> {
    let (number, at) = (generation.number, generation.begins_at);
    let flags = task.shared.store.as_flags();
    print_line(&format!(
        "Generation {number} of the secret begins at {at}. Referral codes and links stay as they are. API keys do not derive from the \
         secret, and stay valid."
    ))?;
    let older: Vec<_> =
        ring.generations().filter(|older| older.number < number).map(|older| older.number.to_string()).collect();
    match generation.leaked {
        false => print_line(&format!(
            "What older generations ({}) made works on until it expires. `unionhall secret status{flags}` says when one can be retired.",
            older.join(", ")
        ))?,
        true => print_line(&format!(
            "From then on everyone is signed out. Of the links mailed before, only those that stop mail work, for 30 days. The service \
             mails those who have not answered again, four a second, and asks the contacts of partners to rotate the secrets of their webhook \
             endpoints within 7 days. Write to partners without a contact yourself: `unionhall webhooks list{flags}` and `unionhall partners \
             list{flags}` show them."
        ))?,
    }
    let shown = quoted(&file.to_string_lossy());
    match task.shared.is_postgres()? || task.to.is_some() {
        true => print_line(&format!(
            "\nNext, before {at}: put {shown} in the place of the secret file on every node. Each takes it by itself within {} seconds. Keep \
             a copy in another place.",
            LOOKS_EVERY.as_secs()
        )),
        false => print_line(&format!("\nThe service takes it by itself. Keep a copy of {shown} in another place.")),
    }
}

/// Why a generation is still needed; none if it is not.
pub(super) async fn needs(
    operator: &Operator,
    ring: &Keyring,
    number: u32,
    now: Timestamp,
) -> anyhow::Result<Vec<String>> {
    let mut why = Vec::new();
    if is_unknown(number, &operator.ask(ListGenerations).await?) {
        let fix = "the records do not know it, for they were restored or a rotation was interrupted: `unionhall secret rotate` goes on with it";
        why.push(fix.to_owned());
    }
    let next = ring.generations().find(|generation| generation.number > number);
    let ended = next.and_then(|generation| generation.begins_at);
    match ended {
        None => {
            let begins_at =
                ring.generations().find(|generation| generation.number == number).and_then(|it| it.begins_at);
            why.push(match begins_at.filter(|at| *at > now) {
                Some(at) => format!("it makes everything new from {at} on"),
                None => "it makes everything new".to_owned(),
            });
            return Ok(why);
        }
        Some(at) if at > now => why.push(format!("it makes everything new until {at}")),
        Some(at) if at.plus(SAYS_NO_FOR) > now => {
            why.push(format!("links that it made can be used to stop mail until {}", at.plus(SAYS_NO_FOR)));
        }
        Some(_) => {}
    }
    if operator.ask(AreThereTombstonesOf(number)).await? {
        why.push("people who were erased are recognized by it".to_owned());
    }
    if operator.ask(AreThereEndpointsOf(number)).await? {
        why.push("secrets of webhook endpoints derive from it; each ends when its partner rotates it".to_owned());
    }
    Ok(why)
}

/// Whether the records were never told of a generation, or no longer know of it since they were restored.
pub(in crate::cli) fn is_unknown(number: u32, known: &[KnownGeneration]) -> bool {
    number > 1 && !known.iter().any(|known| known.number == number)
}

async fn status(task: &SecretArgs, operator: &Operator, now: Timestamp) -> anyhow::Result<()> {
    let ring = task.keyring(operator).await?;
    let mut rows = Vec::new();
    for generation in ring.generations() {
        let leaked = if generation.leaked_at.is_some() { "leaked; " } else { "" };
        let needs = needs(operator, &ring, generation.number, now).await?;
        let why = if needs.is_empty() { "nothing; it can be retired".to_owned() } else { needs.join("; ") };
        let begins = match generation.begins_at {
            Some(at) => at.to_string(),
            None if generation.number == 1 => "the first start".to_owned(),
            None => "after a loss".to_owned(),
        };
        rows.push(format!("{:<6}{begins:<26}{leaked}{why}", generation.number));
    }
    print_table(&rows, "", "N     BEGINS                    NEEDED BECAUSE", Clone::clone)
}

async fn retire(task: &RetireGeneration, operator: &Operator, now: Timestamp) -> anyhow::Result<()> {
    let file = task.shared.file()?;
    let _alone = lock(&file)?;
    let (ring, number) = (task.shared.keyring(operator).await?, task.number);
    let flags = task.shared.store.as_flags();
    if !ring.generations().any(|generation| generation.number == number) {
        let was_retired = ring.fingerprints().any(|(retired, _)| retired == number);
        ensure!(was_retired, "there is no generation {number}; `unionhall secret status{flags}` lists them");
        return print_line(&format!("Generation {number} was retired before. Nothing was changed."));
    }
    let needs = needs(operator, &ring, number, now).await?;
    ensure!(needs.is_empty(), "generation {number} is still needed: {}. Nothing was changed", needs.join("; "));
    let rest = ring.without(number).with_context(|| format!("generation {number} is the newest"))?;
    // Before the file: one that is killed in between is said again.
    operator.note(act("secret retire", format!("generation {number}"), now)).await?;
    write(&file, &rest, &file, &task.shared.store.data)?;
    print_line(&format!("Generation {number} is gone from {}. Referral codes stay as they are.", file.display()))?;
    if task.shared.is_postgres()? {
        print_line("\nNext: put this file in the place of the secret file on every node.")?;
    }
    Ok(())
}

async fn replace_lost(task: &ReplaceLost, operator: &Operator, now: Timestamp) -> anyhow::Result<()> {
    let file = task.shared.file()?;
    let _alone = lock(&file)?;
    let known = operator.ask(ListGenerations).await?;
    let read = || {
        read_secret(&file).map_err(|error| {
            anyhow!("{error:#}. If no copy is left, move this file away, and say this again. Nothing was changed")
        })
    };
    let found = if is_there(&file)? { Some(read()?) } else { None };
    if let Some(ring) = &found {
        match operator.ask(CompareSecret(held(ring))).await? {
            // Only what replaces a lost one is the first of its file and none of the first start.
            Claim::Same if ring.newest().begins_at.is_none() && ring.newest().number > 1 => {
                print_aside("The secret was replaced before. Nothing was changed.");
                // Those that rotated since are no longer among them.
                let again = AskToRotate { before: ring.newest().number, by: now };
                return report_loss(&file, operator.run_unaudited(again).await?);
            }
            Claim::Same => bail!(
                "the secret in {} is the one of these records, so it is not lost; `unionhall secret rotate` changes it. Nothing was changed",
                file.display()
            ),
            Claim::Lacks(generation) => bail!(
                "the secret in {} is of these records, and lacks generation {} of it, which `unionhall secret rotate` made: put that file in \
                 its place. If no node and no copy has that file, move this one away, and say this again. Nothing was changed",
                file.display(),
                generation.number
            ),
            Claim::First => bail!("nothing was made with a secret yet: start the service once. Nothing was changed"),
            Claim::Another => {}
        }
    }
    let number = known.iter().map(|generation| generation.number).max().unwrap_or(1) + 1;
    // One that an interrupted run wrote goes on.
    let ring = match found {
        Some(ring) if ring.newest().number == number => ring,
        Some(_) => bail!(
            "{} holds another secret than that of these records; if that one is lost, move this file away. Nothing was changed",
            file.display()
        ),
        None => {
            let ring = Keyring::begin(number, &new_text()?)?;
            write(&file, &ring, &file, &task.shared.store.data)?;
            ring
        }
    };
    let generation = KnownGeneration {
        number,
        fingerprint: ring.newest().fingerprint(),
        begins_at: now,
        leaked: true,
        is_done: false,
    };
    let act = act("secret replace", format!("generation {number}"), now);
    let endpoints = operator.audited(act).run(ReplaceSecret(generation)).await?;
    report_loss(&file, endpoints)
}

fn report_loss(file: &Path, endpoints: u64) -> anyhow::Result<()> {
    print_line(&format!("The records have a new secret, in {}.", file.display()))?;
    print_line(
        "What was lost with the old one: everyone is signed out. Links mailed before no longer work, not even those that stop mail. People \
         who were erased are not recognized when they come again: they get another referral code, and can count for a reward again. People \
         who asked for a referral link and never joined get another one. Members keep their codes and links.",
    )?;
    print_line("Those who have not answered are mailed again by the service, four a second.")?;
    print_line(&format!(
        "Webhook endpoints that are disabled, and whose partners have to rotate the secret and enable them: {endpoints}. Those with a contact are mailed."
    ))?;
    print_line(
        "The sandbox belongs to the lost secret, too: delete its database, and issue test keys anew.\n\nNext: give the file to every node, and \
         start the service again.",
    )
}
