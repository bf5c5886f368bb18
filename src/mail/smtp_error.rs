//! Why mail did not go through the server: where in the conversation it failed, and what that means. A server's words are never
//! repeated, for they may hold an address or what a terminal obeys.

use std::time::Duration;

use lettre::transport::smtp;
use tokio_rustls::rustls::{self, CertificateError};

use super::SendError;
use crate::domain::mail::report::{enhanced_status, is_recipients_fault};

/// What is said to the server, one after the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Connect,
    Greeting,
    Tls,
    Login,
    Sender,
    Recipient,
    Data,
    Message,
    Reset,
}

impl Stage {
    const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connecting",
            Self::Greeting => "the greeting",
            Self::Tls => "STARTTLS",
            Self::Login => "AUTH",
            Self::Sender => "MAIL FROM",
            Self::Recipient => "RCPT TO",
            Self::Data => "DATA",
            Self::Message => "the message",
            Self::Reset => "RSET",
        }
    }

    /// How long its answer is waited for. A server that looks a recipient up somewhere else takes a while.
    pub(super) const fn time(self) -> Duration {
        Duration::from_secs(match self {
            Self::Connect | Self::Reset => 10,
            Self::Greeting | Self::Tls | Self::Login | Self::Sender => 20,
            Self::Recipient | Self::Data => 60,
            Self::Message => 600,
        })
    }
}

/// Why a stage was not got past.
pub(super) struct SmtpError {
    pub stage: Stage,
    pub reply: SmtpReply,
}

pub(super) enum SmtpReply {
    /// Its numbers: the reply, and the enhanced status if it gave one.
    Answer(u16, Option<[u16; 3]>),
    /// It cannot take this mail, as it said at the greeting.
    Unable(&'static str),
    Late,
    /// Its certificate is not trusted: why, and what would be right.
    Certificate(String),
    Broken(&'static str),
}

/// What a failure of the client means to the operator, without the words of the server.
pub(super) fn understand(error: &smtp::Error) -> SmtpReply {
    if let Some(code) = error.status() {
        let text = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
        return SmtpReply::Answer(u16::from(code), enhanced_status(&text));
    }
    if error.is_tls() {
        return SmtpReply::Broken("TLS could not be agreed; is its certificate trusted, and for that name?");
    }
    if error.is_response() {
        return SmtpReply::Broken("what it answered is not SMTP");
    }
    if error.is_client() {
        return SmtpReply::Broken("it offers no way to log in that is known here (PLAIN, LOGIN)");
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(source) = cause {
        if let Some(io) = source.downcast_ref::<std::io::Error>() {
            let tls = io.get_ref().and_then(|inner| inner.downcast_ref());
            return match tls {
                Some(rustls::Error::InvalidCertificate(why)) => SmtpReply::Certificate(certificate_fault(why)),
                _ => SmtpReply::Broken(words(io.kind())),
            };
        }
        cause = source.source();
    }
    SmtpReply::Broken("the connection broke")
}

/// What is wrong with the certificate, and what would be right.
fn certificate_fault(why: &CertificateError) -> String {
    let fault = match why {
        CertificateError::NotValidForNameContext { expected, .. } => {
            return format!("it is not for {}; write a name that it is for in UNIONHALL_MAIL", expected.to_str());
        }
        CertificateError::NotValidForName => "it is for another name; write a name that it is for in UNIONHALL_MAIL",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired; renew it on the mail server"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet; set this machine's clock, or replace it on the mail server"
        }
        // The signature is wrong where a trusted CA has the name of the one that signed it.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "it is signed by no CA that this machine trusts; add its CA to the system's \
             certificates, or name a file with every CA to trust in SSL_CERT_FILE"
        }
        // What `openssl req -x509` makes, trusted or not; the verifier has no variant for it.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "it is the certificate of a CA (CA:TRUE); give the mail server one of its own, signed by that CA"
        }
        _ => "it is damaged, revoked or made for another purpose; replace it on the mail server",
    };
    fault.to_owned()
}

fn words(kind: std::io::ErrorKind) -> &'static str {
    use std::io::ErrorKind;
    match kind {
        ErrorKind::ConnectionRefused => "nobody listens there",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "there is no route to it",
        ErrorKind::TimedOut => "nobody answers there",
        ErrorKind::InvalidData => "what it sent is not SMTP, or not the TLS that was asked for",
        _ => "the connection broke, or its name was not found",
    }
}

impl SmtpError {
    /// Nothing has gone.
    pub(super) fn before_data(self) -> SendError {
        match self.reply {
            SmtpReply::Answer(_, Some(status)) if self.stage == Stage::Recipient && is_recipients_fault(status) => {
                SendError::Rejected
            }
            _ => SendError::Later(self.to_string()),
        }
    }

    /// The whole message was sent: only an error reply says that it was not accepted.
    pub(super) fn of_the_message(self) -> SendError {
        match self.reply {
            SmtpReply::Answer(_, Some(status)) if is_recipients_fault(status) => SendError::Rejected,
            SmtpReply::Answer(..) => SendError::Later(self.to_string()),
            _ => SendError::Unknown(self.to_string()),
        }
    }
}

impl std::fmt::Display for SmtpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stage = self.stage.name();
        match &self.reply {
            SmtpReply::Answer(code, Some([class, subject, detail])) => {
                write!(f, "the mail server answered {code} {class}.{subject}.{detail} to {stage}")
            }
            SmtpReply::Answer(code, None) => write!(f, "the mail server answered {code} to {stage}"),
            SmtpReply::Unable(what) => write!(f, "the mail server could not be used: {what}"),
            SmtpReply::Certificate(why) => write!(f, "the mail server's certificate is not trusted: {why}"),
            SmtpReply::Late => write!(f, "the mail server could not be used: no answer to {stage} in time"),
            SmtpReply::Broken(what) => write!(f, "the mail server could not be used: {what}, at {stage}"),
        }
    }
}
