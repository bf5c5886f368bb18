//! Sign-ups on SQLite, many in one transaction (group commit) beside one transaction each, and referral links: write
//! throughput, and tail latency (p99 to p50).

use anyhow::bail;

use super::WRITES_A_SECOND;
use crate::compare::Variant;
use crate::goals::Finding;
use crate::lab::Lab;
use crate::people::{self, FEW};
use crate::server::Manner;
use crate::targets::{inviting, linking, listings};

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let installation = lab.installation(FEW)?;
    let yardstick = lab.installation(FEW)?;
    let databases = [&installation, &yardstick].map(|one| one.data.join("unionhall.db"));
    let before = [people::rows(&databases[0])?, people::rows(&databases[1])?];
    let server = installation.serve(Manner::default())?;
    let one_by_one = yardstick.serve(Manner { one_by_one: true, ..Manner::default() })?;
    let mut variants = [
        Variant::new("the listings", &server, listings(&server)),
        Variant::new("invite", &server, inviting(&server, &installation, "p")).signing_up(),
        Variant::new("invite, one transaction each", &one_by_one, inviting(&one_by_one, &yardstick, "p")).signing_up(),
        Variant::new("referral link, known address", &server, linking(&server, &installation, FEW)),
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
