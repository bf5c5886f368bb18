//! This build beside another one of the product (a regression test): what a change made slower or hungrier, in one run.

use std::path::PathBuf;

use super::postgres::{installation, pending};
use crate::compare::Variant;
use crate::lab::Lab;
use crate::load::Target;
use crate::people::FEW;
use crate::server::{Installation, Manner, Server};
use crate::services::Postgres;
use crate::targets::{STATS, calling, confirming, inviting, linking, listings, reading};

type Make = fn(&Server, &Installation) -> Target;

const SQLITE: [(&str, Make); 5] = [
    ("the listings", |server, _| listings(server)),
    ("stats", |server, _| reading(server, STATS)),
    ("MCP getMemberStats", |server, _| calling(server, true)),
    ("referral link", |server, installation| linking(server, installation, FEW)),
    ("invite", |server, installation| inviting(server, installation, "p")),
];

const POSTGRES: [(&str, Make); 3] = [
    ("stats, PostgreSQL", |server, _| reading(server, STATS)),
    ("referral link, PostgreSQL", |server, installation| linking(server, installation, FEW)),
    ("invite, PostgreSQL", |server, installation| inviting(server, installation, "p")),
];

/// `other` is the binary to compare with; its line is the reference of each pair.
pub(crate) fn run(lab: &mut Lab, other: PathBuf) -> anyhow::Result<()> {
    let own = lab.binary.clone();
    let mut beside = Vec::new();
    for binary in [&other, &own] {
        lab.use_binary(binary.clone());
        let installation = lab.installation(FEW)?;
        let server = installation.serve(Manner::default())?;
        beside.push((installation, server));
    }
    for (name, make) in SQLITE {
        pair(lab, name, &beside, |_, (installation, server)| Ok(make(server, installation)))?;
    }
    drop(beside);

    let Some(postgres) = Postgres::start(lab.plan)? else {
        lab.report.note("PostgreSQL is not installed".to_owned());
        return Ok(());
    };
    let names = ["other", "own"];
    let mut beside = Vec::new();
    for (name, binary) in names.into_iter().zip([other, own]) {
        lab.use_binary(binary);
        let installation = installation(lab, &postgres, name, FEW)?;
        let server = installation.serve(Manner::default())?;
        beside.push((installation, server));
    }
    for (name, make) in POSTGRES {
        pair(lab, name, &beside, |_, (installation, server)| Ok(make(server, installation)))?;
    }
    let proxied = |(installation, _): (Installation, Server)| {
        let server = installation.serve(Manner { proxied: true, ..Manner::default() })?;
        anyhow::Ok((installation, server))
    };
    let beside = beside.into_iter().map(proxied).collect::<anyhow::Result<Vec<_>>>()?;
    pair(lab, "confirm, PostgreSQL", &beside, |n, (_, server)| confirming(server, &pending(&postgres, names[n])?))
}

/// One load on both builds, in turns.
fn pair(
    lab: &mut Lab,
    name: &str,
    beside: &[(Installation, Server)],
    make: impl Fn(usize, &(Installation, Server)) -> anyhow::Result<Target>,
) -> anyhow::Result<()> {
    let mut variants = Vec::new();
    for (n, one) in beside.iter().enumerate() {
        let build = if n == 0 { "the other build" } else { "this build" };
        variants.push(Variant::new(format!("{name}, {build}"), &one.1, make(n, one)?));
    }
    let all = lab.compare(&mut variants);
    lab.report.compared("against", &all, 0);
    Ok(())
}
