//! Mail to an operator: the link that signs them in. Plain text, in English as their page is.

use super::compose::Composer;
use super::{OutgoingMail, SendError};
use crate::domain::operator::{LINK_FOR, MailedOperator};
use crate::domain::time::Timestamp;

impl Composer {
    /// `hash` names the mail and says nothing of the token.
    pub fn operator_link(
        &self,
        operator: &MailedOperator,
        token: &str,
        hash: &str,
        now: Timestamp,
    ) -> Result<OutgoingMail, SendError> {
        let (union, base, name) = (&self.union.name, &self.union.base_url, &operator.name);
        let text = format!(
            "Someone asked for a link to sign in to the operator's page of {union} as {name}.\n\n\
             To sign in, open this link within {minutes} minutes and press the button there. It works once:\n\n\
             {base}/operator/enter/{token}\n\n\
             If you didn't ask for it, ignore this email. Don't give the link to anyone: it signs in as you.\n",
            minutes = LINK_FOR.as_secs() / 60,
        );
        let name = format!("operator-{}", hash.get(..16).unwrap_or_default());
        self.plain_text(
            operator.email.as_typed(),
            (None, name),
            (format!("{union}: sign in as {}", operator.name), text),
            now,
        )
    }
}
