//! Payouts, and the file of them for the payment provider (CSV).

use super::super::base32;
use super::super::campaign::CampaignSlug;
use super::super::csv;
use super::super::json::named_enum;
use super::super::time::Timestamp;

named_enum! {
    pub enum PayoutState {
        /// In a file, and not settled.
        Out = "out",
        Paid = "paid",
        Failed = "failed",
        /// All of it went to what was paid too much before; it is in no file.
        Netted = "netted",
    }
}

impl PayoutState {
    /// What was paid may come back; what failed is due again, and goes out under another id.
    pub fn may_become(self, next: Self) -> bool {
        matches!((self, next), (Self::Out, Self::Paid | Self::Failed) | (Self::Paid, Self::Failed))
    }
}

/// What the ids of payouts carry since the records were last restored. Payouts that were made after the copy are unknown, and the
/// numbers of their ids are counted again. It is random, as a number of the restore would come back with the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutGeneration(String);

impl PayoutGeneration {
    /// Bytes of randomness.
    pub const ENTROPY: usize = 5;

    pub fn from_random(bytes: &[u8; Self::ENTROPY]) -> Self {
        Self(base32::text::<8>(bytes))
    }

    /// As the records have it.
    pub fn kept(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a payout was made since.
    pub fn has_made(&self, external_id: &str) -> bool {
        external_id.split('-').nth(2) == Some(self.as_str())
    }
}

/// The id of an account's payout for a campaign, as the provider knows it. Records that were never restored have no generation.
pub fn external_id(account: &str, campaign: i64, generation: Option<&PayoutGeneration>, number: i64) -> String {
    match generation {
        None => format!("{account}-{campaign}-{number}"),
        Some(generation) => format!("{account}-{campaign}-{}-{number}", generation.as_str()),
    }
}

/// What one member is paid for one campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutRecord {
    pub id: i64,
    pub batch: i64,
    /// When that was begun.
    pub batch_at: Timestamp,
    pub external_id: String,
    /// None once they are erased.
    pub email: Option<String>,
    pub amount_cents: i64,
    pub campaign: CampaignSlug,
    pub groups: u32,
    pub state: PayoutState,
    pub paid_at: Option<Timestamp>,
    /// What the provider calls it.
    pub reference: Option<String>,
    /// Why it failed.
    pub reason: Option<String>,
}

impl PayoutRecord {
    /// The first line of a batch's file.
    pub const HEADER: &str = "external_id,email,amount_cents,currency,campaign,groups\n";

    /// Its line, to be paid at `email`; none if it is withheld.
    pub fn line(&self, email: &str) -> Option<String> {
        let (cents, groups) = (self.amount_cents.to_string(), self.groups.to_string());
        let row = csv::row(&[&self.external_id, email, &cents, "USD", self.campaign.as_str(), &groups])?;
        Some(format!("{row}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_whether_it_was_made_since_the_restore() {
        let [one, other] = [[0; 5], [7; 5]].map(|bytes| PayoutGeneration::from_random(&bytes));
        assert_eq!(external_id("abc", 1, None, 12), "abc-1-12");
        let id = external_id("abc", 1, Some(&one), 12);
        assert_eq!(id, "abc-1-00000000-12");
        assert!(one.has_made(&id) && !other.has_made(&id));
        for before in ["abc-1-12", "abc-1-0", "abc", ""] {
            assert!(!one.has_made(before), "{before}");
        }
        // A restore before there were generations: no id of that time was made since.
        assert!(!PayoutGeneration::kept("0".to_owned()).has_made("abc-1-1"));
    }
}
