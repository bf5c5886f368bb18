//! What is measured, one function a section.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use unionhall::domain::secret::Secret;
use unionhall::domain::secret::token::{Purpose, TokenMaker};
use unionhall::domain::sign_up::SignUpId;

use crate::bare;
use crate::compare::{Measured, Plan, Variant, compare, waits};
use crate::goals::Finding;
use crate::limiter::{Both, HOT, KEYS};
use crate::load::{Load, NUMBER, Numbers, Pace, Request, Target, ask};
use crate::people::{self, SIZES};
use crate::plot::short;
use crate::progress::Progress;
use crate::report::{Point, Report};
use crate::server::{Installation, Manner, Server, output};
use crate::services::{Postgres, Redis, copy_records};
use crate::statistics::{Estimate, median, paired};

/// The fixed rates: well below what either server can do on two cores, so that what is seen is waiting and not overload.
const READS_A_SECOND: u32 = 4000;
const WRITES_A_SECOND: u32 = 1000;

/// The paths whose answers bare hyper repeats.
const CATEGORIES: &str = "/v1/negotiate-categories";
const PROGRAM: &str = "/v1/referral-program";
const STATS: &str = "/v1/stats";

/// Everything a section needs.
pub(crate) struct Lab {
    pub plan: Plan,
    pub progress: Progress,
    pub report: Report,
    /// The product, built for release.
    binary: PathBuf,
    /// Kept between runs.
    kept: PathBuf,
    /// Gone after this one.
    folder: tempfile::TempDir,
    made: u32,
}

