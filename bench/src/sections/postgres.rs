//! Reads, sign-ups and confirmations on PostgreSQL: throughput beside bare hyper, group commit beside one transaction
//! each, and scalability from 10 k people to 2 M; and confirmations whose commits wait for a synchronous standby.

use anyhow::{Context, bail};
use unionhall::domain::sign_up::{SignUpId, SignUpRef};
use unionhall::domain::time::Timestamp;

use super::{READS_A_SECOND, WRITES_A_SECOND};
use crate::compare::Variant;
use crate::lab::Lab;
use crate::people::short;
use crate::people::{self, FEW, INVITED_EVERY};
use crate::server::{Installation, Manner, Server};
use crate::services::Postgres;
use crate::targets::{SECRET, STATS, confirming, inviting, linking, reading};

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let Some(postgres) = Postgres::start(lab.plan)? else {
        lab.report.skipped("postgres", "PostgreSQL is not installed");
        return Ok(());
    };
    alone(lab, &postgres)?;
    // The standby begins as a copy, and needs none of this.
    for name in DATABASES {
        postgres.query("postgres", &format!("DROP DATABASE {name} WITH (FORCE)"))?;
    }
    with_standby(lab, &postgres)
}

/// What has no standby: few people, as few with one transaction for each write, and many.
const DATABASES: [&str; 3] = ["small", "yardstick", "large"];

fn alone(lab: &mut Lab, postgres: &Postgres) -> anyhow::Result<()> {
    let (most, mut installations) = (lab.most(), Vec::new());
    let at_most = |what: &str| format!("{what}, PostgreSQL, {} people", short(most));
    for (name, people) in DATABASES.into_iter().zip([FEW, FEW, most]) {
        installations.push(installation(lab, postgres, name, people)?);
    }
    let rows = |name: &str| {
        let query =
            "SELECT (SELECT count(*) FROM people), (SELECT count(*) FROM sign_ups), (SELECT count(*) FROM outbox)";
        counts(postgres, name, query)
    };
    let [small, yardstick, large] = &installations[..] else { bail!("three were made") };
    let before = [rows("small")?, rows("yardstick")?, rows("large")?];
    let server = small.serve(Manner::default())?;
    let one_by_one = yardstick.serve(Manner { one_by_one: true, ..Manner::default() })?;
    let crowded = large.serve(Manner::default())?;
    let bare = lab.bare(&server)?;
    lab.progress.begin("PostgreSQL");
    let mut reads = [
        Variant::new("bare hyper, stats", &bare, reading(&bare, STATS)),
        Variant::new("stats, PostgreSQL", &server, reading(&server, STATS)),
        Variant::new(at_most("stats"), &crowded, reading(&crowded, STATS)),
        Variant::new("referral link, PostgreSQL", &server, linking(&server, small, FEW)),
        Variant::new(at_most("referral link"), &crowded, linking(&crowded, large, most)),
    ];
    let all = lab.compare(&mut reads);
    lab.report.compared("postgres", &all, 0);
    lab.report.found_ratio("postgres.stats.rate", &[&all[0], &all[1]], all[1].rate_to(&all[0]));
    lab.report.found_ratio("postgres.sizes.stats", &[&all[1], &all[2]], all[2].cost_at_rate(&all[1]));
    lab.report.found_ratio("postgres.sizes.link", &[&all[3], &all[4]], all[4].cost_at_rate(&all[3]));
    lab.waits(&mut reads[1..2], READS_A_SECOND);
    let mut writes = [
        Variant::new("invite, PostgreSQL, one transaction each", &one_by_one, inviting(&one_by_one, yardstick, "p"))
            .signing_up(),
        Variant::new("invite, PostgreSQL", &server, inviting(&server, small, "p")).signing_up(),
        Variant::new(at_most("invite"), &crowded, inviting(&crowded, large, "p")).signing_up(),
    ];
    let all = postgres.observed("sign-ups", || lab.compare(&mut writes))?;
    lab.report.compared("postgres", &all, 0);
    lab.report.found_ratio("postgres.invite.batched", &[&all[0], &all[1]], all[1].rate_to(&all[0]));
    lab.waits(&mut writes[1..2], WRITES_A_SECOND);
    let at_size = all[2].cost_at_rate(&all[1]);
    lab.report.found_ratio("postgres.sizes.invite", &[&all[1], &all[2]], at_size);
    let named = [("small", &server), ("yardstick", &one_by_one), ("large", &crowded)];
    for ((name, server), before) in named.into_iter().zip(before) {
        let after = rows(name)?;
        lab.check_rows(&format!("PostgreSQL, {name}"), before, after, &[server]);
    }

    let before = [joined(postgres, "yardstick")?, joined(postgres, "small")?, joined(postgres, "large")?];
    let proxied = Manner { proxied: true, ..Manner::default() };
    let one_by_one = yardstick.serve(Manner { one_by_one: true, ..proxied })?;
    let (server, crowded) = (small.serve(proxied)?, large.serve(proxied)?);
    // What was signed up above, and each turn its share of it.
    let mut clicks = [
        Variant::new(
            "confirm, PostgreSQL, one transaction each",
            &one_by_one,
            confirming(&one_by_one, &pending(postgres, "yardstick")?)?,
        ),
        Variant::new("confirm, PostgreSQL", &server, confirming(&server, &pending(postgres, "small")?)?),
        Variant::new(at_most("confirm"), &crowded, confirming(&crowded, &pending(postgres, "large")?)?),
    ];
    let all = postgres.observed("confirmations", || lab.compare(&mut clicks))?;
    lab.report.compared("postgres", &all, 0);
    lab.report.found_ratio("postgres.confirm.batched", &[&all[0], &all[1]], all[1].rate_to(&all[0]));
    lab.report.found_ratio("postgres.sizes.confirm", &[&all[1], &all[2]], all[2].cost_at_rate(&all[1]));
    for ((name, before), click) in ["yardstick", "small", "large"].into_iter().zip(before).zip(&clicks) {
        check_joined(lab, click, before, joined(postgres, name)?);
    }
    Ok(())
}

