//! Signing in to one's own page: a link and a code, mailed to the member, and how often each may be tried.

use crate::domain::time::DAY;
use std::fmt;
use std::time::Duration;

use super::base32;
use super::time::Timestamp;

/// How long a link and its code work.
pub const SIGN_IN_FOR: Duration = Duration::from_secs(10 * 60);

/// Codes that may be typed for one request.
pub const TRIES: u32 = 5;

/// Codes that may be typed wrong for one person on a day; past it only links work.
pub const WRONG_CODES_A_DAY: u32 = 20;

/// How long a browser stays signed in.
pub const SESSION_FOR: Duration = DAY.saturating_mul(30);

/// How long a request is remembered: the caps of a day are counted from them.
pub const REMEMBERED_FOR: Duration = DAY;

/// Sign-in mails to one mailbox: so many within so long. Mail of other kinds spends none of them.
const CAPS: [(usize, Duration); 3] =
    [(1, Duration::from_secs(60)), (5, Duration::from_secs(3600)), (10, REMEMBERED_FOR)];

/// Whether a mailbox may get another sign-in mail, by when it got the last ones.
pub fn may_mail(sent: &[Timestamp], now: Timestamp) -> bool {
    CAPS.iter().all(|(most, span)| sent.iter().filter(|at| at.plus(*span) > now).count() < *most)
}

/// Names one request to sign in inside the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignInId(pub i64);

/// One request to sign in as its mail names it: with the time, for a restored database gives ids out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignInRef {
    pub id: SignInId,
    pub created_at: Timestamp,
}

/// What is typed where the mail is read on another device: 40 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SignInCode([u8; Self::LENGTH]);

impl fmt::Debug for SignInCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignInCode(…)")
    }
}

impl SignInCode {
    const LENGTH: usize = 8;

    pub(super) fn from_bits(bytes: &[u8]) -> Self {
        Self(base32::encode(bytes))
    }

    /// Reads what a person typed: in any case, with gaps wherever they like, and letters that look like digits as those.
    pub fn from_typed(text: &str) -> Option<Self> {
        let mut code = [0; Self::LENGTH];
        let mut typed = text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '-' | '\u{2013}' | '.'));
        for place in &mut code {
            *place = base32::fold(u8::try_from(typed.next()?).ok()?)?;
        }
        typed.next().is_none().then_some(Self(code))
    }

    /// In a time that does not tell how much of it is right.
    pub fn matches(&self, other: &Self) -> bool {
        subtle::ConstantTimeEq::ct_eq(&self.0[..], &other.0[..]).into()
    }
}

impl fmt::Display for SignInCode {
    /// As a mail shows it: in two groups.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = std::str::from_utf8(&self.0).unwrap_or_default().to_uppercase();
        let (first, second) = text.split_at(Self::LENGTH / 2);
        write!(f, "{first}-{second}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_gets_one_a_minute_five_an_hour_ten_a_day() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        let may = |sent: &[i64], now| may_mail(&sent.iter().map(|second| at(*second)).collect::<Vec<_>>(), at(now));
        assert!(may(&[], 0));
        assert!(!may(&[100], 159) && may(&[100], 160));
        let five = [0, 100, 200, 300, 400];
        assert!(!may(&five, 3599) && may(&five, 3600));
        let ten: Vec<i64> = (0..10).map(|hour| hour * 3600).collect();
        assert!(!may(&ten, 86_399) && may(&ten, 86_400));
    }

    #[test]
    fn a_code_is_read_however_it_is_typed() {
        let code = SignInCode::from_bits(&[0x08, 0x86, 0x42, 0x98, 0xe8]);
        let shown = code.to_string();
        assert_eq!((shown.len(), &shown[4..5]), (9, "-"));
        for typed in [&shown, &shown.to_lowercase(), &shown.replace('-', " "), &format!(" {} ", shown.replace('-', ""))]
        {
            assert!(SignInCode::from_typed(typed).unwrap().matches(&code), "{typed}");
        }
        assert_eq!(SignInCode::from_typed("oil0-0000").unwrap().to_string(), "0110-0000");
        for wrong in ["", "1234567", "123456789", "1234-567u", "1234567é", "1234 567!"] {
            assert!(SignInCode::from_typed(wrong).is_none(), "{wrong}");
        }
        assert!(!format!("{code:?}").contains(&shown[..4]));
    }
}
