//! Referral codes and links: how one is made for an address, and how one is read back from what people paste.

use std::fmt;

use ring::hmac;

use super::base32;
use super::email::EmailAddress;
use super::json::{inline_schema, json_text};
use super::secret::{KeyPurpose, Secret};

/// Twelve characters that stand for one person for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReferralCode([u8; Self::LENGTH]);

json_text!(ReferralCode, |code: &ReferralCode| *code);

impl ReferralCode {
    pub const LENGTH: usize = 12;

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Reads a code in its stored form.
    pub fn from_canonical(text: &str) -> Option<Self> {
        let bytes: [u8; Self::LENGTH] = text.as_bytes().try_into().ok()?;
        base32::is_canonical(&bytes).then_some(Self(bytes))
    }

    /// Reads what a person pasted as their friend's code: in any case, with white space or punctuation around it, or the whole
    /// link with text behind it. Anything else is no code, and a sign-up with it is simply not attributed.
    pub fn from_pasted(text: &str) -> Option<Self> {
        // A code holds no "u", so the last "joinus" is always the link's own.
        let lower = text.trim().to_ascii_lowercase();
        let code = match lower.rfind(LINK_PATH) {
            Some(start) => {
                let rest = &lower[start + LINK_PATH.len()..];
                rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or(rest)
            }
            None => lower.trim_matches(|c: char| !c.is_alphanumeric()),
        };
        let bytes: [u8; Self::LENGTH] = code.as_bytes().try_into().ok()?;
        let mut folded = [0; Self::LENGTH];
        for (to, from) in folded.iter_mut().zip(bytes) {
            *to = base32::fold(from)?;
        }
        Some(Self(folded))
    }

    /// The link that the person shares.
    pub fn link(&self, join_site: &str) -> String {
        format!("{join_site}/{LINK_PATH}{}", self.as_str())
    }
}

const LINK_PATH: &str = "joinus";

impl fmt::Display for ReferralCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The code a caller names as the referrer's. Whatever it says, it is accepted; only a real code attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefCode(pub Option<ReferralCode>);

impl<'de> serde::Deserialize<'de> for RefCode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = super::text::read(deserializer, "a referral code in a string")?;
        Ok(Self(ReferralCode::from_pasted(&super::text::without_nuls(text))))
    }
}

inline_schema!(RefCode, schemars::json_schema!({ "type": "string" }));

/// Makes codes. The same address gets the same code on every node and at any time, and without the installation's
/// secret no one can tell which address a code belongs to.
#[derive(Clone)]
pub struct CodeMaker(hmac::Key);

impl CodeMaker {
    pub fn new(secret: &Secret) -> Self {
        Self(secret.generations().newest(KeyPurpose::ReferralCode).clone())
    }

    /// The code for an address. Two addresses share one about once in 10^18 pairs; the store then asks for the next
    /// `attempt`, and the code it keeps wins over any later computation.
    pub fn code(&self, email: &EmailAddress, attempt: u8) -> ReferralCode {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&[attempt]);
        context.update(email.normalized().as_bytes());
        ReferralCode(base32::encode(context.sign().as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn email(text: &str) -> EmailAddress {
        EmailAddress::parse(text).unwrap()
    }

    #[test]
    fn a_code_depends_on_the_compared_address_the_secret_and_the_attempt_alone() {
        let maker = CodeMaker::new(&Secret::new(&"a".repeat(32)).unwrap());
        let other = CodeMaker::new(&Secret::new(&"b".repeat(32)).unwrap());
        let code = maker.code(&email("ana@example.com"), 0);
        assert_eq!(code, maker.code(&email("ANA@example.COM"), 0));
        assert_ne!(code, maker.code(&email("ana+x@example.com"), 0));
        assert_ne!(code, maker.code(&email("ana@example.com"), 1));
        assert_ne!(code, other.code(&email("ana@example.com"), 0));
        assert_eq!(code.as_str().len(), 12);
        // Fixed for ever: links made with this secret are out in the world.
        assert_eq!(code.as_str(), "yd8z2z0xsrw1");
    }

    #[test]
    fn pasted_codes_and_links_are_read() {
        let code = ReferralCode::from_canonical("0123456789ab").unwrap();
        for pasted in [
            "0123456789ab",
            "  0123456789AB\n",
            "OI23456789ab",
            "https://union.example/joinus0123456789ab",
            "HTTPS://UNION.EXAMPLE/JOINUS0123456789AB?utm=x#top",
            "union.example/joinus0123456789ab/",
            "/joinus0123456789ab",
            "joinus0123456789ab",
            "https://joinus.example/joinus0123456789ab",
            "union.example/joinus0123456789ab.",
            "(https://union.example/joinus0123456789ab)",
            "/joinus0123456789ab%20",
            "/JOINUS0123456789AB%E2%80%9D",
            "\u{201c}0123456789ab\u{201d}.",
        ] {
            assert_eq!(ReferralCode::from_pasted(pasted), Some(code), "{pasted}");
        }
        for bad in ["", " ", "0123456789a", "0123456789abc", "0123456789au", "joinus", "0123456789é", "a@example.com"]
        {
            assert_eq!(ReferralCode::from_pasted(bad), None, "{bad}");
        }
        assert_eq!(ReferralCode::from_pasted(&code.link("https://union.example")), Some(code));
    }
}
