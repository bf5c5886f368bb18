//! What only the sandbox has: inboxes for partners to read, and a simulator that presses the buttons in its mail.
//!
//! Everything else is the service itself on its own records. It must never get live records, and must never send mail out.

pub mod inbox;
pub mod transport;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::domain::mail::inbox::InboxMail;
use crate::domain::partner::name::PartnerId;
use crate::domain::secret::Secret;
use crate::domain::secret::token::TokenMaker;
use crate::domain::time::Timestamp;
use crate::membership::count::CountSandboxMembers;
use crate::sandbox::inbox::{FindInInbox, ListInbox, ListInboxPartners};
use crate::store::{Store, StoreError};

/// The most mails of an inbox listed at once.
pub const MOST_LISTED: u32 = 100;

/// The partners' inboxes, as partners read them.
pub struct Inbox {
    store: Store,
    tokens: TokenMaker,
    /// The address of the sandbox's pages, without a slash at the end.
    site: String,
}

/// Some mails, newest first.
pub struct InboxPage {
    pub mails: Vec<ReceivedMail>,
    /// The id to list older mails from, if there are more.
    pub next: Option<i64>,
}

/// A mail that would have been sent.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SandboxMail")]
pub struct ReceivedMail {
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    pub id: i64,
    pub to: String,
    pub from: String,
    pub subject: String,
    /// The part in plain text.
    pub text: String,
    /// The same for mail programs that show HTML.
    pub html: String,
    #[schemars(extend("format" = "date-time"))]
    pub received_at: Timestamp,
    /// The page with the button to press, where the mail has one. A POST there presses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "uri"))]
    pub confirm_link: Option<String>,
    /// The page that says "this wasn't me".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "uri"))]
    pub decline_link: Option<String>,
}

/// Ids are texts in JSON.
fn as_text<S: Serializer>(id: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

impl Inbox {
    /// `secret` is the sandbox's own; `site` is the address of its pages.
    pub fn new(store: Store, secret: &Secret, site: String) -> Self {
        Self { store, tokens: TokenMaker::new(secret), site }
    }

    /// A partner's mails older than that one, newest first; at most [`MOST_LISTED`].
    pub async fn list(&self, partner: PartnerId, before: Option<i64>, limit: u32) -> Result<InboxPage, StoreError> {
        let most = limit.clamp(1, MOST_LISTED);
        let mut mails = self.store.run(ListInbox { partner, before, most: most + 1 }).await?;
        let more = mails.len() > most as usize;
        mails.truncate(most as usize);
        let next = mails.last().filter(|_| more).map(|mail| mail.id);
        Ok(InboxPage { mails: mails.into_iter().map(|mail| self.received(mail)).collect(), next })
    }

    /// One mail.
    pub async fn find(&self, partner: PartnerId, id: i64) -> Result<Option<ReceivedMail>, StoreError> {
        Ok(self.store.run(FindInInbox(partner, id)).await?.map(|mail| self.received(mail)))
    }

    /// How many members the partner's sandbox has now.
    pub async fn member_count(&self, partner: PartnerId) -> Result<u64, StoreError> {
        self.store.run(CountSandboxMembers(partner)).await
    }

    /// The address of the partner's inbox page in a browser. No one else can guess it.
    pub fn page(&self, partner: &str) -> String {
        format!("{}/inbox/{}", self.site, self.tokens.inbox_token(partner))
    }

    /// The partner whose page a token opens.
    pub async fn partner_of(&self, token: &str, now: Timestamp) -> Result<Option<(PartnerId, String)>, StoreError> {
        use subtle::ConstantTimeEq;
        let partners = self.store.run(ListInboxPartners(now)).await?;
        let is_it = |(_, name): &(_, String)| self.tokens.inbox_token(name).as_bytes().ct_eq(token.as_bytes()).into();
        Ok(partners.into_iter().find(is_it))
    }

    fn received(&self, mail: InboxMail) -> ReceivedMail {
        let InboxMail { id, to, from, subject, text, html, received_at } = mail;
        let link = |page: &str| link_in(&text, &format!("{}/{page}/", self.site));
        let (confirm_link, decline_link) = (link("confirm"), link("not-me"));
        ReceivedMail { id, to, from, subject, text, html, received_at, confirm_link, decline_link }
    }
}

/// The first link in a text that begins with `start`, up to the end of its token.
fn link_in(text: &str, start: &str) -> Option<String> {
    let from = &text[text.find(start)?..];
    let token = from[start.len()..].find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(from.len() - start.len());
    (token > 0).then(|| from[..start.len() + token].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_in_a_mail_by_where_they_lead() {
        let text = "Confirm:\nhttps://u.example/sandbox/confirm/0ab9.\nNot you? (https://u.example/sandbox/not-me/zz)";
        let of = |page: &str| link_in(text, &format!("https://u.example/sandbox/{page}/"));
        assert_eq!(of("confirm").as_deref(), Some("https://u.example/sandbox/confirm/0ab9"));
        assert_eq!(of("not-me").as_deref(), Some("https://u.example/sandbox/not-me/zz"));
        assert_eq!(of("inbox"), None);
        assert_eq!(link_in("https://u.example/sandbox/confirm/", "https://u.example/sandbox/confirm/"), None);
        assert_eq!(link_in("x/confirm/abc", "x/confirm/").as_deref(), Some("x/confirm/abc"), "at the very end");
    }
}
