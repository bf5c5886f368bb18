//! What every store must do, whatever it is made of. Times are passed in; nothing here waits.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::server::block_on;
use unionhall::domain::api_key::{ApiKey, KeyRecord};
use unionhall::domain::category::{Category, CategorySet};
use unionhall::domain::email::EmailAddress;
use unionhall::domain::referral::{CodeMaker, ReferralCode};
use unionhall::domain::secret::Secret;
use unionhall::domain::signup::{Confirmation, NamedPerson, NewSignUp, PENDING_FOR, Partner, SignUpId, SignedUp};
use unionhall::domain::text::Comments;
use unionhall::domain::time::Timestamp;
use unionhall::domain::us_state::UsState;
use unionhall::store::sqlite::SqliteStore;
use unionhall::store::{Claim, Store, StoreError};

/// Runs every case on every store, each on one of its own.
macro_rules! suite {
    ($($case:ident)*) => {
        mod sqlite {
            $(#[test]
            fn $case() {
                let folder = tempfile::tempdir().unwrap();
                let open = || super::SqliteStore::open(&folder.path().join("unionhall.db")).unwrap();
                super::block_on(async {
                    let house = super::House::new(std::sync::Arc::new(open())).await;
                    super::$case(&house).await;
                    house.store.close().await.unwrap();
                });
            })*
        }
    };
}

suite! {
    a_new_store_is_empty
    a_person_keeps_their_code
    a_taken_code_is_refused_and_the_next_accepted
    sign_ups_are_attributed_to_another_mailbox_only
    a_confirmed_sign_up_counts_once
    confirming_in_any_number_at_once_counts_once
    a_sign_up_expires
    a_partner_replaces_its_own_pending_sign_up
    two_partners_sign_ups_of_one_person_count_once
    paused_sign_ups_change_nothing
    first_requests_at_once_get_one_code
    texts_of_every_kind_are_kept
    keys_are_kept_listed_touched_and_revoked
    keys_rotate
    the_secret_is_claimed_once
    a_closed_store_says_so
}

/// A store with a partner, and what is needed to use it.
struct House {
    store: Arc<dyn Store>,
    codes: CodeMaker,
    partner: Partner,
}

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

impl House {
    async fn new(store: Arc<dyn Store>) -> Self {
        let record = key(1, "Acme");
        let partner = Partner { key: record.id, name: record.partner.clone() };
        store.issue_key(record).await.unwrap();
        Self { store, codes: CodeMaker::new(&Secret::new(&"s".repeat(32)).unwrap()), partner }
    }

    fn person(&self, email: &str) -> NamedPerson {
        let email = EmailAddress::parse(email).unwrap();
        NamedPerson { code: self.codes.code(&email, 0), email }
    }

    fn new_sign_up(&self, email: &str) -> NewSignUp {
        NewSignUp {
            person: self.person(email),
            us_state: None,
            categories: CategorySet::default(),
            comments: None,
            ref_code: None,
            partner: Some(self.partner.clone()),
        }
    }

    async fn sign_up(&self, email: &str) -> SignedUp {
        self.store.sign_up(self.new_sign_up(email), NOW).await.unwrap()
    }

    async fn refer(&self, email: &str, code: ReferralCode) -> SignedUp {
        let new = NewSignUp { ref_code: Some(code), ..self.new_sign_up(email) };
        self.store.sign_up(new, NOW).await.unwrap()
    }

    async fn confirm(&self, id: i64) -> Confirmation {
        self.store.confirm(SignUpId(id), NOW).await.unwrap()
    }

    async fn members(&self) -> u64 {
        self.store.member_count().await.unwrap()
    }

    async fn kept_code(&self, email: &str) -> Option<ReferralCode> {
        self.store.referral_code(&EmailAddress::parse(email).unwrap()).await.unwrap()
    }
}

fn key(n: u8, partner: &str) -> KeyRecord {
    let key = ApiKey::from_random(&[n; ApiKey::ENTROPY]);
    KeyRecord {
        id: key.id(),
        partner: partner.parse().unwrap(),
        hash: key.hash(),
        per_minute: None,
        created_at: NOW,
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    }
}

