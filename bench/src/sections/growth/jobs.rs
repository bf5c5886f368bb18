//! What nobody waits for: deliveries of webhooks, mail about a campaign; what is looked at twice a minute at the most, the operator's
//! page; and commands that read everything, export and backup.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::crowd::now;
use super::rounds;
use crate::bare;
use crate::compare::{Job, Sample};
use crate::lab::Lab;
use crate::load::{Request, ask};
use crate::people::short;
use crate::records::Place;
use crate::sections::sizes::{Figure, at_sizes};
use crate::server::{Installation, Manner, Server, output};
use crate::targets::SECRET;

/// Events of each endpoint in a turn.
const EVENTS: u64 = 150;

/// Mails of a turn: as many as may wait in the outbox.
const MAILS: u64 = 1000;

const PATIENCE: Duration = Duration::from_secs(60);

/// What receives webhooks: it answers 200, and that is all.
pub(super) fn receiver(lab: &mut Lab) -> anyhow::Result<Server> {
    lab.bare_with(&bare::line("/hook", 0, ""))
}

/// The settings that members' sessions, the workers and the operator's page need.
pub(super) fn configure(installation: &mut Installation) {
    for (name, value) in [
        SECRET,
        ("UNIONHALL_OUTBOUND_ALLOW", "127.0.0.0/8"),
        // No mail about a campaign is queued without a postal address; and this is as fast as a mailing may walk.
        ("UNIONHALL_POSTAL_ADDRESS", "12 Mill Street, Springfield"),
        ("UNIONHALL_CAMPAIGN_MAILS_AN_HOUR", "1000000"),
        ("UNIONHALL_OPERATOR_HEADER", "x-bench"),
        ("UNIONHALL_OPERATOR_HEADER_FROM", "127.0.0.0/8"),
    ] {
        installation.variables.push((name.to_owned(), value.to_owned()));
    }
}

/// Webhooks that are due all at once, until all were delivered.
pub(super) fn deliver(
    lab: &mut Lab,
    engine: usize,
    section: &'static str,
    places: &[Place<'_>],
    servers: &[Server],
) -> anyhow::Result<()> {
    lab.progress.begin(&format!("{section}: webhooks"));
    let work = |place: &Place<'_>, server: &Server| {
        let (now, records) = (now()?, &place.records);
        let before = server.processor_time()?;
        records.write(&format!(
            "INSERT INTO partner_events (partner_id, idempotency_key, kind, at)
                 SELECT e.partner_id, 'turn-' || p.id, 'sign_up.confirmed', {now} FROM webhook_endpoints e, people p WHERE p.id <= {EVENTS};
             INSERT INTO webhook_deliveries (endpoint_id, event_id, send_after)
                 SELECT e.id, v.id, {now} FROM partner_events v JOIN webhook_endpoints e ON e.partner_id = v.partner_id
                 WHERE v.at = {now}"
        ))?;
        let all = records.number("SELECT count(*) FROM webhook_endpoints")? * EVENTS;
        await_count(place, "SELECT count(*) FROM webhook_deliveries WHERE settled_at IS NULL", 0)?;
        let delivered = format!("FROM webhook_deliveries WHERE send_after = {now} AND delivered_at IS NOT NULL");
        let count = records.number(&format!("SELECT count(*) {delivered}"))?;
        if count != all {
            bail!("{count} of {all} webhooks were delivered");
        }
        let used = server.processor_time()?.saturating_sub(before);
        sample(place, "delivered_at", &delivered, used)
    };
    let goal = [Figure::Rate("growth.webhooks"), Figure::Time("growth.postgres.webhooks")][engine];
    let jobs = places.iter().zip(servers).map(|(place, server)| Job {
        name: format!("webhooks delivered, {} people", short(place.people)),
        work: Box::new(move || work(place, server)),
    });
    at_sizes(lab, section, rounds(lab), &mut jobs.collect::<Vec<_>>(), goal);
    Ok(())
}

/// A mailing that begins in the middle of all people, until the outbox has all that may wait.
pub(super) fn mail(
    lab: &mut Lab,
    engine: usize,
    section: &'static str,
    places: &[Place<'_>],
    servers: &[Server],
) -> anyhow::Result<()> {
    const NONE: &str = "DELETE FROM outbox WHERE campaign_mail_id IS NOT NULL; DELETE FROM campaign_mails;
                        DELETE FROM campaign_mailings; UPDATE campaign_pace SET used_to = 0";
    lab.progress.begin(&format!("{section}: a mailing"));
    let work = |place: &Place<'_>, server: &Server| {
        let before = server.processor_time()?;
        place.records.write(&format!(
            "{NONE}; INSERT INTO campaign_mailings (campaign_id, kind, after_id, started_at)
             SELECT id, 'campaign_opened', {} / 2, {} FROM campaigns WHERE slug = 'internet-2097'",
            place.people,
            now()?
        ))?;
        await_count(place, "SELECT count(*) FROM campaign_mails", MAILS)?;
        let used = server.processor_time()?.saturating_sub(before);
        let sample = sample(place, "queued_at", "FROM campaign_mails", used);
        place.records.write(NONE)?;
        sample
    };
    let goal = [Figure::Rate("growth.mailing"), Figure::Time("growth.postgres.mailing")][engine];
    let jobs = places.iter().zip(servers).map(|(place, server)| Job {
        name: format!("mails of a campaign queued, {} people", short(place.people)),
        work: Box::new(move || work(place, server)),
    });
    at_sizes(lab, section, rounds(lab), &mut jobs.collect::<Vec<_>>(), goal);
    Ok(())
}

