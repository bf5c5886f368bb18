//! Decodes bytes into an operation's input, with errors that name the fix.
//!
//! A valid body is parsed once. Only an invalid one is parsed again: first to check whether it is JSON, then to find every
//! wrong field. The messages serve REST and MCP, so they mention neither a body nor arguments.

use std::collections::HashMap;

use serde::de::{Deserialize, Deserializer, IgnoredAny};

use super::{ObjectInput, mistakes};
use crate::error::Error;

/// As deep as the JSON parser goes, and far deeper than any input.
const DEEPEST: usize = 127;

/// Takes nothing, or an object without fields; anything else is refused with that sentence.
pub fn nothing(body: &[u8], refusal: &str) -> Result<(), Error> {
    let is_empty =
        |body| serde_json::from_slice::<HashMap<String, IgnoredAny>>(body).is_ok_and(|fields| fields.is_empty());
    if body.trim_ascii().is_empty() || is_empty(body) { Ok(()) } else { Err(Error::shapeless(refusal)) }
}

pub fn object<T: ObjectInput>(body: &[u8]) -> Result<T, Error> {
    let body = if T::MAY_BE_EMPTY && body.trim_ascii().is_empty() { b"{}" } else { body };
    // serde would also read an array as a struct, its fields in order; the schema says object.
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    match serde_json::from_slice(body) {
        Ok(input) if is_object => Ok(input),
        _ => Err(explain::<T>(body, is_object)),
    }
}

/// For a field that may be left out but not be null.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn explain<T: ObjectInput>(body: &[u8], is_object: bool) -> Error {
    let example = if T::MAY_BE_EMPTY { "{}" } else { EXAMPLE };
    match check_syntax(body) {
        Err(how) => Error::InvalidJson(how),
        Ok(text) if is_object => {
            let (what, fields) = mistakes::of::<T>(text);
            Error::InvalidSubmission { what, fields }
        }
        Ok(text) => Error::shapeless(&format!("Send a JSON object, such as {example}{}.", instead(text))),
    }
}

const EXAMPLE: &str = "{\"email\": \"ana@example.com\"}";

/// What was sent in place of an object, where that is a usual slip.
fn instead(text: &str) -> &'static str {
    let is_object = |inner: &str| inner.trim_ascii_start().starts_with('{');
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'"') if serde_json::from_str::<String>(text).is_ok_and(|inner| is_object(&inner)) => {
            "; what was sent is one written into a string: encode it once, not twice"
        }
        Some(b'[') => "; what was sent is a list: one object at a time",
        _ => "",
    }
}

/// What to say of a body whose `Content-Encoding` is any but `identity`.
pub const ENCODED: &str = "its Content-Encoding says that it is compressed; send it plain, without that header";

/// What a body is that is no UTF-8 text, by the bytes it begins with.
fn other_form(body: &[u8]) -> Option<&'static str> {
    match body {
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => {
            Some("it is compressed; send it plain")
        }
        [0xef, 0xbb, 0xbf, ..] => Some("it begins with a byte order mark (BOM); send it without one"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => Some("it looks like UTF-16; send it in UTF-8"),
        _ => None,
    }
}

/// The body, if the whole of it is one JSON text, whatever it says.
pub fn check_syntax(body: &[u8]) -> Result<&str, String> {
    if let Some(form) = other_form(body) {
        return Err(form.to_owned());
    }
    let text = std::str::from_utf8(body)
        .map_err(|e| format!("it is not UTF-8 (first bad byte at offset {})", e.valid_up_to()))?;
    if text.trim_ascii().is_empty() {
        return Err("it is empty; send a JSON object".to_owned());
    }
    if depth(body) > DEEPEST {
        return Err(format!("it is nested more than {DEEPEST} levels deep"));
    }
    serde_json::from_str::<IgnoredAny>(text).map(|_| text).map_err(|e| e.to_string())
}

