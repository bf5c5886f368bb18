//! What every store makes of people who leave, are erased or come back; of the figures about them; and of who did it.

use unionhall::domain::person::{Erased, Leaving, Lifted, PersonDetails};
use unionhall::domain::secret::mark::AddressMarks;
use unionhall::figures::{Demand, Funnel, ListDemand, ListSourceDays, ListTopReferrers};
use unionhall::store::audit::BY_THEMSELVES;

use super::*;
use unionhall::people::records::{FindPeople, ListPeopleAfter, ListSignUpsOf};

const NEVER: Timestamp = Timestamp::from_millis(i64::MAX);

pub(super) fn email(text: &str) -> EmailAddress {
    EmailAddress::parse(text).unwrap()
}

pub(super) fn marks(text: &str) -> AddressMarks {
    AddressMarker::new(&Secret::new(&"s".repeat(32)).unwrap()).marks(&email(text))
}

/// What somebody is called in the audit log from then on.
pub(super) fn account_of(address: &str) -> AccountId {
    account(address.to_lowercase().bytes().fold(0, |sum: u8, byte| sum.wrapping_mul(31).wrapping_add(byte)))
}

fn account(n: u8) -> AccountId {
    AccountId::from_random(&[n; AccountId::ENTROPY])
}

impl Fixture {
    pub(super) async fn file(&self, address: &str) -> Option<PersonDetails> {
        self.file_at(email(address).normalized(), NOW).await
    }

    /// Everything that is kept under an address, or a tombstone's.
    pub(super) async fn file_at(&self, email_normalized: String, now: Timestamp) -> Option<PersonDetails> {
        match self.run(FindPerson(email_normalized, now)).await {
            Some(file) => Some(fill(&self.store, file, now).await.unwrap()),
            None => None,
        }
    }

    /// All of everybody.
    pub(super) async fn sign_ups(&self) -> Vec<SignUpEntry> {
        let mut all = Vec::new();
        for person in self.run(ListPeopleAfter { id: 0, state: None, most: 1000 }).await {
            all.extend(self.file(&person.email).await.unwrap().sign_ups);
        }
        all
    }

    /// Confirms what was last signed up for an address.
    async fn confirm_last(&self, address: &str, now: Timestamp) -> Confirmation {
        let last = of_entry(self.file(address).await.unwrap().sign_ups.last().unwrap());
        self.confirm_at(last, now).await
    }

    pub(super) async fn join(&self, address: &str) -> ReferralCode {
        let code = self.sign_up(address).await.code;
        assert!(matches!(self.confirm_last(address, NOW).await, Confirmation::Joined(_)), "{address}");
        code
    }

    pub(super) async fn leave(&self, address: &str) -> Leaving {
        self.run(leaving(address, after(HOUR))).await
    }

    pub(super) async fn erase(&self, address: &str) -> Option<Erased> {
        let erased = self.store.run(erasing(address, None, after(HOUR))).await;
        erased.unwrap().map(|erased| erased.unwrap())
    }

    async fn roll_up(&self, now: Timestamp) {
        while self.run(RollUp { now }).await {}
    }

    async fn demand(&self) -> Vec<(String, String, u64)> {
        let cell = |cell: Demand| (cell.category, cell.us_state, cell.members);
        self.run(ListDemand).await.into_iter().map(cell).collect()
    }
}

pub(super) async fn whoever_leaves_is_no_member_and_can_come_back(fixture: &Fixture) {
    assert_eq!(fixture.leave("ana@example.com").await, Leaving::Unknown);
    let code = fixture.join("ana@example.com").await;
    fixture.sign_up("ben@example.com").await;
    assert_eq!(fixture.leave("ben@example.com").await, Leaving::NotAMember(PersonState::Invited));
    fixture.sign_up("ana@example.com").await;
    assert_eq!(fixture.leave("ANA@example.com").await, Leaving::Left { withdrawn: 1 });
    assert_eq!(fixture.members().await, 0);
    assert_eq!(fixture.leave("ana@example.com").await, Leaving::NotAMember(PersonState::Left), "twice is once");
    assert_eq!(fixture.members().await, 0);
    assert_eq!(
        fixture.confirm_last("ana@example.com", after(HOUR)).await,
        Confirmation::Expired,
        "what waited is withdrawn"
    );
    assert_eq!(fixture.send_due(after(HOUR)).await, ["ben@example.com"], "nor is it mailed");
    let left = fixture.file("ana@example.com").await.unwrap().person;
    assert_eq!((left.state, left.left_at, left.code), (PersonState::Left, Some(after(HOUR)), code));

    fixture.sign_up_at("ana@example.com", after(DAY)).await;
    assert!(matches!(fixture.confirm_last("ana@example.com", after(DAY)).await, Confirmation::Joined(_)));
    assert_eq!((fixture.members().await, fixture.kept_code("ana@example.com").await), (1, Some(code)));
}

