//! What a negotiation needs and leaves: the demand sheet, the rounds, what the negotiator is told.

use anyhow::bail;

use super::{PrintDemand, PruneRoundsArgs, RecordRound, RedactRoundArgs, RoundsArgs, SayToNegotiator, find, no_such};
use crate::campaigns::Noted;
use crate::campaigns::negotiation::Tell;
use crate::campaigns::rounds::{AddRound, ListRounds, PruneRounds, RedactRound, Redacted};
use crate::campaigns::sheet::ListSheets;
use crate::cli::audit::act;
use crate::cli::{print_aside, print_json, print_line, print_table, service, with_live_records};
use crate::clock::Clock;
use crate::documents::demand_sheet;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::contact;
use crate::domain::campaign::demand::{DemandCell, count_words};
use crate::domain::campaign::record::{NegotiationRound, Redaction, TakenSheet};
use crate::domain::campaign::wording::benchmark_words;
use crate::domain::figure::{counted, grouped};
use crate::domain::text::quote;
use crate::domain::time::Timestamp;
use crate::operations::negotiator::demand_report::{BEING_COUNTED, DemandReport};

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
    let benchmark = benchmark_words(&campaign.draft);
    let reply_by = task.reply_by.or(campaign.draft.mandate.as_ref().and_then(|mandate| mandate.rules.reply_by));
    print_line(demand_sheet::markdown(&report, &facts, benchmark.as_deref(), reply_by).trim_end())
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

pub(super) fn rounds(task: &RoundsArgs, slug: &CampaignSlug) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let rounds = with_live_records(&task.store, async |operator| {
        find(&operator, slug, now).await?;
        Ok(operator.ask(ListRounds(slug.clone())).await?)
    })?;
    if task.json {
        return print_json(&rounds);
    }
    if rounds.is_empty() {
        return print_line(&format!(
            "No round of {slug} is recorded. `unionhall negotiator` and `unionhall campaigns round` record them."
        ));
    }
    for round in &rounds {
        let NegotiationRound { number, at, supplier, asked, answered, redacted, .. } = round;
        if let Some(Redaction { at: blanked_at, who, why }) = redacted {
            print_line(&format!("{number}  {at}  recorded by {}", round.by()))?;
            print_line(&format!("  blanked at {blanked_at} by {who}: {}", quote(why)))?;
            continue;
        }
        print_line(&format!("{number}  {at}  {}, recorded by {}", quote(supplier), round.by()))?;
        print_line(&format!("  asked     {}", quote(asked)))?;
        print_line(&format!("  answered  {}", quote(answered)))?;
    }
    Ok(())
}

pub(super) fn record_round(task: &RecordRound) -> anyhow::Result<()> {
    let (now, slug) = (Clock::start().now().time, &task.slug);
    let texts = [("--supplier", &task.supplier), ("--asked", &task.asked), ("--answered", &task.answered)];
    let wrong: Vec<_> = texts.iter().filter_map(|(flag, text)| contact::refusal(flag, text)).collect();
    if !wrong.is_empty() {
        bail!("{}", wrong.join("; "));
    }
    let act = act("campaigns round", slug.to_string(), now);
    let round = AddRound {
        slug: slug.clone(),
        client: None,
        who: act.who.clone(),
        supplier: task.supplier.clone(),
        asked: task.asked.clone(),
        answered: task.answered.clone(),
        now,
    };
    let noted = with_live_records(&task.store, async |operator| {
        find(&operator, slug, now).await?;
        Ok(operator.audited(act).run(round).await?)
    })?;
    match noted {
        Noted::Done(number) => print_line(&format!("Round {number} of {slug} is recorded.")),
        Noted::NotNow(state) => {
            bail!("{slug} is {}; rounds are recorded while a campaign is gathering or negotiating", state.name())
        }
        // Of a negotiator alone.
        Noted::Later(_) | Noted::Full => bail!(
            "{slug} has {} rounds, which is the most; `unionhall campaigns rounds prune {slug} --keep N` makes room",
            NegotiationRound::MOST
        ),
        Noted::Unknown => bail!("there is no campaign {slug} anymore"),
    }
}

pub(super) fn redact(task: &RedactRoundArgs) -> anyhow::Result<()> {
    let (now, slug, number) = (Clock::start().now().time, &task.slug, task.number);
    let act = act("campaigns rounds redact", format!("{slug}, round {number}"), now);
    let redact = RedactRound { slug: slug.clone(), number, reason: task.reason.clone(), who: act.who.clone(), now };
    let redacted = with_live_records(&task.store, async |operator| {
        find(&operator, slug, now).await?;
        Ok(operator.audited(act).run(redact).await?)
    })?;
    match redacted {
        Redacted::Done => {
            print_line(&format!("Round {number} of {slug} is blank. Backups made before still have its texts."))
        }
        Redacted::Already(at) => bail!("round {number} of {slug} was blanked at {at}"),
        Redacted::NoSuchRound => {
            bail!("{slug} has no round {number}; `unionhall campaigns rounds {slug}` shows their numbers")
        }
        Redacted::Unknown => bail!("there is no campaign {slug} anymore"),
    }
}

pub(super) fn prune(task: &PruneRoundsArgs) -> anyhow::Result<()> {
    let (now, slug) = (Clock::start().now().time, &task.slug);
    let act = act("campaigns rounds prune", format!("{slug}, keeping {}", task.keep), now);
    let pruned = with_live_records(&task.store, async |operator| {
        find(&operator, slug, now).await?;
        Ok(operator.audited(act).run(PruneRounds { slug: slug.clone(), keep: task.keep }).await?)
    })?;
    let Some(pruned) = pruned else { bail!("there is no campaign {slug} anymore") };
    print_line(&format!("{} of {slug} deleted.", counted(pruned, "round")))
}

pub(super) fn say(task: &SayToNegotiator) -> anyhow::Result<()> {
    let (now, slug) = (Clock::start().now().time, &task.slug);
    let act = act("campaigns say", slug.to_string(), now);
    let tell = Tell { slug: slug.clone(), message: task.text.clone(), who: act.who.clone(), now };
    let told = with_live_records(&task.store, async |operator| {
        find(&operator, slug, now).await?;
        Ok(operator.audited(act).run(tell).await?)
    })?;
    match told {
        true => print_line(&format!("The negotiator reads it with {slug}, at its next call.")),
        false => bail!("there is no campaign {slug} anymore"),
    }
}
