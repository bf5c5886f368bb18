//! "Did you mean /v1/invite?" for a path that does not exist. It serves developers and language models who write a client from
//! memory and guess a path: they find the right one without reading the documents.
//!
//! The path is never repeated, and a path that may carry a token is not compared: only names of our routes go out.

use super::routes::{self, ROUTES};
use crate::operations::ALL;

/// Longer paths than any of ours by far are nobody's slip.
const LONGEST: usize = 100;

/// What others call what we have, letters and digits alone.
const ALSO_CALLED: &[(&str, &str)] = &[
    ("category", "/v1/negotiate-categories"),
    ("signup", "/v1/invite"),
    ("referral", "/v1/referral-program"),
    ("member", "/v1/stats"),
    ("membercount", "/v1/stats"),
    ("openapi", "/openapi.json"),
    ("openapiyaml", "/openapi.json"),
    ("openapiyml", "/openapi.json"),
    ("swagger", "/openapi.json"),
    ("swaggerjson", "/openapi.json"),
    ("swaggeryaml", "/openapi.json"),
    ("apidoc", "/openapi.json"),
    ("swaggerui", "/docs"),
    ("redoc", "/docs"),
    ("documentation", "/docs"),
    ("reference", "/docs"),
    ("sse", "/mcp"),
    ("message", "/mcp"),
    ("health", "/healthz"),
    ("ready", "/readyz"),
];

/// What to say about a path that does not exist: the likely one if there is one, and where all of them are listed.
pub(super) fn not_found(path: &str) -> String {
    // Where the operator's page is off nothing tells of it, and who may use it has its address.
    let names = ROUTES.iter().map(|route| route.name()).filter(|name| !routes::is_operators(name));
    match meant(path, names) {
        Some(known) => format!("There is nothing at this path. Did you mean {known}?"),
        None => "There is nothing at this path. GET / lists the operations; /docs describes them.".to_owned(),
    }
}

