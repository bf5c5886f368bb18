//! The code of the friend who invited a visitor. While they look around, every link hands it on in its address (`?ref=<code>`),
//! so that it needs no cookie.

use hyper::Uri;

use crate::domain::referral::ReferralCode;

/// The code that an address hands on, if it does.
pub fn handed_on(uri: &Uri) -> Option<ReferralCode> {
    let mut query = form_urlencoded::parse(uri.query()?.as_bytes());
    query.find(|(name, _)| name == "ref").and_then(|(_, code)| ReferralCode::from_pasted(&code))
}

/// A page whose links and forms hand the code on. Nothing that a visitor wrote can look like one: quotes in it are escaped.
pub(super) fn hand_on(html: &str, code: ReferralCode) -> String {
    const BEGINS: &str = "=\"/";
    let mut parts = html.split(BEGINS);
    let mut page = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (is_link, is_form) = (page.ends_with(" href"), page.ends_with(" action"));
        page.push_str(BEGINS);
        let (address, rest) = part.split_at(part.find('"').unwrap_or(part.len()));
        match is_link || is_form {
            true => page.push_str(&with_code(address, code, is_link)),
            false => page.push_str(address),
        }
        page.push_str(rest);
    }
    page
}

/// The place that a form leads to, with the code in it.
pub(super) fn hand_on_to(place: &str, code: ReferralCode) -> String {
    format!("/{}", with_code(place.trim_start_matches('/'), code, true)).replace("&amp;", "&")
}

/// The address of a page, without its first slash, with the code in it. Files, which have a dot in their name, stay as they are.
fn with_code(address: &str, code: ReferralCode, is_link: bool) -> String {
    let (address, fragment) = address.split_at(address.find('#').unwrap_or(address.len()));
    let (path, query) = address.split_at(address.find('?').unwrap_or(address.len()));
    let separator = if query.is_empty() { "?" } else { "&amp;" };
    match path {
        _ if path.contains('.') || path == "logo" || path.starts_with("joinus") => format!("{address}{fragment}"),
        "join" if is_link => format!("joinus{code}{query}{fragment}"),
        _ => format!("{address}{separator}ref={code}{fragment}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_forms_hand_the_code_on_and_files_do_not() {
        let code = ReferralCode::from_canonical("0123456789ab").unwrap();
        for (plain, kept) in [
            (r#"<a href="/about">"#, r#"<a href="/about?ref=0123456789ab">"#),
            (r#"<a href="/">"#, r#"<a href="/?ref=0123456789ab">"#),
            (r#"<a href="/join">"#, r#"<a href="/joinus0123456789ab">"#),
            (r#"<a href="/join?lang=es">"#, r#"<a href="/joinus0123456789ab?lang=es">"#),
            (r#"<a href="/me?lang=es#mail">"#, r#"<a href="/me?lang=es&amp;ref=0123456789ab#mail">"#),
            (r#"<form action="/join" method="post">"#, r#"<form action="/join?ref=0123456789ab" method="post">"#),
            (r#"<a href="/joinuszzzzzzzzzzzz?lang=es">"#, r#"<a href="/joinuszzzzzzzzzzzz?lang=es">"#),
            (
                r#"<link href="/style.css"><script src="/total.js">"#,
                r#"<link href="/style.css"><script src="/total.js">"#,
            ),
            (
                r##"<a href="#main"><a href="https://x.example/about">"##,
                r##"<a href="#main"><a href="https://x.example/about">"##,
            ),
        ] {
            assert_eq!(hand_on(plain, code), kept);
        }
    }

    #[test]
    fn a_code_is_read_from_an_address() {
        let read = |address: &'static str| handed_on(&Uri::from_static(address)).map(|code| code.to_string());
        assert_eq!(read("/about?lang=es&ref=0123456789AB").as_deref(), Some("0123456789ab"));
        for none in ["/about", "/about?ref=", "/about?ref=nobody", "/about?xref=0123456789ab"] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
