//! What every store makes of people who come and go, held to a naive model; and of those whose time is up (retention).

use unionhall::domain::email::disposable::DisposableDomains;
use unionhall::domain::secret::mark::tombstone;
use unionhall::domain::sign_in::SignInRef;
use unionhall::domain::sign_up::Channel;
use unionhall::domain::union::notice::Notices;
use unionhall::mail::Delivery;
use unionhall::membership::{Application, Membership, SignUpContext};
use unionhall::people::retention::Walk;

use super::*;
use unionhall::people::choices::EndSessions;
use unionhall::people::sign_in::FindSignIn;

fn secret() -> Secret {
    Secret::new(&"s".repeat(32)).unwrap()
}

/// The rooms above a store, as the service puts them together.
struct Rooms {
    membership: Membership,
    people: People,
    tokens: TokenMaker,
    marker: AddressMarker,
    _folder: tempfile::TempDir,
}

impl Rooms {
    fn above(fixture: &Fixture) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let notice = Notices::of("Consumer Union", "https://union.example");
        let (store, disposable) = (Store::clone(&fixture.store), DisposableDomains::default());
        Self {
            membership: Membership::new(store.clone(), &secret(), Delivery::Held, Arc::default(), disposable, notice),
            people: People::new(store, AddressMarker::new(&secret()), ErasureLog::beside(folder.path())),
            tokens: TokenMaker::new(&secret()),
            marker: AddressMarker::new(&secret()),
            _folder: folder,
        }
    }

    async fn sign_up(
        &self,
        fixture: &Fixture,
        email: EmailAddress,
        ref_code: Option<ReferralCode>,
        now: Timestamp,
    ) -> SignedUp {
        let application = Application { email, answers: Default::default(), ref_code };
        let (channel, lane) = (Channel::Rest, Lane::of(b"x"));
        let context = SignUpContext { channel, client: None, lane, proven: false, language: None, request: None };
        self.membership.sign_up(&application, Some(&fixture.partner), context, now).await.unwrap()
    }
}

/// Somebody as the model knows them: by an address, of which two may share a mailbox.
#[derive(Debug, Clone, Default)]
struct Modelled {
    is_member: bool,
    has_joined: bool,
    is_erased: bool,
    /// Who is credited for them, as an address.
    credited_to: Option<usize>,
    /// The referrer of the sign-up that waits, if one waits.
    pending: Option<Option<usize>>,
    code: Option<ReferralCode>,
}

const ADDRESSES: [&str; 6] = ["a", "a+x", "b", "b+x", "c", "d"];

fn mailbox(who: usize) -> usize {
    if who < 4 { who / 2 } else { who }
}

