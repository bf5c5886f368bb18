//! Every operation on SQLite at every size, from 10 k people to 2 M: scalability, as throughput and CPU time a request
//! against the number of rows.

use crate::compare::Variant;
use crate::lab::Lab;
use crate::load::Target;
use crate::people::{self, SIZES};
use crate::plot::short;
use crate::report::Point;
use crate::server::{Installation, Manner, Server};
use crate::targets::{CATEGORIES, PROGRAM, STATS, inviting, linking, reading};

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
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
