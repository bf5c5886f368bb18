//! What somebody typed to sign in with, between the form and the code: their own browser keeps it, as a cookie that only we can
//! read, so that no address is in a URL.

use hyper::HeaderMap;

use super::cookie::SiteCookie;
use super::join_form::{MOST_SEALED, email_mistake};
use super::{Visit, field};
use crate::domain::campaign::CampaignSlug;
use crate::domain::email::EmailAddress;
use crate::domain::secret::session::Nonce;
use crate::domain::sign_in::SIGN_IN_FOR;
use crate::http::response::answer::Answer;

/// What asks for a sign-in by mail first, and where it is.
const WANTED: [(&str, &str); 3] = [("leave", "/me/leave"), ("erase", "/me/erase"), ("data", "/me#data")];

#[derive(Default)]
pub(super) struct TypedSignIn {
    pub email: String,
    /// The campaign that they get back to.
    pub campaign: Option<CampaignSlug>,
    /// What they wanted to do, by its name.
    pub wanted: &'static str,
}

impl TypedSignIn {
    pub(super) fn read(fields: &[u8]) -> Self {
        let field = |name| field(fields, name).unwrap_or_default();
        Self::of(field("email").trim().to_owned(), &field("campaign"), &field("wanted"))
    }

    /// What the browser typed last, while the code that came of it may work.
    pub(super) fn of_browser(visit: Visit<'_>, headers: &HeaderMap) -> Option<Self> {
        let (_, sealed) = SiteCookie::Asked.read(headers, visit.site.secure)?.split_once('.')?;
        let opened = visit.app().sent_forms.open(sealed, visit.now.time, SIGN_IN_FOR)?;
        let (email, campaign, wanted): (String, String, String) = serde_json::from_str(&opened).ok()?;
        Some(Self::of(email, &campaign, &wanted))
    }

    fn of(email: String, campaign: &str, wanted: &str) -> Self {
        let wanted = WANTED.iter().find(|(name, _)| *name == wanted).map_or("", |(name, _)| name);
        Self { email, campaign: campaign.parse().ok(), wanted }
    }

    /// For the browser to keep; none where it is longer than any address.
    pub(super) fn seal(&self, visit: Visit<'_>) -> Option<String> {
        let campaign = self.campaign.as_ref().map(CampaignSlug::as_str).unwrap_or_default();
        let text = serde_json::json!((&self.email, campaign, self.wanted)).to_string();
        let sealed = visit.app().sent_forms.seal(&text, visit.now.time);
        (sealed.len() <= MOST_SEALED).then_some(sealed)
    }

    pub(super) fn address(&self, visit: Visit<'_>) -> Result<EmailAddress, String> {
        let words = visit.words();
        EmailAddress::parse_any_length(&self.email).map_err(|why| match &*self.email {
            "" => words.sign_in.email_empty.to_string(),
            typed => email_mistake(words, why, typed),
        })
    }

    /// Where they get to once they are signed in; `campaign` is the one that is remembered of their request.
    pub(super) fn place(&self, campaign: Option<&CampaignSlug>) -> String {
        let wanted = WANTED.iter().find(|(name, _)| *name == self.wanted).map_or("/me", |(_, place)| place);
        campaign.map_or_else(|| wanted.to_owned(), |slug| format!("/campaigns/{slug}"))
    }

    /// Where they ask again.
    pub(super) fn ask_again(&self) -> String {
        match &self.campaign {
            Some(slug) => format!("/campaigns/{slug}/sign-in"),
            // Whose session came of joining is shown the form there.
            None if self.wanted == "data" => "/me/export".to_owned(),
            None => self.place(None),
        }
    }
}

/// By which a browser is known that asked before.
pub(super) fn nonce_of(visit: Visit<'_>, headers: &HeaderMap) -> Option<Nonce> {
    Nonce::read(SiteCookie::Asked.read(headers, visit.site.secure)?.split('.').next()?)
}

/// Has the browser keep what was typed, for as long as a code works.
pub(super) fn keep(visit: Visit<'_>, nonce: Option<&Nonce>, sealed: &str, answer: &mut Answer) {
    let cookie = format!("{}.{sealed}", nonce.map(Nonce::as_str).unwrap_or_default());
    SiteCookie::Asked.set(answer, visit.site.secure, &cookie, SIGN_IN_FOR);
}