/// Whatever people do in whatever order, the count, codes and credits are those of a model that has no tables.
pub(super) async fn whoever_comes_and_goes_is_counted_as_a_naive_model_counts(fixture: &Fixture) {
    let rooms = Rooms::above(fixture);
    for case in 0..40_u64 {
        let before = fixture.members().await;
        let mut pick = picker(case * 7919 + 17);
        let emails = ADDRESSES.map(|name| {
            // The case goes before the tag, so that every case has people of its own.
            let (name, tag) =
                name.split_once('+').map_or((name, String::new()), |(name, tag)| (name, format!("+{tag}")));
            EmailAddress::parse(&format!("{name}{case}{tag}@example.com")).unwrap()
        });
        let mut people: [Modelled; 6] = Default::default();
        let mut told = Vec::new();
        for step in 0..30_u32 {
            let now = NOW.plus(MINUTE * step);
            let who = pick(6);
            match pick(7) {
                0..=2 => {
                    let referrer = Some(pick(6)).filter(|other| people[*other].code.is_some());
                    told.push(format!("{} signs up, referred by {referrer:?}", ADDRESSES[who]));
                    let code = referrer.and_then(|other| people[other].code);
                    let done = rooms.sign_up(fixture, emails[who].clone(), code, now).await;
                    let person = &mut people[who];
                    assert_eq!(person.code.unwrap_or(done.code), done.code, "case {case}: {told:#?}");
                    person.code = Some(done.code);
                    person.is_erased = false;
                    // The same partner again merges, and an attribution is lost by no repeat.
                    let named = referrer.filter(|other| mailbox(*other) != mailbox(who));
                    assert_eq!(done.attributed, named.is_some(), "case {case}: {told:#?}");
                    person.pending = Some(named.or(person.pending.flatten()));
                }
                3 | 4 => {
                    let Some(file) = fixture.file_at(emails[who].normalized(), now).await else {
                        continue;
                    };
                    let Some(last) = file.sign_ups.last() else { continue };
                    told.push(format!("{} confirms", ADDRESSES[who]));
                    let token = rooms.tokens.token(Purpose::Confirm, of_entry(last));
                    let done = rooms.membership.confirm(&token, SeenPage::default(), now).await.unwrap();
                    let Some(referrer) = people[who].pending.take() else {
                        assert!(!matches!(done, Confirmation::Joined(_)), "case {case}: {told:#?}");
                        continue;
                    };
                    if people[who].is_member {
                        assert_eq!(done, Confirmation::AlreadyMember, "case {case}: {told:#?}");
                        continue;
                    }
                    assert!(matches!(done, Confirmation::Joined(_)), "case {case}: {told:#?}");
                    let twins =
                        (0..6).any(|other| other != who && mailbox(other) == mailbox(who) && people[other].has_joined);
                    let earns = |other: &usize| {
                        let other = &people[*other];
                        !other.is_erased && (other.is_member || !other.has_joined)
                    };
                    if !people[who].has_joined {
                        people[who].credited_to = referrer.filter(|_| !twins).filter(earns);
                    }
                    people[who].is_member = true;
                    people[who].has_joined = true;
                }
                5 => {
                    told.push(format!("{} leaves", ADDRESSES[who]));
                    rooms.people.leave(&emails[who], now).await.unwrap();
                    if std::mem::take(&mut people[who].is_member) {
                        people[who].pending = None;
                    }
                }
                _ => {
                    told.push(format!("{} is erased", ADDRESSES[who]));
                    let known = people[who].code.is_some() && !people[who].is_erased;
                    let erased = rooms.people.erase(&emails[who], None, now).await.unwrap();
                    assert_eq!(erased.is_some(), known, "case {case}: {told:#?}");
                    people[who].is_member = false;
                    people[who].pending = None;
                    people[who].is_erased = known || people[who].is_erased;
                }
            }
            let members = people.iter().filter(|person| person.is_member).count() as u64;
            assert_eq!(fixture.members().await - before, members, "case {case}: {told:#?}");
        }
        // At the end, what each of them is credited for.
        let mut credits = BTreeMap::<usize, u64>::new();
        for referrer in people.iter().filter(|person| person.is_member).filter_map(|person| person.credited_to) {
            *credits.entry(referrer).or_default() += 1;
        }
        for (who, person) in people.iter().enumerate().filter(|(_, person)| person.code.is_some()) {
            let key = if person.is_erased {
                tombstone(&rooms.marker.marks(&emails[who]).address)
            } else {
                emails[who].normalized()
            };
            let file = fixture.file_at(key, NOW).await.unwrap();
            let state = match (person.is_member, person.has_joined) {
                (true, _) => PersonState::Member,
                (false, true) => PersonState::Left,
                (false, false) => PersonState::Invited,
            };
            assert_eq!(file.person.state, state, "case {case}, {}: {told:#?}", ADDRESSES[who]);
            assert_eq!(Some(file.person.code), person.code);
            let earned = credits.get(&who).copied().unwrap_or(0);
            assert_eq!(file.referrals.members, earned, "case {case}, {}: {told:#?}", ADDRESSES[who]);
        }
    }
}

fn day(days: u32) -> Timestamp {
    after(DAY * days)
}

