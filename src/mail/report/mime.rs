//! Reports in mail: delivery status notifications (DSN, RFC 3464) and complaints (ARF, RFC 5965), as an MTA hands them on.
//!
//! Anyone may send such a mail, so it is believed only about the sign-up or the person whose token it brings back: in the return path that
//! the mail left with (VERP), or in the link for unsubscribing among the headers of the mail it returns. Only the
//! recipient of that mail knows either.

use mail_parser::{Message, MessageParser, MessagePart, MimeHeaders, PartType};

use super::once;
use crate::domain::base32;
use crate::domain::mail::report::{MailReport, ReportKind, ReportedMail, enhanced_status, is_recipients_fault};
use crate::domain::secret::token::{Purpose, TokenMaker};
use crate::domain::time::Timestamp;

/// As much of a report as is read: what matters stands at its beginning, and mail of ours that it returns is small.
pub const LONGEST: u64 = 1 << 20;

/// What stands before the token in a return path.
pub const RETURN_PATH: &str = "b-";

/// Why a mail is no report of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoReport {
    #[error("it is not a report: neither a delivery status notification (RFC 3464) nor a complaint (RFC 5965)")]
    Kind,
    #[error("it reports nothing that concerns us: the mail was delivered or relayed, or it is not about unwanted mail")]
    Harmless,
    #[error("it brings back no token of a mail that left from here")]
    Token,
}

/// What a report says, and of which mail. `recipient` is the address that it was sent to, where the MTA names it.
pub fn read(
    report: &[u8],
    recipient: Option<&str>,
    tokens: &TokenMaker,
    now: Timestamp,
) -> Result<MailReport, NoReport> {
    let message = MessageParser::default().parse(report).ok_or(NoReport::Kind)?;
    let kind = kind(&message)?;
    let said = [recipient.unwrap_or_default().as_bytes(), report].concat();
    let mail = named(&said, tokens).ok_or(NoReport::Token)?;
    // The same mail twice is one report: an MTA that was not answered in time hands it on again.
    let hash = ring::digest::digest(&ring::digest::SHA256, report);
    let once = Some(once(&base32::text::<26>(hash.as_ref()), now));
    Ok(MailReport { mail, kind, once })
}

fn kind(message: &Message<'_>) -> Result<ReportKind, NoReport> {
    for part in &message.parts {
        let Some(fields) = fields(part) else { continue };
        let is = |subtype| part.content_type().is_some_and(|kind| kind.c_subtype.as_deref() == Some(subtype));
        if is("feedback-report") {
            // Others say that it was no spam, or that it was not signed (DMARC).
            return match value(&fields, "feedback-type").as_deref() {
                Some("abuse" | "fraud" | "opt-out" | "opt-out-list") => Ok(ReportKind::Complaint),
                _ => Err(NoReport::Harmless),
            };
        }
        if is("delivery-status") || is("global-delivery-status") {
            let status = value(&fields, "status").and_then(|text| enhanced_status(&text));
            return match (value(&fields, "action").as_deref(), status) {
                // A mailbox that was switched off (5.2.1) is gone, too.
                (Some("failed"), Some(status)) if is_recipients_fault(status) || status == [5, 2, 1] => {
                    Ok(ReportKind::HardBounce)
                }
                (Some("failed" | "delayed"), _) => Ok(ReportKind::SoftBounce),
                _ => Err(NoReport::Harmless),
            };
        }
    }
    Err(NoReport::Kind)
}

/// The fields of a part that is made of fields.
fn fields(part: &MessagePart<'_>) -> Option<String> {
    let kind = part.content_type()?;
    if !kind.c_type.eq_ignore_ascii_case("message") {
        return None;
    }
    match &part.body {
        PartType::Text(text) | PartType::Html(text) => Some(text.clone().into_owned()),
        PartType::Binary(bytes) | PartType::InlineBinary(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        PartType::Message(_) | PartType::Multipart(_) => None,
    }
}

/// What a field says, in small letters.
fn value(fields: &str, name: &str) -> Option<String> {
    let mut lines = fields.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(field, _)| field.trim().eq_ignore_ascii_case(name))?;
    Some(value.trim().to_ascii_lowercase())
}

