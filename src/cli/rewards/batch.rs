//! Paying: `unionhall rewards batch new` and `unionhall rewards batch settle`.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read};
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};

use super::{NewBatch, SettleBatch, with_rewards};
use crate::cli::audit::{NEEDS_ANOTHER, act};
use crate::cli::files::{UnfinishedFile, cannot_write, is_there, mistakes, put_in_place, read_text, replace};
use crate::cli::{print_aside, print_lines};
use crate::domain::figure::counted;
use crate::domain::reward::payout::PayoutRecord;
use crate::domain::reward::settlement::read_answer;
use crate::domain::time::Timestamp;
use crate::rewards::file::WrittenRows;
use crate::rewards::payout::{FindBatch, FindNextBatch};
use crate::rewards::{BatchRecord, NextBatch, PaidWithin, RewardAdmin, WhichBatch, numbered};

/// More payouts than anybody makes at once.
const LARGEST_ANSWER_KIB: u64 = 64 << 10;

/// Why a batch's file is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    New,
    /// It was begun before, and its file was never written.
    Unfinished,
    /// It was written before, and nothing new is due.
    NothingNew,
    Asked,
}

/// A batch's number.
pub(super) fn number(text: &str) -> Result<i64, &'static str> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or("write a batch's number, such as 3; `unionhall rewards list` shows those that are not settled")
}

pub(super) fn new(task: &NewBatch) -> anyhow::Result<()> {
    let path = &task.file;
    if path.as_os_str() == "-" {
        bail!("payouts are written to a file of their own; name one, such as payouts.csv");
    }
    let there = first_payout(path)?;
    // Before anything is put into a batch: whoever cannot write there is told first.
    let (unfinished, mut file) =
        UnfinishedFile::beside(path, &task.store.data, "payouts").with_context(|| cannot_write(path))?;
    let (lines, withheld) = with_rewards(&task.store, async |operator, now| {
        let command = "rewards batch new";
        let nothing = act(command, "no payout is left, so no file was written".to_owned(), now);
        let who = nothing.who.clone();
        let rewards = operator.audited(nothing).rewards();
        if let (Some(first), None) = (&there, task.batch) {
            check_name(&rewards, path, first).await?;
        }
        let Some((batch, cause)) = choose(&rewards, task.batch, &who, now).await? else {
            let nothing = "Nothing is left to pay, and no payout waits to be settled. No file was written.".to_owned();
            return Ok((vec![nothing], None));
        };
        let id = batch.id;
        if !rewards.close_batch(id, &who, now).await? {
            let made = format!("Batch {id} is made, by you: {}. {NEEDS_ANOTHER}", counted(batch.payouts, "payout"));
            return Ok((vec![made], None));
        }
        let written = rewards.write_file(id, &mut BufWriter::new(&mut file), there.as_deref()).await??;
        if written.rows == 0 {
            if cause == Cause::Unfinished || cause == Cause::New {
                rewards.note_written(id, now).await?;
            }
            let can = if written.withheld.is_empty() { "is left to be paid" } else { "can be in a file" };
            let mut lines = vec![format!("No payout of batch {id} {can}. No file was written.")];
            lines.extend(written.left_out_words());
            return Ok((lines, written.withheld_words()));
        }
        file.sync_all().with_context(|| cannot_write(path))?;
        match there {
            None => put_in_place(unfinished.path(), path).map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => {
                    anyhow!("{} was made meanwhile; give another name to write batch {id}", path.display())
                }
                _ => anyhow::Error::new(error).context(cannot_write(path)),
            })?,
            Some(_) if written.has_asked_for => replace(unfinished.path(), path).with_context(|| cannot_write(path))?,
            Some(_) => return Err(holds_another(path, Some(id))),
        }
        let what = format!("batch {id}, {}", written.words());
        operator.audited(act(command, what, now)).rewards().note_written(id, now).await?;
        Ok((report(path, &batch, cause, &written), written.withheld_words()))
    })?;
    print_lines(&lines)?;
    if let Some(withheld) = withheld {
        print_aside(&withheld);
        print_aside(
            "`unionhall members find ACCOUNT` shows the address. `unionhall rewards batch settle FILE` records that it was paid, or that it failed.",
        );
    }
    Ok(())
}

/// Refuses the name of a file that holds another batch than the one that comes into it, before anything is put into that.
async fn check_name(rewards: &RewardAdmin, path: &Path, first: &str) -> anyhow::Result<()> {
    let next = match rewards.ask(FindNextBatch).await? {
        NextBatch::New => return Err(holds_another(path, None)),
        NextBatch::Unwritten(id) => Some(id),
        NextBatch::NothingDue => rewards.ask(FindBatch(WhichBatch::NewestOut)).await?.map(|last| last.id),
    };
    ensure!(next.is_none() || rewards.batch_of(first).await? == next, holds_another(path, next));
    Ok(())
}

/// `batch` is none where it is not begun yet.
fn holds_another(path: &Path, batch: Option<i64>) -> anyhow::Error {
    let what = batch.map_or("a new batch".to_owned(), |id| format!("batch {id}"));
    anyhow!("{} holds another batch and is not overwritten; give another name to write {what}", path.display())
}

