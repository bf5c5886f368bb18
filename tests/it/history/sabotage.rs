//! The checker is worth what it finds: a good run, then one thing made wrong at a time, each found by its name.

use super::check::{Rule, check};
use super::events::{Deed, Event, Outcome};
use super::nemesis::Deployment;
use super::plan::{Channel, Step, WhichKey};
use super::snapshot::Snapshot;
use super::{Client, Goal, Run, act, live};
use crate::prelude::*;

fn broken(history: &[Event], records: &Snapshot) -> BTreeSet<Rule> {
    check(history, records).into_iter().map(|violation| violation.rule).collect()
}

/// Statements after which the records say something else than was acknowledged, in an order in which none hides another.
fn in_the_records(records: &Records) -> Vec<(Rule, String)> {
    let one = |sql: &str| records.rows(sql).first().unwrap_or_else(|| panic!("somebody fits: {sql}"))[0].clone();
    let unreferring = "NOT EXISTS (SELECT 1 FROM people r WHERE r.referrer_id = p.id)
                       AND NOT EXISTS (SELECT 1 FROM sign_ups r WHERE r.referrer_id = p.id)";
    // A partner's: a post of the form may have made way for later ones.
    let pending = one("SELECT max(id) FROM sign_ups WHERE state = 'pending' AND partner_id IS NOT NULL");
    let other = one(&format!("SELECT max(id) FROM sign_ups WHERE state = 'pending' AND id <> {pending}"));
    let third =
        one(&format!("SELECT min(id) FROM sign_ups WHERE state = 'pending' AND id NOT IN ({pending}, {other})"));
    let confirmed = one("SELECT max(id) FROM sign_ups WHERE state = 'confirmed'");
    let left = one(&format!(
        "SELECT max(p.id) FROM people p WHERE state = 'member' AND {unreferring}
         AND NOT EXISTS (SELECT 1 FROM sign_ups s WHERE s.person_id = p.id AND s.id IN ({pending}, {other}, {third}))"
    ));
    let gone = one(&format!(
        "SELECT min(p.id) FROM people p WHERE {unreferring} AND state = 'invited'
         AND NOT EXISTS (SELECT 1 FROM sign_ups s WHERE s.person_id = p.id AND s.id IN ({pending}, {other}, {third}))"
    ));
    let somebody =
        one(&format!("SELECT min(person_id) FROM sign_ups WHERE partner_id IS NOT NULL AND person_id <> {gone}"));
    vec![
        (Rule::CountWrong, "UPDATE installation SET member_count = member_count + 1".to_owned()),
        (Rule::MailLost, format!("DELETE FROM outbox WHERE sign_up_id = {third}")),
        (
            Rule::MailPointless,
            format!(
                "INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after)
                 VALUES ({confirmed}, 'confirm', 'a@example.com', 0, 0)"
            ),
        ),
        (Rule::AnswersWrong, format!("UPDATE sign_ups SET comments = 'forged' WHERE id = {other}")),
        (
            Rule::SignUpLost,
            format!("DELETE FROM outbox WHERE sign_up_id = {pending}; DELETE FROM sign_ups WHERE id = {pending}"),
        ),
        (Rule::DecisionFromNowhere, format!("UPDATE sign_ups SET state = 'declined' WHERE id = {third}")),
        (
            Rule::SignUpFromNowhere,
            format!(
                "INSERT INTO sign_ups (person_id, slot, state, categories, consent_version, created_at, updated_at,
                 expires_at) VALUES ({somebody}, 9, 'pending', '', 1, 0, 0, 0)"
            ),
        ),
        (Rule::PeaceBroken, "UPDATE mailboxes SET suppressed_until = NULL".to_owned()),
        (Rule::CodeChanged, format!("UPDATE people SET code = '000000000000' WHERE id = {somebody}")),
        (Rule::MemberLost, format!("UPDATE people SET state = 'invited' WHERE id = {left}")),
        (Rule::DecisionChanged, "UPDATE sign_ups SET state = 'confirmed' WHERE state = 'declined'".to_owned()),
        (
            Rule::PersonLost,
            format!(
                "DELETE FROM outbox WHERE sign_up_id IN (SELECT id FROM sign_ups WHERE person_id = {gone});
                 DELETE FROM sign_ups WHERE person_id = {gone}; DELETE FROM people WHERE id = {gone}"
            ),
        ),
        (
            Rule::PersonFromNowhere,
            "INSERT INTO people (email, email_normalized, mailbox, code, state, created_at)
             VALUES ('x@example.org', 'x@example.org', 'x@example.org', 'zzzzzzzzzzzz', 'invited', 0)"
                .to_owned(),
        ),
        (Rule::MemberFromNowhere, "UPDATE people SET state = 'member' WHERE email = 'x@example.org'".to_owned()),
    ]
}

/// Ways to forge what was heard, in a copy of the history.
type Forgery = (Rule, fn(&mut Vec<Event>));

