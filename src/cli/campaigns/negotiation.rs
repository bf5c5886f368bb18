//! What a negotiation needs and leaves: the demand sheet, the rounds, the drafts of an offer.

use anyhow::bail;
use serde_json::json;

use super::{NamedCampaign, PrintDemand, PrintDraft, find};
use crate::campaigns::records::{ListOfferDrafts, ListRounds};
use crate::cli::{print_aside, print_json, print_line, with_live_records};
use crate::clock::Clock;
use crate::documents::demand_sheet;
use crate::domain::campaign::record::{NegotiationRound, OfferDraft};
use crate::domain::text::quote;
use crate::operations::negotiator::get_demand_sheet::DemandReport;

pub(super) fn demand(task: &PrintDemand) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let catalog = task.catalog.read()?;
    let campaign =
        with_live_records(&task.store, async |operator| match operator.campaigns().demand(&task.slug, now).await? {
            Some(campaign) => Ok(campaign),
            None => Ok(find(&operator, &task.slug, now).await?.campaign),
        })?;
    let report = DemandReport::of(&campaign, &catalog, now);
    if task.json {
        return print_json(&report);
    }
    let sheet = if task.markdown { demand_sheet::markdown(&report) } else { demand_sheet::text(&report) };
    print_line(sheet.trim_end())
}

pub(super) fn rounds(task: &NamedCampaign) -> anyhow::Result<()> {
    let (now, slug) = (Clock::start().now().time, &task.slug);
    let rounds = with_live_records(&task.store, async |operator| {
        find(&operator, slug, now).await?;
        Ok(operator.ask(ListRounds(slug.clone())).await?)
    })?;
    if task.json {
        return print_json(&rounds);
    }
    if rounds.is_empty() {
        return print_line(&format!("No round of {slug} is recorded. `unionhall negotiator` is where they come from."));
    }
    for NegotiationRound { at, client, supplier, asked, answered } in &rounds {
        print_line(&format!("{at}  {} by client {} (self-asserted)", quote(supplier), quote(client)))?;
        print_line(&format!("  asked     {}", quote(asked)))?;
        print_line(&format!("  answered  {}", quote(answered)))?;
    }
    Ok(())
}

/// One draft on standard output, as a file; whose it is beside it.
pub(super) fn drafts(task: &PrintDraft) -> anyhow::Result<()> {
    let (now, slug) = (Clock::start().now().time, &task.slug);
    let drafts = with_live_records(&task.store, async |operator| {
        find(&operator, slug, now).await?;
        Ok(operator.ask(ListOfferDrafts(slug.clone())).await?)
    })?;
    if task.json {
        let row = |(n, OfferDraft { at, client, file, .. }): (usize, &OfferDraft)| json!({ "number": n + 1, "at": at, "client": client, "file": file });
        return print_json(&Vec::from_iter(drafts.iter().enumerate().map(row)));
    }
    let count = drafts.len();
    let number = task.number.unwrap_or(count);
    let Some(OfferDraft { at, client, file, .. }) = number.checked_sub(1).and_then(|at| drafts.get(at)) else {
        match count {
            0 => bail!("{slug} has no draft of an offer; `unionhall negotiator` is where they come from"),
            _ => bail!("{slug} has no draft {number}; they are numbered from 1 to {count}"),
        }
    };
    print_aside(&format!(
        "Draft {number} of {count}, proposed at {at} by client {} (self-asserted). Read it, then publish it:",
        quote(client)
    ));
    print_aside(&format!("  unionhall campaigns drafts {slug} --number {number} > offer.toml"));
    print_aside(&format!("  unionhall campaigns offer {slug} offer.toml"));
    print_line(file.trim_end())
}
