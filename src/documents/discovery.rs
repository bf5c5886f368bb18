//! How programs discover the descriptions of the service: `Link` headers (RFC 8288), the API catalog (RFC 9727) and
//! where to report a vulnerability (`security.txt`, RFC 9116).

use std::time::Duration;

use hyper::header::HeaderValue;
use serde_json::{Value, json};

use crate::domain::language::Language;
use crate::domain::time::{DAY, Timestamp};
use crate::domain::union::Union;

/// The type of the catalog, with the profile that RFC 9727 names.
pub const LINKSET: &str = "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"";

/// Where everything is, for `/` and for each document. None where an address of the union cannot stand in a header.
pub fn links(union: &Union) -> Option<HeaderValue> {
    let base = &union.base_url;
    let links = [
        format!("<{base}/openapi.json>; rel=\"service-desc\"; type=\"application/json\""),
        format!("<{base}/docs>; rel=\"service-doc\"; type=\"text/html\""),
        format!("<{base}/docs.md>; rel=\"service-doc\"; type=\"text/markdown\""),
        format!("<{base}/.well-known/api-catalog>; rel=\"api-catalog\"; type=\"application/linkset+json\""),
        format!("<{}>; rel=\"terms-of-service\"", union.terms_page()),
        format!("<{}>; rel=\"privacy-policy\"", union.privacy_page()),
    ];
    HeaderValue::from_str(&links.join(", ")).ok()
}

/// `/.well-known/api-catalog`: each API, with its descriptions.
pub(super) fn api_catalog(union: &Union) -> Value {
    let base = &union.base_url;
    let at = |path: &str| format!("{base}{path}");
    let json_at = |path: &str| json!([{ "href": at(path), "type": "application/json" }]);
    let docs = |anchor: &str| {
        json!([
            { "href": format!("{base}/docs{anchor}"), "type": "text/html" },
            { "href": format!("{base}/docs.md{anchor}"), "type": "text/markdown" },
        ])
    };
    let way_in = |path: &str, described: &str, anchor: &str| {
        json!({
            "anchor": at(path),
            "service-desc": json_at(described),
            "service-doc": docs(anchor),
            "status": json_at("/readyz"),
            "terms-of-service": [{ "href": union.terms_page(), "type": "text/html" }],
            "privacy-policy": [{ "href": union.privacy_page(), "type": "text/html" }],
        })
    };
    let items: Vec<_> = ["/v1", "/partner/v1", "/mcp"].map(|path| json!({ "href": at(path) })).into();
    json!({
        "linkset": [
            { "anchor": at("/.well-known/api-catalog"), "item": items },
            way_in("/v1", "/openapi.json", ""),
            way_in("/partner/v1", "/partner/openapi.json", "#partner-api"),
            way_in("/mcp", "/server.json", "#mcp"),
        ]
    })
}

/// How long `security.txt` is valid. It is written anew for each reader, so it never lapses while the service runs.
const VALID_FOR: Duration = DAY.saturating_mul(90);

/// `/.well-known/security.txt`; none where the union has published no contact, which the file must have.
pub fn security_text(union: &Union, now: Timestamp) -> Option<String> {
    let (contact, base) = (union.contact_email.as_ref()?, &union.base_url);
    let expires = now.start_of_day().plus(VALID_FOR);
    let languages: Vec<_> = Language::ALL.iter().map(|language| language.code()).collect();
    Some(format!(
        "Contact: mailto:{contact}\nExpires: {expires}\nCanonical: {base}/.well-known/security.txt\nPreferred-Languages: {}\n\
         Policy: {base}/docs#security\n",
        languages.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;

    #[test]
    fn security_txt_has_a_contact_and_expires_in_90_days() {
        let union = UnionSettings::sample();
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        let text = security_text(&union, now).unwrap();
        assert!(text.contains("Contact: mailto:hello@union.example\n"), "{text}");
        assert!(text.contains("\nExpires: 2027-02-14T00:00:00Z\n"), "{text}");
        let silent = Union { contact_email: None, ..union };
        assert_eq!(security_text(&silent, now), None);
    }
}
