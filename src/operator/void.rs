//! Voiding a member in a campaign, and what came of it in words: for the command and the operator's page.

use super::{Act, Operator};
use crate::domain::campaign::CampaignSlug;
use crate::domain::email::EmailAddress;
use crate::domain::figure::money;
use crate::domain::reward::GroupState;
use crate::domain::secret::mark::AddressMarker;
use crate::domain::time::Timestamp;
use crate::rewards::Voided;
use crate::store::StoreError;

/// Why somebody is voided. The ledger keeps it after everybody concerned was erased.
pub fn read_void_reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.contains('@') {
        return Err("write it without an @: it stays in the ledger forever, and no address may".to_owned());
    }
    let is_good = (1..=200).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if is_good { Ok(text.to_owned()) } else { Err("write 1 to 200 characters on one line".to_owned()) }
}

/// What came of a void.
pub struct VoidOutcome {
    campaign: CampaignSlug,
    voided: Voided,
    /// The batch of the payout for their group that is not settled.
    batch: Option<i64>,
}

impl Operator {
    /// Removes a person from what their referrer earns in a campaign, as this act. The others in their group may make another one once
    /// rewards are caught up with.
    pub async fn void(
        &self,
        act: Act,
        (email, marker): (&EmailAddress, &AddressMarker),
        campaign: &CampaignSlug,
        reason: &str,
        now: Timestamp,
    ) -> Result<VoidOutcome, StoreError> {
        let who = act.who.clone();
        let rewards = self.audited(act).rewards();
        let voided = rewards.void(email, marker, campaign, (reason, &who), now).await?;
        let batch = match &voided {
            Voided::Done { payout: Some(payout), .. } => rewards.batch_of(payout).await?,
            _ => None,
        };
        Ok(VoidOutcome { campaign: campaign.clone(), voided, batch })
    }
}

impl VoidOutcome {
    pub fn is_nobody(&self) -> bool {
        self.voided == Voided::UnknownPerson
    }

    /// What was done; or why nothing was, as a part of a sentence.
    pub fn words(&self) -> Result<Vec<String>, String> {
        let slug = &self.campaign;
        let (group, cents, payout) = match &self.voided {
            Voided::Done { group, reversed_cents, payout } => (*group, *reversed_cents, payout),
            Voided::UnknownPerson => return Err("nobody has that address".to_owned()),
            Voided::UnknownCampaign => return Err(format!("there is no campaign {slug} anymore")),
            Voided::NotReferred => {
                return Err("nobody is credited for them, so nobody earns a reward for them".to_owned());
            }
            Voided::NotInCampaign => {
                return Err(format!("they never took part in {slug}, so they count for nobody there"));
            }
            Voided::Already => return Ok(vec![format!("They were voided in {slug} before; nothing was changed.")]),
        };
        let others = "The others in it count for another group.";
        let group = match group {
            None => "They were in no group, so their referrer loses nothing.".to_owned(),
            Some(GroupState::Dissolved) if cents == 0 => {
                format!("Their group was capped and earned nothing; it is dissolved. {others}")
            }
            Some(GroupState::Dissolved) => format!(
                "Their group was not paid yet and is dissolved: its reward of {} is reversed. {others}",
                money(cents)
            ),
            Some(GroupState::Reversed) => format!(
                "Their group was paid or is being paid: its reward of {} is deducted from what the referrer earns next. Nothing is collected. {others}",
                money(cents)
            ),
            Some(state) => {
                format!("Their group is {}: nobody is paid for it anymore. Nothing was recorded.", state.name())
            }
        };
        let mut lines = vec![format!("They no longer count in {slug}, and never will."), group];
        lines.extend(payout.as_ref().zip(self.batch).map(|(payout, batch)| {
            format!(
                "Its payout {payout} is in batch {batch} and not settled. If the file was not handed over yet, delete that row from it and \
                 settle it as failed; what else it pays for comes into the next batch."
            )
        }));
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_line_without_an_address() {
        assert_eq!(read_void_reason(" two accounts of one person "), Ok("two accounts of one person".to_owned()));
        assert!(read_void_reason("").is_err() && read_void_reason("a\nb").is_err());
        assert!(read_void_reason(&"x".repeat(201)).is_err());
        assert!(read_void_reason("same as kim@example.com").unwrap_err().contains("without an @"));
    }
}
