//! What accounts are due and paid, rolled up: each account that changed is summed again, and the totals move by the difference.

use std::collections::BTreeSet;

use crate::domain::reward::report::RewardTotals;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Changes that one step takes. Each may be a different account, at a few statements each.
const ACCOUNTS_BATCH: u32 = 100;

/// What one account is due, is being paid and was paid.
#[derive(Clone, Copy, PartialEq, Eq)]
struct AccountSums {
    due_cents: i64,
    out_cents: i64,
    paid_cents: i64,
    is_erased: bool,
}

impl AccountSums {
    /// What it adds to the totals, in the order of [`MOVE_TOTALS`].
    fn parts(self) -> [i64; 7] {
        let Self { due_cents, out_cents, paid_cents, is_erased } = self;
        let (due, negative) = (due_cents.max(0), due_cents.min(0));
        [1, due, if is_erased { due } else { 0 }, out_cents, paid_cents, i64::from(negative < 0), negative]
    }
}

const MOVE_TOTALS: &str = "
    UPDATE reward_totals SET accounts = accounts + $1, due_cents = due_cents + $2, erased_cents = erased_cents + $3,
        out_cents = out_cents + $4, paid_cents = paid_cents + $5, negative_accounts = negative_accounts + $6,
        negative_cents = negative_cents + $7
    WHERE id = 1";

/// Adds some changes to the sums; returns whether there may be more. Only the roll-up calls this, one at a time.
pub(crate) async fn add_up_accounts(sql: &mut dyn Sql) -> Result<bool, Failure> {
    let take = "DELETE FROM account_changes WHERE id IN (SELECT id FROM account_changes ORDER BY id LIMIT $1) RETURNING account";
    let taken: Vec<String> = sql.rows(take, values![ACCOUNTS_BATCH], |row| row.get(0)).await?;
    let is_full = taken.len() == ACCOUNTS_BATCH as usize;
    let mut moved = [0; 7];
    for account in taken.into_iter().collect::<BTreeSet<_>>() {
        // An account that never earned anything is in no list.
        let Some(after) = sums_of(sql, &account).await? else { continue };
        let before = "SELECT due_cents, out_cents, paid_cents, is_erased FROM account_sums WHERE account = $1";
        let before = sql.row(before, values![&account], sums).await?;
        if before == Some(after) {
            continue;
        }
        let keep = "INSERT INTO account_sums (account, due_cents, out_cents, paid_cents, is_erased) VALUES ($1, $2, $3, $4, $5)
                    ON CONFLICT (account) DO UPDATE SET due_cents = excluded.due_cents, out_cents = excluded.out_cents,
                        paid_cents = excluded.paid_cents, is_erased = excluded.is_erased";
        let AccountSums { due_cents, out_cents, paid_cents, is_erased } = after;
        sql.execute(keep, values![&account, due_cents, out_cents, paid_cents, is_erased]).await?;
        let before = before.map_or([0; 7], AccountSums::parts);
        for ((total, after), before) in moved.iter_mut().zip(after.parts()).zip(before) {
            *total += after - before;
        }
    }
    if moved != [0; 7] {
        let [accounts, due, erased, out, paid, negative_accounts, negative] = moved;
        sql.execute(MOVE_TOTALS, values![accounts, due, erased, out, paid, negative_accounts, negative]).await?;
    }
    Ok(is_full)
}

/// An account's sums from its lines and payouts; none if it has no line.
async fn sums_of(sql: &mut dyn Sql, account: &str) -> Result<Option<AccountSums>, Failure> {
    let add_up = "
        SELECT (SELECT CAST(sum(l.amount_cents) AS BIGINT) FROM reward_ledger l WHERE l.account = $1) AS due_cents,
               (SELECT CAST(coalesce(sum(o.amount_cents), 0) AS BIGINT) FROM payouts o
                WHERE o.account = $1 AND o.state = 'out') AS out_cents,
               (SELECT CAST(coalesce(sum(o.amount_cents), 0) AS BIGINT) FROM payouts o
                WHERE o.account = $1 AND o.state = 'paid') AS paid_cents,
               NOT EXISTS (SELECT 1 FROM people p WHERE p.account = $1) AS is_erased";
    let read = |row: &Row<'_>| row.get::<Option<i64>>("due_cents")?.map(|_| sums(row)).transpose();
    Ok(sql.row(add_up, values![account], read).await?.flatten())
}

fn sums(row: &Row<'_>) -> Result<AccountSums, Failure> {
    Ok(AccountSums {
        due_cents: row.get("due_cents")?,
        out_cents: row.get("out_cents")?,
        paid_cents: row.get("paid_cents")?,
        is_erased: row.get("is_erased")?,
    })
}

/// What all accounts are due, are being paid and were paid.
pub struct FindRewardTotals;

impl Unit for FindRewardTotals {
    type Done = RewardTotals;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<RewardTotals, Failure> {
        let totals =
            "SELECT accounts, due_cents, erased_cents, out_cents, paid_cents, negative_accounts, negative_cents
                      FROM reward_totals WHERE id = 1";
        let read = |row: &Row<'_>| {
            Ok(RewardTotals {
                accounts: row.get("accounts")?,
                due_cents: row.get("due_cents")?,
                erased_cents: row.get("erased_cents")?,
                out_cents: row.get("out_cents")?,
                paid_cents: row.get("paid_cents")?,
                negative_accounts: row.get("negative_accounts")?,
                negative_cents: row.get("negative_cents")?,
            })
        };
        Ok(sql.row(totals, values![], read).await?.unwrap_or_default())
    }
}
