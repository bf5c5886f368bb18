//! The mail budget: how much mail a source may send in a day.

use clap::Args;

use super::whole;
use crate::domain::mail::budget::MailBudget;

/// The budget of each source.
#[derive(Clone, Args)]
#[command(next_help_heading = "Mail budgets")]
pub struct MailBudgetSettings {
    /// Mails a day that the join form may cause to begin with; 0 for no limit.
    ///
    /// Each sign-up that was confirmed in the last seven days adds two. Past the limit, the form asks browsers for a proof of work, and
    /// mail without one is held until you decide: `unionhall mail release --form` or `mail drop --form`. If hardly
    /// anyone confirms, or many decline, a tenth is left.
    #[arg(long, env = "UNIONHALL_FORM_MAILS_A_DAY", value_name = "N", default_value_t = 60, value_parser = whole::<u32>(0, u32::MAX))]
    pub form_mails_a_day: u32,

    /// Mails a day that a partner may cause to begin with, over all its keys; 0 for no limit. It grows and shrinks like the
    /// form's. The API answers the same, and mail past the limit is held: `unionhall mail release --key ID`.
    #[arg(long, env = "UNIONHALL_KEY_MAILS_A_DAY", value_name = "N", default_value_t = 1000, value_parser = whole::<u32>(0, u32::MAX))]
    pub key_mails_a_day: u32,
}

impl MailBudgetSettings {
    pub fn budget(&self) -> MailBudget {
        MailBudget { form_a_day: self.form_mails_a_day, key_a_day: self.key_mails_a_day }
    }
}
