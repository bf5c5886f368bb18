//! The facts about the union: one set, made from the settings and borrowed by documents, pages, mails and MCP. Another
//! catalog makes another set, with all else the same.
//!
//! A new fact is a field here, a setting in `config/union.rs` and the line there that hands it over: nothing else makes one.

pub mod colors;
pub mod notice;
pub mod service;

use self::colors::Colors;
use self::notice::Notices;
use super::catalog::Catalog;

#[derive(Clone)]
pub struct Union {
    pub name: String,
    pub standing: Standing,
    /// Where this API is reached, without a slash at the end.
    pub base_url: String,
    /// Where people join, without a slash at the end.
    pub join_site: String,
    /// The address that partners write to for a key, and people about everything else.
    pub contact_email: Option<String>,
    /// Whom the union's mail comes from.
    pub sender: Sender,
    /// Where letters reach the union.
    pub postal_address: Option<String>,
    pub catalog: Catalog,
    /// What people read before they join.
    pub notices: Notices,
    /// Of its pages and mails.
    pub colors: Colors,
    /// Pages do not show fewer members than this.
    pub show_members_from: u64,
    /// Requests a minute to public data, for an address or a key.
    pub public_per_minute: u32,
    /// Agent actions a minute for keys without a figure of their own.
    pub key_per_minute: u32,
}

/// Whether somebody can really join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Real,
    /// It has no catalog of its own: its figures and texts are samples.
    Sample,
    /// Everybody in it is invented.
    Demonstration,
}

/// Whom mail comes from, as an inbox shows it: `Consumer Union <hello@union.example>`.
#[derive(Clone, PartialEq, Eq)]
pub struct Sender {
    pub name: Option<String>,
    pub address: String,
}

impl std::fmt::Display for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} <{}>", self.address),
            None => f.write_str(&self.address),
        }
    }
}

impl Union {
    pub fn is_demonstration(&self) -> bool {
        self.standing == Standing::Demonstration
    }

    /// Where people join by themselves.
    pub fn join_page(&self) -> String {
        format!("{}/join", self.join_site)
    }

    /// Where everybody sees the campaigns; with `.json` behind it, programs do.
    pub fn campaigns_page(&self) -> String {
        format!("{}/campaigns", self.join_site)
    }

    /// Where members see, change and end what they have with the union.
    pub fn own_page(&self) -> String {
        format!("{}/me", self.join_site)
    }

    /// Where people read what is kept of them and for how long.
    pub fn privacy_page(&self) -> String {
        format!("{}/privacy", self.join_site)
    }

    /// Where they read what joining means.
    pub fn terms_page(&self) -> String {
        format!("{}/terms", self.join_site)
    }

    /// Where the union can be reached, on one line; none if it says nothing of that.
    pub fn contact_line(&self) -> Option<String> {
        let lines: Vec<_> =
            [&self.contact_email, &self.postal_address].into_iter().filter_map(Option::as_deref).collect();
        (!lines.is_empty()).then(|| lines.join(" · "))
    }
}
