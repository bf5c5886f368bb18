//! What every page of the operator's has around it, and the page of one message.

use askama::Template;

use super::filter::filtered;
use crate::domain::operator::{Role, Roles};
use crate::domain::union::Union;
use crate::site::branding::Branding;
use crate::site::demonstration::Strip;

/// The pages, as the navigation has them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::site) enum OperatorSection {
    Overview,
    People,
    Partners,
    Mail,
    Campaigns,
    Rewards,
    Audit,
    /// Of whoever is signed in; their name leads to it.
    Account,
}

impl OperatorSection {
    const ALL: &'static [Self] =
        &[Self::Overview, Self::People, Self::Partners, Self::Mail, Self::Campaigns, Self::Rewards, Self::Audit];

    pub(in crate::site) const fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::People => "People",
            Self::Partners => "Partners",
            Self::Mail => "Mail",
            Self::Campaigns => "Campaigns",
            Self::Rewards => "Rewards",
            Self::Audit => "Audit",
            Self::Account => "Your account",
        }
    }

    pub(in crate::site) const fn path(self) -> &'static str {
        match self {
            Self::Overview => "/operator",
            Self::People => "/operator/people",
            Self::Partners => "/operator/partners",
            Self::Mail => "/operator/mail",
            Self::Campaigns => "/operator/campaigns",
            Self::Rewards => "/operator/rewards",
            Self::Audit => "/operator/audit",
            Self::Account => "/operator/account",
        }
    }
}

#[derive(Clone, Copy)]
pub(in crate::site) struct OperatorFrame<'a> {
    pub union: &'a Union,
    pub branding: &'a Branding,
    pub strip: Option<Strip<'a>>,
    pub section: OperatorSection,
    pub who: Option<&'a str>,
    pub roles: Roles,
    /// What forms carry.
    pub token: &'a str,
    /// Whether they are signed in here and not by a proxy.
    pub can_sign_out: bool,
}

impl OperatorFrame<'_> {
    /// Those that they may see.
    pub(in crate::site) fn sections(&self) -> impl Iterator<Item = &'static OperatorSection> {
        let sees_people = self.roles.may(Role::Support);
        OperatorSection::ALL.iter().filter(move |section| sees_people || **section != OperatorSection::People)
    }
}

/// Something to say, and where to go from there.
#[derive(Template)]
#[template(path = "operator/message.html")]
pub(in crate::site) struct MessagePage<'a> {
    pub frame: OperatorFrame<'a>,
    pub title: &'a str,
    pub says: &'a [String],
    /// A command that helps.
    pub command: Option<&'a str>,
    /// Where to, and what that is called.
    pub back: Option<(&'a str, &'a str)>,
}

/// A page of the operator's, or a part of one.
pub(in crate::site) fn render(template: &impl Template) -> String {
    // Writing to a string fails only where a value's own formatting does, and these are texts and numbers.
    filtered(&template.render().unwrap_or_default())
}
