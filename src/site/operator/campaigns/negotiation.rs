//! What a person does beside the negotiator: answers its drafts, records and blanks rounds, tells it something, and pauses it.

use hyper::Request;

use super::{HERE, missing, slug_of};
use crate::campaigns::drafts::{RejectDraft, Rejected};
use crate::campaigns::negotiation::{Noted, Tell, read_message, read_round_text};
use crate::campaigns::operator_step::read_reason;
use crate::campaigns::pause::{PauseNegotiation, Paused, ResumeNegotiation, Resumed};
use crate::campaigns::records::FindCampaign;
use crate::campaigns::rounds::{AddRound, RedactRound, Redacted};
use crate::domain::campaign::record::{CampaignRecord, NegotiationRound};
use crate::domain::campaign::{BadFile, CampaignSlug, contact};
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::site::operator::form::{Form, FormField, FormPage, FormPart, Typed};
use crate::site::operator::question::{AskedReason, Question};
use crate::site::operator::session::OperatorVisit;
use crate::site::view::operator::title;
use crate::site::{PageResult, Visit, field, field_is};

const REASON: &str = "reason";

/// Asks for the reason, and gives it once the operator is sure.
fn sure_of(
    found: &OperatorVisit<'_>,
    (title, says): (&str, &[&str]),
    (action, number): (&str, &str),
    (label, hint): (&'static str, &'static str),
    button: &str,
    fields: &[u8],
) -> PageResult<String> {
    let says: Vec<_> = says.iter().map(|&line| line.to_owned()).collect();
    let reasons = [AskedReason { name: REASON, heading: "", label, hint, points: Vec::new() }];
    let again: &[_] = if number.is_empty() { &[] } else { &[("number", number)] };
    let question =
        Question { title, says: &says, reasons: &reasons, action, fields: again, button, ..Question::default() };
    found.require_sure(&question, fields)?;
    let reason = read_reason(&field(fields, REASON).unwrap_or_default());
    Ok(reason.map_err(|why| found.refuse(&format!("The reason is not as it should be: {why}.")))?)
}

/// The campaign that the address names.
async fn campaign_of(found: &OperatorVisit<'_>) -> PageResult<CampaignRecord> {
    let slug = slug_of(found)?;
    let file = found.stored(found.operator().ask(FindCampaign(slug)).await)?;
    Ok(file.ok_or_else(|| missing(found))?.campaign)
}

fn number_of(fields: &[u8]) -> Option<u32> {
    field(fields, "number").unwrap_or_default().parse().ok()
}

/// Rejects a draft, with a reason that the negotiator reads.
pub async fn reject_draft(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (slug, now) = (slug_of(&found)?, visit.now.time);
    let Some(number) = number_of(&fields) else { return Ok(found.refuse("The form names no draft.")) };
    let here = format!("/operator/campaigns/{slug}");
    let reason = sure_of(
        &found,
        (
            &format!("Reject draft {number} of {slug}?"),
            &["Each draft is answered once. It cannot be published afterwards."],
        ),
        (&format!("{here}/draft"), &number.to_string()),
        ("Why?", "The negotiator reads it, beside its draft."),
        "Reject it",
        &fields,
    )?;
    let act = found.who.act("campaigns drafts reject", format!("{slug}, draft {number}"), now);
    let reject = RejectDraft { slug: slug.clone(), number, reason, who: act.who.clone(), now };
    Ok(match found.stored(found.operator().audited(act).run(reject).await)? {
        Rejected::Done => {
            found.done_at(&format!("{here}#drafts"), "Rejected", &[format!("Draft {number} of {slug} is rejected.")])
        }
        Rejected::Already(answer) => found.refuse(&format!("Draft {number} was {}.", answer.words())),
        Rejected::NoSuchDraft(_) => found.refuse(&format!("{slug} has no such draft of an offer.")),
        Rejected::Unknown => missing(&found),
    })
}

