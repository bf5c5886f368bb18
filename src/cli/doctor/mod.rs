//! `unionhall doctor`: one look at everything that the service rests on, and a line for each thing.
//!
//! Nothing is made, repaired or sent, and one fault never hides the next. Where the service has a way to connect, to read a
//! setting or to judge it, that way is taken: what is well here is well there.

mod address;
mod folder;
mod records;
mod refused;
mod servers;
mod service;
mod settings;

use anyhow::bail;
use clap::Args;
use serde_json::json;

use self::settings::ReadSettings;
use super::findings::{self, Finding, Grade};
use super::settings::secret_flags;
use super::{block_on, one_thread, print_json, print_line, print_lines};
use crate::config::{MailTransport, ServeSettings};
use crate::http::request::host::is_local;

pub(super) use self::refused::without_refused;

#[derive(Args)]
pub(super) struct DoctorSettings {
    /// As a JSON list of {check, state, message, fix}, for programs.
    #[arg(long)]
    json: bool,

    /// Read the whole database file of SQLite too, and say whether it is sound; takes a while where it is large.
    #[arg(long)]
    thorough: bool,

    #[command(flatten)]
    serve: ServeSettings,
}

pub(super) fn run(settings: &DoctorSettings) -> anyhow::Result<()> {
    let runtime = one_thread()?;
    let done = block_on(&runtime, examine(settings));
    // Who was asked and has not answered is not waited for.
    runtime.shutdown_background();
    done
}

async fn examine(settings: &DoctorSettings) -> anyhow::Result<()> {
    let serve = &settings.serve;
    let mut report = DoctorReport { json: settings.json, findings: Vec::new() };
    let (read, found) = ReadSettings::read(serve);
    report.add(found)?;
    report.add(settings::certificate(serve))?;
    report.add(folder::examine(serve))?;
    let is_public = read.union.as_ref().is_some_and(|union| !is_local(union));
    let is_held = matches!(read.mail, Some(MailTransport::Hold));
    report.add(records::examine(serve, read.secret, (is_public, is_held), settings.thorough).await)?;
    report.add(servers::limits(read.limits, serve.union.public_per_minute).await)?;
    report.add(servers::mail(read.mail.as_ref(), read.union.as_ref()).await)?;
    let has_no_address = read.union.as_ref().is_some_and(|union| union.postal_address.is_none());
    let mail_waits = has_no_address && records::does_campaign_mail_wait(serve).await;
    report
        .add(address::examine(serve, read.union.as_ref(), (read.has_catalog, read.silent_pages), mail_waits).await)?;
    report.add(address::listeners(serve).await)?;
    let said = service::ask(serve, is_public, &report.findings).await;
    report.add(said)?;
    report.end()
}

/// What a running service may look at again and again: its folder and the room there, its certificate, variables and flags. Nobody
/// is asked over a network.
pub(super) fn of_this_machine(settings: &ServeSettings) -> Vec<Finding> {
    let mut found = folder::examine(settings);
    found.extend(settings::certificate(settings));
    found.extend(secret_flags::findings());
    found.extend(findings::unknown_variables());
    found
}

/// What was found so far. People read each line when it is there; programs read all of it at the end.
struct DoctorReport {
    json: bool,
    findings: Vec<Finding>,
}

impl DoctorReport {
    fn add(&mut self, findings: Vec<Finding>) -> anyhow::Result<()> {
        for finding in findings.iter().filter(|_| !self.json) {
            print_line(&format!("{:<5}{}: {}", finding.grade.name(), finding.check, finding.message))?;
            print_lines(findings::fix(finding).map(|fix| format!("     {fix}")).as_slice())?;
        }
        self.findings.extend(findings);
        Ok(())
    }

    fn end(&self) -> anyhow::Result<()> {
        if self.json {
            print_json(&Vec::from_iter(self.findings.iter().map(as_json)))?;
        }
        let failed = self.findings.iter().filter(|finding| finding.grade == Grade::Fail).count();
        match failed {
            0 => Ok(()),
            _ => bail!("{failed} of {} checks failed", self.findings.len()),
        }
    }
}

fn as_json(finding: &Finding) -> serde_json::Value {
    let Finding { check, grade, message, .. } = finding;
    json!({ "check": check, "state": grade.name(), "message": message, "fix": findings::fix(finding) })
}

/// The findings of a check that has some; that it is well, if it has none.
fn or_ok(found: Vec<Finding>, check: &'static str, message: &str) -> Vec<Finding> {
    if found.is_empty() { vec![Finding::ok(check, message)] } else { found }
}