/// How deep arrays and objects are nested at the most.
fn depth(body: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::sign_up_user::InviteRequest;

    fn refuse(body: impl AsRef<[u8]>) -> Error {
        object::<InviteRequest>(body.as_ref()).unwrap_err()
    }

    #[test]
    fn syntax_is_checked_before_content() {
        for bad in [
            &b""[..],
            b"   ",
            b"{",
            b"{\"email\": 5, ",
            b"{\"email\": \"a@example.com\"} x",
            b"{\"email\": \"a@example.com\"}{}",
            b"{\"email\": \"\xff@example.com\"}",
            b"{'email': 1}",
            b"{\"email\": \"a@example.com\",}",
            b"\xef\xbb\xbf{\"email\": \"a@example.com\"}",
            b"NaN",
            "[".repeat(100_000).as_bytes(),
            format!("{}{}", "[".repeat(200), "]".repeat(200)).as_bytes(),
            format!("{{\"email\": {}{}}}", "[".repeat(200), "]".repeat(200)).as_bytes(),
        ] {
            assert!(matches!(refuse(bad), Error::InvalidJson(_)), "{:?}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn bodies_in_another_form_are_known_by_their_first_bytes() {
        for (bad, message) in [
            (&b"\x1f\x8b\x08\0\0"[..], "it is compressed"),
            (b"\x28\xb5\x2f\xfd\x04", "it is compressed"),
            (b"\x78\x9c\xab\x56", "it is compressed"),
            (b"\xef\xbb\xbf{\"email\": \"a@example.com\"}", "it begins with a byte order mark"),
            (b"\xff\xfe{\0}\0", "it looks like UTF-16"),
            (b"\xfe\xff\0{\0}", "it looks like UTF-16"),
            (b"{\0}\0", "it looks like UTF-16"),
            (b"\0{\0}", "it looks like UTF-16"),
            (b"\0", "expected value"),
            (b"\xff", "it is not UTF-8"),
        ] {
            let Error::InvalidJson(how) = refuse(bad) else { panic!("{bad:?}") };
            assert!(how.starts_with(message), "{bad:?}: {how}");
        }
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        for (bad, begins) in [
            (r#"[]"#, "Send a JSON object"),
            (r#"["a@example.com", "CA", {}, "", ""]"#, "Send a JSON object"),
            (r#""a@example.com""#, "Send a JSON object, such as {\"email\": \"ana@example.com\"}."),
            (
                r#"[{"email": "a@example.com"}]"#,
                "Send a JSON object, such as {\"email\": \"ana@example.com\"}; what was sent is a list",
            ),
            (
                r#""{\"email\": \"a@example.com\"}""#,
                "Send a JSON object, such as {\"email\": \"ana@example.com\"}; what was sent is one written into a string",
            ),
            (r#"{}"#, "email: it is missing"),
            (r#"{"email": 1e999}"#, "email: "),
            (r#"{"email": "\ud800@example.com"}"#, "email: "),
            (r#"{"email": null}"#, "email: null is no value; send an email address in a string."),
            (r#"{"email": "nobody"}"#, "email: the address has no @"),
            (r#"{"email": "a@example.com", "email": "a@example.com"}"#, "email: it is named twice"),
            (
                r#"{"email": "a@example.com", "usState": "PR"}"#,
                "usState: not a state code; use one of AL, AK, AZ, AR, CA, CO, CT, DE, DC, FL, GA, HI, ID, IL, IN, IA, KS, KY, LA, ME, \
                 MD, MA, MI, MN, MS, MO, MT, NE, NV, NH, NJ, NM, NY, NC, ND, OH, OK, OR, PA, RI, SC, SD, TN, TX, UT, VT, VA, WA, WV, WI, \
                 WY, or leave it out for territories and other countries.",
            ),
            (r#"{"email": "a@example.com", "state": "CA"}"#, "state: unknown field; did you mean usState?"),
            (r#"{"email": "a@example.com", "comments": "x"}"#, "comments: unknown field; did you mean otherComments?"),
            (r#"{"email": "mailto:a@example.com"}"#, "email: the address is a mailto: link; send it bare"),
            (r#"{"email": "a@example.com, b@example.com"}"#, "email: the address is a list of two or more; send one"),
            (
                r#"{"email": "a@example.com", "categories": {"Home Internet": true}}"#,
                "categories.Home Internet: not a category; did you mean internet?",
            ),
            (
                r#"{"email": "a@example.com", "categories": ["travel"]}"#,
                "categories: send an object of category slugs to booleans, not a list: {\"travel\": true}.",
            ),
            (
                r#"{"email": "a@example.com", "usState": null}"#,
                "usState: null is no value; send a two-letter state code in a string, or leave it out.",
            ),
            (r#"{"email": "a@example.com", "phone": "1"}"#, "phone: unknown field `phone`, expected one of"),
            (
                r#"{"email": "a@example.com", "refCode": 5}"#,
                "refCode: send a referral code in a string, not the integer 5",
            ),
            (r#"{"email": "a@example.com", "otherComments": []}"#, "otherComments: send a string, not a list"),
        ] {
            let Error::InvalidSubmission { what: message, .. } = refuse(bad) else { panic!("{bad}") };
            assert!(message.starts_with(begins), "{bad}\n{message}");
            assert!(!message.contains("line 1"), "{message}");
        }
        let long = format!(r#"{{"email": "a@example.com", "{}": 1}}"#, "é".repeat(100_000));
        assert!(refuse(long).message().chars().count() < 500);
    }
}
