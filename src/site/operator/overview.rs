//! `/operator`: what is wrong, how the union does, and the switch for sign-ups.

use askama::Template;
use hyper::Request;

use super::frame::{OperatorFrame, OperatorSection, render};
use super::question::Question;
use super::session::OperatorVisit;
use crate::app::App;
use crate::clock::Moment;
use crate::domain::api_key::Mode;
use crate::domain::campaign::CampaignSlug;
use crate::domain::remedy::{Remedy, WriteRemedy};
use crate::domain::time::Timestamp;
use crate::http::request::body::SentBody;
use crate::http::request::host::is_local;
use crate::installation::{AreSignUpsPaused, PauseSignUps};
use crate::operator::access::OperatorAccess;
use crate::operator::findings::{Finding, Grade};
use crate::operator::running::{FoundProblems, RunningState};
use crate::site::view::operator::OverviewPart;
use crate::site::{PageResult, Visit, field};

const HERE: OperatorSection = OperatorSection::Overview;

#[derive(Template)]
#[template(path = "operator/overview.html")]
struct OverviewPage<'a> {
    frame: OperatorFrame<'a>,
    findings: Vec<ShownFinding<'a>>,
    looked_at: Timestamp,
    are_sign_ups_paused: bool,
    /// None while the figures cannot be read: what is wrong is shown all the same.
    pictures: Option<String>,
}

struct ShownFinding<'a> {
    finding: &'a Finding,
    /// Where the page fixes it, and what the link says.
    link: Option<(String, &'static str)>,
    /// How to fix it where only a shell can.
    fix: String,
}

impl<'a> ShownFinding<'a> {
    fn of(finding: &'a Finding, write: WriteRemedy) -> Self {
        let link = finding.fix.as_ref().and_then(link_to);
        let by_shell = finding.fix.as_ref().filter(|_| link.is_none());
        Self { finding, link, fix: by_shell.map_or_else(String::new, |fix| write(fix, Mode::Live)) }
    }
}

/// Where the page does what the remedy says, and what a link there says; none where only a shell does it.
fn link_to(remedy: &Remedy) -> Option<(String, &'static str)> {
    let here = |path: &str, label| Some((path.to_owned(), label));
    let campaign = |slug: &CampaignSlug, part: &str, label| Some((format!("/operator/campaigns/{slug}{part}"), label));
    match remedy {
        Remedy::ResumeSignUps => here("/operator#sign-ups", "Turn sign-ups on"),
        Remedy::DecideOnHeldMail | Remedy::DecideOnMailOfSource { .. } | Remedy::DecideOnMailOfKey(_) => {
            here("/operator/mail", "Send or delete held mail")
        }
        Remedy::ListMail | Remedy::RetryMail(_) => here("/operator/mail/outbox", "See why, and try it again"),
        Remedy::ReleaseMail(_) => here("/operator/mail", "Send or delete held mail"),
        Remedy::MakeBackups => here("/operator/backup", "Make a backup now"),
        Remedy::ListEndpoints | Remedy::RecoverEndpoint(_) => here("/operator/partners", "Open the partner's webhooks"),
        Remedy::ListKeys | Remedy::RevokeKey(_) | Remedy::ListOrMakePartners => {
            here("/operator/partners", "Open the partners")
        }
        Remedy::ResumePartner(_) => here("/operator/partners", "Open the partner to resume it"),
        Remedy::EditCampaign(slug) => campaign(slug, "/edit", "Change the campaign"),
        Remedy::OfferCampaign(slug) => campaign(slug, "#bids", "Make an offer of a bid"),
        Remedy::ActivateCampaign(slug) => campaign(slug, "#step", "Take the campaign's next step"),
        Remedy::HandOver(slug) => campaign(slug, "#handover", "Hand over who accepted"),
        Remedy::AnswerDraft(slug) | Remedy::PublishDraft(slug, _) => campaign(slug, "#drafts", "Publish or reject it"),
        Remedy::FinishBatch => here("/operator/rewards#batches", "Download its file"),
        Remedy::SettleBatch => here("/operator/rewards#settle", "Record what was paid"),
        Remedy::Do(_)
        | Remedy::CheckStore
        | Remedy::RestoreBackup
        | Remedy::MakeRoom
        | Remedy::RunDoctor
        | Remedy::StartRedis
        | Remedy::ResumeRecords
        | Remedy::EraseAgain
        | Remedy::WithdrawSignUps(_)
        | Remedy::Unsuppress
        | Remedy::RemoveEndpoint
        | Remedy::RotateSecretAgain
        // Publishing itself asks for the signature.
        | Remedy::SignOffer { .. } => None,
    }
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let FoundProblems { at, findings, .. } = look(found.access, visit.app(), visit.now).await;
    let are_sign_ups_paused = found.stored(found.operator().ask(AreSignUpsPaused).await)?;
    let overview = found.access.overview(visit.now).await.inspect_err(|error| visit.report(&error.to_string())).ok();
    let page = OverviewPage {
        pictures: overview.map(|overview| render(&OverviewPart::new(&overview, &visit.app().union.catalog))),
        frame: found.frame(),
        findings: findings.iter().map(|finding| ShownFinding::of(finding, found.access.write_remedy)).collect(),
        looked_at: at,
        are_sign_ups_paused,
    };
    Ok(found.page(render(&page)))
}

