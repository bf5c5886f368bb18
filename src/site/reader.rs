//! Which language a reader gets: the one they ask for (`?lang=es`), then what they chose before, then what their browser likes.

use crate::domain::time::DAY;
use std::time::Duration;

use hyper::header::ACCEPT_LANGUAGE;
use hyper::{HeaderMap, Uri};

use super::cookie::SiteCookie;
use crate::domain::language::Language;
use crate::http::response::answer::Answer;

/// How long a browser remembers what was chosen in it.
const REMEMBERED_FOR: Duration = DAY.saturating_mul(365);

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    pub language: Language,
    known_by: KnownBy,
    /// Whether their browser has a session of ours that has not ended; only the store knows whose.
    pub(super) signed_in: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownBy {
    /// The address that they opened, or the form that they sent.
    Asked,
    /// The cookie of an earlier choice.
    Cookie,
    /// Their browser, or nothing.
    Guess,
}

impl Reader {
    pub(super) fn of(uri: &Uri, headers: &HeaderMap, secure: bool) -> Self {
        let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let asked = query.into_iter().find(|(name, _)| name == "lang").and_then(|(_, code)| Language::from_code(&code));
        if let Some(language) = asked {
            return Self { language, known_by: KnownBy::Asked, signed_in: false };
        }
        if let Some(language) = SiteCookie::Language.read(headers, secure).and_then(Language::from_code) {
            return Self { language, known_by: KnownBy::Cookie, signed_in: false };
        }
        let liked = headers.get(ACCEPT_LANGUAGE).and_then(|header| header.to_str().ok()).and_then(Language::accepted);
        Self { language: liked.unwrap_or_default(), known_by: KnownBy::Guess, signed_in: false }
    }

    /// The same reader, of whom it is known what they chose as a member or when they signed up.
    #[must_use]
    pub(super) fn who_chose(self, kept: Option<Language>) -> Self {
        match (self.known_by, kept) {
            (KnownBy::Guess, Some(language)) => Self { language, ..self },
            _ => self,
        }
    }

    /// The same reader, who sent a form in a language: what they read there is what they go on with.
    #[must_use]
    pub(super) fn of_form(self, code: Option<&str>) -> Self {
        match (self.known_by, code.and_then(Language::from_code)) {
            (KnownBy::Guess | KnownBy::Cookie, Some(language)) => Self { language, ..self },
            _ => self,
        }
    }

    /// The language that the address itself asks for.
    pub(super) fn asked(self) -> Option<Language> {
        (self.known_by == KnownBy::Asked).then_some(self.language)
    }

    /// Has the browser remember what was asked for, if it is a page that was.
    pub fn remember(self, answer: &mut Answer, secure: bool) {
        if self.known_by == KnownBy::Asked && answer.is_html() {
            SiteCookie::Language.set(answer, secure, self.language.code(), REMEMBERED_FOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::{COOKIE, HeaderValue};

    use super::*;

    #[test]
    fn what_is_asked_for_comes_first_and_a_guess_last() {
        let of = |path: &'static str, cookie: &'static str, accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_static(cookie));
            headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(accept));
            Reader::of(&Uri::from_static(path), &headers, false)
        };
        let (english, spanish) = (Language::English, Language::Spanish);
        assert_eq!(of("/join?lang=es", "union-language=en", "en").language, spanish);
        assert_eq!(of("/join?a=b&lang=es-MX", "", "").language, spanish);
        assert_eq!(
            of("/join?lang=xx", "union-language=es", "en").language,
            spanish,
            "what is no language is not asked for"
        );
        assert_eq!(of("/join", "union-language=es", "en").language, spanish);
        assert_eq!(of("/join", "union-language=zz", "es").language, spanish);
        assert_eq!(of("/join", "", "fr, de").language, english);
        assert_eq!(of("/join", "", "en").who_chose(Some(spanish)).language, spanish);
        assert_eq!(
            of("/join", "union-language=en", "").who_chose(Some(spanish)).language,
            english,
            "chosen in this browser"
        );
        assert_eq!(of("/join?lang=en", "", "").who_chose(Some(spanish)).language, english);
        assert_eq!(of("/join", "", "en").of_form(Some("es")).language, spanish);
        assert_eq!(of("/join", "", "en").of_form(Some("zz")).language, english);
    }
}
