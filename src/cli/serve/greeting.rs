//! What an operator reads when the service starts: which version it is, where it listens, and the first time what to do next.
//! It is JSON if the log is, unless a person reads it at a terminal.

use std::io::IsTerminal;

use crate::cli::print_line;
use crate::cli::secret::SecretOrigin;
use crate::clock::Clock;
use crate::config::{MailTransport, Records, ServeSettings};
use crate::domain::time::Timestamp;
use crate::log::{Format, Log, Severity, json_event};

/// Prints texts as people read them, or each as a line of JSON.
pub(super) struct Greeter {
    format: Format,
    now: Timestamp,
}

impl Greeter {
    /// A person at a terminal reads text, wherever the log goes.
    pub(super) fn new(settings: &ServeSettings, log: &Log, clock: Clock) -> Self {
        let usual = if std::io::stdout().is_terminal() { Format::Text } else { log.format() };
        Self { format: settings.log_format.unwrap_or(usual), now: clock.now().time }
    }

    fn print(&self, text: &str) -> anyhow::Result<()> {
        match self.format {
            Format::Text => print_line(text),
            Format::Json => print_line(&json_event(self.now, Severity::Info, None, text.trim())),
        }
    }

    /// Lines that belong together; in JSON each by itself.
    fn print_all(&self, lines: &[String]) -> anyhow::Result<()> {
        match self.format {
            Format::Text => print_line(&lines.join("\n")),
            Format::Json => lines.iter().filter(|line| !line.is_empty()).try_for_each(|line| self.print(line)),
        }
    }

    /// What to do, and the command for it.
    fn step(&self, what: &str, command: &str) -> String {
        match self.format {
            Format::Text => format!("{what}\n     {command}"),
            // A terminal's line is short, a command of the log is to be pasted.
            Format::Json => format!("{what} {}", command.replace("\\\n       ", "")),
        }
    }
}

/// Says which version listens where; the first time, what to do next.
pub(super) fn greet(
    greeter: &Greeter,
    settings: &ServeSettings,
    mail: &MailTransport,
    address: &str,
    mailbox_key: &str,
    origin: SecretOrigin,
) -> anyhow::Result<()> {
    greeter.print(&format!("unionhall {} listens on {address}", env!("UNIONHALL_VERSION")))?;
    let mailbox = format!("{address}/dev/mailbox?key={mailbox_key}");
    if matches!((origin, mail), (SecretOrigin::Known, MailTransport::Mailbox)) {
        greeter.print(&format!("Mail: {mailbox}"))?;
    }
    let keep = match origin {
        SecretOrigin::Known => return Ok(()),
        SecretOrigin::Made => "; the file `secret` there makes the referral links: back it up",
        SecretOrigin::Given => "; the secret you gave makes the referral links: keep it",
    };
    let program = std::env::args().next().unwrap_or_else(|| "unionhall".to_owned());
    let (data, flags) = (settings.store.data.display(), settings.store.as_flags());
    let kept = match settings.store.records()? {
        Records::Sqlite(_) => format!("{data}/"),
        records @ Records::Postgres(_) => records.to_string(),
    };
    let base_url = settings.union.base_url.as_deref().unwrap_or(address);
    let mail = match mail {
        MailTransport::Mailbox => greeter.step(
            &format!("Mail: nothing is sent. Each message is written to {data}/mailbox/; open this and click:"),
            &mailbox,
        ),
        MailTransport::Smtp(_) => "Mail: confirmation mails leave through the mail server you gave.".to_owned(),
        MailTransport::Hold => {
            "Mail: confirmation mails wait in the outbox; nothing is sent from here (--mail hold).".to_owned()
        }
        MailTransport::None => "Mail: off, and so are sign-ups (--mail none).".to_owned(),
    };
    let mut lines = vec![
        String::new(),
        format!("This is the first start. Its data is in {kept}{keep}."),
        String::new(),
        greeter.step("1. Read something that needs no key:", &format!("curl {base_url}/v1/negotiate-categories")),
        greeter.step(
            "2. Issue a key to a partner, from another terminal in this folder:",
            &format!("KEY=$({program} keys issue \"Acme Assistant\"{flags})"),
        ),
        greeter.step(
            "3. Sign a user up with it:",
            &format!(
                "curl {base_url}/v1/invite -H \"Authorization: Bearer $KEY\" -H \"Content-Type: application/json\" \\\n       \
                 -d '{{\"email\": \"ana@example.com\", \"categories\": {{\"internet\": true}}}}'"
            ),
        ),
        greeter.step(
            "4. Make a sample campaign, a draft that nobody sees until you open it:",
            &format!("{program} campaigns sample | {program} campaigns new -{flags}"),
        ),
        String::new(),
        mail,
        format!("Reference: {base_url}/docs   Settings: {program} serve --help"),
    ];
    if settings.union.figures.catalog.is_none() {
        lines.push("Catalog: the savings shown are samples until you give a --catalog.".to_owned());
    }
    if settings.union.contact_email.is_none() {
        lines.push("Contact: pages and documents show none until you give a --contact-email.".to_owned());
    }
    lines.push(String::new());
    greeter.print_all(&lines)
}
