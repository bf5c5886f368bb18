//! The cookie of the operator's page, and the tokens of its forms (CSRF). A cookie carries a keyed hash, so that a made-up one is
//! refused before the store is asked; the store keeps hashes alone.

use ring::{digest, hmac};
use subtle::ConstantTimeEq;

use super::session::{Nonce, proof};
use super::{KeyPurpose, Secret};
use crate::domain::api_key::ApiKey;
use crate::domain::base32;
use crate::domain::operator::{OPERATOR_SESSION_FOR, OperatorName};
use crate::domain::time::Timestamp;

/// Whose form it is.
#[derive(Clone, Copy)]
pub enum FormOwner<'a> {
    /// A session's, with which its token ends.
    Session(&'a Nonce),
    /// Somebody's whom a proxy names in a header. Nothing ends with them, so the token says until when it is good.
    Named(&'a OperatorName),
}

/// What the token of a form says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormToken {
    Good,
    /// It was its owner's, and its time is over.
    Expired,
    Foreign,
}

#[derive(Clone)]
pub struct OperatorProofs(Secret);

impl OperatorProofs {
    pub fn new(secret: &Secret) -> Self {
        Self(secret.clone())
    }

    /// What a browser keeps.
    pub fn cookie(&self, session: &Nonce) -> String {
        let key = self.0.generations();
        format!("{}.{}", session.as_str(), cookie_proof(key.newest(KeyPurpose::OperatorCookie), session))
    }

    /// The session of a cookie that is ours.
    pub fn read_cookie(&self, cookie: &str) -> Option<Nonce> {
        let (nonce, proof) = cookie.split_once('.')?;
        let session = Nonce::read(nonce)?;
        let is_of = |key| bool::from(cookie_proof(key, &session).as_bytes().ct_eq(proof.as_bytes()));
        self.0.generations().reading(KeyPurpose::OperatorCookie).any(is_of).then_some(session)
    }

    /// What the key of a form is made of.
    pub fn key_bytes(&self, form: &Nonce) -> [u8; ApiKey::ENTROPY] {
        let tag = hmac::sign(self.0.generations().newest(KeyPurpose::OperatorKey), form.as_str().as_bytes());
        std::array::from_fn(|i| tag.as_ref()[i])
    }

    /// What every form carries.
    pub fn form_token(&self, owner: FormOwner<'_>, now: Timestamp) -> String {
        let generations = self.0.generations();
        let key = generations.newest(KeyPurpose::OperatorForm);
        match owner {
            FormOwner::Session(session) => session_proof(key, session),
            FormOwner::Named(name) => {
                let until = seconds(now.plus(OPERATOR_SESSION_FOR)).to_string();
                format!("{until}.{}", named_proof(key, name, &until))
            }
        }
    }

    pub fn read_form_token(&self, owner: FormOwner<'_>, token: &str, now: Timestamp) -> FormToken {
        let (until, sent) = match (owner, token.split_once('.')) {
            (FormOwner::Session(_), _) => (None, token),
            (FormOwner::Named(_), Some((until, sent))) => (Some(until), sent),
            (FormOwner::Named(_), None) => return FormToken::Foreign,
        };
        let good = |key| match owner {
            FormOwner::Session(session) => session_proof(key, session),
            FormOwner::Named(name) => named_proof(key, name, until.unwrap_or_default()),
        };
        let is_of = |key| bool::from(good(key).as_bytes().ct_eq(sent.as_bytes()));
        let until = until.and_then(|until| until.parse::<i64>().ok());
        match self.0.generations().reading(KeyPurpose::OperatorForm).any(is_of) {
            false => FormToken::Foreign,
            true if until.is_some_and(|until| until <= seconds(now)) => FormToken::Expired,
            true => FormToken::Good,
        }
    }
}

const fn seconds(time: Timestamp) -> i64 {
    time.as_millis() / 1000
}

fn cookie_proof(key: &hmac::Key, session: &Nonce) -> String {
    proof(key, &[session.as_str().as_bytes()])
}