pub(super) async fn whoever_comes_back_keeps_what_they_do_not_answer_anew(fixture: &Fixture) {
    let set = CategorySet::from_slugs;
    let sign_up = async |answers: Answers, now| {
        let new = NewSignUp { answers, ..fixture.new_sign_up("ana@example.com") };
        fixture.store.sign_up(new, now).await.unwrap();
    };
    let given = async || {
        let person = fixture.file("ana@example.com").await.unwrap().person;
        (person.answers, person.answered_at)
    };
    sign_up(answers(Some(UsState::CA), Some(set("travel,internet")), Some("Two cars")), NOW).await;
    fixture.confirm_last("ana@example.com", NOW).await;
    fixture.leave("ana@example.com").await;
    // An empty field of the form, and one that was not sent.
    sign_up(answers(None, Some(set("")), Some("New")), after(DAY)).await;
    let last = of_entry(fixture.file("ana@example.com").await.unwrap().sign_ups.last().unwrap());
    let shown = fixture.run(FindSignUp(last, after(DAY))).await.unwrap().answers;
    assert_eq!(shown, answers(Some(UsState::CA), Some(set("travel,internet")), Some("New")), "what is asked about");
    fixture.confirm_last("ana@example.com", after(DAY)).await;
    assert_eq!(given().await, (shown, None));
    fixture.roll_up(after(2 * DAY)).await;
    let counted = fixture.demand().await;
    assert!(counted.contains(&("travel".to_owned(), "CA".to_owned(), 1)), "{counted:?}");
    // What a member answers anew is theirs alone to change: nothing comes from before.
    sign_up(answers(None, None, None), after(3 * DAY)).await;
    assert_eq!(fixture.confirm_last("ana@example.com", after(3 * DAY)).await, Confirmation::AlreadyMember);
    let last = fixture.file("ana@example.com").await.unwrap().sign_ups.last().unwrap().clone();
    assert_eq!(
        (last.answers.us_state, last.answers.chosen()),
        (None, set("")),
        "what a member is signed up with again stays as it came"
    );
}

pub(super) async fn whoever_is_erased_leaves_a_tombstone(fixture: &Fixture) {
    assert_eq!(fixture.erase("ana@example.com").await, None);
    let referrer = fixture.join("ron@example.com").await;
    let code = fixture.refer("ana@example.com", referrer).await.code;
    fixture.confirm_last("ana@example.com", NOW).await;
    fixture.refer("ben@example.com", code).await;
    fixture.sign_up("ana@example.com").await;
    let erased = Erased {
        was_member: true,
        code,
        waived_cents: 0,
        sign_ups: 2,
        mails: 1,
        mailbox_is_shared: false,
        is_whole: true,
    };
    assert_eq!(fixture.erase("Ana@example.com").await, Some(erased));
    assert_eq!(fixture.erase("ana@example.com").await, None, "nobody has that address anymore");
    assert_eq!((fixture.members().await, fixture.kept_code("ana@example.com").await), (1, None));
    assert!(fixture.file("ana@example.com").await.is_none());
    assert_eq!(
        fixture.run(ListPeopleAfter { id: 0, state: None, most: 10 }).await.len(),
        2,
        "nor is a tombstone listed"
    );
    let tombstone = format!("erased:{}", marks("ana@example.com").address);
    let kept = fixture.file_at(tombstone, NOW).await.unwrap();
    assert_eq!((kept.person.email.as_str(), kept.person.code, kept.person.referrer), ("", code, Some(referrer)));
    let day = after(HOUR).start_of_day();
    assert_eq!((kept.person.joined_at, kept.person.erased_at), (Some(Timestamp::from_millis(0)), Some(day)));
    assert_eq!((kept.person.account, kept.sign_ups.len()), (None, 0));
    // Whoever they referred keeps that.
    assert_eq!(fixture.file("ben@example.com").await.unwrap().sign_ups[0].referrer, Some(code));
    // The code is nobody else's.
    let other = NamedPerson { code, ..fixture.person("cleo@example.com") };
    assert_eq!(
        done(fixture.store.run(CreateCode { person: other, now: NOW })).await,
        Err(NotDone::Refused(Refused::CodeTaken))
    );
}

