//! What everybody earned and was paid: `unionhall rewards list` and `unionhall rewards tax`.

use serde_json::json;

use super::{ListAccounts, SumYear, with_rewards};
use crate::cli::audit::act;
use crate::cli::{print_aside, print_line, print_lines};
use crate::domain::figure::{counted, grouped, money};
use crate::domain::reward::RewardAccount;
use crate::domain::reward::report::OnTheWay;
use crate::operator::tax::TAX_HEADER;
use crate::rewards::report::FindOnTheWay;
use crate::rewards::standing::ListRewardAccounts;
use crate::rewards::{BatchRecord, PAGE, RewardAdmin};

/// The sums of all accounts.
#[derive(Default)]
struct AccountTotals {
    accounts: u64,
    groups: u64,
    capped: u64,
    due_cents: i64,
    /// Of that, what is due to those who were erased: nobody can be paid it.
    erased_cents: i64,
    out_cents: i64,
    paid_cents: i64,
    negative_accounts: u64,
    negative_cents: i64,
}

impl AccountTotals {
    fn add(&mut self, account: &RewardAccount) {
        self.accounts += 1;
        self.groups += u64::from(account.groups);
        self.capped += u64::from(account.capped);
        self.out_cents += account.out_cents;
        self.paid_cents += account.paid_cents;
        if account.due_cents < 0 {
            self.negative_accounts += 1;
            self.negative_cents += account.due_cents;
        } else {
            self.due_cents += account.due_cents;
            self.erased_cents += if account.email.is_none() { account.due_cents } else { 0 };
        }
    }
}

/// Each account, page by page: there may be many.
async fn each(
    rewards: &RewardAdmin,
    mut visit: impl FnMut(&RewardAccount) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut after = String::new();
    loop {
        let page = rewards.ask(ListRewardAccounts(after.to_owned(), PAGE)).await?;
        let Some(last) = page.last() else { return Ok(()) };
        last.account.as_str().clone_into(&mut after);
        page.iter().try_for_each(&mut visit)?;
    }
}

pub(super) fn run(task: &ListAccounts) -> anyhow::Result<()> {
    with_rewards(&task.store, async |operator, now| {
        let rewards = operator.rewards();
        let (mut totals, on_the_way) = (AccountTotals::default(), rewards.ask(FindOnTheWay(OnTheWay::MOST)).await?);
        let open = rewards.open_batches().await?;
        each(&rewards, |account| {
            totals.add(account);
            Ok(())
        })
        .await?;
        if totals.accounts > 0 {
            // Like `rewards tax`.
            operator.note(act("rewards list", counted(totals.accounts, "account"), now)).await?;
        }
        if task.json {
            print_line(&totals_json(&totals, &on_the_way).to_string())?;
            each(&rewards, |account| print_line(&json!(account).to_string())).await?;
            return open.0.iter().try_for_each(|batch| print_line(&batch_json(batch).to_string()));
        }
        print_lines(&total_lines(&totals, &on_the_way))?;
        if totals.accounts == 0 {
            return print_line("\nNobody has earned a reward yet.");
        }
        print_line("\nGROUPS  CAPPED         DUE  BEING PAID        PAID  ACCOUNT           ADDRESS")?;
        each(&rewards, |row| {
            let RewardAccount { groups, capped, .. } = row;
            let [due, out, paid] = [row.due_cents, row.out_cents, row.paid_cents].map(money);
            let (account, email) = (row.account.as_str(), row.email.as_deref().unwrap_or("erased"));
            print_line(&format!("{groups:>6}{capped:>8}{due:>12}{out:>12}{paid:>12}  {account:<18}{email}"))
        })
        .await?;
        print_lines(&batch_lines(&open))
    })
}

/// Batches that are not settled; `has_more` where there are further ones.
fn batch_lines((open, has_more): &(Vec<BatchRecord>, bool)) -> Vec<String> {
    if open.is_empty() {
        return Vec::new();
    }
    let mut lines =
        vec![String::new(), "    BATCH  MADE                  FILE             PAYOUTS      AMOUNT".to_owned()];
    lines.extend(open.iter().map(|batch| {
        let file = if batch.is_written { "written" } else { "never written" };
        let (made, amount) = (batch.created_at.to_string(), money(batch.out_cents));
        format!("{:>9}  {made:<22}{file:<15}{:>9}{amount:>12}", batch.id, grouped(batch.out))
    }));
    if *has_more {
        lines.push("There are more batches that are not settled.".to_owned());
    }
    lines
}

fn batch_json(batch: &BatchRecord) -> serde_json::Value {
    json!({
        "batch": batch.id, "createdAt": batch.created_at, "isWritten": batch.is_written, "out": batch.out,
        "outCents": batch.out_cents,
    })
}

fn total_lines(totals: &AccountTotals, on_the_way: &OnTheWay) -> Vec<String> {
    let at_least = if on_the_way.is_whole { "" } else { "at least " };
    let mut lines = vec![
        format!("{:<12}{} rewarded, {} capped", "Groups", grouped(totals.groups), grouped(totals.capped)),
        format!(
            "{:<12}{at_least}{} on hold, {at_least}{} waiting for a full group",
            "On the way",
            counted(on_the_way.on_hold, "member"),
            counted(on_the_way.waiting, "member")
        ),
        format!("{:<12}{}", "Due", money(totals.due_cents)),
        format!("{:<12}{}", "Being paid", money(totals.out_cents)),
        format!("{:<12}{}", "Paid", money(totals.paid_cents)),
    ];
    if totals.erased_cents > 0 {
        lines[2].push_str(&format!(
            ", of that {} to accounts that were erased, which no batch pays",
            money(totals.erased_cents)
        ));
    }
    if totals.negative_accounts > 0 {
        lines.push(format!(
            "{:<12}{}: {} more was paid, or is being paid, than was earned; it is deducted from later rewards",
            "Negative",
            counted(totals.negative_accounts, "account"),
            money(-totals.negative_cents)
        ));
    }
    lines
}

fn totals_json(totals: &AccountTotals, on_the_way: &OnTheWay) -> serde_json::Value {
    json!({ "totals": {
        "accounts": totals.accounts, "groups": totals.groups, "capped": totals.capped, "onHold": on_the_way.on_hold,
        "waiting": on_the_way.waiting, "onTheWayIsWhole": on_the_way.is_whole, "dueCents": totals.due_cents,
        "dueToErasedCents": totals.erased_cents, "outCents": totals.out_cents, "paidCents": totals.paid_cents,
        "negativeAccounts": totals.negative_accounts, "negativeCents": totals.negative_cents,
    }})
}

pub(super) fn tax(task: &SumYear) -> anyhow::Result<()> {
    let year = task.year.year;
    let sums = with_rewards(&task.store, async |operator, now| {
        // Like `members export`: whoever takes addresses along is written down.
        operator.note(act("rewards tax", year.to_string(), now)).await?;
        print_line(TAX_HEADER)?;
        operator.tax(task.year, print_line).await
    })?;
    print_aside(&format!("{year}: {}.", sums.words()));
    if let Some(withheld) = sums.withheld_words() {
        print_aside(&format!("{withheld} `unionhall members find ACCOUNT` shows the address."));
    }
    Ok(())
}
