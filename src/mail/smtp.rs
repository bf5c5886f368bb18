//! Mail through a server, by SMTP: encrypted, authenticated, several at once, and sure of how far each got.
//!
//! Until the server has said that it waits for the message, nothing can have gone: whatever happens before is "later".
//! After that its answer is waited for as long as the protocol asks (RFC 5321, 4.5.3.2), because a mail whose answer came
//! late has gone. A server's words are never repeated, for they may hold an address or what a terminal obeys.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lettre::address::Envelope;
use lettre::transport::smtp::authentication::DEFAULT_MECHANISMS;
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail, Rcpt, Rset};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use lettre::transport::smtp::{self, response::Response};
use tokio::time::Instant;

use super::smtp_address::{BadServer, Encryption, SmtpAddress};
use super::smtp_error::{SmtpError, SmtpReply, Stage, understand};
use super::{OutgoingMail, SendError, Transport};
use crate::reply::Reply;

/// Connections kept for the next mail, and for how long.
const KEPT: usize = 16;
const KEPT_FOR: Duration = Duration::from_secs(30);

const NO_STARTTLS: &str = "it does not offer STARTTLS, and neither a password nor a mail is sent to it in the clear; turn \
    STARTTLS on there, or write smtps:// in UNIONHALL_MAIL if it speaks TLS from the start, or add ?tls=none to send in the clear";

pub struct Smtp {
    address: SmtpAddress,
    hello: ClientId,
    idle: Arc<Mutex<IdleConnections>>,
}

#[derive(Default)]
struct IdleConnections {
    /// The one that waits longest first.
    waiting: Vec<Idle>,
    /// Whether a task looks after them.
    watched: bool,
}

/// A connection that waits for the next mail.
struct Idle {
    connection: AsyncSmtpConnection,
    since: Instant,
}

impl Smtp {
    pub fn new(url: &str) -> Result<Self, BadServer> {
        Ok(Self { address: SmtpAddress::parse(url)?, hello: ClientId::default(), idle: Arc::default() })
    }

    /// Connects and logs in as for a mail, and quits without sending.
    async fn log_in(&self) -> Result<(), String> {
        let mut connection = self.connect().await.map_err(|error| error.to_string())?;
        // It has let us in; how it answers does not matter.
        let _gone = at(Stage::Reset, connection.quit()).await;
        Ok(())
    }

    async fn deliver(&self, mail: OutgoingMail) -> Result<(), SendError> {
        let (envelope, message) = (mail.message.envelope(), mail.message.formatted());
        let mut connection = self.offer(envelope, message.is_ascii()).await.map_err(SmtpError::before_data)?;
        let answer = at(Stage::Message, connection.message(&message)).await;
        answer.map_err(SmtpError::of_the_message)?;
        self.keep(connection);
        Ok(())
    }

