//! The commands that help an operator: each remedy as a clause, and which remedy an error has.

use std::error::Error;

use crate::campaigns::operator_step::RefusedStep;
use crate::config::quoted;
use crate::domain::api_key::{Mode, NotAKeyId};
use crate::domain::partner::endpoint::{NotAdded, NotAnEndpointId};
use crate::domain::remedy::Remedy;
use crate::keys::NotRotated;
use crate::partners::webhooks::EndpointProblem;
use crate::store::StoreError;
use crate::store::postgres::PostgresOpenError;
use crate::store::sqlite::SqliteOpenError;

/// What a command takes to work on the records of that mode.
pub(super) fn flag(mode: Mode) -> &'static str {
    if mode == Mode::Test { " --test" } else { "" }
}

pub fn write(remedy: &Remedy, mode: Mode) -> String {
    let test = flag(mode);
    match remedy {
        Remedy::Do(words) => words.clone(),
        Remedy::CheckStore => {
            "with PostgreSQL, make sure that the database is running and accepts this user; with SQLite, that this user may write the file \
             and its folder. Otherwise correct --store or UNIONHALL_STORE"
                .to_owned()
        }
        Remedy::RestoreBackup => {
            "the database is damaged: keep it in another place and restore a backup: `unionhall restore`, or PostgreSQL's own tools and \
             then `unionhall resume`"
                .to_owned()
        }
        Remedy::MakeRoom => "make room on the disk that the database is on".to_owned(),
        Remedy::RunDoctor => "see what is wrong: `unionhall doctor`".to_owned(),
        Remedy::StartRedis => "start Redis again, or see what is wrong: `unionhall doctor`".to_owned(),
        Remedy::ResumeRecords => {
            "stop the service on every node, run `unionhall resume`, which says what it does, and start it again".to_owned()
        }
        Remedy::MakeBackups => {
            "see that the job that makes them runs: `unionhall backup`, or other tools and then `unionhall backup --done`; \
             UNIONHALL_BACKUP_EVERY says how often it should"
                .to_owned()
        }
        Remedy::EraseAgain => "`unionhall restore` erases them again, if it finds the log of erasures".to_owned(),
        Remedy::ResumeSignUps => "turn them on again: `unionhall signups resume`".to_owned(),
        Remedy::WithdrawSignUps(key) => format!(
            "`unionhall signups withdraw --key {key}` ends all sign-ups of this key that wait to be confirmed"
        ),
        Remedy::Unsuppress => "`unionhall members unsuppress` lifts this".to_owned(),
        Remedy::ListMail => "see why: `unionhall mail list`".to_owned(),
        Remedy::RetryMail(id) => format!("`unionhall mail retry {}` tries again", id.0),
        Remedy::ReleaseMail(id) => format!("`unionhall mail retry {}` lets it go", id.0),
        Remedy::DecideOnHeldMail => "send it: `unionhall mail release`; or delete it: `unionhall mail drop`".to_owned(),
        Remedy::DecideOnMailOfSource { is_form } => {
            let which = if *is_form { "--form" } else { "--key ID" };
            format!("`unionhall signups status` shows how much, `mail release {which}` lets it go, `mail drop {which}` deletes it")
        }
        Remedy::DecideOnMailOfKey(key) => {
            format!("`unionhall mail release --key {key}` lets it go, `mail drop --key {key}` deletes it")
        }
        Remedy::ListKeys => format!("`unionhall keys list{test}` shows them"),
        Remedy::RevokeKey(key) => format!("`unionhall keys revoke {key}{test}` ends that one"),
        Remedy::ListOrMakePartners => format!(
            "`unionhall partners list{test}` shows them, `unionhall keys issue NAME{test}` makes one"
        ),
        Remedy::ResumePartner(name) => format!("`unionhall partners resume {}{test}` lifts this", quoted(name)),
        Remedy::ListEndpoints => format!("`unionhall webhooks list{test}` shows them"),
        Remedy::RemoveEndpoint => format!("`unionhall webhooks remove ID{test}` makes room"),
        Remedy::RecoverEndpoint(id) => format!(
            "`unionhall webhooks recover {id} --since DATE{test}` enables it and sends it what it missed"
        ),
        Remedy::RotateSecretAgain => "rotate again after 24 hours, or with --now, which ends the oldest at once".to_owned(),
        Remedy::EditCampaign(slug) => format!("change it with `unionhall campaigns edit {slug} FILE`"),
        Remedy::OfferCampaign(slug) => format!("`unionhall campaigns offer {slug} FILE`"),
        Remedy::HandOver(slug) => format!("`unionhall campaigns handover {slug} FILE`"),
        Remedy::ActivateCampaign(slug) => format!("`unionhall campaigns activate {slug}`"),
        Remedy::SignOffer { outside, figures } => {
            let flags = [(*outside, "--outside-mandate REASON"), (*figures, "--figures-checked REASON")];
            let needed: Vec<_> = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| *flag).collect();
            format!("to publish it all the same, sign for it with {}", needed.join(" and "))
        }
        Remedy::PublishDraft(slug, number) => format!("`unionhall campaigns offer {slug} --draft {number}`"),
        Remedy::AnswerDraft(slug) => format!(
            "read it with `unionhall campaigns drafts {slug}`, which says how to publish or to reject it"
        ),
        Remedy::FinishBatch => "finish a batch without a file: `unionhall rewards batch new FILE`".to_owned(),
        Remedy::SettleBatch => "record the provider's answer: `unionhall rewards batch settle FILE`".to_owned(),
    }
}

/// What helps against an error.
pub(super) fn of(error: &(dyn Error + 'static)) -> Option<Remedy> {
    anyhow::Chain::new(error).find_map(|error| {
        None.or_else(|| error.downcast_ref::<NotRotated>()?.remedy())
            .or_else(|| error.downcast_ref::<RefusedStep>()?.remedy())
            .or_else(|| error.downcast_ref::<NotAKeyId>().map(|_| Remedy::ListKeys))
            .or_else(|| error.downcast_ref::<NotAnEndpointId>().map(|_| Remedy::ListEndpoints))
            .or_else(|| match error.downcast_ref()? {
                EndpointProblem::Unknown(_) => Some(Remedy::ListEndpoints),
                EndpointProblem::Disabled { id, .. } => Some(Remedy::RecoverEndpoint(*id)),
                EndpointProblem::JustRotated { .. } => Some(Remedy::RotateSecretAgain),
                EndpointProblem::NotAdded(NotAdded::NoPartner) => Some(Remedy::ListOrMakePartners),
                EndpointProblem::NotAdded(NotAdded::Full) => Some(Remedy::RemoveEndpoint),
                _ => None,
            })
            .or_else(|| matches!(error.downcast_ref()?, PostgresOpenError::Restored).then_some(Remedy::ResumeRecords))
            .or_else(|| match error.downcast_ref()? {
                PostgresOpenError::Store(error) => error.remedy(),
                _ => None,
            })
            .or_else(|| error.downcast_ref::<SqliteOpenError>()?.remedy())
            .or_else(|| error.downcast_ref::<StoreError>()?.remedy())
    })
}

/// The same as the end of a sentence, for the records that this command works on; empty if nothing is known to help.
pub(super) fn end(error: &(dyn Error + 'static)) -> String {
    let is_test = |word: &str| word == "--test" || Mode::of_text(word) == Mode::Test;
    let mode = Mode::of_flag(std::env::args_os().any(|word| word.to_str().is_some_and(is_test)));
    of(error).map_or_else(String::new, |remedy| format!("; {}", write(&remedy, mode)))
}