const IN_THE_HISTORY: [Forgery; 6] = [
    (Rule::CodeChanged, |history| {
        let answer = acknowledged(history, |deed| matches!(deed, Deed::Link { .. }));
        let Outcome::Acknowledged(answer) = &mut answer.outcome else { unreachable!() };
        answer.code = Some("111111111111".to_owned());
    }),
    (Rule::CountImpossible, |history| {
        let answer = acknowledged(history, |deed| matches!(deed, Deed::Stats));
        let Outcome::Acknowledged(answer) = &mut answer.outcome else { unreachable!() };
        answer.count = Some(1_000_000);
    }),
    (Rule::AttributionWrong, |history| {
        let answer = acknowledged(
            history,
            |deed| matches!(deed, Deed::SignUp(sent) if sent.ref_code.is_none() && sent.key.is_some()),
        );
        let Outcome::Acknowledged(answer) = &mut answer.outcome else { unreachable!() };
        answer.attributed = Some(true);
    }),
    (Rule::RevokedKeyWorked, |history| {
        // As if the operator had done so long before.
        let key = acknowledged(history, |deed| matches!(deed, Deed::SignUp(sent) if sent.key.is_some()))
            .key()
            .unwrap()
            .to_owned();
        let mut event = acknowledged(history, |deed| matches!(deed, Deed::Issue)).clone();
        (event.invoked, event.completed, event.deed) = (0, 0, Deed::Revoke { key });
        history.iter_mut().for_each(|event| {
            event.invoked += 3_000_000;
            event.completed += 3_000_000;
        });
        history.push(event);
    }),
    (Rule::PauseIgnored, |history| {
        let mut event = acknowledged(history, |deed| matches!(deed, Deed::Issue)).clone();
        (event.invoked, event.completed, event.deed) = (0, 0, Deed::Pause);
        history.retain(|event| !matches!(event.deed, Deed::Resume));
        history.iter_mut().for_each(|event| {
            event.invoked += 3_000_000;
            event.completed += 3_000_000;
        });
        history.push(event);
    }),
    (Rule::PersonLost, |history| {
        let answer = acknowledged(history, |deed| matches!(deed, Deed::Link { .. }));
        answer.deed = Deed::Link { email: "nobody@example.net".to_owned(), key: answer.key().unwrap().to_owned() };
    }),
];

fn acknowledged(history: &mut [Event], wanted: fn(&Deed) -> bool) -> &mut Event {
    history.iter_mut().rfind(|event| event.acknowledged().is_some() && wanted(&event.deed)).expect("there is one")
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn whatever_is_made_wrong_is_found_by_its_name() {
        needs!(Faketime);
        let goal = Goal { lasts: Duration::ZERO, acknowledged: 400 };
        let Run { deployment, history, records, .. } = live(Deployment::start(), 5, goal, 4, &[]).await;
        assert_eq!(broken(&history, &records), BTreeSet::new(), "{:?}", check(&history, &records));
        for (rule, forge) in IN_THE_HISTORY {
            let mut forged = history.clone();
            forge(&mut forged);
            let found = broken(&forged, &records);
            assert!(found.contains(&rule), "{rule:?} was not found in the history, but {found:?}");
        }
        let kept = deployment.nodes().next().unwrap().records().clone();
        let mut before = BTreeSet::new();
        for (rule, sql) in in_the_records(&kept) {
            assert!(!before.contains(&rule), "{rule:?} was there before {sql}");
            kept.execute(&sql);
            before = broken(&history, &Snapshot::read(&kept, records.stats));
            assert!(before.contains(&rule), "{rule:?} was not found after {sql}, but {before:?}");
        }
    }

    /// The same end to end: a disk that forgets the last person it had promised to keep.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_disk_that_forgets_is_found_out() {
        needs!(Faketime);
        let goal = Goal { lasts: Duration::ZERO, acknowledged: 50 };
        let mut acted = act(Deployment::start(), 5, goal, 4, &[]).await;
        let mut client = Client::new(Arc::clone(&acted.world), 5);
        client.take(Step::Resume).await;
        let disk = tokio::task::block_in_place(|| acted.deployment.copy_disk(&acted.world));
        let before = acted.world.acknowledged();
        client.take(SOMEBODY_NEW).await;
        assert_eq!(acted.world.acknowledged(), before + 1);
        tokio::task::block_in_place(|| acted.deployment.forget_since(&disk, &acted.world));
        let Run { history, records, .. } = acted.settle().await;
        assert_eq!(broken(&history, &records), BTreeSet::from([Rule::PersonLost]));
    }

    /// A sign-up of somebody whom no plan names.
    const SOMEBODY_NEW: Step = Step::SignUp {
        who: 999_999,
        channel: Channel::Rest,
        partner: 0,
        key: WhichKey::Lasting,
        us_state: None,
        categories: None,
        comments: None,
        referred_by: None,
    };
}