/// Walks over everybody, as retention does.
pub(super) async fn walk(fixture: &Fixture, now: Timestamp) {
    let mut walk = Walk::new(&secret(), TIMES);
    while !fixture.run(Retain { times: TIMES, now }).await.is_nothing() {}
    fixture.roll(now).await;
    while walk.step(&fixture.store, now).await.unwrap() {}
}

impl Fixture {
    async fn roll(&self, now: Timestamp) {
        while self.run(RollUp { now }).await {}
    }

    async fn state_of(&self, address: &str) -> Option<PersonState> {
        let email_normalized = email(address).normalized();
        self.file_at(email_normalized, NOW).await.map(|file| file.person.state)
    }
}

pub(super) async fn whoever_never_confirmed_is_forgotten_in_time_and_keeps_their_code(fixture: &Fixture) {
    let rooms = Rooms::above(fixture);
    let code = fixture.sign_up("never@example.com").await.code;
    done(fixture.store.run(CreateCode { person: fixture.person("link@example.com"), now: NOW })).await.unwrap();
    fixture.sign_up("member@example.com").await;
    fixture.confirm(2).await;
    let referred = fixture.refer("friend@example.com", code).await;
    assert!(referred.attributed);
    fixture.confirm(3).await;
    walk(fixture, day(89)).await;
    assert_eq!(fixture.state_of("never@example.com").await, Some(PersonState::Invited));
    // Whoever was heard of since is kept.
    fixture.store.sign_up(fixture.new_sign_up("link@example.com"), day(50)).await.unwrap();
    walk(fixture, day(91)).await;
    assert_eq!(fixture.state_of("never@example.com").await, None, "their address is gone");
    assert_eq!(fixture.state_of("link@example.com").await, Some(PersonState::Invited));
    walk(fixture, day(141)).await;
    assert_eq!(fixture.state_of("link@example.com").await, None);
    assert_eq!(fixture.state_of("member@example.com").await, Some(PersonState::Member), "members stay");
    assert_eq!(fixture.members().await, 2);
    // Their code is known, and their own again.
    let later = fixture.refer("other@example.com", code).await;
    assert!(later.attributed, "a link that they passed on leads to them");
    let back = rooms.sign_up(fixture, email("never@example.com"), None, day(200)).await;
    assert_eq!(back.code, code);
    let file = fixture.file_at("never@example.com".to_owned(), day(200)).await.unwrap();
    assert_eq!(file.referrals.members, 1, "and so is what they are credited for");
}

/// Whoever was erased was promised silence, under whichever spelling of the mailbox somebody asks for mail.
pub(super) async fn whoever_is_erased_is_left_in_peace_under_every_name(fixture: &Fixture) {
    let rooms = Rooms::above(fixture);
    for (n, plain) in (0..).zip(["kim@example.com", "lee@example.com", "moe@example.com"]) {
        let email = EmailAddress::parse(plain).unwrap();
        let tagged = plain.replace('@', "+x@");
        if n == 1 {
            // A stranger's sign-up of another spelling does not make it somebody's mailbox.
            fixture.sign_up(&tagged).await;
        }
        fixture.sign_up(plain).await;
        let file = fixture.file_at(email.normalized(), NOW).await.unwrap();
        fixture.confirm_at(of_entry(&file.sign_ups[0]), NOW).await;
        rooms.people.erase(&email, None, NOW.plus(MINUTE)).await.unwrap();
        if n == 2 {
            done(fixture.store.run(CreateCode { person: fixture.person(&tagged), now: NOW.plus(HOUR) })).await.unwrap();
        }
        fixture.store.sign_up(fixture.new_sign_up(&tagged), NOW.plus(HOUR)).await.unwrap();
    }
    let sent = fixture.send_due(NOW.plus(HOUR * 2)).await;
    assert!(sent.is_empty(), "{sent:?}");
    // To the day alone: by the moment the audit log would tell who a tombstone was.
    let key = tombstone(&rooms.marker.marks(&email("kim@example.com")).address);
    let tombstone = fixture.file_at(key, NOW).await.unwrap();
    assert_eq!(tombstone.person.erased_at.unwrap().as_millis() % 86_400_000, 0);
    // A member who shares the mailbox is not silenced with them.
    fixture.sign_up("zoe+a@example.com").await;
    fixture.sign_up("zoe@example.com").await;
    for address in ["zoe+a@example.com", "zoe@example.com"] {
        let file = fixture.file_at(address.to_owned(), NOW).await.unwrap();
        fixture.confirm_at(of_entry(&file.sign_ups[0]), NOW).await;
    }
    let zoe = email("zoe@example.com");
    let erased = rooms.people.erase(&zoe, None, NOW.plus(MINUTE)).await.unwrap().unwrap();
    assert!(erased.mailbox_is_shared);
    fixture.store.sign_up(fixture.new_sign_up("zoe+a@example.com"), NOW.plus(HOUR)).await.unwrap();
    assert_eq!(fixture.send_due(NOW.plus(HOUR * 2)).await, ["zoe+a@example.com"]);
}

