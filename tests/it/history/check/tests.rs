//! The rules on small histories, without a server.

mod once {
    use crate::history::check::{Rule, check};
    use crate::history::events::{Answer, Deed, Event, Outcome, SignUp, Time, Why};
    use crate::history::snapshot::{Mail, Person, SignUpRow, Snapshot};

    const CODE: &str = "0123456789ab";

    fn event(invoked: Time, completed: Time, deed: Deed, outcome: Outcome) -> Event {
        Event { client: 0, invoked, completed, deed, outcome }
    }

    fn good() -> Outcome {
        Outcome::Acknowledged(Answer { code: Some(CODE.to_owned()), attributed: Some(false), ..Answer::default() })
    }

    fn lost() -> Outcome {
        Outcome::Unknown("the connection broke".to_owned())
    }

    fn ana(comments: Option<&str>) -> Deed {
        Deed::SignUp(SignUp {
            email: "Ana@Example.com".to_owned(),
            partner: "Acme".to_owned(),
            key: Some("key".to_owned()),
            us_state: None,
            categories: None,
            comments: comments.map(str::to_owned),
            ref_code: None,
        })
    }

    fn confirm() -> Deed {
        Deed::Confirm { sign_up: 1, email: "ana@example.com".to_owned() }
    }

    fn row(id: i64, state: &str, comments: Option<&str>) -> SignUpRow {
        SignUpRow {
            id,
            person: 1,
            partner: "Acme".to_owned(),
            state: state.to_owned(),
            us_state: None,
            categories: None,
            comments: comments.map(str::to_owned),
            referrer: None,
        }
    }

    fn records(members: u64, sign_ups: Vec<SignUpRow>) -> Snapshot {
        let ana = Person {
            id: 1,
            email_normalized: "ana@example.com".to_owned(),
            mailbox: "ana@example.com".to_owned(),
            code: CODE.to_owned(),
            is_member: members == 1,
            referrer: None,
        };
        let pending = sign_ups.iter().filter(|row| row.state == "pending");
        let mail = |row: &SignUpRow| Mail { sign_up: row.id, recipient: "ana@example.com".to_owned() };
        let outbox = pending.map(mail).collect();
        Snapshot { people: vec![ana], outbox, sign_ups, suppressed: Vec::new(), member_count: members, stats: members }
    }

    #[track_caller]
    fn holds(history: &[Event], records: &Snapshot) {
        let found = check(history, records);
        assert!(found.is_empty(), "{found:?}");
    }

    #[track_caller]
    fn breaks(rule: Rule, history: &[Event], records: &Snapshot) {
        let found = check(history, records);
        assert!(found.iter().any(|violation| violation.rule == rule), "{found:?}");
        assert!(found.iter().all(|violation| !violation.what.is_empty()));
    }

    #[test]
    fn a_post_of_the_form_makes_way_for_three_later_ones_and_for_no_fewer() {
        let post = |words: &str| match ana(Some(words)) {
            Deed::SignUp(sign_up) => {
                Deed::SignUp(SignUp { partner: String::new(), key: None, categories: Some(String::new()), ..sign_up })
            }
            other => other,
        };
        let kept = |id, words| SignUpRow {
            partner: String::new(),
            categories: Some(String::new()),
            ..row(id, "pending", Some(words))
        };
        let history: Vec<_> = (1..)
            .zip(["one", "two", "three", "four"])
            .map(|(n, words)| event(2 * n, 2 * n + 1, post(words), good()))
            .collect();
        let rows = || vec![kept(2, "two"), kept(3, "three"), kept(4, "four")];
        holds(&history, &records(0, rows()));
        breaks(Rule::SignUpLost, &history[..3], &records(0, rows()[..2].to_vec()));
    }

    #[test]
    fn of_two_that_follow_each_other_the_later_stays() {
        let history = [
            event(1, 2, ana(Some("one")), good()),
            event(3, 4, ana(Some("two")), good()),
            event(5, 6, ana(None), good()),
        ];
        holds(&history, &records(0, vec![row(1, "pending", Some("two"))]));
        breaks(Rule::AnswersWrong, &history, &records(0, vec![row(1, "pending", Some("one"))]));
        breaks(Rule::AnswersWrong, &history, &records(0, vec![row(1, "pending", None)]));
        breaks(Rule::SignUpLost, &history, &records(0, Vec::new()));
        breaks(Rule::PersonLost, &history, &Snapshot { people: Vec::new(), ..records(0, Vec::new()) });
    }

    #[test]
    fn of_two_at_once_either_may_stay_and_one_without_an_answer_may_come_late() {
        let history = [event(1, 4, ana(Some("one")), good()), event(3, 6, ana(Some("two")), good())];
        holds(&history, &records(0, vec![row(1, "pending", Some("one"))]));
        holds(&history, &records(0, vec![row(1, "pending", Some("two"))]));
        let history = [event(1, 2, ana(Some("one")), lost()), event(3, 4, ana(Some("two")), good())];
        holds(&history, &records(0, vec![row(1, "pending", Some("one"))]));
        holds(&history, &records(0, vec![row(1, "pending", Some("two"))]));
        breaks(Rule::AnswersWrong, &history, &records(0, vec![row(1, "pending", None)]));
    }

