//! What an operation is, apart from what it does: its name and route, who may call it, what it changes, how long its answer lasts.

use crate::limiter::Class;

/// What an operation is called, where it stands and who may call it.
#[derive(Clone, Copy)]
pub struct Spec {
    /// The contract's operation id; MCP's tool name.
    pub id: &'static str,
    pub method: Method,
    /// Empty where it has no route.
    pub path: &'static str,
    pub access: Access,
    pub effects: Effects,
    pub answer: Lifetime,
    /// A few words, for a list.
    pub title: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Delete,
}

impl Method {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Public data: open to all; a key only moves the limit from the address to the key.
    Public,
    /// An agent action: acts for a user, with a partner's key.
    Agent,
    /// What a partner asks about its own affairs, with its key.
    Partner,
    /// What somebody at the operator's own machine asks: without a key or a limit, and never over HTTP.
    Operator,
}

impl Access {
    pub const fn class(self) -> Class {
        match self {
            Self::Public => Class::Public,
            Self::Agent => Class::Action,
            Self::Partner => Class::Partner,
            // Nothing is drawn on it.
            Self::Operator => Class::Protocol,
        }
    }
}

/// What an operation does apart from answering. MCP's hints are made from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effects {
    /// It reads.
    None,
    /// It adds records; the same again adds nothing.
    Adds,
    /// It adds records, with the same again too.
    AddsEachTime,
    /// It adds records and has mail sent; the same again mails again.
    AddsAndMails,
    /// It changes what is the caller's own, keys and endpoints; the same again may be refused.
    Changes,
}

impl Effects {
    pub const fn writes(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether the same again changes nothing more.
    pub const fn is_idempotent(self) -> bool {
        matches!(self, Self::None | Self::Adds)
    }

    /// Whether somebody outside the service notices.
    pub const fn sends_mail(self) -> bool {
        matches!(self, Self::AddsAndMails)
    }
}

/// How long an answer stays true.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as the catalog does: it is made once for each reading of it.
    Fixed,
    /// Only now.
    Live,
    /// The same, and the operation may wait for something to answer with: that time is no latency.
    Awaited,
}
