//! Handing over on the page: the file that tells the supplier who accepted, and what the supplier answers.

use hyper::Request;

use super::{HERE, missing, slug_of};
use crate::campaigns::handover::{CountHandover, FindHandover, FindOrders};
use crate::campaigns::records::FindCampaign;
use crate::domain::campaign::acceptance::Handover;
use crate::domain::campaign::handover::{HandoverBatch, OrderCounts, SupplierAnswer};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::figure::{counted, grouped};
use crate::http::request::body::SentBody;
use crate::site::operator::rewards::{csv_file, refuse_answer};
use crate::site::operator::session::{OperatorVisit, Question};
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
    let (counts, _) = found.stored(found.operator().ask(FindOrders(slug.clone())).await)?;
    let again = field(&fields, "batch").filter(|number| !number.is_empty());
    let batch = match &again {
        Some(number) => {
            let number = number.parse().ok();
            let batch = match number {
                Some(_) => found.stored(found.operator().ask(FindHandover(slug.clone(), number)).await)?,
                None => None,
            };
            let batch = batch.filter(|batch| batch.is_written);
            Some(batch.ok_or_else(|| found.refuse("There is no file of that number to be written again."))?)
        }
        None => None,
    };
    let too_large = || {
        let most = grouped(OrderCounts::MOST.into());
        let command = format!("unionhall campaigns handover {slug} handover.csv");
        found.refuse(&format!("A page hands out less than {most} rows. Write the file on the machine: {command}"))
    };
    let is_large = |count: u64| count >= OrderCounts::MOST.into();
    if batch.is_none() && (is_large(counts.waiting) || is_large(counts.to_withdraw)) {
        return Ok(too_large());
    }
    let gives_addresses =
        file.campaign.offer.as_ref().is_some_and(|offer| offer.terms.handover == Some(Handover::Address));
    let mut says = vec![match &batch {
        Some(batch) => format!("File {} of {slug} again, without those who withdrew since.", batch.number),
        None => format!(
            "Not handed over yet: {}. Withdrawn since they were: {}.",
            counted(counts.waiting, "member"),
            counted(counts.to_withdraw, "member")
        ),
    }];
    says.push(match gives_addresses {
        true => "The file has a reference for each and the address and state of who accepts. Keep it as private as a list of members.".to_owned(),
        false => "The file has a reference for each, and no address.".to_owned(),
    });
    let (action, number) = (format!("/operator/campaigns/{slug}/handover"), again.unwrap_or_default());
    let title = format!("Hand over who accepted {slug}?");
    let question = Question {
        title: &title,
        says: &says,
        action: &action,
        fields: &[("batch", &number)],
        button: "Download it",
        ..Question::default()
    };
    found.require_sure(&question, &fields)?;
    let batch = match batch {
        Some(batch) => batch,
        None => {
            let act = found.who.act("campaigns handover", slug.to_string(), now);
            let who = act.who.clone();
            match found.stored(found.operator().audited(act).campaigns().make_handover(&slug, &who, now).await)? {
                Some(batch) => batch,
                None => return Ok(found.refuse("Nobody accepted or withdrew since the last file.")),
            }
        }
    };
    let campaigns = found.operator().campaigns();
    // Somebody may have begun a larger one with the command.
    if is_large(found.stored(found.operator().ask(CountHandover(batch.id, OrderCounts::MOST)).await)?) {
        return Ok(too_large());
    }
    found.stored(campaigns.close_handover(&batch, now).await)?;
    let mut rows = Vec::new();
    let written = found.stored(campaigns.write_handover(&batch, &mut rows).await)?;
    let written = written.map_err(|error| found.refuse(&format!("The file could not be put together: {error}.")))?;
    let act = found.who.act("campaigns handover", format!("{slug}, batch {}: {}", batch.number, written.words()), now);
    found.stored(found.operator().audited(act).campaigns().note_handover(&batch, now).await)?;
    if written.accepted + written.withdrawn == 0 {
        let mut says = vec![format!("Nobody of file {} can be in it now.", batch.number)];
        says.extend(written.lacks());
        return Ok(found.done("There is no file", &says));
    }
    Ok(csv_file(&found, &format!("{slug}-{}.csv", batch.number), rows))
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
    let says = [
        format!("The answer has {}.", counted(orders.lines, "line")),
        "Members see on their page what their supplier says. A later date replaces an earlier one.".to_owned(),
    ];
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
