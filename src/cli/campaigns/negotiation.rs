//! What a negotiation needs and leaves: the demand sheet, the rounds, the drafts of an offer.

use anyhow::bail;
use serde_json::json;

use super::{NamedCampaign, PrintDemand, PrintDraft, find, no_such};
use crate::campaigns::drafts::ListOfferDrafts;
use crate::campaigns::rounds::ListRounds;
use crate::campaigns::sheet::ListSheets;
use crate::cli::{print_aside, print_json, print_line, print_table, service, with_live_records};
use crate::clock::Clock;
use crate::documents::demand_sheet;
use crate::domain::campaign::demand::{DemandCell, count_words};
use crate::domain::campaign::record::{NegotiationRound, OfferDraft, Redaction, TakenSheet};
use crate::domain::figure::grouped;
use crate::domain::text::quote;
use crate::domain::time::Timestamp;
use crate::operations::negotiator::get_demand_sheet::{BEING_COUNTED, DemandReport};

pub(super) fn demand(task: &PrintDemand) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    if task.history {
        return sheets(task, now);
    }
    let catalog = task.catalog.read()?;
    let (campaign, facts) =
        with_live_records(&task.store, async |operator| match operator.campaigns().demand(&task.slug, now).await? {
            Some(campaign) if task.markdown => Ok((campaign, Some(service::facts(&task.service, &operator).await?))),
            Some(campaign) => Ok((campaign, None)),
            None => Err(no_such(&operator, &task.slug, now).await?),
        })?;
    let report = DemandReport::of(&campaign, &catalog, now);
    if task.json {
        return print_json(&report);
    }
    let Some(facts) = facts else { return print_line(demand_sheet::text(&report).trim_end()) };
    if facts.contact_email.is_none() {
        print_aside("No contact is named: give the service UNIONHALL_CONTACT_EMAIL, or this command --contact-email.");
    }
    if report.estimate.from_sample {
        print_aside(
            "Estimated savings are left out: those of the sample catalog are made up. Give your own with --catalog or UNIONHALL_CATALOG.",
        );
    }
    print_line(demand_sheet::markdown(&report, &facts, task.reply_by).trim_end())
}

/// The sheets that were kept.
fn sheets(task: &PrintDemand, now: Timestamp) -> anyhow::Result<()> {
    let slug = &task.slug;
    let (campaign, sheets) = with_live_records(&task.store, async |operator| {
        let Some(campaign) = operator.campaigns().demand(slug, now).await? else {
            return Err(no_such(&operator, slug, now).await?);
        };
        Ok((campaign, operator.ask(ListSheets(slug.clone())).await?))
    })?;
    if task.json {
        return print_json(&sheets);
    }
    let cells = |cells: &[DemandCell], others| {
        let cells = cells.iter().map(|cell| format!("{} {}", cell.name, grouped(cell.members)));
        let others = (others > 0).then(|| format!("elsewhere {}", grouped(others)));
        cells.chain(others).collect::<Vec<_>>().join(", ")
    };
    let none = match campaign.is_counting {
        true => BEING_COUNTED.to_owned(),
        false => format!("No sheet of {slug} is kept: the first comes once 5 members take part."),
    };
    print_table(&sheets, &none, "COUNTED                     IN  ACCEPTED  STATES", |sheet| {
        let TakenSheet { counted_at, demand } = sheet;
        let [members_in, accepted] = [demand.members_in, demand.accepted].map(|count| count_words(Some(count)));
        let states = cells(&demand.by_state, demand.in_other_states);
        format!("{:<22}{members_in:>8}{accepted:>10}  {states}", counted_at.to_string()).trim_end().to_owned()
    })?;
    match campaign.is_counting && !sheets.is_empty() {
        true => print_line(&format!("\n{BEING_COUNTED}")),
        false => Ok(()),
    }
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
    for round in &rounds {
        let NegotiationRound { number, at, supplier, asked, answered, redacted, .. } = round;
        if let Some(Redaction { at, who, why }) = redacted {
            print_line(&format!("{number}  blanked at {at} by {who}: {}", quote(why)))?;
            continue;
        }
        print_line(&format!("{number}  {at}  {}, recorded by {}", quote(supplier), round.by()))?;
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
