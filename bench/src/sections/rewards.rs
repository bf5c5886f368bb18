//! Sign-ups at 2 M people while half a million participants whose hold is over are checked and groups are formed, beside the same on
//! records without a campaign: what rewards cost those who join (tail latency). The two are measured apart: groups come after the checks.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use rusqlite::Connection;

use super::WRITES_A_SECOND;
use crate::compare::Variant;
use crate::goals::Finding;
use crate::lab::Lab;
use crate::people;
use crate::people::short;
use crate::server::Manner;
use crate::targets::inviting;

/// A campaign that has been active for years, a quarter of all people in it, all of them members whose hold is over. A fifth of those
/// were referred, twenty by each referrer: four groups.
const FILL: &str = r#"
    PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN;
    INSERT INTO campaigns (id, slug, definition, state, gather_until, offer, decide_by, active_at, reward_cents, group_size, max_groups,
                           hold_days, created_at)
    VALUES (1, 'internet-2023',
        'slug = "internet-2023"
category = "internet"
gather_until = 2023-09-30
[text.en]
title = "Home internet"
summary = "Less."
[text.es]
title = "Internet"
summary = "Menos."
', 'active', 19630,
        'supplier = "Example Fiber"
annual_saving = 240
term_months = 12
decide_by = 2023-10-31
complaints = "help@fiber.example"
benchmark = { price = "$68 a month", source = "survey", date = 2023-09-01 }
[text.en]
price = "$48"
exit_fee = "None"
[text.es]
price = "$48"
exit_fee = "Ninguno"
', 19661, 1700000000000, 10000, 5, 10, 30, 0);
    INSERT INTO campaign_history (campaign_id, at, who, from_state, to_state, note) VALUES (1, 0, 'bench', 'draft', 'gathering', '');
    UPDATE people SET referrer_id = id - id % 400 + 3 WHERE id % 20 = 1;
    UPDATE people SET joined_at = 1600000000000 WHERE id % 4 = 1;
    INSERT INTO participations (campaign_id, person_id, state, in_at, accepted_at, changed_at)
        SELECT 1, id, 'accepted', 1700000000000, 1700000000000, 1700000000000 FROM people WHERE id % 4 = 1;
    COMMIT; PRAGMA wal_checkpoint(TRUNCATE)"#;

/// The same once everybody was checked: all groups are to be formed.
const CHECKED: &str = r"
    PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN;
    UPDATE participations SET hold_checked = 1;
    INSERT INTO qualifications (campaign_id, person_id, referrer_id, qualified_at)
        SELECT 1, id, referrer_id, 1702592000000 FROM people WHERE id % 20 = 1;
    INSERT INTO regroupings (referrer_id, campaign_id) SELECT DISTINCT referrer_id, 1 FROM people WHERE id % 20 = 1;
    COMMIT; PRAGMA wal_checkpoint(TRUNCATE)";

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let most = lab.most();
    lab.progress.begin("making records of half a million participants");
    let quiet = lab.installation(most)?;
    let (checking, grouping) = (lab.installation(most)?, lab.installation(most)?);
    let databases = [&checking, &grouping].map(|installation| installation.data.join("unionhall.db"));
    for (database, fill) in databases.iter().zip([FILL.to_owned(), [FILL, CHECKED].join(";")]) {
        Connection::open(database)?.execute_batch(&fill).context("the tables are not as the bench knows them")?;
        // All of it is on the disk before anything is measured: else the service's first sync would wait for it.
        File::open(database)?.sync_all()?;
    }
    let before = people::rows(&quiet.data.join("unionhall.db"))?;
    let server = quiet.serve(Manner::default())?;
    let (checks, groups) = (checking.serve(Manner::default())?, grouping.serve(Manner::default())?);
    let begun = (done(&databases[0])?.0, done(&databases[1])?.1);
    let alone = format!("invite, {} people", short(most));
    let mut variants = [
        Variant::new(&*alone, &server, inviting(&server, &quiet, "p")).signing_up(),
        Variant::new("invite while participants are checked", &checks, inviting(&checks, &checking, "p")).signing_up(),
        Variant::new("invite while groups are formed", &groups, inviting(&groups, &grouping, "p")).signing_up(),
    ];
    let since = Instant::now();
    let waits = lab.waits(&mut variants, WRITES_A_SECOND);
    let ended = (done(&databases[0])?.0, done(&databases[1])?.1);
    if let [Some(alone), Some(checks), Some(groups)] = waits[..] {
        let worst = checks.p99.max(groups.p99);
        lab.report.found("rewards.tail", Finding::of(f64::from(worst) / f64::from(alone.p99.max(1))));
    }
    let after = people::rows(&quiet.data.join("unionhall.db"))?;
    lab.check_rows(&alone, before, after, &[&server]);
    // What was done meanwhile: else it was measured beside nothing.
    let (checked, groups) = (ended.0 - begun.0, ended.1 - begun.1);
    let seconds = since.elapsed().as_secs().max(1);
    lab.report.note(format!(
        "meanwhile {checked} of {} participants were checked and {groups} groups formed, in {seconds} seconds",
        most / 4
    ));
    if checked == 0 || groups == 0 {
        lab.report.void("no participant was checked or no group formed beside the sign-ups".to_owned());
    }
    Ok(())
}

/// How many participants are checked, and how many groups there are.
fn done(database: &Path) -> anyhow::Result<(i64, i64)> {
    let done = "SELECT (SELECT count(*) FROM participations WHERE hold_checked), (SELECT count(*) FROM reward_groups)";
    Ok(Connection::open(database)?.query_row(done, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
}
