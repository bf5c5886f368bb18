//! What a person sees: every page of their way into the union, as HTML.
//!
//! Pure functions from facts to text. This part must never read a request, ask the store, send mail or decide what a
//! page may show; whoever routes a request here has done that. Pages need no scripts, hold no inline styles and nothing from
//! other hosts: the answer's policy forbids all three, so a page that tried would only be broken.

mod campaign;
#[cfg(test)]
mod every_page;
mod join;
mod mailbox;
pub mod operator;
mod outcome;
mod own_campaigns;
mod own_page;
mod person;
mod policy;
pub(in crate::site) mod qr_code;
mod rewards;

use std::sync::LazyLock;

use askama::Template;

pub use self::campaign::{CampaignReader, CampaignView, MemberPart, campaign, campaigns, refusal, unsubscribe};
pub use self::join::{InvitedBy, JoinForm, ShownAgain, greeting, join};
pub use self::mailbox::{inbox, mailbox, opened_mail};
pub use self::outcome::{Home, Outcome, outcome};
pub use self::own_campaigns::OwnView;
pub use self::own_page::{SignInView, enter, erased, leave, own_page, sign_in, sign_in_sent};
pub use self::person::{ConfirmView, DeclineView, Welcome, check_inbox, confirm, decline, share};
pub use self::policy::policy;
pub use self::rewards::erase;
use super::branding::Branding;
use super::invitation::hand_on;
use crate::domain::language::{Language, Words};
use crate::domain::referral::ReferralCode;
use crate::domain::sign_up::PENDING_FOR;
use crate::domain::time::Timestamp;
use crate::domain::union::Union;
use crate::domain::union::notice::Notice;
use crate::domain::us_state::UsState;

/// What every page has around it.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    pub union: &'a Union,
    pub branding: &'a Branding,
    pub language: Language,
    /// The language's texts.
    pub words: &'static Words,
    /// Where the page is, for the same in another language.
    pub path: &'a str,
    /// The friend's code that its links hand on.
    pub invited_by: Option<ReferralCode>,
    /// Whether the reader's browser has a session; only the store knows whose.
    pub signed_in: bool,
    /// When it is shown.
    pub now: Timestamp,
}

impl<'a> Frame<'a> {
    pub fn new(union: &'a Union, language: Language, path: &'a str, now: Timestamp) -> Self {
        static PLAIN: LazyLock<Branding> = LazyLock::new(Branding::default);
        Self {
            union,
            branding: &PLAIN,
            language,
            words: language.words(),
            path,
            invited_by: None,
            signed_in: false,
            now,
        }
    }

    #[must_use]
    pub fn branded(self, branding: &'a Branding) -> Self {
        Self { branding, ..self }
    }

    /// Whether it is one of the sandbox's, which say so.
    pub fn is_in_sandbox(&self) -> bool {
        self.path.starts_with("/sandbox/")
    }

    /// Who runs the union, what joining costs, how the union earns.
    pub fn answers(&self) -> [String; 3] {
        self.union.catalog.answers(self.language)
    }

    /// The same as questions with their answers.
    fn asked(&self) -> [(&'static str, &'a str); 3] {
        self.union.catalog.asked(self.language)
    }

    /// The consent text that a reader of this language agrees to.
    pub fn notice(&self) -> &'a Notice {
        self.union.notices.in_language(self.language)
    }

    /// The states by the names that the reader's language has for them, in its order.
    fn states(&self) -> Vec<(&'static str, &'static str)> {
        let mut states: Vec<_> = UsState::ALL.iter().map(|state| (state.code(), self.words.state(*state))).collect();
        // Accents do not change the order.
        let plain =
            |c: char| "áéíóú".chars().position(|accented| accented == c).map_or(c, |at| ['a', 'e', 'i', 'o', 'u'][at]);
        states.sort_by_key(|(_, name)| name.chars().map(plain).collect::<String>());
        states
    }

    /// "1,234 members": nothing where the figure cannot be read, or is less than the union wants to show.
    pub fn members(&self, count: Option<u64>) -> Option<String> {
        let count = count.filter(|count| *count >= self.union.show_members_from.max(1))?;
        Some(self.words.members(count))
    }
}

/// Writing to a string fails only where a value's own formatting does, and these are texts and numbers.
pub(super) fn rendered(page: Frame<'_>, template: &impl Template) -> String {
    let html = template.render().unwrap_or_default();
    match page.invited_by {
        Some(code) => hand_on(&html, code),
        None => html,
    }
}

/// How long a confirmation link works, as pages say it.
fn days_to_confirm() -> u64 {
    PENDING_FOR.as_secs() / (24 * 3600)
}
