//! The operator's page at 2 M people beside 10 k: its figures are kept, so that it costs the same. Each look is the first after a start,
//! because the page reads its figures only twice a minute.

use std::time::Instant;

use anyhow::{Context, bail};
use rusqlite::Connection;

use crate::goals::Finding;
use crate::lab::Lab;
use crate::load::{Request, ask};
use crate::people::SIZES;
use crate::server::{Installation, Manner, output};
use crate::statistics::median;

/// A year of days of nine sources, every state and category, and a tenth of all people as referrers who earned and were paid.
const FILL: &str = "
    PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN;
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 365)
        INSERT INTO source_days (partner_id, day, signed_up, confirmations_sent, joined, declined)
        SELECT p.id, unixepoch() / 86400 - i, 600, 590, 500, 3 FROM n, partners p;
    WITH categories (name) AS (VALUES (''), ('internet'), ('travel'), ('groceries'), ('mortgage')),
         states (name) AS (VALUES (''), ('CA'), ('NY'), ('TX'), ('FL'), ('OR'), ('WA'), ('IL'))
        INSERT INTO demand (category, us_state, members) SELECT c.name, s.name, 9000 + length(s.name) FROM categories c, states s
        WHERE true ON CONFLICT DO NOTHING;
    INSERT INTO referrers (person_id, members) SELECT id, id % 97 FROM people WHERE id % 10 = 1
        ON CONFLICT (person_id) DO NOTHING;
    INSERT INTO reward_ledger (account, kind, amount_cents, at, who, why)
        SELECT 'account' || id, 'accrual', 10000, 0, 'rules', '' FROM people WHERE id % 10 = 1;
    INSERT INTO account_sums (account, due_cents, out_cents, paid_cents, is_erased)
        SELECT 'account' || id, 10000, 0, 0, 0 FROM people WHERE id % 10 = 1;
    UPDATE reward_totals SET accounts = (SELECT count(*) FROM account_sums), due_cents = (SELECT sum(due_cents) FROM account_sums);
    COMMIT; PRAGMA wal_checkpoint(TRUNCATE)";

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let mut medians = Vec::new();
    for people in [SIZES[0], SIZES[SIZES.len() - 1]] {
        lab.progress.begin(&format!("making records of {people} people with figures"));
        let mut installation = lab.installation(people)?;
        let database = installation.data.join("unionhall.db");
        Connection::open(&database)?.execute_batch(FILL).context("the tables are not as the bench knows them")?;
        output(installation.command().args(["operator", "add", "bench", "--base-url", "http://bench.test"]))?;
        for (name, value) in
            [("UNIONHALL_OPERATOR_HEADER", "x-bench"), ("UNIONHALL_OPERATOR_HEADER_FROM", "127.0.0.0/8")]
        {
            installation.variables.push((name.to_owned(), value.to_owned()));
        }
        let looks = if lab.plan.quick { 5 } else { 21 };
        let times = (0..looks).map(|_| look(&installation)).collect::<anyhow::Result<Vec<_>>>()?;
        medians.push(median(times));
        lab.progress.step();
    }
    if let [few, many] = medians[..] {
        lab.report.found("operator.look", Finding::of(many / few));
        lab.report.note(format!("/operator, read anew: {few:.1} ms with 10 k people, {many:.1} ms with 2 M"));
    }
    Ok(())
}

/// How long the first look takes, in milliseconds.
fn look(installation: &Installation) -> anyhow::Result<f64> {
    let server = installation.serve(Manner::default())?;
    let request = Request::get_with("/operator", "x-bench: bench\r\n");
    let begun = Instant::now();
    let page = ask(server.address, &request)?;
    let took = begun.elapsed().as_secs_f64() * 1e3;
    if !page.contains("Members over time") {
        bail!("this is not the operator's page");
    }
    server.stop()?;
    Ok(took)
}