/// A thousand posts of the form about somebody leave no more behind than the few that may wait.
pub(super) async fn posts_that_nobody_was_mailed_about_leave_nothing(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    fixture.confirm(1).await;
    for n in 0..30 {
        let post = NewSignUp { partner: None, ..fixture.new_sign_up("ana@example.com") };
        fixture.store.sign_up(post, NOW.plus(MINUTE * n)).await.unwrap();
    }
    let kept = async || fixture.file_at("ana@example.com".to_owned(), NOW).await.unwrap().sign_ups.len();
    assert_eq!(kept().await, 1 + POSTS_PENDING);
    // One that was mailed keeps its place: whoever holds its link can use it.
    assert_eq!(fixture.send_due(NOW.plus(HOUR)).await.len(), 1);
    for n in 0..30 {
        let post = NewSignUp { partner: None, ..fixture.new_sign_up("ana@example.com") };
        fixture.store.sign_up(post, NOW.plus(HOUR + MINUTE * n)).await.unwrap();
    }
    assert_eq!(kept().await, 1 + POSTS_PENDING);
    let file = fixture.file_at("ana@example.com".to_owned(), NOW).await.unwrap();
    assert_eq!(file.sign_ups.iter().filter(|entry| entry.evidence.mailed_at.is_some()).count(), 1);
}

/// Whoever asks to sign in and has not confirmed is reminded; whose source that came through is not judged by it.
pub(super) async fn a_reminder_goes_where_a_mail_left_and_counts(fixture: &Fixture) {
    let browser = "b".to_owned();
    let ask = async |address: &str, now| {
        let email = email(address);
        fixture.run(asking(&email, &browser, None, now)).await;
    };
    fixture.sign_up("ana@example.com").await;
    assert_eq!(fixture.send_due(NOW).await, ["ana@example.com"]);
    let reputation = async || {
        let sources = fixture.run(ListSourceStatuses(NOW)).await;
        sources.iter().map(|source| (source.source.clone(), source.reputation.mailed_today)).collect::<Vec<_>>()
    };
    let before = reputation().await;
    let later = NOW.plus(HOUR);
    ask("ana@example.com", later).await;
    ask("ana@example.com", later).await;
    let due = fixture.lease("w", later).await;
    assert_eq!(due.iter().map(|mail| (mail.kind, mail.is_reminder)).collect::<Vec<_>>(), [(MailKind::Confirm, true)]);
    fixture.run(Settle { mail: due[0].clone(), outcome: MailOutcome::Sent, now: later }).await;
    assert_eq!((before[0].1, reputation().await[0].1), (1, 2), "it counts against the budget");
    let asked = fixture.run(ListSources(0)).await[0].1.mailed;
    assert_eq!(asked, 1, "what the partner asked to be confirmed");
}