/// Blanks the texts of a round that should not have been recorded.
pub async fn redact_round(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (slug, now) = (slug_of(&found)?, visit.now.time);
    let Some(number) = number_of(&fields) else { return Ok(found.refuse("The form names no round.")) };
    let here = format!("/operator/campaigns/{slug}");
    let reason = sure_of(
        &found,
        (
            &format!("Blank round {number} of {slug}?"),
            &["Its texts are deleted. When, by whom and why stays. This cannot be undone."],
        ),
        (&format!("{here}/redact"), &number.to_string()),
        ("Why?", "The round says so. Do not repeat what is blanked."),
        "Blank it",
        &fields,
    )?;
    let act = found.who.act("campaigns rounds redact", format!("{slug}, round {number}"), now);
    let redact = RedactRound { slug: slug.clone(), number, reason, who: act.who.clone(), now };
    Ok(match found.stored(found.operator().audited(act).run(redact).await)? {
        Redacted::Done => {
            found.done_at(&format!("{here}#rounds"), "Blanked", &[format!("Round {number} of {slug} is blanked.")])
        }
        Redacted::Already(at) => found.refuse(&format!("Round {number} was blanked at {at}.")),
        Redacted::NoSuchRound => found.refuse(&format!("{slug} has no such round.")),
        Redacted::Unknown => missing(&found),
    })
}

/// Pauses the negotiator of one campaign, or resumes it.
pub async fn pause(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let slug = slug_of(&found)?;
    let action = format!("/operator/campaigns/{slug}/negotiator");
    switch(&found, Some(slug), &action, &fields).await
}

/// The same of all campaigns.
pub async fn pause_all(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    switch(&found, None, "/operator/negotiator", &fields).await
}

async fn switch(found: &OperatorVisit<'_>, slug: Option<CampaignSlug>, action: &str, fields: &[u8]) -> PageResult {
    let now = found.visit.now.time;
    let of = slug.as_ref().map_or_else(|| "all campaigns".to_owned(), ToString::to_string);
    let back = slug.as_ref().map_or_else(|| HERE.path().to_owned(), |slug| format!("{}/{slug}", HERE.path()));
    if field_is(fields, "act", "resume") {
        let act = found.who.act("negotiator resume", of.clone(), now);
        return Ok(match found.stored(found.operator().audited(act).run(ResumeNegotiation(slug)).await)? {
            Resumed::Done | Resumed::NotPaused => found.redirect(&back),
            Resumed::Unknown => missing(found),
        });
    }
    let reason = sure_of(
        found,
        (
            &format!("Pause the negotiator of {of}?"),
            &["From its next call on it is told to stop and wait, until somebody resumes it."],
        ),
        (action, ""),
        ("Why?", "It stands beside the pause. The negotiator does not read it."),
        "Pause it",
        fields,
    )?;
    let act = found.who.act("negotiator pause", of, now);
    let pause = PauseNegotiation { slug, reason, who: act.who.clone(), now };
    Ok(match found.stored(found.operator().audited(act).run(pause).await)? {
        Paused::Done | Paused::Already(_) => found.redirect(&back),
        Paused::Unknown => missing(found),
    })
}

/// The texts of a round, or all that is wrong with them.
fn read_round(typed: &Typed) -> Result<[String; 3], BadFile> {
    let mut mistakes = Vec::new();
    let texts = ["supplier", "asked", "answered"].map(|name| {
        let text = read_round_text(typed.get(name)).map_err(|why| format!("{name}: {why}"));
        let text = text.and_then(|text| contact::refusal(name, &text).map_or(Ok(text), Err));
        text.unwrap_or_else(|mistake| {
            mistakes.push(mistake);
            String::new()
        })
    });
    if mistakes.is_empty() { Ok(texts) } else { Err(BadFile(mistakes)) }
}

const ROUND: (&str, &str, &str) = ("Record a round", "round", "Record it");