impl Lab {
    pub(crate) fn new(plan: Plan, progress: Progress, binary: PathBuf, kept: PathBuf) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&kept)?;
        let folder = tempfile::tempdir_in(&kept)?;
        Ok(Self { plan, progress, report: Report::default(), binary, kept, folder, made: 0 })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn new_folder(&mut self) -> anyhow::Result<PathBuf> {
        self.made += 1;
        let folder = self.folder.path().join(self.made.to_string());
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// An installation on SQLite with so many people, its keys issued.
    fn installation(&mut self, people: u64) -> anyhow::Result<Installation> {
        let empty = self.folder.path().join("empty.db");
        if !empty.exists() {
            let folder = self.new_folder()?;
            let made =
                Installation { binary: self.binary.clone(), data: folder, variables: Vec::new(), keys: Vec::new() };
            // Making the tables is the product's own business; it does so before it serves.
            made.serve(Manner::default())?.stop()?;
            let database = made.data.join("unionhall.db");
            // The secret's owner is whoever starts first, and that is not the server that was just stopped.
            rusqlite::Connection::open(&database)?
                .execute_batch("UPDATE installation SET secret_fingerprint = NULL; PRAGMA wal_checkpoint(TRUNCATE)")?;
            std::fs::copy(database, &empty)?;
        }
        let folder = self.new_folder()?;
        let records = if people == 0 { empty } else { people::file(&self.kept, &empty, people)? };
        copy_records(&records, &folder.join("unionhall.db"))?;
        Installation::make(&self.binary, &folder, Vec::new())
    }

    /// The limit, answering with the bytes that this server answers with.
    fn bare(&mut self, like: &Server) -> anyhow::Result<Server> {
        let mut lines = String::new();
        for path in [CATEGORIES, PROGRAM, STATS] {
            let answer = ask(like.address, &Request::get(path))?;
            let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head and a body")?;
            // What a bare answer has besides: status, content-type, content-length, date, and the padding's own name.
            let bare = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-padding: \r\ncontent-length: {}\r\n\
                 date: Thu, 01 Jan 1970 00:00:00 GMT",
                body.len()
            );
            lines.push_str(&bare::line(path, head.len().saturating_sub(bare.len()), body));
        }
        let file = self.new_folder()?.join("answers");
        std::fs::write(&file, lines)?;
        Server::start(Command::new(std::env::current_exe()?).arg("bare").arg(file), None)
    }

    fn compare(&mut self, variants: &mut [Variant<'_>]) -> Vec<Measured> {
        compare(variants, self.plan, &mut self.progress)
    }

    fn waits(&mut self, variants: &mut [Variant<'_>], a_second: u32) -> Vec<Option<crate::compare::Waits>> {
        let names: Vec<_> = variants.iter().map(|variant| variant.name.clone()).collect();
        let all = waits(variants, a_second, self.plan, &mut self.progress);
        let known = all.iter().map(|waits| waits.as_ref().ok().copied()).collect();
        names.iter().zip(all).for_each(|(name, waits)| self.report.waited(name, waits));
        known
    }

    /// Voids the run unless the records hold exactly the sign-ups that were answered with success.
    fn check_rows(&mut self, what: &str, before: [u64; 3], after: [u64; 3], servers: &[&Server]) {
        let signed_up: u64 = servers.iter().map(|server| server.signed_up.get()).sum();
        let expected = before.map(|rows| rows + signed_up);
        if after == expected {
            self.report
                .note(format!("{what}: {signed_up} sign-ups answered, as many rows of people, sign-ups and mail"));
        } else {
            self.report.void(format!(
                "{what}: the records hold {after:?} rows of people, sign-ups and mail, and should hold {expected:?}"
            ));
        }
    }

    /// A log that dropped lines cost less than one that did not.
    fn check_log(&mut self, what: &str, server: &Server) -> anyhow::Result<()> {
        let Some(path) = &server.log else { return Ok(()) };
        std::thread::sleep(Duration::from_millis(200));
        let text = std::fs::read(path)?;
        let lines = memchr::memchr_iter(b'\n', &text).count();
        let dropped: u64 = memchr::memmem::find_iter(&text, b"\"dropped\":")
            .filter_map(|at| {
                let digits: Vec<u8> = text[at + 10..].iter().copied().take_while(u8::is_ascii_digit).collect();
                String::from_utf8(digits).ok()?.parse::<u64>().ok()
            })
            .sum();
        self.report.note(format!("{what}: {lines} lines written to the log, {dropped} dropped"));
        Ok(())
    }
}

fn target(server: &Server, requests: Vec<Request>) -> Target {
    Target { address: server.address, requests: requests.into(), numbers: Numbers::Known(1), next: 0 }
}

fn reading(server: &Server, path: &str) -> Target {
    target(server, vec![Request::get(path)])
}

/// Both fixed listings, half of the connections each.
fn listings(server: &Server) -> Target {
    target(server, vec![Request::get(CATEGORIES), Request::get(PROGRAM)])
}

fn keyed(server: &Server, installation: &Installation, path: &str, body: &str) -> Target {
    let request = |key: &String| Request::post(path, &format!("authorization: Bearer {key}\r\n"), body);
    target(server, installation.keys.iter().map(request).collect())
}

/// Signing up somebody new with each request; `door` keeps apart what two servers write to the same records.
fn inviting(server: &Server, installation: &Installation, door: &str) -> Target {
    let body = format!(
        "{{\"email\":\"{door}{NUMBER}@example.com\",\"usState\":\"CA\",\"categories\":{{\"internet\":true,\"travel\":true}}}}"
    );
    Target { numbers: Numbers::Fresh, ..keyed(server, installation, "/v1/invite", &body) }
}

/// The link of somebody who is known.
fn linking(server: &Server, installation: &Installation, people: u64) -> Target {
    let body = format!("{{\"email\":\"{}\"}}", people::address(NUMBER));
    Target { numbers: Numbers::Known(people), ..keyed(server, installation, "/v1/referral-link", &body) }
}

/// The same count as `/v1/stats`, asked for as an assistant does.
/// The clicks that confirm these sign-ups, each once.
fn confirming(server: &Server, sign_ups: &[i64]) -> anyhow::Result<Target> {
    let tokens = TokenMaker::new(&Secret::new(SECRET.1)?);
    let click = |id: &i64| {
        let path = format!("/confirm/{}", tokens.token(Purpose::Confirm, SignUpId(*id)));
        Request::post(&path, "", "")
    };
    let mut clicks = target(server, sign_ups.iter().map(click).collect());
    clicks.numbers = Numbers::EachOnce;
    Ok(clicks)
}

fn calling(server: &Server, modern: bool) -> Target {
    const ACCEPT: &str = "accept: application/json, text/event-stream\r\n";
    let request = if modern {
        let meta = "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
                    \"io.modelcontextprotocol/clientCapabilities\":{}}";
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"getMemberStats\",\
             \"arguments\":{{}},{meta}}}}}"
        );
        let headers = format!(
            "{ACCEPT}mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: getMemberStats\r\n"
        );
        Request::post("/mcp", &headers, &body)
    } else {
        let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"getMemberStats\",\"arguments\":{}}}";
        Request::post("/mcp", &format!("{ACCEPT}mcp-protocol-version: 2025-11-25\r\n"), body)
    };
    target(server, vec![request])
}

