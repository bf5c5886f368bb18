//! What we aim for, and what was measured of it.

use crate::statistics::Estimate;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

/// One goal: its section, its name there, what it says, its bound and its unit.
pub(crate) struct Goal {
    pub section: &'static str,
    pub id: &'static str,
    pub what: &'static str,
    pub bound: Bound,
    pub unit: &'static str,
}

const fn goal(section: &'static str, id: &'static str, what: &'static str, bound: Bound, unit: &'static str) -> Goal {
    Goal { section, id, what, bound, unit }
}

use Bound::{AtLeast, AtMost};

pub(crate) const GOALS: &[Goal] = &[
    goal("static", "static.cpu", "static GET: CPU to bare hyper, log off", AtMost(1.35), "×"),
    goal("static", "static.cpu.logged", "static GET: CPU to bare hyper, log on", AtMost(1.7), "×"),
    goal("static", "static.rate", "static GET: requests/s to bare hyper, log off", AtLeast(0.85), "×"),
    goal("static", "static.rate.logged", "static GET: requests/s to bare hyper, log on", AtLeast(0.85), "×"),
    goal("stats", "stats.cpu", "stats, SQLite: CPU to bare hyper, log off", AtMost(1.6), "×"),
    goal("stats", "stats.cpu.logged", "stats, SQLite: CPU to bare hyper, log on", AtMost(1.95), "×"),
    goal("stats", "stats.rate", "stats, SQLite: requests/s to bare hyper, log off", AtLeast(0.72), "×"),
    goal("stats", "stats.rate.logged", "stats, SQLite: requests/s to bare hyper, log on", AtLeast(0.72), "×"),
    goal("postgres", "postgres.stats.rate", "stats, PostgreSQL: requests/s to bare hyper", AtLeast(0.6), "×"),
    goal("invite", "invite.batched", "invite, SQLite: to one transaction a request", AtLeast(3.0), "×"),
    goal("invite", "invite.static", "invite, SQLite: requests/s to static GET", AtLeast(0.15), "×"),
    goal("invite", "invite.tail", "invite, SQLite: p99 to p50 at a fixed rate", AtMost(12.0), "×"),
    goal("postgres", "postgres.invite.batched", "invite, PostgreSQL: to one transaction a request", AtLeast(4.0), "×"),
    goal("postgres", "postgres.confirm.batched", "confirm, PostgreSQL: to one transaction each", AtLeast(5.0), "×"),
    goal(
        "postgres",
        "postgres.confirm.standby",
        "confirm, PostgreSQL with a synchronous standby: the same",
        AtLeast(5.0),
        "×",
    ),
    goal(
        "postgres",
        "postgres.sizes.stats",
        "stats, PostgreSQL: time a request at 2 M people to 10 k",
        AtMost(1.3),
        "×",
    ),
    goal("postgres", "postgres.sizes.link", "referral link, PostgreSQL: the same", AtMost(1.3), "×"),
    goal("postgres", "postgres.sizes.invite", "invite, PostgreSQL: the same", AtMost(1.3), "×"),
    goal("postgres", "postgres.sizes.confirm", "confirm, PostgreSQL: the same", AtMost(1.3), "×"),
    goal("sizes", "sizes.categories", "categories: rate at 2 M people to 10 k", AtLeast(0.85), "×"),
    goal("sizes", "sizes.program", "referral program: rate at 2 M people to 10 k", AtLeast(0.85), "×"),
    goal("sizes", "sizes.stats", "stats: rate at 2 M people to 10 k", AtLeast(0.85), "×"),
    goal("sizes", "sizes.invite", "invite: rate at 2 M people to 10 k", AtLeast(0.75), "×"),
    goal("sizes", "sizes.link", "referral link: rate at 2 M people to 10 k", AtLeast(0.9), "×"),
    goal(
        "campaigns",
        "campaigns.tail",
        "invite at 2 M people: p99 beside a mailing and a count to alone",
        AtMost(1.3),
        "×",
    ),
    goal("rewards", "rewards.tail", "invite at 2 M people: p99 while rewards are checked to alone", AtMost(1.3), "×"),
    goal(
        "growth",
        "growth.sign_up",
        "sign-up with a key: rate at 2 M people and a million keys to 10 k",
        AtLeast(0.75),
        "×",
    ),
    goal("growth", "growth.confirm", "confirm: rate at 2 M people and a million keys to 10 k", AtLeast(0.85), "×"),
    goal("growth", "growth.ask", "sign-in mail: CPU at 2 M people to 10 k", AtMost(1.3), "×"),
    goal("growth", "growth.enter", "mailed link opened: rate at 2 M people to 10 k", AtLeast(0.85), "×"),
    goal("growth", "growth.me", "/me: rate at 2 M people to 10 k", AtLeast(0.85), "×"),
    goal("growth", "growth.in", "count me in: rate at 2 M people to 10 k", AtLeast(0.85), "×"),
    goal("growth", "growth.accept", "offer accepted: rate at 2 M people to 10 k", AtLeast(0.85), "×"),
    goal("growth", "growth.status", "status of a sign-up: rate at 2 M people to 10 k", AtLeast(0.85), "×"),
    goal("growth", "growth.replay", "replayed sign-up: rate at 2 M people to 10 k", AtLeast(0.85), "×"),
    goal("growth", "growth.webhooks", "webhooks delivered: rate at 2 M people to 10 k", AtLeast(0.85), "×"),
    goal("growth", "growth.mailing", "campaign mail queued: rate at 2 M people to 10 k", AtLeast(0.85), "×"),
    goal("growth", "growth.operator", "/operator, read anew: time at 2 M people to 10 k", AtMost(1.3), "×"),
    goal("growth", "growth.export", "export: time a person at 2 M people to 10 k", AtMost(1.3), "×"),
    goal("growth", "growth.backup", "backup: time a person at 2 M people to 10 k", AtMost(1.3), "×"),
    goal(
        "growth, PostgreSQL",
        "growth.postgres.sign_up",
        "sign-up with a key, PostgreSQL: time a request at 2 M people and a million keys to 10 k",
        AtMost(1.3),
        "×",
    ),
    goal("growth, PostgreSQL", "growth.postgres.confirm", "confirm, PostgreSQL: the same", AtMost(1.3), "×"),
    goal(
        "growth, PostgreSQL",
        "growth.postgres.ask",
        "sign-in mail, PostgreSQL: CPU at 2 M people to 10 k",
        AtMost(1.3),
        "×",
    ),
    goal(
        "growth, PostgreSQL",
        "growth.postgres.enter",
        "mailed link opened, PostgreSQL: time a request at 2 M people to 10 k",
        AtMost(1.3),
        "×",
    ),
    goal("growth, PostgreSQL", "growth.postgres.me", "/me, PostgreSQL: the same", AtMost(1.3), "×"),
    goal("growth, PostgreSQL", "growth.postgres.in", "count me in, PostgreSQL: the same", AtMost(1.3), "×"),
    goal("growth, PostgreSQL", "growth.postgres.accept", "offer accepted, PostgreSQL: the same", AtMost(1.3), "×"),
    goal("growth, PostgreSQL", "growth.postgres.status", "status of a sign-up, PostgreSQL: the same", AtMost(1.3), "×"),
    goal("growth, PostgreSQL", "growth.postgres.replay", "replayed sign-up, PostgreSQL: the same", AtMost(1.3), "×"),
    goal(
        "growth, PostgreSQL",
        "growth.postgres.webhooks",
        "webhooks delivered, PostgreSQL: the same",
        AtMost(1.3),
        "×",
    ),
    goal(
        "growth, PostgreSQL",
        "growth.postgres.mailing",
        "campaign mail queued, PostgreSQL: the same",
        AtMost(1.3),
        "×",
    ),
    goal("mcp", "mcp.cpu", "MCP getMemberStats: CPU to REST stats, the dearer era", AtMost(1.25), "×"),
    goal("redis", "redis.rate", "stats, limits in Redis: requests/s to limits in memory", AtLeast(0.65), "×"),
    goal("redis", "redis.cpu", "stats, limits in Redis: CPU to limits in memory", AtMost(1.25), "×"),
    goal(
        "nodes",
        "nodes.stats.added",
        "stats, three nodes: CPU with database and Redis to one node with a third of the load",
        AtMost(1.15),
        "×",
    ),
    goal("nodes", "nodes.invite.added", "invite, three nodes: the same", AtMost(1.15), "×"),
    goal("nodes", "nodes.link.added", "referral link, three nodes: the same", AtMost(1.15), "×"),
    goal("nodes", "nodes.stats", "stats, three nodes: to one node with all of the load", AtMost(1.15), "×"),
    goal("nodes", "nodes.invite", "invite, three nodes: to one node with all of the load", AtMost(1.15), "×"),
    goal("nodes", "nodes.link", "referral link, three nodes: to one node with all of the load", AtMost(1.15), "×"),
    goal("nodes", "nodes.confirm", "confirm, three nodes: to one transaction each", AtLeast(5.0), "×"),
    goal("limiter", "limiter.uniform", "limiter: a check to governor's, 1 M keys", AtMost(2.5), "×"),
    goal("limiter", "limiter.hot", "limiter: a check to governor's, few keys", AtMost(1.5), "×"),
    goal("limiter", "limiter.bytes", "limiter: memory of a key that made 60 requests", AtMost(400.0), "B"),
    goal("footprint", "start.empty", "start to first answer, no people", AtMost(10.0), "ms"),
    goal("footprint", "start", "start to first answer, 2 M people", AtMost(30.0), "ms"),
    goal("footprint", "resident.idle", "resident, idle", AtMost(16.0), "MB"),
    goal("footprint", "resident.used", "resident after 1 M requests", AtMost(40.0), "MB"),
    goal("footprint", "resident.people", "resident with 2 M people, after use", AtMost(40.0), "MB"),
    goal("footprint", "binary", "dist binary, stripped", AtMost(10.0), "MB"),
    goal("footprint", "binary.release", "release binary, where one was built", AtMost(15.0), "MB"),
];