/// Waits until a query gives that number.
fn await_count(place: &Place<'_>, query: &str, expected: u64) -> anyhow::Result<()> {
    let patience = Instant::now() + PATIENCE;
    loop {
        let count = place.records.number(query)?;
        if count == expected {
            return Ok(());
        }
        if Instant::now() > patience {
            bail!("{count} and not {expected} after {} seconds: {query}", PATIENCE.as_secs());
        }
        // Seldom: looking costs a process where PostgreSQL is asked, and the times are those that the service wrote down.
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// How many came after the first moment, in the time from there to the last one, by the times that the service wrote down.
fn sample(place: &Place<'_>, time: &str, rows: &str, used: Duration) -> anyhow::Result<Sample> {
    let span = place.records.number(&format!("SELECT max({time}) - min({time}) {rows}"))?;
    let later = format!("SELECT count(*) {rows} {} {time} > (SELECT min({time}) {rows})", and(rows));
    let (all, later) = (place.records.number(&format!("SELECT count(*) {rows}"))?, place.records.number(&later)?);
    // The processor time is of all of them.
    Sample::of(later, Duration::from_millis(span), Some(used.mul_f64(later as f64 / all.max(1) as f64)))
}

fn and(rows: &str) -> &'static str {
    if rows.contains(" WHERE ") { "AND" } else { "WHERE" }
}

/// A year of days of nine sources, every state and category, and a tenth of all people as referrers who earned and were paid.
const FIGURES: &str = "
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 365)
        INSERT INTO source_days (partner_id, day, signed_up, confirmations_sent, joined, declined)
        SELECT p.id, unixepoch() / 86400 - i, 600, 590, 500, 3 FROM n, partners p WHERE true
        ON CONFLICT (coalesce(partner_id, 0), day) DO NOTHING;
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
    UPDATE reward_totals SET accounts = (SELECT count(*) FROM account_sums), due_cents = (SELECT sum(due_cents) FROM account_sums)";

/// The operator's page. Each look is the first after a start, because the page reads its figures only twice a minute.
pub(super) fn look(lab: &mut Lab, places: &[Place<'_>]) -> anyhow::Result<()> {
    lab.progress.begin("growth: the operator's page");
    for place in places {
        place.records.write(FIGURES).context("the tables are not as the bench knows them")?;
        place.records.settle()?;
        output(place.installation.command().args(["operator", "add", "bench", "--base-url", "http://bench.test"]))?;
    }
    let work = |place: &Place<'_>| {
        let server = place.installation.serve(Manner::default())?;
        let request = Request::get_with("/operator", "x-bench: bench\r\n");
        let (begun, before) = (Instant::now(), server.processor_time()?);
        let page = ask(server.address, &request)?;
        let (took, used) = (begun.elapsed(), server.processor_time()?.saturating_sub(before));
        if !page.contains("Members over time") {
            bail!("this is not the operator's page");
        }
        server.stop()?;
        Sample::of(1, took, Some(used))
    };
    let jobs = places.iter().map(|place| Job {
        name: format!("/operator, read anew, {} people", short(place.people)),
        work: Box::new(move || work(place)),
    });
    at_sizes(lab, "growth", lab.plan.rounds, &mut jobs.collect::<Vec<_>>(), Figure::Time("growth.operator"));
    Ok(())
}

/// Rounds of what reads everything: seconds each, and nearly the same every time.
fn long_rounds(lab: &Lab) -> usize {
    if lab.plan.quick { 1 } else { 3 }
}

/// `unionhall members export` of everybody.
pub(super) fn export(lab: &mut Lab, places: &[Place<'_>]) -> anyhow::Result<()> {
    lab.progress.begin("growth: export");
    let work = |place: &Place<'_>| {
        let everybody = place.records.number("SELECT count(*) FROM people")?;
        let begun = Instant::now();
        let mut command = place.installation.command();
        let mut export = command
            .args(["members", "export", "--state", "all", "--format", "jsonl"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut out = export.stdout.take().context("a pipe was asked for")?;
        let (mut buffer, mut lines) = (vec![0; 1 << 16], 0);
        loop {
            match out.read(&mut buffer)? {
                0 => break,
                read => lines += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64,
            }
        }
        let status = export.wait()?;
        if !status.success() || lines != everybody {
            bail!("the export ended with {status} after {lines} of {everybody} people");
        }
        Sample::of(lines, begun.elapsed(), None)
    };
    let jobs = places.iter().map(|place| Job {
        name: format!("export, people a second, {} people", short(place.people)),
        work: Box::new(move || work(place)),
    });
    let rounds = long_rounds(lab);
    at_sizes(lab, "growth", rounds, &mut jobs.collect::<Vec<_>>(), Figure::Time("growth.export"));
    Ok(())
}

/// `unionhall backup`, which also checks what it wrote.
pub(super) fn back_up(lab: &mut Lab, places: &[Place<'_>]) -> anyhow::Result<()> {
    lab.progress.begin("growth: backup");
    let work = |place: &Place<'_>| {
        let file = place.installation.data.join("backup");
        let begun = Instant::now();
        output(place.installation.command().arg("backup").arg(&file))?;
        let took = begun.elapsed();
        let bytes = std::fs::metadata(&file)?.len();
        std::fs::remove_file(&file)?;
        if bytes < place.people {
            bail!("a backup of {bytes} bytes");
        }
        Sample::of(place.people, took, None)
    };
    let jobs = places.iter().map(|place| Job {
        name: format!("backup, people a second, {} people", short(place.people)),
        work: Box::new(move || work(place)),
    });
    let rounds = long_rounds(lab);
    at_sizes(lab, "growth", rounds, &mut jobs.collect::<Vec<_>>(), Figure::Time("growth.backup"));
    Ok(())
}
