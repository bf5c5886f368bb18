//! What mail servers and mail services tell of mail that left: bounces and complaints.

use crate::domain::mail::PersonRef;
use crate::domain::sign_up::SignUpRef;
use crate::domain::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportKind {
    /// There is no such recipient: nothing goes there for a while.
    HardBounce,
    /// It was not delivered this time; that is counted.
    SoftBounce,
    /// The recipient calls it unwanted: nothing goes to the mailbox until its owner presses the button of a mail of ours.
    Complaint,
}

/// Whose mail a report is about.
#[derive(Clone, PartialEq, Eq)]
pub enum ReportedMail {
    /// Named by a token of ours.
    OfSignUp(SignUpRef),
    /// Mail about a campaign, by a token of ours.
    OfPerson(PersonRef),
    /// Named by a trusted service: the address in the form in which addresses are compared.
    To(String),
}

impl std::fmt::Debug for ReportedMail {
    /// Without the address: debug prints end up in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OfSignUp(sign_up) => write!(f, "OfSignUp({})", sign_up.id.0),
            Self::OfPerson(person) => write!(f, "OfPerson({})", person.id),
            Self::To(_) => f.write_str("To(…)"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailReport {
    pub mail: ReportedMail,
    pub kind: ReportKind,
    /// Identifies a report that its sender may repeat, and until when that is remembered.
    pub once: Option<(String, Timestamp)>,
}

/// What came of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportOutcome {
    Noted,
    /// It was noted before.
    Repeated,
    /// It is about no one we know.
    Unknown,
}

/// Of the enhanced statuses (RFC 3463) of a rejection, those that are about the recipient's address; the others are about the
/// sender's, or so vague that servers use them for the operator's own mistakes.
pub fn is_recipients_fault(status: [u16; 3]) -> bool {
    matches!(status, [5, 1, 1 | 2 | 3 | 6 | 10])
}

/// The enhanced status that a text begins with.
pub fn enhanced_status(text: &str) -> Option<[u16; 3]> {
    let word = text.split_whitespace().next()?;
    let mut numbers = word.split('.').map(|part| part.parse().ok());
    let status = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_recipients_own_fault_is_final() {
        let fault = |text: &str| enhanced_status(text).is_some_and(is_recipients_fault);
        for theirs in [
            "5.1.1 <ana@example.com>: no such user",
            "5.1.2 bad host",
            "5.1.10 null MX",
            "5.1.3 bad syntax",
            "5.1.6 moved",
        ] {
            assert!(fault(theirs), "{theirs}");
        }
        for other in [
            "5.7.8 authentication failed",
            "5.7.1 relay denied",
            "5.1.0 sender rejected",
            "5.1.90 over quota",
            "5.1.7 bad sender",
            "5.1.8 bad sender's domain",
            "4.1.1 later",
            "5.2.2 mailbox full",
            "no such user",
            "",
            "5.1",
            "5.1.1.1",
            "5.1.x",
        ] {
            assert!(!fault(other), "{other}");
        }
    }
}
