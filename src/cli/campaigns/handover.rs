//! Telling a supplier who accepted, and recording what it answers: `unionhall campaigns handover`.

use std::io::{BufWriter, ErrorKind};

use anyhow::{Context, anyhow, bail, ensure};

use super::{HandOver, SettleOrdersArgs, find};
use crate::campaigns::handover::{FindHandover, WrittenHandover};
use crate::cli::audit::{NEEDS_ANOTHER, act};
use crate::cli::files::{UnfinishedFile, cannot_write, is_there, mistakes, put_in_place, read_text};
use crate::cli::{print_aside, print_lines, with_live_records};
use crate::clock::Clock;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::handover::{HandoverBatch, SupplierAnswer};
use crate::domain::figure::counted;
use crate::domain::time::Timestamp;
use crate::operator::Operator;
use crate::rewards::numbered;

/// More orders than anybody reports at once.
const LARGEST_ANSWER_KIB: u64 = 64 << 10;

pub(super) fn write(task: &HandOver, slug: &CampaignSlug) -> anyhow::Result<()> {
    let path = task.file.as_deref().context("name the file to write, such as handover.csv")?;
    ensure!(path.as_os_str() != "-", "this is written to a file of its own; name one, such as handover.csv");
    ensure!(!is_there(path)?, "{} already exists and is not overwritten; give another name", path.display());
    // Before anything is put into a batch: whoever cannot write there is told first.
    let (unfinished, mut file) =
        UnfinishedFile::beside(path, &task.store.data, "handover").with_context(|| cannot_write(path))?;
    let now = Clock::start().now().time;
    let (lines, written) = with_live_records(&task.store, async |operator| {
        find(&operator, slug, now).await?;
        let Some((batch, is_again)) = choose(&operator, slug, task.batch, now).await? else {
            return Ok((vec![nothing_new(&operator, slug).await?], WrittenHandover::default()));
        };
        let campaigns = operator.campaigns();
        if !campaigns.close_handover(&batch, &act("campaigns handover", String::new(), now).who, now).await? {
            let made = format!("Batch {} of {slug} is made, by you. {NEEDS_ANOTHER}", batch.number);
            return Ok((vec![made], WrittenHandover::default()));
        }
        let written = campaigns.write_handover(&batch, &mut BufWriter::new(&mut file)).await??;
        if written.rows() > 0 {
            file.sync_all().with_context(|| cannot_write(path))?;
            put_in_place(unfinished.path(), path).map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => anyhow!("{} was made meanwhile; give another name", path.display()),
                _ => anyhow::Error::new(error).context(cannot_write(path)),
            })?;
        }
        let what = format!("{slug}, batch {}: {}", batch.number, written.words());
        operator.audited(act("campaigns handover", what, now)).campaigns().note_handover(&batch, now).await?;
        let supplier = supplier_of(&operator, slug, now).await?;
        Ok((report(&path.display().to_string(), &batch, is_again, &written, &supplier), written))
    })?;
    print_lines(&lines)?;
    for lack in written.lacks() {
        print_aside(&lack);
    }
    if !written.withheld.is_empty() {
        print_aside("`unionhall members find REFERENCE` shows the address.");
    }
    Ok(())
}

/// The batch whose file is to be written, and whether it was written before; none if there is nothing new.
async fn choose(
    operator: &Operator,
    slug: &CampaignSlug,
    asked: Option<u32>,
    now: Timestamp,
) -> anyhow::Result<Option<(HandoverBatch, bool)>> {
    if let Some(number) = asked {
        let Some(batch) = operator.ask(FindHandover(slug.clone(), Some(number))).await? else {
            match operator.ask(FindHandover(slug.clone(), None)).await? {
                Some(last) => bail!("{slug} has no batch {number}; the last one is {}", last.number),
                None => bail!("{slug} has no batch {number}, and no other; leave --batch out to make one"),
            }
        };
        ensure!(
            batch.is_written,
            "batch {number} of {slug} may not be complete yet, because its file was never written; leave --batch out to go on with it"
        );
        return Ok(Some((batch, true)));
    }
    let act = act("campaigns handover", slug.to_string(), now);
    let who = act.who.clone();
    let made = operator.audited(act).campaigns().make_handover(slug, &who, now).await?;
    Ok(made.map(|batch| (batch, false)))
}

async fn nothing_new(operator: &Operator, slug: &CampaignSlug) -> anyhow::Result<String> {
    Ok(match operator.ask(FindHandover(slug.clone(), None)).await? {
        Some(last) => format!(
            "Nobody accepted or withdrew since batch {}. No file was written; `--batch {}` writes that one again.",
            last.number, last.number
        ),
        None => "Nobody has accepted an offer that is handed over. No file was written.".to_owned(),
    })
}

async fn supplier_of(operator: &Operator, slug: &CampaignSlug, now: Timestamp) -> anyhow::Result<String> {
    let file = find(operator, slug, now).await?;
    Ok(file.campaign.offer.map_or_else(|| "the supplier".to_owned(), |offer| offer.supplier().to_owned()))
}

fn report(path: &str, batch: &HandoverBatch, is_again: bool, written: &WrittenHandover, supplier: &str) -> Vec<String> {
    let (number, slug, words) = (batch.number, &batch.campaign, written.words());
    if written.rows() == 0 {
        return vec![format!("Nobody of batch {number} of {slug} can be in its file now. No file was written.")];
    }
    let again = if is_again { " again" } else { "" };
    let mut lines = vec![format!("Batch {number} of {slug} is in {path}{again}: {words}.")];
    if batch.gives_addresses {
        lines.push(
            "It has addresses: keep it as private as a list of members, and delete it once it is handed over."
                .to_owned(),
        );
    }
    lines.push(format!(
        "Give the file to {supplier}, and record what it answers: `unionhall campaigns handover settle FILE`."
    ));
    lines
}

pub(super) fn settle(task: &SettleOrdersArgs) -> anyhow::Result<()> {
    let (text, name) = read_text(&task.file, LARGEST_ANSWER_KIB)?;
    let refused = |wrong: &[(usize, String)]| mistakes(name, &numbered(wrong)).context("nothing was recorded");
    let answer = SupplierAnswer::read(&text);
    let now = Clock::start().now().time;
    let settled = with_live_records(&task.store, async |operator| {
        let orders = operator.campaigns().check_orders(answer, now).await?;
        if !orders.mistakes.is_empty() {
            return Err(refused(&orders.mistakes));
        }
        let what = counted(orders.lines, "line");
        let act = act("campaigns handover settle", what, now);
        Ok(operator.audited(act).campaigns().settle_orders(&orders, now).await?)
    })?;
    print_lines(&settled.words())
}
