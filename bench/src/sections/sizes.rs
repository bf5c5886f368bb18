//! Every operation on SQLite at 10 k people and at 2 M: scalability, as throughput and CPU time a request against the number of rows.

use crate::compare::{Turn, Variant};
use crate::lab::Lab;
use crate::load::Target;
use crate::people::{self, FEW, short};
use crate::server::{Installation, Manner, Server};
use crate::targets::{CATEGORIES, PROGRAM, STATS, inviting, linking, reading};

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let mut places = Vec::new();
    for people in [FEW, lab.most()] {
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
        lab.progress.begin(&format!("{name} at both sizes"));
        let mut variants: Vec<_> = places
            .iter()
            .map(|place| {
                let variant = Variant::new(format!("{name}, {} people", short(place.0)), &place.2, make(place));
                if name == "invite" { variant.signing_up() } else { variant }
            })
            .collect();
        at_sizes(lab, "sizes", lab.plan.rounds, &mut variants, Figure::Rate(goal));
    }
    for (people, installation, server, before) in &places {
        let after = people::rows(&installation.data.join("unionhall.db"))?;
        lab.check_rows(&format!("{} people", short(*people)), *before, after, &[server]);
    }
    Ok(())
}

/// Which ratio of the largest size to the smallest a goal is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Figure {
    /// How many are done in a second.
    Rate(&'static str),
    /// How long one takes when as many as can be are under way.
    Time(&'static str),
    /// Processor time of one: where answers leave at even moments, the rate says nothing.
    Cost(&'static str),
}

/// One kind of work at each size, the smallest first and the reference of the others; and its goal.
pub(super) fn at_sizes(lab: &mut Lab, section: &'static str, rounds: usize, turns: &mut [impl Turn], figure: Figure) {
    let all = lab.compare_in(rounds, turns);
    lab.report.compared(section, &all, 0);
    if let (Some(small), Some(large)) = (all.first(), all.last()) {
        let (goal, ratio) = match figure {
            Figure::Rate(goal) => (goal, large.rate_to(small)),
            Figure::Time(goal) => (goal, large.cost_at_rate(small)),
            Figure::Cost(goal) => (goal, large.cost_to(small)),
        };
        lab.report.found_ratio(goal, &[small, large], ratio);
    }
}