/// What is known of a goal.
#[derive(Debug, Clone)]
pub(crate) enum Finding {
    Measured(Estimate),
    /// Why the figure counts for nothing.
    Void(String),
    /// Why there is no figure.
    Skipped(String),
}

impl Finding {
    pub(crate) fn of(value: f64) -> Self {
        Self::Measured(Estimate { value, low: value, high: value })
    }
}

impl Goal {
    pub(crate) fn text(&self) -> String {
        match self.bound {
            AtMost(most) => format!("≤ {most} {}", self.unit),
            AtLeast(least) => format!("≥ {least} {}", self.unit),
        }
    }

    pub(crate) fn verdict(&self, finding: Option<&Finding>) -> (String, &'static str) {
        match finding {
            Some(Finding::Measured(estimate)) => {
                let verdict = if self.bound.holds(estimate.value) { "met" } else { "**missed**" };
                (show(*estimate), verdict)
            }
            Some(Finding::Void(why)) => (why.clone(), "**void**"),
            Some(Finding::Skipped(why)) => (why.clone(), "not measured"),
            None => (String::new(), "not measured"),
        }
    }
}

/// A figure with its interval, if it has one.
pub(crate) fn show(estimate: Estimate) -> String {
    let digits = if estimate.value.abs() >= 100.0 {
        0
    } else if estimate.value.abs() >= 10.0 {
        1
    } else {
        2
    };
    let Estimate { value, low, high } = estimate;
    if low == high {
        format!("{value:.digits$}")
    } else {
        format!("{value:.digits$} ({low:.digits$}–{high:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_have_names_of_their_own_and_bounds_hold_either_way() {
        let names: std::collections::HashSet<_> = GOALS.iter().map(|goal| goal.id).collect();
        assert_eq!(names.len(), GOALS.len());
        assert!(AtMost(1.0).holds(0.9) && !AtMost(1.0).holds(1.1));
        assert!(AtLeast(1.0).holds(1.1) && !AtLeast(1.0).holds(0.9));
    }
}
