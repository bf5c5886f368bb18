//! What comes back of mail that left: reports of mail servers (`mime.rs`) and of mail services (`resend.rs`, `postmark.rs`).
//!
//! Each reads what it is given into a [`MailReport`], and believes nothing that is not proved: a token of ours, a signature, a
//! password. What becomes of a person for it is `membership`'s to say.

pub mod mime;
pub mod postmark;
pub mod resend;

use std::time::Duration;

use crate::domain::email::EmailAddress;
use crate::domain::mail::report::{MailReport, ReportKind, ReportedMail};
use crate::domain::time::{DAY, Timestamp};

/// How long a service's report is remembered, so that its repeats change nothing: services repeat for a day or three.
const REMEMBERED_FOR: Duration = DAY.saturating_mul(7);

/// The secrets that mail services prove themselves with; a source without one is shut.
#[derive(Default)]
pub struct MailHooks {
    pub resend: Option<resend::ResendSecret>,
    pub postmark: Option<postmark::PostmarkLogin>,
}

/// Why a service's call is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untaken {
    /// It does not prove who it is from.
    Unproved,
    /// It is not in the shape that the service documents.
    Shape,
}

/// A service's report about an address; none if that is no address.
fn of_address(address: &str, kind: ReportKind, id: &str, now: Timestamp) -> Option<MailReport> {
    let address = EmailAddress::kept(address.trim()).ok()?;
    Some(MailReport { mail: ReportedMail::To(address.normalized()), kind, once: Some(once(id, now)) })
}

/// Identifies a report, and until when that is remembered.
fn once(id: &str, now: Timestamp) -> (String, Timestamp) {
    (format!("report {id}"), now.plus(REMEMBERED_FOR))
}
