//! Reads the key in an `Authorization` header, or says what is wrong with the header.

use crate::domain::api_key::ApiKey;
use crate::error::KeyProblem;

/// The key in a header like `Bearer uh_…`; the scheme's name may be in any case.
pub(super) fn bearer(authorization: Option<&[u8]>) -> Result<ApiKey, KeyProblem> {
    let value = authorization.ok_or(KeyProblem::Missing)?;
    let text = std::str::from_utf8(value).map_err(|_| KeyProblem::NotBearer)?.trim();
    let (scheme, key) = text.split_once(' ').unwrap_or((text, ""));
    match scheme {
        "" => return Err(KeyProblem::Unclear),
        scheme if scheme.eq_ignore_ascii_case("bearer") => {}
        scheme if scheme.eq_ignore_ascii_case("basic") => return Err(KeyProblem::Basic),
        scheme if scheme.starts_with("uh_") => return Err(KeyProblem::NoScheme),
        _ => return Err(KeyProblem::NotBearer),
    }
    match key.trim() {
        "" => Err(KeyProblem::Missing),
        key => ApiKey::parse(key).map_err(|why| slip(key).unwrap_or(KeyProblem::Malformed(why))),
    }
}

/// Recognizes a common mistake in text that is not a key.
fn slip(text: &str) -> Option<KeyProblem> {
    let bare = text.trim_matches(['"', '\'', '`', '<', '>', '{', '}']);
    match text.starts_with('$') || ["API_KEY", "YOUR_API_KEY", "YOUR_KEY", "KEY", "TOKEN"].contains(&bare) {
        true => Some(KeyProblem::Placeholder),
        false => (bare.len() < text.len() && ApiKey::parse(bare).is_ok()).then_some(KeyProblem::Quoted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::api_key::BadKey;

    #[test]
    fn only_a_whole_bearer_key_is_taken() {
        let key = ApiKey::from_random(&[9; ApiKey::ENTROPY]);
        let whole = format!("Bearer {}", key.reveal());
        for good in [whole.clone(), format!("  bearer   {} ", key.reveal()), whole.replace("Bearer", "BEARER")] {
            assert_eq!(bearer(Some(good.as_bytes())), Ok(key.clone()), "{good}");
        }
        let huge = format!("Bearer {}", "x".repeat(100_000));
        let quoted = format!("Bearer \"{}\"", key.reveal());
        let cut = &whole[..whole.len() - 1];
        for (bad, why) in [
            (None, KeyProblem::Missing),
            (Some("Bearer"), KeyProblem::Missing),
            (Some("Bearer "), KeyProblem::Missing),
            (Some(""), KeyProblem::Unclear),
            (Some(" "), KeyProblem::Unclear),
            (Some("Basic YTpi"), KeyProblem::Basic),
            (Some("Digest x"), KeyProblem::NotBearer),
            (Some(key.reveal()), KeyProblem::NoScheme),
            (Some(quoted.as_str()), KeyProblem::Quoted),
            (Some("Bearer <API_KEY>"), KeyProblem::Placeholder),
            (Some("Bearer $KEY"), KeyProblem::Placeholder),
            (Some("Bearer ${KEY}"), KeyProblem::Placeholder),
            (Some("Bearer \"\""), KeyProblem::Malformed(BadKey::Form)),
            (Some(huge.as_str()), KeyProblem::Malformed(BadKey::Form)),
            (Some(cut), KeyProblem::Malformed(BadKey::Form)),
        ] {
            assert_eq!(bearer(bad.map(str::as_bytes)), Err(why), "{bad:?}");
        }
        assert_eq!(bearer(Some(b"Bearer \xff")), Err(KeyProblem::NotBearer));
    }
}
