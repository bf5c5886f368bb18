//! How a member passes their referral link on: the words, and links that open a letter or a text message with them.

use super::language::Words;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// A letter with the words and the link in it, and no recipient yet.
pub fn by_mail(words: &Words, union: &str, link: &str) -> String {
    let subject = words.share.subject.put("union", union).plain();
    format!("mailto:?subject={}&body={}", encoded(&subject), encoded(&message(words, union, link)))
}

/// The ways from a page: links that open a message without a recipient, and the message for the system's own share sheet.
pub struct ShareWays {
    pub by_mail: String,
    pub by_text_message: String,
    pub by_whatsapp: String,
    pub message: String,
}

impl ShareWays {
    pub fn of(words: &Words, union: &str, link: &str) -> Self {
        Self::saying(by_mail(words, union, link), message(words, union, link))
    }

    /// Of a campaign: the link leads to its page, and hands the code on.
    pub fn for_campaign(words: &Words, union: &str, title: &str, link: &str) -> Self {
        let message = words.campaign.share_words.put("union", union).put("title", title).put("link", link).plain();
        Self::saying(format!("mailto:?subject={}&body={}", encoded(title), encoded(&message)), message)
    }

    fn saying(by_mail: String, message: String) -> Self {
        Self {
            by_mail,
            // The odd `?&` is what both iOS and Android read.
            by_text_message: format!("sms:?&body={}", encoded(&message)),
            // In the app, where there is one.
            by_whatsapp: format!("https://wa.me/?text={}", encoded(&message)),
            message,
        }
    }
}

fn message(words: &Words, union: &str, link: &str) -> String {
    words.share.words.put("union", union).put("link", link).plain()
}

/// All but the characters that RFC 3986 never reserves.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encoded, so that a text cannot end the part of an address it is in.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::language::Language;

    #[test]
    fn a_name_cannot_add_a_recipient_or_a_header() {
        let words = Language::English.words();
        let link = by_mail(words, "A&B?cc=x@example.com\nBcc: é", "https://union.example/joinus0123456789ab");
        assert!(
            link.starts_with("mailto:?subject=Join%20me%20in%20A%26B%3Fcc%3Dx%40example.com%0ABcc%3A%20%C3%A9&body=")
        );
        assert!(link.ends_with("here%3A%20https%3A%2F%2Funion.example%2Fjoinus0123456789ab"));
        assert_eq!(link.matches('&').count(), 1);
        let ways = ShareWays::of(words, "Union&", "x");
        assert!(ways.by_whatsapp.starts_with("https://wa.me/?text=I%27m%20a%20member%20of%20Union%26."));
        assert!(ways.by_text_message.starts_with("sms:?&body=I%27m%20a%20member%20of%20Union%26."));
    }
}
