//! How a partner knows that a webhook is ours: signatures by a secret that only they and we can make (Standard Webhooks).
//!
//! A secret is derived from the installation's whenever it is needed and kept nowhere: a stolen database signs nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use super::{EventKind, OLD_SECRET_SIGNS_FOR};
use crate::domain::base32;
use crate::domain::secret::{KeyPurpose, Secret};
use crate::domain::time::Timestamp;

/// What one generation of an endpoint's webhooks is signed with.
#[derive(Clone)]
pub struct WebhookSecret([u8; 32]);

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// The secrets that an endpoint has or had.
#[derive(Clone, Copy)]
pub struct SecretsOf {
    pub endpoint: i64,
    pub newest: SecretOf,
    pub old: Option<SecretOf>,
}

/// Which secret of an endpoint it is.
#[derive(Clone, Copy)]
pub struct SecretOf {
    /// The generation of the installation's secret.
    pub made_with: u32,
    pub generation: u32,
}

impl WebhookSecret {
    /// `made_with` is the generation of the installation's secret; none if that one is not kept.
    pub fn derive(secret: &Secret, made_with: u32, endpoint: i64, generation: u32) -> Option<Self> {
        // Of one width each, so that no two pairs are the same bytes.
        secret.hkdf(made_with, &[&endpoint.to_be_bytes(), &generation.to_be_bytes()]).map(Self)
    }

    /// Those that sign for an endpoint now, the newest first: the one before it goes on for a while after a rotation, so that
    /// the partner can change over without losing anything.
    pub fn in_force(secret: &Secret, of: SecretsOf, rotated_at: Option<Timestamp>, now: Timestamp) -> Vec<Self> {
        let SecretsOf { endpoint, newest, old } = of;
        let old = old.filter(|_| rotated_at.is_some_and(|at| now < at.plus(OLD_SECRET_SIGNS_FOR)));
        let both = [Some(newest), old].into_iter().flatten();
        both.filter_map(|of| Self::derive(secret, of.made_with, endpoint, of.generation)).collect()
    }

    /// Those that sign what is told to the operator (`--notify`), the newest first, without those that leaked. No endpoint has the
    /// number 0.
    pub fn of_notices(secret: &Secret) -> Vec<Self> {
        let generations = secret.generations();
        let kept = generations.all().iter().filter(|generation| generation.leaked_at.is_none());
        kept.filter_map(|generation| Self::derive(secret, generation.number, 0, 0)).collect()
    }

    /// As it is shown to the partner, and as the libraries of Standard Webhooks take it.
    pub fn reveal(&self) -> String {
        format!("whsec_{}", STANDARD.encode(self.0))
    }

    /// Reads what [`reveal`](Self::reveal) shows: for receivers of webhooks, in tests.
    pub fn from_shown(shown: &str) -> Option<Self> {
        let bytes = STANDARD.decode(shown.strip_prefix("whsec_")?).ok()?;
        bytes.try_into().ok().map(Self)
    }

    pub fn signature(&self, message_id: &str, timestamp_seconds: i64, body: &[u8]) -> String {
        sign(&self.0, message_id, timestamp_seconds, body)
    }
}

fn sign(key: &[u8], message_id: &str, timestamp_seconds: i64, body: &[u8]) -> String {
    let mut sum = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    sum.update(format!("{message_id}.{timestamp_seconds}.").as_bytes());
    sum.update(body);
    format!("v1,{}", STANDARD.encode(sum.sign()))
}

/// The value of `webhook-signature`: one signature for each secret, in their order.
pub fn signatures(secrets: &[WebhookSecret], message_id: &str, timestamp_seconds: i64, body: &[u8]) -> String {
    let all: Vec<_> = secrets.iter().map(|secret| secret.signature(message_id, timestamp_seconds, body)).collect();
    all.join(" ")
}

/// The value of `webhook-id`, and the id of the event in the list: the same for ever, by which a partner knows a repeat. It does
/// not tell how many events there are. For a ping, any number that is new each time.
pub fn message_id(secret: &Secret, event: i64, kind: EventKind) -> String {
    let mut sum = hmac::Context::with_key(secret.generations().newest(KeyPurpose::WebhookMessage));
    sum.update(&event.to_be_bytes());
    sum.update(kind.name().as_bytes());
    format!("msg_{}", base32::text::<20>(sum.sign().as_ref()))
}

