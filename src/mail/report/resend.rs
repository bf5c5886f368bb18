//! Webhooks of Resend, signed as Svix does: HMAC-SHA256 over the id, the time and the body.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde::Deserialize;

use super::{Untaken, of_address};
use crate::domain::mail::report::{MailReport, ReportKind};
use crate::domain::time::Timestamp;

/// How old or how far ahead a call may be: a recording of one is worthless soon.
const SKEW: Duration = Duration::from_secs(300);

/// Signatures of one call that are worth the work.
const SIGNATURES: usize = 5;

/// The secret of the webhook, as Resend shows it: `whsec_…`.
#[derive(Clone)]
pub struct ResendSecret(hmac::Key);

impl std::fmt::Debug for ResendSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResendSecret(…)")
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("it is not the signing secret of a webhook; copy it from Resend as it is, whsec_ and all")]
pub struct BadResendSecret;

impl ResendSecret {
    /// The shortest that is taken, in bytes.
    const SHORTEST: usize = 16;

    pub fn parse(text: &str) -> Result<Self, BadResendSecret> {
        let encoded = text.trim().strip_prefix("whsec_").ok_or(BadResendSecret)?;
        let key = STANDARD.decode(encoded).ok().filter(|key| key.len() >= Self::SHORTEST).ok_or(BadResendSecret)?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }
}

/// What a call says of itself in its headers.
#[derive(Clone, Copy)]
pub struct SvixHeaders<'a> {
    pub id: &'a str,
    pub timestamp: &'a str,
    /// One or more, with spaces between them: secrets are replaced while the old one still signs.
    pub signatures: &'a str,
}

#[derive(Deserialize)]
struct ResendEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    data: Option<ResendData>,
}

#[derive(Deserialize, Default)]
struct ResendData {
    #[serde(default)]
    to: Vec<String>,
    bounce: Option<Bounce>,
}