fn with_standby(lab: &mut Lab, postgres: &Postgres) -> anyhow::Result<()> {
    let _follows_until_the_end = postgres.standby()?;
    let place = "PostgreSQL with a standby";
    confirm(lab, postgres, "postgres", place, "postgres.confirm.standby", |_, installation, manner| {
        Ok(vec![installation.serve(manner)?])
    })
}

/// Sign-ups that wait for a click in each of the two records. A turn ends before its time when its share of them is used up.
const CLICKS: u64 = 20_000;

/// Confirmations in batches beside one transaction each, in records where everybody waits for a click. In half of a run's rounds:
/// what is looked for is no small ratio.
pub(super) fn confirm(
    lab: &mut Lab,
    postgres: &Postgres,
    section: &'static str,
    place: &str,
    goal: &'static str,
    start: impl Fn(&mut Lab, Installation, Manner) -> anyhow::Result<Vec<Server>>,
) -> anyhow::Result<()> {
    let mut places = Vec::new();
    for (database, one_by_one) in [("each", true), ("batched", false)] {
        let installation = installation_with(lab, postgres, database, CLICKS, 1)?;
        let servers = start(lab, installation, Manner { one_by_one, proxied: true, ..Manner::default() })?;
        places.push((database, servers, joined(postgres, database)?));
    }
    lab.progress.begin(&format!("confirmations, {place}"));
    let names = [format!("confirm, {place}, one transaction each"), format!("confirm, {place}")];
    let mut clicks = Vec::new();
    for ((database, servers, _), name) in places.iter().zip(names) {
        let first = servers.first().context("a server was started")?;
        clicks.push(Variant::of_nodes(name, servers, confirming(first, &pending(postgres, database)?)?));
    }
    let rounds = lab.plan.rounds.div_ceil(2);
    let all = postgres.observed(&format!("confirmations, {place}"), || lab.compare_in(rounds, &mut clicks))?;
    lab.report.compared(section, &all, 0);
    lab.report.found_ratio(goal, &[&all[0], &all[1]], all[1].rate_to(&all[0]));
    for ((database, _, before), click) in places.iter().zip(&clicks) {
        check_joined(lab, click, *before, joined(postgres, database)?);
    }
    Ok(())
}

/// What a confirmation adds one to: the count of members, people who are members, sign-ups that were confirmed.
fn joined(postgres: &Postgres, name: &str) -> anyhow::Result<[u64; 3]> {
    counts(
        postgres,
        name,
        "SELECT (SELECT member_count FROM installation), (SELECT count(*) FROM people WHERE state = 'member'),
                (SELECT count(*) FROM sign_ups WHERE state = 'confirmed')",
    )
}

/// Voids the run unless the records hold exactly the confirmations that were answered with success.
fn check_joined(lab: &mut Lab, click: &Variant<'_>, before: [u64; 3], after: [u64; 3]) {
    let (name, answered) = (&click.name, click.target.next);
    let expected = before.map(|count| count + answered);
    if after == expected {
        lab.report.note(format!("{name}: {answered} answered, as many more members and confirmed sign-ups"));
    } else {
        lab.report.void(format!(
            "{name}: the records hold {after:?} counted members, members and confirmed sign-ups, and should hold {expected:?}"
        ));
    }
}

fn counts(postgres: &Postgres, name: &str, query: &str) -> anyhow::Result<[u64; 3]> {
    let text = postgres.query(name, query)?;
    let counts: Vec<u64> = text.split('|').map(str::parse).collect::<Result<_, _>>()?;
    counts.try_into().map_err(|_| anyhow::anyhow!("three counts"))
}

/// An installation on a database of that name with so many people, its keys issued.
pub(super) fn installation(
    lab: &mut Lab,
    postgres: &Postgres,
    name: &str,
    people: u64,
) -> anyhow::Result<Installation> {
    installation_with(lab, postgres, name, people, INVITED_EVERY)
}

/// The same where everyone whose number is a multiple of that is only invited.
fn installation_with(
    lab: &mut Lab,
    postgres: &Postgres,
    name: &str,
    people: u64,
    invited_every: u64,
) -> anyhow::Result<Installation> {
    lab.progress.begin(&format!("making records of {} people in PostgreSQL", short(people)));
    let address = postgres.database(name)?;
    let variables = [("UNIONHALL_STORE", address.as_str()), SECRET].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let folder = lab.new_folder()?;
    let bare = Installation {
        binary: lab.binary.clone(),
        data: folder.clone(),
        variables: variables.to_vec(),
        keys: Vec::new(),
    };
    // Making the tables is the product's own business; it does so before it serves.
    bare.serve(Manner::default())?.stop()?;
    postgres.query(name, &people::script(people, invited_every))?;
    Installation::make(&lab.binary, &folder, variables.to_vec())
}

/// The sign-ups that wait for a click.
pub(super) fn pending(postgres: &Postgres, name: &str) -> anyhow::Result<Vec<SignUpRef>> {
    let text =
        postgres.query(name, "SELECT id || ' ' || created_at FROM sign_ups WHERE state = 'pending' ORDER BY id")?;
    let sign_up = |line: &str| {
        let (id, created_at) = line.split_once(' ')?;
        Some(SignUpRef { id: SignUpId(id.parse().ok()?), created_at: Timestamp::from_millis(created_at.parse().ok()?) })
    };
    text.lines().map(|line| sign_up(line).with_context(|| format!("a sign-up, not {line}"))).collect()
}
