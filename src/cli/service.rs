//! The union's name and addresses in what commands print: as they were given to the command, else as the service keeps them.

use std::path::Path;

use super::{demo, print_aside};
use crate::config::{ServiceSettings, UnionSettings};
use crate::domain::union::Union;
use crate::domain::union::service::ServiceFacts;
use crate::installation::FindServiceFacts;
use crate::operator::Operator;

/// Where there is nothing that the service keeps: "the link is made from this command's own settings".
pub(super) fn never_ran(what: &str) -> String {
    format!("The service has not run with these records yet, so {what} made from this command's own settings.")
}

/// What the service keeps, but for what was given.
pub(super) async fn facts(given: &ServiceSettings, operator: &Operator) -> anyhow::Result<ServiceFacts> {
    let kept = operator.ask(FindServiceFacts).await?;
    if kept.is_none() && (given.name.is_none() || given.join_site.is_none()) {
        print_aside(&never_ran("the union's name and links are"));
    }
    Ok(given.facts(kept))
}

/// The facts about the union for a process beside the service. `is_name_given` tells the default name from the same that was given.
pub(super) fn union_beside(
    settings: &UnionSettings,
    is_name_given: bool,
    kept: Option<ServiceFacts>,
    data: &Path,
) -> anyhow::Result<Union> {
    let mut settings = match kept {
        Some(kept) => settings.clone().or_kept(kept, is_name_given),
        None => {
            if settings.base_url.is_none() && settings.join_site.is_none() {
                print_aside(&never_ran("the union's name and links are"));
            }
            settings.clone()
        }
    };
    if demo::folder::is_marked(data) {
        settings.is_demonstration = true;
        settings.figures.catalog = Some(data.join(demo::folder::CATALOG));
    }
    settings.facts(settings.base_url(settings.listen, "http"))
}
