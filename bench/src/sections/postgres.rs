//! Reads, sign-ups and confirmations on PostgreSQL: throughput beside bare hyper, group commit beside one transaction
//! each, and scalability from 10 k people to 2 M.

use anyhow::{Context, bail};
use unionhall::domain::sign_up::{SignUpId, SignUpRef};
use unionhall::domain::time::Timestamp;

use super::{READS_A_SECOND, WRITES_A_SECOND};
use crate::compare::Variant;
use crate::lab::Lab;
use crate::people::{self, SIZES};
use crate::plot::short;
use crate::server::{Installation, Manner};
use crate::services::Postgres;
use crate::targets::{SECRET, STATS, confirming, inviting, linking, reading};

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let Some(postgres) = Postgres::start()? else {
        lab.report.skipped("postgres", "PostgreSQL is not installed");
        return Ok(());
    };
    let (most, mut installations) = (lab.most(), Vec::new());
    let at_most = |what: &str| format!("{what}, PostgreSQL, {} people", short(most));
    for (name, people) in [("small", SIZES[0]), ("yardstick", SIZES[0]), ("large", most)] {
        installations.push(installation(lab, &postgres, name, people)?);
    }
    let rows = |name: &str| -> anyhow::Result<[u64; 3]> {
        let text = postgres.query(
            name,
            "SELECT (SELECT count(*) FROM people), (SELECT count(*) FROM sign_ups), (SELECT count(*) FROM outbox)",
        )?;
        let counts: Vec<u64> = text.split('|').map(str::parse).collect::<Result<_, _>>()?;
        counts.try_into().map_err(|_| anyhow::anyhow!("three counts"))
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
        Variant::new("referral link, PostgreSQL", &server, linking(&server, small, SIZES[0])),
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
    let all = lab.compare(&mut writes);
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

    let members = |name: &str| -> anyhow::Result<u64> {
        Ok(postgres.query(name, "SELECT member_count FROM installation")?.parse()?)
    };
    let before = [members("yardstick")?, members("small")?, members("large")?];
    let proxied = Manner { proxied: true, ..Manner::default() };
    let one_by_one = yardstick.serve(Manner { one_by_one: true, ..proxied })?;
    let (server, crowded) = (small.serve(proxied)?, large.serve(proxied)?);
    // What was signed up above, and each turn its share of it.
    let mut clicks = [
        Variant::new(
            "confirm, PostgreSQL, one transaction each",
            &one_by_one,
            confirming(&one_by_one, &pending(&postgres, "yardstick")?)?,
        ),
        Variant::new("confirm, PostgreSQL", &server, confirming(&server, &pending(&postgres, "small")?)?),
        Variant::new(at_most("confirm"), &crowded, confirming(&crowded, &pending(&postgres, "large")?)?),
    ];
    let all = lab.compare(&mut clicks);
    lab.report.compared("postgres", &all, 0);
    lab.report.found_ratio("postgres.confirm.batched", &[&all[0], &all[1]], all[1].rate_to(&all[0]));
    lab.report.found_ratio("postgres.sizes.confirm", &[&all[1], &all[2]], all[2].cost_at_rate(&all[1]));
    for ((name, before), click) in ["yardstick", "small", "large"].into_iter().zip(before).zip(&clicks) {
        let (joined, answered) = (members(name)? - before, click.target.next);
        let what = format!("PostgreSQL, {name}: {answered} confirmations answered, {joined} more members");
        if joined == answered { lab.report.note(what) } else { lab.report.void(what) }
    }
    Ok(())
}

/// An installation on a database of that name with so many people, its keys issued.
pub(super) fn installation(
    lab: &mut Lab,
    postgres: &Postgres,
    name: &str,
    people: u64,
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
    postgres.query(name, &people::script(people))?;
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
