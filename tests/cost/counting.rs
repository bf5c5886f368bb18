//! A store that counts how often it is asked.

use std::sync::atomic::{AtomicUsize, Ordering};

use unionhall::domain::api_key::{KeyId, KeyRecord};
use unionhall::domain::email::EmailAddress;
use unionhall::domain::mail::{DueMail, MailId, MailOutcome, WaitingMail};
use unionhall::domain::referral::ReferralCode;
use unionhall::domain::signup::{Confirmation, Declining, NamedPerson, NewSignUp, SignUpId, SignUpRecord, SignedUp};
use unionhall::domain::time::Timestamp;
use unionhall::store::sqlite::SqliteStore;
use unionhall::store::{Answer, Claim, Store, Tidied};

#[derive(Debug)]
pub(crate) struct Counting {
    store: SqliteStore,
    pub calls: AtomicUsize,
}

impl Counting {
    pub(crate) fn new(store: SqliteStore) -> Self {
        Self { store, calls: AtomicUsize::new(0) }
    }
}

/// Each method counts and passes on.
macro_rules! counted {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        impl Store for Counting {
            $(fn $name(&self, $($argument: $kind),*) -> Answer<'_, $answer> {
                self.calls.fetch_add(1, Ordering::Relaxed);
                self.store.$name($($argument),*)
            })*
        }
    };
}

counted! {
    member_count() -> u64;
    sign_up(new: NewSignUp, now: Timestamp) -> SignedUp;
    referral_code(email: &EmailAddress) -> Option<ReferralCode>;
    create_referral_code(person: NamedPerson, now: Timestamp) -> ReferralCode;
    confirm(sign_up: SignUpId, seen: Option<Timestamp>, now: Timestamp) -> Confirmation;
    find_sign_up(sign_up: SignUpId, now: Timestamp) -> Option<SignUpRecord>;
    decline(sign_up: SignUpId, now: Timestamp) -> Declining;
    lease_mail(worker: &str, most: usize, now: Timestamp) -> Vec<DueMail>;
    settle_mail(mail: MailId, attempt: u32, outcome: MailOutcome, now: Timestamp) -> ();
    release_mail(worker: &str) -> usize;
    list_mail() -> Vec<WaitingMail>;
    retry_mail(mail: MailId, now: Timestamp) -> bool;
    tidy(now: Timestamp) -> Tidied;
    find_key(id: KeyId) -> Option<KeyRecord>;
    list_keys() -> Vec<(KeyRecord, u64)>;
    issue_key(key: KeyRecord) -> ();
    revoke_key(id: KeyId, now: Timestamp) -> Option<KeyRecord>;
    rotate_key(old: KeyId, end: Timestamp, successor: KeyRecord) -> bool;
    touch_key(id: KeyId, now: Timestamp) -> ();
    pause_sign_ups(paused: bool) -> bool;
    claim_secret(fingerprint: String) -> Claim;
    check() -> ();
    close() -> ();
}
