//! `/operator/backup`: when the last backup was made, and a button that makes one, which stays on the server.

use std::sync::Arc;

use askama::Template;
use hyper::Request;

use super::frame::{OperatorFrame, OperatorSection, render};
use super::session::{OperatorVisit, Worked};
use crate::domain::time::Timestamp;
use crate::http::request::body::SentBody;
use crate::installation::{FindLastBackup, NoteBackup};
use crate::site::{PageResult, Visit};

const HERE: OperatorSection = OperatorSection::Overview;

const PATH: &str = "/operator/backup";

#[derive(Template)]
#[template(path = "operator/backup.html")]
struct BackupPage<'a> {
    frame: OperatorFrame<'a>,
    last: Option<Timestamp>,
    /// Where the files are; none where this service makes none.
    says: Option<&'a [String]>,
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let last = found.stored(found.operator().ask(FindLastBackup).await)?;
    let says = found.access.service.backups.as_deref().map(|backups| &backups.says[..]);
    Ok(found.page(render(&BackupPage { frame: found.frame(), last, says })))
}

/// Makes one, and records when. However long it takes, it goes on when nobody waits for it any more.
pub async fn make(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, _) = OperatorVisit::take(visit, request, HERE).await?;
    let Some(backups) = &found.access.service.backups else {
        let why = "The records are in PostgreSQL, whose own tools back them up. This page shows which.";
        return Ok(found.refuse(why));
    };
    let (backups, operator) = (Arc::clone(backups), found.operator().clone());
    let (who, now) = (found.who.clone(), visit.now.time);
    let core = Arc::clone(visit.app().core());
    let making = async move {
        let made = tokio::task::spawn_blocking(move || (backups.make)(now)).await;
        let made = match made.map_err(|error| error.to_string()).flatten() {
            Ok(made) => made,
            Err(why) => {
                core.log.problem(None, &format!("an operator's backup was not made: {why}"));
                return Ok(Err(why));
            }
        };
        // The backup is whole, whatever becomes of the note.
        operator.audited(who.act("backup", made.path, now)).run(NoteBackup(now)).await?;
        Ok(Ok(made.says))
    };
    let answer = match found.work("a backup was made, and its time could not be recorded", making).await {
        Worked::Done(Ok(says)) => found.done_at(PATH, "The backup is made", &says),
        Worked::Done(Err(why)) => found.done_at(PATH, "No backup was made", &[format!("The reason: {why}.")]),
        Worked::Failed(why) => {
            let says = format!("The backup is made, and its time could not be recorded: {why}.");
            found.done_at(PATH, "The backup is made", &[says])
        }
        Worked::GoesOn => {
            let says = "It is being made. Once it is whole, this page has its time and the audit log its file.";
            found.done_at(PATH, "The backup is being made", &[says.to_owned()])
        }
    };
    found.access.findings.forget().await;
    Ok(answer)
}
