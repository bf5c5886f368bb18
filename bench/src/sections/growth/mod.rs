//! What members, partners and operators do besides the operations of the contract, at 2 M people beside 10 k: whether its cost
//! grows with the number of people (scalability). On both engines, but for what only SQLite has.
//!
//! One list of requests, each with the answer that must come and the rows that must come of it; then the workers, the operator's
//! page and the commands that read everything, whose time is told for one person.

mod crowd;
mod jobs;

use anyhow::Context;

use self::crowd::Crowd;
use super::postgres;
use super::sizes::{Figure, at_sizes};
use crate::compare::Variant;
use crate::lab::Lab;
use crate::load::{Expected, Numbers, Request, Target};
use crate::people::FEW;
use crate::people::short;
use crate::records::{Place, Records};
use crate::server::{Manner, Server};
use crate::services::Postgres;
use crate::targets::target;

/// Half of a run's rounds: there are many lines, and what is looked for is growth and no small ratio.
fn rounds(lab: &Lab) -> usize {
    lab.plan.rounds.div_ceil(2)
}

/// One thing that somebody asks for.
struct Part {
    name: &'static str,
    /// Its goals on SQLite and on PostgreSQL.
    goals: [Figure; 2],
    requests: fn(&Crowd) -> Vec<Request>,
    numbers: Numbers,
    expected: Expected,
    /// A count in the records, and how it grows with the answers.
    rows: &'static str,
    grows: Grows,
}

#[derive(Clone, Copy)]
enum Grows {
    /// Each answer is a row more.
    EachTime,
    /// Each member's first answer is.
    OnceAMember,
    /// It stays as it is.
    Never,
}

const PARTS: [Part; 9] = [
    Part {
        name: "a sign-up with an idempotency key",
        goals: [Figure::Rate("growth.sign_up"), Figure::Time("growth.postgres.sign_up")],
        requests: Crowd::newcomers,
        numbers: Numbers::EachOnce,
        expected: Expected { status: "200", holds: "inviteLink" },
        rows: "SELECT count(*) FROM idempotency_keys",
        grows: Grows::EachTime,
    },
    Part {
        name: "confirm",
        goals: [Figure::Rate("growth.confirm"), Figure::Time("growth.postgres.confirm")],
        requests: Crowd::confirm,
        numbers: Numbers::EachOnce,
        expected: Expected { status: "200", holds: "" },
        rows: "SELECT count(*) FROM idempotency_keys WHERE confirmed_at IS NOT NULL",
        grows: Grows::EachTime,
    },
    Part {
        name: "ask for a sign-in mail",
        goals: [Figure::Cost("growth.ask"), Figure::Cost("growth.postgres.ask")],
        requests: Crowd::ask,
        numbers: Numbers::InTurn,
        expected: Expected { status: "200", holds: "set-cookie: union-asked=" },
        rows: "SELECT count(*) FROM sign_ins",
        grows: Grows::EachTime,
    },
    Part {
        name: "open the mailed link",
        goals: [Figure::Rate("growth.enter"), Figure::Time("growth.postgres.enter")],
        requests: Crowd::enter,
        numbers: Numbers::EachOnce,
        expected: Expected { status: "303", holds: "set-cookie: union=" },
        rows: "SELECT count(*) FROM sign_ins WHERE used_at IS NOT NULL",
        grows: Grows::EachTime,
    },
    Part {
        name: "/me",
        goals: [Figure::Rate("growth.me"), Figure::Time("growth.postgres.me")],
        requests: Crowd::own_page,
        numbers: Numbers::InTurn,
        expected: Expected { status: "200", holds: "action=\"/me/answers\"" },
        rows: "SELECT count(*) FROM people",
        grows: Grows::Never,
    },
    Part {
        name: "count me in, or out",
        goals: [Figure::Rate("growth.in"), Figure::Time("growth.postgres.in")],
        requests: |crowd| crowd.press(crowd::GATHERING, ["in", "out"]),
        numbers: Numbers::InTurn,
        expected: Expected { status: "303", holds: "location: /campaigns/internet-2099?done=" },
        rows: "SELECT count(*) FROM participations WHERE campaign_id =
                   (SELECT id FROM campaigns WHERE slug = 'internet-2099')",
        grows: Grows::OnceAMember,
    },
    Part {
        name: "accept an offer, or pass",
        goals: [Figure::Rate("growth.accept"), Figure::Time("growth.postgres.accept")],
        requests: |crowd| crowd.press(crowd::OFFERED, ["accept", "pass"]),
        numbers: Numbers::InTurn,
        expected: Expected { status: "303", holds: "location: /campaigns/internet-2098?done=" },
        rows: "SELECT count(*) FROM participations WHERE campaign_id =
                   (SELECT id FROM campaigns WHERE slug = 'internet-2098')",
        grows: Grows::OnceAMember,
    },
    Part {
        name: "a partner's status of a sign-up",
        goals: [Figure::Rate("growth.status"), Figure::Time("growth.postgres.status")],
        requests: Crowd::status,
        numbers: Numbers::InTurn,
        expected: Expected { status: "200", holds: "\"status\":\"pending\"" },
        rows: "SELECT count(*) FROM idempotency_keys",
        grows: Grows::Never,
    },
    Part {
        name: "a replayed sign-up",
        goals: [Figure::Rate("growth.replay"), Figure::Time("growth.postgres.replay")],
        requests: Crowd::sign_up,
        numbers: Numbers::InTurn,
        expected: Expected { status: "200", holds: "idempotency-replayed: true" },
        rows: "SELECT (SELECT count(*) FROM sign_ups) + (SELECT count(*) FROM idempotency_keys) + (SELECT count(*) FROM outbox)",
        grows: Grows::Never,
    },
];

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let sizes = [FEW, lab.most()];
    let receiver = jobs::receiver(lab)?;
    let mut places = Vec::new();
    for people in sizes {
        lab.progress.begin(&format!("making records of {} people with everything", short(people)));
        let installation = lab.installation(people)?;
        let records = Records::Sqlite(installation.data.join("unionhall.db"));
        places.push(Place { people, installation, records });
    }
    let servers = measure(lab, 0, "growth", &mut places, &receiver)?;
    drop(servers);
    jobs::look(lab, &places)?;
    jobs::export(lab, &places)?;
    jobs::back_up(lab, &places)?;
    drop(places);

    let Some(engine) = Postgres::start(lab.plan)? else {
        lab.report.skipped("growth, PostgreSQL", "PostgreSQL is not installed");
        return Ok(());
    };
    let mut places = Vec::new();
    for (people, name) in sizes.into_iter().zip(["few", "many"]) {
        let installation = postgres::installation(lab, &engine, name, people)?;
        places.push(Place { people, installation, records: Records::Postgres(&engine, name) });
    }
    measure(lab, 1, "growth, PostgreSQL", &mut places, &receiver).map(drop)
}

