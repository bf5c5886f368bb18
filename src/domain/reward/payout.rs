//! Payouts, and the file of them for the payment provider (CSV).

use super::super::campaign::CampaignSlug;
use super::super::json::named_enum;
use super::super::text::csv_field;
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

    /// Its line.
    pub fn line(&self) -> String {
        let email = self.email.as_deref().unwrap_or_default();
        let fields = [
            &self.external_id,
            email,
            &self.amount_cents.to_string(),
            "USD",
            self.campaign.as_str(),
            &self.groups.to_string(),
        ];
        format!("{}\n", fields.map(csv_field).join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_quotes_what_it_must() {
        let payout = PayoutRecord {
            id: 1,
            batch: 1,
            batch_at: Timestamp::from_millis(0),
            external_id: "abc-1-1".to_owned(),
            email: Some("\"a,b\"@example.com".to_owned()),
            amount_cents: 20_000,
            campaign: "internet-2027".parse().unwrap(),
            groups: 2,
            state: PayoutState::Out,
            paid_at: None,
            reference: None,
            reason: None,
        };
        assert_eq!(payout.line(), "abc-1-1,\"\"\"a,b\"\"@example.com\",20000,USD,internet-2027,2\n");
    }
}
