//! Webhooks of Postmark, which prove themselves with a name and a password of the operator's (HTTP basic authentication).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use subtle::ConstantTimeEq;

use super::{Untaken, of_address};
use crate::domain::mail::report::{MailReport, ReportKind};
use crate::domain::time::Timestamp;

/// `NAME:PASSWORD`, as it stands in the webhook's address at Postmark; kept in the form in which it is sent.
#[derive(Clone)]
pub struct PostmarkLogin(String);

impl std::fmt::Debug for PostmarkLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PostmarkLogin(…)")
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("write NAME:PASSWORD, with a password of {} characters or more", PostmarkLogin::SHORTEST)]
pub struct BadPostmarkLogin;

impl PostmarkLogin {
    const SHORTEST: usize = 16;

    pub fn parse(text: &str) -> Result<Self, BadPostmarkLogin> {
        let (name, password) = text.trim().split_once(':').ok_or(BadPostmarkLogin)?;
        let good = !name.is_empty() && password.chars().count() >= Self::SHORTEST;
        if good { Ok(Self(STANDARD.encode(text.trim()))) } else { Err(BadPostmarkLogin) }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PostmarkEvent {
    record_type: String,
    #[serde(rename = "Type")]
    kind: Option<String>,
    email: Option<String>,
    #[serde(rename = "ID")]
    id: Option<i64>,
}

/// Whether a call is the operator's own; its body need not have come.
pub fn prove(login: &PostmarkLogin, authorization: Option<&[u8]>) -> Result<(), Untaken> {
    let sent = match authorization.and_then(|value| value.split_at_checked(6)) {
        Some((scheme, login)) if scheme.eq_ignore_ascii_case(b"basic ") => login,
        _ => b"",
    };
    if bool::from(login.0.as_bytes().ct_eq(sent)) { Ok(()) } else { Err(Untaken::Unproved) }
}

/// What a call reports; none if it is an event that does not concern us.
pub fn read(
    login: &PostmarkLogin,
    authorization: Option<&[u8]>,
    body: &[u8],
    now: Timestamp,
) -> Result<Option<MailReport>, Untaken> {
    prove(login, authorization)?;
    let event: PostmarkEvent = serde_json::from_slice(body).map_err(|_| Untaken::Shape)?;
    let kind = match (event.record_type.as_str(), event.kind.as_deref()) {
        ("SpamComplaint", _) | ("Bounce", Some("SpamComplaint")) => ReportKind::Complaint,
        ("Bounce", Some("HardBounce" | "BadEmailAddress")) => ReportKind::HardBounce,
        ("Bounce", Some("Subscribe" | "Unsubscribe" | "AutoResponder" | "AddressChange")) => return Ok(None),
        ("Bounce", _) => ReportKind::SoftBounce,
        _ => return Ok(None),
    };
    let (Some(email), Some(id)) = (event.email, event.id) else { return Err(Untaken::Shape) };
    of_address(&email, kind, &format!("postmark {id}"), now).map(Some).ok_or(Untaken::Shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::mail::report::ReportedMail;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    #[test]
    fn only_a_caller_with_the_password_is_heard() {
        let login = PostmarkLogin::parse("hook:correct horse battery").unwrap();
        let header = format!("Basic {}", STANDARD.encode("hook:correct horse battery"));
        let body = r#"{"RecordType":"Bounce","Type":"HardBounce","Email":"Ana@Example.com","ID":42}"#;
        let ask = |header: Option<&str>, body: &str| read(&login, header.map(str::as_bytes), body.as_bytes(), NOW);
        let report = ask(Some(&header), body).unwrap().unwrap();
        assert_eq!(report.mail, ReportedMail::To("ana@example.com".to_owned()));
        assert!(ask(Some(&header.replace("Basic", "basic")), body).is_ok());
        let wrong = format!("Basic {}", STANDARD.encode("hook:correct horse battery!"));
        for bad in [None, Some(""), Some("Basic"), Some("Basic "), Some(&header[..header.len() - 1]), Some(&wrong)] {
            assert_eq!(ask(bad, body), Err(Untaken::Unproved), "{bad:?}");
        }
        for (event, kind) in [
            (r#""SpamComplaint""#, Some(ReportKind::Complaint)),
            (r#""Bounce","Type":"SoftBounce""#, Some(ReportKind::SoftBounce)),
            (r#""Bounce","Type":"Transient""#, Some(ReportKind::SoftBounce)),
            (r#""Bounce","Type":"AutoResponder""#, None),
            (r#""Open""#, None),
        ] {
            let event = format!(r#"{{"Email":"a@b.example","ID":1,"RecordType":{event}}}"#);
            assert_eq!(ask(Some(&header), &event).unwrap().map(|report| report.kind), kind, "{event}");
        }
        for shapeless in ["", "[]", "{}", r#"{"RecordType":"Bounce","Type":"HardBounce"}"#] {
            assert_eq!(ask(Some(&header), shapeless), Err(Untaken::Shape), "{shapeless}");
        }
        for bad in ["", "hook", "hook:short", ":correct horse battery"] {
            assert_eq!(PostmarkLogin::parse(bad).unwrap_err(), BadPostmarkLogin, "{bad}");
        }
    }
}