pub(super) async fn whoever_left_is_forgotten_a_year_later(fixture: &Fixture) {
    for address in ["ana@example.com", "ben@example.com"] {
        fixture.sign_up(address).await;
    }
    fixture.confirm(1).await;
    fixture.confirm(2).await;
    fixture.run(leaving("ana@example.com", day(1))).await;
    walk(fixture, day(365)).await;
    assert_eq!(fixture.state_of("ana@example.com").await, Some(PersonState::Left));
    // A stranger's sign-up holds it up only as long as it can be confirmed.
    fixture.store.sign_up(fixture.new_sign_up("ana@example.com"), day(358)).await.unwrap();
    walk(fixture, day(367)).await;
    assert_eq!((fixture.state_of("ana@example.com").await, fixture.members().await), (None, 1));
    assert_eq!(fixture.state_of("ben@example.com").await, Some(PersonState::Member));
    // They are known to have been a member: nobody is credited for them, or for another name of theirs.
    let ben = fixture.person("ben@example.com").code;
    fixture.refer("ana+new@example.com", ben).await;
    let file = fixture.file_at("ana+new@example.com".to_owned(), day(400)).await.unwrap();
    fixture.confirm_at(of_entry(&file.sign_ups[0]), NOW).await;
    let file = fixture.file_at("ana+new@example.com".to_owned(), day(400)).await.unwrap();
    assert_eq!((file.person.state, file.person.referrer, file.person.uncredited), (PersonState::Member, None, true));
}

/// Sign-ups that came to nothing, of people who stay; and what is remembered of mailboxes.
pub(super) async fn spent_sign_ups_and_mailboxes_are_forgotten(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    fixture.confirm(1).await;
    fixture.sign_up("ana@example.com").await;
    assert_eq!(fixture.run(one_click(linked(2), NOW)).await, Declining::Declined);
    fixture.sign_up("silent@example.com").await;
    fixture.run(one_click(linked(3), NOW)).await;
    let declined = async || fixture.run(ListKeys).await[0].1.declined;
    let kept = async |address: &str| {
        let file = fixture.file_at(address.to_owned(), NOW).await;
        file.map(|file| (file.sign_ups.len(), file.mailbox.suppressed_until.is_some()))
    };
    let before = declined().await;
    walk(fixture, day(29)).await;
    assert_eq!(kept("silent@example.com").await, Some((1, true)), "a silence lasts as long as was promised");
    walk(fixture, day(31)).await;
    assert_eq!(kept("silent@example.com").await, Some((1, false)), "the mailbox is forgotten once it is over");
    assert_eq!(kept("ana@example.com").await, Some((2, false)));
    walk(fixture, day(91)).await;
    assert_eq!(kept("ana@example.com").await, Some((1, false)), "what they joined by stays, the other goes");
    assert_eq!(kept("silent@example.com").await, None);
    assert_eq!(declined().await, before, "and a key's figure stays");
    assert_eq!(fixture.members().await, 1);
}

pub(super) async fn a_complaint_is_remembered_for_a_year(fixture: &Fixture) {
    use unionhall::domain::mail::report::{MailReport, ReportKind, ReportedMail};
    fixture.sign_up("ana@example.com").await;
    fixture.confirm(1).await;
    let report = MailReport { mail: ReportedMail::OfSignUp(linked(1)), kind: ReportKind::Complaint, once: None };
    fixture.run(NoteReport { report, now: NOW }).await;
    let complained = async || {
        let file = fixture.file_at("ana@example.com".to_owned(), NOW).await.unwrap();
        file.mailbox.complained_at.is_some()
    };
    walk(fixture, day(364)).await;
    assert!(complained().await);
    walk(fixture, day(366)).await;
    assert!(!complained().await);
}