/// The one of these patterns that is nearest, if it is near.
fn meant(path: &str, patterns: impl Iterator<Item = &'static str> + Clone) -> Option<&'static str> {
    let tokens = patterns.clone().filter_map(|pattern| pattern.split_once('{')).map(|(before, _)| before);
    let begins = |before: &str| path.get(..before.len()).is_some_and(|start| start.eq_ignore_ascii_case(before));
    if path.len() > LONGEST || tokens.into_iter().any(begins) {
        return None;
    }
    let asked = PathWords::of(path);
    let Some((last, before)) = asked.0.split_last() else {
        // The bare prefix of another version, or of ours with a slash too many.
        return (path != "/").then_some("/v1");
    };
    let by_id = ALL.iter().map(|operation| (operation.spec.id, operation.spec.path));
    let also = ALSO_CALLED.iter().copied().filter(|_| before.is_empty());
    let mut others = also.chain(by_id);
    if let Some((_, known)) = others.find(|(name, _)| *last == word(name)) {
        return Some(known);
    }
    let near = patterns.filter_map(|pattern| Some((asked.distance(&PathWords::of(pattern))?, pattern)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, pattern)| pattern)
}

/// The parts of a path as people mean them: whatever stands for a version or for nothing is left out.
struct PathWords(Vec<String>);

impl PathWords {
    fn of(path: &str) -> Self {
        let says_nothing = |word: &String| {
            let version = word.strip_prefix('v').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
            version || ["api", "rest", "latest"].contains(&word.as_str())
        };
        let parts = path.split('/').filter(|part| !part.is_empty());
        Self(parts.map(word).filter(|word| !says_nothing(word)).collect())
    }

    /// How far the two are apart; none if that is too far.
    fn distance(&self, known: &Self) -> Option<usize> {
        let ((asked, before), (last, folder)) = (self.0.split_last()?, known.0.split_last()?);
        // A folder may be left out, but not be another.
        if !before.is_empty() && before != folder {
            return None;
        }
        let letters = last.len();
        let most = if letters < 4 { 0 } else { 1 + usize::from(letters >= 8) };
        let edits = strsim::osa_distance(asked, last);
        (edits <= most).then(|| 2 * edits + usize::from(before != folder))
    }
}

/// Letters and digits in small, without a plural's ending.
fn word(part: &str) -> String {
    let letters = part.chars().filter(char::is_ascii_alphanumeric);
    let mut word: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    if let Some(stem) = word.strip_suffix("ies") {
        word = format!("{stem}y");
    } else if word.len() > 3 && word.ends_with('s') {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_pointed_the_right_way() {
        for (near, known) in [
            ("/v1/stats/", "/v1/stats"),
            ("/stats", "/v1/stats"),
            ("/V1/Stats", "/v1/stats"),
            ("//v1/stats", "/v1/stats"),
            ("/v1//stats", "/v1/stats"),
            ("/v1/stat", "/v1/stats"),
            ("/v1/sttas", "/v1/stats"),
            ("/v1/invites", "/v1/invite"),
            ("/v2/invite", "/v1/invite"),
            ("/v1.0/invite", "/v1/invite"),
            ("/api/v1/invite", "/v1/invite"),
            ("/api/invite", "/v1/invite"),
            ("/v1/invte", "/v1/invite"),
            ("/v1/sign-up", "/v1/invite"),
            ("/v1/signUpUser", "/v1/invite"),
            ("/v1/referral_link", "/v1/referral-link"),
            ("/v1/referralLinks", "/v1/referral-link"),
            ("/v1/referal-link", "/v1/referral-link"),
            ("/v1/refferral-link", "/v1/referral-link"),
            ("/referral_program", "/v1/referral-program"),
            ("/v1/categories", "/v1/negotiate-categories"),
            ("/v1/negotiate_category", "/v1/negotiate-categories"),
            ("/v1/", "/v1"),
            ("/v2", "/v1"),
            ("/api/", "/v1"),
            ("/docs/", "/docs"),
            ("/Docs", "/docs"),
            ("/doc", "/docs"),
            ("/openapi", "/openapi.json"),
            ("/openapi.yaml", "/openapi.json"),
            ("/v1/openapi.json", "/openapi.json"),
            ("/swagger.json", "/openapi.json"),
            ("/mcp/", "/mcp"),
            ("/v1/mcp", "/mcp"),
            ("/sse", "/mcp"),
            ("/health", "/healthz"),
        ] {
            let told = not_found(near);
            assert!(told.ends_with(&format!("Did you mean {known}?")), "{near}: {told}");
        }
    }

    #[test]
    fn what_is_far_or_may_carry_a_token_is_pointed_nowhere() {
        let long = format!("/v1/invite{}", "/".repeat(200));
        for far in [
            "/v2/pets",
            "/login",
            "/pets/invite",
            "/confirm/stats",
            "/CONFIRM/stats/",
            "/not-me/stats/x",
            "/joinus/stats",
            "/me/enter/x/stats",
            "/wp-login.php",
            "/.env",
            "/é",
            "*",
            &long,
        ] {
            let told = not_found(far);
            assert!(told.ends_with("/docs describes them."), "{far}: {told}");
        }
    }

    #[test]
    fn folders_may_be_left_out_but_not_be_another() {
        let patterns = ["/v1/invite", "/partner/v1/sign-ups", "/partner/v1/sign-ups/{key}", "/partner/v1/inbox"];
        for (near, known) in [
            ("/partner/v1/signups", Some("/partner/v1/sign-ups")),
            ("/partner/sign_up", Some("/partner/v1/sign-ups")),
            ("/partner/v2/in-box/", Some("/partner/v1/inbox")),
            ("/inbox", Some("/partner/v1/inbox")),
            ("/partner/v1/invite", None),
            ("/partner/v1/sign-ups/my-key/", None),
            ("/partners/v1/inbox", Some("/partner/v1/inbox")),
        ] {
            assert_eq!(meant(near, patterns.into_iter()), known, "{near}");
        }
    }
}