pub(super) async fn whoever_was_erased_and_comes_back_is_known_again(fixture: &Fixture) {
    let (one, other) = (fixture.join("ron@example.com").await, fixture.join("eve@example.com").await);
    let code = fixture.refer("ana@example.com", one).await.code;
    fixture.confirm_last("ana@example.com", NOW).await;
    fixture.erase("ana@example.com").await.unwrap();
    let new = || NewSignUp { ref_code: Some(other), ..fixture.new_sign_up("ana@example.com") };
    assert_eq!(fixture.store.sign_up(new(), after(DAY)).await, Err(NotDone::Refused(Refused::CodeTaken)));
    let revive = async |address: &str| {
        fixture.run(Revive { email: email(address), marks: marks(address), now: after(DAY) }).await
    };
    assert!(!revive("ben@example.com").await);
    assert!(revive("ana@example.com").await);
    assert!(!revive("ana@example.com").await, "once");
    assert_eq!(fixture.store.sign_up(new(), after(DAY)).await.unwrap().code, code, "the same code");
    let recipients = fixture.send_due(after(DAY)).await;
    assert!(!recipients.contains(&"ana@example.com".to_owned()), "silence was promised for 30 days");
    fixture.store.sign_up(new(), after(SUPPRESSED_FOR + DAY)).await.unwrap();
    assert!(fixture.send_due(after(SUPPRESSED_FOR + DAY)).await.contains(&"ana@example.com".to_owned()));
    fixture.confirm_last("ana@example.com", after(SUPPRESSED_FOR + DAY)).await;
    let back = fixture.file("ana@example.com").await.unwrap().person;
    assert_eq!((back.state, back.referrer), (PersonState::Member, Some(one)), "nobody earns a second credit");
    fixture.roll_up(after(60 * DAY)).await;
    assert_eq!(fixture.run(ListTopReferrers(10)).await, vec![(one, 1)]);
}

pub(super) async fn a_shared_mailbox_outlives_one_of_its_addresses(fixture: &Fixture) {
    fixture.join("ana@example.com").await;
    fixture.join("ana+x@example.com").await;
    fixture.sign_up("ana+y@example.com").await;
    assert!(fixture.erase("ana+x@example.com").await.unwrap().mailbox_is_shared);
    assert_eq!(fixture.send_due(after(DAY)).await, ["ana+y@example.com"], "the others are not silenced");
    // Somebody who only was signed up is nobody whom silence could harm.
    assert!(!fixture.erase("ana@example.com").await.unwrap().mailbox_is_shared);
    fixture.sign_up_at("ana+y@example.com", after(DAY)).await;
    assert!(fixture.send_due(after(2 * DAY)).await.is_empty());
    assert!(!fixture.erase("ana+y@example.com").await.unwrap().mailbox_is_shared);
}

pub(super) async fn the_operator_lifts_whatever_keeps_mail_from_somebody(fixture: &Fixture) {
    let lift = async || {
        fixture.run(Unsuppress { email_normalized: email("ana@example.com").normalized(), account: account(3) }).await
    };
    assert_eq!(lift().await, None);
    fixture.sign_up("ana@example.com").await;
    assert_eq!(lift().await, Some(Lifted::default()));
    fixture.run(one_click(linked(1), NOW)).await;
    assert_eq!(lift().await, Some(Lifted { suppression: true, ..Lifted::default() }));
    fixture.sign_up_at("ana@example.com", after(DAY)).await;
    let mail = fixture.lease("w", after(DAY)).await.remove(0);
    fixture.settle(&mail, MailOutcome::Rejected, after(DAY)).await;
    assert_eq!(lift().await, Some(Lifted { undeliverable: true, ..Lifted::default() }));
    fixture.sign_up_at("ana@example.com", after(2 * DAY)).await;
    assert_eq!(fixture.send_due(after(2 * DAY)).await, ["ana@example.com"]);
    // Of somebody who was erased, by what stayed of them; the audit log gets no name for it.
    fixture.erase("ana@example.com").await.unwrap();
    assert_eq!(lift().await, None);
    let tombstone = format!("erased:{}", marks("ana@example.com").address);
    let lifted = fixture.run(Unsuppress { email_normalized: tombstone.clone(), account: account(4) }).await;
    assert_eq!(lifted, Some(Lifted { suppression: true, ..Lifted::default() }));
    assert_eq!(fixture.file_at(tombstone, NOW).await.unwrap().person.account, None);
}