/// The list and the workers on one engine.
fn measure(
    lab: &mut Lab,
    engine: usize,
    section: &'static str,
    places: &mut [Place<'_>],
    receiver: &Server,
) -> anyhow::Result<Vec<Server>> {
    let (mut servers, mut crowds) = (Vec::new(), Vec::new());
    for place in places.iter_mut() {
        jobs::configure(&mut place.installation);
        let bare = place.records.bytes()? / place.people;
        crowds.push(Crowd::gather(place, rounds(lab), receiver)?);
        let (all, people) = (place.records.bytes()? / place.people, short(place.people));
        lab.report.note(format!(
            "{section}: {people} people take {bare} bytes of the disk each, {all} with campaigns, sign-ins, keys and events"
        ));
        let server = place.installation.serve(Manner { proxied: true, ..Manner::default() })?;
        crowds.last().context("one was made")?.sign_up_first(&server)?;
        servers.push(server);
    }
    let mut answers = 0;
    for part in PARTS {
        lab.progress.begin(&format!("{section}: {}", part.name));
        let mut variants = Vec::new();
        let before = places.iter().map(|place| place.records.number(part.rows)).collect::<anyhow::Result<Vec<_>>>()?;
        for ((place, server), crowd) in places.iter().zip(&servers).zip(&crowds) {
            let (numbers, expected) = (part.numbers, part.expected);
            let load = Target { numbers, expected, ..target(server, (part.requests)(crowd)) };
            variants.push(Variant::new(format!("{}, {} people", part.name, short(place.people)), server, load));
        }
        at_sizes(lab, section, rounds(lab), &mut variants, part.goals[engine]);
        for ((place, variant), before) in places.iter().zip(&variants).zip(before) {
            let answered = variant.target.next;
            let expected = before
                + match part.grows {
                    Grows::EachTime => answered,
                    Grows::OnceAMember => answered.min(crowd::MEMBERS as u64),
                    Grows::Never => 0,
                };
            let after = place.records.number(part.rows)?;
            if after != expected {
                let name = &variant.name;
                lab.report.void(format!("{section}: {name}: {answered} answers, {after} rows and not {expected}"));
            }
            answers += answered;
        }
    }
    lab.report.note(format!("{section}: {answers} answers, and the rows that had to come of them counted"));
    jobs::deliver(lab, engine, section, places, &servers)?;
    jobs::mail(lab, engine, section, places, &servers)?;
    Ok(servers)
}
