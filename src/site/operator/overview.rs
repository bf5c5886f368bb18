//! `/operator`: what is wrong, how the union does, and the switch for sign-ups.

use askama::Template;
use hyper::Request;

use super::frame::{OperatorFrame, OperatorSection, render};
use super::session::{OperatorVisit, Question};
use crate::app::App;
use crate::clock::Moment;
use crate::domain::api_key::Mode;
use crate::domain::remedy::Remedy;
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
    /// Each with how to fix it.
    findings: Vec<(&'a Finding, String)>,
    looked_at: Timestamp,
    are_sign_ups_paused: bool,
    /// None while the figures cannot be read: what is wrong is shown all the same.
    pictures: Option<String>,
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let FoundProblems { at, findings, .. } = look(found.access, visit.app(), visit.now).await;
    let are_sign_ups_paused = found.stored(found.operator().ask(AreSignUpsPaused).await)?;
    let overview = found.access.overview(visit.now).await.inspect_err(|error| visit.report(&error.to_string())).ok();
    let write = |fix: &Remedy| (found.access.write_remedy)(fix, Mode::Live);
    let fix = |finding: &Finding| finding.fix.as_ref().map_or_else(String::new, write);
    let page = OverviewPage {
        pictures: overview.map(|overview| render(&OverviewPart::new(&overview, &visit.app().union.catalog))),
        frame: found.frame(),
        findings: findings.iter().map(|finding| (finding, fix(finding))).collect(),
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