pub(super) async fn people_are_found_by_what_one_has_of_them(fixture: &Fixture) {
    let code = fixture.join("ana@example.com").await;
    fixture.join("anabel@example.com").await;
    fixture.sign_up("ben_ana@example.com").await;
    let found = async |text: &str| {
        let found = fixture.run(FindPeople(text.to_owned(), 10)).await;
        found.into_iter().map(|person| person.email).collect::<Vec<_>>()
    };
    assert_eq!(found("ana").await, ["ana@example.com", "anabel@example.com"]);
    assert_eq!(found("ana@").await, ["ana@example.com"]);
    assert_eq!(found(code.as_str()).await, ["ana@example.com"]);
    assert_eq!(found("%").await, Vec::<String>::new());
    fixture.leave("ana@example.com").await;
    assert_eq!(found(account_of("ana@example.com").as_str()).await, ["ana@example.com"]);
    let of_key = fixture
        .run(ListSignUpsOf {
            whose: SignUpsOf::Key(fixture.partner.key),
            before: SignUpId(i64::MAX),
            now: NOW,
            most: 10,
        })
        .await;
    let of_key: Vec<_> = of_key.iter().map(|sign_up| (sign_up.email.as_str(), sign_up.state)).collect();
    let (confirmed, pending) = (SignUpState::Confirmed, SignUpState::Pending);
    let expected =
        [("ben_ana@example.com", pending), ("anabel@example.com", confirmed), ("ana@example.com", confirmed)];
    assert_eq!(of_key, expected);
    fixture.by_form("formal@example.com", NOW).await;
    let of = async |whose, before| {
        let found = fixture.run(ListSignUpsOf { whose, before: SignUpId(before), now: NOW, most: 2 }).await;
        found.into_iter().map(|sign_up| sign_up.email).collect::<Vec<_>>()
    };
    assert_eq!(of(SignUpsOf::Form, i64::MAX).await, ["formal@example.com"]);
    let acme = SignUpsOf::Partner(fixture.partner.id);
    assert_eq!(of(acme, i64::MAX).await, ["ben_ana@example.com", "anabel@example.com"]);
    assert_eq!(of(acme, 2).await, ["ana@example.com"], "page by page");
    assert_eq!(of(SignUpsOf::Partner(PartnerId(99)), i64::MAX).await, Vec::<String>::new());
    let page = fixture.run(ListPeopleAfter { id: 0, state: Some(PersonState::Member), most: 10 }).await;
    assert_eq!(page.iter().map(|person| person.email.as_str()).collect::<Vec<_>>(), ["anabel@example.com"]);
}

pub(super) async fn figures_follow_what_happened(fixture: &Fixture) {
    let mut wants = CategorySet::default();
    wants.insert(Category::Internet);
    wants.insert(Category::Travel);
    let ron = fixture.join("ron@example.com").await;
    for (n, us_state) in [(1, Some(UsState::CA)), (2, Some(UsState::CA)), (3, None)] {
        let address = format!("p{n}@example.com");
        let new = NewSignUp {
            answers: answers(us_state, Some(wants), None),
            ref_code: Some(ron),
            ..fixture.new_sign_up(&address)
        };
        fixture.store.sign_up(new, NOW).await.unwrap();
    }
    let form = NewSignUp {
        partner: None,
        answers: answers(None, Some(wants), None),
        ..fixture.new_sign_up("fay@example.com")
    };
    fixture.store.sign_up(form, NOW).await.unwrap();
    fixture.send_due(NOW).await;
    for address in ["p1@example.com", "p2@example.com", "fay@example.com"] {
        assert!(matches!(fixture.confirm_last(address, after(DAY)).await, Confirmation::Joined(_)));
    }
    let last = of_entry(&fixture.file("p3@example.com").await.unwrap().sign_ups[0]);
    fixture.run(declining(last, None, after(DAY))).await;
    // What is not settled yet is counted all the same, and counted once afterwards.
    for now in [NOW, after(DAY), after(2 * DAY)] {
        fixture.roll_up(now).await;
        let sources = fixture.run(ListSources(0)).await;
        let (acme, form) = (&sources[1], &sources[0]);
        assert_eq!((acme.0.as_str(), form.0.as_str()), ("Acme", ""));
        let funnel = Funnel { signed_up: 4, mailed: 3, confirmed: 3, declined: 1, lapsed: 0, left: 0 };
        assert_eq!(acme.1, funnel, "{now}");
        assert_eq!(form.1, Funnel { signed_up: 1, mailed: 1, confirmed: 1, ..Funnel::default() });
        let key = fixture.run(ListKeys).await[0].1;
        assert_eq!(key, KeyFigures { signed_up: 4, confirmed: 3, declined: 1 });
    }
    let cell = |category: &str, us_state: &str, members| (category.to_owned(), us_state.to_owned(), members);
    let demand = [
        cell("", "", 2),
        cell("", "CA", 2),
        cell("internet", "", 1),
        cell("internet", "CA", 2),
        cell("travel", "", 1),
        cell("travel", "CA", 2),
    ];
    assert_eq!(fixture.demand().await, demand);
    assert_eq!(fixture.run(ListTopReferrers(10)).await, vec![(ron, 2)]);
    assert_eq!(fixture.run(CountReferredMembers).await, 2);
    let days = fixture.run(ListSourceDays(1 + NOW.as_millis() / 86_400_000)).await;
    assert!(days.iter().all(|day| day.funnel.signed_up == 0) && !days.is_empty(), "{days:?}");
    // Whoever goes is taken out of them, with the very answers that they brought.
    fixture.leave("p1@example.com").await;
    fixture.erase("p2@example.com").await.unwrap();
    fixture.roll_up(after(3 * DAY)).await;
    assert_eq!(fixture.demand().await, [cell("", "", 2), cell("internet", "", 1), cell("travel", "", 1)]);
    assert_eq!(fixture.run(ListTopReferrers(10)).await, vec![]);
    assert_eq!(fixture.run(CountReferredMembers).await, 0);
    assert_eq!(fixture.run(ListSources(0)).await[1].1.left, 2);
}

