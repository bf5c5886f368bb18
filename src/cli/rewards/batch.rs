//! Paying: `unionhall rewards batch new` and `unionhall rewards batch settle`.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use super::{NewBatch, SettleBatch, with_rewards};
use crate::cli::audit::act;
use crate::cli::files::{beside, is_there, mistakes, new_file_of, put_in_place, read_text, replace};
use crate::cli::print_line;
use crate::domain::figure::{counted, money};
use crate::domain::reward::payout::{PayoutRecord, PayoutState, read_settlements};
use crate::domain::time::Timestamp;
use crate::rewards::{BatchRecord, FileSettled, RewardAdmin};

/// Batches that are looked through for one that is not settled.
const LAST_BATCHES: u32 = 20;

/// More payouts than anybody makes at once.
const LARGEST_ANSWER_KIB: u64 = 64 << 10;

/// Why a batch's file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    New,
    /// It was begun before, and its file was never written.
    Unfinished,
    /// It was written before, and nothing new is due.
    NothingNew,
    Asked,
}

/// What a batch's file holds.
#[derive(Debug, Default)]
struct WrittenRows {
    rows: u64,
    cents: i64,
    /// The ids of those whose member was erased: without an address nobody can be paid.
    left_out: Vec<String>,
    /// Whether the file that is there begins with a payout of this batch.
    replaces: bool,
}

pub(super) fn new(task: &NewBatch) -> anyhow::Result<()> {
    let path = &task.file;
    if path.as_os_str() == "-" {
        bail!("payouts are written to a file of their own; name one, such as payouts.csv");
    }
    let there = first_payout(path)?;
    // Before anything is put into a batch: whoever cannot write there is told first.
    let unfinished = UnfinishedFile::beside(path);
    let cannot_write = || format!("cannot write {}; let this user write there, or give another place", path.display());
    let mut file = new_file_of(&unfinished.0, &task.store.data).with_context(cannot_write)?;
    let lines = with_rewards(&task.store, async |operator, now| {
        let command = "rewards batch new";
        let rewards = operator.rewards();
        let Some((batch, cause)) = choose(&rewards, task.batch, &act(command, String::new(), now).who, now).await?
        else {
            return Ok(vec![
                "Nothing is left to pay, and no payout waits to be settled. No file was written.".to_owned(),
            ]);
        };
        let id = batch.id;
        rewards.close_batch(id, now).await?;
        let written = write(&rewards, id, &mut file, there.as_deref()).await?;
        if written.rows == 0 {
            if cause == Cause::Unfinished || cause == Cause::New {
                rewards.note_written(id, now).await?;
            }
            let mut lines = vec![format!("No payout of batch {id} is left to be paid. No file was written.")];
            lines.extend(left_out(&written));
            return Ok(lines);
        }
        file.sync_all().with_context(cannot_write)?;
        match there {
            None => put_in_place(&unfinished.0, path).with_context(cannot_write)?,
            Some(_) if written.replaces => replace(&unfinished.0, path).with_context(cannot_write)?,
            Some(_) => bail!(
                "{} contains another batch and is not overwritten; give another name to write batch {id}",
                path.display()
            ),
        }
        let what = format!("batch {id}, {}, {}", counted(written.rows, "payout"), money(written.cents));
        operator.audited_rewards(act(command, what, now)).note_written(id, now).await?;
        Ok(report(path, &batch, cause, &written))
    })?;
    lines.iter().try_for_each(|line| print_line(line))
}

