//! How many members there are: each person once, and never a figure that was not possible at that moment.

use super::{Case, Findings, Rule, normalized};
use crate::history::events::{Deed, Time};
use crate::prelude::*;

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    let records = case.records;
    let members = records.people.iter().filter(|person| person.is_member).count() as u64;
    let same = records.member_count == members && records.stats == members;
    found.unless(same, Rule::CountWrong, || {
        format!("{members} members, {} in the records, {} answered", records.member_count, records.stats)
    });
    // For each person, when they may have become a member first, and when they surely were one.
    let mut joined: HashMap<String, (Time, Time)> = HashMap::new();
    for event in case.history.iter().filter(|event| event.may_have_happened()) {
        let Deed::Confirm { email, .. } = &event.deed else { continue };
        let (perhaps, surely) = joined.entry(normalized(email)).or_insert((Time::MAX, Time::MAX));
        *perhaps = event.invoked.min(*perhaps);
        *surely = event.effective_by().min(*surely);
    }
    let (mut perhaps, mut surely): (Vec<_>, Vec<_>) = joined.into_values().unzip();
    perhaps.sort_unstable();
    surely.sort_unstable();
    let before = |times: &[Time], time: Time| times.partition_point(|joined| *joined < time) as u64;
    for event in case.history {
        let Some(count) = event.acknowledged().and_then(|answer| answer.count) else { continue };
        let (least, most) = (before(&surely, event.invoked), before(&perhaps, event.completed));
        let possible = (least..=most).contains(&count);
        found.unless(possible, Rule::CountImpossible, || format!("{count}, not {least} to {most}: {event}"));
    }
}
