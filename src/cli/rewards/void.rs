//! `unionhall rewards void`

use anyhow::anyhow;

use super::{VoidMember, with_rewards};
use crate::cli::audit::act;
use crate::cli::{campaigns, members, print_lines, secret};
use crate::domain::secret::mark::AddressMarker;

pub(super) fn run(task: &VoidMember) -> anyhow::Result<()> {
    let (email, slug) = (members::address(&task.email)?, &task.campaign);
    let outcome = with_rewards(&task.store, async |operator, now| {
        // The error names campaigns that may be meant.
        campaigns::find(&operator, slug, now).await?;
        let secret = secret::claim(&task.store, task.secret.given()?, &operator).await?.secret;
        let (act, marker) = (act("rewards void", slug.to_string(), now), AddressMarker::new(&secret));
        let outcome = operator.void(act, (&email, &marker), slug, &task.reason, now).await?;
        // The others may make another group at once.
        operator.rewards().catch_up(now).await?;
        Ok(outcome)
    })?;
    match outcome.words() {
        Ok(lines) => print_lines(&lines),
        Err(_) if outcome.is_nobody() => Err(members::no_such_person()),
        Err(why) => Err(anyhow!("{why}; nothing was changed")),
    }
}