    /// A connection whose server waits for the message. One that was kept may have been closed meanwhile; nothing has gone
    /// yet, so a new one takes its place.
    async fn offer(&self, envelope: &Envelope, ascii: bool) -> Result<AsyncSmtpConnection, SmtpError> {
        if let Some(mut connection) = self.kept() {
            match self.name_parties(&mut connection, envelope, ascii).await {
                Ok(()) => return Ok(connection),
                Err(error) if matches!(error.reply, SmtpReply::Broken(_) | SmtpReply::Answer(421, _)) => {}
                Err(error) => return Err(self.reuse(connection, error).await),
            }
        }
        let mut connection = self.connect().await?;
        match self.name_parties(&mut connection, envelope, ascii).await {
            Ok(()) => Ok(connection),
            Err(error) => Err(self.reuse(connection, error).await),
        }
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, SmtpError> {
        let SmtpAddress { host, port, encryption, login } = &self.address;
        let from_the_start = match encryption {
            Encryption::FromTheStart(tls) => Some(tls.clone()),
            _ => None,
        };
        let server = (host.as_str(), *port);
        let connecting =
            AsyncSmtpConnection::connect_tokio1(server, Some(Stage::Connect.time()), &self.hello, from_the_start, None);
        let mut connection = at(Stage::Greeting, connecting).await?;
        match encryption {
            // A man in the middle could get the password by removing STARTTLS from the server's answer.
            Encryption::Asked(_) if !connection.can_starttls() => {
                let reply = SmtpReply::Unable(NO_STARTTLS);
                return Err(SmtpError { stage: Stage::Tls, reply });
            }
            Encryption::Asked(tls) | Encryption::Offered(tls) if connection.can_starttls() => {
                at(Stage::Tls, connection.starttls(tls.clone(), &self.hello)).await?;
            }
            _ => {}
        }
        if let Some(login) = login {
            at(Stage::Login, connection.auth(DEFAULT_MECHANISMS, login)).await?;
        }
        Ok(connection)
    }

    async fn name_parties(
        &self,
        connection: &mut AsyncSmtpConnection,
        envelope: &Envelope,
        ascii: bool,
    ) -> Result<(), SmtpError> {
        let mut parameters = Vec::new();
        let wants = |extension| connection.server_info().supports_feature(extension);
        let plain = envelope.to().iter().chain(envelope.from()).all(|address| AsRef::<str>::as_ref(address).is_ascii());
        if !plain {
            if !wants(Extension::SmtpUtfEight) {
                let reply = SmtpReply::Unable("it takes no addresses with letters of other scripts (SMTPUTF8)");
                return Err(SmtpError { stage: Stage::Greeting, reply });
            }
            parameters.push(MailParameter::SmtpUtfEight);
        }
        if !ascii {
            if !wants(Extension::EightBitMime) {
                let reply = SmtpReply::Unable("it takes no letters of other scripts (8BITMIME)");
                return Err(SmtpError { stage: Stage::Greeting, reply });
            }
            parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        let sender = Mail::new(envelope.from().cloned(), parameters);
        at(Stage::Sender, connection.command(sender)).await?;
        for recipient in envelope.to() {
            at(Stage::Recipient, connection.command(Rcpt::new(recipient.clone(), Vec::new()))).await?;
        }
        at(Stage::Data, connection.command(Data)).await.map(|_: Response| ())
    }

    /// A connection on which one mail was refused can carry the next.
    async fn reuse(&self, mut connection: AsyncSmtpConnection, error: SmtpError) -> SmtpError {
        if matches!(error.reply, SmtpReply::Unable(_))
            || (matches!(error.reply, SmtpReply::Answer(code, _) if code != 421)
                && at(Stage::Reset, connection.command(Rset)).await.is_ok())
        {
            self.keep(connection);
        }
        error
    }

    fn kept(&self) -> Option<AsyncSmtpConnection> {
        let newest = lock(&self.idle).waiting.pop()?;
        (newest.since.elapsed() < KEPT_FOR).then_some(newest.connection)
    }

    fn keep(&self, connection: AsyncSmtpConnection) {
        let mut idle = lock(&self.idle);
        if idle.waiting.len() < KEPT {
            idle.waiting.push(Idle { connection, since: Instant::now() });
        }
        if !std::mem::replace(&mut idle.watched, true) {
            tokio::spawn(end_idle(Arc::clone(&self.idle)));
        }
    }
}

fn lock(idle: &Mutex<IdleConnections>) -> MutexGuard<'_, IdleConnections> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes connections that have been idle for a while, until there are none.
async fn end_idle(idle: Arc<Mutex<IdleConnections>>) {
    loop {
        tokio::time::sleep(KEPT_FOR).await;
        let (over, goes_on) = {
            let mut idle = lock(&idle);
            let over = idle.waiting.iter().take_while(|idle| idle.since.elapsed() >= KEPT_FOR).count();
            let over: Vec<_> = idle.waiting.drain(..over).collect();
            idle.watched = !idle.waiting.is_empty();
            (over, idle.watched)
        };
        for mut idle in over {
            // Whether it answers does not matter any more.
            let _gone = at(Stage::Reset, idle.connection.quit()).await;
        }
        if !goes_on {
            return;
        }
    }
}

impl std::fmt::Display for Smtp {
    /// Where it is and how it is spoken to, without the login.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SmtpAddress { host, port, encryption, login } = &self.address;
        let encrypted = match encryption {
            Encryption::None => "in the clear",
            Encryption::Offered(_) => "with STARTTLS if it is offered",
            Encryption::Asked(_) => "with STARTTLS",
            Encryption::FromTheStart(_) => "with TLS",
        };
        let login = if login.is_some() { "a login" } else { "no login" };
        write!(f, "{host}:{port}, {encrypted} and {login}")
    }
}

impl Transport for Smtp {
    fn send(&self, mail: OutgoingMail) -> Reply<'_, Result<(), SendError>> {
        Reply::later(self.deliver(mail))
    }

    fn try_out(&self) -> Reply<'_, Result<(), String>> {
        Reply::later(self.log_in())
    }
}

/// The answer to a stage, within its time.
async fn at<T>(stage: Stage, asked: impl Future<Output = Result<T, smtp::Error>>) -> Result<T, SmtpError> {
    match tokio::time::timeout(stage.time(), asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(SmtpError { stage, reply: understand(&error) }),
        Err(_) => Err(SmtpError { stage, reply: SmtpReply::Late }),
    }
}
