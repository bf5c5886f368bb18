//! Delivers the sandbox's mail into its partner's inbox. Mail to the simulator's addresses is acted on as it arrives, the same way a person
//! would.

use crate::clock::Clock;
use crate::domain::email::EmailAddress;
use crate::domain::mail::inbox::ArrivingMail;
use crate::domain::mail::{DueMail, MailAbout};
use crate::domain::secret::Secret;
use crate::domain::secret::token::{Purpose, TokenMaker};
use crate::domain::sign_up::{DecidedHow, SeenPage};
use crate::domain::simulator::{SLOW_FOR, Simulated};
use crate::domain::time::Timestamp;
use crate::mail::{OutgoingMail, ReadableMail, SendError, Transport};
use crate::membership::Membership;
use crate::reply::Reply;
use crate::sandbox::inbox::PutInInbox;
use crate::store::{Store, StoreError};

pub struct InboxTransport {
    store: Store,
    membership: Membership,
    tokens: TokenMaker,
    clock: Clock,
}

impl InboxTransport {
    /// `secret` is the sandbox's own.
    pub fn new(store: Store, membership: Membership, secret: &Secret, clock: Clock) -> Self {
        Self { store, membership, tokens: TokenMaker::new(secret), clock }
    }

    async fn deliver(&self, mail: OutgoingMail) -> Result<(), SendError> {
        let OutgoingMail { name, readable, inbox, due, .. } = mail;
        // Mail to a partner's contact is not acted on.
        let asked = due.as_ref().and_then(|due| EmailAddress::parse(&due.recipient).ok());
        let acts = asked.and_then(|email| Simulated::of(&email));
        if acts == Some(Simulated::Bounce) {
            return Err(SendError::Rejected);
        }
        let now = self.clock.now().time;
        let ReadableMail { to, from, subject, text, html, .. } = readable;
        let arriving = ArrivingMail { partner: inbox, name, to, from, subject, text, html };
        self.store.run(PutInInbox(arriving, now)).await.map_err(not_now)?;
        match due {
            Some(due) => self.act(acts, &due, now).await,
            None => Ok(()),
        }
    }

    /// Acts only after the mail is in the inbox, so that anyone who sees the outcome also finds the mail.
    async fn act(&self, acts: Option<Simulated>, due: &DueMail, now: Timestamp) -> Result<(), SendError> {
        let MailAbout::SignUp(sign_up) = due.about else { return Ok(()) };
        // Counted from the first attempt, so a restart changes nothing.
        let slow_until = due.first_attempt_at.plus(SLOW_FOR);
        match acts {
            Some(Simulated::Slow) if now < slow_until => Err(SendError::NotBefore(slow_until)),
            Some(Simulated::Confirm | Simulated::Slow) => {
                let token = self.tokens.token(Purpose::Confirm, sign_up);
                // Confirms whatever the sign-up says by now: a repeat that came while this mail was on its way is not mailed again.
                self.membership.confirm(&token, SeenPage::default(), now).await.map(|_| ()).map_err(not_now)
            }
            Some(Simulated::Decline) => {
                let token = self.tokens.token(Purpose::Decline, sign_up);
                let done = self.membership.decline(&token, DecidedHow::Button, None, now).await;
                done.map(|_| ()).map_err(not_now)
            }
            Some(Simulated::Bounce | Simulated::Close | Simulated::Limit | Simulated::Fail) | None => Ok(()),
        }
    }
}

impl Transport for InboxTransport {
    fn send(&self, mail: OutgoingMail) -> Reply<'_, Result<(), SendError>> {
        Reply::later(self.deliver(mail))
    }
}

fn not_now(error: StoreError) -> SendError {
    SendError::Later(format!("the sandbox's records cannot be used: {error}"))
}