fn after(span: Duration) -> Timestamp {
    NOW.plus(span)
}

const HOUR: Duration = Duration::from_secs(3600);

async fn a_new_store_is_empty(house: &House) {
    assert_eq!(house.members().await, 0);
    assert_eq!(house.kept_code("ana@example.com").await, None);
    assert_eq!(house.confirm(1).await, Confirmation::Unknown);
    assert_eq!(house.confirm(i64::MAX).await, Confirmation::Unknown);
}

async fn a_person_keeps_their_code(house: &House) {
    let made = house.store.create_referral_code(house.person("ana@example.com"), NOW).await.unwrap();
    assert_eq!(house.kept_code("ANA@example.com").await, Some(made));
    // Whatever is computed later, what was kept wins.
    let other = NamedPerson { code: house.person("ben@example.com").code, ..house.person("Ana@Example.com") };
    assert_eq!(house.store.create_referral_code(other, NOW).await.unwrap(), made);
    assert_eq!(house.sign_up("ana@example.com").await.code, made);
    assert_ne!(house.sign_up("ana+tag@example.com").await.code, made, "another address, another code");
}

async fn a_taken_code_is_refused_and_the_next_accepted(house: &House) {
    let ana = house.sign_up("ana@example.com").await.code;
    let ben = || NamedPerson { code: ana, ..house.person("ben@example.com") };
    assert_eq!(house.store.create_referral_code(ben(), NOW).await, Err(StoreError::CodeTaken));
    let new = NewSignUp { person: ben(), ..house.new_sign_up("ben@example.com") };
    assert_eq!(house.store.sign_up(new, NOW).await, Err(StoreError::CodeTaken));
    assert_eq!(house.kept_code("ben@example.com").await, None, "a refusal leaves no trace");
    let next = NamedPerson { code: house.codes.code(&ben().email, 1), ..ben() };
    assert_eq!(house.store.create_referral_code(next.clone(), NOW).await.unwrap(), next.code);
    assert_eq!(house.kept_code("ben@example.com").await, Some(next.code));
}

async fn sign_ups_are_attributed_to_another_mailbox_only(house: &House) {
    let ana = house.sign_up("ana@gmail.com").await;
    assert!(!ana.attributed);
    assert!(house.refer("ben@example.com", ana.code).await.attributed);
    for own in ["ana@gmail.com", "a.n.a@gmail.com", "ana+x@googlemail.com"] {
        assert!(!house.refer(own, ana.code).await.attributed, "{own}");
    }
    let nobodys = house.person("nobody@example.com").code;
    assert!(!house.refer("cleo@example.com", nobodys).await.attributed);
    let invited = house.store.create_referral_code(house.person("dora@example.com"), NOW).await.unwrap();
    assert!(house.refer("cleo@example.com", invited).await.attributed, "whoever has a link can refer");
}

async fn a_confirmed_sign_up_counts_once(house: &House) {
    assert_eq!(house.sign_up("ana@example.com").await.joined_count, 0);
    assert_eq!(house.members().await, 0);
    assert_eq!(house.confirm(1).await, Confirmation::Joined);
    assert_eq!(house.confirm(1).await, Confirmation::AlreadyMember);
    assert_eq!(house.members().await, 1);
    let again = house.sign_up("ana@example.com").await;
    assert_eq!(again.joined_count, 1);
    assert_eq!(house.confirm(2).await, Confirmation::AlreadyMember, "a member's second sign-up adds nobody");
    assert_eq!(house.members().await, 1);
}

async fn confirming_in_any_number_at_once_counts_once(house: &House) {
    house.sign_up("ana@example.com").await;
    let mut clicks = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let store = Arc::clone(&house.store);
        clicks.spawn(async move { store.confirm(SignUpId(1), NOW).await.unwrap() });
    }
    let clicks = clicks.join_all().await;
    assert_eq!(clicks.iter().filter(|click| **click == Confirmation::Joined).count(), 1);
    assert_eq!(house.members().await, 1);
}