    #[test]
    fn what_comes_after_a_decision_is_another_sign_up() {
        let history = [
            event(1, 2, ana(Some("one")), good()),
            event(3, 4, confirm(), good()),
            event(5, 6, ana(Some("two")), good()),
        ];
        let (confirmed, pending) = (row(1, "confirmed", Some("one")), row(2, "pending", Some("two")));
        holds(&history, &records(1, vec![confirmed.clone(), pending.clone()]));
        breaks(Rule::SignUpLost, &history, &records(1, vec![confirmed.clone()]));
        breaks(Rule::AnswersWrong, &history, &records(1, vec![row(1, "confirmed", Some("two")), pending.clone()]));
        breaks(Rule::MemberLost, &history, &records(0, vec![confirmed.clone(), pending.clone()]));
        breaks(Rule::DecisionChanged, &history, &records(1, vec![row(1, "declined", Some("one")), pending.clone()]));
        breaks(Rule::TwoPending, &history, &records(1, vec![row(1, "pending", Some("one")), pending]));
        breaks(Rule::MemberFromNowhere, &history[..1], &records(1, vec![row(1, "pending", Some("one"))]));
        breaks(Rule::DecisionFromNowhere, &history[..1], &records(0, vec![confirmed]));
    }

    #[test]
    fn a_count_lies_between_what_was_and_what_may_be() {
        let stats = |invoked, completed, count| {
            let answer = Answer { count: Some(count), ..Answer::default() };
            event(invoked, completed, Deed::Stats, Outcome::Acknowledged(answer))
        };
        let signed = event(1, 2, ana(None), good());
        let with = |outcome: Outcome, stats| [signed.clone(), event(10, 20, confirm(), outcome), stats];
        let joined = records(1, vec![row(1, "confirmed", None)]);
        holds(&with(good(), stats(12, 14, 0)), &joined);
        holds(&with(good(), stats(12, 14, 1)), &joined);
        holds(&with(lost(), stats(30, 40, 0)), &joined);
        breaks(Rule::CountImpossible, &with(good(), stats(21, 22, 0)), &joined);
        breaks(Rule::CountImpossible, &with(good(), stats(5, 9, 1)), &joined);
        breaks(Rule::CountImpossible, &with(good(), stats(21, 22, 2)), &joined);
        let wrong = Snapshot { member_count: 2, ..joined.clone() };
        breaks(Rule::CountWrong, &with(good(), stats(21, 22, 1)), &wrong);
        breaks(Rule::CountWrong, &with(good(), stats(21, 22, 1)), &Snapshot { stats: 2, ..joined });
    }

    #[test]
    fn what_the_operator_switched_is_seen_within_two_seconds() {
        const SECOND: Time = 1_000_000;
        let done = |at: Time, deed| event(at, at + 1, deed, Outcome::Acknowledged(Answer::default()));
        let act = |at: Time, outcome| event(at, at + 1, ana(None), outcome);
        let there = records(0, vec![row(1, "pending", None)]);
        let revoke = || done(SECOND, Deed::Revoke { key: "key".to_owned() });
        holds(&[revoke(), act(2 * SECOND, good())], &there);
        breaks(Rule::RevokedKeyWorked, &[revoke(), act(4 * SECOND, good())], &there);
        let first = || act(1, good());
        holds(&[first(), revoke(), act(4 * SECOND, Outcome::Refused(Why::Key))], &there);
        breaks(Rule::GoodKeyRefused, &[first(), act(4 * SECOND, Outcome::Refused(Why::Key))], &there);
        let (pause, resume) = (done(SECOND, Deed::Pause), done(5 * SECOND, Deed::Resume));
        holds(&[pause.clone(), act(2 * SECOND, good())], &there);
        holds(&[pause.clone(), resume.clone(), act(6 * SECOND, good())], &there);
        breaks(Rule::PauseIgnored, &[pause.clone(), resume.clone(), act(4 * SECOND, good())], &there);
        let paused = |at| act(at, Outcome::Refused(Why::Paused));
        holds(&[first(), pause.clone(), paused(2 * SECOND)], &there);
        breaks(Rule::PauseMadeUp, &[first(), pause, resume, paused(9 * SECOND)], &there);
        breaks(Rule::PauseMadeUp, &[first(), paused(9 * SECOND)], &there);
        breaks(Rule::RefusedForNothing, &[first(), act(9, Outcome::Refused(Why::Other("400".to_owned())))], &there);
    }

    #[test]
    fn each_undecided_sign_up_has_one_mail_and_no_other_has_any() {
        let history = [event(1, 2, ana(None), good())];
        let there = records(0, vec![row(1, "pending", None)]);
        breaks(Rule::MailLost, &history, &Snapshot { outbox: Vec::new(), ..there.clone() });
        let twice = [there.outbox.clone(), there.outbox.clone()].concat();
        breaks(Rule::MailTwice, &history, &Snapshot { outbox: twice, ..there.clone() });
        let other = Mail { sign_up: 1, recipient: "ben@example.com".to_owned() };
        breaks(Rule::MailPointless, &history, &Snapshot { outbox: vec![other], ..there.clone() });
        let declined = Snapshot { outbox: there.outbox.clone(), ..records(0, vec![row(1, "declined", None)]) };
        breaks(Rule::MailPointless, &history, &declined);
        breaks(Rule::SignUpFromNowhere, &[], &there);
        breaks(Rule::PersonFromNowhere, &[], &there);
    }
}
