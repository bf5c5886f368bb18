//! How the parts of a node are, as it knows itself: judged once, for `/readyz`, the metrics, the findings and `doctor`.

use crate::domain::json::named_enum;

named_enum! {
    /// What happens to mail.
    pub enum MailState {
        /// None can be sent.
        Off = "off",
        /// It waits in the outbox for another node.
        Held = "held",
        /// It cannot be sent.
        Failing = "failing",
        /// None was tried since the start.
        Untried = "untried",
        Sent = "sent",
    }
}

named_enum! {
    /// Who is counted together for the limits.
    pub enum Scope {
        /// This node's requests, as it was set.
        Memory = "memory",
        /// All nodes' requests.
        Shared = "shared",
        /// This node's requests, until what the nodes share is back.
        Local = "local",
    }
}

/// Why a node is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReady {
    /// Its store takes no writes, or has no room for a sign-up.
    Store,
    /// It has not the secret that other nodes have: it opens no link.
    Secret,
    /// A part of it ended by a mistake of ours, and the process ends.
    Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    pub not_ready: Option<NotReady>,
    /// Where the store could tell.
    pub are_sign_ups_paused: Option<bool>,
    pub mail: MailState,
    pub limits: Scope,
}

/// The word of `/readyz` for sign-ups.
pub const fn sign_ups_word(are_paused: bool) -> &'static str {
    if are_paused { "paused" } else { "taken" }
}
