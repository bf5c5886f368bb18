//! Sign-ups at 2 M people while half a million participants are counted and a mailing walks everybody, beside the same on
//! records without a campaign: what the union's own work costs those who join (tail latency).

use std::time::{Duration, Instant};

use anyhow::Context;
use rusqlite::Connection;

use super::WRITES_A_SECOND;
use crate::compare::Variant;
use crate::goals::Finding;
use crate::lab::Lab;
use crate::people;
use crate::people::short;
use crate::records::Records;
use crate::server::Manner;
use crate::targets::inviting;

/// Mails an hour: as fast as a mailing may walk, for longer than the measurement takes.
const MAILS_AN_HOUR: &str = "1000000";

/// How long the count may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// A campaign that gathers, a quarter of all people in it, and some who want its mail: fewer than may wait in the outbox, so that the
/// mailing walks on. Its first sheet is due.
const FILL: &str = r#"
    PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN;
    INSERT INTO campaigns (id, slug, definition, state, gather_until, created_at) VALUES (1, 'internet-2099',
        'slug = "internet-2099"
category = "internet"
gather_until = 2099-12-31
[text.en]
title = "Home internet"
summary = "Less."
[text.es]
title = "Internet"
summary = "Menos."
', 'gathering', 47481, 0);
    INSERT INTO campaign_history (campaign_id, at, who, from_state, to_state, note) VALUES (1, 0, 'bench', 'draft', 'gathering', '');
    INSERT INTO campaign_mailings (campaign_id, kind, started_at) VALUES (1, 'campaign_opened', 0);
    INSERT INTO participations (campaign_id, person_id, state, in_at, changed_at)
        SELECT 1, id, 'in', 1700000000000, 1700000000000 FROM people WHERE id % 4 = 0;
    UPDATE people SET wanted_mail = 'campaign_opened' WHERE id % 4000 = 1;
    COMMIT; PRAGMA wal_checkpoint(TRUNCATE)"#;

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let most = lab.most();
    lab.progress.begin("making records of a campaign");
    let quiet = lab.installation(most)?;
    let mut busy = lab.installation(most)?;
    // No mail about a campaign is queued without a postal address.
    for (name, value) in [
        ("UNIONHALL_CAMPAIGN_MAILS_AN_HOUR", MAILS_AN_HOUR),
        ("UNIONHALL_POSTAL_ADDRESS", "12 Mill Street, Springfield"),
    ] {
        busy.variables.push((name.to_owned(), value.to_owned()));
    }
    let database = busy.data.join("unionhall.db");
    Connection::open(&database)?.execute_batch(FILL).context("the tables are not as the bench knows them")?;
    let before = people::rows(&quiet.data.join("unionhall.db"))?;
    let (server, beside) = (quiet.serve(Manner::default())?, busy.serve(Manner::default())?);
    let alone = format!("invite, {} people", short(most));
    let mut variants = [
        Variant::new(&*alone, &server, inviting(&server, &quiet, "p")).signing_up(),
        Variant::new("invite beside a mailing and a count", &beside, inviting(&beside, &busy, "p")).signing_up(),
    ];
    let since = Instant::now();
    let waits = lab.waits(&mut variants, WRITES_A_SECOND);
    let seconds = since.elapsed().as_secs().max(1);
    if let [Some(alone), Some(beside)] = waits[..] {
        lab.report.found("campaigns.tail", Finding::of(f64::from(beside.p99) / f64::from(alone.p99.max(1))));
    }
    let after = people::rows(&quiet.data.join("unionhall.db"))?;
    lab.check_rows(&alone, before, after, &[&server]);
    // What was done meanwhile: else it was measured beside nothing.
    let done = "SELECT (SELECT count(*) FROM campaign_mails), (SELECT max(after_id) FROM campaign_mailings)";
    let (mails, looked_at): (i64, i64) =
        Connection::open(&database)?.query_row(done, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    lab.report.note(format!(
        "meanwhile a mailing looked at {looked_at} people and queued {mails} mails in {seconds} seconds"
    ));
    if mails == 0 {
        lab.report.void("no mailing ran beside the sign-ups".to_owned());
    }
    // It goes on from the start of the server; with half a million it may outlast the sign-ups.
    let sheets = || Records::Sqlite(database.clone()).number("SELECT count(*) FROM demand_sheets");
    while sheets()? == 0 && since.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(300));
    }
    let (participants, ended) = (most / 4, since.elapsed().as_secs());
    lab.report.note(format!(
        "the count of {participants} participants ended {ended} seconds after the sign-ups began, or sooner"
    ));
    if sheets()? == 0 {
        lab.report.void("no count ran beside the sign-ups".to_owned());
    }
    Ok(())
}
