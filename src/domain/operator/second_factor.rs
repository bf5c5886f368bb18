//! The second factor of an operator's sign-in: codes that an app on their phone makes (TOTP, RFC 6238), and recovery codes for the
//! day the phone is lost.

use ring::digest;
use totp_rs::{Builder, Secret, Totp};

use super::OperatorName;
use crate::domain::base32;
use crate::domain::share::encoded;
use crate::domain::time::Timestamp;

/// Random bytes of a secret, as many as SHA-1 has: every app takes them.
pub const SECRET: usize = 20;

/// Wrong codes in one sign-in.
pub const TRIES: u32 = 5;

/// Wrong codes of one operator a day, over all sign-ins. Past them recovery codes work, and a command starts over. Three codes are
/// right at a time, so that a day of guesses finds one with a chance of 1 in 16,000.
pub const WRONG_CODES_A_DAY: u32 = 20;

pub const RECOVERY_CODES: usize = 10;

/// Random bytes of a recovery code: nobody finds one by trying, so guesses at it need no limit of their own.
pub const RECOVERY_CODE: usize = 10;
const RECOVERY_LENGTH: usize = 16;

/// What the phone and the records share.
pub struct FactorSecret(Totp);

impl FactorSecret {
    pub fn from_random(bytes: [u8; SECRET]) -> Option<Self> {
        Self::of(Secret::new_stack(bytes))
    }

    /// As [`shown`](Self::shown) wrote it.
    pub fn read(text: &str) -> Option<Self> {
        Self::of(Secret::try_from_base32(text).ok()?)
    }

    fn of(secret: Secret) -> Option<Self> {
        // Six digits, thirty seconds, one step early or late.
        Builder::new().with_secret(secret).build().ok().map(Self)
    }

    /// For somebody who types it into an app.
    pub fn shown(&self) -> String {
        self.0.secret().to_base32()
    }

    /// For an app that reads a QR code.
    pub fn address(&self, union: &str, name: &OperatorName) -> String {
        let (issuer, name) = (encoded(union), encoded(name.as_str()));
        format!("otpauth://totp/{issuer}:{name}?secret={}&issuer={issuer}", self.shown())
    }

    /// The time step of a code that is right now. One step is taken once.
    pub fn step_of(&self, typed: &str, now: Timestamp) -> Option<i64> {
        let digits: String = typed.chars().filter(|c| !c.is_whitespace()).collect();
        let seconds = u64::try_from(now.as_millis() / 1000).ok()?;
        let step = self.0.check(&digits, seconds)?;
        i64::try_from(step).ok()
    }

    /// The code at a time.
    pub fn code_at(&self, time: Timestamp) -> String {
        self.0.generate(u64::try_from(time.as_millis() / 1000).unwrap_or(0)).to_string()
    }
}

/// A code that stands in for the phone, once.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode([u8; RECOVERY_LENGTH]);

impl RecoveryCode {
    pub fn from_random(bytes: &[u8; RECOVERY_CODE]) -> Self {
        Self(base32::encode(bytes))
    }

    /// In any case, with or without hyphens and spaces.
    pub fn from_typed(typed: &str) -> Option<Self> {
        let typed = typed.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'-');
        let folded: Option<Vec<u8>> = typed.take(RECOVERY_LENGTH + 1).map(base32::fold).collect();
        folded?.try_into().ok().map(Self)
    }

    /// In four groups.
    pub fn shown(&self) -> String {
        let groups: Vec<_> = self.0.chunks(4).map(|group| String::from_utf8_lossy(group)).collect();
        groups.join("-")
    }

    /// What the records keep of it: 80 random bits cannot be searched.
    pub fn hash(&self) -> String {
        base32::text::<52>(digest::digest(&digest::SHA256, &self.0).as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 6238, whose secret is "12345678901234567890".
    #[test]
    fn codes_are_those_of_the_standard() {
        let secret = FactorSecret::from_random(*b"12345678901234567890").unwrap();
        assert_eq!(secret.shown(), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        for (seconds, code) in [(59, "287082"), (1_111_111_109, "081804"), (2_000_000_000, "279037")] {
            assert_eq!(secret.code_at(at(seconds)), code);
            assert_eq!(secret.step_of(code, at(seconds)), Some(seconds / 30));
            assert_eq!(
                secret.step_of(&format!(" {} {} ", &code[..3], &code[3..]), at(seconds + 30)),
                Some(seconds / 30)
            );
            assert_eq!(secret.step_of(code, at(seconds + 90)), None);
        }
        for bad in ["", "28708", "2870822", "28708a", "２８７０８２", "287083", &"1".repeat(1000)] {
            assert_eq!(secret.step_of(bad, at(59)), None, "{bad}");
        }
        let again = FactorSecret::read(&secret.shown()).unwrap();
        assert_eq!(again.code_at(at(59)), "287082");
        assert!(FactorSecret::read("x").is_none() && FactorSecret::read("").is_none());
        let name: OperatorName = "ana@union.example".parse().unwrap();
        assert_eq!(
            secret.address("Example Union: us", &name),
            "otpauth://totp/Example%20Union%3A%20us:ana%40union.example?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Example%20Union%3A%20us"
        );
    }

    #[test]
    fn a_recovery_code_is_read_as_people_type_it() {
        let code = RecoveryCode::from_random(&[0xc7; RECOVERY_CODE]);
        let shown = code.shown();
        assert_eq!((shown.len(), shown.matches('-').count()), (19, 3));
        for typed in [shown.clone(), shown.to_uppercase(), shown.replace('-', " "), shown.replace('-', "")] {
            assert!(
                RecoveryCode::from_typed(&typed).is_some_and(|read| read == code && read.hash() == code.hash()),
                "{typed}"
            );
        }
        for bad in ["", "123456", &shown[..18], &format!("{shown}0"), "é", &"-".repeat(1000)] {
            assert!(RecoveryCode::from_typed(bad).is_none(), "{bad}");
        }
        assert_ne!(code.hash(), RecoveryCode::from_random(&[0xc8; RECOVERY_CODE]).hash());
    }
}
