//! The cookies: of a member's own page the session, and the nonce of a browser that asked to sign in; the session of the operator's
//! page; and the language that somebody chose. Nobody gets one who asked for none of these.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::{COOKIE, HeaderValue, SET_COOKIE};

use crate::http::response::answer::Answer;

/// Over HTTPS a name with this prefix keeps other hosts of the domain from setting the cookie.
const HOST_PREFIX: &str = "__Host-";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SiteCookie {
    Session,
    /// Of the browser that asked for a code.
    Asked,
    Language,
    /// Of the operator's page.
    Operator,
}

impl SiteCookie {
    const fn name(self) -> &'static str {
        match self {
            Self::Session => "union",
            Self::Asked => "union-asked",
            Self::Language => "union-language",
            Self::Operator => "union-operator",
        }
    }

    /// What the browser sent, where it sent it once: two of a name are none of ours. Whatever other cookies hold is nobody's
    /// affair here.
    pub(super) fn read(self, headers: &HeaderMap, secure: bool) -> Option<&str> {
        let pairs = headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
        let mut ours = pairs.filter_map(|pair| {
            let (name, value) = std::str::from_utf8(pair).ok()?.trim().split_once('=')?;
            let bare = if secure { name.strip_prefix(HOST_PREFIX)? } else { name };
            (bare == self.name()).then_some(value)
        });
        let found = ours.next()?;
        ours.next().is_none().then_some(found)
    }

    pub(super) fn set(self, answer: &mut Answer, secure: bool, value: &str, lasts: Duration) {
        let (prefix, secure) = if secure { (HOST_PREFIX, "; Secure") } else { ("", "") };
        // A link in a mail leads to the member's page, so the session comes along; the nonce is for our own forms alone, and the
        // operator's page is opened by no link elsewhere.
        let same_site = match self {
            Self::Session | Self::Language => "Lax",
            Self::Asked | Self::Operator => "Strict",
        };
        let (name, seconds) = (self.name(), lasts.as_secs());
        let cookie =
            format!("{prefix}{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}");
        // Made of letters, digits and what is written here.
        if let Ok(value) = HeaderValue::from_str(&cookie) {
            answer.append(SET_COOKIE, value);
        }
    }

    pub(super) fn clear(self, answer: &mut Answer, secure: bool) {
        self.set(answer, secure, "", Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_read_by_its_whole_name_and_once() {
        let read = |line: &str, secure| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_bytes(line.as_bytes()).unwrap());
            SiteCookie::Session.read(&headers, secure).map(str::to_owned)
        };
        assert_eq!(read("a=b; __Host-union=x.1.y; c=d", true).as_deref(), Some("x.1.y"));
        assert_eq!(read("union=x", false).as_deref(), Some("x"));
        assert_eq!(read("tool=caf\u{e9}; union=x", false).as_deref(), Some("x"), "others' bytes are theirs");
        for (line, secure) in [
            ("union=x", true),
            ("__Host-union=x", false),
            ("__Host-union-asked=x", true),
            ("__Host-union=x; __Host-union=y", true),
            ("xunion=x", false),
            ("", true),
        ] {
            assert_eq!(read(line, secure), None, "{line}");
        }
    }
}