fn session_proof(key: &hmac::Key, session: &Nonce) -> String {
    proof(key, &[b"session ", session.as_str().as_bytes()])
}

fn named_proof(key: &hmac::Key, name: &OperatorName, until: &str) -> String {
    // A name has no space, so no two pairs are the same bytes.
    proof(key, &[b"name ", name.as_str().as_bytes(), b" ", until.as_bytes()])
}

/// What the store keeps of a link's or a session's token. A plain hash is enough: 128 random bits cannot be searched.
pub fn token_hash(token: &Nonce) -> String {
    base32::text::<52>(digest::digest(&digest::SHA256, token.as_str().as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::secret::session::{NONCE, SessionMaker, SignedInBy};

    #[test]
    fn a_cookie_is_of_its_installation_and_of_this_page_alone() {
        let secret = |text: &str| Secret::new(&text.repeat(32)).unwrap();
        let (ours, theirs) = (OperatorProofs::new(&secret("a")), OperatorProofs::new(&secret("b")));
        let (one, two) = (Nonce::from_random(&[1; NONCE]), Nonce::from_random(&[2; NONCE]));
        let cookie = ours.cookie(&one);
        assert_eq!(ours.read_cookie(&cookie), Some(one.clone()));
        assert_eq!(theirs.read_cookie(&cookie), None);
        let members = SessionMaker::new(&secret("a"));
        let member = members.cookie(&one, Timestamp::from_millis(i64::MAX), SignedInBy::Mail);
        assert!(members.read_cookie(&cookie, Timestamp::from_millis(0)).is_none());
        for forged in [
            member.as_str(),
            &cookie.replace(one.as_str(), two.as_str()),
            &format!("{cookie}.x"),
            one.as_str(),
            "",
            ".",
        ] {
            assert_eq!(ours.read_cookie(forged), None, "{forged}");
        }
    }

    #[test]
    fn a_form_token_is_of_its_owner_alone() {
        let ours = OperatorProofs::new(&Secret::new(&"a".repeat(32)).unwrap());
        let (one, two) = (Nonce::from_random(&[1; NONCE]), Nonce::from_random(&[2; NONCE]));
        let now = Timestamp::from_millis(1_794_743_200_000);
        // A name that is spelled as a session is no session.
        let named: OperatorName = one.as_str().parse().unwrap();
        let token = ours.form_token(FormOwner::Session(&one), now);
        let read = |owner, token: &str| ours.read_form_token(owner, token, now);
        assert_eq!(read(FormOwner::Session(&one), &token), FormToken::Good);
        for other in [FormOwner::Session(&two), FormOwner::Named(&named)] {
            assert_eq!(read(other, &token), FormToken::Foreign);
        }
        assert_eq!(read(FormOwner::Session(&one), ""), FormToken::Foreign);
        assert_ne!(token_hash(&one), token_hash(&two));
        assert_eq!(token_hash(&one).len(), 52);
    }

    #[test]
    fn a_token_for_whom_a_proxy_names_is_good_for_twelve_hours() {
        let ours = OperatorProofs::new(&Secret::new(&"a".repeat(32)).unwrap());
        let [ana, ben]: [OperatorName; 2] = ["ana", "ben"].map(|name| name.parse().unwrap());
        let at = |hours: i64| Timestamp::from_millis(1_794_743_200_000 + hours * 3_600_000);
        let token = ours.form_token(FormOwner::Named(&ana), at(0));
        for (hours, read) in [(0, FormToken::Good), (11, FormToken::Good), (12, FormToken::Expired)] {
            assert_eq!(ours.read_form_token(FormOwner::Named(&ana), &token, at(hours)), read);
            assert_eq!(ours.read_form_token(FormOwner::Named(&ben), &token, at(hours)), FormToken::Foreign);
        }
        let later = ours.form_token(FormOwner::Named(&ana), at(1));
        let mixed = format!("{}.{}", later.split('.').next().unwrap(), token.split('.').nth(1).unwrap());
        assert_eq!(ours.read_form_token(FormOwner::Named(&ana), &mixed, at(0)), FormToken::Foreign);
    }
}