async fn a_sign_up_expires(house: &House) {
    house.sign_up("ana@example.com").await;
    house.sign_up("ben@example.com").await;
    let last = after(PENDING_FOR - Duration::from_millis(1));
    assert_eq!(house.store.confirm(SignUpId(1), last).await, Ok(Confirmation::Joined));
    assert_eq!(house.store.confirm(SignUpId(2), after(PENDING_FOR)).await, Ok(Confirmation::Expired));
    assert_eq!(house.confirm(2).await, Confirmation::Expired, "for good");
    let again = house.store.sign_up(house.new_sign_up("ben@example.com"), after(PENDING_FOR)).await.unwrap();
    assert_eq!(again.code, house.kept_code("ben@example.com").await.unwrap());
    assert_eq!(house.store.confirm(SignUpId(3), after(PENDING_FOR)).await, Ok(Confirmation::Joined));
    assert_eq!(house.members().await, 2);
}

async fn a_partner_replaces_its_own_pending_sign_up(house: &House) {
    house.sign_up("ana@example.com").await;
    let later = after(PENDING_FOR - HOUR);
    house.store.sign_up(house.new_sign_up("ANA@example.com"), later).await.unwrap();
    assert_eq!(house.confirm(2).await, Confirmation::Unknown, "no second sign-up was made");
    // The time to confirm runs from the newer one.
    assert_eq!(house.store.confirm(SignUpId(1), after(PENDING_FOR + HOUR)).await, Ok(Confirmation::Joined));
}

async fn two_partners_sign_ups_of_one_person_count_once(house: &House) {
    let other = key(2, "Other");
    let partner = Partner { key: other.id, name: other.partner.clone() };
    house.store.issue_key(other).await.unwrap();
    house.sign_up("ana@example.com").await;
    house
        .store
        .sign_up(NewSignUp { partner: Some(partner), ..house.new_sign_up("ana@example.com") }, NOW)
        .await
        .unwrap();
    assert_eq!(house.confirm(2).await, Confirmation::Joined);
    assert_eq!(house.confirm(1).await, Confirmation::AlreadyMember);
    assert_eq!(house.members().await, 1);
}

async fn paused_sign_ups_change_nothing(house: &House) {
    house.sign_up("ana@example.com").await;
    assert_eq!(house.store.pause_sign_ups(true).await, Ok(true));
    assert_eq!(house.store.pause_sign_ups(true).await, Ok(false));
    let ben = || house.new_sign_up("ben@example.com");
    assert_eq!(house.store.sign_up(ben(), NOW).await, Err(StoreError::Paused));
    assert_eq!(house.store.create_referral_code(ben().person, NOW).await, Err(StoreError::Paused));
    assert_eq!(house.store.referral_code(&ben().person.email).await, Err(StoreError::Paused));
    assert_eq!(house.members().await, 0, "the count stays readable");
    assert_eq!(house.confirm(1).await, Confirmation::Joined, "who was mailed may still confirm");
    assert_eq!(house.store.pause_sign_ups(false).await, Ok(true));
    assert_eq!(house.kept_code("ben@example.com").await, None);
    house.sign_up("ben@example.com").await;
}

async fn first_requests_at_once_get_one_code(house: &House) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..24 {
        let store = Arc::clone(&house.store);
        let (person, new) = (house.person("ana@example.com"), house.new_sign_up("ana@example.com"));
        tasks.spawn(async move {
            match n % 2 {
                0 => store.create_referral_code(person, NOW).await.unwrap(),
                _ => store.sign_up(new, NOW).await.unwrap().code,
            }
        });
    }
    let codes: HashSet<_> = tasks.join_all().await.into_iter().collect();
    assert_eq!(codes.len(), 1);
    assert_eq!(house.confirm(2).await, Confirmation::Unknown, "and one sign-up");
}