/// Words once kept are never changed; a later start with the same words changes nothing.
pub(super) async fn notices_are_kept_once(fixture: &Fixture) {
    let notice = Notices::of("Consumer Union", "https://union.example").all()[0].clone();
    for now in [NOW, NOW.plus(HOUR)] {
        fixture.run(KeepNotice(notice.clone(), now)).await;
    }
    let new = NewSignUp {
        evidence: unionhall::domain::sign_up::Evidence { notice: Arc::clone(&notice.hash), ..evidence() },
        ..fixture.new_sign_up("ana@example.com")
    };
    fixture.store.sign_up(new, NOW).await.unwrap();
    let file = fixture.file_at("ana@example.com".to_owned(), NOW).await.unwrap();
    let kept = file.sign_ups[0].evidence.notice.as_ref().unwrap();
    assert_eq!((&*kept.hash, kept.words.as_deref()), (&*notice.hash, Some(&*notice.words)));
}

/// A database that was restored gives ids out again: the links of before are then about nobody.
pub(super) async fn an_old_link_is_not_about_whoever_has_its_id_now(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let (store, before) = (&fixture.store, linked_at(1, NOW.minus(HOUR)));
    assert_eq!(fixture.run(FindSignUp(before, NOW)).await, None);
    assert_eq!(store.confirm(before, SeenPage::default(), NOW).await, Ok(Confirmation::Unknown));
    assert_eq!(fixture.run(declining(before, None, NOW)).await, Declining::Unknown);
    assert!(!fixture.run(ChooseSilence { sign_up: before, silence: SilenceChange::default(), now: NOW }).await);
    assert_eq!(
        fixture.run(TakeBack { sign_up: before, seen: SeenPage::default(), now: NOW }).await,
        Confirmation::Unknown
    );
    let report = MailReport { mail: ReportedMail::OfSignUp(before), kind: ReportKind::Complaint, once: None };
    assert_eq!(fixture.run(NoteReport { report, now: NOW }).await, ReportOutcome::Unknown);
    assert!(matches!(fixture.confirm(1).await, Confirmation::Joined(_)), "nothing of it was done");
    assert_eq!(fixture.run(EnterByJoining(before, Nonce::from_random(&[7; 16]))).await, None);

    fixture.run(asking(&email("ana@example.com"), "browser", None, NOW)).await;
    let asked = fixture.run(TryCode("browser".to_owned(), NOW)).await[0];
    let before = SignInRef { created_at: NOW.minus(HOUR), ..asked };
    let session = || Nonce::from_random(&[7; 16]);
    assert_eq!(fixture.run(FindSignIn(before, NOW)).await, None);
    assert_eq!(fixture.run(FindCampaignOfSignIn(asked)).await, None, "of none");
    assert_eq!(fixture.run(UseSignIn { sign_in: before, by_code: false, session: session(), now: NOW }).await, None);
    assert_eq!(
        fixture.run(UseSignIn { sign_in: asked, by_code: false, session: session(), now: NOW }).await,
        Some(SignedIn { session: session(), campaign: None })
    );
}

/// Whoever joined is signed in by the sign-up that they confirmed, with the one session of theirs, for as long as they are a
/// member.
pub(super) async fn whoever_joined_is_signed_in_by_the_sign_up_that_they_confirmed(fixture: &Fixture) {
    let session = |byte| Nonce::from_random(&[byte; 16]);
    fixture.sign_up("ana@example.com").await;
    let sign_up = linked(1);
    assert_eq!(fixture.run(EnterByJoining(sign_up, session(1))).await, None, "it is not confirmed");
    assert!(matches!(fixture.confirm(1).await, Confirmation::Joined(_)));
    assert_eq!(fixture.run(EnterByJoining(sign_up, session(1))).await, Some(session(1)));
    assert_eq!(fixture.run(EnterByJoining(sign_up, session(2))).await, Some(session(1)), "a person has one");
    assert!(fixture.run(EndSessions(session(1), session(3))).await);
    assert_eq!(fixture.run(EnterByJoining(sign_up, session(2))).await, Some(session(3)));
    fixture.run(leaving("ana@example.com", NOW)).await;
    assert_eq!(fixture.run(EnterByJoining(sign_up, session(2))).await, None, "they left");
}
