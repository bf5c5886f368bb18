//! Drafts of an offer, which a negotiator proposed: printed as files, rejected, or published as they are.

use anyhow::bail;
use serde_json::{Value, json};

use super::{DraftsArgs, RejectDraftArgs, StepArgs, find};
use crate::campaigns::drafts::{ListOfferDrafts, RejectDraft, Rejected};
use crate::cli::audit::act;
use crate::cli::{print_aside, print_json, print_line, with_live_records};
use crate::clock::Clock;
use crate::config::StoreSettings;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::record::OfferDraft;
use crate::domain::text::quote;

fn read(store: &StoreSettings, slug: &CampaignSlug) -> anyhow::Result<Vec<OfferDraft>> {
    let now = Clock::start().now().time;
    with_live_records(store, async |operator| {
        find(&operator, slug, now).await?;
        Ok(operator.ask(ListOfferDrafts(slug.clone())).await?)
    })
}

/// The draft of that number, or what is wrong with the number.
fn numbered(drafts: Vec<OfferDraft>, slug: &CampaignSlug, number: u32) -> anyhow::Result<OfferDraft> {
    let count = drafts.len();
    match drafts.into_iter().find(|draft| draft.number == number) {
        Some(draft) => Ok(draft),
        None if count == 0 => bail!("{slug} has no draft of an offer; `unionhall negotiator` is where they come from"),
        None => bail!("{slug} has no draft {number}; they are numbered from 1 to {count}"),
    }
}

/// One draft on standard output, as a file; whose it is and what became of it beside it.
pub(super) fn print(task: &DraftsArgs, slug: &CampaignSlug) -> anyhow::Result<()> {
    let drafts = read(&task.store, slug)?;
    if task.json {
        let row = |draft: &OfferDraft| {
            let OfferDraft { number, at, client, seat, exception, file, answer, .. } = draft;
            json!({
                "number": number, "at": at, "client": client, "seat": seat, "exception": exception, "file": file, "answer": answer,
            })
        };
        return print_json(&Vec::from_iter(drafts.iter().map(row)));
    }
    let count = drafts.len();
    let newest = drafts.last().map_or(0, |draft| draft.number);
    let draft = numbered(drafts, slug, task.number.unwrap_or(newest))?;
    let OfferDraft { number, at, exception, file, answer, .. } = &draft;
    print_aside(&format!("Draft {number} of {count}, proposed at {at} by {}.", draft.by()));
    if let Some(exception) = exception {
        print_aside(&format!("It is outside the mandate, or has figures that its bid has not: {}.", quote(exception)));
    }
    match answer {
        Some(answer) => print_aside(&format!("It was {}.", answer.words())),
        None => {
            print_aside("Read it, then publish it as it is, or reject it, or change it and publish the file:");
            print_aside(&format!("  unionhall campaigns offer {slug} --draft {number}"));
            print_aside(&format!("  unionhall campaigns drafts reject {slug} {number} --reason TEXT"));
            print_aside(&format!("  unionhall campaigns drafts {slug} --number {number} > offer.toml"));
        }
    }
    // Kept on one line; an earlier version kept TOML.
    let object = serde_json::from_str::<serde_json::Map<String, Value>>(file).ok();
    let pretty = object.and_then(|mut object| {
        object.retain(|_, value| !value.is_null());
        serde_json::to_string_pretty(&object).ok()
    });
    print_line(pretty.as_deref().unwrap_or_else(|| file.trim_end()))
}

/// The file of a draft that nobody has answered.
pub(super) fn waiting(task: &StepArgs, number: u32) -> anyhow::Result<String> {
    let draft = numbered(read(&task.store, &task.slug)?, &task.slug, number)?;
    match draft.answer {
        None => Ok(draft.file),
        Some(answer) => bail!(
            "draft {number} of {} was {}; print it with `unionhall campaigns drafts {} --number {number}`, and publish the file",
            task.slug,
            answer.words(),
            task.slug
        ),
    }
}

pub(super) fn reject(task: &RejectDraftArgs) -> anyhow::Result<()> {
    let (now, slug, number) = (Clock::start().now().time, &task.slug, task.number);
    let act = act("campaigns drafts reject", format!("{slug}, draft {number}"), now);
    let reject = RejectDraft { slug: slug.clone(), number, reason: task.reason.clone(), who: act.who.clone(), now };
    let rejected = with_live_records(&task.store, async |operator| {
        find(&operator, slug, now).await?;
        Ok(operator.audited(act).run(reject).await?)
    })?;
    match rejected {
        Rejected::Done => {
            print_line(&format!("Draft {number} of {slug} is rejected. The negotiator reads the reason."))
        }
        Rejected::Already(answer) => bail!("draft {number} of {slug} was {}", answer.words()),
        Rejected::NoSuchDraft(count) => {
            bail!("{slug} has no draft {number}; it has {count}, numbered from 1")
        }
        Rejected::Unknown => bail!("there is no campaign {slug} anymore"),
    }
}