async fn texts_of_every_kind_are_kept(house: &House) {
    let comments = ["", "'; DROP TABLE people; --", "line\nbreak\ttab", "\u{1f600}\u{202e}é", &"🙂".repeat(1000)];
    for (n, text) in comments.into_iter().enumerate() {
        let mut categories = CategorySet::default();
        Category::ALL.iter().for_each(|category| categories.insert(*category));
        let new = NewSignUp {
            us_state: Some(UsState::DC),
            categories,
            comments: Some(Comments::new(text.into()).unwrap()),
            ..house.new_sign_up(&format!("o'neil{n}+%_@exämple.com"))
        };
        house.store.sign_up(new, NOW).await.unwrap();
    }
    let longest = format!("{}@example.com", "ü".repeat(308));
    let code = house.sign_up(&longest).await.code;
    assert_eq!(house.kept_code(&longest.to_uppercase()).await, Some(code));
}

async fn keys_are_kept_listed_touched_and_revoked(house: &House) {
    let store = &house.store;
    let full = KeyRecord {
        per_minute: Some(7),
        created_at: after(HOUR),
        expires_at: Some(after(HOUR * 2)),
        ..key(3, "Zoë's \"Assistant\"")
    };
    store.issue_key(full.clone()).await.unwrap();
    assert!(store.issue_key(full.clone()).await.is_err(), "an id is used once");
    assert_eq!(store.find_key(full.id).await, Ok(Some(full.clone())));
    assert_eq!(store.find_key(key(9, "x").id).await, Ok(None));
    assert_eq!(store.list_keys().await, Ok(vec![(key(1, "Acme"), 0), (full.clone(), 0)]));

    store.touch_key(full.id, after(HOUR)).await.unwrap();
    store.touch_key(full.id, NOW).await.unwrap();
    store.touch_key(key(9, "x").id, NOW).await.unwrap();
    let touched = store.find_key(full.id).await.unwrap().unwrap();
    assert_eq!(touched.last_used_at, Some(after(HOUR)), "never backwards");

    let revoked = store.revoke_key(full.id, after(HOUR)).await.unwrap().unwrap();
    assert_eq!(revoked.revoked_at, Some(after(HOUR)));
    let again = store.revoke_key(full.id, after(HOUR * 9)).await.unwrap().unwrap();
    assert_eq!(again.revoked_at, Some(after(HOUR)), "the first time stays");
    assert_eq!(store.revoke_key(key(9, "x").id, NOW).await, Ok(None));
}

async fn keys_rotate(house: &House) {
    let store = &house.store;
    let old = key(1, "Acme");
    assert_eq!(store.rotate_key(old.id, after(HOUR), key(4, "Acme")).await, Ok(true));
    assert_eq!(store.find_key(old.id).await.unwrap().unwrap().expires_at, Some(after(HOUR)));
    assert_eq!(store.find_key(key(4, "Acme").id).await, Ok(Some(key(4, "Acme"))));
    assert_eq!(store.rotate_key(old.id, after(HOUR * 9), key(5, "Acme")).await, Ok(true));
    assert_eq!(store.find_key(old.id).await.unwrap().unwrap().expires_at, Some(after(HOUR)), "never later");
    assert_eq!(store.rotate_key(key(9, "x").id, NOW, key(6, "x")).await, Ok(false));
    store.revoke_key(old.id, NOW).await.unwrap();
    assert_eq!(store.rotate_key(old.id, NOW, key(6, "Acme")).await, Ok(false));
    assert_eq!(store.find_key(key(6, "x").id).await, Ok(None), "nothing done");
}

async fn the_secret_is_claimed_once(house: &House) {
    let claim = |text: &str| house.store.claim_secret(text.to_owned());
    assert_eq!(claim("ours").await, Ok(Claim::First));
    assert_eq!(claim("ours").await, Ok(Claim::Same));
    assert_eq!(claim("theirs").await, Ok(Claim::Another));
    assert_eq!(claim("ours").await, Ok(Claim::Same));
    assert_eq!(house.store.check().await, Ok(()));
}

async fn a_closed_store_says_so(house: &House) {
    house.store.close().await.unwrap();
    let refused = house.store.sign_up(house.new_sign_up("ana@example.com"), NOW).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    house.store.close().await.expect("closing twice is no error");
}
