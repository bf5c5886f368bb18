//! `unionhall rewards void`

use anyhow::bail;

use super::{VoidMember, with_rewards};
use crate::cli::audit::act;
use crate::cli::{campaigns, members, print_line, secret};
use crate::domain::figure::money;
use crate::domain::reward::GroupState;
use crate::domain::secret::mark::AddressMarker;
use crate::rewards::Voided;

/// Why somebody is voided. The ledger keeps it after everybody concerned was erased.
pub(super) fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.contains('@') {
        return Err("write it without an @: it stays in the ledger forever, and no address may".to_owned());
    }
    let is_good = (1..=200).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if is_good { Ok(text.to_owned()) } else { Err("write 1 to 200 characters on one line".to_owned()) }
}

pub(super) fn run(task: &VoidMember) -> anyhow::Result<()> {
    let (email, slug) = (members::address(&task.email)?, &task.campaign);
    let (voided, batch) = with_rewards(&task.store, async |operator, now| {
        // The error names campaigns that may be meant.
        campaigns::find(&operator, slug, now).await?;
        let secret = secret::claim(&task.store, task.secret.given()?, &operator).await?.secret;
        let act = act("rewards void", slug.to_string(), now);
        let who = act.who.clone();
        let rewards = operator.audited(act).rewards();
        let voided = rewards.void(&email, &AddressMarker::new(&secret), slug, (&task.reason, &who), now).await?;
        // The others may make another group at once.
        rewards.catch_up(now).await?;
        let batch = match &voided {
            Voided::Done { payout: Some(payout), .. } => rewards.batch_of(payout).await?,
            _ => None,
        };
        Ok((voided, batch))
    })?;
    let (group, cents, payout) = match voided {
        Voided::Done { group, reversed_cents, payout } => (group, reversed_cents, payout),
        Voided::UnknownPerson => return Err(members::no_such_person()),
        Voided::UnknownCampaign => bail!("there is no campaign {slug} anymore"),
        Voided::NotReferred => {
            bail!("nobody is credited for them, so nobody earns a reward for them; nothing was changed")
        }
        Voided::NotInCampaign => {
            bail!("they never took part in {slug}, so they count for nobody there; nothing was changed")
        }
        Voided::Already => return print_line(&format!("They were voided in {slug} before; nothing was changed.")),
    };
    print_line(&format!("They no longer count in {slug}, and never will."))?;
    let others = "The others in it count for another group.";
    print_line(&match group {
        None => "They were in no group, so their referrer loses nothing.".to_owned(),
        Some(GroupState::Dissolved) if cents == 0 => {
            format!("Their group was capped and earned nothing; it is dissolved. {others}")
        }
        Some(GroupState::Dissolved) => {
            format!(
                "Their group was not paid yet and is dissolved: its reward of {} is reversed. {others}",
                money(cents)
            )
        }
        Some(GroupState::Reversed) => format!(
            "Their group was paid or is being paid: its reward of {} is deducted from what the referrer earns next. Nothing is collected. {others}",
            money(cents)
        ),
        Some(state) => format!("Their group is {}: nobody is paid for it anymore. Nothing was recorded.", state.name()),
    })?;
    match payout.zip(batch) {
        Some((payout, batch)) => print_line(&format!(
            "Its payout {payout} is in batch {batch} and not settled. If the file was not handed over yet, delete that row from it and settle \
             it as failed; what else it pays for comes into the next batch."
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_line_without_an_address() {
        assert_eq!(reason(" two accounts of one person "), Ok("two accounts of one person".to_owned()));
        assert!(reason("").is_err() && reason("a\nb").is_err() && reason(&"x".repeat(201)).is_err());
        assert!(reason("same as kim@example.com").unwrap_err().contains("without an @"));
    }
}