/// The batch whose file is to be written; none where nothing is to be paid.
async fn choose(
    rewards: &RewardAdmin,
    asked: Option<i64>,
    who: &str,
    now: Timestamp,
) -> anyhow::Result<Option<(BatchRecord, Cause)>> {
    if let Some(id) = asked {
        let Some(batch) = rewards.find_batch(id).await? else {
            match rewards.batches(1).await?.first() {
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
        let batch = rewards.find_batch(id).await?.context("the batch that was made is gone")?;
        if batch.payouts > 0 {
            let cause = if batch.created_at == now { Cause::New } else { Cause::Unfinished };
            return Ok(Some((batch, cause)));
        }
        // Everything went to what had been paid too much. Nobody is to go on with it.
        rewards.note_written(id, now).await?;
    }
    let last = rewards.batches(LAST_BATCHES).await?.into_iter().find(|batch| batch.out > 0);
    Ok(last.map(|batch| (batch, Cause::NothingNew)))
}

/// Writes the payouts that are not settled. Those that are would be paid twice by a provider that keeps no ids.
async fn write(rewards: &RewardAdmin, batch: i64, file: &mut File, there: Option<&str>) -> anyhow::Result<WrittenRows> {
    let (mut written, mut after) = (WrittenRows::default(), 0);
    let mut out = BufWriter::new(file);
    out.write_all(PayoutRecord::HEADER.as_bytes())?;
    loop {
        let page = rewards.payouts_of(batch, after).await?;
        for payout in &page.payouts {
            written.replaces |= there == Some(&payout.external_id);
            if payout.state != PayoutState::Out {
                continue;
            }
            if payout.email.is_none() {
                written.left_out.push(payout.external_id.clone());
                continue;
            }
            out.write_all(payout.line().as_bytes())?;
            (written.rows, written.cents) = (written.rows + 1, written.cents + payout.amount_cents);
        }
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    out.flush()?;
    Ok(written)
}

/// The first external id of a batch's file that is there; none where nothing is.
fn first_payout(path: &Path) -> anyhow::Result<Option<String>> {
    if !is_there(path)? {
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
    let what = format!("{}, {}", counted(written.rows, "payout"), money(written.cents));
    let mut lines = match cause {
        Cause::New => vec![format!("Batch {id} is in {file}: {what}.")],
        Cause::Unfinished => vec![
            format!("Batch {id}, begun at {} and not finished then, is in {file} now: {what}.", batch.created_at),
            "If its file was handed over before, do not pay anything twice: the ids are the same.".to_owned(),
            "What became due since then goes into the next batch.".to_owned(),
        ],
        Cause::NothingNew => vec![
            format!("Nothing new is due. What is not settled of batch {id} is in {file} again: {what}."),
            "Each payout keeps its external_id: do not pay anything that was already paid.".to_owned(),
        ],
        Cause::Asked => vec![
            format!("What is not settled of batch {id} is in {file} again: {what}."),
            "Each payout keeps its external_id: do not pay anything that was already paid.".to_owned(),
        ],
    };
    lines.extend(left_out(written));
    lines.push(
        "Give the file to whoever pays, then record their answer: `unionhall rewards batch settle FILE`.".to_owned(),
    );
    lines
}

fn left_out(written: &WrittenRows) -> Option<String> {
    let ids = &written.left_out;
    (!ids.is_empty()).then(|| {
        format!(
            "Left out, because the member was erased: {}. If it was not paid from an earlier file, settle it as failed.",
            ids.join(", ")
        )
    })
}

/// A file that is not finished: it goes when the work ends.
struct UnfinishedFile(PathBuf);

impl UnfinishedFile {
    fn beside(path: &Path) -> Self {
        let unfinished = Self(beside(path, "payouts"));
        // Left by one that was killed.
        let _gone = std::fs::remove_file(&unfinished.0);
        unfinished
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        // Put in its place, or never made.
        let _gone = std::fs::remove_file(&self.0);
    }
}

pub(super) fn settle(task: &SettleBatch) -> anyhow::Result<()> {
    let (text, name) = read_text(&task.file, LARGEST_ANSWER_KIB)?;
    let refused = |wrong: Vec<String>| mistakes(name, &wrong).context("nothing was recorded");
    let (lines, settlements): (Vec<_>, Vec<_>) = read_settlements(&text).map_err(refused)?.into_iter().unzip();
    let paid = settlements.iter().filter(|settlement| settlement.is_paid).count() as u64;
    let failed = settlements.len() as u64 - paid;
    let settled = with_rewards(&task.store, async |operator, now| {
        let what = format!("{paid} paid, {failed} failed");
        let act = act("rewards batch settle", what, now);
        let who = act.who.clone();
        Ok(operator.audited_rewards(act).settle(settlements, &who, now).await?)
    })?;
    let (booked, before) = match settled {
        FileSettled::Done { booked, before } => (booked, before),
        FileSettled::Refused(wrong) => {
            return Err(refused(wrong.iter().map(|(place, why)| format!("line {}: {why}", lines[*place])).collect()));
        }
    };
    print_line(&format!("{name} has {}: {paid} paid, {failed} failed.", counted(paid + failed, "payout")))?;
    print_line(&format!("Recorded now: {booked}. Recorded before: {before}."))?;
    if failed > 0 {
        print_line(
            "What failed is due again: the next batch has it under another external_id, unless the member was erased.",
        )?;
    }
    Ok(())
}