/// The id of a message to the operator: the same for the same text, by which a receiver knows a repeat.
pub fn notice_id(secret: &Secret, text: &str) -> String {
    let sum = hmac::sign(secret.generations().newest(KeyPurpose::WebhookMessage), format!("notice {text}").as_bytes());
    format!("notice_{}", base32::text::<20>(sum.as_ref()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    fn secret(letter: &str) -> Secret {
        Secret::new(&letter.repeat(32)).unwrap()
    }

    /// The expected texts were made with the official Python library of Standard Webhooks.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = br#"{"test": 2432232314}"#;
        assert_eq!(
            sign(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
        let ours = WebhookSecret(std::array::from_fn(|i| u8::try_from(i).unwrap()));
        assert_eq!(ours.reveal(), "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
        let body =
            r#"{"type":"sign_up.confirmed","timestamp":"2026-11-16T10:00:00Z","data":{"idempotencyKey":"order-17"}}"#;
        let expected = "v1,IoxieL1jA8IKawP3k4QInFaBOF7QwSgA34SVpCFK+RE=";
        assert_eq!(ours.signature("msg_1", 1_794_823_200, body.as_bytes()), expected);
        let other = WebhookSecret([9; 32]);
        let both = signatures(&[ours, other.clone()], "msg_1", 1_794_823_200, body.as_bytes());
        let (first, second) = both.split_once(' ').unwrap();
        assert_eq!((first, second), (expected, &*other.signature("msg_1", 1_794_823_200, body.as_bytes())));
    }

    #[test]
    fn a_secret_is_of_one_endpoint_one_generation_and_one_installation() {
        let reveal = |letter: &str, endpoint, generation| {
            WebhookSecret::derive(&secret(letter), 1, endpoint, generation).unwrap().reveal()
        };
        // By the definition of HKDF (RFC 5869), worked out apart from this program.
        assert_eq!(reveal("s", 7, 1), "whsec_ELiz+097gvQ+t/xAVw1vacy579MiRUT/+Wj2ffaFmhw=");
        let all = [reveal("s", 7, 1), reveal("s", 7, 2), reveal("s", 8, 1), reveal("t", 7, 1)];
        assert_eq!(BTreeSet::from(all).len(), 4);
        assert!(WebhookSecret::derive(&secret("s"), 2, 7, 1).is_none(), "of a generation that is not kept");
        let shown = format!("{:?}", WebhookSecret::derive(&secret("s"), 1, 7, 1));
        assert_eq!(shown, "Some(WebhookSecret(…))");
    }

    #[test]
    fn the_old_secret_signs_for_a_day_after_a_rotation() {
        let at = Timestamp::from_millis;
        let revealed = |(generation, old): (u32, u32), rotated_at, now| -> Vec<_> {
            let of = |generation| SecretOf { made_with: 1, generation };
            let of = SecretsOf { endpoint: 7, newest: of(generation), old: (old > 0).then(|| of(old)) };
            let secrets = WebhookSecret::in_force(&secret("s"), of, rotated_at, now);
            secrets.iter().map(WebhookSecret::reveal).collect()
        };
        let one = |generation| WebhookSecret::derive(&secret("s"), 1, 7, generation).unwrap().reveal();
        assert_eq!(revealed((1, 0), None, at(0)), [one(1)]);
        assert_eq!(revealed((1, 0), Some(at(0)), at(0)), [one(1)], "there was none before it");
        assert_eq!(revealed((3, 2), Some(at(0)), at(0)), [one(3), one(2)]);
        assert_eq!(revealed((4711, 3), Some(at(0)), at(0)), [one(4711), one(3)]);
        let end = at(0).plus(OLD_SECRET_SIGNS_FOR);
        assert_eq!(revealed((3, 2), Some(at(0)), end.minus(Duration::from_millis(1))).len(), 2);
        assert_eq!(revealed((3, 2), Some(at(0)), end), [one(3)]);
    }

    #[test]
    fn a_message_keeps_its_id_and_shares_it_with_no_other() {
        let id = message_id(&secret("s"), 1, EventKind::Confirmed);
        assert_eq!(id, "msg_smc9jztamhkd3hdptg69", "it must never change: partners know repeats by it");
        let others = [
            message_id(&secret("s"), 2, EventKind::Confirmed),
            message_id(&secret("s"), 1, EventKind::Closed),
            message_id(&secret("t"), 1, EventKind::Confirmed),
        ];
        assert!(!others.contains(&id));
    }
}