#[derive(Deserialize)]
struct Bounce {
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// What a call reports; none if it is an event that does not concern us. Our mail has one recipient.
pub fn read(
    secret: &ResendSecret,
    headers: SvixHeaders<'_>,
    body: &[u8],
    now: Timestamp,
) -> Result<Option<MailReport>, Untaken> {
    prove(secret, headers, body, now)?;
    let event: ResendEvent<'_> = serde_json::from_slice(body).map_err(|_| Untaken::Shape)?;
    let data = event.data.unwrap_or_default();
    let kind = match &*event.kind {
        "email.complained" => ReportKind::Complaint,
        "email.delivery_delayed" => ReportKind::SoftBounce,
        "email.bounced" => match data.bounce.and_then(|bounce| bounce.kind).as_deref() {
            Some("Permanent") => ReportKind::HardBounce,
            _ => ReportKind::SoftBounce,
        },
        _ => return Ok(None),
    };
    let to = data.to.first().ok_or(Untaken::Shape)?;
    of_address(to, kind, &format!("resend {}", headers.id), now).map(Some).ok_or(Untaken::Shape)
}

/// Whether a call may be proved at all once its body has come.
pub fn look(headers: SvixHeaders<'_>, now: Timestamp) -> Result<(), Untaken> {
    let SvixHeaders { id, timestamp, signatures } = headers;
    let seconds: i64 = timestamp.parse().map_err(|_| Untaken::Unproved)?;
    let at = Timestamp::from_millis(seconds.checked_mul(1000).ok_or(Untaken::Unproved)?);
    if at.since(now) > SKEW || now.since(at) > SKEW || id.is_empty() || id.len() > 100 {
        return Err(Untaken::Unproved);
    }
    let is_signed = signatures.split(' ').take(SIGNATURES).any(|text| decoded(text).is_some());
    if is_signed { Ok(()) } else { Err(Untaken::Unproved) }
}

/// The bytes of one signature.
fn decoded(signature: &str) -> Option<Vec<u8>> {
    signature.strip_prefix("v1,").and_then(|text| STANDARD.decode(text).ok()).filter(|tag| tag.len() == 32)
}

fn prove(secret: &ResendSecret, headers: SvixHeaders<'_>, body: &[u8], now: Timestamp) -> Result<(), Untaken> {
    look(headers, now)?;
    let SvixHeaders { id, timestamp, signatures } = headers;
    let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
    let is_ours =
        |signature: &str| decoded(signature).is_some_and(|tag| hmac::verify(&secret.0, &signed, &tag).is_ok());
    if signatures.split(' ').take(SIGNATURES).any(is_ours) { Ok(()) } else { Err(Untaken::Unproved) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::mail::report::ReportedMail;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn sign(secret: &ResendSecret, id: &str, timestamp: &str, body: &str) -> String {
        let tag = hmac::sign(&secret.0, format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(tag.as_ref()))
    }

    #[test]
    fn a_known_answer_is_the_services_own() {
        // The sample of Svix's own libraries.
        let secret = ResendSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let headers = SvixHeaders {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            timestamp: "1614265330",
            signatures: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        };
        let body = br#"{"test": 2432232314}"#;
        assert_eq!(prove(&secret, headers, body, Timestamp::from_millis(1_614_265_330_000)), Ok(()));
    }

    #[test]
    fn only_what_is_signed_now_is_read() {
        let secret = ResendSecret::parse(&format!("whsec_{}", STANDARD.encode([7; 24]))).unwrap();
        let (id, timestamp) = ("msg_1", "1800000000");
        let body = r#"{"type":"email.bounced","data":{"to":["Ana@Example.com"],"bounce":{"type":"Permanent"}}}"#;
        let good = sign(&secret, id, timestamp, body);
        let ask = |signatures: &str, timestamp, body: &str| {
            read(&secret, SvixHeaders { id, timestamp, signatures }, body.as_bytes(), NOW)
        };
        let report = ask(&good, timestamp, body).unwrap().unwrap();
        assert_eq!(report.kind, ReportKind::HardBounce);
        assert_eq!(report.mail, ReportedMail::To("ana@example.com".to_owned()));
        assert!(ask(&format!("v1,AAAA v2,x {good}"), timestamp, body).is_ok(), "one of several");
        let old = "1799999699";
        for (signatures, timestamp, body) in [
            ("", timestamp, body),
            ("v1,", timestamp, body),
            (&good["v1,".len()..], timestamp, body),
            (&good, timestamp, &body.replace("Ana", "Ben")),
            (&good, "1800000001", body),
            (&sign(&secret, id, old, body), old, body),
            (&sign(&secret, id, "now", body), "now", body),
        ] {
            assert_eq!(ask(signatures, timestamp, body), Err(Untaken::Unproved), "{signatures} {timestamp}");
        }
        for (event, kind) in [
            (r#"{"type":"email.complained","data":{"to":["a@b.example"]}}"#, Some(ReportKind::Complaint)),
            (r#"{"type":"email.delivery_delayed","data":{"to":["a@b.example"]}}"#, Some(ReportKind::SoftBounce)),
            (&body.replace("Permanent", "Transient"), Some(ReportKind::SoftBounce)),
            (r#"{"type":"email.bounced","data":{"to":["a@b.example"]}}"#, Some(ReportKind::SoftBounce)),
            (r#"{"type":"email.opened","data":{"to":["a@b.example"]}}"#, None),
            (r#"{"type":"contact.created","data":{}}"#, None),
        ] {
            let read = ask(&sign(&secret, id, timestamp, event), timestamp, event).unwrap();
            assert_eq!(read.map(|report| report.kind), kind, "{event}");
        }
        for shapeless in ["", "[]", r#"{"type":"email.bounced"}"#, r#"{"type":"email.complained","data":{"to":["x"]}}"#]
        {
            let read = ask(&sign(&secret, id, timestamp, shapeless), timestamp, shapeless);
            assert_eq!(read, Err(Untaken::Shape), "{shapeless}");
        }
        for bad in ["", "whsec_", "whsec_!", "whsec_AAAA", "hunter2"] {
            assert_eq!(ResendSecret::parse(bad).unwrap_err(), BadResendSecret, "{bad}");
        }
    }
}
