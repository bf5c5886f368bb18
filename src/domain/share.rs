//! How a member passes their referral link on: the words, and links that open a letter or a text message with them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// A letter to nobody yet, with the words and the link in it.
pub fn by_mail(union: &str, link: &str) -> String {
    format!("mailto:?subject={}&body={}", encoded(&format!("Join me in {union}")), encoded(&words(union, link)))
}

/// A text message to nobody yet. The odd `?&` is what both iOS and Android read.
pub fn by_text_message(union: &str, link: &str) -> String {
    format!("sms:?&body={}", encoded(&words(union, link)))
}

fn words(union: &str, link: &str) -> String {
    format!(
        "I am a member of {union}. Members pool their demand, and an AI negotiates better prices on their household \
         bills. You can join here: {link}"
    )
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

    #[test]
    fn a_name_cannot_add_a_recipient_or_a_header() {
        let link = by_mail("A&B?cc=x@example.com\nBcc: é", "https://union.example/joinus0123456789ab");
        assert!(
            link.starts_with("mailto:?subject=Join%20me%20in%20A%26B%3Fcc%3Dx%40example.com%0ABcc%3A%20%C3%A9&body=")
        );
        assert!(link.ends_with("here%3A%20https%3A%2F%2Funion.example%2Fjoinus0123456789ab"));
        assert_eq!(link.matches('&').count(), 1);
        assert!(by_text_message("Union", "x").starts_with("sms:?&body=I%20am"));
    }
}
