//! The servers that others run for us: Redis and the mail server, tried out as the service uses them.

use std::time::Duration;

use crate::cli::findings::{self, Finding, Grade, MAIL, TrialSettings};
use crate::cli::serve::limits::try_redis;
use crate::config::{LimitsAddress, MailTransport};
use crate::domain::health::MailState;
use crate::domain::union::Union;
use crate::http::request::host::is_local;
use crate::mail::Transport;
use crate::operator::findings::of_mail;

const LIMITS: &str = "limits";

/// How long a mail server may take to let us in; the service itself is more patient.
const MAIL_LOGIN_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) async fn limits(address: Option<LimitsAddress>, public_per_minute: u32) -> Vec<Finding> {
    let finding = match address {
        // Told with the settings.
        None => return Vec::new(),
        Some(LimitsAddress::Memory) => Finding::ok(LIMITS, "counted in this process"),
        Some(LimitsAddress::Redis(target)) => match Box::pin(try_redis(&target, public_per_minute)).await {
            Ok(()) => Finding::ok(LIMITS, "Redis accepts the login and counts"),
            Err(error) => Finding::of_error(LIMITS, Grade::Fail, &error),
        },
    };
    vec![finding]
}

pub(super) async fn mail(transport: Option<&MailTransport>, union: Option<&Union>) -> Vec<Finding> {
    let public = union.is_some_and(|union| !is_local(union));
    let finding = match transport {
        None => return Vec::new(),
        Some(MailTransport::Mailbox) => {
            let trial = TrialSettings { mail_goes_to_a_folder: true, ..TrialSettings::default() };
            let judged = union.map(|union| findings::public_address(union, &trial)).unwrap_or_default();
            return judged.into_iter().filter(|finding| finding.check == MAIL).collect();
        }
        Some(MailTransport::Hold) => return of_mail(MailState::Held, public).into_iter().collect(),
        Some(MailTransport::None) => return of_mail(MailState::Off, public).into_iter().collect(),
        Some(MailTransport::Smtp(smtp)) => {
            let fix = "correct the address, the login or the encryption in UNIONHALL_MAIL, or fix the server; nothing was sent";
            match tokio::time::timeout(MAIL_LOGIN_TIMEOUT, smtp.try_out()).await {
                Ok(Ok(())) => Finding::ok(MAIL, format!("the server at {smtp} accepts the login")),
                Ok(Err(why)) => {
                    let finding = Finding::of_error(MAIL, Grade::Fail, &anyhow::anyhow!(why)).or_fix(fix);
                    Finding { message: format!("{} ({smtp})", finding.message), ..finding }
                }
                Err(_) => {
                    Finding::fail(MAIL, format!("the mail server did not accept the login within 15 s ({smtp})"), fix)
                }
            }
        }
    };
    vec![finding]
}