pub(super) async fn what_nobody_decides_lapses_in_the_figures(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    fixture.sign_up("ben@example.com").await;
    fixture.run(Retain { times: TIMES, now: after(PENDING_FOR) }).await;
    assert_eq!(fixture.run(ListSources(0)).await[0].1.lapsed, 2);
    // Signed up again before anybody looked.
    fixture.sign_up_at("ana@example.com", after(2 * PENDING_FOR)).await;
    fixture.sign_up_at("ana@example.com", after(3 * PENDING_FOR + DAY)).await;
    assert_eq!(fixture.run(ListSources(0)).await[0].1.lapsed, 3);
}

pub(super) async fn nodes_that_roll_up_at_once_count_once(fixture: &Fixture) {
    for n in 0..40 {
        fixture.join(&format!("p{n}@example.com")).await;
    }
    let mut nodes = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = fixture.store.clone();
        nodes.spawn(async move { while store.run(RollUp { now: after(DAY) }).await.unwrap() {} });
    }
    nodes.join_all().await;
    fixture.roll_up(after(DAY)).await;
    let expected = Funnel { signed_up: 40, confirmed: 40, ..Funnel::default() };
    assert_eq!(fixture.run(ListSources(0)).await, vec![("Acme".to_owned(), expected)]);
}

