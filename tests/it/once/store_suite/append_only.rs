//! Tables that only grow, whoever opens the database.

use super::*;

/// Each with a column of text, and a row of it.
const APPEND_ONLY: [(&str, &str, &str); 6] = [
    ("audit", "about", "INSERT INTO audit (at, who, command, about) VALUES (1, 'x', 'x', 'x')"),
    (
        "campaign_history",
        "note",
        "INSERT INTO campaign_history (campaign_id, at, who, from_state, to_state, note) VALUES (1, 1, 'x', 'x', 'x', 'x')",
    ),
    (
        "campaign_offer_drafts",
        "offer",
        "INSERT INTO campaign_offer_drafts (campaign_id, at, client, offer) VALUES (1, 1, 'x', 'x')",
    ),
    (
        "campaign_bids",
        "bid",
        "INSERT INTO campaign_bids (campaign_id, number, at, who, bid) VALUES (1, 1, 1, 'x', 'x')",
    ),
    ("notices", "text", "INSERT INTO notices (hash, text, first_shown_at) VALUES ('x', 'x', 1)"),
    (
        "reward_ledger",
        "why",
        "INSERT INTO reward_ledger (account, kind, amount_cents, at, who, why) VALUES ('x', 'accrual', 1, 1, 'x', 'x')",
    ),
];

/// No statement changes or deletes a row of them. The records are opened as any program opens them, without our settings.
pub(super) async fn append_only_tables_take_rows_and_change_none(fixture: &Fixture) {
    fixture.make_campaign("internet-2027", "").await;
    let tables = match fixture.records {
        Records::Sqlite { .. } => "SELECT DISTINCT tbl_name FROM sqlite_master WHERE name LIKE '%refuse%' ORDER BY 1",
        Records::Postgres { .. } => {
            "SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger WHERE tgname LIKE '%refuse%' ORDER BY 1"
        }
    };
    // The texts of a round can be blanked, once.
    let mut guarded = APPEND_ONLY.map(|(table, ..)| table).to_vec();
    guarded.push("campaign_rounds");
    guarded.sort_unstable();
    let mut found = fixture.records.rows(tables).concat();
    found.sort_unstable();
    assert_eq!(found, guarded, "all of them are here");
    for (table, text, add) in APPEND_ONLY {
        fixture.records.execute(add);
        let all = format!("SELECT * FROM {table} ORDER BY 1");
        let before = fixture.records.rows(&all);
        assert!(!before.is_empty(), "{table}");
        let own = match fixture.records {
            Records::Sqlite { .. } => [
                format!("REPLACE INTO {table} SELECT * FROM {table}"),
                format!("UPDATE OR REPLACE {table} SET {text} = 'y'"),
            ],
            Records::Postgres { .. } => [
                format!("TRUNCATE {table} CASCADE"),
                format!(
                    "INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM {table} ON CONFLICT ON CONSTRAINT {table}_pkey
                     DO UPDATE SET {text} = 'y'"
                ),
            ],
        };
        let common = [format!("UPDATE {table} SET {text} = 'y'"), format!("DELETE FROM {table}")];
        for change in common.into_iter().chain(own) {
            let refused = fixture.records.try_rows(&change);
            assert!(refused.is_err_and(|error| format!("{error:?}").contains("append-only")), "{change}");
            assert_eq!(fixture.records.rows(&all), before, "{change}");
        }
    }
    let notice = |words: &str| Notice { hash: "n".into(), words: words.into() };
    for words in ["first", "second"] {
        fixture.run(KeepNotice(notice(words), NOW)).await;
    }
    assert_eq!(fixture.records.rows("SELECT text FROM notices WHERE hash = 'n'"), [["first"]], "kept once");
}
