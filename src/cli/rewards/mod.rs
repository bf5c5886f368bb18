//! `unionhall rewards`

mod batch;
mod list;
mod review;
mod void;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::with_live_records;
use crate::clock::Clock;
use crate::config::{DisposableSettings, SecretSettings, StoreSettings};
use crate::domain::campaign::CampaignSlug;
use crate::domain::time::Timestamp;
use crate::operator::Operator;
use crate::operator::tax::TaxYear;
use crate::operator::void::read_void_reason;

#[derive(Subcommand)]
pub(super) enum RewardsCommand {
    /// Show what to review before paying: patterns among the members of groups that are not paid yet.
    ///
    /// Nothing is judged and nothing is changed. Because it prints addresses, the audit log gets a row. Shown, each with the rows behind it:
    ///
    /// - burst: 3 or more members of one referrer joined within an hour;
    ///
    /// - disposable: an address is at a domain of disposable mailboxes, according to today's list;
    ///
    /// - partner: more than half of one referrer's members, and at least 3, joined through one partner;
    ///
    /// - erased: members were erased since they counted, so the patterns above cannot show them;
    ///
    /// - ring: following who referred whom leads back to the referrer, in at most 10 steps.
    ///
    /// Groups in a batch that is not settled are looked at too. So review before `rewards batch new`: a payout whose file is written
    /// cannot be taken back. `rewards void` takes a member out of what their referrer earns.
    Review(ReviewGroups),
    /// List what members earned: the totals, then each account with its groups, what is due, what is being paid and what was paid;
    /// and the batches that are not settled, at most the 20 oldest.
    ///
    /// Because it prints addresses, the audit log gets a row.
    List(ListAccounts),
    /// Permanently remove a member from what their referrer earns in a campaign, for fraud.
    ///
    /// If their group is not paid yet, it is dissolved and its reward is reversed; the others in it count for another group, and a group
    /// that was capped may take its place. If it is paid or being paid, its reward is reversed and deducted from what the referrer earns
    /// next; nothing is collected. A member who is not in a group yet will never be in one of that campaign.
    Void(VoidMember),
    /// Pay: write what is due into a file, and record the result.
    #[command(subcommand)]
    Batch(BatchCommand),
    /// Add up what each account was paid in a year, as CSV (account,email,paid_cents,currency); the total goes to standard error.
    ///
    /// A year is a year in UTC. A payout belongs to the year of `paid_at` in the provider's answer; a day without a time counts as noon
    /// UTC. Payouts that came back (failed after paid) do not count. The address is empty once the person is erased. A row whose address
    /// a spreadsheet would run as a formula is withheld, and its account and sum named on standard error.
    Tax(SumYear),
}

#[derive(Subcommand)]
pub(super) enum BatchCommand {
    /// Put everything that is due into a batch, and write its file for the payment provider.
    ///
    /// The file is CSV: external_id,email,amount_cents,currency,campaign,groups. A row is what one member earned in one campaign. Its
    /// external_id never changes: give it to the provider as the key against paying twice. A row whose address a spreadsheet would run as
    /// a formula is withheld, and its id named on standard error: pay it by hand, and settle it. The file is written whole or not at all, and
    /// readable to its owner alone. A file that is there is replaced only if it holds the same batch.
    ///
    /// What is in a batch is no longer due; it is being paid until it is settled. Run again, the command goes on with a batch whose file
    /// was never written. If nothing new is due, it writes the file of the newest batch that is not settled again, with the
    /// payouts that are not.
    New(NewBatch),
    /// Record the provider's answer: what was paid, and what failed.
    ///
    /// The file is CSV with the columns external_id,status,reference,paid_at,reason, in any order; the last three may be missing, and
    /// further ones are ignored. `status` is `paid` or `failed`. `paid_at` is a day (2027-05-04) or a time (2027-05-04T12:00:00Z), and
    /// needed where it was paid; not before the day before the batch was made, nor later than tomorrow. If there is a column
    /// amount_cents, it has to be what the payout is; for a payout from before the records were restored it is needed. If a line is wrong, all mistakes are listed and nothing is recorded.
    ///
    /// What failed is due again, and gets another external_id in the next batch. What was paid may fail later, if the money came back. The
    /// same file can be given again: what is recorded already stays as it is, and lines that differ from it are listed.
    Settle(SettleBatch),
}

#[derive(Args)]
pub(super) struct ReviewGroups {
    #[command(flatten)]
    disposable: DisposableSettings,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct ListAccounts {
    /// As JSON Lines for programs: first an object with `totals`, then one for each account, then one for each batch that is not
    /// settled. Money is in cents.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct VoidMember {
    /// The member's address; `-` to read it on standard input, so that it is not in the shell's history.
    email: String,
    /// The campaign's slug, as `campaigns list` shows it.
    #[arg(long, value_name = "SLUG")]
    campaign: CampaignSlug,
    /// Why, in 1 to 200 characters on one line and without an address: it stays in the ledger forever.
    #[arg(long, value_name = "TEXT", value_parser = read_void_reason)]
    reason: String,
    #[command(flatten)]
    secret: SecretSettings,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct NewBatch {
    /// The file to write, such as payouts.csv.
    file: PathBuf,
    /// Make no batch; write the file of this one again, with the payouts that are not settled.
    #[arg(long, value_name = "N", value_parser = batch::number, allow_negative_numbers = true)]
    batch: Option<i64>,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct SettleBatch {
    /// The provider's answer; `-` reads standard input.
    file: String,
    /// Take a `paid_at` before the batch was made: after a restore, or for what was recorded wrong, a payout that was made is recorded under
    /// the id of a later batch.
    #[arg(long)]
    paid_earlier: bool,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct SumYear {
    /// The year, such as 2027.
    #[arg(long, value_name = "YEAR", value_parser = TaxYear::read, allow_negative_numbers = true)]
    year: TaxYear,
    #[command(flatten)]
    store: StoreSettings,
}

pub(super) fn run(command: &RewardsCommand) -> anyhow::Result<()> {
    match command {
        RewardsCommand::Review(task) => review::run(task),
        RewardsCommand::List(task) => list::run(task),
        RewardsCommand::Void(task) => void::run(task),
        RewardsCommand::Batch(BatchCommand::New(task)) => batch::new(task),
        RewardsCommand::Batch(BatchCommand::Settle(task)) => batch::settle(task),
        RewardsCommand::Tax(task) => list::tax(task),
    }
}

/// Runs one piece of work on rewards that are up to date, whether a service is running or not.
fn with_rewards<T>(
    store: &StoreSettings,
    work: impl AsyncFnOnce(Operator, Timestamp) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let now = Clock::start().now().time;
    with_live_records(store, async |operator| {
        operator.rewards().catch_up(now).await?;
        work(operator, now).await
    })
}
