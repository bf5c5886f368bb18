//! Content negotiation: whether a caller prefers a page or JSON.

use hyper::HeaderMap;
use hyper::header::ACCEPT;

/// Whether the caller is a browser that wants a page, rather than a program that takes anything.
pub fn prefers_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let quality = |wanted: &str| {
        let parts = accept.split(',').map(|part| part.split(';').map(str::trim));
        let found = parts.filter_map(|mut part| {
            (part.next()? == wanted)
                .then(|| part.find_map(|parameter| parameter.strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0))
        });
        found.fold(0.0, f32::max)
    };
    quality("text/html") > 0.0 && quality("text/html") >= quality("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn browsers_get_pages_and_programs_json() {
        let prefers = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
            prefers_html(&headers)
        };
        assert!(prefers("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(prefers("text/html, application/json"));
        assert!(prefers("application/json;q=0.5, text/html;q=0.9"));
        for program in ["*/*", "application/json", "", "text/html;q=0", "text/html;q=0.5, application/json"] {
            assert!(!prefers(program), "{program}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }
}