pub(in crate::site) async fn look(access: &OperatorAccess, app: &App, now: Moment) -> FoundProblems {
    let (union, health) = (&app.union, app.health(None, now.tick).await);
    let state = RunningState { union, is_public: !is_local(union), health, now };
    access.findings.find(&access.operator, state).await
}

/// Pauses sign-ups, once the operator is sure, or turns them on again.
pub async fn switch_sign_ups(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let pause = match field(&fields, "sign-ups").as_deref() {
        Some("pause") => true,
        Some("resume") => false,
        _ => return Ok(found.refuse("The form says neither pause nor resume.")),
    };
    if pause {
        let says = [
            "Agents and partners get the answer backend_not_configured until sign-ups are turned on again.".to_owned(),
            "The join form says that sign-ups are off. The public data stays, and links that were mailed still work."
                .to_owned(),
        ];
        let question = Question {
            title: "Pause sign-ups?",
            says: &says,
            action: "/operator/sign-ups",
            fields: &[("sign-ups", "pause")],
            about: "",
            button: "Pause sign-ups",
            ..Question::default()
        };
        found.require_sure(&question, &fields)?;
    }
    let command = if pause { "signups pause" } else { "signups resume" };
    found.stored(found.acting(command, "").run(PauseSignUps(pause)).await)?;
    found.access.findings.forget().await;
    Ok(found.redirect("/operator"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::api_key::KeyId;

    #[test]
    fn what_the_page_can_do_has_a_link_and_what_it_cannot_has_none() {
        let slug = || "internet-2027".parse::<CampaignSlug>().unwrap();
        let key = || "0123abcd".parse::<KeyId>().unwrap();
        for (remedy, path) in [
            (Remedy::ResumeSignUps, "/operator#sign-ups"),
            (Remedy::DecideOnHeldMail, "/operator/mail"),
            (Remedy::DecideOnMailOfSource { is_form: true }, "/operator/mail"),
            (Remedy::DecideOnMailOfKey(key()), "/operator/mail"),
            (Remedy::ListMail, "/operator/mail/outbox"),
            (Remedy::MakeBackups, "/operator/backup"),
            (Remedy::ListEndpoints, "/operator/partners"),
            (Remedy::ListKeys, "/operator/partners"),
            (Remedy::RevokeKey(key()), "/operator/partners"),
            (Remedy::ListOrMakePartners, "/operator/partners"),
            (Remedy::ResumePartner("Acme".to_owned()), "/operator/partners"),
            (Remedy::EditCampaign(slug()), "/operator/campaigns/internet-2027/edit"),
            (Remedy::OfferCampaign(slug()), "/operator/campaigns/internet-2027#bids"),
            (Remedy::ActivateCampaign(slug()), "/operator/campaigns/internet-2027#step"),
            (Remedy::HandOver(slug()), "/operator/campaigns/internet-2027#handover"),
            (Remedy::AnswerDraft(slug()), "/operator/campaigns/internet-2027#drafts"),
            (Remedy::FinishBatch, "/operator/rewards#batches"),
            (Remedy::SettleBatch, "/operator/rewards#settle"),
        ] {
            assert_eq!(link_to(&remedy).map(|(path, _)| path).as_deref(), Some(path));
        }
        for remedy in [Remedy::RestoreBackup, Remedy::MakeRoom, Remedy::StartRedis, "set it".into()] {
            assert!(link_to(&remedy).is_none());
        }
    }
}