/// Whom a token in the text names. Lines may have been broken for transport (quoted-printable).
fn named(text: &[u8], tokens: &TokenMaker) -> Option<ReportedMail> {
    let text = String::from_utf8_lossy(text).replace("=\r\n", "").replace("=\n", "").to_ascii_lowercase();
    let after = |mark: &str, read: &dyn Fn(&str) -> Option<ReportedMail>| {
        text.match_indices(mark).find_map(|(at, _)| {
            let rest = &text[at + mark.len()..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            read(&rest[..end])
        })
    };
    let sign_up = |purpose, token: &str| tokens.read_no(purpose, token).map(ReportedMail::OfSignUp);
    let person = |token: &str| tokens.read_person(Purpose::BounceOfPerson, token).map(ReportedMail::OfPerson);
    after(RETURN_PATH, &|token| sign_up(Purpose::Bounce, token).or_else(|| person(token)))
        .or_else(|| after("/not-me/", &|token| sign_up(Purpose::Decline, token)))
        .or_else(|| {
            let person = |token: &str| tokens.read_unsubscribe(token).map(|(_, person)| ReportedMail::OfPerson(person));
            after("/unsubscribe/", &person)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::campaign::CampaignMail;
    use crate::domain::mail::PersonRef;
    use crate::domain::secret::Secret;
    use crate::domain::sign_up::{SignUpId, SignUpRef};

    const ANA: SignUpRef = SignUpRef { id: SignUpId(77), created_at: Timestamp::from_millis(5) };
    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn tokens() -> TokenMaker {
        TokenMaker::new(&Secret::new(&"a".repeat(32)).unwrap())
    }

    /// In the shape of the examples of RFC 3464, as Postfix fills it in.
    fn dsn(action: &str, status: &str, returned: &str) -> String {
        format!(
            "Return-Path: <>\r\nFrom: MAILER-DAEMON@mx.example.net (Mail Delivery System)\r\nTo: x@example.org\r\n\
             Subject: Undelivered Mail Returned to Sender\r\nAuto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/report; report-type=delivery-status;\r\n\tboundary=\"9B5A.17/mx.example.net\"\r\n\r\n\
             This is a MIME-encapsulated message.\r\n\r\n--9B5A.17/mx.example.net\r\n\
             Content-Description: Notification\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n\
             I'm sorry to have to inform you that your message could not be delivered.\r\n\r\n\
             --9B5A.17/mx.example.net\r\nContent-Description: Delivery report\r\n\
             Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.net\r\n\
             Arrival-Date: Sun, 15 Nov 2026 20:00:00 +0000 (UTC)\r\n\r\n\
             Final-Recipient: rfc822; ana@example.com\r\nAction: {action}\r\nStatus: {status}\r\n\
             Remote-MTA: dns; mail.example.com\r\nDiagnostic-Code: smtp; 550 5.1.1 no such user\r\n\r\n\
             --9B5A.17/mx.example.net\r\nContent-Description: Undelivered Message Headers\r\n\
             Content-Type: text/rfc822-headers\r\n\r\n{returned}\r\n--9B5A.17/mx.example.net--\r\n"
        )
    }

    /// In the shape of the example of RFC 5965.
    fn arf(kind: &str, returned: &str) -> String {
        format!(
            "From: <abusedesk@example.com>\r\nTo: <abuse@example.net>\r\nSubject: FW: Confirm\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/report; report-type=feedback-report;\r\n     boundary=\"part1_13d.2e68ed54\"\r\n\r\n\
             --part1_13d.2e68ed54\r\nContent-Type: text/plain; charset=\"US-ASCII\"\r\n\
             Content-Transfer-Encoding: 7bit\r\n\r\nThis is an email abuse report.\r\n\r\n--part1_13d.2e68ed54\r\n\
             Content-Type: message/feedback-report\r\n\r\nFeedback-Type: {kind}\r\nUser-Agent: SomeGenerator/1.0\r\n\
             Version: 1\r\n\r\n--part1_13d.2e68ed54\r\nContent-Type: message/rfc822\r\nContent-Disposition: inline\r\n\r\n\
             {returned}\r\n\r\nSpam Spam Spam\r\n--part1_13d.2e68ed54--\r\n"
        )
    }

    fn unsubscribe(purpose: Purpose) -> String {
        let token = tokens().token(purpose, ANA);
        format!("From: a@b.example\r\nList-Unsubscribe: <https://union.example/not-me/{token}>\r\nSubject: x")
    }

    fn read_kind(report: &str, recipient: Option<&str>) -> Result<ReportKind, NoReport> {
        read(report.as_bytes(), recipient, &tokens(), NOW).map(|read| {
            assert_eq!(read.mail, ReportedMail::OfSignUp(ANA));
            read.kind
        })
    }

    #[test]
    fn bounces_are_hard_or_soft_by_what_the_server_says() {
        let headers = unsubscribe(Purpose::Decline);
        for (action, status, kind) in [
            ("failed", "5.1.1", Ok(ReportKind::HardBounce)),
            ("Failed", "5.1.10 (null MX)", Ok(ReportKind::HardBounce)),
            ("failed", "5.2.1", Ok(ReportKind::HardBounce)),
            ("failed", "5.2.2", Ok(ReportKind::SoftBounce)),
            ("failed", "5.7.1", Ok(ReportKind::SoftBounce)),
            ("failed", "nonsense", Ok(ReportKind::SoftBounce)),
            ("delayed", "4.4.1", Ok(ReportKind::SoftBounce)),
            ("delivered", "2.0.0", Err(NoReport::Harmless)),
            ("relayed", "2.0.0", Err(NoReport::Harmless)),
        ] {
            assert_eq!(read_kind(&dsn(action, status, &headers), None), kind, "{action} {status}");
        }
    }

    #[test]
    fn complaints_are_heard() {
        let headers = unsubscribe(Purpose::Decline);
        assert_eq!(read_kind(&arf("abuse", &headers), None), Ok(ReportKind::Complaint));
        for harmless in ["not-spam", "auth-failure", "virus", ""] {
            assert_eq!(read_kind(&arf(harmless, &headers), None), Err(NoReport::Harmless), "{harmless}");
        }
    }

    #[test]
    fn reports_of_campaign_mail_name_a_person() {
        let person = PersonRef { id: 77, created_at: Timestamp::from_millis(5) };
        let reported = |report: &str, recipient| {
            read(report.as_bytes(), recipient, &tokens(), NOW).map(|read| (read.mail, read.kind))
        };
        let verp = format!("b-{}@bounces.union.example", tokens().person_token(Purpose::BounceOfPerson, person));
        let bounced = reported(&dsn("failed", "5.1.1", "Subject: x"), Some(&verp));
        assert_eq!(bounced, Ok((ReportedMail::OfPerson(person), ReportKind::HardBounce)));
        for kind in CampaignMail::ALL {
            let token = tokens().person_token(Purpose::Unsubscribe(kind), person);
            let headers = format!("List-Unsubscribe: <https://union.example/unsubscribe/{token}>\r\nSubject: x");
            let complained = reported(&arf("abuse", &headers), None);
            assert_eq!(complained, Ok((ReportedMail::OfPerson(person), ReportKind::Complaint)), "{kind:?}");
        }
    }

    #[test]
    fn nothing_is_believed_without_a_token_that_was_mailed() {
        let verp = format!("b-{}@bounces.union.example", tokens().token(Purpose::Bounce, ANA));
        let bare = dsn("failed", "5.1.1", "Subject: x");
        assert_eq!(read_kind(&bare, None), Err(NoReport::Token));
        assert_eq!(read_kind(&bare, Some(&verp)), Ok(ReportKind::HardBounce));
        assert_eq!(read_kind(&bare, Some(&verp.to_uppercase())), Ok(ReportKind::HardBounce));
        assert_eq!(read_kind(&bare.replace("x@example.org", &verp), None), Ok(ReportKind::HardBounce));
        let broken = unsubscribe(Purpose::Decline).replace("/not-me/0", "/not-me/0=\r\n");
        assert_eq!(read_kind(&dsn("failed", "5.1.1", &broken), None), Ok(ReportKind::HardBounce), "quoted-printable");
        // A link that confirms is no proof here, and neither is one that was made up.
        assert_eq!(read_kind(&dsn("failed", "5.1.1", &unsubscribe(Purpose::Confirm)), None), Err(NoReport::Token));
        let forged = verp.replace("b-0", "b-1");
        assert_eq!(read_kind(&bare, Some(&forged)), Err(NoReport::Token));
        let plain = format!("From: a@b.example\r\nSubject: out of office\r\n\r\n{}", unsubscribe(Purpose::Decline));
        for other in ["", "\0\u{1b}[2J", "From: x\r\n\r\nhello", &plain] {
            assert!(read(other.as_bytes(), Some(&verp), &tokens(), NOW).is_err(), "{other:?}");
        }
    }
}
