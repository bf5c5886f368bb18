//! Handing over on the page: the file that tells the supplier who accepted, and what the supplier answers.

use std::io::Write;

use hyper::Request;

use super::{HERE, missing, slug_of};
use crate::campaigns::handover::{CountHandover, FindHandover, FindOrders, WrittenHandover};
use crate::campaigns::records::FindCampaign;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::acceptance::Handover;
use crate::domain::campaign::handover::{HandoverBatch, OrderCounts, SupplierAnswer};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::figure::{counted, grouped};
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::site::operator::question::Question;
use crate::site::operator::rewards::{csv_file, refuse_answer};
use crate::site::operator::session::{NEEDS_TWO, OperatorVisit};
use crate::site::{PageResult, Visit, field};

/// What the page of a campaign shows of it.
pub(super) struct ShownHandover {
    pub facts: Vec<(&'static str, String)>,
    pub differences: Vec<String>,
    pub last: Option<HandoverBatch>,
    /// Whether a file would have something new.
    pub has_news: bool,
}

/// None where the campaign never told a supplier of anybody, and has nobody to tell of.
pub(super) async fn shown(found: &OperatorVisit<'_>, campaign: &CampaignRecord) -> PageResult<Option<ShownHandover>> {
    let last = found.stored(found.operator().ask(FindHandover(campaign.slug().clone(), None)).await)?;
    let (counts, differences) = found.stored(found.operator().ask(FindOrders(campaign.slug().clone())).await)?;
    if last.is_none() && counts == OrderCounts::default() {
        return Ok(None);
    }
    Ok(Some(ShownHandover {
        facts: counts.facts(),
        differences: differences.iter().map(|difference| difference.words()).collect(),
        has_news: counts.waiting + counts.to_withdraw > 0 || last.as_ref().is_some_and(|last| !last.is_written),
        last,
    }))
}

/// The next file, or one again, once the operator is sure. The audit log has every copy.
pub async fn download(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (slug, now) = (slug_of(&found)?, visit.now.time);
    let file = found.stored(found.operator().ask(FindCampaign(slug.clone())).await)?.ok_or_else(|| missing(&found))?;
    let number = field(&fields, "batch").filter(|number| !number.is_empty());
    let (batch, is_named) = match &number {
        Some(number) => (numbered(&found, &slug, number).await?, true),
        None => (make(&found, &file.campaign, &fields).await?, false),
    };
    // Somebody may have begun a larger one with the command.
    if is_large(found.stored(found.operator().ask(CountHandover(batch.id, OrderCounts::MOST)).await)?) {
        return Ok(too_large(&found, &slug));
    }
    let looked_at = write(&found, &batch, &mut std::io::sink()).await?;
    if looked_at.rows() == 0 && batch.is_written {
        return Ok(no_file(&found, &batch, &looked_at));
    }
    // What a new file lacks is known once it is made, so that is asked before it is handed out.
    if is_named || !looked_at.lacks().is_empty() {
        // Nobody was asked about it yet, where it was made just now.
        require_download(&found, &batch, &looked_at, if is_named { &fields } else { &[] })?;
    }
    let who = found.who.name.on_the_page();
    if !found.stored(found.operator().campaigns().close_handover(&batch, &who, now).await)? {
        return Ok(found.needs_another(&format!("File {} of {slug} is made, by you", batch.number)));
    }
    let mut rows = Vec::new();
    let written = write(&found, &batch, &mut rows).await?;
    let act = found.who.act("campaigns handover", format!("{slug}, batch {}: {}", batch.number, written.words()), now);
    found.stored(found.operator().audited(act).campaigns().note_handover(&batch, now).await)?;
    if written.rows() == 0 {
        return Ok(no_file(&found, &batch, &written));
    }
    Ok(csv_file(&found, &format!("{slug}-{}.csv", batch.number), rows))
}

/// The batch that a form names, where everybody is in it.
async fn numbered(found: &OperatorVisit<'_>, slug: &CampaignSlug, number: &str) -> PageResult<HandoverBatch> {
    let batch = match number.parse().ok() {
        Some(number) => found.stored(found.operator().ask(FindHandover(slug.clone(), Some(number))).await)?,
        None => None,
    };
    let batch = batch.filter(|batch| batch.is_whole);
    Ok(batch.ok_or_else(|| found.refuse("There is no file of that number to be written again."))?)
}

/// Makes a batch, or goes on with one whose file was never handed out, once the operator is sure.
async fn make(found: &OperatorVisit<'_>, campaign: &CampaignRecord, fields: &[u8]) -> PageResult<HandoverBatch> {
    let (slug, now) = (campaign.slug(), found.visit.now.time);
    let (counts, _) = found.stored(found.operator().ask(FindOrders(slug.clone())).await)?;
    if is_large(counts.waiting) || is_large(counts.to_withdraw) {
        return Err(too_large(found, slug).into());
    }
    let last = found.stored(found.operator().ask(FindHandover(slug.clone(), None)).await)?;
    let (first, gives_addresses) = match last.as_ref().filter(|last| !last.is_written) {
        Some(begun) => {
            let first = format!("File {} was made and never handed out. It comes first.", begun.number);
            (first, begun.gives_addresses)
        }
        None => {
            let first = format!(
                "Not handed over yet: {}. Withdrawn since they were: {}.",
                counted(counts.waiting, "member"),
                counted(counts.to_withdraw, "member")
            );
            let gives_addresses =
                campaign.offer.as_ref().is_some_and(|offer| offer.terms.handover == Some(Handover::Address));
            (first, gives_addresses)
        }
    };
    let mut says = vec![first, holds(gives_addresses)];
    says.extend(found.access.two_people.then(|| NEEDS_TWO.to_owned()));
    ask(found, slug, &says, "", "Download it", fields)?;
    let act = found.who.act("campaigns handover", slug.to_string(), now);
    let who = act.who.clone();
    let made = found.stored(found.operator().audited(act).campaigns().make_handover(slug, &who, now).await)?;
    let nobody = || match last {
        Some(last) => format!("Nobody accepted or withdrew since file {}.", last.number),
        None => "Nobody has accepted an offer that is handed over.".to_owned(),
    };
    Ok(made.ok_or_else(|| found.refuse(&nobody()))?)
}

/// Asks about a file as it is now, with what it lacks.
fn require_download(
    found: &OperatorVisit<'_>,
    batch: &HandoverBatch,
    written: &WrittenHandover,
    fields: &[u8],
) -> PageResult<()> {
    let HandoverBatch { number, campaign: slug, .. } = batch;
    let again = if batch.is_written { " again" } else { "" };
    let mut says = vec![format!("File {number} of {slug}{again}: {}.", written.words()), holds(batch.gives_addresses)];
    says.extend(written.lacks());
    if !written.withheld.is_empty() {
        says.push("`unionhall members find REFERENCE` shows the address.".to_owned());
    }
    let button = if written.rows() == 0 { "Go on" } else { "Download it" };
    ask(found, slug, &says, &number.to_string(), button, fields)
}

fn ask(
    found: &OperatorVisit<'_>,
    slug: &CampaignSlug,
    says: &[String],
    batch: &str,
    button: &str,
    fields: &[u8],
) -> PageResult<()> {
    let (action, title) = (format!("/operator/campaigns/{slug}/handover"), format!("Hand over who accepted {slug}?"));
    let fields_of = [("batch", batch)];
    let question = Question { title: &title, says, action: &action, fields: &fields_of, button, ..Question::default() };
    found.require_sure(&question, fields)
}

/// What a file has of each member.
fn holds(gives_addresses: bool) -> String {
    match gives_addresses {
        true => "The file has a reference for each and the address and state of who accepts. Keep it as private as a list of members.",
        false => "The file has a reference for each, and no address.",
    }
    .to_owned()
}

const fn is_large(count: u64) -> bool {
    count >= OrderCounts::MOST as u64
}

fn too_large(found: &OperatorVisit<'_>, slug: &CampaignSlug) -> Answer {
    let most = grouped(OrderCounts::MOST.into());
    let command = format!("`unionhall campaigns handover {slug} handover.csv`");
    found.refuse(&format!("A page hands out less than {most} rows. Write the file on the machine: {command}"))
}

async fn write(found: &OperatorVisit<'_>, batch: &HandoverBatch, out: &mut impl Write) -> PageResult<WrittenHandover> {
    let written = found.stored(found.operator().campaigns().write_handover(batch, out).await)?;
    Ok(written.map_err(|error| found.refuse(&format!("The file could not be put together: {error}.")))?)
}

fn no_file(found: &OperatorVisit<'_>, batch: &HandoverBatch, written: &WrittenHandover) -> Answer {
    let mut says = vec![format!("Nobody of file {} can be in it now.", batch.number)];
    says.extend(written.lacks());
    found.done("There is no file", &says)
}

/// Records what the supplier says, once it was looked through and the operator is sure.
pub async fn settle(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take_with_file(visit, request, HERE).await?;
    let (slug, now) = (slug_of(&found)?, visit.now.time);
    let text = found.file_or_pasted(&fields, "the supplier's file")?;
    let orders = found.stored(found.operator().campaigns().check_orders(SupplierAnswer::read(&text), now).await)?;
    if !orders.mistakes.is_empty() {
        return Ok(refuse_answer(&found, &orders.mistakes));
    }
    let mut says = vec![format!("The answer has {}: {}.", counted(orders.lines, "line"), orders.outcomes())];
    let elsewhere = orders.elsewhere(&slug);
    says.extend(elsewhere.map(|(of, lines)| format!("Of another campaign, {of}: {}.", counted(lines as u64, "line"))));
    says.push("Members see on their page what their supplier says. A later date replaces an earlier one.".to_owned());
    let action = format!("/operator/campaigns/{slug}/settle");
    let question = Question {
        title: "Record what the supplier says?",
        says: &says,
        action: &action,
        fields: &[("answer", &text)],
        has_file: true,
        button: "Record it",
        ..Question::default()
    };
    found.require_sure(&question, &fields)?;
    let what = counted(orders.lines, "line");
    let campaigns = found.acting("campaigns handover settle", what).campaigns();
    let settled = found.stored(campaigns.settle_orders(&orders, now).await)?;
    Ok(found.done_at(&format!("/operator/campaigns/{slug}"), "Recorded", &settled.words()))
}