/// The two listings beside bare hyper, without the log and with it.
pub(crate) fn fixed(lab: &mut Lab) -> anyhow::Result<()> {
    let installation = lab.installation(SIZES[0])?;
    let (plain, logged) = both(&installation)?;
    let bare = lab.bare(&plain)?;
    let mut variants = [
        Variant::new("bare hyper, the listings", &bare, listings(&bare)),
        Variant::new("the listings, log off", &plain, listings(&plain)),
        Variant::new("the listings, log on", &logged, listings(&logged)),
    ];
    let all = lab.compare(&mut variants);
    lab.report.compared("static", &all, 0);
    ratios(lab, &all, ["static.cpu", "static.cpu.logged", "static.rate", "static.rate.logged"]);
    lab.waits(&mut variants, READS_A_SECOND);
    lab.check_log("static", &logged)
}

/// A server without the access log and one with it, on the same records.
fn both(installation: &Installation) -> anyhow::Result<(Server, Server)> {
    let plain = installation.serve(Manner::default())?;
    let logged = installation.serve(Manner { logged: true, ..Manner::default() })?;
    Ok((plain, logged))
}

/// The four goals of reads: processor time and rate, log off and on, beside the first variant.
fn ratios(lab: &mut Lab, all: &[Measured], goals: [&'static str; 4]) {
    let [bare, plain, logged] = all else { return };
    let of = [plain, logged, plain, logged];
    for (n, (goal, one)) in goals.into_iter().zip(of).enumerate() {
        let ratio = if n < 2 { one.cost_to(bare) } else { one.rate_to(bare) };
        lab.report.found_ratio(goal, &[bare, one], ratio);
    }
}

pub(crate) fn stats(lab: &mut Lab) -> anyhow::Result<()> {
    let installation = lab.installation(SIZES[0])?;
    let (plain, logged) = both(&installation)?;
    let bare = lab.bare(&plain)?;
    let mut variants = [
        Variant::new("bare hyper, stats", &bare, reading(&bare, STATS)),
        Variant::new("stats, log off", &plain, reading(&plain, STATS)),
        Variant::new("stats, log on", &logged, reading(&logged, STATS)),
    ];
    let all = lab.compare(&mut variants);
    lab.report.compared("stats", &all, 0);
    ratios(lab, &all, ["stats.cpu", "stats.cpu.logged", "stats.rate", "stats.rate.logged"]);
    lab.waits(&mut variants, READS_A_SECOND);
    lab.check_log("stats", &logged)
}

pub(crate) fn mcp(lab: &mut Lab) -> anyhow::Result<()> {
    let installation = lab.installation(SIZES[0])?;
    let server = installation.serve(Manner::default())?;
    let mut variants = [
        Variant::new("REST stats", &server, reading(&server, STATS)),
        Variant::new("MCP getMemberStats, 2025-11-25", &server, calling(&server, false)),
        Variant::new("MCP getMemberStats, 2026-07-28", &server, calling(&server, true)),
    ];
    let all = lab.compare(&mut variants);
    lab.report.compared("mcp", &all, 0);
    let [rest, legacy, modern] = &all[..] else { bail!("three were compared") };
    let ratios = [legacy.cost_to(rest), modern.cost_to(rest)].into_iter().flatten();
    let dearer = ratios.max_by(|one, other| one.value.total_cmp(&other.value));
    lab.report.found_ratio("mcp.cpu", &[rest, legacy, modern], dearer);
    lab.waits(&mut variants, READS_A_SECOND);
    Ok(())
}

pub(crate) fn invite(lab: &mut Lab) -> anyhow::Result<()> {
    let installation = lab.installation(SIZES[0])?;
    let yardstick = lab.installation(SIZES[0])?;
    let databases = [&installation, &yardstick].map(|one| one.data.join("unionhall.db"));
    let before = [people::rows(&databases[0])?, people::rows(&databases[1])?];
    let server = installation.serve(Manner::default())?;
    let one_by_one = yardstick.serve(Manner { one_by_one: true, ..Manner::default() })?;
    let mut variants = [
        Variant::new("the listings", &server, listings(&server)),
        Variant::new("invite", &server, inviting(&server, &installation, "p")).signing_up(),
        Variant::new("invite, one transaction each", &one_by_one, inviting(&one_by_one, &yardstick, "p")).signing_up(),
        Variant::new("referral link, known address", &server, linking(&server, &installation, SIZES[0])),
    ];
    let all = lab.compare(&mut variants);
    lab.report.compared("invite", &all, 0);
    let [listed, batched, single, _link] = &all[..] else { bail!("four were compared") };
    lab.report.found_ratio("invite.batched", &[batched, single], batched.rate_to(single));
    lab.report.found_ratio("invite.static", &[batched, listed], batched.rate_to(listed));
    let waits = lab.waits(&mut variants[1..], WRITES_A_SECOND);
    if let Some(Some(waits)) = waits.first() {
        lab.report.found("invite.tail", Finding::of(f64::from(waits.p99) / f64::from(waits.median.max(1))));
    }
    let after = [people::rows(&databases[0])?, people::rows(&databases[1])?];
    lab.check_rows("invite", before[0], after[0], &[&server]);
    lab.check_rows("invite, one transaction each", before[1], after[1], &[&one_by_one]);
    Ok(())
}

/// Every operation at every size.
pub(crate) fn sizes(lab: &mut Lab) -> anyhow::Result<()> {
    let mut places = Vec::new();
    for people in SIZES {
        lab.progress.begin(&format!("making records of {} people", short(people)));
        let installation = lab.installation(people)?;
        let before = people::rows(&installation.data.join("unionhall.db"))?;
        let server = installation.serve(Manner::default())?;
        places.push((people, installation, server, before));
    }
    type Place = (u64, Installation, Server, [u64; 3]);
    type Make = fn(&Place) -> Target;
    let operations: [(&str, &'static str, Make); 5] = [
        ("categories", "sizes.categories", |(_, _, server, _)| reading(server, CATEGORIES)),
        ("referral program", "sizes.program", |(_, _, server, _)| reading(server, PROGRAM)),
        ("stats", "sizes.stats", |(_, _, server, _)| reading(server, STATS)),
        ("invite", "sizes.invite", |(_, installation, server, _)| inviting(server, installation, "p")),
        ("referral link", "sizes.link", |(people, installation, server, _)| linking(server, installation, *people)),
    ];
    for (name, goal, make) in operations {
        lab.progress.begin(&format!("{name} at every size"));
        let mut variants: Vec<_> = places
            .iter()
            .map(|place| {
                let variant = Variant::new(format!("{name}, {} people", short(place.0)), &place.2, make(place));
                if name == "invite" { variant.signing_up() } else { variant }
            })
            .collect();
        let all = lab.compare(&mut variants);
        lab.report.compared("sizes", &all, 0);
        for (place, measured) in places.iter().zip(&all) {
            lab.report.points.push(Point { operation: name.to_owned(), people: place.0, micros: measured.micros() });
        }
        if let (Some(small), Some(large)) = (all.first(), all.last()) {
            lab.report.found_ratio(goal, &[small, large], large.rate_to(small));
        }
    }
    for (people, installation, server, before) in &places {
        let after = people::rows(&installation.data.join("unionhall.db"))?;
        lab.check_rows(&format!("{} people", short(*people)), *before, after, &[server]);
    }
    Ok(())
}

/// What referral codes are made with where the records are not in the data folder.
const SECRET: (&str, &str) = ("UNIONHALL_SECRET", "the secret of a bench that keeps nothing");

pub(crate) fn postgres(lab: &mut Lab) -> anyhow::Result<()> {
    let Some(postgres) = Postgres::start()? else {
        lab.report.skipped("postgres", "PostgreSQL is not installed");
        return Ok(());
    };
    let mut installations = Vec::new();
    for (name, people) in [("small", SIZES[0]), ("yardstick", SIZES[0]), ("large", SIZES[3])] {
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
        match bare.serve(Manner::default()) {
            Ok(server) => server.stop()?,
            Err(error) => {
                lab.report.skipped("postgres", "this server does not take it");
                lab.report.note(format!("PostgreSQL: {error:#}"));
                return Ok(());
            }
        }
        let kind = "SELECT data_type FROM information_schema.columns WHERE table_name = 'people' AND column_name = 'created_at'";
        let numbers = postgres.query(name, kind)? == "bigint";
        postgres.query(name, &people::script(people, numbers))?;
        installations.push((name, Installation::make(&lab.binary, &folder, variables.to_vec())?));
    }
    let rows = |name: &str| -> anyhow::Result<[u64; 3]> {
        let text = postgres.query(
            name,
            "SELECT (SELECT count(*) FROM people), (SELECT count(*) FROM sign_ups), (SELECT count(*) FROM outbox)",
        )?;
        let counts: Vec<u64> = text.split('|').map(str::parse).collect::<Result<_, _>>()?;
        counts.try_into().map_err(|_| anyhow::anyhow!("three counts"))
    };
    let [(_, small), (_, yardstick), (_, large)] = &installations[..] else { bail!("three were made") };
    let before = [rows("small")?, rows("yardstick")?, rows("large")?];
    let server = small.serve(Manner::default())?;
    let one_by_one = yardstick.serve(Manner { one_by_one: true, ..Manner::default() })?;
    let crowded = large.serve(Manner::default())?;
    let bare = lab.bare(&server)?;
    lab.progress.begin("PostgreSQL");
    let mut reads = [
        Variant::new("bare hyper, stats", &bare, reading(&bare, STATS)),
        Variant::new("stats, PostgreSQL", &server, reading(&server, STATS)),
        Variant::new("stats, PostgreSQL, 2 M people", &crowded, reading(&crowded, STATS)),
        Variant::new("referral link, PostgreSQL", &server, linking(&server, small, SIZES[0])),
        Variant::new("referral link, PostgreSQL, 2 M people", &crowded, linking(&crowded, large, SIZES[3])),
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
        Variant::new("invite, PostgreSQL, 2 M people", &crowded, inviting(&crowded, large, "p")).signing_up(),
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
    let pending = |name: &str| -> anyhow::Result<Vec<i64>> {
        let text = postgres.query(name, "SELECT id FROM sign_ups WHERE state = 'pending' ORDER BY id")?;
        text.lines().map(|line| Ok(line.parse()?)).collect()
    };
    let before = [members("small")?, members("large")?];
    let mut clicks = [
        Variant::new("confirm, PostgreSQL", &server, confirming(&server, &pending("small")?)?),
        Variant::new("confirm, PostgreSQL, 2 M people", &crowded, confirming(&crowded, &pending("large")?)?),
    ];
    let all = lab.compare(&mut clicks);
    lab.report.compared("postgres", &all, 0);
    lab.report.found_ratio("postgres.sizes.confirm", &[&all[0], &all[1]], all[1].cost_at_rate(&all[0]));
    for ((name, before), click) in [("small", before[0]), ("large", before[1])].into_iter().zip(&clicks) {
        let (joined, answered) = (members(name)? - before, click.target.next);
        let what = format!("PostgreSQL, {name}: {answered} confirmations answered, {joined} more members");
        if joined == answered { lab.report.note(what) } else { lab.report.void(what) }
    }
    Ok(())
}

/// Limits kept in Redis: no goal, but what it costs to share them.
pub(crate) fn redis(lab: &mut Lab) -> anyhow::Result<()> {
    let Some(redis) = Redis::start()? else {
        lab.report.skipped("redis", "Redis is not installed");
        return Ok(());
    };
    let installation = lab.installation(SIZES[0])?;
    let shared = Installation {
        variables: vec![("UNIONHALL_LIMITS".to_owned(), redis.address.clone())],
        ..installation.clone()
    };
    // A server that does not know the setting would ignore it, and measure the wrong limiter.
    let knows = output(installation.command().args(["serve", "--help"]))?.contains("UNIONHALL_LIMITS");
    let server = match shared.serve(Manner::default()) {
        Ok(server) if knows => server,
        Ok(_) => {
            lab.report.skipped("redis", "this server does not know UNIONHALL_LIMITS");
            return Ok(());
        }
        Err(error) => {
            lab.report.skipped("redis", "this server does not take it");
            lab.report.note(format!("Redis: {error:#}"));
            return Ok(());
        }
    };
    let own = installation.serve(Manner::default())?;
    let mut variants = [
        Variant::new("stats, limits in memory", &own, reading(&own, STATS)),
        Variant::new("stats, limits in Redis", &server, reading(&server, STATS)),
    ];
    let all = lab.compare(&mut variants);
    lab.report.compared("redis", &all, 0);
    lab.waits(&mut variants, READS_A_SECOND);
    Ok(())
}

pub(crate) fn limiter(lab: &mut Lab) -> anyhow::Result<()> {
    let mut both = Both::new();
    for (goal, what, below) in [("limiter.uniform", "1 M keys", KEYS), ("limiter.hot", "few keys", HOT)] {
        let rounds: Option<Vec<_>> = (0..lab.plan.rounds).map(|_| both.round(below)).collect();
        let Some(rounds) = rounds else {
            lab.report.found(goal, Finding::Void("a request was refused".to_owned()));
            lab.report.void(format!("limiter, {what}: a request was refused"));
            continue;
        };
        let ratios: Vec<f64> = rounds.iter().map(|(ours, theirs)| ours / theirs).collect();
        let (ours, theirs): (Vec<_>, Vec<_>) = rounds.into_iter().unzip();
        lab.report.note(format!(
            "limiter, {what}: {:.0} ns a check, governor {:.0} ns, each with the reading of its clock",
            median(ours),
            median(theirs)
        ));
        let estimate = paired(&ratios).unwrap_or(Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN });
        lab.report.found(goal, Finding::Measured(estimate));
        lab.progress.step();
    }
    drop(both);
    let bytes: f64 = output(Command::new(std::env::current_exe()?).arg("limiter-memory"))?.parse()?;
    lab.report.found("limiter.bytes", Finding::of(bytes));
    Ok(())
}

/// Size on disk and in memory, and how long a start takes.
pub(crate) fn footprint(lab: &mut Lab) -> anyhow::Result<()> {
    const MB: f64 = 1e6;
    let binary = std::fs::metadata(&lab.binary)?.len() as f64;
    lab.report.found("binary", Finding::of(binary / MB));

    let installation = lab.installation(0)?;
    let server = installation.serve(Manner::default())?;
    ask(server.address, &Request::get(STATS))?;
    std::thread::sleep(Duration::from_secs(1));
    lab.report.found("resident.idle", Finding::of(server.resident()? as f64 / MB));
    let requests = if lab.plan.quick { 50_000 } else { 1_000_000 };
    let mut mixed = target(&server, vec![Request::get(CATEGORIES), Request::get(STATS), Request::get(PROGRAM)]);
    mixed.requests = mixed.requests.iter().chain(&*calling(&server, false).requests).cloned().collect();
    let mut load = Load::connect(&mixed, 64)?;
    let outcome = load.run(Pace::Count(requests))?;
    if outcome.errors > 0 {
        lab.report.void(format!("footprint: {} errors", outcome.errors));
    }
    drop(load);
    std::thread::sleep(Duration::from_secs(1));
    lab.report.found("resident.used", Finding::of(server.resident()? as f64 / MB));
    server.stop()?;
    lab.progress.step();

    lab.progress.begin("starting with 2 M people");
    let installation = lab.installation(SIZES[3])?;
    let starts = if lab.plan.quick { 5 } else { 21 };
    let mut times = Vec::new();
    for _ in 0..starts {
        let begun = Instant::now();
        let server = installation.serve(Manner::default())?;
        ask(server.address, &Request::get(STATS))?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        server.stop()?;
    }
    lab.report.found("start", Finding::of(median(times)));
    lab.progress.step();

    let before = people::rows(&installation.data.join("unionhall.db"))?;
    let server = installation.serve(Manner::default())?;
    let mut uses = [
        Variant::new("invite", &server, inviting(&server, &installation, "p")).signing_up(),
        Variant::new("link", &server, linking(&server, &installation, SIZES[3])),
        Variant::new("stats", &server, reading(&server, STATS)),
    ];
    let used = lab.compare(&mut uses);
    for measured in &used {
        if let Some(why) = &measured.void {
            lab.report.void(format!("footprint: {}: {why}", measured.name));
        }
    }
    std::thread::sleep(Duration::from_secs(1));
    lab.report.found("resident.people", Finding::of(server.resident()? as f64 / MB));
    let after = people::rows(&installation.data.join("unionhall.db"))?;
    lab.check_rows("footprint", before, after, &[&server]);
    Ok(())
}

/// Instructions a request, which no neighbour on the machine can change: the difference between a long and a short run
/// under callgrind. The kernel's are not in it.
pub(crate) fn instructions(lab: &mut Lab) -> anyhow::Result<()> {
    const SHORT: u64 = 100;
    const LONG: u64 = 600;
    if output(Command::new("valgrind").arg("--version")).is_err() {
        lab.report.skipped("instructions", "valgrind is not installed");
        return Ok(());
    }
    let installation = lab.installation(SIZES[0])?;
    let plain = installation.serve(Manner::default())?;
    let answers = lab.bare(&plain)?;
    drop(answers);
    let file = lab.folder.path().join(lab.made.to_string()).join("answers");
    plain.stop()?;
    type Make = fn(&Server, &Installation) -> Target;
    let scripts: [(&str, bool, Make); 8] = [
        ("bare hyper, categories", true, |server, _| reading(server, CATEGORIES)),
        ("categories", false, |server, _| reading(server, CATEGORIES)),
        ("referral program", false, |server, _| reading(server, PROGRAM)),
        ("stats", false, |server, _| reading(server, STATS)),
        ("invite", false, |server, installation| inviting(server, installation, "p")),
        ("referral link, known address", false, |server, installation| linking(server, installation, SIZES[0])),
        ("MCP getMemberStats, 2025-11-25", false, |server, _| calling(server, false)),
        ("MCP getMemberStats, 2026-07-28", false, |server, _| calling(server, true)),
    ];
    for (n, (name, is_bare, make)) in scripts.into_iter().enumerate() {
        lab.progress.begin(&format!("instructions of {name}"));
        let mut counts = Vec::new();
        for (door, requests) in [("s", SHORT), ("l", LONG)] {
            let out = lab.folder.path().join(format!("callgrind-{n}-{door}"));
            let flag = format!("--callgrind-out-file={}", out.display());
            let under = ["valgrind", "--tool=callgrind", flag.as_str()];
            let server = if is_bare {
                let mut command = Command::new(under[0]);
                command.args(&under[1..]).arg(std::env::current_exe()?).arg("bare").arg(&file);
                Server::start(&mut command, None)?
            } else {
                installation.serve_under(&under, Manner::default())?
            };
            let mut target = make(&server, &installation);
            // Numbers that the shorter run did not use.
            target.next = requests * 1_000_000;
            let outcome = Load::connect(&target, 1)?.run(Pace::Count(requests))?;
            if outcome.errors > 0 {
                lab.report.void(format!("instructions of {name}: {} errors", outcome.errors));
            }
            server.stop()?;
            counts.push(total(&out)?);
            lab.progress.step();
        }
        lab.report.instructions(name, (counts[1] - counts[0]) / (LONG - SHORT) as f64);
    }
    Ok(())
}

/// All instructions that a run under callgrind counted.
fn total(out: &Path) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(out)?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")));
    Ok(line.context("callgrind counted nothing")?.trim().parse()?)
}