fn round_form(typed: Typed) -> Form {
    let fields = vec![
        FormField::line("supplier", "Supplier").wide().hint("The company, and who was spoken to."),
        FormField::lines("asked", "What they were asked", 4),
        FormField::lines("answered", "What they answered", 4).hint("In their words where it matters."),
    ];
    Form::new(vec![FormPart::new("", "The round", "Leave out what identifies a member.", fields)], typed, "")
}

pub async fn show_round_form(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let campaign = campaign_of(&found).await?;
    Ok(note_page(&found, &campaign, ROUND, &round_form(Typed::default())))
}

/// Records a round by hand.
pub async fn record_round(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (campaign, now) = (campaign_of(&found).await?, visit.now.time);
    let mut form = round_form(Typed::of(&fields));
    let [supplier, asked, answered] = match read_round(&form.typed) {
        Ok(texts) => texts,
        Err(bad) => {
            form.mark(bad);
            return Ok(note_page(&found, &campaign, ROUND, &form));
        }
    };
    let slug = campaign.slug();
    let act = found.who.act("campaigns round", slug.to_string(), now);
    let who = act.who.clone();
    let add = AddRound { slug: slug.clone(), client: None, who, supplier, asked, answered, now };
    Ok(match found.stored(found.operator().audited(act).run(add).await)? {
        Noted::Done(number) => {
            let says = format!("Round {number} of {slug} is recorded.");
            found.done_at(&format!("/operator/campaigns/{slug}#rounds"), "Recorded", &[says])
        }
        Noted::Unknown => missing(&found),
        Noted::NotNow(state) => found.refuse(&format!(
            "{slug} is {}; rounds are recorded while a campaign is gathering or negotiating.",
            state.name()
        )),
        Noted::Full => found.refuse(&format!(
            "{slug} has {} rounds already, which is the most. Delete the oldest: `unionhall campaigns rounds prune {slug} --keep N`",
            NegotiationRound::MOST
        )),
        Noted::Later(wait) => found.refuse(&format!("Try again in {} minutes.", wait.minutes)),
    })
}

fn words_form(typed: Typed) -> Form {
    let hint = "The negotiator reads it with everything else of this campaign.";
    let fields = vec![FormField::lines("message", "Your words", 4)];
    Form::new(vec![FormPart::new("", "To the negotiator", hint, fields)], typed, "")
}

pub async fn show_words_form(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let campaign = campaign_of(&found).await?;
    Ok(note_page(&found, &campaign, SAY, &words_form(Typed::default())))
}

const SAY: (&str, &str, &str) = ("Say something to the negotiator", "say", "Say it");

pub async fn say(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (campaign, now) = (campaign_of(&found).await?, visit.now.time);
    let mut form = words_form(Typed::of(&fields));
    let message = match read_message(form.typed.get("message")) {
        Ok(message) => message,
        Err(why) => {
            form.mark(BadFile(vec![format!("message: {why}")]));
            return Ok(note_page(&found, &campaign, SAY, &form));
        }
    };
    let slug = campaign.slug();
    let act = found.who.act("campaigns say", slug.to_string(), now);
    let tell = Tell { slug: slug.clone(), message, who: act.who.clone(), now };
    Ok(match found.stored(found.operator().audited(act).run(tell).await)? {
        true => found.redirect(&format!("/operator/campaigns/{slug}#negotiator")),
        false => missing(&found),
    })
}

fn note_page(
    found: &OperatorVisit<'_>,
    campaign: &CampaignRecord,
    (heading, action, button): (&str, &str, &str),
    form: &Form,
) -> Answer {
    let here = format!("/operator/campaigns/{}", campaign.slug());
    let says = ["It is kept with the campaign, under your name. Members never see it.".to_owned()];
    let page = FormPage {
        frame: found.frame(),
        title: heading,
        back: (&here, title(campaign)),
        says: &says,
        form,
        action: &format!("{here}/{action}"),
        hidden: &[],
        button,
    };
    page.answer(found)
}
