//! Mail to a partner's contact: something was changed with a key of theirs, or an endpoint of theirs is disabled; and an operator's test
//! mail. Plain text, in English as the reference is.

use super::compose::Composer;
use super::{OutgoingMail, SendError};
use crate::domain::api_key::Mode;
use crate::domain::email::EmailAddress;
use crate::domain::partner::change::{ChangeKind, MadeChange};
use crate::domain::partner::endpoint::EndpointRecord;
use crate::domain::time::Timestamp;
use crate::domain::webhook::OLD_SECRET_SIGNS_FOR;

impl Composer {
    /// Tells a partner's contact that nothing more goes to an endpoint of theirs.
    pub fn endpoint_disabled(
        &self,
        endpoint: &EndpointRecord,
        contact: &str,
        mode: Mode,
        now: Timestamp,
    ) -> Result<OutgoingMail, SendError> {
        let EndpointRecord { id, partner, .. } = endpoint;
        let (union, base) = (&self.union.name, &self.union.base_url);
        let subject = format!("{union}: {}webhook endpoint {id} is disabled", tag(mode));
        let why = endpoint.disabled_why.as_deref().unwrap_or("it failed for five days");
        let since = endpoint.failing_since.map(|time| format!(" It has failed since {time}.")).unwrap_or_default();
        let text = format!(
            "Webhook endpoint {id} of {partner} gets no more messages from {union}: {why}.{since}{about}\n\n\
             Nothing is lost yet: what it missed can be sent again for 30 days after each sign-up. Fix the endpoint, then send \
             POST {base}/partner/v1/webhooks/{id}/recover with the time from which on it missed messages, or {operator}. \
             GET {base}/partner/v1/events lists what happened meanwhile.\n\n\
             How webhooks are sent and tried again: {base}/docs#webhooks\n",
            about = about_test(mode),
            operator = self.write_to_operator(),
        );
        let name = self.tokens.endpoint_mail_id(id.0, endpoint.disabled_at.map_or(0, Timestamp::as_millis));
        self.plain_text(contact, (Some(endpoint.partner_id), format!("endpoint-{name}")), (subject, text), now)
    }

    /// Asks a partner's contact to rotate the secret of an endpoint.
    pub fn secret_must_rotate(
        &self,
        endpoint: &EndpointRecord,
        contact: &str,
        mode: Mode,
        now: Timestamp,
    ) -> Result<OutgoingMail, SendError> {
        let EndpointRecord { id, partner, .. } = endpoint;
        let (union, base) = (&self.union.name, &self.union.base_url);
        let subject = format!("{union}: {}rotate the secret of webhook endpoint {id}", tag(mode));
        let by = endpoint.rotate_by.unwrap_or(now);
        let until = match by > now {
            true => format!("Until {by} messages are still signed with it. Then the endpoint is disabled."),
            false => "Messages are not signed with it any more, so the endpoint is disabled.".to_owned(),
        };
        let text = format!(
            "The secret of webhook endpoint {id} of {partner} is not safe any more: others may know what {union} derives it from.{about}\n\n\
             {until}\n\nSend POST {base}/partner/v1/webhooks/{id}/rotate with your key. The answer has the new secret; both sign for \
             {hours} hours, so that you can change it without missing a message. Or {operator}. Once the endpoint is disabled, rotate the secret and then send POST \
             {base}/partner/v1/webhooks/{id}/recover: what it missed can be sent again for 30 days.\n\nHow to check signatures: {base}/docs#webhooks\n",
            about = about_test(mode),
            hours = OLD_SECRET_SIGNS_FOR.as_secs() / 3600,
            operator = self.write_to_operator(),
        );
        let name = self.tokens.endpoint_mail_id(id.0, by.as_millis());
        self.plain_text(contact, (Some(endpoint.partner_id), format!("rotate-{name}")), (subject, text), now)
    }

    /// Tells a partner's contact what was changed with a key of theirs.
    pub fn partner_changed(&self, change: &MadeChange, mode: Mode) -> Result<OutgoingMail, SendError> {
        let MadeChange { partner, key, about, at, .. } = change;
        let (union, base) = (&self.union.name, &self.union.base_url);
        let what = match change.kind {
            ChangeKind::EndpointAdded => "a webhook endpoint was added",
            ChangeKind::EndpointRemoved => "a webhook endpoint was removed",
            ChangeKind::EndpointTested => "a webhook endpoint was tested",
            ChangeKind::EndpointEnabled => "a webhook endpoint was enabled",
            ChangeKind::SecretRotated => "the secret of a webhook endpoint was rotated",
            ChangeKind::EventResent => "an event was sent again",
            ChangeKind::KeyRotated => "an API key was rotated",
            ChangeKind::KeyRevoked => "an API key was revoked",
        };
        let operator = self.write_to_operator();
        let unless = match change.kind {
            // A successor outlives the key that it was made with.
            ChangeKind::KeyRotated => format!(
                "somebody else has this key: {operator} now, and have both keys revoked. Revoking the old one does not end the new one."
            ),
            ChangeKind::KeyRevoked => format!("somebody else had this key: {operator}, who can issue you another."),
            _ => format!(
                "somebody else has this key. End it now: send POST {base}/partner/v1/keys/revoke with it, or {operator}. \
                 GET {base}/partner/v1/webhooks and GET {base}/partner/v1/keys show what you have."
            ),
        };
        let text = format!(
            "{partner}: {what}, over the API of {union}.{about_test}\n\n\
             What: {about}\nWhen: {at}\nWith the key: {key}\n\n\
             If that was you, there is nothing to do. If it was not, {unless}\n",
            about_test = about_test(mode),
        );
        let name = self.tokens.change_mail_id(change.id, at.as_millis());
        let subject = format!("{union}: {}{what}", tag(mode));
        self.plain_text(&change.contact, (Some(change.partner_id), format!("change-{name}")), (subject, text), *at)
    }

    /// A mail to try the way out with. `unique` gives it an id that no other mail has.
    pub fn test_mail(&self, to: &EmailAddress, unique: u64, now: Timestamp) -> Result<OutgoingMail, SendError> {
        let (union, base) = (&self.union.name, &self.union.base_url);
        let subject = format!("{union}: a test mail");
        let text = format!(
            "An operator of {union} sent this to see whether mail arrives. There is nothing to do.\n\n\
             From: {from}\nSent: {now}\nBy: {base}\n",
            from = self.from
        );
        self.plain_text(to.as_typed(), (None, format!("test-{unique:016x}")), (subject, text), now)
    }

    fn write_to_operator(&self) -> String {
        match &self.union.contact_email {
            Some(address) => format!("write to {address}"),
            None => "write to the operator".to_owned(),
        }
    }
}

const fn tag(mode: Mode) -> &'static str {
    match mode {
        Mode::Live => "",
        Mode::Test => "[test] ",
    }
}

const fn about_test(mode: Mode) -> &'static str {
    match mode {
        Mode::Live => "",
        Mode::Test => " This is about the sandbox.",
    }
}