pub(super) async fn every_change_is_written_down_with_who_did_it(fixture: &Fixture) {
    let act = |command: &'static str, about: &str| Act {
        who: "kim".to_owned(),
        command,
        about: about.to_owned(),
        at: after(HOUR),
        change: None,
    };
    let audited = |command, about: &str| fixture.store.audited(act(command, about));
    let leave = |of: &str| leaving(of, NOW);
    fixture.join("ana@example.com").await;
    audited("signups resume", "").run(PauseSignUps(false)).await.unwrap();
    audited("signups pause", "").run(PauseSignUps(true)).await.unwrap();
    for _ in 0..2 {
        audited("keys revoke", "key 1").run(RevokeKey(fixture.partner.key, NOW)).await.unwrap();
    }
    audited("members leave", "").run(leave("nobody@example.com")).await.unwrap();
    audited("members leave", "").run(leave("ana@example.com")).await.unwrap();
    audited("members erase", "")
        .run(Erase {
            email_normalized: email("ana@example.com").normalized(),
            marks: marks("ana@example.com"),
            account: account(2),
            waiver: None,
            now: NOW,
        })
        .await
        .unwrap();
    let entries = fixture.run(ListAuditAfter { after: AuditPlace::start_of(NOW), until: after(DAY), most: 10 }).await;
    let told: Vec<_> = entries.iter().map(|entry| (entry.command.as_str(), entry.about.clone())).collect();
    let person = format!("account {}", account_of("ana@example.com").as_str());
    let expected = [
        ("signups pause", String::new()),
        ("keys revoke", "key 1".to_owned()),
        ("members leave", person.clone()),
        ("members erase", person),
    ];
    assert_eq!(told, expected, "what changed nothing leaves no row");
    assert!(entries.iter().all(|entry| entry.who == "kim" && entry.at == after(HOUR)));
    assert_eq!(
        fixture.run(ListAuditAfter { after: AuditPlace::start_of(after(DAY)), until: NEVER, most: 10 }).await,
        vec![]
    );
    assert_eq!(
        fixture.run(ListAuditAfter { after: AuditPlace::start_of(NOW), until: after(HOUR), most: 10 }).await,
        vec![],
        "before that, not at it"
    );
    assert_eq!(fixture.run(ListAuditAfter { after: entries[2].place(), until: NEVER, most: 10 }).await, entries[3..]);
    // What a member does on their own page is written down so often in a day, and no more.
    fixture.run(PauseSignUps(false)).await;
    fixture.by_form("ben@example.com", NOW).await;
    let ben = of_entry(&fixture.file("ben@example.com").await.unwrap().sign_ups[0]);
    for (n, rows) in [(50, 20), (1, 21)] {
        for _ in 0..n {
            let now = if n == 1 { after(2 * DAY) } else { after(DAY) };
            fixture.run(one_click(ben, now)).await;
            let act = Act { who: BY_THEMSELVES.to_owned(), at: now, ..act("own page: mail again", "") };
            let lifted = {
                let unit = Unsuppress { email_normalized: email("ben@example.com").normalized(), account: account(3) };
                fixture.store.audited(act).run(unit).await
            };
            assert!(lifted.unwrap().is_some_and(|lifted| lifted.suppression), "it is done each time");
        }
        assert_eq!(
            fixture
                .run(ListAuditAfter { after: AuditPlace::start_of(after(DAY)), until: NEVER, most: 100 })
                .await
                .len(),
            rows
        );
    }
}

/// Whatever happens in whatever order: the count, the figures and the list of members agree.
pub(super) async fn figures_and_members_agree_whatever_happens(fixture: &Fixture) {
    let mut pick = picker(7);
    let mut wants = CategorySet::default();
    wants.insert(Category::Groceries);
    for step in 0..160_u64 {
        let (address, now) = (format!("p{}@example.com", pick(6)), NOW.plus(HOUR * u32::try_from(step).unwrap()));
        match pick(6) {
            0 | 1 => {
                let us_state = [None, Some(UsState::NY)][pick(2)];
                let new = NewSignUp { answers: answers(us_state, Some(wants), None), ..fixture.new_sign_up(&address) };
                match fixture.store.sign_up(new.clone(), now).await {
                    Err(NotDone::Refused(Refused::CodeTaken)) => {
                        assert!(fixture.run(Revive { email: email(&address), marks: marks(&address), now }).await);
                        fixture.store.sign_up(new, now).await.unwrap();
                    }
                    done => drop(done.unwrap()),
                }
            }
            2 | 3 => {
                if let Some(file) = fixture.file(&address).await
                    && let Some(last) = file.sign_ups.last()
                {
                    fixture.confirm_at(of_entry(last), now).await;
                }
            }
            4 => {
                fixture.leave(&address).await;
            }
            _ => {
                fixture.erase(&address).await;
            }
        }
        if step % 20 == 0 {
            fixture.roll_up(now).await;
        }
    }
    fixture.roll_up(after(30 * DAY)).await;
    let members = fixture.run(ListPeopleAfter { id: 0, state: Some(PersonState::Member), most: 100 }).await;
    assert_eq!(members.len() as u64, fixture.members().await);
    let all: u64 = fixture.demand().await.iter().filter(|cell| cell.0.is_empty()).map(|cell| cell.2).sum();
    let groceries: u64 = fixture.demand().await.iter().filter(|cell| cell.0 == "groceries").map(|cell| cell.2).sum();
    assert_eq!((all, groceries), (fixture.members().await, fixture.members().await));
    let funnel = fixture.run(ListSources(0)).await[0].1;
    assert_eq!(funnel.confirmed - funnel.left, fixture.members().await, "{funnel:?}");
    let in_new_york = members.iter().filter(|person| person.answers.us_state.is_some()).count() as u64;
    let demand = fixture.demand().await;
    assert_eq!(demand.iter().find(|cell| cell.0.is_empty() && cell.1 == "NY").map_or(0, |cell| cell.2), in_new_york);
}
