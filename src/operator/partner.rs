//! Partners and their keys as an operator names them, and the messages about what was done: for the commands and the operator's page.

use super::Operator;
use crate::domain::api_key::{KeyRecord, Mode};
use crate::domain::figure::counted;
use crate::domain::partner::PartnerRecord;
use crate::domain::partner::name::{PartnerId, PartnerName};
use crate::domain::remedy::{Remedy, WriteRemedy};
use crate::domain::time::Timestamp;
pub use crate::keys::{NewKey, NotRotated, RevokedKey};
use crate::store::StoreError;

use crate::partners::records::ListPartners;
pub use crate::partners::self_service::MAX_COUNTED;

/// The partner a new key is for. A name that looks like another partner's is more often a typo than a second partner.
pub enum KeyPartner {
    Known(PartnerRecord),
    /// No partner has this name, but these have one that differs only in case or spaces.
    Alike(Vec<PartnerRecord>),
    New,
}

impl Operator {
    pub async fn find_key_partner(&self, name: &PartnerName) -> Result<KeyPartner, StoreError> {
        let mut partners = self.ask(ListPartners).await?;
        if let Some(at) = partners.iter().position(|partner| partner.name == name.as_str()) {
            return Ok(KeyPartner::Known(partners.swap_remove(at)));
        }
        partners.retain(|partner| name.is_like(&partner.name));
        Ok(if partners.is_empty() { KeyPartner::New } else { KeyPartner::Alike(partners) })
    }

    pub async fn find_partner(&self, id: PartnerId) -> Result<Option<PartnerRecord>, StoreError> {
        Ok(self.ask(ListPartners).await?.into_iter().find(|partner| partner.id == id))
    }
}

/// The outcome of revoking a key, and what it means for the partner if it was their last.
pub fn revoked(revoked: &RevokedKey, mode: Mode, now: Timestamp) -> Vec<String> {
    let RevokedKey { key, was_last } = revoked;
    let (partner, at) = (key.partner.as_str(), key.revoked_at.unwrap_or(now));
    let before = if at < now { format!(" already, at {at}") } else { String::new() };
    let mut lines = vec![format!("Key {} of {partner} is revoked{before}.", key.id)];
    if *was_last {
        let shut = if mode == Mode::Test { ", and its inbox page is shut" } else { "" };
        lines.push(format!("No key of {partner} works any more: its webhooks wait{shut}, until you issue another."));
    }
    lines
}

/// What else can be done after revoking a key. If it was rotated before, its successor stays.
pub fn after_revoking(key: &KeyRecord, mode: Mode, write: WriteRemedy) -> Vec<String> {
    let id = key.id;
    let rotated = key.replaced_by.map(|by| {
        let revoke = write(&Remedy::RevokeKey(by), mode);
        format!("Before, key {id} was rotated to key {by}, which is a key of its own: {revoke}.")
    });
    let left = (mode == Mode::Live).then(|| {
        let (mail, links) = (Remedy::DecideOnMailOfKey(id), Remedy::WithdrawSignUps(id));
        format!(
            "Mail that it asked for and that has not left is held: {}. Links that were mailed still work: {}.",
            write(&mail, mode),
            write(&links, mode)
        )
    });
    rotated.into_iter().chain(left).collect()
}

/// The outcome of suspending a partner; `before` is since when it was suspended already.
pub fn suspended(name: &str, before: Option<Timestamp>, mode: Mode) -> String {
    match before {
        Some(since) => format!("{name} is suspended already, since {since}."),
        None => format!("{name} is suspended: within two seconds none of its{} keys works.", kind(mode)),
    }
}

/// The outcome of lifting a suspension, if there was one.
pub fn resumed(name: &str, was_suspended: bool, mode: Mode) -> String {
    match was_suspended {
        true => format!(
            "{name} is no longer suspended: within two seconds its{} keys work again, except those that expired or were revoked.",
            kind(mode)
        ),
        false => format!("{name} was not suspended."),
    }
}

fn kind(mode: Mode) -> &'static str {
    if mode == Mode::Test { " test" } else { "" }
}

/// What happens to mail held for a partner whose suspension was lifted; none if there was none.
pub fn waits_again(mails: u64) -> Option<String> {
    match mails {
        0 => None,
        1 => Some("1 mail that was held for it waits for its turn again.".to_owned()),
        _ => Some(format!("{} that were held for it wait for their turn again.", counted(mails, "mail"))),
    }
}

/// What cancelling unconfirmed sign-ups came to.
pub fn withdrawn(ended: u64) -> String {
    match ended {
        0 => "No sign-up waits to be confirmed.".to_owned(),
        1 => "1 sign-up was ended, and its mail deleted if it had not left. Its link no longer works.".to_owned(),
        _ => format!(
            "{ended} sign-ups were ended, and their mail deleted where it had not left. Their links no longer work."
        ),
    }
}

pub fn released(mails: u64) -> String {
    match mails {
        0 => "No such mail is held.".to_owned(),
        1 => "1 mail is sent as soon as its mailbox may get one.".to_owned(),
        _ => format!("{} are sent, each as soon as its mailbox may get one.", counted(mails, "mail")),
    }
}

pub fn dropped(mails: u64) -> String {
    match mails {
        0 => "No such mail is held.".to_owned(),
        1 => "1 mail was deleted, and its sign-up ended.".to_owned(),
        _ => format!("{} were deleted, and their sign-ups ended.", counted(mails, "mail")),
    }
}
