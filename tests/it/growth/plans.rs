//! The plans of PostgreSQL for every statement that the other tests ran, on filled tables. Each is planned for any values (a generic
//! plan) where walking a table is forbidden as far as the planner can do without it: whatever it still walks has no index that serves.

use crate::prelude::*;
use tokio_postgres::{Client, SimpleQueryMessage};
use unionhall::store::plan;

use super::{ROWS, crowd, found, start};
use crate::records::{ask, connect};

/// Statements that are run on PostgreSQL in a whole run, at the least.
const STATEMENTS: usize = 300;

/// Reads what the other tests ran: `./test.sh` runs it after them.
#[tokio::test(flavor = "multi_thread")]
async fn every_statement_that_ran_finds_its_rows_by_an_index() {
    needs!(Statements);
    let file = std::env::var("UNIONHALL_TEST_STATEMENTS").unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let mut statements: Vec<&str> = text.lines().collect();
    statements.sort_unstable();
    statements.dedup();
    assert!(statements.len() > STATEMENTS, "{} statements", statements.len());
    let server = start(Home::on_postgres(tempfile::tempdir().unwrap()));
    found(&server).await;
    crowd::fill(&server);
    let home = server.stop().1;
    let Records::Postgres { store, .. } = home.records() else { panic!("these records are in PostgreSQL") };
    ask(store, "ANALYZE").unwrap();
    let client = connect(store).await.unwrap();
    let mut refused = Vec::new();
    for statement in statements {
        refused.extend(refusal(&client, statement).await);
    }
    assert!(refused.is_empty(), "with {ROWS} rows of each kind:\n{}", refused.join("\n"));

    let list = "SELECT id FROM partner_events WHERE partner_id = $1 ORDER BY position LIMIT $2";
    assert_eq!(refusal(&client, list).await, None);
    for index in ["by_time", "by_key", "by_position", "to_number"] {
        ask(store, &format!("DROP INDEX partner_events_{index}")).unwrap();
    }
    holds(&refusal(&client, &format!("{list} ")).await.unwrap(), &["reads all of partner_events"]);
}

/// Why a statement may not be run.
async fn refusal(client: &Client, sql: &str) -> Option<String> {
    // Nothing else has a plan.
    if !["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].iter().any(|word| sql.starts_with(word)) {
        return None;
    }
    let mut scans = match explain(client, sql).await {
        Ok(plan) => scans(&plan),
        Err(error) => return Some(format!("{error}: {sql}")),
    };
    scans.retain(|table, _| !table.starts_with("pg_"));
    plan::judge(sql, scans).err().map(|refused| refused.to_string())
}

async fn explain(client: &Client, sql: &str) -> Result<Value, tokio_postgres::Error> {
    const FORBIDDEN: [&str; 4] = ["enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_material"];
    let values = match client.prepare(sql).await?.params().len() {
        0 => String::new(),
        some => format!("({})", ["NULL"].repeat(some).join(", ")),
    };
    let off = FORBIDDEN.join(" = off; SET ");
    let messages = client
        .simple_query(&format!(
            "SET {off} = off; SET plan_cache_mode = force_generic_plan; PREPARE planned AS {sql};
             EXPLAIN (FORMAT JSON) EXECUTE planned{values}; DEALLOCATE planned"
        ))
        .await?;
    let text: String = messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        })
        .collect();
    Ok(serde_json::from_str(&text).unwrap())
}

/// The tables that a plan walks from one end to the other, each with what is walked: itself or an index.
fn scans(plan: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut parts = vec![(plan, "")];
    while let Some((part, above)) = parts.pop() {
        let text = |name: &str| part[name].as_str();
        // A bitmap of an index stands below the table that it is of.
        let table = text("Relation Name").unwrap_or(above);
        match part {
            Value::Array(all) => parts.extend(all.iter().map(|part| (part, above))),
            Value::Object(all) => parts.extend(all.values().map(|part| (part, table))),
            _ => continue,
        }
        let is_whole = match text("Node Type") {
            Some("Seq Scan") => true,
            Some("Index Scan" | "Index Only Scan" | "Bitmap Index Scan") => text("Index Cond").is_none(),
            _ => false,
        };
        if is_whole {
            found.insert(table.to_owned(), text("Index Name").unwrap_or(table).to_owned());
        }
    }
    found
}