/// The batch whose file is to be written; none where nothing is to be paid.
async fn choose(
    rewards: &RewardAdmin,
    asked: Option<i64>,
    who: &str,
    now: Timestamp,
) -> anyhow::Result<Option<(BatchRecord, Cause)>> {
    if let Some(id) = asked {
        let Some(batch) = rewards.ask(FindBatch(WhichBatch::Numbered(id))).await? else {
            match rewards.ask(FindBatch(WhichBatch::Last)).await? {
                Some(last) => bail!("there is no batch {id}; the last one is {}", last.id),
                None => bail!("there is no batch {id}, and no other; `unionhall rewards batch new FILE` makes one"),
            }
        };
        if !batch.is_written {
            bail!(
                "batch {id} may not be complete yet, because its file was never written; `unionhall rewards batch new FILE` goes on with it"
            );
        }
        return Ok(Some((batch, Cause::Asked)));
    }
    if let Some(id) = rewards.make_batch(who, now).await? {
        let made = rewards.ask(FindBatch(WhichBatch::Numbered(id))).await?;
        let batch = made.context("the batch that was made is gone")?;
        if batch.payouts > 0 {
            let cause = if batch.created_at == now { Cause::New } else { Cause::Unfinished };
            return Ok(Some((batch, cause)));
        }
        // Everything went to what had been paid too much. Nobody is to go on with it.
        rewards.note_written(id, now).await?;
    }
    let last = rewards.ask(FindBatch(WhichBatch::NewestOut)).await?;
    Ok(last.map(|batch| (batch, Cause::NothingNew)))
}

/// The first external id of a batch's file that is there; none where nothing is.
fn first_payout(path: &Path) -> anyhow::Result<Option<String>> {
    if !is_there(path)? {
        let is_link = path.symlink_metadata().is_ok();
        ensure!(!is_link, "{} is a link to a file that is not there; give another name", path.display());
        return Ok(None);
    }
    let no_batch = || format!("{} already exists and is not the file of a batch; give another name", path.display());
    // Whoever opens a pipe waits for its other end.
    ensure!(path.is_file(), no_batch());
    let mut lines = String::new();
    // As long as two lines may be.
    let read = File::open(path).and_then(|file| {
        let mut file = BufReader::new(file.take(4096));
        file.read_line(&mut lines)?;
        file.read_line(&mut lines)
    });
    read.with_context(|| format!("cannot read {}", path.display()))?;
    let first = lines.strip_prefix(PayoutRecord::HEADER).and_then(|row| row.split(',').next());
    first.filter(|id| !id.is_empty()).map(|id| Some(id.to_owned())).with_context(no_batch)
}

fn report(path: &Path, batch: &BatchRecord, cause: Cause, written: &WrittenRows) -> Vec<String> {
    let (id, file) = (batch.id, path.display());
    let what = written.words();
    let mut lines = match cause {
        Cause::New => vec![format!("Batch {id} is in {file}: {what}.")],
        Cause::Unfinished => vec![
            format!("Batch {id}, begun at {} by another run, is in {file} now: {what}.", batch.created_at),
            "If its file was handed over before, make sure that nothing is paid twice: the ids are the same."
                .to_owned(),
            "What became due since then comes into the next batch.".to_owned(),
        ],
        Cause::NothingNew => vec![
            format!("Nothing new is due. What is not settled of batch {id} is in {file} again: {what}."),
            "Each has its external_id of before: make sure that nothing is paid twice.".to_owned(),
        ],
        Cause::Asked => vec![
            format!("What is not settled of batch {id} is in {file} again: {what}."),
            "Each has its external_id of before: make sure that nothing is paid twice.".to_owned(),
        ],
    };
    lines.extend(written.left_out_words());
    lines.push(
        "Give the file to the payment provider, then record its answer: `unionhall rewards batch settle FILE`."
            .to_owned(),
    );
    lines
}

pub(super) fn settle(task: &SettleBatch) -> anyhow::Result<()> {
    let (text, name) = read_text(&task.file, LARGEST_ANSWER_KIB)?;
    let refused = |wrong: &[(usize, String)]| mistakes(name, &numbered(wrong)).context("nothing was recorded");
    let answer = read_answer(&text);
    if answer.lines.is_empty() {
        return Err(refused(&answer.mistakes));
    }
    let (checked, settled) = with_rewards(&task.store, async |operator, now| {
        let within = PaidWithin { now, may_be_earlier: task.paid_earlier, allow: "give --paid-earlier" };
        let checked = operator.rewards().check_answer(answer, within).await?;
        if !checked.mistakes.is_empty() {
            return Err(refused(&checked.mistakes));
        }
        let act = act("rewards batch settle", checked.outcomes(), now);
        let who = act.who.clone();
        let settled = operator.audited(act).rewards().settle(&checked.settlements, &who, now).await?;
        Ok((checked, settled))
    })?;
    print_lines(&checked.words(name, &settled))
}
